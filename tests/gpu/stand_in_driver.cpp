// libcuda for machines without a GPU: a module is a source, which the launch emulator runs. What programs ask of the
// driver goes the way that it goes on a GPU, but for the machine code; memory of the device is memory of its own that
// the host cannot touch but by copies.
#include <sys/mman.h>

#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <regex>
#include <string>

#include "lantern/codegen/toolchain/system_compiler.hpp"
#include "lantern/runtime/cuda/rewrite_launches.hpp"

namespace {

using lantern::codegen::LoadedCode;
using Pointer = unsigned long long;

struct Stream {};
struct Module {
  std::unique_ptr<LoadedCode> code;
};
struct Memory {
  std::size_t bytes;
};

std::mutex mutex;
std::map<char*, Memory> memories;  ///< of the device
bool failing = false;

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
static int stand_in_launch(void (*kernel)(P...), const unsigned* g, const unsigned* b, size_t shared, void** a) {
  stand_in_call(kernel, g, b, shared, a, std::index_sequence_for<P...>());
  return cudaGetLastError();
}
)cpp";
  if (text.find("static void lt_fail(") == std::string::npos) all.erase(0, all.find("template"));
  for (std::sregex_iterator it(text.begin(), text.end(), start), end; it != end; ++it) {
    const std::string name = (*it)[1];
    all += "extern \"C\" int stand_in_" + name + "(const unsigned* g, const unsigned* b, size_t shared, void** a) {\n  return stand_in_launch(" +
           name + ", g, b, shared, a);\n}\n";
  }
  return all;
}

using Launch = int(const unsigned*, const unsigned*, std::size_t, void**);

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
  if (bytes > std::size_t{1} << 40) return 2;
  void* m = mmap(nullptr, pages(bytes), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (m == MAP_FAILED) return 2;
  memories[static_cast<char*>(m)] = {bytes};
  *p = reinterpret_cast<Pointer>(m);
  return 0;
}
int cuMemFree_v2(Pointer p) {
  const std::lock_guard lock(mutex);
  const auto it = memories.find(reinterpret_cast<char*>(p));
  if (it == memories.end()) return 1;
  munmap(it->first, pages(it->second.bytes));
  memories.erase(it);
  return 0;
}
int cuMemAllocHost_v2(void** p, std::size_t bytes) { return *p = std::calloc(1, bytes), 0; }
int cuMemFreeHost(void* p) { return std::free(p), 0; }
int cuMemcpy(Pointer to, Pointer from, std::size_t bytes) {
  const std::lock_guard lock(mutex);
  protect(PROT_READ | PROT_WRITE);
  std::memmove(reinterpret_cast<void*>(to), reinterpret_cast<void*>(from), bytes);
  protect(PROT_NONE);
  return 0;
}
int cuMemcpyAsync(Pointer to, Pointer from, std::size_t bytes, void*) { return cuMemcpy(to, from, bytes); }
int cuMemsetD8_v2(Pointer to, unsigned char byte, std::size_t bytes) {
  const std::lock_guard lock(mutex);
  if (!owned(to, bytes)) return 1;
  protect(PROT_READ | PROT_WRITE);
  std::memset(reinterpret_cast<void*>(to), byte, bytes);
  protect(PROT_NONE);
  return 0;
}
int cuMemsetD8Async(Pointer to, unsigned char byte, std::size_t bytes, void*) { return cuMemsetD8_v2(to, byte, bytes); }
int cuStreamCreate(void** s, unsigned) { return *s = new Stream, 0; }
int cuStreamDestroy_v2(void* s) { return delete static_cast<Stream*>(s), 0; }
int cuStreamSynchronize(void*) { return 0; }
int cuCtxSynchronize() { return 0; }
int cuCtxSetLimit(int, std::size_t) { return 0; }
int cuCtxGetLimit(std::size_t* value, int) { return *value = 1024, 0; }
int cuModuleLoadData(void** m, const void* image) {
  try {
    const std::string text = static_cast<const char*>(image);
    lantern::codegen::ClangOptions options;
    options.opt_level = 1;
    options.contract = false;
    options.file_name = "kernels.cpp";
    auto module = std::make_unique<Module>();
    module->code = lantern::codegen::compile_with_system_compiler(
        std::string(lantern::launch_emulator_text()) + "\n" + lantern::rewrite_launches(text + wrappers(text)),
        lantern::codegen::Language::cpp, options);
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
    *f = static_cast<Module*>(m)->code->symbol(std::string("stand_in_") + name);
    return 0;
  } catch (const std::exception&) {
    return 500;  // CUDA_ERROR_NOT_FOUND
  }
}
int cuLaunchKernel(void* f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared, void*,
                   void** arguments, void**) {
  const std::lock_guard lock(mutex);
  if (failing) return 719;
  const unsigned grid[] = {gx, gy, gz}, block[] = {bx, by, bz};
  protect(PROT_READ | PROT_WRITE);
  const int status = reinterpret_cast<Launch*>(f)(grid, block, shared, arguments);
  protect(PROT_NONE);
  return status;
}
int cuPointerGetAttribute(void* to, int what, Pointer p) {
  const std::lock_guard lock(mutex);
  if (!owned(p, 1)) return 1;
  *static_cast<int*>(to) = what == 2 ? 2 : 0;
  return 0;
}
int cuGetErrorString(int status, const char** text) {
  *text = status == 719 ? "unspecified launch failure" : status == 2 ? "out of memory" : "an error of the stand-in";
  return 0;
}

/// For tests: launches fail from now on, or work again.
void stand_in_fail(int yes) { failing = yes != 0; }
/// Device allocations that have not been freed.
int stand_in_allocations() { return static_cast<int>(memories.size()); }

}  // extern "C"
