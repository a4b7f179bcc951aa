// A wrapper of each function: arguments to C, the call, results from C.
#include "python.hpp"

#include <algorithm>
#include <filesystem>
#include <set>

#include "python_parts.hpp"
#include "python_text.hpp"

namespace lantern::tool {

using namespace core;
using ir::Kind;

namespace {

std::string dtype(Kind kind) { return "_" + number(kind).numpy; }
std::string tensor_class(const ir::Type& t) { return "_Tensor" + std::to_string(t.rank()); }

std::string tree_class(const ir::Type& t) {
  std::string name = "_Tree";
  for (const ir::Type& part : t.parts()) name += std::string("_") + ir::kind_name(part.kind());
  return name;
}

class PythonWrapper {
 public:
  /// `defined` is the name of its definition, and empty where that is the function's.
  PythonWrapper(const StagedFunction& function, std::string symbol, const std::string& defined)
      : f_(*function.module->entry),
        name_(python_name(function.name)),
        defined_(defined.empty() ? name_ : defined),
        symbol_(std::move(symbol)),
        function_(function) {
    parameters_ = parameter_names(f_);
    for (std::size_t i = 0; i < f_.result_types.size(); ++i)
      if (f_.result_types[i].is_tensor()) tensors_.push_back(i);
  }

  const std::string& name() const { return name_; }

  std::string text() {
    std::string text = "\n\n";
    const std::string own = "_c_" + defined_;
    text += "class " + own + "_results(_ctypes.Structure):\n    _fields_ = [(\"message\", _ctypes.c_char_p)";
    std::size_t offset = 8;
    std::vector<std::size_t> offsets;
    for (std::size_t i = 0; i < f_.result_types.size(); ++i) {
      offsets.push_back(offset);
      if (f_.result_types[i].is_tensor()) continue;
      text += ", (\"r" + std::to_string(i) + "\", " + number(f_.result_types[i].kind()).ctypes + "), (\"p" +
              std::to_string(i) + "\", _ctypes.c_char * " +
              std::to_string(8 - size(f_.result_types[i].kind())) + ")";
      offset += 8;
    }
    text += "]\n\n\n" + own + " = _library." + symbol_ + "\n" + own + ".argtypes = (";
    for (const ir::Type& t : f_.parameter_types())
      text += (t.is_scalar() ? number(t.kind()).ctypes : t.is_tensor() ? tensor_class(t) : tree_class(t)) + ", ";
    for (std::size_t i = 0; i <= f_.result_types.size(); ++i) text += "_ctypes.c_void_p, ";
    text.erase(text.size() - 1);
    text += ")\n" + own + ".restype = _ctypes.c_int\n";
    if (!tensors_.empty()) text += own + "_shapes = {}\n";
    text += "\n\ndef " + defined_ + "(" + signature() + ":\n" + (defined_ == name_ ? docstring() : "") + body(own, offsets);
    return text;
  }

 private:
  static std::size_t size(Kind kind) {
    return kind == Kind::boolean ? 1 : kind == Kind::i32 || kind == Kind::f32 ? 4 : 8;
  }

  std::string signature() const {
    std::string text;
    for (std::size_t i = 0; i < parameters_.size(); ++i) {
      const ir::Type& t = f_.body->params[i]->type;
      text += (i ? ", " : "") + parameters_[i] + ": " +
              (t.is_scalar() ? number(t.kind()).python : t.is_tensor() ? "ArrayLike" : "tuple");
    }
    if (!tensors_.empty()) text += std::string(text.empty() ? "" : ", ") + "*, out: Any = None";
    std::string results;
    for (const ir::Type& t : f_.result_types)
      results += (results.empty() ? "" : ", ") +
                 (t.is_scalar() ? number(t.kind()).python : "NDArray[np." + number(t.element()).numpy + "]");
    if (f_.result_types.size() != 1) results = "tuple[" + (results.empty() ? "()" : results) + "]";
    return text + ") -> " + results;
  }

  std::string docstring() const {
    std::vector<std::string> arguments, results;
    for (std::size_t i = 0; i < parameters_.size(); ++i)
      arguments.push_back(parameters_[i] + " : " + described(f_.body->params[i]->type));
    if (!tensors_.empty())
      arguments.push_back("out : " +
                          std::string(f_.result_types.size() == 1 ? "array" : "tuple with an array or None for each result") +
                          ", optional\n    Arrays that the results are written to.");
    for (const ir::Type& t : f_.result_types) results.push_back(described(t));
    return tool::docstring(function_, name_, arguments, results,
                           "Raises\n------\nError\n    An index is out of range, shapes do not fit, there is no memory.\n");
  }

  std::string body(const std::string& own, const std::vector<std::size_t>& offsets) {
    std::string text;
    const auto line = [&](const std::string& s) { text += "    " + s + "\n"; };
    std::vector<std::string> passed, key;
    std::vector<std::size_t> floats;
    const std::string quoted = "\"" + name_ + "\"";
    for (std::size_t i = 0; i < parameters_.size(); ++i) {
      const std::string& x = parameters_[i];
      const ir::Type& t = f_.body->params[i]->type;
      const std::string place = quoted + ", \"" + x + "\", " + x;
      if (t.is_tensor()) {
        const std::string rank = std::to_string(t.rank());
        line("if type(" + x + ") is not _ndarray or " + x + ".dtype is not " + dtype(t.element()) + " or not " + x +
             ".flags.c_contiguous or " + x + ".ndim != " + rank + ":");
        line("    " + x + " = _array(" + place + ", " + dtype(t.element()) + ", " + rank + ")");
        passed.push_back(tensor_class(t) + "(_pointer(" + x + "), *" + x + ".shape)");
        key.push_back(x + ".shape");
      } else if (t.is_tree()) {
        std::string dtypes;
        for (const ir::Type& part : t.parts()) dtypes += dtype(part.kind()) + ", ";
        line(x + ", _held_" + x + " = _tree(" + place + ", (" + dtypes + "), " + tree_class(t) + ")");
        passed.push_back(x);
        key.push_back("len(_held_" + x + "[0])");
      } else {
        if (t.kind() == Kind::i32 || t.kind() == Kind::i64) {
          const std::string bits = t.kind() == Kind::i32 ? "32" : "64";
          const std::string limit = t.kind() == Kind::i32 ? "2147483648" : "9223372036854775808";
          line("if type(" + x + ") is not int or not -" + limit + " <= " + x + " < " + limit + ":");
          line("    " + x + " = _integer(" + place + ", " + bits + ")");
          key.push_back(x);
        } else if (!t.is_bool()) {
          floats.push_back(i);
        }
        passed.push_back(x);
      }
    }
    line("_r = " + own + "_results()");
    const std::size_t several = f_.result_types.size();
    if (!tensors_.empty()) {
      std::string keys = key.size() == 1 ? key[0] : "(";
      for (const std::string& k : key)
        if (key.size() != 1) keys += k + ", ";
      line("_key = " + keys + (key.size() == 1 ? "" : ")"));
      std::string names, nones;
      for (const std::size_t i : tensors_) {
        names += "_o" + std::to_string(i) + ", ";
        nones += "None, ";
      }
      line("if out is None:");
      line("    _shapes = " + own + "_shapes.get(_key)");
      std::size_t k = 0;
      for (const std::size_t i : tensors_) {
        line("    _o" + std::to_string(i) + " = _shapes and _empty(_shapes[" + std::to_string(k++) + "], " +
             dtype(f_.result_types[i].element()) + ")");
      }
      line("else:");
      if (several > 1) {
        line("    if len(out) != " + std::to_string(several) + ":");
        line("        raise ValueError(\"" + name_ + ": out: expected " + std::to_string(several) +
             " elements, got %d\" % len(out))");
      }
      for (const std::size_t i : tensors_) {
        const ir::Type& t = f_.result_types[i];
        const std::string given = several > 1 ? "out[" + std::to_string(i) + "]" : "out";
        line("    _o" + std::to_string(i) + " = _target(" + quoted + ", \"" + given + "\", " + given + ", " +
             dtype(t.element()) + ", " + std::to_string(t.rank()) + ")");
      }
      for (const std::size_t i : tensors_) {
        const std::string o = "_o" + std::to_string(i), c = tensor_class(f_.result_types[i]);
        line("_t" + std::to_string(i) + " = " + c + "() if " + o + " is None else " + c + "(_pointer(" + o + "), *" + o +
             ".shape)");
      }
    }
    for (std::size_t i = 0; i < several; ++i)
      passed.push_back(f_.result_types[i].is_tensor() ? "_byref(_t" + std::to_string(i) + ")"
                                                      : "_byref(_r, " + std::to_string(offsets[i]) + ")");
    passed.push_back("_byref(_r)");
    std::string call = own + "(";
    for (std::size_t i = 0; i < passed.size(); ++i) call += (i ? ", " : "") + passed[i];
    call += ")";
    if (floats.empty()) {
      line("_status = " + call);
    } else {
      std::string names, types, values;
      for (const std::size_t i : floats) {
        names += "\"" + parameters_[i] + "\", ";
        types += number(f_.body->params[i]->type.kind()).ctypes + ", ";
        values += parameters_[i] + ", ";
      }
      line("try:");
      line("    _status = " + call);
      line("except _ctypes.ArgumentError:");
      line("    _refuse(" + quoted + ", (" + names + "), (" + types + "), (" + values + "))");
    }
    if (tensors_.empty()) {
      line("if _status:");
      line("    raise Error(_r.message.decode(errors=\"replace\"))");
    } else {
      line("if _status == 1 or _status and out is not None:");
      line("    raise Error(_r.message.decode(errors=\"replace\"))");
      std::string shapes;
      for (const std::size_t i : tensors_) {
        const std::string n = std::to_string(i);
        line("if _o" + n + " is None or _status:");
        line("    _o" + n + " = _copied(_t" + n + ", " + dtype(f_.result_types[i].element()) + ")");
        shapes += "_o" + n + ".shape, ";
      }
      line("if out is None and (_shapes is None or _status):");
      line("    _remember(" + own + "_shapes, _key, (" + shapes + "))");
    }
    std::string results;
    for (std::size_t i = 0; i < several; ++i)
      results += (i ? ", " : "") + std::string(f_.result_types[i].is_tensor() ? "_o" : "_r.r") + std::to_string(i);
    line("return " + (several == 1 ? results : "(" + results + ")"));
    return text;
  }

  const ir::Function& f_;
  std::string name_, defined_, symbol_;
  const StagedFunction& function_;
  std::vector<std::string> parameters_;
  std::vector<std::size_t> tensors_;  ///< among the results
};

/// The structures that functions pass.
class Structures {
 public:
  void add(const ir::Type& t) {
    if (t.is_scalar()) return;
    if (t.is_tensor()) {
      dtypes_.insert(t.element());
      ranks_.insert(t.rank());
      return;
    }
    has_trees_ = true;
    std::string fields = "(\"left\", _ctypes.c_void_p), (\"right\", _ctypes.c_void_p), ";
    for (std::size_t i = 0; i < t.parts().size(); ++i) {
      dtypes_.insert(t.parts()[i].kind());
      fields += "(\"value" + std::to_string(i) + "\", _ctypes.c_void_p), ";
    }
    trees_.insert("\n\nclass " + tree_class(t) + "(_ctypes.Structure):\n    _fields_ = [" + fields +
                  "(\"root\", _ctypes.c_int64)]\n");
  }

  std::string text() const {
    if (dtypes_.empty()) return {};
    std::string text = python_arrays;
    if (has_trees_) text += python_trees;
    text += "\n\n";
    for (const Kind k : dtypes_) text += dtype(k) + " = _np.dtype(_np." + number(k).numpy + ")\n";
    for (const int r : ranks_) text += "_Tensor" + std::to_string(r) + " = _tensor(" + std::to_string(r) + ")\n";
    for (const std::string& tree : trees_) text += tree;
    return text;
  }

 private:
  std::set<Kind> dtypes_;
  std::set<int> ranks_;
  std::set<std::string> trees_;
  bool has_trees_ = false;
};

}  // namespace

PythonWrappers python_wrappers(const std::vector<StagedFunction>& functions, const std::vector<std::string>& symbols,
                               bool are_private) {
  Structures structures;
  PythonWrappers result;
  for (std::size_t i = 0; i < functions.size(); ++i) {
    const ir::Function& f = *functions[i].module->entry;
    for (const ir::Type& t : f.parameter_types()) structures.add(t);
    for (const ir::Type& t : f.result_types) structures.add(t);
    PythonWrapper wrapper(functions[i], symbols[i], are_private ? "_" + symbols[i] : "");
    result.functions += wrapper.text();
    result.names.push_back(wrapper.name());
  }
  result.structures = structures.text();
  return result;
}

std::string python_module(const std::vector<StagedFunction>& functions, const std::vector<std::string>& symbols,
                          const std::string& library, const Options& options) {
  const PythonWrappers wrappers = python_wrappers(functions, symbols, false);
  std::string names, listed;
  for (const std::string& name : wrappers.names) {
    listed += (names.empty() ? "" : &name == &wrappers.names.back() ? " and " : ", ") + name;
    names += "\"" + name + "\", ";
  }
  const std::string source = std::filesystem::path(options.sources.front()).filename().string();
  return "\"\"\"" + in_docstring(listed + " of " + source) + ", compiled by lanternc " LANTERNC_VERSION ".\n\n" +
         "Generated code: change the C++ source instead. Needs ctypes" +
         (wrappers.structures.empty() ? "" : " and NumPy") + ", nothing else.\n\"\"\"\n" + python_imports +
         wrappers.structures + "\n\n" + required_features(options) + "_library = _load(_base64.b64decode(\n    \"" +
         base64(library) + "\"\n))\n__all__ = [" + names + "\"Error\"]\n" + wrappers.functions;
}

}  // namespace lantern::tool
