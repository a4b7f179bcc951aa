// Python names for the types of programs, and text that Python reads back as it was.
#include "python_parts.hpp"

#include <algorithm>
#include <set>
#include <string_view>

#include "doc_comment.hpp"
#include "lantern/codegen/naming.hpp"
#include "lantern/codegen/toolchain/clang.hpp"
#include "lantern/ir/error.hpp"

namespace lantern::tool {

using namespace core;
using ir::Kind;

namespace {

/// "(3, m)" for a shape; what differs from run to run has a letter.
std::string shape_of(const ir::Type& t) {
  std::string text;
  for (const std::int64_t d : t.dims()) text += (text.empty() ? "" : ", ") + (d == ir::dynamic ? "?" : std::to_string(d));
  return "(" + text + (t.rank() == 1 ? ",)" : ")");
}

}  // namespace

Number number(Kind kind) {
  switch (kind) {
    case Kind::boolean:
      return {"bool", "_ctypes.c_bool", "bool_"};
    case Kind::i32:
      return {"int", "_ctypes.c_int32", "int32"};
    case Kind::i64:
      return {"int", "_ctypes.c_int64", "int64"};
    case Kind::f32:
      return {"float", "_ctypes.c_float", "float32"};
    case Kind::f64:
      return {"float", "_ctypes.c_double", "float64"};
    default:
      throw InternalError("no number has this kind");
  }
}

bool is_python_keyword(const std::string& name) {
  static const std::set<std::string> words{
      "False", "None", "True",   "and",     "as",     "assert", "async",    "await", "break", "class", "continue", "def",
      "del",   "elif", "else",   "except",  "for",    "from",   "global",   "if",    "import", "in",   "is",       "lambda",
      "not",   "or",   "pass",   "finally", "raise",  "return", "nonlocal", "try",   "while", "with",  "yield"};
  return words.contains(name);
}

std::string python_name(const std::string& name) {
  const bool taken = is_python_keyword(name) || name == "out" || name == "Error" || name == "print";
  return taken ? name + "_" : name;
}

std::string in_docstring(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '\\' || c == '"') out += '\\';
    if (c == '\n' || c == '\t' || static_cast<unsigned char>(c) >= ' ') out += c;
  }
  return out;
}

std::string base64(const std::string& bytes) {
  static constexpr std::string_view digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  out.reserve(bytes.size() / 3 * 4 + 4);
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    const std::size_t n = std::min<std::size_t>(3, bytes.size() - i);
    unsigned word = 0;
    for (std::size_t k = 0; k < 3; ++k)
      word = word << 8U | (k < n ? static_cast<unsigned char>(bytes[i + k]) : 0U);
    for (std::size_t k = 0; k < 4; ++k) out += k <= n ? digits[word >> (18 - 6 * k) & 63U] : '=';
  }
  return out;
}

std::string described(const ir::Type& t) {
  if (t.is_scalar()) return number(t.kind()).python;
  if (t.is_tensor()) return number(t.element()).numpy + " array of shape " + shape_of(t);
  std::string values;
  for (const ir::Type& part : t.parts()) values += ", " + number(part.kind()).numpy + " values";
  return "tree: (int64 left, int64 right" + values + ", root)";
}

std::vector<std::string> parameter_names(const ir::Function& f) {
  std::set<std::string> taken;
  std::vector<std::string> names;
  for (const ir::Value* p : f.body->params) {
    std::string name = p->name ? python_name(codegen::identifier(p->name)) : "x" + std::to_string(names.size() + 1);
    while (!taken.insert(name).second) name += "_";
    names.push_back(name);
  }
  return names;
}

std::string docstring(const StagedFunction& function, const std::string& name, const std::vector<std::string>& arguments,
                      const std::vector<std::string>& results, const std::string& more) {
  const Documentation said = documentation(function.loc);
  std::string text = said.program.empty() ? name : said.program;
  if (!said.comment.empty()) text = said.comment + "\n\nThe compiled function is " + text;
  text += ".\n";
  if (!arguments.empty()) text += "\nParameters\n----------\n";
  for (const std::string& a : arguments) text += a + "\n";
  text += "\nReturns\n-------\n";
  for (const std::string& r : results) text += r + "\n";
  text += "\n" + more;
  std::string indented;
  std::size_t from = 0;
  for (std::size_t end; (end = text.find('\n', from)) != std::string::npos; from = end + 1) {
    const std::string line = text.substr(from, end - from);
    indented += (indented.empty() || line.empty() ? "" : "    ") + in_docstring(line) + "\n";
  }
  return "    \"\"\"" + indented + "    \"\"\"\n";
}

std::string required_features(const Options& options) {
  const std::string list = quoted_features(options);
  return list.empty() ? "" : "_require(" + list + ")\n";
}

std::string quoted_features(const Options& options) {
  const codegen::Arithmetic arithmetic = codegen::arithmetic_of(options.cpu);
  std::string text;
#if defined(__x86_64__)
  if (arithmetic.lanes >= 8) text += "\"avx512f\", \"avx512dq\", ";
  if (arithmetic.lanes >= 4) text += "\"avx2\", ";
  if (arithmetic.fused_multiply_add) text += "\"fma\", ";
#endif
  return text.empty() ? "" : text.substr(0, text.size() - 2);
}

}  // namespace lantern::tool
