// A function that calls C by ccall, for each function; arrays go through the helpers of julia_text.hpp.
#include "julia.hpp"

#include <filesystem>
#include <set>

#include "doc_comment.hpp"
#include "julia_text.hpp"
#include "lantern/codegen/naming.hpp"
#include "lantern/ir/error.hpp"
#include "module_name.hpp"
#include "python_parts.hpp"

namespace lantern::tool {

using namespace core;
using ir::Kind;

namespace {

std::string julia_number(Kind kind) {
  switch (kind) {
    case Kind::boolean:
      return "Bool";
    case Kind::i32:
      return "Int32";
    case Kind::i64:
      return "Int64";
    case Kind::f32:
      return "Float32";
    default:
      return "Float64";
  }
}

/// What a caller may pass.
std::string accepted_type(const ir::Type& t) {
  if (t.is_scalar()) return t.is_bool() ? "Bool" : t.is_integer() ? "Base.Integer" : "Base.Real";
  return t.rank() == 1   ? "Base.AbstractVector{<:Base.Real}"
         : t.rank() == 2 ? "Base.AbstractMatrix{<:Base.Real}"
                         : "Base.AbstractArray{<:Base.Real," + std::to_string(t.rank()) + "}";
}

/// "Float64", or "array of Float64, size (3, ?)".
std::string julia_description(const ir::Type& t) {
  if (t.is_scalar()) return julia_number(t.kind());
  std::string sizes;
  for (const std::int64_t d : t.dims())
    sizes += (sizes.empty() ? "" : ", ") + (d == ir::dynamic ? "?" : std::to_string(d));
  return "array of " + julia_number(t.element()) + ", size (" + sizes + (t.rank() == 1 ? ",)" : ")");
}

std::string julia_tensor(const ir::Type& t) {
  return "_Lantern.Tensor{" + julia_number(t.element()) + "," + std::to_string(std::max(t.rank(), 1)) + "}";
}

/// Text as it may be between quotes.
std::string julia_string(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '\\' || c == '"' || c == '$') out += '\\';
    if (c == '\n' || c == '\t' || static_cast<unsigned char>(c) >= ' ') out += c;
  }
  return out;
}

/// Names of one scope, each once; those that Julia or the module has a meaning for get a '_'.
class JuliaNames {
 public:
  explicit JuliaNames(std::set<std::string> taken = {}) : taken_(std::move(taken)) {
    taken_.insert({"baremodule", "begin",  "break",   "catch",    "ccall",   "const", "do",       "else",
                   "elseif",     "end",    "export",  "false",    "finally", "for",   "function", "global",
                   "if",         "import", "in",      "isa",      "let",     "local", "macro",    "module",
                   "nothing",    "quote",  "return",  "struct",   "true",    "try",   "using",    "where",
                   "while",      "eval",   "include", "_Lantern", "Base",    "Core",  "Main",     "Error",
                   "Bool",       "Int32",  "Int64",   "Float32",  "Float64"});
  }

  std::string unique(std::string name) {
    if (name.starts_with("lt_")) name.insert(0, "x");  // these are the module's
    while (!taken_.insert(name).second) name += "_";
    return name;
  }

 private:
  std::set<std::string> taken_;
};

class JuliaWrapper {
 public:
  JuliaWrapper(const StagedFunction& function, std::string name)
      : f_(*function.module->entry), function_(function), name_(std::move(name)) {
    JuliaNames names;
    for (const ir::Value* p : f_.body->params)
      parameters_.push_back(names.unique(p->name ? codegen::identifier(p->name)
                                                 : "x" + std::to_string(parameters_.size() + 1)));
    for (std::size_t i = 0; i < f_.result_types.size(); ++i)
      if (f_.result_types[i].is_tensor()) tensors_.push_back(i);
  }

  std::string address() const { return "_c_" + name_; }
  bool has_arrays() const { return !tensors_.empty(); }

  std::string text() const {
    std::string text = "\nconst " + address() + " = Base.Ref{Ptr{Base.Cvoid}}()\n\n" + docstring(false);
    if (!has_arrays()) return text + "function " + name_ + signature(false) + "\n" + body();
    std::string nothings;
    for (std::size_t i = 0; i < tensors_.size(); ++i) nothings += (i ? ", " : "") + std::string("nothing");
    for (const std::string& p : parameters_) nothings += ", " + p;
    return text + "function " + name_ + signature(false) + "\n    return " + name_ + "!(" + nothings +
           ")\nend\n\n" + docstring(true) + "function " + name_ + "!" + signature(true) + "\n" + body();
  }

 private:
  std::string out(std::size_t i) const {
    return tensors_.size() == 1 ? "lt_out" : "lt_out" + std::to_string(i + 1);
  }

  std::string signature(bool in_place) const {
    std::string text;
    if (in_place)
      for (const std::size_t i : tensors_)
        text += (text.empty() ? "" : ", ") + out(i) + "::Base.Union{Base.AbstractArray,Base.Nothing}";
    for (std::size_t i = 0; i < parameters_.size(); ++i)
      text += (text.empty() ? "" : ", ") + parameters_[i] + "::" + accepted_type(f_.body->params[i]->type);
    return "(" + text + ")";
  }

  std::string docstring(bool in_place) const {
    const Documentation said = documentation(function_.loc);
    std::string list, arguments, results;
    if (in_place)
      for (const std::size_t i : tensors_) {
        list += (list.empty() ? "" : ", ") + out(i);
        arguments += "- `" + out(i) + "`: memory for an " + julia_description(f_.result_types[i]) + ", or `nothing`\n";
      }
    for (std::size_t i = 0; i < parameters_.size(); ++i) {
      list += (list.empty() ? "" : ", ") + parameters_[i];
      arguments += "- `" + parameters_[i] + "`: " + julia_description(f_.body->params[i]->type) + "\n";
    }
    for (const ir::Type& t : f_.result_types) results += "- " + julia_description(t) + "\n";
    std::string text = "    " + name_ + (in_place ? "!(" : "(") + list + ")\n\n";
    if (in_place) {
      text += "As `" + name_ +
              "`, with its arrays in memory of the caller's: in place where that is in row-major order.\n";
    } else {
      if (!said.comment.empty()) text += said.comment + "\n\n";
      text += "The compiled function is `" + (said.program.empty() ? name_ : said.program) + "`.\n";
    }
    if (!arguments.empty()) text += "\n# Arguments\n" + arguments;
    text += "\n# Returns\n" + results;
    return "\"\"\"\n" + julia_string(text) + "\"\"\"\n";
  }

  std::string body() const {
    std::string before, after, types, passed, kept, results;
    std::size_t out_number = 0;
    const auto line = [](std::string& to, const std::string& s) { to += "    " + s + "\n"; };
    for (std::size_t i = 0; i < parameters_.size(); ++i) {
      const ir::Type& t = f_.body->params[i]->type;
      const std::string memory = "lt_x" + std::to_string(i + 1);
      types += (t.is_tensor() ? julia_tensor(t) : julia_number(t.kind())) + ", ";
      if (t.is_tensor()) {
        line(before, memory + " = _Lantern.operand(" + julia_number(t.element()) + ", " + parameters_[i] + ")");
        kept += memory + " ";
      }
      passed += (t.is_tensor() ? "_Lantern.tensor(" + memory + ")" : parameters_[i]) + ", ";
    }
    for (std::size_t i = 0; i < f_.result_types.size(); ++i) {
      const ir::Type& t = f_.result_types[i];
      const std::string n = std::to_string(i + 1), result = "lt_r" + n;
      const std::string type = t.is_tensor() ? julia_tensor(t) : julia_number(t.kind());
      if (t.is_tensor()) {
        const std::string rank = "Base.Val(" + std::to_string(t.rank()) + ")",
                          o = out(tensors_[out_number++]);
        line(before, "lt_t" + n + " = _Lantern.target(" + julia_number(t.element()) + ", " + rank + ", " + o + ")");
        line(before, result + " = Base.Ref(lt_t" + n + ")");
        kept += o + " ";
        results += (i ? ", " : "") + std::string("_Lantern.result(\"") + name_ + "\", " + rank + ", " + o +
                   ", lt_t" + n + ", " + result + "[])";
      } else {
        line(before, result + " = Base.Ref{" + type + "}()");
        results += (i ? ", " : "") + result + "[]";
      }
      types += "Base.Ref{" + type + "}, ";
      passed += result + ", ";
    }
    line(before, "lt_message = Base.Ref{Ptr{Base.UInt8}}(Base.C_NULL)");
    line(after, "_Lantern.check(\"" + name_ + "\", lt_status, lt_message)");
    line(after, "return " + (f_.result_types.size() == 1 ? results : "(" + results + ")"));
    return before + "    lt_status = " + (kept.empty() ? "" : "Base.GC.@preserve " + kept) +
           "ccall(\n        " + address() + "[], Base.Cint,\n        (" + types +
           "Base.Ref{Ptr{Base.UInt8}}),\n        " + passed + "lt_message)\n" + after + "end\n";
  }

  const ir::Function& f_;
  const StagedFunction& function_;
  std::string name_;
  std::vector<std::string> parameters_;
  std::vector<std::size_t> tensors_;  ///< among the results
};

}  // namespace

std::string julia_module(const std::vector<StagedFunction>& functions,
                         const std::vector<std::string>& symbols, const std::string& library,
                         const Options& options) {
  const std::string source = std::filesystem::path(options.sources.front()).filename().string(),
                    module = module_name(options);
  JuliaNames names({module});
  std::string exported, wrappers, addresses;
  for (std::size_t i = 0; i < functions.size(); ++i) {
    const std::string name = names.unique(functions[i].name);
    const JuliaWrapper wrapper(functions[i], name);
    exported += (exported.empty() ? "" : ", ") + name + (wrapper.has_arrays() ? ", " + name + "!" : "");
    wrappers += wrapper.text();
    addresses += "    " + wrapper.address() + "[] = _Lantern.Libdl.dlsym(lt_library, :" + symbols[i] + ")\n";
  }
  const std::string features = quoted_features(options);
  return "# " + source +
         " for Julia, compiled by lanternc " LANTERNC_VERSION
         ". Generated code: change the C++ source instead. Needs the standard library, nothing "
         "else.\nmodule " +
         module + "\n\nexport " + exported + "\n\n" + julia_helpers + "\nconst Error = _Lantern.Error\n" +
         wrappers + "\nfunction __init__()\n" +
         (features.empty() ? "" : "    _Lantern.require(" + features + ")\n") +
         "    lt_library = _Lantern.load(_Lantern_code)\n" + addresses + "end\n\nconst _Lantern_code = \"" +
         base64(library) + "\"\n\nend\n";
}

}  // namespace lantern::tool
