// Constant numbers that compiled functions work on again and again, and what calls keep of them.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "lantern/runtime/workspace.h"

namespace lantern {

/// Memory whose numbers are the same in every call that is given these panels: weights of a network that is
/// run. The first call packs each matrix there for the products that it takes part in, later calls find it
/// packed. For one call at a time. The panels take as many bytes as the matrices.
class Panels {
 public:
  /// `constants`: pieces of memory that do not overlap, and that neither change nor go away before the panels
  /// do.
  explicit Panels(std::vector<std::span<const std::byte>> constants);
  ~Panels();
  Panels(const Panels&) = delete;
  Panels& operator=(const Panels&) = delete;

  lt_panels* get() { return &panels_; }

 private:
  std::vector<const char*> begin_, end_;
  lt_panels panels_;
};

}  // namespace lantern
