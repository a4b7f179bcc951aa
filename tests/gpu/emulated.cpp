// emulated OUT.so FILE.cu... [-FLAG...]: sources for nvcc as a library of the processor, by the launch emulator. emulated OUT.cpp FILE.cu
// writes their text.
#include <cstdio>
#include <regex>

#include "lantern/codegen/toolchain/process.hpp"
#include "lantern/codegen/toolchain/system_compiler.hpp"
#include "lantern/runtime/cuda/rewrite_launches.hpp"

int main(int argc, char** argv) try {
  using namespace lantern;
  std::string text;
  std::vector<std::string> arguments{"-fexceptions", "-frtti"};
  for (int i = 2; i < argc; ++i)
    if (argv[i][0] == '-') arguments.push_back(argv[i]);
    else text += codegen::read_file(argv[i]);
  // Each source is there once, in the order of the arguments: one does not include another.
  text = std::regex_replace(text, std::regex("#include \"\\w+\\.cu\"\n"), "");
  text = std::string(launch_emulator_text()) + rewrite_launches(text);
  if (std::string(argv[1]).ends_with(".cpp")) return codegen::write_file(argv[1], text), 0;
  codegen::ClangOptions options;
  options.opt_level = 1;
  options.contract = false;
  options.file_name = "emulated.cpp";
  codegen::build_shared_library(argv[1], text, codegen::Language::cpp, options, {}, arguments);
  return 0;
} catch (const std::exception& e) {
  return std::fprintf(stderr, "%s\n", e.what()), 1;
}
