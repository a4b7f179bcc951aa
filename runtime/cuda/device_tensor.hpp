// Tensors in the memory of a GPU, and streams of work.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "lantern/ir/error.hpp"
#include "lantern/runtime/cuda/driver.hpp"
#include "lantern/runtime/tensor.hpp"

namespace lantern::cuda {

/// Work that a GPU does in order. Different streams may run at the same time. The default one is CUDA's own.
class Stream {
 public:
  /// A stream of its own. Error: no GPU.
  Stream() : stream_(cuda_driver::make_stream(), cuda_driver::end_stream) {}
  /// Another program's stream, a cudaStream_t, which must outlive this one.
  explicit Stream(void* stream) : stream_(stream, [](void*) {}) {}
  /// CUDA's default stream.
  static Stream standard() { return Stream(nullptr); }

  void* get() const { return stream_.get(); }
  /// Waits until all that was queued is done. Error: what failed in a kernel of this thread's calls.
  void wait() const { cuda_driver::wait(get()); }
  /// What is queued here from now on comes behind what the other stream has been given. Error: no such stream.
  void follow(const Stream& other) const { cuda_driver::follow(get(), other.get()); }

 private:
  std::shared_ptr<void> stream_;
};

/// Elements in the memory of a GPU that somebody else owns, row-major.
template <class T>
class DeviceView {
 public:
  DeviceView(T* data, std::vector<std::int64_t> shape) : data_(data), shape_(std::move(shape)) {}
  template <class U>
    requires(std::is_same_v<const U, T>)
  DeviceView(const DeviceView<U>& o) : DeviceView(o.data(), o.shape()) {}

  T* data() const { return data_; }
  const std::vector<std::int64_t>& shape() const { return shape_; }
  std::int64_t size() const {
    std::int64_t n = 1;
    for (const std::int64_t d : shape_) n *= d;
    return n;
  }

 private:
  T* data_;
  std::vector<std::int64_t> shape_;
};

/// A tensor in the memory of a GPU, row-major. It owns its memory, and can be moved but not copied.
template <class T>
class DeviceTensor {
 public:
  using value_type = T;
  /// Without elements.
  DeviceTensor() = default;
  /// Of this shape; the elements have no value yet. Errors: no GPU, no memory.
  explicit DeviceTensor(std::vector<std::int64_t> shape) : shape_(std::move(shape)) {
    if (!core::addressable(shape_)) throw Error("DeviceTensor: expected sizes of 0 or more that memory can hold");
    memory_.reset(static_cast<T*>(cuda_driver::allocate(size() * static_cast<std::int64_t>(sizeof(T)))));
  }
  DeviceTensor(DeviceTensor&& o) noexcept : memory_(std::move(o.memory_)), shape_(std::move(o.shape_)) {
    o.shape_ = {0};
  }
  DeviceTensor& operator=(DeviceTensor&& o) noexcept {
    memory_ = std::move(o.memory_);
    shape_ = std::move(o.shape_);
    o.shape_ = {0};
    return *this;
  }

  T* data() const { return memory_.get(); }
  const std::vector<std::int64_t>& shape() const { return shape_; }
  std::int64_t size() const {
    std::int64_t n = 1;
    for (const std::int64_t d : shape_) n *= d;
    return n;
  }
  operator DeviceView<T>() const { return {data(), shape_}; }
  operator DeviceView<const T>() const { return {data(), shape_}; }

 private:
  struct Release {
    void operator()(T* p) const { cuda_driver::release(p); }
  };
  std::unique_ptr<T, Release> memory_;
  std::vector<std::int64_t> shape_ = {0};
};

/// A copy on the GPU. Errors: no GPU, no memory.
template <class T>
DeviceTensor<T> to_device(const TensorValue<T>& host, const Stream& stream = Stream::standard()) {
  DeviceTensor<T> there(host.shape);
  cuda_driver::copy(there.data(), host.data.data(), there.size() * static_cast<std::int64_t>(sizeof(T)), stream.get());
  return there;
}
/// An array is a tensor of one dimension.
template <class T>
DeviceTensor<T> to_device(const std::vector<T>& host, const Stream& stream = Stream::standard()) {
  DeviceTensor<T> there({static_cast<std::int64_t>(host.size())});
  cuda_driver::copy(there.data(), host.data(), there.size() * static_cast<std::int64_t>(sizeof(T)), stream.get());
  return there;
}

/// A copy in the host's memory, once the stream has done what it was given.
template <class T>
TensorValue<T> to_host(const DeviceView<const T>& there, const Stream& stream = Stream::standard()) {
  TensorValue<T> host(there.shape());
  cuda_driver::copy(host.data.data(), there.data(), there.size() * static_cast<std::int64_t>(sizeof(T)), stream.get());
  stream.wait();
  return host;
}
template <class T>
TensorValue<T> to_host(const DeviceTensor<T>& there, const Stream& stream = Stream::standard()) {
  return to_host(DeviceView<const T>(there), stream);
}

/// Whether programs can run on a GPU here.
inline bool available() { return cuda_driver::missing().empty(); }
/// Why they cannot; empty where they can.
inline const std::string& missing() { return cuda_driver::missing(); }
/// "NVIDIA H100 80GB HBM3". Error: no GPU.
inline std::string device_name() { return cuda_driver::gpu().name; }

/// What the last call of this thread took beside its arithmetic.
struct LastCall {
  std::uint64_t launches = 0;  ///< kernels and products
  std::uint64_t waits = 0;     ///< how often the host waited for the GPU
  std::uint64_t graphs = 0;    ///< that were launched in place of kernels: the kernels in them are counted, too
};
inline LastCall last_call() {
  const lt_device& d = cuda_driver::device_of_thread();
  return {d.launches, d.waits, cuda_driver::graphs_of_last_call()};
}
/// How often calls of this thread have allocated memory of the GPU: no more from the second call of a kind on.
inline std::uint64_t allocations() { return cuda_driver::device_of_thread().allocations; }

}  // namespace lantern::cuda
