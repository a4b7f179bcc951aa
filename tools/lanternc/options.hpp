// The command line.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lantern/compiler/staging/check.hpp"

namespace lantern::tool {

enum class Emit { program, ir, cps, c, cpp, cuda, header, object, shared, python, wheel, jax, torch, julia, fortran, mex, svg, rewritten, html };

struct Options {
  std::vector<std::string> sources;
  std::string output;  ///< empty: standard output
  std::string depfile;  ///< where what the result depends on is written, as make and ninja read it; empty: nowhere
  Emit emit = Emit::program;
  std::string function;  ///< empty: all
  std::string prefix;    ///< before the names of emitted functions
  bool strided = false;  ///< beside each emitted function one whose tensors have strides
  int opt = 3;
  int threads = 1;
  int lanes = 0;              ///< f64 to a vector; 0: as many as a register of the processor holds
  bool strict_math = false;
  bool reassociate = true;
  bool level_given = false;
  core::Check check = core::Check::none;
  bool cuda = false;
  std::string arch = "compute_80";  ///< of the GPU, by nvcc's name
  std::vector<std::string> mappings;  ///< of loops to the GPU, that are asked for
  std::string products = "f32";       ///< what factors of products there may be rounded to
  std::string storage = "f32";        ///< what functions there store their own tensors of f32 in
  bool debug = false;
  bool time_passes = false;
  bool explain = false;  ///< instead of any other output
  bool verify = false;
  bool with_jit = false;
  bool object_only = false;    ///< of a program: one object, for a linker
  bool whole_program = false;  ///< of such an object: no other file calls its functions over Reps
  bool with_main = false;      ///< a source shows how its functions are called
  bool rewrite = true;  ///< native control flow over Rep
  bool limited_stack = false;  ///< a recursion that would leave the stack fails: for modules of interpreters
  bool cache = true, explain_cache = false;
  bool all_messages = false;  ///< of the C++ compiler, as they come
  std::vector<std::string> dump_after;
  std::vector<std::string> disabled_passes;
  std::string cpu;  ///< LLVM's name; empty: this machine's
  /// For the user's compiler, when it compiles and when it links.
  std::vector<std::string> compile_flags, link_flags;

  /// The level of the compilers of what is generated and of the user's files: with -g alone they do not optimise,
  /// while the passes run all the same.
  int code_level() const { return debug && !level_given ? 0 : opt; }
  /// A module of another language, with failures as errors there.
  bool is_module() const {
    return emit == Emit::python || emit == Emit::wheel || emit == Emit::julia || emit == Emit::fortran || emit == Emit::mex ||
           has_pullbacks();
  }
  /// A file that Python imports by its name.
  bool is_python() const { return emit == Emit::python || has_pullbacks(); }
  /// Pullbacks of the functions are in the module too.
  bool has_pullbacks() const { return emit == Emit::jax || emit == Emit::torch; }
  bool is_text() const { return emit == Emit::c || emit == Emit::cpp || emit == Emit::cuda || emit == Emit::mex; }
  std::vector<std::string> words;  ///< the command line as it was given
};

/// As --emit takes it.
std::string name_of(Emit emit);

/// Nothing where only help or the version was asked for, and has been printed. Error: whatever cannot be
/// meant.
std::optional<Options> parse_options(int argc, char** argv);

}  // namespace lantern::tool
