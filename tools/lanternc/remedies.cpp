// Each rule reads one wording of g++ and one of Clang. Types are quoted: 'D' (aka 'Rep<double>'), or with aka in braces.
#include "remedies.hpp"

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "lantern/ir/text.hpp"

namespace lantern::tool {

namespace {

using std::string_view;
using Remedy = std::optional<std::string>;

bool has(string_view text, string_view part) { return text.find(part) != string_view::npos; }

/// What lies between the first `before` and the next `after`.
std::optional<string_view> between(string_view text, string_view before, string_view after) {
  const std::size_t from = text.find(before);
  if (from == string_view::npos) return std::nullopt;
  text.remove_prefix(from + before.size());
  const std::size_t to = text.find(after);
  return to == string_view::npos ? std::nullopt : std::optional(text.substr(0, to));
}

/// A remedy; docs/messages.md has a row for each.
Remedy told(std::string words) { return words; }

bool is_number(string_view type) {
  constexpr std::array<string_view, 12> numbers{"double", "float",         "bool",        "int",
                                                "long",   "long int",      "unsigned int", "unsigned long",
                                                "size_t", "std::size_t", "int64_t",     "long unsigned int"};
  return std::ranges::find(numbers, type) != numbers.end();
}

/// How many numbers of C++, or references to them, a list of types has; 0 if one of them is something else.
int of_numbers(string_view types) {
  for (int count = 1;; ++count) {
    const std::size_t end = std::min(types.find(','), types.size());
    string_view one = ir::trimmed(types.substr(0, end));
    if (one.starts_with("const ")) one.remove_prefix(6);
    while (one.ends_with('&')) one.remove_suffix(1);
    if (!is_number(one)) return 0;
    if (end == types.size()) return count;
    types.remove_prefix(end + 1);
  }
}

/// A Rep that is to become a number of C++.
Remedy conversion(string_view error) {
  struct Wording {
    string_view begin, to, end;
  };
  constexpr std::array<Wording, 6> wordings{{{"cannot convert ‘", "to ‘", "’"},
                                             {"invalid cast from type ‘", "to type ‘", "’"},
                                             {"invalid ‘static_cast’ from type ‘", "to type ‘", "’"},
                                             {"no viable conversion from '", "to '", "'"},
                                             {"no matching conversion for static_cast from '", "to '", "'"},
                                             {"cannot convert '", "to '", "'"}}};
  for (const Wording& w : wordings) {
    if (!error.starts_with(w.begin)) continue;
    const std::size_t at = error.rfind(w.to);
    if (at == string_view::npos || !has(error.substr(0, at), "Rep<") || has(error, "host_out<")) return std::nullopt;
    const auto type = between(error.substr(at), w.to, w.end);
    if (!type || !is_number(*type)) return std::nullopt;
    return told("a Rep has no value yet, so it is no " + std::string(*type) +
           ": keep what is computed of it in a Rep (or write auto); cast<T>(x) makes a Rep<T> of a Rep");
  }
  return std::nullopt;
}

/// What a quoted type means, where the quotation begins: 'A' (aka 'B') and ‘A’ {aka ‘B’} are B.
string_view meant(string_view quoted, string_view quote) {
  const string_view written = quoted.substr(0, quoted.find(quote));
  for (const string_view aka : {string_view("’ {aka ‘"), string_view("' (aka '")})
    if (quoted.substr(written.size()).starts_with(aka)) {
      const string_view inner = quoted.substr(written.size() + aka.size());
      return inner.substr(0, inner.find(quote));
    }
  return written;
}

/// Rep<Tensor<double, dyn>> is a Rep of a Tensor.
bool is_rep_of(string_view type, string_view tag) {
  type.remove_prefix(std::min(type.find("Rep<") + 4, type.size()));
  if (type.starts_with("lantern::core::")) type.remove_prefix(string_view("lantern::core::").size());
  return type.starts_with(tag);
}

/// How a number's type is written between < and > of Rep and cast.
string_view written(string_view number) {
  if (number == "long" || number == "long int") return "int64_t";
  return number == "int" ? "int32_t" : number;
}

/// A Rep of one number that is to become a Rep of another: return n, where a Rep<double> is returned.
Remedy between_reps(string_view error) {
  constexpr std::array<string_view, 3> begins{"could not convert ‘", "conversion from ‘", "no viable conversion from "};
  if (std::ranges::none_of(begins, [&](string_view begin) { return error.starts_with(begin); })) return std::nullopt;
  const bool gcc = has(error, "‘");
  const string_view open = gcc ? "from ‘" : "from '", of_returned = "of type '", quote = gcc ? "’" : "'";
  std::size_t from = gcc ? error.find(open) + open.size() : error.find('\'') + 1;
  if (!gcc && has(error, of_returned)) from = error.find(of_returned) + of_returned.size();
  std::size_t to = error.npos;
  for (const string_view before : {"’ to ‘", "} to ‘", "type ‘", "' to '", ") to '", "type '"})
    if (const std::size_t at = error.rfind(before); at != error.npos && (to == error.npos || at + before.size() > to)) to = at + before.size();
  if (from > error.size() || to > error.size() || to <= from) return std::nullopt;
  const auto number_of = [&](string_view quoted) {
    const string_view type = meant(quoted, quote);
    const auto number = is_rep(type) ? between(type, "Rep<", ">") : std::nullopt;
    return number && is_number(*number) ? *number : string_view();
  };
  const string_view given = number_of(error.substr(from)), wanted = number_of(error.substr(to));
  const string_view whole = meant(error.substr(from), quote);
  if (given.empty() && !wanted.empty() && is_rep(whole) && (is_rep_of(whole, "Array<") || is_rep_of(whole, "Tensor<")))
    return told("expected one number, got an array or tensor of them: sum(a) and dot(a, b) give one, a[i] and m(i, j) an element");
  if (given.empty() || wanted.empty() || given == wanted) return std::nullopt;
  const std::string type(written(wanted));
  return told("expected a Rep<" + type + ">, got a Rep<" + std::string(written(given)) + ">: write cast<" + type + ">(x)");
}

/// a[x] of a number with a fraction, m[i] of a matrix.
Remedy element(string_view error, const std::vector<string_view>& notes) {
  const auto found = indexing(error, notes);
  if (!found || !is_rep(found->container)) return std::nullopt;
  if (is_rep_of(found->container, "Tensor<")) {
    const bool declared = has(between(found->container, "Tensor<", ">").value_or(""), ",");
    if (!declared) return told("an element of a tensor is t(i), m(i, j) or such, with an index for each of its dimensions; m.row(i) is a row");
    return told("an element of a tensor is m(i, j), a row of a matrix m.row(i)");
  }
  const string_view index = found->index;
  const bool fraction = index == "double" || index == "float" ||
                        (is_rep(index) && (is_rep_of(index, "double") || is_rep_of(index, "float")));
  if (is_rep_of(found->container, "Array<") && fraction) return told("an index is an integer: write a[cast<int64_t>(x)]");
  return std::nullopt;
}

/// Operators that Rep has not, or not for numbers with a fraction.
Remedy other_operator(string_view error) {
  if (!has(error, "Rep<")) return std::nullopt;
  // s += x, where s is a number of C++.
  for (const char symbol : {'+', '-', '*', '/'}) {
    const std::string begin = "no match for ‘operator" + std::string(1, symbol) + "=’ (operand types are ‘";
    const auto left = error.starts_with(begin) ? between(error, begin, "’") : std::nullopt;
    if (left && is_number(*left))
      return told("a Rep has no value yet, so a variable of type " + std::string(*left) +
                  " cannot hold it: declare the variable as a Rep, Rep<double> s = 0.0 for instance");
  }
  // 0.0 < x < 1.0
  for (const string_view symbol : {"<", ">", "<=", ">="}) {
    const std::string begin = "no match for ‘operator" + std::string(symbol) + "’ (operand types are ‘";
    const auto left = error.starts_with(begin) ? between(error, begin, "’") : std::nullopt;
    const bool clang = error.starts_with("invalid operands to binary expression ('Rep<bool>' ") || error.starts_with("invalid operands to binary expression ('Rep<bool>') ");
    if (clang || (left && has(*left, "Rep<bool>")))
      return told("a comparison gives a truth value, which is not compared again: write a < x && x < b with lanternc, AND(a < x, [&] { "
                  "return x < b; }) elsewhere");
  }
  if (has(error, "no match for ‘operator%’")) return told("% is of integers: fmod(x, y) is the remainder of numbers with a fraction");
  if (has(error, "no match for ‘operator^’")) return told("^ is no power: write pow(x, y), or x * x");
  if (const auto left = between(error, "invalid operands to binary expression ('", "'");
      left && is_number(*left))
    return told(
        "these types have no such operator: a variable that takes a Rep is a Rep, Rep<double> s = 0.0 for "
        "instance; "
        "fmod(x, y) is the remainder, pow(x, y) the power");
  if (error.starts_with("invalid operands to binary expression ('") &&
      (has(error, "Rep<double>") || has(error, "Rep<float>")))
    return told(
        "these types have no such operator: fmod(x, y) is the remainder of numbers with a fraction, pow(x, "
        "y) the power");
  if (has(error, "no match for ‘operator++’") || has(error, "no match for ‘operator--’") ||
      error.starts_with("cannot increment value of type '") || error.starts_with("cannot decrement value of type '"))
    return told("a Rep has no ++ and --: write n += 1, n -= 1");
  return std::nullopt;
}

/// double y = df(x), y[0] and h[0][0] of what a compiled function gives.
Remedy result_of_call(string_view error, string_view line) {
  constexpr string_view parts = "write const auto [y, slope] = df(x), a name for each, or std::get<0>(df(x))";
  const bool gcc = error.starts_with("cannot convert ‘"), clang = error.starts_with("no viable conversion from '");
  if ((gcc || clang) && has(error, "host_out<")) {
    const string_view given = meant(error.substr(error.find(gcc ? "‘" : "'") + (gcc ? string_view("‘").size() : 1)), gcc ? "’" : "'");
    if (given.starts_with("std::tuple<") || given.starts_with("tuple<"))
      return told("the compiled function gives several values, in a std::tuple: " + std::string(parts));
    return told("the compiled function gives a " + std::string(given) + ": write const auto y = df(x)");
  }
  constexpr string_view no_index = "no match for ‘operator[]’ (operand types are ‘";
  if ((error.starts_with(no_index) && meant(error.substr(no_index.size()), "’").starts_with("std::tuple<")) ||
      (error.starts_with("type '") && has(error, "tuple<") && has(error, "does not provide a subscript operator")))
    return told("a std::tuple has no [i]: " + std::string(parts));
  const bool number = (error.starts_with("invalid types ‘") && has(error, "[int]’ for array subscript")) ||
                      error.starts_with("subscripted value is not an array");
  if (number && has(line, "]["))
    return told("a number has no [i]: an element of a matrix that a compiled function gives is m(i, j)");
  return std::nullopt;
}

/// n > 0 ? x : n of two Reps.
Remedy sides_of_choice(string_view error) {
  if (!has(error, "Rep<") ||
      (!error.starts_with("operands to ‘?:’ have different types") && !error.starts_with("incompatible operand types (")))
    return std::nullopt;
  return told("the two sides of ?: have different types: write cast<double>(n) where one is a Rep of integers");
}

/// std::sort(v.begin(), v.end()) of Reps.
Remedy algorithm(string_view error, string_view line) {
  const bool bool_of_rep = (error.starts_with("cannot convert ‘") && has(error, "Rep<bool>") && has(error, "to ‘bool’")) ||
                           (error.starts_with("no viable conversion from ") && has(error, "'Rep<bool>'") && has(error, "'bool'"));
  if (!bool_of_rep) return std::nullopt;
  for (const string_view name : {"sort", "stable_sort", "nth_element", "max_element", "min_element", "minmax_element", "lower_bound",
                                 "upper_bound", "binary_search", "find", "count", "is_sorted"}) {
    const std::string written = "std::" + std::string(name);
    if (has(line, written + "(") || has(line, "ranges::" + std::string(name) + "("))
      return told(written + " branches on values that are not there yet: of an array there are sort(a), argsort(a), max(a), argmax(a) in "
                  "<lantern/tensor.hpp>, of numbers max({x, y, z})");
  }
  return std::nullopt;
}

/// size(a), where no variable of the user's has that name.
Remedy size_function(string_view error, string_view line) {
  for (const string_view name : {"size", "len", "length"})
    if ((error.starts_with("‘" + std::string(name) + "’ was not declared") ||
         error.starts_with("use of undeclared identifier '" + std::string(name) + "'")) &&
        has(line, std::string(name) + "("))
      return told("the size of an array is a.size(), of dimension k of a tensor t.dim(k)");
  return std::nullopt;
}

/// What is declared in <cmath>, or is called otherwise here.
Remedy name_of_library(string_view error, const std::vector<string_view>& notes) {
  const auto undeclared = [&](string_view name) {
    return error.starts_with("‘" + std::string(name) + "’ was not declared") ||
           error.starts_with("use of undeclared identifier '" + std::string(name) + "'");
  };
  for (const string_view name : {"M_PI", "M_E", "INFINITY", "NAN", "HUGE_VAL"})
    if (undeclared(name)) return told("write #include <cmath>: " + std::string(name) + " is there");
  const bool of_rep = has(error, "Rep<");
  const auto no_member = [&](string_view name) {
    return of_rep && (has(error, "has no member named ‘" + std::string(name) + "’") || error.starts_with("no member named '" + std::string(name) + "'"));
  };
  for (const string_view name : {"len", "length", "count", "shape"})
    if (no_member(name)) return told("the size of an array is a.size(), of dimension k of a tensor t.dim(k)");
  for (const string_view name : {"isnan", "isinf", "isfinite"})
    if (undeclared(name) || error.starts_with("‘" + std::string(name) + "’ is not a member of ‘std’") ||
        error.starts_with("no member named '" + std::string(name) + "' in namespace 'std'"))
      return told("there is no " + std::string(name) + " of a Rep: x != x holds of NaN alone; for a C++ number write #include <cmath>");
  if (has(error, "static assertion failed") && error.ends_with("result_type must be a floating point type"))
    return told("random numbers that a program draws when it runs are random::normal<double>(key, n), in <lantern/random.hpp>; those of "
                "std are drawn once, while it is staged");
  for (const string_view name : {"exp", "log", "sqrt", "sin", "cos", "tan", "tanh", "sinh", "cosh", "asin", "acos", "atan", "cbrt", "erf",
                                 "log1p", "expm1", "floor", "ceil", "fabs", "pow", "atan2", "hypot", "fmod"}) {
    const auto arguments = between(error, "no matching function for call to ‘" + std::string(name) + "(", ")’");
    const bool of_two = name == "pow" || name == "atan2" || name == "hypot" || name == "fmod";
    const bool gcc = arguments && of_numbers(*arguments) == (of_two ? 2 : 1);
    const bool clang = error == "no matching function for call to '" + std::string(name) + "'" && name != "pow" &&
                       std::ranges::any_of(notes, [](string_view note) {
                         const auto given = between(note, "'Rep<T>' against '", "'");
                         return given && of_numbers(*given) == 1;
                       });
    if (gcc || clang) return told("write #include <cmath>: " + std::string(name) + " of a double is there");
  }
  return std::nullopt;
}

/// pow(x, n) of a Rep of integers.
Remedy mixed_power(string_view error, const std::vector<string_view>& notes) {
  const bool gcc = error.starts_with("no matching function for call to ‘pow(") || error.starts_with("no matching function for call to ‘std::pow(");
  if (!gcc && error != "no matching function for call to 'pow'") return std::nullopt;
  if (!has(error, "Rep<") && !has(error, "D&") && std::ranges::none_of(notes, [](string_view note) { return has(note, "Rep<"); }))
    return std::nullopt;
  return told("pow takes two numbers of one type: write pow(x, cast<double>(n))");
}

/// LANTERN_FUNCTION(grad(f)), without a name.
Remedy nameless_function(string_view error, string_view line) {
  constexpr string_view macro = "LANTERN_FUNCTION(";
  const std::size_t at = line.find(macro);
  if (at == string_view::npos || !error.starts_with("expected ")) return std::nullopt;
  int depth = 0;
  for (const char c : line.substr(at + macro.size())) {
    depth += c == '(' || c == '{' ? 1 : c == ')' || c == '}' ? -1 : 0;
    if (depth < 0) return told("LANTERN_FUNCTION takes a name and a function: LANTERN_FUNCTION(df, grad(f))");
    if (c == ',' && depth == 0) break;
  }
  return std::nullopt;
}

Remedy iterators(string_view error) {
  if (!has(error, "Array<") || !has(error, "Rep<")) return std::nullopt;
  for (const string_view name : {"begin", "end"})
    if (has(error, "has no member named ‘" + std::string(name) + "’") ||
        error.starts_with("no member named '" + std::string(name) + "'"))
      return told(
          "an array of a program has no iterators: write sum(a), FOR(0, a.size(), init, [&](auto i, auto s) "
          "{ return ...; }), "
          "or let lanternc rewrite for (Rep<double> x : a)");
  return std::nullopt;
}

/// A way through a function that ends without a return. After rewriting it may be the only one that the compiler sees.
Remedy missing_return(string_view error) {
  for (const string_view words :
       {"no return statement in function returning non-void", "control reaches end of non-void function",
        "non-void function does not return a value"})
    if (error.starts_with(words))
      return told("a way through this function ends without a return: write one at its end");
  return std::nullopt;
}

/// grad(f) inside of a class whose member f is, and grad(&S::f)(x).
Remedy member_function(string_view error) {
  const bool named = error.starts_with("invalid use of non-static member function") ||
                     error.starts_with("reference to non-static member function must be called") ||
                     error.starts_with("must explicitly qualify name of member function");
  const bool called = (error.starts_with("no match for call to ‘(") ||
                       error.starts_with("no matching function for call to object of type '")) &&
                      has(error, "::*)(") && has(error, "Rep<");
  if (!named && !called) return std::nullopt;
  return told(
      "a member function needs its object: write a lambda over it, grad([&](Rep<double> x) { return s.f(x); "
      "}), or "
      "[this](Rep<double> x) { return f(x); } inside the class");
}

/// [](auto i, auto s) { return s + x; }, where x is of the function around.
Remedy not_captured(string_view error) {
  auto name = between(error, "‘", "’ is not captured");
  if (!name)
    name =
        between(error, "variable '", "' cannot be implicitly captured in a lambda with no capture-default");
  return name && error.find(*name) < 12
             ? told("the lambda does not capture " + std::string(*name) + ": write [&]")
             : std::nullopt;
}

/// Rep<double> x = solvers::brent(...), which gives a struct, and 2.0 * solvers::brent(...).
Remedy solver_result(string_view error) {
  constexpr std::array<string_view, 5> begins{"could not convert ‘", "conversion from ‘", "no viable conversion from ",
                                              "no match for ‘operator", "invalid operands to binary expression ("};
  if (std::ranges::none_of(begins, [&](string_view begin) { return error.starts_with(begin); }))
    return std::nullopt;
  for (const string_view name : {"Root", "Minimum", "Fit", "Optimum", "Integrated", "Events"}) {
    // Clang leaves the namespace out.
    if (!has(error, "solvers::" + std::string(name) + "<") && !has(error, "'" + std::string(name) + "<")) continue;
    const string_view member = name == "Integrated" || name == "Events" ? "y" : "x";
    return told("a solver gives a struct: its member " + std::string(member) +
                " is the solution, solvers::solve(...)." + std::string(member) +
                " for instance; others say whether it was found");
  }
  return std::nullopt;
}

/// Rep<Array<double>> v(n), v = {x, y}, and std::vector<double> v(n), where n is a Rep.
Remedy made_array(string_view error) {
  const bool array = has(error, "Rep<lantern::core::Array<") || has(error, "Rep<Array<");
  const bool list = error.starts_with("could not convert ‘{") || error.starts_with("no viable conversion from '<braced-init") ||
                    error.starts_with("non-aggregate type 'Rep<Array<") || has(error, "initializer list");
  const bool made = error.starts_with("no matching constructor for initialization of '") || error.starts_with("no matching function for call to ‘");
  if (array && (list || error.starts_with("no matching constructor for initialization of 'Rep<Array<") ||
                error.starts_with("no matching function for call to ‘lantern::core::Rep<lantern::core::Array<")))
    return told("an array of n elements is fill(Rep<double>(0.0), n); its elements are set by v = v.set(0, x), or v[0] = x with lanternc; "
                "constant_table({1.0, 2.0}) is one of plain numbers");
  const bool vector = error.starts_with("no matching constructor for initialization of 'std::vector<") ||
                      (error.starts_with("no matching function for call to ‘std::vector<") && has(error, "::vector("));
  const std::size_t arguments = error.rfind("::vector(");
  if (made && vector && (arguments == string_view::npos || has(error.substr(arguments), "Rep<")) && (arguments != string_view::npos || has(error, "Rep<")))
    return told("the size of a std::vector is known while the program is staged: write fill(Rep<double>(0.0), n), an array, where a "
                "Rep gives the size");
  return std::nullopt;
}

/// Rep<unsigned>, Rep<long double>.
Remedy other_element(string_view error) {
  if (!has(error, "detail::Host<lantern::core::Rep<") && !has(error, "'Host<lantern::core::Rep<") && !has(error, "Host<Rep<")) return std::nullopt;
  const std::size_t at = error.find("Rep<", error.find("Host<")) + 4;
  const string_view type = ir::trimmed(error.substr(at, error.find('>', at) - at));
  return told("there is no Rep<" + std::string(type) + ">: a Rep holds a bool, int32_t, int64_t, float or double, or an Array, Tensor or "
              "Tree of them");
}

/// #include <lantern.hpp>, and grad by the name that others have for it.
Remedy other_name(string_view error) {
  if (error.starts_with("lantern.hpp: No such file") || error.starts_with("'lantern.hpp' file not found"))
    return told("write #include <lantern/lantern.hpp>");
  if ((error.starts_with("Eigen/") && has(error, ": No such file")) || (error.starts_with("'Eigen/") && has(error, "' file not found")))
    return told("the headers of Eigen are not found: write -I/usr/include/eigen3, or where they are, behind lanternc");
  if (error.starts_with("‘clamp’ was not declared") || error.starts_with("use of undeclared identifier 'clamp'"))
    return told("write clip(x, lo, hi), or std::clamp");
  for (const string_view name : {"gradient", "derivative", "differentiate", "diff"})
    if (error.starts_with("‘" + std::string(name) + "’ was not declared") ||
        error.starts_with("use of undeclared identifier '" + std::string(name) + "'"))
      return told("there is no " + std::string(name) +
                  ": a derivative is grad(f); others are value_and_grad, jacobian, hessian, jvp and vjp");
  return std::nullopt;
}

/// Two LANTERN_FUNCTIONs of one name.
Remedy same_name(string_view error) {
  auto name = between(error, "redefinition of ‘auto lantern_program_", "()’");
  if (!name) name = between(error, "redefinition of 'lantern_program_", "'");
  if (!name) return std::nullopt;
  return told("there are two LANTERN_FUNCTIONs of the name '" + std::string(*name) + "'; rename one");
}

/// auto [a, b] = x, where x is one Rep.
Remedy binding(string_view error) {
  if (!error.starts_with("cannot decompose ") || !has(error, "Rep<")) return std::nullopt;
  return told("expected one name: a Rep is one value, and no tuple of several");
}

/// A function of C++ that is called with a Rep.
Remedy function_of_values(string_view error, const std::vector<string_view>& notes) {
  std::optional<string_view> name = between(error, "no matching function for call to ‘", "(");
  if (!name) name = between(error, "no matching function for call to '", "'");
  if (!name || *name != "to_string") return std::nullopt;
  if (std::ranges::none_of(notes, [](string_view note) { return has(note, "Rep<"); })) return std::nullopt;
  return told("a Rep has no value yet; print(x, \"x\") prints it when the program runs");
}

std::string text_of(const std::filesystem::path& file) {
  std::ifstream in(file);
  return {std::istreambuf_iterator<char>(in), {}};
}
/// Whether users may call what a header declares here: it is in no namespace detail.
bool is_public(string_view header, std::size_t at) {
  const std::size_t opened = header.rfind("\nnamespace ", at), closed = header.rfind("\n}  // namespace", at);
  if (opened == string_view::npos || (closed != string_view::npos && closed > opened)) return true;
  return !header.substr(opened + 1).starts_with("namespace detail ");
}
/// Whether a file declares a public function of this name: behind its type, at the beginning of a line or behind
/// [[nodiscard]]. Other lines that are indented may be variables of functions.
bool declares(const std::filesystem::path& file, const std::string& name) {
  const std::string text = text_of(file);
  const std::string declared = " " + name + "(";
  for (std::size_t at = text.find(declared, 1); at != std::string::npos; at = text.find(declared, at + 1)) {
    const std::size_t line = text.rfind('\n', at) + 1;
    const bool declared_here =
        ir::is_word(text[line]) || ir::trimmed(string_view(text).substr(line, at - line)).starts_with("[[nodiscard]]");
    if (declared_here && is_public(text, at)) return true;
  }
  return false;
}

/// Behind the parenthesis that closes the one at `open`; npos where none does.
std::size_t behind_parenthesis(string_view text, std::size_t open) {
  int depth = 0;
  for (std::size_t i = open; i < text.size(); ++i) {
    if (text[i] == '(') ++depth;
    if (text[i] == ')' && --depth == 0) return i + 1;
  }
  return string_view::npos;
}

/// The names of a declaration's parameters, f(a, b...), without those that have a default value.
std::string parameter_names(string_view name, string_view parameters) {
  std::string names;
  int depth = 0;
  std::size_t begin = 0;
  for (std::size_t i = 0; i <= parameters.size(); ++i) {
    const char c = i < parameters.size() ? parameters[i] : ',';
    if (c == '<' || c == '(' || c == '{') ++depth;
    if (c == '>' || c == ')' || c == '}') --depth;
    if (c != ',' || depth != 0) continue;
    const string_view one = ir::trimmed(parameters.substr(begin, i - begin));
    begin = i + 1;
    std::size_t at = one.size();
    while (at > 0 && ir::is_word(one[at - 1])) --at;
    if (one.find('=') != string_view::npos || at == one.size()) continue;
    names += (names.empty() ? "" : ", ") + std::string(one.substr(at)) +
             (one.find("...") != string_view::npos ? "..." : "");
  }
  return std::string(name) + "(" + names + ")";
}

/// A call as a comment shows it: name(a, b), and ", or without options" where that follows.
std::optional<std::string> shown_call(string_view comment, string_view name) {
  const std::string begin = std::string(name) + "(";
  for (std::size_t at = comment.find(begin); at != string_view::npos; at = comment.find(begin, at + 1)) {
    const std::size_t end = behind_parenthesis(comment, at + name.size());
    if (end == string_view::npos || (at > 0 && (ir::is_word(comment[at - 1]) || comment[at - 1] == '`')))
      continue;
    const string_view behind = comment.substr(end);
    const std::size_t more = behind.starts_with(", or ") ? behind.find_first_of(".;:(") : 0;
    return std::string(comment.substr(at, end - at)) + std::string(behind.substr(0, more));
  }
  return std::nullopt;
}

/// The comment right above the line that begins at `line`, in one line.
std::string comment_above(string_view text, std::size_t line) {
  std::string comment;
  while (line > 0) {
    const std::size_t before = line == 1 ? 0 : text.rfind('\n', line - 2) + 1;
    const string_view one = ir::trimmed(text.substr(before, line - before));
    line = before;
    if (one.starts_with("///"))
      comment = std::string(ir::trimmed(one.substr(3))) + " " + comment;
    else if (!comment.empty() ||
             !(one.starts_with("template") || one.starts_with("requires") || one.starts_with("[[")))
      break;
  }
  return comment;
}

/// How the functions of this name that a header declares are called.
void add_calls(const std::filesystem::path& file, const std::string& name, std::vector<std::string>& calls) {
  const std::string text = text_of(file), declared = " " + name + "(";
  for (std::size_t at = text.find(declared); at != std::string::npos; at = text.find(declared, at + 1)) {
    const std::size_t line = text.rfind('\n', at) + 1,
                      end = behind_parenthesis(text, at + declared.size() - 1);
    const bool declared_here =
        ir::is_word(text[line]) || string_view(text).substr(line).starts_with("[[nodiscard]]");
    if (!declared_here || string_view(text).substr(line).starts_with("return ") || end == std::string::npos ||
        !is_public(text, at))
      continue;
    const std::size_t open = at + declared.size();
    auto call = shown_call(comment_above(text, line), name);
    if (!call) call = parameter_names(name, string_view(text).substr(open, end - 1 - open));
    if (std::ranges::find(calls, *call) == calls.end()) calls.push_back(*call);
  }
}

bool any_declares(const std::filesystem::path& folder, const std::string& name) {
  std::error_code none;
  return std::ranges::any_of(std::filesystem::directory_iterator(folder, none), [&](const auto& file) {
    return file.path().extension() == ".hpp" && declares(file.path(), name);
  });
}

/// A function of Lantern's that is called with other arguments than it takes.
Remedy other_arguments(string_view error, const std::vector<string_view>& notes, string_view line, const std::string& include) {
  constexpr std::array<string_view, 2> begins{"no matching function for call to ‘",
                                              "no matching function for call to '"};
  const auto begin = std::ranges::find_if(begins, [&](string_view b) { return error.starts_with(b); });
  if (begin == begins.end() || include.empty()) return std::nullopt;
  string_view name = error.substr(begin->size());
  name = name.substr(0, std::ranges::find_if_not(name, ir::is_word) - name.begin());
  const bool ours = std::ranges::any_of(notes, [&](string_view note) {
    return has(note, "lantern::") && has(note, "::" + std::string(name) + "(");
  });
  const bool given_types = has(line, std::string(name) + "<");
  if (name.empty() || !ours || given_types) return std::nullopt;
  std::vector<std::filesystem::path> headers;
  std::error_code none;
  for (const auto& file : std::filesystem::recursive_directory_iterator(
           std::filesystem::path(include) / "lantern" / "compiler", none))
    if (file.path().extension() == ".hpp") headers.push_back(file.path());
  std::ranges::sort(headers);
  std::vector<std::string> calls;
  bool in_tensor = false;
  for (const auto& header : headers) {
    const std::size_t before = calls.size();
    add_calls(header, std::string(name), calls);
    in_tensor |= calls.size() > before && header.parent_path().filename() == "tensor";
  }
  if (calls.empty() || calls.size() > 4) return std::nullopt;
  std::string all;
  for (const std::string& call : calls) all += (all.empty() ? "" : "; or ") + call;
  return told("no " + std::string(name) + " takes these arguments: it is called as " + all + (in_tensor ? "; some of it is in <lantern/tensor.hpp>" : ""));
}

/// Whether a line calls a function of this name: name(...) or name<...>(...).
bool calls(string_view line, string_view name) {
  for (std::size_t at = line.find(name); at != string_view::npos; at = line.find(name, at + 1)) {
    const string_view behind = line.substr(at + name.size());
    if ((at == 0 || !ir::is_word(line[at - 1])) && (behind.starts_with('(') || behind.starts_with('<'))) return true;
  }
  return false;
}

/// A name of one of the headers beside lantern.hpp. A name that is not called is more likely a variable of the user's
/// than one of Lantern's functions.
Remedy missing_header(string_view error, const std::vector<string_view>& notes, string_view line, const std::string& include) {
  std::optional<string_view> name;
  if (error.starts_with("‘") && (has(error, "’ was not declared") || has(error, "’ has not been declared")))
    name = between(error, "‘", "’");
  else if (error.starts_with("use of undeclared identifier '"))
    name = between(error, "'", "'");
  if (include.empty()) return std::nullopt;
  const std::filesystem::path lantern = std::filesystem::path(include) / "lantern";
  const auto of_tensors = [&](string_view n) {
    return has(text_of(lantern / "tensor.hpp"), "using core::" + std::string(n) + ";") ||
           any_declares(lantern / "compiler" / "tensor", std::string(n));
  };
  // concat<1>(a, b), where lantern.hpp has concat(a, b).
  auto along = between(error, "no matching function for call to ‘", "<");
  if (std::ranges::any_of(notes, [](string_view n) { return has(n, "invalid explicitly-specified argument"); }))
    along = between(error, "no matching function for call to '", "'");
  const bool of_dimension = along && has(line, std::string(*along) + "<") &&
                            ir::is_digit(line[line.find(std::string(*along) + "<") + along->size() + 1]);
  if (of_dimension && of_tensors(*along))
    return told("no function of this name takes these arguments: is #include <lantern/tensor.hpp> missing? Functions of "
                "tensors along a dimension, " + std::string(*along) + "<1>(...), are there");
  if (!name || name == "begin" || name == "end") return std::nullopt;
  constexpr std::array<const char*, 7> headers{"linalg", "special", "solvers", "nn", "random", "onnx", "distributed"};
  for (const char* header : headers)
    if (*name == header) return told("write #include <lantern/" + std::string(header) + ".hpp>: namespace " + header + " is there");
  if (!calls(line, *name)) return std::nullopt;
  if (of_tensors(*name)) return told("write #include <lantern/tensor.hpp>: " + std::string(*name) + " is there");
  for (const char* header : headers) {
    const std::string qualified = std::string(header) + "::" + std::string(*name);
    if (has(text_of(lantern / (std::string(header) + ".hpp")), qualified + "(") ||  // made by a macro; the header tells
        any_declares(lantern / "compiler" / header, std::string(*name)))
      return told("write " + qualified + " and #include <lantern/" + header + ".hpp>");
  }
  return std::nullopt;
}

}  // namespace

bool is_rep(string_view type) {
  for (const string_view before : {"const ", "lantern::", "core::"})
    if (type.starts_with(before)) type.remove_prefix(before.size());
  return type.starts_with("Rep<");
}

std::optional<Indexing> indexing(string_view error, const std::vector<string_view>& notes) {
  constexpr string_view gcc = "no match for ‘operator[]’ (operand types are ‘", and_index = " and ‘",
                        clang = "no viable overloaded operator[] for type '", conversion = "no known conversion from '";
  if (error.starts_with(gcc)) {
    error.remove_prefix(gcc.size());
    const std::size_t middle = error.find(and_index);
    if (middle == string_view::npos) return std::nullopt;
    const string_view container = meant(error.substr(0, middle), "’");
    return Indexing{container, meant(error.substr(middle + and_index.size()), "’"), container};
  }
  if (!error.starts_with(clang)) return std::nullopt;
  error.remove_prefix(clang.size());
  Indexing found{meant(error, "'"), {}, error.substr(0, error.find('\''))};
  for (const string_view note : notes)
    if (const std::size_t at = note.find(conversion); at != string_view::npos && found.index.empty())
      found.index = meant(note.substr(at + conversion.size()), "'");
  return found;
}

std::optional<std::string> remedy(string_view error, const std::vector<string_view>& notes, string_view line,
                                  const std::string& include) {
  for (const auto rule : {result_of_call, algorithm, nameless_function, size_function})
    if (auto words = rule(error, line)) return words;
  for (const auto rule : {name_of_library, mixed_power})
    if (auto words = rule(error, notes)) return words;
  for (const auto rule : {sides_of_choice, conversion, between_reps, solver_result, other_operator, iterators, binding, missing_return,
                          same_name, member_function, other_name, not_captured, made_array, other_element})
    if (auto words = rule(error)) return words;
  for (const auto rule : {element, function_of_values})
    if (auto words = rule(error, notes)) return words;
  if (auto words = missing_header(error, notes, line, include)) return words;
  return other_arguments(error, notes, line, include);
}

}  // namespace lantern::tool
