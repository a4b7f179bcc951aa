// libcuda through dlopen. The few declarations needed of its C interface are repeated here.
#include "lantern/runtime/cuda/driver.hpp"

#include <dlfcn.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <mutex>

#include "lantern/ir/error.hpp"
#include "lantern/runtime/cuda/graph_recorder.hpp"

namespace lantern::cuda_driver {

namespace {

using Status = int;  // CUresult; 0 is success
using Pointer = unsigned long long;

struct Driver {
  Status (*init)(unsigned);
  Status (*device_count)(int*);
  Status (*device_get)(int*, int);
  Status (*device_attribute)(int*, int attribute, int device);
  Status (*device_name)(char*, int, int);
  Status (*primary_retain)(void**, int device);
  Status (*current)(void**);
  Status (*set_current)(void*);
  Status (*current_device)(int*);
  Status (*allocate)(Pointer*, std::size_t);
  Status (*free)(Pointer);
  Status (*allocate_host)(void**, std::size_t);
  Status (*free_host)(void*);
  Status (*copy)(Pointer, Pointer, std::size_t);
  Status (*copy_async)(Pointer, Pointer, std::size_t, void*);
  Status (*fill)(Pointer, unsigned char, std::size_t);
  Status (*fill_async)(Pointer, unsigned char, std::size_t, void*);
  Status (*stream_create)(void**, unsigned);
  Status (*stream_destroy)(void*);
  Status (*stream_wait)(void*);
  Status (*stream_query)(void*);
  Status (*event_create)(void**, unsigned);
  Status (*event_record)(void*, void* stream);
  Status (*stream_follow)(void* stream, void* event, unsigned);
  Status (*event_destroy)(void*);
  Status (*wait)();
  Status (*set_limit)(int, std::size_t);
  Status (*get_limit)(std::size_t*, int);
  Status (*module_load)(void**, const void*);
  Status (*module_unload)(void*);
  Status (*module_function)(void**, void*, const char*);
  Status (*launch)(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void*, void**, void**);
  Status (*pointer_attribute)(void*, int attribute, Pointer);
  Status (*error_text)(Status, const char**);
  GraphFunctions graphs;  ///< of drivers that have them
  void* context = nullptr;  ///< the primary one of device 0, or of this rank of its machine: for threads that have none
  std::string missing;
};

constexpr int multiprocessors = 16, capability_major = 75, capability_minor = 76;  // CUdevice_attribute
constexpr int memory_type = 2, device_ordinal = 9;                                 // CUpointer_attribute

template <class Function>
bool find(void* library, const char* name, Function*& function) {
  function = reinterpret_cast<Function*>(::dlsym(library, name));
  return function != nullptr;
}

std::string words(const Driver& d, Status status) {
  const char* text = nullptr;
  if (d.error_text && d.error_text(status, &text) == 0 && text) return text;
  return "error " + std::to_string(status) + " of CUDA";
}

std::unique_ptr<const Driver> open() {
  auto d = std::make_unique<Driver>();
  const char* chosen = std::getenv("LANTERN_CUDA_DRIVER");
  void* library = ::dlopen(chosen && *chosen ? chosen : "libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    d->missing = "NVIDIA's driver (libcuda.so.1) was not found";
    return d;
  }
  const bool complete =
      find(library, "cuInit", d->init) && find(library, "cuDeviceGetCount", d->device_count) &&
      find(library, "cuDeviceGet", d->device_get) && find(library, "cuDeviceGetAttribute", d->device_attribute) &&
      find(library, "cuDeviceGetName", d->device_name) && find(library, "cuDevicePrimaryCtxRetain", d->primary_retain) &&
      find(library, "cuCtxGetCurrent", d->current) && find(library, "cuCtxSetCurrent", d->set_current) &&
      find(library, "cuCtxGetDevice", d->current_device) && find(library, "cuMemAlloc_v2", d->allocate) &&
      find(library, "cuMemFree_v2", d->free) && find(library, "cuMemAllocHost_v2", d->allocate_host) &&
      find(library, "cuMemFreeHost", d->free_host) && find(library, "cuMemcpy", d->copy) &&
      find(library, "cuMemcpyAsync", d->copy_async) && find(library, "cuMemsetD8_v2", d->fill) &&
      find(library, "cuMemsetD8Async", d->fill_async) && find(library, "cuStreamCreate", d->stream_create) &&
      find(library, "cuStreamDestroy_v2", d->stream_destroy) && find(library, "cuStreamSynchronize", d->stream_wait) && find(library, "cuStreamQuery", d->stream_query) &&
      find(library, "cuEventCreate", d->event_create) && find(library, "cuEventRecord", d->event_record) &&
      find(library, "cuStreamWaitEvent", d->stream_follow) && find(library, "cuEventDestroy_v2", d->event_destroy) &&
      find(library, "cuCtxSynchronize", d->wait) && find(library, "cuCtxSetLimit", d->set_limit) &&
      find(library, "cuCtxGetLimit", d->get_limit) &&
      find(library, "cuModuleLoadData", d->module_load) && find(library, "cuModuleUnload", d->module_unload) &&
      find(library, "cuModuleGetFunction", d->module_function) && find(library, "cuLaunchKernel", d->launch) &&
      find(library, "cuPointerGetAttribute", d->pointer_attribute) && find(library, "cuGetErrorString", d->error_text);
  const char* wanted = std::getenv("LANTERN_CUDA_GRAPHS");
  if (!wanted || std::string(wanted) != "0") {
    find(library, "cuStreamBeginCapture_v2", d->graphs.begin_capture);
    find(library, "cuStreamEndCapture", d->graphs.end_capture);
    find(library, "cuGraphInstantiateWithFlags", d->graphs.instantiate);
    find(library, "cuGraphLaunch", d->graphs.launch);
    find(library, "cuGraphDestroy", d->graphs.destroy_graph);
    find(library, "cuGraphExecDestroy", d->graphs.destroy_executable);
  }
  int count = 0, device = 0;
  if (!complete) {
    d->missing = "NVIDIA's driver (libcuda.so.1) is too old; version 12 or newer is needed";
  } else if (const Status status = d->init(0); status != 0) {
    d->missing = "NVIDIA's driver finds no GPU: " + words(*d, status);
  } else if (d->device_count(&count) != 0 || count == 0) {
    d->missing = "NVIDIA's driver finds no GPU";
  } else {
    // Ranks of one machine have a GPU each.
    const char* const rank = std::getenv("OMPI_COMM_WORLD_LOCAL_RANK");
    Status failed = d->device_get(&device, rank ? std::atoi(rank) % count : 0);
    if (failed == 0) failed = d->primary_retain(&d->context, device);
    if (failed != 0) d->missing = "the GPU cannot be used: " + words(*d, failed);
  }
  return d;
}

const Driver& loaded() {
  static const std::unique_ptr<const Driver> driver = open();
  return *driver;
}

/// The driver, with a context for this thread. Error where there is no GPU.
const Driver& driver() {
  const Driver& d = loaded();
  if (!d.missing.empty()) throw Error("calling a CUDA function needs a GPU, and there is none: " + d.missing);
  void* context = nullptr;
  if (d.current(&context) == 0 && context == nullptr) d.set_current(d.context);
  return d;
}

/// For those who give memory back: whether the driver works, in this thread too.
bool has_context(const Driver& d) noexcept {
  void* context = nullptr;
  if (!d.missing.empty() || d.current(&context) != 0) return false;
  return context != nullptr || d.set_current(d.context) == 0;
}

void check(const Driver& d, Status status, const char* what) {
  if (status != 0) throw Error(std::string(what) + ": " + words(d, status));
}

/// Modules that have been unloaded: another program may lie where one of theirs lay.
std::atomic<std::int64_t> unloaded = 0;

Pointer address(const void* p) { return reinterpret_cast<Pointer>(p); }

/// Memory for calls of programs in this thread. What lies on the GPU is given back with the thread.
class Local {
 public:
  Local() { device.skip = skip; }
  Local(const Local&) = delete;
  Local& operator=(const Local&) = delete;
  ~Local() {
    for (auto& [program, memory] : programs) std::free(memory);
    const Driver& d = loaded();
    void* context = nullptr;
    // When the process ends the driver may have ended before: then all memory is free.
    if (!d.missing.empty() || d.current(&context) != 0 || context == nullptr) return;
    graphs.clear();
    for (lt_device_chunk* chunk = device.first; chunk != nullptr;) {
      lt_device_chunk* next = chunk->next;
      d.free(address(chunk->data));
      std::free(chunk);
      chunk = next;
    }
    for (std::int64_t i = 0; i < device.tape_count; ++i)
      if (device.tapes[i].data) d.free(address(device.tapes[i].data));
    std::free(device.tapes);
    for (lt_device_piece* pieces : {device.unused, device.spare})
      for (lt_device_piece* piece = pieces; piece != nullptr;) {
        lt_device_piece* next = piece->next;
        std::free(piece);
        piece = next;
      }
    if (lt_blas* blas = device.blas) {
      blas->destroy(blas->handle);
      d.free(address(blas->room));
      std::free(blas);
    }
    if (lt_dnn* dnn = device.dnn) {
      for (lt_dnn_plan* plan = dnn->plans; plan != nullptr;) {
        for (int i = plan->count; i-- > 0;) dnn->drop(plan->descriptors[i]);
        lt_dnn_plan* next = plan->next;
        std::free(plan);
        plan = next;
      }
      dnn->destroy(dnn->handle);
      d.free(address(dnn->room));
      std::free(dnn);
    }
    if (device.control) d.free(address(device.control));
    if (device.staging) d.free_host(device.staging);
  }

  static int skip();

  lt_device device = {};
  GraphRecorder graphs;
  std::map<const void*, void*> programs;
  lt_workspace* caller = nullptr;
  Status last = 0;  ///< of a launch
};

Local& local() {
  thread_local Local memory;
  return memory;
}

/// Whether a graph holds what is about to be queued.
int Local::skip() { return local().graphs.skip() ? 1 : 0; }

/// Before what no graph holds.
void end_graph() {
  Local& l = local();
  if (const Status status = l.graphs.flush(); status != 0) l.last = status;
}

/// Memory that a graph may copy: the device's, and what the host has pinned. Other memory the caller may change as
/// soon as the call has returned.
bool stays(const Driver& d, const void* pointer) {
  int type = 0;
  return d.pointer_attribute(&type, memory_type, address(pointer)) == 0 && (type == 1 || type == 2);
}

// ---- the functions of the CUDA run time that generated text calls, over the driver

extern "C" {

static Status shim_malloc(void** memory, std::size_t bytes) {
  Pointer p = 0;
  *memory = nullptr;
  if (bytes == 0) return 0;
  end_graph();
  const Status status = loaded().allocate(&p, bytes);
  *memory = reinterpret_cast<void*>(p);
  return status;
}
static Status shim_free(void* memory) {
  end_graph();
  return memory ? loaded().free(address(memory)) : 0;
}
static Status shim_malloc_host(void** memory, std::size_t bytes) {
  end_graph();
  return loaded().allocate_host(memory, bytes);
}
static Status shim_copy(void* to, const void* from, std::size_t bytes, int) {
  end_graph();
  return loaded().copy(address(to), address(from), bytes);
}
static Status shim_copy_async(void* to, const void* from, std::size_t bytes, int, void* stream) {
  if (local().graphs.capturing() && (!stays(loaded(), to) || !stays(loaded(), from))) end_graph();
  if (local().graphs.skip()) return 0;
  return loaded().copy_async(address(to), address(from), bytes, stream);
}
static Status shim_fill(void* to, int byte, std::size_t bytes) {
  end_graph();
  return loaded().fill(address(to), static_cast<unsigned char>(byte), bytes);
}
static Status shim_fill_async(void* to, int byte, std::size_t bytes, void* stream) {
  if (local().graphs.skip()) return 0;
  return loaded().fill_async(address(to), static_cast<unsigned char>(byte), bytes, stream);
}
static Status shim_stream_wait(void* stream) {
  end_graph();
  return loaded().stream_wait(stream);
}
static Status shim_stream_query(void* stream) {
  end_graph();
  return loaded().stream_query(stream);
}
static Status shim_wait() {
  end_graph();
  return loaded().wait();
}
static Status shim_limit(int limit, std::size_t value) {
  end_graph();
  return loaded().set_limit(limit, value);
}
static Status shim_get_limit(std::size_t* value, int limit) { return loaded().get_limit(value, limit); }
static Status shim_peek() { return local().last; }
static Status shim_last() { return std::exchange(local().last, 0); }
static const char* shim_words(Status status) {
  const char* text = nullptr;
  return loaded().error_text(status, &text) == 0 && text ? text : "an unknown error of CUDA";
}
static Status shim_device(int* number) { return loaded().current_device(number); }
static Status shim_attribute(int* value, int attribute, int number) {
  return loaded().device_attribute(value, attribute, number);
}
struct Properties {
  char name[256];
};
static Status shim_properties(Properties* of, int number) { return loaded().device_name(of->name, sizeof of->name, number); }
struct Place {
  int type;
};
static Status shim_place(Place* place, const void* pointer) {
  int type = 0;
  const Status status = loaded().pointer_attribute(&type, memory_type, address(pointer));
  place->type = status == 0 && (type == 1 || type == 2) ? type : 0;  // host memory that is pinned; the device's, or managed
  return 0;
}

static void* lantern_gpu_local(const void* program, std::size_t bytes) {
  Local& l = local();
  if (program == nullptr) return &l.device;
  void*& memory = l.programs[program];
  if (memory == nullptr) memory = std::calloc(1, bytes);
  if (memory == nullptr) std::abort();
  return memory;
}
static void lantern_gpu_fail(const char* message) {
  lt_workspace* caller = local().caller;
  caller->fail(caller, message);
  std::abort();
}
static void lantern_gpu_enter(lt_workspace* caller) {
  local().caller = caller;
  const Driver& d = loaded();
  if (!d.missing.empty()) lantern_gpu_fail(d.missing.c_str());
  void* context = nullptr;
  if (d.current(&context) == 0 && context == nullptr) d.set_current(d.context);
}
static Status lantern_gpu_launch(void** function, void* module, const char* name, const unsigned* grid, const unsigned* block,
                                 std::size_t shared, void* stream, void** arguments) {
  const Driver& d = loaded();
  Status status = 0;
  if (*function == nullptr) status = d.module_function(function, module, name);
  if (status == 0 && !local().graphs.skip())
    status = d.launch(*function, grid[0], grid[1], grid[2], block[0], block[1], block[2], static_cast<unsigned>(shared),
                      stream, arguments, nullptr);
  if (status != 0) local().last = status;
  return status;
}

}  // extern "C"

}  // namespace

const std::string& missing() { return loaded().missing; }

Gpu gpu() {
  const Driver& d = driver();
  Gpu found;
  char name[256] = {};
  int device = 0;
  check(d, d.current_device(&device), "the GPU");
  check(d, d.device_name(name, sizeof name, device), "the GPU");
  check(d, d.device_attribute(&found.major, capability_major, device), "the GPU");
  check(d, d.device_attribute(&found.minor, capability_minor, device), "the GPU");
  found.name = name;
  return found;
}

Module::Module(const std::string& cubin) {
  const Driver& d = driver();
  check(d, d.module_load(&module_, cubin.c_str()), "the GPU's driver does not accept the kernels");
}

Module::~Module() {
  ++unloaded;
  if (has_context(loaded())) loaded().module_unload(module_);
}

std::vector<std::pair<const char*, void*>> host_functions() {
  const auto entry = [](const char* name, auto* function) {
    return std::pair<const char*, void*>(name, reinterpret_cast<void*>(function));
  };
  return {entry("cudaMalloc", shim_malloc),
          entry("cudaFree", shim_free),
          entry("cudaMallocHost", shim_malloc_host),
          entry("cudaMemcpy", shim_copy),
          entry("cudaMemcpyAsync", shim_copy_async),
          entry("cudaMemset", shim_fill),
          entry("cudaMemsetAsync", shim_fill_async),
          entry("cudaStreamSynchronize", shim_stream_wait),
          entry("cudaStreamQuery", shim_stream_query),
          entry("cudaDeviceSynchronize", shim_wait),
          entry("cudaDeviceSetLimit", shim_limit),
          entry("cudaDeviceGetLimit", shim_get_limit),
          entry("cudaPeekAtLastError", shim_peek),
          entry("cudaGetLastError", shim_last),
          entry("cudaGetErrorString", shim_words),
          entry("cudaGetDevice", shim_device),
          entry("cudaDeviceGetAttribute", shim_attribute),
          entry("cudaGetDeviceProperties", shim_properties),
          entry("cudaPointerGetAttributes", shim_place),
          entry("lantern_gpu_local", lantern_gpu_local),
          entry("lantern_gpu_fail", lantern_gpu_fail),
          entry("lantern_gpu_enter", lantern_gpu_enter),
          entry("lantern_gpu_launch", lantern_gpu_launch)};
}

lt_device& device_of_thread() { return local().device; }

std::uint64_t graphs_of_last_call() { return local().graphs.launched(); }

RepeatedCall::RepeatedCall(const void* program, std::vector<std::int64_t> key, void* stream) {
  Local& l = local();
  key.push_back(static_cast<std::int64_t>(l.device.allocations));  // memory lies where it lay
  key.push_back(unloaded);
  if (loaded().missing.empty()) {
    driver();
    l.graphs.enter(loaded().graphs, program, key, stream);
  }
}

void RepeatedCall::done() {
  const Status status = local().graphs.flush();
  if (status != 0) check(loaded(), status, "a graph of kernels");
}

RepeatedCall::~RepeatedCall() { local().graphs.abandon(); }

void* allocate(std::int64_t bytes) {
  if (bytes <= 0) return nullptr;
  const Driver& d = driver();
  Pointer p = 0;
  check(d, d.allocate(&p, static_cast<std::size_t>(bytes)), "memory of the GPU");
  return reinterpret_cast<void*>(p);
}

void release(void* memory) noexcept {
  if (memory && has_context(loaded())) loaded().free(address(memory));
}

void copy(void* to, const void* from, std::int64_t bytes, void* stream) {
  if (bytes <= 0) return;
  const Driver& d = driver();
  check(d, d.copy_async(address(to), address(from), static_cast<std::size_t>(bytes), stream), "a copy to or from the GPU");
}

/// What failed first in a kernel of this thread's calls since the last look; empty where nothing did.
std::string failure(const Driver& d, void* stream) {
  lt_device& device = local().device;
  unsigned long long iteration = ~0ULL;
  char message[sizeof(lt_failure::message)] = {};
  if (!device.checked || device.control == nullptr) return {};
  check(d, d.copy(address(&iteration), address(device.control), sizeof iteration), "the GPU");
  if (iteration == ~0ULL) return {};
  check(d, d.copy(address(message), address(&device.control->failure.message), sizeof message), "the GPU");
  check(d, d.fill_async(address(device.control), 0xff, sizeof iteration, stream), "the GPU");
  check(d, d.fill_async(address(&device.control->ended), 0, sizeof device.control->ended, stream), "the GPU");  // failed threads did not end
  return message;
}

void wait(void* stream) {
  const Driver& d = driver();
  check(d, d.stream_wait(stream), "the GPU");
  if (const std::string failed = failure(d, stream); !failed.empty()) throw Error(failed);
}

void* make_stream() {
  const Driver& d = driver();
  void* stream = nullptr;
  check(d, d.stream_create(&stream, 0), "a stream");
  return stream;
}

void end_stream(void* stream) noexcept {
  if (stream && has_context(loaded())) loaded().stream_destroy(stream);
}

void follow(void* later, void* earlier) {
  const Driver& d = driver();
  constexpr unsigned without_times = 2;  // CU_EVENT_DISABLE_TIMING
  void* event = nullptr;
  check(d, d.event_create(&event, without_times), "an event");
  Status status = d.event_record(event, earlier);
  if (status == 0) status = d.stream_follow(later, event, 0);
  d.event_destroy(event);
  check(d, status, "streams that follow each other");
}

int current_gpu() {
  const Driver& d = driver();
  int number = 0;
  check(d, d.current_device(&number), "the GPU");
  return number;
}

bool on_device(const void* pointer, int* number) {
  const Driver& d = loaded();
  int type = 0;
  if (!d.missing.empty()) return false;
  driver();
  if (d.pointer_attribute(&type, memory_type, address(pointer)) != 0 || type != 2) return false;
  if (number) d.pointer_attribute(number, device_ordinal, address(pointer));
  return true;
}

}  // namespace lantern::cuda_driver
