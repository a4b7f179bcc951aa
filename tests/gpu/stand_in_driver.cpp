// libcuda for machines without a GPU: a module is a source, which the launch emulator runs. What programs ask of the
// driver goes the way that it goes on a GPU, but for the machine code; memory of the device is memory of its own that
// the host cannot touch but by copies.
#include <sys/mman.h>

#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <regex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "lantern/codegen/toolchain/emulate.hpp"

namespace {

using lantern::codegen::LoadedCode;
using Pointer = unsigned long long;

struct Graph {
  std::vector<std::function<int()>> operations;
};
struct Stream {
  std::unique_ptr<Graph> captured;
  std::deque<std::function<int()>> waiting;  ///< work that is given to it, from the first that is not done
};
struct Function {
  int (*launch)(const unsigned*, const unsigned*, std::size_t, void**);
  void* (*hold)(const unsigned*, const unsigned*, std::size_t, void**);
  int (*launch_held)(void*);
};
struct Module {
  std::unique_ptr<LoadedCode> code;
};
struct Memory {
  std::size_t bytes;
};

std::mutex mutex;
std::map<char*, Memory> memories;  ///< of the device
std::map<char*, std::size_t> pinned;       ///< memory of the host
std::map<std::pair<void*, std::string>, Function> functions;
bool failing = false;
int capturing = 0, graph_launches = 0;
constexpr int in_capture = 900;  // CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED

constexpr int not_ready = 600;  // of an operation that waits for another process
Stream default_stream;
std::set<void*> streams;
Stream& stream_of(void* stream) {
  return reinterpret_cast<std::uintptr_t>(stream) <= 2 ? default_stream : *static_cast<Stream*>(stream);
}

/// Does what a stream was given, up to what is not ready.
int progress(Stream& s) {
  while (!s.waiting.empty()) {
    const int status = s.waiting.front()();
    if (status == not_ready) return not_ready;
    s.waiting.pop_front();
    if (status != 0) return status;
  }
  return 0;
}
int drain(Stream& s) {
  int status = progress(s);
  for (; status == not_ready; status = progress(s)) std::this_thread::yield();
  return status;
}
int drain_all() {
  int status = drain(default_stream);
  for (void* s : streams)
    if (const int one = drain(*static_cast<Stream*>(s)); status == 0) status = one;
  return status;
}

/// Captures, or queues and does what can be done.
int queue(void* stream, std::function<int()> operation) {
  Stream& s = stream_of(stream);
  if (s.captured) {
    s.captured->operations.push_back(std::move(operation));
    return 0;
  }
  int status = progress(s);
  if (status == 0) status = operation();
  if (status == not_ready) s.waiting.push_back(std::move(operation));
  return status == not_ready ? 0 : status;
}

std::map<char*, int> elsewhere;  ///< memory of other GPUs
bool known(void* stream) { return reinterpret_cast<std::uintptr_t>(stream) <= 2 || streams.contains(stream); }
int followed = 0;

std::size_t pages(std::size_t bytes) { return (bytes + 4095) / 4096 * 4096; }

void protect(int what) {
  for (auto& [data, memory] : memories) mprotect(data, pages(memory.bytes), what);
}

bool owned(Pointer p, std::size_t bytes) {
  char* const at = reinterpret_cast<char*>(p);
  auto it = memories.upper_bound(at);
  if (it == memories.begin()) return false;
  --it;
  return at + bytes <= it->first + it->second.bytes;
}

/// One function for each kernel, which takes the arguments as the driver does.
std::string wrappers(const std::string& text) {
  static const std::regex start(R"((?:LT_KERNEL|extern "C" __global__)\s+void\s+(?:__launch_bounds__\(\d+\)\s+)?(\w+)\()");
  std::string all = R"cpp(
static void lt_fail(lt_workspace*, const char*) { abort(); }
static void* lt_resize(void*, unsigned long) { return 0; }
template <class... P, size_t... I>
static void stand_in_call(void (*kernel)(P...), const unsigned* g, const unsigned* b, size_t shared, void** a, std::index_sequence<I...>) {
  lantern_emulator::configure(dim3(g[0], g[1], g[2]), dim3(b[0], b[1], b[2]), shared)(kernel, *(std::decay_t<P>*)a[I]...);
}
template <class... P>
struct stand_in_held {
  dim3 grid, block;
  size_t shared;
  void (*kernel)(P...);
  std::tuple<std::decay_t<P>...> values;
};
template <class... P, size_t... I>
static void* stand_in_hold_all(void (*kernel)(P...), const unsigned* g, const unsigned* b, size_t shared, void** a, std::index_sequence<I...>) {
  return new stand_in_held<P...>{dim3(g[0], g[1], g[2]), dim3(b[0], b[1], b[2]), shared, kernel, {*(std::decay_t<P>*)a[I]...}};
}
template <class... P>
static void* stand_in_hold(void (*kernel)(P...), const unsigned* g, const unsigned* b, size_t shared, void** a) {
  return stand_in_hold_all(kernel, g, b, shared, a, std::index_sequence_for<P...>());
}
template <class... P>
static int stand_in_launch_held(void (*)(P...), void* held) {
  const auto* h = (const stand_in_held<P...>*)held;
  std::apply([&](auto... v) { lantern_emulator::configure(h->grid, h->block, h->shared)(h->kernel, v...); }, h->values);
  return cudaGetLastError();
}
template <class... P>
static int stand_in_launch(void (*kernel)(P...), const unsigned* g, const unsigned* b, size_t shared, void** a) {
  stand_in_call(kernel, g, b, shared, a, std::index_sequence_for<P...>());
  return cudaGetLastError();
}
)cpp";
  if (text.find("static void lt_fail(") == std::string::npos) all.erase(0, all.find("template"));
  for (std::sregex_iterator it(text.begin(), text.end(), start), end; it != end; ++it) {
    const std::string name = (*it)[1];
    all += "extern \"C\" int stand_in_" + name + "(const unsigned* g, const unsigned* b, size_t shared, void** a) {\n  return stand_in_launch(" +
           name + ", g, b, shared, a);\n}\nextern \"C\" void* stand_in_hold_" + name +
           "(const unsigned* g, const unsigned* b, size_t shared, void** a) {\n  return stand_in_hold(" + name +
           ", g, b, shared, a);\n}\nextern \"C\" int stand_in_launch_held_" + name +
           "(void* held) { return stand_in_launch_held(" + name + ", held); }\n";
  }
  return all;
}

}  // namespace

extern "C" {

int cuInit(unsigned) { return 0; }
int cuDeviceGetCount(int* n) { return *n = 1, 0; }
int cuDeviceGet(int* d, int) { return *d = 0, 0; }
int cuDeviceGetAttribute(int* value, int what, int) { return *value = what == 16 ? 2 : what == 75 ? 9 : 0, 0; }
int cuDeviceGetName(char* to, int, int) { return std::strcpy(to, "stand-in"), 0; }
int cuDevicePrimaryCtxRetain(void** c, int) {
  static int context;
  return *c = &context, 0;
}
static thread_local void* current = nullptr;
int cuCtxGetCurrent(void** c) { return *c = current, 0; }
int cuCtxSetCurrent(void* c) { return current = c, 0; }
int cuCtxGetDevice(int* d) { return *d = 0, 0; }
int cuMemAlloc_v2(Pointer* p, std::size_t bytes) {
  const std::lock_guard lock(mutex);
  if (capturing) return in_capture;
  if (bytes > std::size_t{1} << 40) return 2;
  void* m = mmap(nullptr, pages(bytes), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (m == MAP_FAILED) return 2;
  memories[static_cast<char*>(m)] = {bytes};
  *p = reinterpret_cast<Pointer>(m);
  return 0;
}
int cuMemFree_v2(Pointer p) {
  drain_all();
  const std::lock_guard lock(mutex);
  const auto it = memories.find(reinterpret_cast<char*>(p));
  if (it == memories.end()) return 1;
  munmap(it->first, pages(it->second.bytes));
  memories.erase(it);
  return 0;
}
int cuMemAllocHost_v2(void** p, std::size_t bytes) {
  if (capturing) return in_capture;
  *p = std::calloc(1, bytes);
  pinned[static_cast<char*>(*p)] = bytes;
  return 0;
}
int cuMemFreeHost(void* p) { return pinned.erase(static_cast<char*>(p)), std::free(p), 0; }
static bool stays(Pointer p) {
  const std::lock_guard lock(mutex);
  const auto at = pinned.upper_bound(reinterpret_cast<char*>(p));
  return owned(p, 1) || (at != pinned.begin() && reinterpret_cast<char*>(p) < std::prev(at)->first + std::prev(at)->second);
}
static int copy_now(Pointer to, Pointer from, std::size_t bytes) {
  const std::lock_guard lock(mutex);
  protect(PROT_READ | PROT_WRITE);
  std::memmove(reinterpret_cast<void*>(to), reinterpret_cast<void*>(from), bytes);
  protect(PROT_NONE);
  return 0;
}
int cuMemcpy(Pointer to, Pointer from, std::size_t bytes) {
  if (capturing) return in_capture;
  const int status = drain_all();
  return status != 0 ? status : copy_now(to, from, bytes);
}
int cuMemcpyAsync(Pointer to, Pointer from, std::size_t bytes, void* stream) {
  // Memory of the host that is not pinned is read, or written, before the function returns.
  if (!stream_of(stream).captured && !(stays(to) && stays(from)))
    if (const int status = drain(stream_of(stream)); status != 0) return status;
  return queue(stream, [=] { return copy_now(to, from, bytes); });
}
static int fill_now(Pointer to, unsigned char byte, std::size_t bytes) {
  const std::lock_guard lock(mutex);
  if (!owned(to, bytes)) return 1;
  protect(PROT_READ | PROT_WRITE);
  std::memset(reinterpret_cast<void*>(to), byte, bytes);
  protect(PROT_NONE);
  return 0;
}
int cuMemsetD8_v2(Pointer to, unsigned char byte, std::size_t bytes) { return capturing ? in_capture : fill_now(to, byte, bytes); }
int cuMemsetD8Async(Pointer to, unsigned char byte, std::size_t bytes, void* stream) {
  return queue(stream, [=] { return fill_now(to, byte, bytes); });
}
int cuStreamCreate(void** s, unsigned) { return streams.insert(*s = new Stream), 0; }
int cuStreamDestroy_v2(void* s) { return drain(stream_of(s)), streams.erase(s), delete static_cast<Stream*>(s), 0; }
int cuEventCreate(void** e, unsigned) { return *e = new int, 0; }
int cuEventDestroy_v2(void* e) { return delete static_cast<int*>(e), 0; }
int cuEventRecord(void*, void* stream) { return known(stream) ? drain(stream_of(stream)) : 400; }
int cuStreamWaitEvent(void* stream, void*, unsigned) { return known(stream) ? ++followed, 0 : 400; }
int cuStreamSynchronize(void* s) { return capturing ? in_capture : drain(stream_of(s)); }
int cuStreamQuery(void* s) { return capturing ? in_capture : progress(stream_of(s)); }
int cuCtxSynchronize() { return capturing ? in_capture : drain_all(); }
int cuStreamBeginCapture_v2(void* s, int) {
  if (s == nullptr) return in_capture;
  static_cast<Stream*>(s)->captured = std::make_unique<Graph>();
  ++capturing;
  return 0;
}
int cuStreamEndCapture(void* s, void** graph) {
  --capturing;
  *graph = static_cast<Stream*>(s)->captured.release();
  return 0;
}
int cuGraphInstantiateWithFlags(void** executable, void* graph, unsigned long long) {
  *executable = new Graph(*static_cast<Graph*>(graph));
  return 0;
}
int cuGraphLaunch(void* executable, void* stream) {
  ++graph_launches;
  for (const auto& operation : static_cast<Graph*>(executable)->operations)
    if (const int status = queue(stream, operation); status != 0) return status;
  return 0;
}
int cuGraphDestroy(void* graph) { return delete static_cast<Graph*>(graph), 0; }
int cuGraphExecDestroy(void* graph) { return delete static_cast<Graph*>(graph), 0; }
int cuCtxSetLimit(int, std::size_t) { return 0; }
int cuCtxGetLimit(std::size_t* value, int) { return *value = 1024, 0; }
int cuModuleLoadData(void** m, const void* image) {
  try {
    const std::string text = static_cast<const char*>(image);
    auto module = std::make_unique<Module>();
    module->code = lantern::codegen::compile_emulated(text + wrappers(text));
    *m = module.release();
    return 0;
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 200;  // CUDA_ERROR_INVALID_IMAGE
  }
}
int cuModuleUnload(void* m) { return delete static_cast<Module*>(m), 0; }
int cuModuleGetFunction(void** f, void* m, const char* name) {
  try {
    Function& found = functions[{m, name}];
    const LoadedCode& code = *static_cast<Module*>(m)->code;
    found.launch = reinterpret_cast<decltype(found.launch)>(code.symbol(std::string("stand_in_") + name));
    found.hold = reinterpret_cast<decltype(found.hold)>(code.symbol(std::string("stand_in_hold_") + name));
    found.launch_held = reinterpret_cast<decltype(found.launch_held)>(code.symbol(std::string("stand_in_launch_held_") + name));
    *f = &found;
    return 0;
  } catch (const std::exception&) {
    return 500;  // CUDA_ERROR_NOT_FOUND
  }
}
int cuLaunchKernel(void* f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared,
                   void* stream, void** arguments, void**) {
  const auto run = [](const std::function<int()>& kernel) {
    const std::lock_guard lock(mutex);
    if (failing) return 719;
    protect(PROT_READ | PROT_WRITE);
    const int status = kernel();
    protect(PROT_NONE);
    return status;
  };
  const Function function = *static_cast<Function*>(f);
  const unsigned grid[] = {gx, gy, gz}, block[] = {bx, by, bz};
  const Stream& s = stream_of(stream);
  if (!s.captured && s.waiting.empty()) return run([&] { return function.launch(grid, block, shared, arguments); });
  void* const held = function.hold(grid, block, shared, arguments);
  return queue(stream, [=] { return run([=] { return function.launch_held(held); }); });
}
int cuPointerGetAttribute(void* to, int what, Pointer p) {
  const std::lock_guard lock(mutex);
  for (const auto& [data, bytes] : pinned)
    if (what == 2 && reinterpret_cast<char*>(p) >= data && reinterpret_cast<char*>(p) < data + bytes)
      return *static_cast<int*>(to) = 1, 0;
  if (!owned(p, 1)) return 1;
  const auto other = elsewhere.find(reinterpret_cast<char*>(p));
  *static_cast<int*>(to) = what == 2 ? 2 : other == elsewhere.end() ? 0 : other->second;
  return 0;
}
int cuGetErrorString(int status, const char** text) {
  *text = status == 400 ? "invalid resource handle" : status == 719 ? "unspecified launch failure" : status == 2 ? "out of memory" : "an error of the stand-in";
  return 0;
}

/// For tests: launches fail from now on, or work again.
void stand_in_fail(int yes) { failing = yes != 0; }
/// Graphs that have been launched.
int stand_in_graph_launches() { return graph_launches; }
/// Device allocations that have not been freed.
int stand_in_allocations() { return static_cast<int>(memories.size()); }

/// Streams that were made to follow another one.
int stand_in_followed() { return followed; }
/// Says of memory that it is another GPU's.
void stand_in_move(void* memory, int gpu) { elsewhere[static_cast<char*>(memory)] = gpu; }

}  // extern "C"

/// For stand-ins of libraries: at once or, where the stream is captured, later.
int stand_in_queue(void* stream, const std::function<int()>& operation) {
  return queue(stream, [operation] {
    const std::lock_guard lock(mutex);
    protect(PROT_READ | PROT_WRITE);
    const int status = operation();
    protect(PROT_NONE);
    return status;
  });
}
