// The GPU of this process by NVIDIA's driver, which is loaded when it is first needed: programs start without one.
// LANTERN_CUDA_DRIVER names another library with the driver's functions than libcuda.so.1.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "lantern/runtime/cuda/device.h"

namespace lantern::cuda_driver {

/// Empty where programs can run on a GPU here, else why they cannot: no driver, no GPU.
const std::string& missing();

/// The GPU in use: the one of the calling thread's current context, else device 0, or under mpirun the one of this rank's
/// number on its machine. Error where there is none.
struct Gpu {
  std::string name;  ///< "NVIDIA H100 80GB HBM3"
  int major = 0, minor = 0;  ///< its compute capability: kernels are compiled for sm_90, say
};
Gpu gpu();

/// Kernels that are loaded: machine code as NVRTC makes it.
class Module {
 public:
  /// Error where the driver refuses the code.
  explicit Module(const std::string& cubin);
  ~Module();
  Module(const Module&) = delete;
  Module& operator=(const Module&) = delete;
  void* handle() const { return module_; }

 private:
  void* module_ = nullptr;
};

/// What the host's part of a program calls by name: functions of the CUDA run time, over the driver; and
///
///   void* lantern_gpu_local(const void* program, size_t bytes)    memory of this thread, zero at first; for a null
///                                                                 program its lt_device, which all programs share
///   void lantern_gpu_fail(const char* message)                    the call of the program fails
///   void lantern_gpu_enter(lt_workspace* caller)                  whose call that is
///   int lantern_gpu_launch(void** function, void* module, const char* name, const unsigned* grid, const unsigned* block,
///                          size_t shared, void* stream, void** arguments)
std::vector<std::pair<const char*, void*>> host_functions();

/// The calling thread's GPU: its stream, and what its last call took.
lt_device& device_of_thread();

/// A call of a program, which may be one that repeats (graph_recorder.hpp): from its construction to `done`, or to its
/// end where the call fails. `key`: arguments and targets.
class RepeatedCall {
 public:
  RepeatedCall(const void* program, std::vector<std::int64_t> key, void* stream);
  ~RepeatedCall();
  RepeatedCall(const RepeatedCall&) = delete;
  RepeatedCall& operator=(const RepeatedCall&) = delete;
  /// What is still to be launched is. Error: the driver's.
  void done();
};
/// How many graphs the calling thread's last call has launched.
std::uint64_t graphs_of_last_call();

// Memory and streams, for those who keep tensors on the GPU. Each raises an Error with the driver's words.
void* allocate(std::int64_t bytes);
void release(void* memory) noexcept;
/// Between host and device, or within the device: queued on the stream. `to` and `from` say where they are.
void copy(void* to, const void* from, std::int64_t bytes, void* stream);
/// Waits, and raises what failed in a kernel of this thread's calls.
void wait(void* stream);
void* make_stream();
void end_stream(void* stream) noexcept;
/// Work queued on the later stream from now on comes behind what the earlier one has been given.
void follow(void* later, void* earlier);
/// The number of the calling thread's GPU.
int current_gpu();
/// Whether a pointer is memory of a GPU; which one.
bool on_device(const void* pointer, int* number = nullptr);

}  // namespace lantern::cuda_driver
