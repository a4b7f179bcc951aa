// How much of the arena a program takes at one time: what its memory plan comes to.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "lantern/ir/graph.hpp"

namespace lantern::tool {

/// So many bytes: a sum of products of sizes, which are known by name where they are not known by number.
class ByteCount {
 public:
  ByteCount() = default;
  explicit ByteCount(double bytes);
  static ByteCount named(const std::string& size);

  ByteCount& operator+=(const ByteCount& other);
  ByteCount& operator-=(const ByteCount& other);
  friend ByteCount operator*(const ByteCount& a, const ByteCount& b);
  /// The number, where all sizes are known.
  std::optional<double> number() const;
  /// Which of two is larger is asked with every unknown size taken for 1000.
  double magnitude() const;
  /// "4000 bytes + 8 * x.size()"
  std::string str() const;

 private:
  std::map<std::vector<std::string>, double> terms_;
};

/// What a program's entry takes of the arena, from its graph behind the pass inplace.
struct ArenaUse {
  ByteCount peak;     ///< the most at one time, without results and tapes
  ByteCount results;  ///< tensors among the results that are made in the caller's memory where that is given
  bool products =
      false;  ///< matrices are multiplied by a routine, which takes some 3 MB at most for its panels
  bool recursive = false;  ///< calls nest as deep as the data says: of one level only
};
ArenaUse arena_use(const ir::Module& module);

}  // namespace lantern::tool
