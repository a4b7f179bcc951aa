// The operands of one operation, kept.
#pragma once

#include <array>
#include <memory>
#include <span>

#include "lantern/compiler/staging/datum.hpp"

namespace lantern::core::ad {

/// A list of data of fixed length: eager derivatives keep one for every operation. One or two lie in the
/// object itself, more in memory of the pool.
class Operands {
 public:
  Operands() = default;
  explicit Operands(std::span<const Datum> data) : size_(data.size()) {
    if (size_ > kInside) bits_.many = static_cast<Datum*>(pool_take(size_ * sizeof(Datum)));
    std::uninitialized_copy_n(data.begin(), size_, first());
  }
  Operands(const Operands& o) : Operands(std::span<const Datum>(o)) {}
  Operands(Operands&& o) noexcept { take(o); }
  Operands& operator=(Operands o) noexcept {
    clear();
    take(o);
    return *this;
  }
  ~Operands() { clear(); }

  std::size_t size() const { return size_; }
  const Datum* begin() const { return size_ > kInside ? bits_.many : bits_.few; }
  const Datum* end() const { return begin() + size_; }
  const Datum& operator[](std::size_t i) const { return begin()[i]; }
  const Datum* data() const { return begin(); }

 private:
  static constexpr std::size_t kInside = 2;

  Datum* first() { return size_ > kInside ? bits_.many : bits_.few; }
  void take(Operands& o) noexcept {
    size_ = std::exchange(o.size_, 0);
    if (size_ > kInside) {
      bits_.many = o.bits_.many;
      return;
    }
    std::uninitialized_move_n(o.bits_.few, size_, bits_.few);
    std::destroy_n(o.bits_.few, size_);
  }
  void clear() noexcept {
    std::destroy_n(first(), size_);
    if (size_ > kInside) pool_give(bits_.many, size_ * sizeof(Datum));
    size_ = 0;
  }

  std::size_t size_ = 0;
  union Bits {
    Bits() {}
    ~Bits() {}
    Datum few[kInside];
    Datum* many;
  } bits_;
};

/// A share in a box.
class BoxRef {
 public:
  explicit BoxRef(Boxed& box) : box_(&box) { box.retain(); }
  BoxRef(const BoxRef& o) : BoxRef(*o.box_) {}
  BoxRef(BoxRef&& o) noexcept : box_(std::exchange(o.box_, nullptr)) {}
  BoxRef& operator=(const BoxRef&) = delete;
  ~BoxRef() {
    if (box_ && box_->release()) delete box_;
  }
  Boxed& operator*() const { return *box_; }

 private:
  Boxed* box_;
};

/// The same for the time of one call: up to three lie in the object itself.
class Transient {
 public:
  template <class F>
  Transient(std::span<const Datum> data, const F& f) : size_(data.size()) {
    if (size_ <= few_.size())
      for (std::size_t i = 0; i < size_; ++i) few_[i] = f(data[i]);
    else
      for (const Datum& d : data) many_.push_back(f(d));
  }
  const Datum* data() const { return size_ <= few_.size() ? few_.data() : many_.data(); }
  std::size_t size() const { return size_; }
  const Datum* begin() const { return data(); }
  const Datum* end() const { return data() + size_; }

 private:
  std::array<Datum, 3> few_;
  std::size_t size_;
  Datums many_;
};

}  // namespace lantern::core::ad
