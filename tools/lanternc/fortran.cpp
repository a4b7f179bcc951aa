// An interface to C, and a procedure that calls it, for each function.
#include "fortran.hpp"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <set>

#include "differentiable.hpp"
#include "doc_comment.hpp"
#include "fortran_text.hpp"
#include "lantern/codegen/naming.hpp"
#include "lantern/ir/error.hpp"
#include "module_name.hpp"
#include "report.hpp"

namespace lantern::tool {

using namespace core;
using ir::Kind;

namespace {

std::string lower(std::string text) {
  std::ranges::transform(text, text.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

/// Names of one scope, which differ by more than upper and lower case and begin with a letter.
class FortranNames {
 public:
  explicit FortranNames(std::set<std::string> taken) : taken_(std::move(taken)) {}

  std::string unique(std::string name) {
    if (name.front() == '_') name.insert(0, "x");
    name.resize(std::min<std::size_t>(name.size(), 50));  // a compiler takes 63 characters
    while (!taken_.insert(lower(name)).second) name += "_";
    return name;
  }

 private:
  std::set<std::string> taken_;
};

std::string fortran_number(Kind kind) {
  switch (kind) {
    case Kind::boolean:
      return "logical(c_bool)";
    case Kind::i32:
      return "integer(c_int32_t)";
    case Kind::i64:
      return "integer(c_int64_t)";
    case Kind::f32:
      return "real(c_float)";
    default:
      return "real(c_double)";
  }
}

/// "ITEM(1)SEPARATOR...ITEM(n)", and from n down to 1 where `down`.
template <class Item>
std::string series(int n, bool down, const Item& item) {
  std::string text;
  for (int i = 1; i <= n; ++i) text += (i == 1 ? "" : ", ") + item(down ? n + 1 - i : i);
  return text;
}

std::string colons(int rank) {
  return rank == 0 ? "" : "(" + series(rank, false, [](int) { return std::string(":"); }) + ")";
}

/// The array with its dimensions in the other order; `size` names the size of a dimension of the result.
template <class Size>
std::string transposed(const std::string& array, int rank, const Size& size) {
  return "reshape(" + array + ", [" + series(rank, false, size) + "], &\n      order=[" +
         series(rank, true, [](int i) { return std::to_string(i); }) + "])";
}

std::string fortran_tensor(const ir::Type& t) { return "type(lt_tensor_" + std::to_string(std::max(t.rank(), 1)) + "d)"; }

/// A list with an item to a line: lines of Fortran are short.
std::string lines(const std::vector<std::string>& items) {
  std::string text;
  for (std::size_t i = 0; i < items.size(); ++i) text += (i ? ", &\n      " : " &\n      ") + items[i];
  return "(" + text + ")";
}

std::string comment(const std::string& text, const std::string& indent) {
  std::string out = indent + "! ";
  std::size_t column = out.size();
  for (const char c : text) {
    if (c == '\n' || column >= 120) {
      out += "\n" + indent + "! ";
      column = indent.size() + 2;
    }
    if (c == '\n') continue;
    out += c;
    ++column;
  }
  return out + "\n";
}

class Procedure {
 public:
  Procedure(const StagedFunction& function, std::string name, std::string symbol)
      : function_(function), f_(*function.module->entry), name_(std::move(name)), symbol_(std::move(symbol)) {
    FortranNames names({"stat", "errmsg", lower(name_)});
    for (const ir::Value* p : f_.body->params) parameters_.push_back(names.unique(p->name ? codegen::identifier(p->name) : "x"));
    for (std::size_t i = 0; i < f_.result_types.size(); ++i)
      results_.push_back(names.unique(is_function() ? "value" : "value" + std::to_string(i + 1)));
    for (const std::string& p : parameters_) operands_.push_back(names.unique("lt_" + p));
    for (const std::string& r : results_) targets_.push_back(names.unique("lt_" + r));
    for (const std::string& r : results_) pointers_.push_back(names.unique("lt_p_" + r));
    message_ = names.unique("lt_message");
    status_ = names.unique("lt_status");
    text_ = names.unique("lt_text");
  }

  std::string interface() const {
    std::vector<std::string> all;
    std::string declarations;
    for (std::size_t i = 0; i < parameters_.size(); ++i) {
      const ir::Type& t = f_.body->params[i]->type;
      all.push_back("x" + std::to_string(i));
      declarations +=
          "      " + (t.is_tensor() ? fortran_tensor(t) : fortran_number(t.kind())) + ", value :: " + all.back() + "\n";
    }
    for (std::size_t i = 0; i < results_.size(); ++i) {
      const ir::Type& t = f_.result_types[i];
      all.push_back("r" + std::to_string(i));
      declarations += "      " +
                      (t.is_tensor() ? fortran_tensor(t) + ", intent(inout)" : fortran_number(t.kind()) + ", intent(out)") +
                      " :: " + all.back() + "\n";
    }
    all.push_back("message");
    return "    function lt_c_" + name_ + lines(all) + " bind(c, name=\"" + symbol_ + "\")\n      import\n" + declarations +
           "      type(c_ptr), intent(out) :: message\n      integer(c_int) :: lt_c_" + name_ + "\n    end function\n";
  }

  std::string text() const {
    const Documentation said = documentation(function_.loc);
    std::string text = "\n" + (said.comment.empty() ? "" : comment(said.comment, "  "));
    text += comment("The compiled function is " + (said.program.empty() ? name_ : said.program) + ".", "  ");
    std::vector<std::string> all = parameters_;
    if (!is_function()) all.insert(all.end(), results_.begin(), results_.end());
    all.insert(all.end(), {"stat", "errmsg"});
    const std::string kind = is_function() ? "function" : "subroutine";
    text += "  " + kind + " " + name_ + lines(all) + (is_function() ? " result(" + results_[0] + ")" : "") + "\n";
    std::vector<std::string> passed;
    std::string before, after, own;
    for (std::size_t i = 0; i < parameters_.size(); ++i) argument(i, text, own, before, passed);
    for (std::size_t i = 0; i < results_.size(); ++i) result(i, text, own, before, after, passed);
    passed.push_back(message_);
    text += "    integer, intent(out), optional :: stat\n    character(:), allocatable, intent(out), optional :: errmsg\n" + own +
            "    type(c_ptr) :: " + message_ + "\n    integer(c_int) :: " + status_ + "\n    character(:), allocatable :: " + text_ + "\n" +
            before + "    " + status_ +
            " = lt_c_" + name_ + lines(passed) + "\n    call lt_report(\"" + name_ + "\", " + status_ + ", " + message_ +
            ", " + text_ + ", stat)\n    if (present(errmsg)) errmsg = " + text_ + "\n";
    if (!after.empty()) text += "    if (" + status_ + " /= 0) return\n" + after;
    return text + "  end " + kind + "\n";
  }

 private:
  bool is_function() const { return f_.result_types.size() == 1; }

  void argument(std::size_t i, std::string& declared, std::string& own, std::string& before,
                std::vector<std::string>& passed) const {
    const ir::Type& t = f_.body->params[i]->type;
    const std::string &x = parameters_[i], &c = operands_[i];
    if (!t.is_tensor()) {
      declared += "    " + fortran_number(t.kind()) + ", intent(in) :: " + x + "\n";
      passed.push_back(x);
      return;
    }
    const int rank = t.rank();
    const std::string type = fortran_number(t.element());
    declared += "    " + type + ", intent(in)" + (rank == 1 ? ", contiguous" : "") + (rank < 2 ? ", target" : "") + " :: " + x +
                colons(rank) + "\n";
    std::string memory = x;
    if (rank > 1) {
      memory = c;
      own += "    " + type + ", allocatable, target :: " + c + colons(rank) + "\n";
      before += "    " + c + " = " +
                transposed(x, rank, [&](int r) { return "size(" + x + ", " + std::to_string(rank + 1 - r) + ")"; }) + "\n";
    }
    const auto size = [&](int r) { return "size(" + x + ", " + std::to_string(r) + ", c_int64_t)"; };
    const std::string sizes = rank == 0 ? "1_c_int64_t" : series(rank, false, size);
    passed.push_back("lt_tensor_" + std::to_string(std::max(rank, 1)) + "d(c_loc(" + memory + "), [" + sizes + "])");
  }

  void result(std::size_t i, std::string& declared, std::string& own, std::string& before, std::string& after,
              std::vector<std::string>& passed) const {
    const ir::Type& t = f_.result_types[i];
    const std::string &r = results_[i], &c = targets_[i], &p = pointers_[i];
    const std::string out = is_function() ? "" : ", intent(out)";
    if (!t.is_tensor()) {
      declared += "    " + fortran_number(t.kind()) + out + " :: " + r + "\n";
      passed.push_back(r);
      return;
    }
    const int rank = t.rank();
    declared +=
        "    " + fortran_number(t.element()) + (rank == 0 ? "" : ", allocatable") + out + " :: " + r + colons(rank) + "\n";
    own += "    " + fortran_tensor(t) + " :: " + c + "\n    " + fortran_number(t.element()) + ", pointer :: " + p + colons(rank) +
           "\n";
    if (rank > 0) {  // a function that fails gives an array of no elements
      before += "    allocate(" + r + "(" + series(rank, false, [](int) { return std::string("0"); }) + "))\n";
    }
    passed.push_back(c);
    const auto dim = [&](int d) { return c + "%dim(" + std::to_string(d) + ")"; };
    after += "    call c_f_pointer(" + c + "%data, " + p + (rank == 0 ? "" : ", [" + series(rank, true, dim) + "]") + ")\n";
    after += "    " + r + " = " + (rank < 2 ? p : transposed(p, rank, dim)) + "\n";
  }

  const StagedFunction& function_;
  const ir::Function& f_;
  std::string name_, symbol_, message_, status_, text_;
  std::vector<std::string> parameters_, results_;
  std::vector<std::string> operands_, targets_, pointers_;  ///< what these are to C
};

}  // namespace

std::string fortran_module(const std::vector<StagedFunction>& functions, const std::vector<std::string>& symbols,
                           const Options& options) {
  refuse_trees(functions, "fortran", "Fortran");
  const std::filesystem::path source = options.sources.front();
  const std::string module = module_name(options);
  std::set<std::string> known{lower(module)};
  std::set<int> ranks;
  std::string names, interfaces, procedures;
  for (std::size_t i = 0; i < functions.size(); ++i) {
    const StagedFunction& function = functions[i];
    const ir::Function& f = *function.module->entry;
    const std::string name = function.name.front() == '_' ? "x" + function.name : function.name;
    if (!known.insert(lower(name)).second)
      throw PlacedError(function.loc.str() + ": error: --emit=fortran: " + function.name + " is in Fortran the name of " +
                        (lower(name) == lower(module) ? "the module too; choose another output by -o"
                                                      : "another function too, which differs by upper and lower case; rename one"));
    for (const ir::Type& t : f.parameter_types())
      if (t.is_tensor()) ranks.insert(std::max(t.rank(), 1));
    for (const ir::Type& t : f.result_types)
      if (t.is_tensor()) ranks.insert(std::max(t.rank(), 1));
    const Procedure procedure(function, name, symbols[i]);
    names += "  public :: " + name + "\n";
    interfaces += procedure.interface();
    procedures += procedure.text();
  }
  std::string types;
  for (const int rank : ranks) {
    const std::string type = "lt_tensor_" + std::to_string(rank) + "d";
    types += "\n  type, bind(c) :: " + type + "\n    type(c_ptr) :: data = c_null_ptr\n    integer(c_int64_t) :: dim(" +
             std::to_string(rank) + ") = 0\n  end type\n";
  }
  return "! " + source.filename().string() + " for Fortran, compiled by lanternc " LANTERNC_VERSION
         ". Generated code: change the C++ source instead.\n"
         "! Link it with the object that lanternc --emit=object makes of the same source.\nmodule " +
         module + "\n  use, intrinsic :: iso_c_binding\n  implicit none\n  private\n" + names + types + "\n  interface\n" + interfaces +
         fortran_helpers + procedures + "end module\n";
}

}  // namespace lantern::tool
