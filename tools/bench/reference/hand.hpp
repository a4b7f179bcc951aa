// The objective of ADBench's hand tracking, written with Eigen as a programmer would without thinking of
// speed.
//
// Frozen: these loops are the yardstick that derivatives are measured with. They must not be tuned.
#pragma once

#include <memory>
#include <span>

#include "../adbench_input.hpp"

namespace lantern::bench::reference {

/// The hand of an input, held in Eigen's matrices.
class Hand {
 public:
  explicit Hand(const HandInput& in);
  ~Hand();
  Hand(const Hand&) = delete;
  Hand& operator=(const Hand&) = delete;

  /// Writes measured minus modelled position of each point, 3 numbers each. `theta` has 26 entries, `u` has
  /// two a point, or none in the simple form.
  void operator()(std::span<const double> theta, std::span<const double> u, std::span<double> errors) const;

 private:
  struct Matrices;
  std::unique_ptr<const Matrices> matrices_;
};

}  // namespace lantern::bench::reference
