// The operands of one operation, kept.
#pragma once

#include <array>
#include <memory>
#include <span>

#include "lantern/compiler/staging/datum.hpp"

namespace lantern::ad {

/// A list of data of fixed length, in memory of the pool: eager derivatives keep one for every operation.
class Operands {
 public:
  Operands() = default;
  explicit Operands(std::span<const Datum> data)
      : Operands(data, [](const Datum& d) -> const Datum& { return d; }) {}
  /// What f makes of each.
  template <class F>
  Operands(std::span<const Datum> data, const F& f)
      : data_(static_cast<Datum*>(pool_take(data.size() * sizeof(Datum)))), size_(data.size()) {
    for (std::size_t i = 0; i < size_; ++i) ::new (static_cast<void*>(data_ + i)) Datum(f(data[i]));
  }
  Operands(const Operands& o) : Operands(std::span<const Datum>(o)) {}
  Operands(Operands&& o) noexcept
      : data_(std::exchange(o.data_, nullptr)), size_(std::exchange(o.size_, 0)) {}
  Operands& operator=(Operands o) noexcept {
    std::swap(data_, o.data_);
    std::swap(size_, o.size_);
    return *this;
  }
  ~Operands() {
    if (!data_) return;
    std::destroy_n(data_, size_);
    pool_give(data_, size_ * sizeof(Datum));
  }

  std::size_t size() const { return size_; }
  const Datum* begin() const { return data_; }
  const Datum* end() const { return data_ + size_; }
  const Datum& operator[](std::size_t i) const { return data_[i]; }
  const Datum* data() const { return data_; }

 private:
  Datum* data_ = nullptr;
  std::size_t size_ = 0;
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
  Data many_;
};

}  // namespace lantern::ad
