// What all emitted Python modules share: names, documentation, the library as text.
#pragma once

#include <string>
#include <vector>

#include "lantern/ir/graph.hpp"
#include "options.hpp"
#include "stage.hpp"

namespace lantern::tool {

/// A kind of number in Python, ctypes and NumPy.
struct Number {
  std::string python, ctypes, numpy;
};
Number number(ir::Kind kind);
/// Of a number, or of the elements of a tensor.
inline ir::Kind kind_of(const ir::Type& t) { return t.is_tensor() ? t.element() : t.kind(); }
/// 0 of a number.
inline int rank_of(const ir::Type& t) { return t.is_tensor() ? t.rank() : 0; }

/// Whether Python reserves the name.
bool is_python_keyword(const std::string& name);
/// The name, with a '_' behind it where Python or a generated module has another meaning for it.
std::string python_name(const std::string& name);
/// Of the parameters of an entry, each once.
std::vector<std::string> parameter_names(const ir::Function& f);
/// Text as it may be between the quotes of a docstring.
std::string in_docstring(const std::string& text);
std::string base64(const std::string& bytes);
/// float, or "float64 array of shape (3, ?)".
std::string described(const ir::Type& t);
/// The docstring of a function, indented, in NumPy's style, with what the C++ source says. `arguments` and `results` have
/// an entry each, "x : float"; `more` comes behind them.
std::string docstring(const StagedFunction& function, const std::string& name, const std::vector<std::string>& arguments,
                      const std::vector<std::string>& results, const std::string& more);
/// The vectors that the code has, by Linux's names, as the arguments of a call: "avx2", "fma"; empty where it has none.
std::string quoted_features(const Options& options);
/// The statement that refuses to load on a processor without the vectors that the code has; empty where any will do.
std::string required_features(const Options& options);

}  // namespace lantern::tool
