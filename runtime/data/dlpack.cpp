#include "lantern/runtime/data/dlpack.hpp"

#include <fmt/format.h>

#include <array>
#include <cstring>
#include <memory>
#include <optional>
#include <utility>

#include "lantern/runtime/data/element.hpp"
#include "lantern/runtime/data/report.hpp"
#include "lantern/runtime/dlpack.hpp"

namespace lantern {

namespace core::data {

namespace {

constexpr std::uint8_t dlpack_bool = 6;  // kDLBool, of DLPack 0.8 and later
// kDLFloat8_..., of DLPack 1.1 and later.
constexpr std::uint8_t dlpack_e4m3fn = 10, dlpack_e4m3fnuz = 11, dlpack_e5m2 = 12, dlpack_e5m2fnuz = 13,
                       dlpack_e8m0fnu = 14;

constexpr std::pair<Stored, DLDataType> dlpack_types[] = {{Stored::boolean, {dlpack_bool, 8, 1}},
                                                          {Stored::int8, {kDLInt, 8, 1}},
                                                          {Stored::int16, {kDLInt, 16, 1}},
                                                          {Stored::int32, {kDLInt, 32, 1}},
                                                          {Stored::int64, {kDLInt, 64, 1}},
                                                          {Stored::uint8, {kDLUInt, 8, 1}},
                                                          {Stored::uint16, {kDLUInt, 16, 1}},
                                                          {Stored::uint32, {kDLUInt, 32, 1}},
                                                          {Stored::float16, {kDLFloat, 16, 1}},
                                                          {Stored::bfloat16, {kDLBfloat, 16, 1}},
                                                          {Stored::float32, {kDLFloat, 32, 1}},
                                                          {Stored::float64, {kDLFloat, 64, 1}},
                                                          {Stored::uint64, {kDLUInt, 64, 1}},
                                                          {Stored::float8e4m3fn, {dlpack_e4m3fn, 8, 1}},
                                                          {Stored::float8e4m3fnuz, {dlpack_e4m3fnuz, 8, 1}},
                                                          {Stored::float8e5m2, {dlpack_e5m2, 8, 1}},
                                                          {Stored::float8e5m2fnuz, {dlpack_e5m2fnuz, 8, 1}},
                                                          {Stored::float8e8m0, {dlpack_e8m0fnu, 8, 1}},
                                                          {Stored::complex64, {kDLComplex, 64, 1}},
                                                          {Stored::complex128, {kDLComplex, 128, 1}}};

Stored stored_from(const DLDataType& type) {
  for (const auto& [stored, t] : dlpack_types)
    if (t.code == type.code && t.bits == type.bits && t.lanes == type.lanes) return stored;
  fail("load_dlpack",
       fmt::format("expected elements of bool, int8 to int64, uint8 to uint64, float16, bfloat16, float32, "
                   "float64, float8, complex64 or complex128, got code {} with {} bits in {} lanes",
                   type.code, type.bits, type.lanes));
}

DLDataType dlpack_type(Stored stored) {
  for (const auto& [s, type] : dlpack_types)
    if (s == stored) return type;
  throw InternalError("an element type that DLPack does not have");
}

/// The elements of a strided tensor, row-major.
template <std::size_t size>
void gather(const std::byte* from, const DLTensor& t, std::span<std::byte> to) {
  using Bytes = std::array<std::byte, size>;
  const std::vector<std::int64_t> shape(t.shape, t.shape + t.ndim);
  const TensorView<const Bytes> view(reinterpret_cast<const Bytes*>(from), shape,
                                     std::vector<std::int64_t>(t.strides, t.strides + t.ndim));
  for (std::size_t i = 0; i * size < to.size(); ++i)
    std::memcpy(to.data() + i * size, view.at_flat(static_cast<std::int64_t>(i)).data(), size);
}

DLTensor dlpack_tensor(const AnyView& view, std::vector<std::int64_t>& shape,
                       std::vector<std::int64_t>& strides) {
  DLTensor t{};
  t.data = const_cast<std::byte*>(view.data());  // DLPack has no word for const
  t.device = {kDLCPU, 0};
  t.ndim = static_cast<std::int32_t>(shape.size());
  t.dtype = dlpack_type(stored_as(view));
  t.shape = shape.data();
  t.strides = strides.data();
  return t;
}

}  // namespace
}  // namespace core::data

using namespace core::data;

AnyTensor load_dlpack(const DLTensor& t) {
  const std::string where = "load_dlpack";
  if (t.device.device_type != kDLCPU && t.device.device_type != kDLCUDAHost)
    fail(where, core::detail::not_on_cpu(t.device));
  if (t.ndim < 0) fail(where, fmt::format("expected a number of dimensions, got {}", t.ndim));
  const Layout layout{stored_from(t.dtype), {t.shape, t.shape + t.ndim}};
  const auto bytes = static_cast<std::size_t>(bytes_of(where, layout));
  if (bytes > 0 && t.data == nullptr)
    fail(where, "expected the elements of a tensor of shape " + shape_text(layout.shape) + ", got no memory");
  const std::byte* from = static_cast<const std::byte*>(t.data) + t.byte_offset;
  if (t.strides == nullptr || bytes == 0) return decode(where, layout, {from, bytes});
  std::vector<std::byte> gathered(bytes);
  switch (bits_of(layout.type)) {
    case 8:
      gather<1>(from, t, gathered);
      break;
    case 16:
      gather<2>(from, t, gathered);
      break;
    case 32:
      gather<4>(from, t, gathered);
      break;
    case 128:
      gather<16>(from, t, gathered);
      break;
    default:
      gather<8>(from, t, gathered);
      break;
  }
  return decode(where, layout, gathered);
}

AnyTensor load_dlpack(const DlpackVersioned& tensor) {
  core::detail::require_dlpack_version("load_dlpack", tensor);
  return load_dlpack(tensor.dl_tensor);
}

namespace {

/// A tensor in a struct of DLPack's that ends with it.
template <class Managed>
Managed* handed_over(AnyTensor tensor) {
  struct Holder {
    AnyTensor tensor;
    std::vector<std::int64_t> shape, strides;
    Managed managed{};
  };
  auto holder = std::make_unique<Holder>();
  holder->tensor = std::move(tensor);
  const AnyView view(holder->tensor);
  holder->shape = view.shape();
  holder->strides = view.strides();
  holder->managed.dl_tensor = dlpack_tensor(view, holder->shape, holder->strides);
  holder->managed.manager_ctx = holder.get();
  holder->managed.deleter = [](Managed* self) {
    std::unique_ptr<Holder>(static_cast<Holder*>(self->manager_ctx));
  };
  return &holder.release()->managed;
}

}  // namespace

DLManagedTensor* to_dlpack(AnyTensor tensor) { return handed_over<DLManagedTensor>(std::move(tensor)); }

DlpackVersioned* to_dlpack_versioned(AnyTensor tensor, std::uint64_t flags) {
  auto* managed = handed_over<DlpackVersioned>(std::move(tensor));
  managed->version = {1, 0};
  managed->flags = flags;
  return managed;
}

DlpackView::DlpackView(AnyView view)
    : view_(std::move(view)),
      shape_(view_.shape()),
      strides_(view_.strides()),
      tensor_(dlpack_tensor(view_, shape_, strides_)) {}

}  // namespace lantern
