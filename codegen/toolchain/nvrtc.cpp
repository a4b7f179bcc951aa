// NVRTC through dlopen. The few declarations needed of its C interface are repeated here, so that neither its
// header nor its library is needed to build.
#include "lantern/codegen/toolchain/nvrtc.hpp"

#include <dlfcn.h>

#include <cstdlib>
#include <map>
#include <memory>
#include <mutex>

#include "lantern/ir/error.hpp"

namespace lantern::codegen {

namespace {

using Program = struct NvrtcProgram*;  // nvrtcProgram, opaque
using Result = int;                    // nvrtcResult; 0 is success

/// The functions of one loaded library. It stays loaded: NVRTC is not built to be unloaded.
struct Nvrtc {
  const char* (*error_string)(Result);
  Result (*create)(Program*, const char* source, const char* name, int header_count,
                   const char* const* headers, const char* const* include_names);
  Result (*destroy)(Program*);
  Result (*compile)(Program, int option_count, const char* const* options);
  Result (*ptx_size)(Program, std::size_t*);
  Result (*ptx)(Program, char*);
  Result (*cubin_size)(Program, std::size_t*);
  Result (*cubin)(Program, char*);
  Result (*version)(int*, int*);
  Result (*log_size)(Program, std::size_t*);
  Result (*log)(Program, char*);
  std::filesystem::path include_directory;  // of the toolkit it came from; empty if that is not known
};

template <class Function>
bool find(void* library, const char* name, Function*& function) {
  function = reinterpret_cast<Function*>(::dlsym(library, name));
  return function != nullptr;
}

std::unique_ptr<const Nvrtc> open(const std::string& path, const std::filesystem::path& root) {
  void* library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return nullptr;
  auto api = std::make_unique<Nvrtc>();
  const bool complete =
      find(library, "nvrtcGetErrorString", api->error_string) &&
      find(library, "nvrtcCreateProgram", api->create) &&
      find(library, "nvrtcDestroyProgram", api->destroy) &&
      find(library, "nvrtcCompileProgram", api->compile) && find(library, "nvrtcGetPTXSize", api->ptx_size) &&
      find(library, "nvrtcGetPTX", api->ptx) && find(library, "nvrtcGetCUBINSize", api->cubin_size) &&
      find(library, "nvrtcGetCUBIN", api->cubin) && find(library, "nvrtcVersion", api->version) && find(library, "nvrtcGetProgramLogSize", api->log_size) &&
      find(library, "nvrtcGetProgramLog", api->log);
  if (!complete) {
    ::dlclose(library);
    return nullptr;
  }
  if (!root.empty() && std::filesystem::is_directory(root / "include"))
    api->include_directory = root / "include";
  return api;
}

std::unique_ptr<const Nvrtc> search(const std::vector<std::filesystem::path>& roots,
                                    bool search_loader_path) {
  // The unversioned name belongs to development packages; run-time packages only have the others.
  const std::vector<std::string> names = {"libnvrtc.so", "libnvrtc.so.13", "libnvrtc.so.12",
                                          "libnvrtc.so.11.2"};
  for (const std::filesystem::path& root : roots) {
    for (const char* folder : {"lib64", "lib", "targets/x86_64-linux/lib"}) {
      for (const std::string& name : names) {
        if (auto api = open((root / folder / name).string(), root)) return api;
      }
    }
  }
  if (search_loader_path) {
    for (const std::string& name : names) {
      if (auto api = open(name, {})) return api;
    }
  }
  return nullptr;
}

// What was found for each set of places: the environment may change between calls, a library is opened once.
const Nvrtc* load() {
  static std::mutex mutex;
  static std::map<std::vector<std::filesystem::path>, std::unique_ptr<const Nvrtc>> loaded;
  const std::vector<std::filesystem::path> roots = cuda_toolkit_roots();
  const std::lock_guard lock(mutex);
  auto [entry, inserted] = loaded.try_emplace(roots);
  if (inserted) entry->second = search(roots, std::getenv("LANTERN_CUDA_PATH") == nullptr);
  return entry->second.get();
}

class OwnedProgram {
 public:
  OwnedProgram(const Nvrtc& api, const std::string& source) : api_(api) {
    check(api_.create(&program_, source.c_str(), "generated.cu", 0, nullptr, nullptr));
  }
  OwnedProgram(const OwnedProgram&) = delete;
  OwnedProgram& operator=(const OwnedProgram&) = delete;
  ~OwnedProgram() { api_.destroy(&program_); }

  void compile(const std::vector<std::string>& options) {
    std::vector<const char*> pointers;
    for (const std::string& option : options) pointers.push_back(option.c_str());
    const Result result = api_.compile(program_, static_cast<int>(pointers.size()), pointers.data());
    if (result == 0) return;
    throw InternalError("NVRTC does not accept the generated code (" +
                        std::string(api_.error_string(result)) + "):\n" + text(api_.log_size, api_.log));
  }

  std::string ptx() const { return text(api_.ptx_size, api_.ptx); }
  /// The bytes as NVRTC gives them.
  std::string cubin() const {
    std::size_t size = 0;
    check(api_.cubin_size(program_, &size));
    std::string code(size, '\0');
    check(api_.cubin(program_, code.data()));
    return code;
  }

 private:
  void check(Result result) const {
    if (result != 0) throw InternalError(std::string("NVRTC failed: ") + api_.error_string(result));
  }

  std::string text(Result (*get_size)(Program, std::size_t*), Result (*get)(Program, char*)) const {
    std::size_t size = 0;  // counts the final zero
    check(get_size(program_, &size));
    std::string result(size, '\0');
    if (size > 0) {
      check(get(program_, result.data()));
      result.pop_back();
    }
    return result;
  }

  const Nvrtc& api_;
  Program program_ = nullptr;
};

}  // namespace

std::vector<std::filesystem::path> cuda_toolkit_roots() {
  if (const char* chosen = std::getenv("LANTERN_CUDA_PATH")) return {chosen};
  std::vector<std::filesystem::path> roots;
  if (const char* home = std::getenv("CUDA_HOME"); home != nullptr && *home != '\0') roots.emplace_back(home);
  roots.emplace_back("/usr/local/cuda");
  return roots;
}

bool nvrtc_available() { return load() != nullptr; }

namespace {

const Nvrtc& found() {
  const Nvrtc* api = load();
  if (api == nullptr) {
    throw Error(
        "the CUDA run-time compiler (libnvrtc) was not found; install the CUDA toolkit and set "
        "LANTERN_CUDA_PATH to its folder, for instance /usr/local/cuda");
  }
  return *api;
}

/// Includes of CUDA's own headers are found where the toolkit has them: since version 13 cooperative groups and CUB lie
/// in a folder of their own.
std::vector<std::string> all_options(const Nvrtc& api, const std::string& arch, const std::vector<std::string>& more) {
  std::vector<std::string> options = {"--gpu-architecture=" + arch, "--std=c++17"};
  if (!api.include_directory.empty()) {
    options.push_back("--include-path=" + api.include_directory.string());
    if (std::filesystem::is_directory(api.include_directory / "cccl"))
      options.push_back("--include-path=" + (api.include_directory / "cccl").string());
  }
  options.insert(options.end(), more.begin(), more.end());
  return options;
}

/// What a program gives once it is compiled.
template <class Take>
std::string compiled(const std::string& source, const std::string& arch, const std::vector<std::string>& more, Take take) {
  const Nvrtc& api = found();
  OwnedProgram program(api, source);
  program.compile(all_options(api, arch, more));
  return take(program);
}

}  // namespace

std::string compile_with_nvrtc(const std::string& source, const std::string& arch, const std::vector<std::string>& more) {
  return compiled(source, arch, more, [](auto& program) { return program.ptx(); });
}

std::string cubin_with_nvrtc(const std::string& source, const std::string& arch, const std::vector<std::string>& more) {
  return compiled(source, arch, more, [](auto& program) { return program.cubin(); });
}

std::string nvrtc_version() {
  const Nvrtc* api = load();
  int major = 0, minor = 0;
  if (api == nullptr || api->version(&major, &minor) != 0) return {};
  return std::to_string(major) + "." + std::to_string(minor);
}

}  // namespace lantern::codegen
