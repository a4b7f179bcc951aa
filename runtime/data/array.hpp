// Tensors whose element type is known only when the program runs: what files of tensors hold.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "lantern/runtime/tensor.hpp"

namespace lantern {

class AnyTensor;

namespace core::data {

/// The element types of tensors.
template <class T>
concept Element = std::same_as<T, bool> || std::same_as<T, std::int32_t> || std::same_as<T, std::int64_t> ||
                  std::same_as<T, float> || std::same_as<T, double>;

/// What an AnyTensor keeps for an element: a byte that is 0 or 1 for a bool.
template <Element T>
using Kept = std::conditional_t<std::is_same_v<T, bool>, std::uint8_t, T>;

using KeptTensor = std::variant<TensorValue<std::uint8_t>, TensorValue<std::int32_t>,
                                TensorValue<std::int64_t>, TensorValue<float>, TensorValue<double>>;

template <Element T>
constexpr std::string_view name_of() {
  if constexpr (std::is_same_v<T, bool>) return "bool";
  if constexpr (std::is_same_v<T, std::int32_t>) return "int32";
  if constexpr (std::is_same_v<T, std::int64_t>) return "int64";
  if constexpr (std::is_same_v<T, float>) return "float";
  if constexpr (std::is_same_v<T, double>) return "double";
}

/// Error where a tensor has not as many elements as its shape says.
void require_elements(std::size_t count, const std::vector<std::int64_t>& shape);

AnyTensor any_tensor(KeptTensor tensor);
const KeptTensor& kept(const AnyTensor& tensor);

}  // namespace core::data

/// A tensor of bool, int32, int64, float or double, row-major, with its shape.
class AnyTensor {
 public:
  /// No elements: a tensor of double of shape [0].
  AnyTensor() : tensor_(TensorValue<double>({0})) {}

  /// Error: not as many elements as the shape says.
  template <core::data::Element T>
  AnyTensor(TensorValue<T> tensor) : tensor_(keep(std::move(tensor))) {}

  /// Whether the elements are of this type.
  template <core::data::Element T>
  bool is() const {
    return std::holds_alternative<TensorValue<core::data::Kept<T>>>(tensor_);
  }
  /// "bool", "int32", "int64", "float" or "double".
  std::string_view type_name() const;
  const std::vector<std::int64_t>& shape() const;
  std::int64_t size() const;

  /// The tensor as it is. Error, with both types: its elements are of another type.
  template <core::data::Element T>
  TensorValue<T> get() const& {
    require_type(is<T>(), core::data::name_of<T>());
    return give<T>(std::get<TensorValue<core::data::Kept<T>>>(tensor_));
  }
  template <core::data::Element T>
  TensorValue<T> get() && {
    require_type(is<T>(), core::data::name_of<T>());
    return give<T>(std::move(std::get<TensorValue<core::data::Kept<T>>>(tensor_)));
  }

  /// The tensor with elements of another type. Floating-point types round to nearest. Error: a value that the
  /// type has no place for (out of its range; for an integer a fraction, for a bool neither 0 nor 1).
  template <core::data::Element T>
  TensorValue<T> convert() const;

 private:
  friend AnyTensor core::data::any_tensor(core::data::KeptTensor tensor);
  friend const core::data::KeptTensor& core::data::kept(const AnyTensor& tensor);

  template <class T>
  static TensorValue<core::data::Kept<T>> keep(TensorValue<T> tensor) {
    core::data::require_elements(tensor.data.size(), tensor.shape);
    if constexpr (std::is_same_v<T, bool>)
      return {std::vector<std::uint8_t>(tensor.data.begin(), tensor.data.end()), std::move(tensor.shape)};
    else
      return tensor;
  }
  template <class T>
  static TensorValue<T> give(TensorValue<core::data::Kept<T>> tensor) {
    if constexpr (std::is_same_v<T, bool>)
      return {std::vector<bool>(tensor.data.begin(), tensor.data.end()), std::move(tensor.shape)};
    else
      return tensor;
  }
  void require_type(bool right, std::string_view expected) const;

  core::data::KeptTensor tensor_;
};

using NamedTensors = std::map<std::string, AnyTensor>;  ///< as files of many have them

/// A view of a tensor of any element type, for functions that write one: a parameter that a TensorValue, a
/// TensorView (strided ones too) or an AnyTensor may be passed for. It must not outlive what it views.
class AnyView {
 public:
  /// Error: not as many elements as the shape says, or no memory.
  template <core::data::Element T>
  AnyView(const TensorValue<T>& tensor) : type_(core::data::name_of<T>()), size_(sizeof(T)) {
    core::data::require_elements(tensor.data.size(), tensor.shape);
    if constexpr (std::is_same_v<T, bool>) {
      bits_.assign(tensor.data.begin(), tensor.data.end());
      set<std::uint8_t>({nullptr, tensor.shape});
    } else {
      set<T>(tensor);
    }
  }
  template <class T>
    requires core::data::Element<std::remove_const_t<T>>
  AnyView(const TensorView<T>& view)
      : type_(core::data::name_of<std::remove_const_t<T>>()), size_(sizeof(T)) {
    set<std::remove_const_t<T>>(view);
    require_memory();
  }
  AnyView(const AnyTensor& tensor);

  /// "bool", "int32", "int64", "float" or "double".
  std::string_view type_name() const { return type_; }
  std::size_t element_bytes() const { return size_; }
  const std::vector<std::int64_t>& shape() const { return shape_; }
  /// In elements.
  const std::vector<std::int64_t>& strides() const { return strides_; }
  /// The number of elements.
  std::int64_t size() const;
  /// Row-major, without gaps.
  bool contiguous() const { return contiguous_; }
  /// The first element; a bool is a byte that is 0 or 1.
  const std::byte* data() const {
    return bits_.empty() ? data_ : reinterpret_cast<const std::byte*>(bits_.data());
  }

 private:
  template <class T>
  void set(const TensorView<const T>& view) {
    data_ = reinterpret_cast<const std::byte*>(view.data());
    shape_ = view.shape();
    strides_ = view.strides();
    contiguous_ = view.contiguous();
  }
  void require_memory() const;

  std::string_view type_;
  std::size_t size_ = 0;
  const std::byte* data_ = nullptr;
  std::vector<std::int64_t> shape_, strides_;
  bool contiguous_ = true;
  std::vector<std::uint8_t> bits_;  ///< of a std::vector<bool>, whose memory cannot be viewed
};

}  // namespace lantern
