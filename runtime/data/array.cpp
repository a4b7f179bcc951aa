#include "lantern/runtime/data/array.hpp"

#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "lantern/runtime/data/report.hpp"

namespace lantern {

namespace core::data {

void require_elements(std::size_t count, const std::vector<std::int64_t>& shape) {
  std::int64_t expected = 1;
  for (const std::int64_t d : shape) expected *= addressable(shape) ? d : 0;
  if (!addressable(shape) || static_cast<std::uint64_t>(expected) != count)
    throw Error(fmt::format("AnyTensor: expected as many elements as a tensor of shape {} has, got {}",
                            shape_text(shape), count));
}

AnyTensor any_tensor(KeptTensor tensor) {
  AnyTensor any;
  any.tensor_ = std::move(tensor);
  return any;
}

const KeptTensor& kept(const AnyTensor& tensor) { return tensor.tensor_; }

namespace {

template <class S>
constexpr std::string_view name_of_kept() {
  if constexpr (std::is_same_v<S, std::uint8_t>)
    return name_of<bool>();
  else
    return name_of<S>();
}

/// Whether T has a place for x, be it after rounding. Comparisons are with powers of 2, which every type has.
template <Element T, class S>
bool fits(S x) {
  if constexpr (std::is_same_v<T, bool>) {
    return x == S(0) || x == S(1);
  } else if constexpr (std::is_integral_v<T> && std::is_floating_point_v<S>) {
    const S end = std::ldexp(S(1), std::numeric_limits<T>::digits);
    return x >= -end && x < end && std::trunc(x) == x;
  } else if constexpr (std::is_integral_v<T>) {
    return std::in_range<T>(x);
  } else if constexpr (std::is_same_v<T, float> && std::is_same_v<S, double>) {
    return !std::isfinite(x) || std::abs(x) <= static_cast<double>(std::numeric_limits<float>::max());
  } else {
    return true;
  }
}

}  // namespace
}  // namespace core::data

std::string_view AnyTensor::type_name() const {
  return std::visit([]<class S>(const TensorValue<S>&) { return core::data::name_of_kept<S>(); }, tensor_);
}

const std::vector<std::int64_t>& AnyTensor::shape() const {
  return std::visit([](const auto& t) -> const std::vector<std::int64_t>& { return t.shape; }, tensor_);
}

std::int64_t AnyTensor::size() const {
  return std::visit([](const auto& t) { return static_cast<std::int64_t>(t.data.size()); }, tensor_);
}

void AnyTensor::require_type(bool right, std::string_view expected) const {
  if (!right)
    throw Error(
        fmt::format("AnyTensor: expected a tensor of {}, got one of {} and shape {}; convert<{}>() converts",
                    expected, type_name(), core::data::shape_text(shape()), expected));
}

template <core::data::Element T>
TensorValue<T> AnyTensor::convert() const {
  return std::visit(
      []<class S>(const TensorValue<S>& from) {
        TensorValue<T> to;
        to.shape = from.shape;
        to.data.reserve(from.data.size());
        for (std::size_t i = 0; i < from.data.size(); ++i) {
          if (!core::data::fits<T>(from.data[i]))
            throw Error(fmt::format(
                "AnyTensor: expected elements that {} has a place for, got {} as element {} of {}",
                core::data::name_of<T>(), from.data[i], i, core::data::name_of_kept<S>()));
          to.data.push_back(static_cast<T>(from.data[i]));
        }
        return to;
      },
      tensor_);
}

template TensorValue<bool> AnyTensor::convert() const;
template TensorValue<std::int32_t> AnyTensor::convert() const;
template TensorValue<std::int64_t> AnyTensor::convert() const;
template TensorValue<float> AnyTensor::convert() const;
template TensorValue<double> AnyTensor::convert() const;

AnyView::AnyView(const AnyTensor& tensor) : type_(tensor.type_name()) {
  std::visit(
      [&]<class S>(const TensorValue<S>& t) {
        size_ = sizeof(S);
        set<S>(t);
      },
      core::data::kept(tensor));
}

std::int64_t AnyView::size() const {
  std::int64_t n = 1;
  for (const std::int64_t d : shape_) n *= d;
  return n;
}

void AnyView::require_memory() const {
  if (!core::addressable(shape_))
    throw Error("AnyView: expected sizes that fit in memory, got " + core::data::shape_text(shape_));
  if (size() > 0 && data_ == nullptr)
    throw Error("AnyView: expected the elements of a tensor of shape " + core::data::shape_text(shape_) +
                ", got no memory");
}

}  // namespace lantern
