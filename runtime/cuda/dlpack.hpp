// Tensors in the memory of a GPU to and from other libraries through DLPack, on the streams of both.
#pragma once

#include <utility>

#include "lantern/runtime/cuda/device_tensor.hpp"
#include "lantern/runtime/dlpack.hpp"

namespace lantern::cuda {

namespace detail {
/// As DLPack has it: the kind of number, and its bits. (kDLBool, 6, came with DLPack 0.8.)
template <class T>
constexpr DLDataType dlpack_type() {
  constexpr std::uint8_t boolean = 6;
  const auto code = std::is_same_v<T, bool> ? boolean : static_cast<std::uint8_t>(std::is_floating_point_v<T> ? kDLFloat : kDLInt);
  return {code, static_cast<std::uint8_t>(8 * sizeof(T)), 1};
}

/// Raises where the tensor is not one that a call here can use.
template <class T>
void require_dlpack(const DLTensor& t) {
  const std::string who = "from_dlpack: ";
  if (t.device.device_type != kDLCUDA && t.device.device_type != kDLCUDAManaged)
    throw Error(who + "expected a tensor in CUDA's memory, got one of device type " +
                std::to_string(static_cast<int>(t.device.device_type)) +
                (t.device.device_type == kDLCPU ? " (CPU); use lantern::from_dlpack, or copy it to the GPU" : ""));
  if (const int here = cuda_driver::current_gpu(); t.device.device_id != here)
    throw Error(who + "expected a tensor on GPU " + std::to_string(here) + ", got one on GPU " +
                std::to_string(t.device.device_id) + "; copy it, or make that GPU the thread's current one");
  constexpr DLDataType type = dlpack_type<std::remove_const_t<T>>();
  if (t.dtype.code != type.code || t.dtype.bits != type.bits || t.dtype.lanes != 1)
    throw Error(who + "expected elements of code " + std::to_string(type.code) + " with " + std::to_string(type.bits) +
                " bits, got code " + std::to_string(t.dtype.code) + " with " + std::to_string(t.dtype.bits) + " bits");
  std::int64_t elements = 1;
  bool contiguous = true;
  for (int d = t.ndim; d-- > 0;) {
    if (t.strides && t.shape[d] > 1) contiguous &= t.strides[d] == elements;
    elements *= t.shape[d];
  }
  if (!contiguous && elements > 0) throw Error(who + "expected contiguous elements, got strides; copy the tensor first");
  const void* const data = static_cast<const char*>(t.data) + t.byte_offset;
  if (elements > 0 && !cuda_driver::on_device(data))
    throw Error(who + "the tensor's memory is not the GPU's: it has been freed, or its device is told wrongly");
}
}  // namespace detail

/// A view of another library's tensor, which must outlive it. What has made it must be done, or be waited for:
/// Stream::follow. Errors: not in CUDA's memory, another GPU, another element type, strides, memory that is freed.
template <class T>
DeviceView<T> from_dlpack(const DLTensor& t) {
  detail::require_dlpack<T>(t);
  return {reinterpret_cast<T*>(static_cast<char*>(t.data) + t.byte_offset),
          std::vector<std::int64_t>(t.shape, t.shape + t.ndim)};
}
/// The same of DLPack 1.0 and later. Error: memory that may only be read, where T is not const.
template <class T>
DeviceView<T> from_dlpack(const DlpackVersioned& t) {
  core::detail::require_dlpack_version("from_dlpack", t);
  if (!std::is_const_v<T> && (t.flags & dlpack_read_only) != 0)
    throw Error("from_dlpack: expected a tensor that may be written to, got one that may only be read; ask for a "
                "DeviceView of const elements");
  return from_dlpack<T>(t.dl_tensor);
}

namespace detail {
/// Makes what `made_on` was given come before what the consumer queues. `consumer` is a stream as DLPack's array API
/// numbers them: 1 CUDA's default stream, 2 that of the thread, -1 no order wanted, else a cudaStream_t.
inline void hand_over(const Stream& made_on, std::intptr_t consumer) {
  if (consumer == -1) return;
  if (consumer == 0)
    throw Error("to_dlpack: expected the consumer's stream (1 for CUDA's default one, -1 for none), got 0, which DLPack "
                "leaves open");
  cuda_driver::follow(reinterpret_cast<void*>(consumer), made_on.get());  // 1 and 2 are CUDA's own handles
}

template <class T, class Managed>
Managed* managed(DeviceTensor<T> tensor) {
  struct Holder {
    DeviceTensor<T> tensor;
    std::vector<std::int64_t> shape;
    Managed managed{};
  };
  auto holder = std::make_unique<Holder>();
  holder->shape = tensor.shape();
  holder->tensor = std::move(tensor);
  Managed& m = holder->managed;
  m.dl_tensor.data = holder->tensor.data();
  m.dl_tensor.device = {kDLCUDA, cuda_driver::current_gpu()};
  m.dl_tensor.ndim = static_cast<int>(holder->shape.size());
  m.dl_tensor.dtype = dlpack_type<T>();
  m.dl_tensor.shape = holder->shape.data();
  m.manager_ctx = holder.get();
  m.deleter = [](Managed* self) { std::unique_ptr<Holder>(static_cast<Holder*>(self->manager_ctx)); };
  return &holder.release()->managed;
}
}  // namespace detail

/// Hands a tensor over; the receiver calls the `deleter` of the result. `made_on`: the stream of the calls that make
/// it. `consumer`: where the receiver will use it, by DLPack's numbers. Error: no such stream.
template <class T>
DLManagedTensor* to_dlpack(DeviceTensor<T> tensor, const Stream& made_on, std::intptr_t consumer) {
  detail::hand_over(made_on, consumer);
  return detail::managed<T, DLManagedTensor>(std::move(tensor));
}
/// The same for a receiver of DLPack 1.0 and later.
template <class T>
DlpackVersioned* to_dlpack_versioned(DeviceTensor<T> tensor, const Stream& made_on, std::intptr_t consumer) {
  detail::hand_over(made_on, consumer);
  DlpackVersioned* const m = detail::managed<T, DlpackVersioned>(std::move(tensor));
  m->version.major = 1;
  m->version.minor = 0;
  return m;
}

}  // namespace lantern::cuda
