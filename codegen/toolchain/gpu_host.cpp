// The host's part is the text as it is, with launches as calls (runtime/cuda/rewrite_launches.hpp) and, in front of it,
// what it uses of CUDA's headers and C's.
#include "lantern/codegen/toolchain/gpu_host.hpp"

#include <regex>

#include "lantern/codegen/toolchain/content_hash.hpp"
#include "lantern/codegen/toolchain/disk_cache.hpp"
#include "lantern/codegen/toolchain/nvrtc.hpp"
#include "lantern/runtime/cuda/driver.hpp"
#include "lantern/runtime/cuda/rewrite_launches.hpp"

namespace lantern::codegen {

namespace {

constexpr const char* headers = R"cpp(
typedef __SIZE_TYPE__ size_t;
typedef __INT64_TYPE__ int64_t;
typedef __INT32_TYPE__ int32_t;
typedef __UINTPTR_TYPE__ uintptr_t;
typedef struct lantern_file FILE;
#define stderr ((FILE*)0)
#define RTLD_NOW 2
#define SEEK_END 2
#define CLOCK_MONOTONIC 1
struct timespec { long tv_sec, tv_nsec; };
extern "C" {
void* malloc(size_t); void* calloc(size_t, size_t); void* realloc(void*, size_t); void free(void*);
int memcmp(const void*, const void*, size_t); char* getenv(const char*);
size_t strlen(const char*); int strcmp(const char*, const char*); int strncmp(const char*, const char*, size_t); char* strcat(char*, const char*);
FILE* fopen(const char*, const char*); int fclose(FILE*); char* fgets(char*, int, FILE*); int fflush(FILE*);
int fseek(FILE*, long, int); long ftell(FILE*); void rewind(FILE*); int snprintf(char*, size_t, const char*, ...);
int mkdir(const char*, unsigned); int clock_gettime(int, struct timespec*);
void* memcpy(void*, const void*, size_t); void* memset(void*, int, size_t); void* memmove(void*, const void*, size_t);
[[noreturn]] void abort(void);
int printf(const char*, ...);
int fprintf(FILE*, const char*, ...);
void* dlopen(const char*, int); void* dlsym(void*, const char*);
$MATHEMATICS
}
#define thread_local
#define __global__
#define __device__
#define __host__
#define __shared__ static
#define __forceinline__ inline __attribute__((always_inline))
#define __launch_bounds__(...)
#define __grid_constant__
typedef int cudaError_t;
typedef struct CUstream_st* cudaStream_t;
enum { cudaSuccess = 0, cudaErrorInvalidValue = 1, cudaErrorMemoryAllocation = 2 };
enum cudaMemcpyKind { cudaMemcpyHostToHost, cudaMemcpyHostToDevice, cudaMemcpyDeviceToHost, cudaMemcpyDeviceToDevice, cudaMemcpyDefault };
enum cudaMemoryType { cudaMemoryTypeUnregistered, cudaMemoryTypeHost, cudaMemoryTypeDevice, cudaMemoryTypeManaged };
struct cudaPointerAttributes { cudaMemoryType type; };
struct cudaDeviceProp { char name[256]; };
enum cudaDeviceAttr { cudaDevAttrMultiProcessorCount = 16 };
enum cudaLimit { cudaLimitStackSize = 0 };
extern "C" {
cudaError_t cudaMalloc(void**, size_t); cudaError_t cudaFree(void*); cudaError_t cudaMallocHost(void**, size_t);
cudaError_t cudaMemcpy(void*, const void*, size_t, cudaMemcpyKind);
cudaError_t cudaMemcpyAsync(void*, const void*, size_t, cudaMemcpyKind, cudaStream_t);
cudaError_t cudaMemset(void*, int, size_t); cudaError_t cudaMemsetAsync(void*, int, size_t, cudaStream_t);
cudaError_t cudaStreamSynchronize(cudaStream_t); cudaError_t cudaStreamQuery(cudaStream_t); cudaError_t cudaDeviceSynchronize(void);
cudaError_t cudaDeviceSetLimit(cudaLimit, size_t); cudaError_t cudaDeviceGetLimit(size_t*, cudaLimit);
cudaError_t cudaPeekAtLastError(void); cudaError_t cudaGetLastError(void);
const char* cudaGetErrorString(cudaError_t);
cudaError_t cudaGetDevice(int*); cudaError_t cudaDeviceGetAttribute(int*, cudaDeviceAttr, int);
cudaError_t cudaGetDeviceProperties(cudaDeviceProp*, int);
cudaError_t cudaPointerGetAttributes(cudaPointerAttributes*, const void*);
void* lantern_gpu_local(const void* program, size_t bytes);
void lantern_gpu_fail(const char* message);
void lantern_gpu_enter(struct lt_caller* caller);
int lantern_gpu_launch(void** function, void* module, const char* name, const unsigned* grid, const unsigned* block,
                       size_t shared, cudaStream_t stream, void** arguments);
void* lantern_gpu_module;
}
struct dim3 {
  unsigned x, y, z;
  constexpr dim3(unsigned x_ = 1, unsigned y_ = 1, unsigned z_ = 1) : x(x_), y(y_), z(z_) {}
};
static struct { unsigned x, y, z; } threadIdx, blockIdx, blockDim, gridDim; /* of kernels alone */
namespace lantern_gpu {
template <class F>
struct kernel;
template <class... P>
struct kernel<void(P...)> {
  const char* name;
  void* function;
};
inline void pack(void**) {}
template <class A, class... Rest>
inline void pack(void** to, A& a, Rest&... rest) {
  *to = const_cast<void*>(static_cast<const void*>(&a));
  pack(to + 1, rest...);
}
template <class T>
struct same { typedef T type; };
struct Launch {
  dim3 grid, block;
  size_t shared;
  cudaStream_t stream;
  template <class... P>
  void operator()(kernel<void(P...)>& k, typename same<P>::type... arguments) const {
    void* pointers[sizeof...(P) + 1];
    pack(pointers, arguments...);
    lantern_gpu_launch(&k.function, lantern_gpu_module, k.name, &grid.x, &block.x, shared, stream, pointers);
  }
};
inline Launch configure(dim3 grid, dim3 block, size_t shared = 0, cudaStream_t stream = 0) { return {grid, block, shared, stream}; }
inline void exit_thread() { abort(); }
}
template <class T>
T atomicCAS(T* p, T, T) { return *p; }
template <class T>
T atomicExch(T* p, T) { return *p; }
inline void __threadfence() {}
)cpp";

/// Prototypes of the functions of <math.h> that generated text may call, for both kinds.
std::string mathematics() {
  std::string text;
  const auto of_one = [&](const std::string& name) { text += "double " + name + "(double); float " + name + "f(float);\n"; };
  const auto of_two = [&](const std::string& name) {
    text += "double " + name + "(double, double); float " + name + "f(float, float);\n";
  };
#define MATH_1(name, ...) of_one(#name);
#define MATH_2(name, ...) of_two(#name);
#include "lantern/ir/ops.inc"
  for (const char* one : {"rint", "fabs", "tgamma", "nearbyint", "logb"}) of_one(one);
  for (const char* two : {"fmin", "fmax", "remainder", "nextafter", "fdim"}) of_two(two);
  return text + "double fma(double, double, double); float fmaf(float, float, float);\n";
}

/// "static lantern_gpu::kernel<void(const float* x, int64_t n)> f_kernel1 = {"f_kernel1", 0};" for each kernel.
std::string handles(const std::string& kernels) {
  static const std::regex start(R"((?:LT_KERNEL|extern "C" __global__)\s+void\s+(?:__launch_bounds__\(\d+\)\s+)?(\w+)\()");
  std::string text;
  for (std::sregex_iterator it(kernels.begin(), kernels.end(), start), end; it != end; ++it) {
    const std::size_t open = static_cast<std::size_t>(it->position() + it->length());
    const std::size_t close = kernels.find(") {", open);
    std::string parameters = kernels.substr(open, close - open);
    for (std::size_t at; (at = parameters.find("__restrict__")) != std::string::npos;) parameters.erase(at, 12);
    const std::string name = (*it)[1];
    text += "static lantern_gpu::kernel<void(" + parameters + ")> " + name + " = {\"" + name + "\", 0};\n";
  }
  return text;
}

std::string without_includes(const std::string& text) {
  return std::regex_replace(text, std::regex(R"(#\s*include\s*<[^>]*>)"), "");
}

std::vector<std::string> nvrtc_options(const GpuOptions& options) {
  return options.strict_math ? std::vector<std::string>{"--fmad=false"} : std::vector<std::string>{};
}

/// Machine code for the GPU that is there, of the cache where it has been made before.
std::string machine_code(const std::string& text, const GpuOptions& options) {
  const cuda_driver::Gpu gpu = cuda_driver::gpu();
  const std::string arch = "sm_" + std::to_string(gpu.major) + std::to_string(gpu.minor);
  const std::string key = content_hash(text + arch + nvrtc_version() + (options.strict_math ? " strict" : ""));
  std::optional<DiskCache> cache;
  if (const auto directory = private_cache_directory("kernels")) cache.emplace(*directory, cache_limit(256) << 20);
  if (cache)
    if (auto kept = cache->load(key)) return *kept;
  std::string cubin = cubin_with_nvrtc(text, arch, nvrtc_options(options));
  if (cache) cache->store(key, cubin);
  return cubin;
}

/// Both parts of a program.
class GpuCode final : public LoadedCode {
 public:
  GpuCode(std::unique_ptr<LoadedCode> host, const std::string& cubin) : host_(std::move(host)), module_(cubin) {
    *static_cast<void**>(host_->symbol("lantern_gpu_module")) = module_.handle();
  }
  void* symbol(const std::string& name) const override { return host_->symbol(name); }

 private:
  std::unique_ptr<LoadedCode> host_;
  cuda_driver::Module module_;
};

std::string for_nvrtc(const CudaText& text) { return text.both + text.kernels; }

std::unique_ptr<LoadedCode> host_part(const CudaText& text, const GpuOptions& options, std::vector<HostSymbol> symbols) {
  std::string host = headers;
  host.replace(host.find("$MATHEMATICS"), 12, mathematics());
  host += without_includes(text.both) + handles(text.kernels) + text.host;
  for (const auto& [name, address] : cuda_driver::host_functions()) symbols.push_back({name, address});
  ClangOptions clang;
  clang.opt_level = 1;
  clang.contract = !options.strict_math;
  clang.file_name = "generated.cu";
  return compile_with_clang(rewrite_launches(host, "lantern_gpu"), Language::cpp, clang, symbols);
}

}  // namespace

std::unique_ptr<LoadedCode> load_for_gpu(const CudaText& text, const GpuOptions& options, const std::vector<HostSymbol>& externals) {
  const std::string cubin = machine_code(for_nvrtc(text), options);
  return std::make_unique<GpuCode>(host_part(text, options, externals), cubin);
}

void check_for_gpu(const CudaText& text, const GpuOptions& options, const std::vector<HostSymbol>& externals) {
  compile_with_nvrtc(for_nvrtc(text), "compute_80", nvrtc_options(options));
  static_cast<void>(host_part(text, options, externals));
}

}  // namespace lantern::codegen
