// The points of an operation in index notation, one after the other.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "lantern/ir/notation.hpp"

namespace lantern::ir {

/// Walks through the index space of a notation, and says where in row-major memory each operand is accessed.
/// The indices of the result move slowest. Points where a place lies outside its operand are left out.
class Points {
 public:
  /// `size_of(SizeSource)` tells sizes.
  template <class SizeOf>
  Points(const Notation& n, SizeOf&& size_of) : letters_(n.letters()) {
    for (const char c : letters_) sizes_.push_back(size_of(*size_source(n, c)));
  }

  Points(std::string letters, std::vector<std::int64_t> sizes)
      : letters_(std::move(letters)), sizes_(std::move(sizes)) {}

  std::int64_t size(char letter) const { return sizes_[letters_.find(letter)]; }

  /// One more operand, of this shape.
  void follow(const Subscripts& at, std::span<const std::int64_t> shape) {
    Access a{std::vector<std::int64_t>(letters_.size(), 0), 0};
    std::int64_t stride = 1;
    for (std::size_t d = at.size(); d-- > 0; stride *= shape[d]) {
      a.start += stride * at[d].constant;
      Bound bound{std::vector<std::int64_t>(letters_.size(), 0), at[d].constant, shape[d]};
      for (const Subscript::Term& t : at[d].terms) {
        a.step[letters_.find(t.letter)] += stride * t.factor;
        bound.step[letters_.find(t.letter)] += t.factor;
      }
      if (!at[d].is_letter()) bounds_.push_back(std::move(bound));
    }
    accesses_.push_back(std::move(a));
  }

  /// each(offsets): where every operand that is followed is accessed, in their order.
  template <class Each>
  void run(Each&& each) const {
    const std::size_t rank = letters_.size();
    for (const std::int64_t n : sizes_)
      if (n <= 0) return;
    std::vector<std::int64_t> index(rank, 0), at;
    for (const Access& a : accesses_) at.push_back(a.start);
    for (;;) {
      if (inside(index)) each(std::span<const std::int64_t>(at));
      std::size_t d = rank;
      for (; d > 0; --d) {
        const std::size_t k = d - 1;
        for (std::size_t i = 0; i < at.size(); ++i) at[i] += accesses_[i].step[k];
        if (++index[k] < sizes_[k]) break;
        for (std::size_t i = 0; i < at.size(); ++i) at[i] -= accesses_[i].step[k] * sizes_[k];
        index[k] = 0;
      }
      if (d == 0) return;
    }
  }

 private:
  struct Access {
    std::vector<std::int64_t> step;  ///< of each letter
    std::int64_t start;
  };
  struct Bound {
    std::vector<std::int64_t> step;
    std::int64_t start, size;
  };

  bool inside(const std::vector<std::int64_t>& index) const {
    for (const Bound& b : bounds_) {
      std::int64_t place = b.start;
      for (std::size_t k = 0; k < index.size(); ++k) place += b.step[k] * index[k];
      if (place < 0 || place >= b.size) return false;
    }
    return true;
  }

  std::string letters_;
  std::vector<std::int64_t> sizes_;
  std::vector<Access> accesses_;
  std::vector<Bound> bounds_;
};

}  // namespace lantern::ir
