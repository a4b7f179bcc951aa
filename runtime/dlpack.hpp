// Tensors to and from other libraries through DLPack (data in CPU memory, float or double).
#pragma once

#include <dlpack/dlpack.h>

#include <memory>

#include "lantern/runtime/tensor.hpp"

namespace lantern {

namespace core::detail {
template <class T>
inline constexpr DLDataType dlpack_type{kDLFloat, sizeof(T) * 8, 1};

/// What is wrong with a tensor that lies where the CPU does not read, and what to do.
inline std::string not_on_cpu(const DLDevice& device) {
  const bool cuda = device.device_type == kDLCUDA || device.device_type == kDLCUDAManaged;
  return std::string("expected a tensor in CPU memory, got one in ") + (cuda ? "CUDA's" : "that of another device") +
         " (device type " + std::to_string(static_cast<int>(device.device_type)) + "); copy it to the CPU first";
}
}  // namespace core::detail

#ifdef DLPACK_MAJOR_VERSION
using DlpackVersioned = ::DLManagedTensorVersioned;
#else
/// DLManagedTensorVersioned of DLPack 1.0 and later, for a header of an earlier one.
struct DlpackVersioned {
  struct {
    std::uint32_t major, minor;
  } version;
  void* manager_ctx;
  void (*deleter)(DlpackVersioned* self);
  std::uint64_t flags;
  DLTensor dl_tensor;
};
#endif
/// Bits of its flags: the memory may only be read; the memory is a copy made for the receiver.
inline constexpr std::uint64_t dlpack_read_only = 1, dlpack_is_copied = 2;

namespace core::detail {
/// Error: a version whose fields may lie elsewhere.
inline void require_dlpack_version(const char* where, const DlpackVersioned& t) {
  if (t.version.major != 1)
    throw Error(std::string(where) + ": expected a tensor of DLPack 1.x, got one of " + std::to_string(t.version.major) +
                "." + std::to_string(t.version.minor));
}
}  // namespace core::detail

/// A view of another library's tensor, which must outlive it. Error: another device or element type.
template <class T>
TensorView<T> from_dlpack(const DLTensor& t) {
  using Element = std::remove_const_t<T>;
  if (t.device.device_type != kDLCPU && t.device.device_type != kDLCUDAHost)
    throw Error("from_dlpack: " + core::detail::not_on_cpu(t.device));
  if (t.dtype.code != kDLFloat || t.dtype.bits != sizeof(Element) * 8 || t.dtype.lanes != 1)
    throw Error("from_dlpack: expected elements of " + std::to_string(sizeof(Element) * 8) +
                "-bit floating point, got code " + std::to_string(t.dtype.code) + " with " +
                std::to_string(t.dtype.bits) + " bits");
  auto* data = reinterpret_cast<T*>(static_cast<char*>(t.data) + t.byte_offset);
  std::vector<std::int64_t> shape(t.shape, t.shape + t.ndim);
  if (!t.strides) return TensorView<T>(data, std::move(shape));
  return TensorView<T>(data, std::move(shape), std::vector<std::int64_t>(t.strides, t.strides + t.ndim));
}

/// The same of DLPack 1.0 and later. Error: memory that may only be read, where T is not const.
template <class T>
TensorView<T> from_dlpack(const DlpackVersioned& t) {
  core::detail::require_dlpack_version("from_dlpack", t);
  if (!std::is_const_v<T> && (t.flags & dlpack_read_only) != 0)
    throw Error("from_dlpack: expected a tensor that may be written to, got one that may only be read; ask for a "
                "TensorView of const elements");
  return from_dlpack<T>(t.dl_tensor);
}

/// Hands a tensor over; the receiver calls the `deleter` of the result.
template <class T>
DLManagedTensor* to_dlpack(TensorValue<T> tensor) {
  static_assert(std::is_floating_point_v<T>, "to_dlpack: expected a TensorValue of float or double; of other elements "
                                             "an AnyTensor (runtime/data/dlpack.hpp)");
  struct Holder {
    TensorValue<T> tensor;
    DLManagedTensor managed{};
  };
  auto holder = std::make_unique<Holder>();
  holder->tensor = std::move(tensor);
  DLManagedTensor& m = holder->managed;
  m.dl_tensor.data = holder->tensor.data.data();
  m.dl_tensor.device = {kDLCPU, 0};
  m.dl_tensor.ndim = static_cast<int>(holder->tensor.shape.size());
  m.dl_tensor.dtype = core::detail::dlpack_type<T>;
  m.dl_tensor.shape = holder->tensor.shape.data();
  m.manager_ctx = holder.get();
  m.deleter = [](DLManagedTensor* self) { std::unique_ptr<Holder>(static_cast<Holder*>(self->manager_ctx)); };
  return &holder.release()->managed;
}

}  // namespace lantern
