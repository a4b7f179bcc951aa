// Runs nvcc in a private temporary directory.
#include "lantern/codegen/toolchain/nvcc.hpp"

#include <cstdlib>

#include "lantern/codegen/toolchain/nvrtc.hpp"
#include "lantern/codegen/toolchain/process.hpp"
#include "lantern/ir/error.hpp"

namespace lantern::codegen {

std::optional<std::string> find_nvcc() {
  for (const std::filesystem::path& root : cuda_toolkit_roots()) {
    if (auto found = find_program((root / "bin" / "nvcc").string())) return found;
  }
  if (std::getenv("LANTERN_CUDA_PATH") != nullptr) return std::nullopt;
  return find_program("nvcc");
}

std::vector<char> object_with_nvcc(const std::string& cuda_source, const NvccOptions& options) {
  const std::optional<std::string> nvcc = find_nvcc();
  if (!nvcc) {
    throw Error(
        "the CUDA compiler (nvcc) was not found; install the CUDA toolkit and set LANTERN_CUDA_PATH to its "
        "folder, for instance /usr/local/cuda");
  }
  const TemporaryDirectory directory;
  const std::string source_path = directory.path() / "generated.cu";
  const std::string object_path = directory.path() / "generated.o";
  write_file(source_path, cuda_source);

  std::vector<std::string> command = {*nvcc, "-c", "-O" + std::to_string(options.opt_level),
                                      "-arch=" + options.arch};
  if (options.pic) command.insert(command.end(), {"-Xcompiler", "-fPIC"});
  command.insert(command.end(), options.more_arguments.begin(), options.more_arguments.end());
  command.insert(command.end(), {source_path, "-o", object_path});
  const ProcessResult result = run_process(command);
  if (result.status != 0) {
    throw InternalError("nvcc does not accept the generated code:\n" + result.err + result.out);
  }
  const std::string object = read_file(object_path);
  return {object.begin(), object.end()};
}

}  // namespace lantern::codegen
