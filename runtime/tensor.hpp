// Tensors at the edge of compiled functions: a strided view of the caller's memory, and an owning result.
#pragma once

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <vector>

#include "lantern/ir/error.hpp"

namespace lantern {

namespace core {

/// Whether memory could hold a tensor of these sizes: those that are not 0 multiply to at most 2^50. Of a
/// tensor without elements too, so that no product of sizes wraps, and a size is a small number wherever one
/// is met.
inline bool addressable(std::span<const std::int64_t> shape) {
  std::int64_t most = std::int64_t{1} << 50;
  for (const std::int64_t d : shape) {
    if (d < 0) return false;
    if (d > 0) most /= d;
  }
  return most > 0;
}

}  // namespace core

/// A strided view of elements that somebody else owns; strides count elements. Row-major when made from a shape.
template <class T>
class TensorView {
 public:
  TensorView() = default;
  TensorView(T* data, std::vector<std::int64_t> shape) : data_(data), shape_(std::move(shape)) {
    strides_.assign(shape_.size(), 1);
    for (std::size_t i = shape_.size(); i-- > 1;) strides_[i - 1] = strides_[i] * shape_[i];
  }
  TensorView(T* data, std::vector<std::int64_t> shape, std::vector<std::int64_t> strides)
      : data_(data), shape_(std::move(shape)), strides_(std::move(strides)) {
    if (strides_.size() != shape_.size())
      throw Error("TensorView: expected one stride per dimension, got " + std::to_string(strides_.size()) + " for " +
                  std::to_string(shape_.size()));
  }
  /// A view of mutable memory is also a view of const memory.
  template <class U>
    requires(std::is_same_v<const U, T>)
  TensorView(const TensorView<U>& o) : TensorView(o.data(), o.shape(), o.strides()) {}

  T* data() const { return data_; }
  const std::vector<std::int64_t>& shape() const { return shape_; }
  const std::vector<std::int64_t>& strides() const { return strides_; }
  std::int64_t size() const {
    std::int64_t n = 1;
    for (std::int64_t d : shape_) n *= d;
    return n;
  }
  bool contiguous() const {
    std::int64_t expected = 1;
    for (std::size_t i = shape_.size(); i-- > 0;) {
      if (shape_[i] != 1 && strides_[i] != expected) return false;
      expected *= shape_[i];
    }
    return true;
  }
  /// The element at row-major position `flat`.
  T& at_flat(std::int64_t flat) const {
    std::int64_t offset = 0;
    for (std::size_t i = shape_.size(); i-- > 0;) {
      offset += flat % shape_[i] * strides_[i];
      flat /= shape_[i];
    }
    return data_[offset];
  }

 private:
  T* data_ = nullptr;
  std::vector<std::int64_t> shape_, strides_;
};

/// A tensor that owns its elements, row-major: what a compiled function returns for Rep<Tensor<T>>.
template <class T>
struct TensorValue {
  std::vector<T> data;
  std::vector<std::int64_t> shape;

  TensorValue() = default;
  /// Of this shape, all elements `value`.
  explicit TensorValue(std::vector<std::int64_t> s) : TensorValue(std::move(s), T()) {}
  template <std::convertible_to<T> V>  // a list in braces is no V, so that TensorValue({6, 3}, {2}) has two
                                       // elements
                                       explicit TensorValue(std::vector<std::int64_t> s, V value)
      : shape(std::move(s)) {
    data.assign(elements(), static_cast<T>(value));
  }
  /// Of these elements, in row-major order. Error: as many as the shape says they are not.
  TensorValue(std::vector<T> d, std::vector<std::int64_t> s) : data(std::move(d)), shape(std::move(s)) {
    if (data.size() != elements())
      throw Error("TensorValue: expected " + std::to_string(elements()) + " elements for the shape " +
                  shape_text() + ", got " + std::to_string(data.size()) +
                  "; TensorValue(shape, value) repeats one value");
  }

  operator TensorView<const T>() const { return {data.data(), shape}; }
  operator TensorView<T>() { return {data.data(), shape}; }
  typename std::vector<T>::reference operator[](std::size_t i) { return data[i]; }
  typename std::vector<T>::const_reference operator[](std::size_t i) const { return data[i]; }
  /// An element by its indices, one for each dimension. Error: another number of them, or one outside.
  template <std::convertible_to<std::int64_t>... I>
  typename std::vector<T>::reference operator()(I... i) {
    return data[position({static_cast<std::int64_t>(i)...})];
  }
  template <std::convertible_to<std::int64_t>... I>
  typename std::vector<T>::const_reference operator()(I... i) const {
    return data[position({static_cast<std::int64_t>(i)...})];
  }
  /// Whether shapes and all elements are equal.
  bool operator==(const TensorValue&) const = default;

 private:
  std::size_t position(std::initializer_list<std::int64_t> index) const {
    const auto refuse = [&](const std::string& why) {
      std::string text;
      for (const std::int64_t i : index) text += (text.empty() ? "" : ", ") + std::to_string(i);
      throw Error("TensorValue: the element (" + text + ") of a tensor of shape " + shape_text() + ": " + why);
    };
    if (index.size() != shape.size()) refuse("expected " + std::to_string(shape.size()) + " indices");
    std::size_t at = 0, k = 0;
    for (const std::int64_t i : index) {
      const std::int64_t n = shape[k++];
      if (i < 0 || i >= n) refuse("expected indices of 0 or more, below the sizes");
      at = at * static_cast<std::size_t>(n) + static_cast<std::size_t>(i);
    }
    return at;
  }
  std::string shape_text() const {
    std::string text = "[";
    for (std::size_t i = 0; i < shape.size(); ++i) text += (i ? ", " : "") + std::to_string(shape[i]);
    return text + "]";
  }
  /// How many elements the shape has. Error: a size below 0, or more than memory could hold.
  std::size_t elements() const {
    if (!core::addressable(shape))
      throw Error("TensorValue: expected sizes of 0 or more that memory can hold, got " + shape_text());
    std::int64_t n = 1;
    for (const std::int64_t d : shape) n *= d;
    return static_cast<std::size_t>(n);
  }
};

}  // namespace lantern
