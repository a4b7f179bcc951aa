// What a caller may choose about generated text, whichever the target.
#pragma once

#include <string>
#include <vector>

namespace lantern::codegen {

struct PrintOptions {
  bool line_directives = false;  ///< for debuggers: `#line` towards the user's source, and a statement a line
  bool comments = true;          ///< the user's source line above what it became, where the file can be read
  bool bounds_checks = true;     ///< an index out of range fails; without it, it is undefined behaviour
  bool strict_math = false;      ///< vectors too get what libm gives, bit for bit
  bool contraction = false;      ///< whoever compiles the text may round a product and a sum once
  bool vectors = false;       ///< functions of <math.h> over whole tensors use vectors, where they have them
  bool standalone = false;    ///< a source that compiles and runs without any part of Lantern
  bool with_main = false;     ///< beside it a main function that calls each function once
  bool named_values = false;  ///< a value with a name of the user's is a variable, though it be used once
  bool limited_stack = false;  ///< a recursion fails where it would leave the stack (workspace.h)
  bool check_nan = false;     ///< a NaN or an infinity among the arguments fails (pass value_checks: those that arise)
  int threads = 1;             ///< that products which call a routine may be shared out to
  /// How many f64 a register holds on the processor that the source is for; 0: not known. g++ keeps a loop's vectors
  /// that are wider in memory, so that it is given their halves.
  int register_lanes = 0;
  /// Functions of vectors that glibc's libmvec has are called there. Without it they go lane by lane, and a
  /// text links with libm alone, unless it is compiled with -DLT_LIBMVEC.
  bool vector_library = true;
  /// The entry takes a workspace whether its text uses one or not: as what was printed of the same program in
  /// another way.
  bool entry_workspace = false;
  std::string processor;  ///< that a stand-alone source is for; empty: the one that compiles it
  /// Beside each entry of a stand-alone source NAME_try, which returns a status where NAME ends the program.
  bool status_functions = false;
  /// The type of the stream that NAME_try takes before the message, in a source for a GPU; empty: it takes none.
  std::string stream;
  bool strided_functions = false;  ///< and NAME_strided, whose tensors have strides
  std::string prefix;  ///< is before the names of a library's entries
  /// Of a source for a GPU: memory and failures are those of the process that loads it (runtime/cuda/driver.hpp).
  bool hosted = false;
  std::vector<std::string> mappings;  ///< that are asked for (codegen/kernels.hpp)
  std::string products = "f32";  ///< what cuBLAS may round the factors of products of f32 to: tf32, bf16 or f16
  std::string storage = "f32";   ///< f16 or bf16: what a source for a GPU keeps its own tensors of f32 in (codegen/narrow_tensors.hpp)
  std::string name;   ///< of the entry; empty: the function's own name, made an identifier
  std::string entry;  ///< the name of the uniform way in, as it is; empty: NAME_entry
};

}  // namespace lantern::codegen
