// CUDA C++ to an object file with nvcc, for ahead-of-time builds.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace lantern::codegen {

/// The nvcc to use: of the toolkit roots (see nvrtc.hpp), otherwise, if LANTERN_CUDA_PATH is not set, on
/// PATH.
std::optional<std::string> find_nvcc();

struct NvccOptions {
  int opt_level = 3;
  std::string arch = "compute_80";  ///< a virtual architecture: PTX goes into the object
  bool pic = false;
  std::vector<std::string> more_arguments;
};

/// Compiles CUDA C++ (host and device code) with `nvcc -c` and returns the bytes of the object file. Throws
/// lantern::Error when there is no nvcc, lantern::InternalError with its output when the text does not
/// compile. Takes a second and more.
std::vector<char> object_with_nvcc(const std::string& cuda_source, const NvccOptions& options = {});

}  // namespace lantern::codegen
