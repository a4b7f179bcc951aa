// CUDA C++ to PTX with NVIDIA's run-time compiler, loaded when first used: no link dependency, no GPU needed.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace lantern::codegen {

/// Where a CUDA toolkit may be installed, in the order of preference: LANTERN_CUDA_PATH alone if it is set;
/// otherwise CUDA_HOME, then /usr/local/cuda.
std::vector<std::filesystem::path> cuda_toolkit_roots();

/// Whether NVRTC can be loaded: from the toolkit roots or by the dynamic loader's own search.
bool nvrtc_available();

/// Compiles CUDA C++ to PTX text for a virtual architecture ("compute_80"). `extern "C"` kernels keep their
/// names. Throws lantern::Error when NVRTC is not installed (the message says what to do), and
/// lantern::InternalError with the compiler's log when the text does not compile. Thread-safe.
/// `more`: further options of NVRTC's.
std::string compile_with_nvrtc(const std::string& cuda_source, const std::string& arch = "compute_80",
                               const std::vector<std::string>& more = {});

/// The same to machine code for one architecture ("sm_90").
std::string cubin_with_nvrtc(const std::string& cuda_source, const std::string& arch,
                             const std::vector<std::string>& more = {});

/// "13.0", or empty where NVRTC cannot be loaded.
std::string nvrtc_version();

}  // namespace lantern::codegen
