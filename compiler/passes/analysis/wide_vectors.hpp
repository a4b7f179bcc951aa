// The wide vectors of some code, and whether all work on them can go strip by strip: the analysis behind
// strips.
#pragma once

#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "lantern/compiler/passes/support/rewrite.hpp"

namespace lantern::passes {

/// Vectors of `lanes` lanes that a block makes, and the blocks in it.
struct WideVectors {
  Block* root = nullptr;
  int lanes = 0;
  Value* active = nullptr;  ///< how many lanes work; null: all

  bool is_wide(const Value* v) const { return wide.contains(v); }
  /// True for what each strip makes for itself where it is asked for: lane numbers, splats, integers that
  /// differ from lane numbers by what all lanes share, truth values.
  bool is_repeatable(const Op* op) const;
  /// True for arithmetic on vectors.
  bool is_arithmetic(const Op& op) const;
  /// True for arithmetic on vectors and access to elements by them.
  bool is_simple(const Op& op) const { return is_arithmetic(op) || access(op).has_value(); }
  /// True for a construct with vectors among its state or inside.
  bool holds(const Op* op) const { return constructs.contains(op); }

  /// Where an operation reads or writes elements.
  struct Access {
    std::size_t place = 0;         ///< which index is a vector
    const Value* index = nullptr;  ///< that vector
    bool in_order = false;         ///< its lanes follow each other: no two are alike
    bool operator==(const Access& other) const { return place == other.place && index == other.index; }
  };
  std::optional<Access> access(const Op& op) const;

  /// The operations that use a value as an operand.
  const std::vector<const Op*>& uses(const Value* v) const;
  /// The same, with the users of what is repeated in place of that.
  std::vector<const Op*> users(const Value* v) const;
  /// Notes who uses what: to be called again once operations have moved.
  void find_uses();

  std::unordered_set<const Value*> wide;
  std::unordered_set<const Op*> constructs;
  std::unordered_map<const Value*, std::vector<const Op*>> used_by;
};

/// The vectors of `lanes` lanes of a block; nothing where they must stay whole, or are better left so.
/// `native`: how many f64 a register holds.
std::optional<WideVectors> wide_vectors(Block* root, int lanes, int native);

}  // namespace lantern::passes
