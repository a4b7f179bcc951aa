// A random plan as the C++ that a person would write for it: what random_plan_run.hpp runs.
#pragma once

#include <fmt/format.h>

#include <string>

#include "random_plan.hpp"

namespace lantern::test {

class PlanText {
 public:
  explicit PlanText(const RandomPlan& plan) : plan_(plan) {}

  /// The definition of a function `program`, with what it needs.
  std::string str() {
    std::string text = R"(#include <lantern/lantern.hpp>
using namespace lantern;
using D = Rep<double>;
using S = Rep<float>;
using I = Rep<std::int64_t>;
using A = Rep<Array<double>>;
using Singles = Rep<Array<float>>;
using Ints = Rep<Array<std::int64_t>>;
using M = Rep<Tensor<double, dyn, dyn>>;
using T = Rep<Tree<double>>;
D bounded(D x) { return x / (1.0 + 0.1 * x * x); }
)";
    for (std::size_t k = 0; k < plan_.functions.size(); ++k) {
      Scope s;
      s.numbers = {"x", "y"};
      text += fmt::format(
          "auto g{} = FUN<double(double, double)>(\"g{}\", [](auto, D x, D y) {{\n  const I n = 3, m = 2;\n"
          "  return {};\n}});\n",
          k, k, number(s, plan_.functions[k]));
    }
    text +=
        "D program(D x0, A a0, A a1, M w0, Singles f0, Ints k0, T tree) {\n"
        "  const I n = a0.size(), m = w0.dim(1);\n";
    Scope s;
    s.numbers = {"x0"}, s.arrays = {"a0", "a1"}, s.singles = {"f0"}, s.indices = {"k0"}, s.matrices = {"w0"};
    for (const Node& stage : plan_.stages) text += "  " + add(s, stage);
    return text + "  return " + number(s, plan_.result) + ";\n}\n";
  }

 private:
  using Names = std::vector<std::string>;
  struct Scope {
    Names numbers, arrays, singles, indices, matrices, rows, columns;
  };

  std::string fresh(const char* stem) { return stem + std::to_string(++names_); }
  static std::size_t at(int k) { return static_cast<std::size_t>(k); }

  std::string row(const Scope& s, const Node& n) {
    const auto in = [&](std::size_t k = 0) { return row(s, n.parts[k]); };
    switch (n.part) {
      case Part::row:
        return s.rows[at(n.k)];
      case Part::mirrored:
        return fmt::format("(n - 1 - {})", in());
      case Part::shifted:
        return fmt::format("(({} + {}) % n)", in(), n.k);
      case Part::gathered:
        return fmt::format("{}[{}]", s.indices[at(n.k)], in());
      case Part::multiplied:
        return fmt::format("(({} * {} + 1) % n)", in(0), in(1));
      case Part::measured: {
        const std::string x = number(s, n.parts[0]);
        return fmt::format("(cast<std::int64_t>(select(abs({}) < 100.0, abs({}) * 5.0, D(1.0))) % n)", x, x);
      }
      case Part::before:
        return fmt::format("max({} - 1, 0)", in());
      case Part::outside:
        return n.k == 0   ? fmt::format("({} + 1)", in())
               : n.k == 1 ? fmt::format("({} - 1)", in())
                          : fmt::format("select({} == n / 2, n + 5, {})", in(), in());
      case Part::after:
        return fmt::format("min({} + 1, n - 1)", in());
      default:
        return fmt::format(
            fmt::runtime(n.k == 0 ? "select({} < {} + 0.017, {}, {})"
                                  : "IF({} < {} + 0.017, [&] {{ return {}; }}, [&] {{ return {}; }})"),
            number(s, n.parts[0]), number(s, n.parts[1]), in(2), in(3));
    }
  }

  std::string column(const Scope& s, const Node& n) {
    if (n.part == Part::column) return s.columns[at(n.k)];
    const std::string j = column(s, n.parts[0]);
    if (n.part == Part::mirrored_column) return fmt::format("(m - 1 - {})", j);
    return fmt::format("(({} + {}) % m)", j, row(s, n.parts[1]));
  }

  static Scope with(Scope s, Names Scope::*kind, const std::string& name) {
    (s.*kind).push_back(name);
    return s;
  }

  /// A pattern with the parts of a node from `first` on for {}.
  std::string parts(const char* pattern, const Scope& s, const Node& n, std::size_t first = 0) {
    std::string text;
    for (const char* c = pattern; *c; ++c)
      if (*c == '$')
        text += number(s, n.parts[first++]);
      else
        text += *c;
    return text;
  }

  std::string number(const Scope& s, const Node& n) {
    const auto part = [&](std::size_t k) { return number(s, n.parts[k]); };
    static const char* const unary[] = {"-({0})",
                                        "sin({0})",
                                        "tanh({0})",
                                        "exp(sin({0}))",
                                        "log(1.5 + ({0}) * ({0}))",
                                        "sqrt(0.1 + ({0}) * ({0}))",
                                        "(1.0 / (1.0 + ({0}) * ({0})))",
                                        "abs({0})",
                                        "(atan({0}) - cos({0}))"};
    static const char* const binary[] = {"({0} + {1})",
                                         "({0} - {1})",
                                         "{0} * tanh({1})",
                                         "{0} / (1.0 + ({1}) * ({1}))",
                                         "max({0}, {1} + 0.03)",
                                         "min({0}, {1} - 0.03)",
                                         "pow(1.0 + abs({0}), tanh({1}))",
                                         "(sin({0}) * {1})"};
    static const char* const guarded[] = {
        "IF({0} > 0.013, [&] {{ return log({0}); }}, [&] {{ return D(-4.0); }})",
        "IF({0} > 0.013, [&] {{ return sqrt({0}); }}, [&] {{ return 0.1 * {0}; }})",
        "IF(abs({0}) > 0.013, [&] {{ return sin({0}) / {0}; }}, [&] {{ return D(1.0); }})",
        "select({0} > 0.013, log({0}), 0.5 * {0})"};
    switch (n.part) {
      case Part::constant:
        return fmt::format("D({})", n.value);
      case Part::number:
        return s.numbers[at(n.k)];
      case Part::element:
        return fmt::format("{}[{}]", s.arrays[at(n.k)], row(s, n.parts[0]));
      case Part::single:
        return fmt::format("cast<double>({}[{}])", s.singles[at(n.k)], row(s, n.parts[0]));
      case Part::entry:
        return fmt::format("{}({}, {})", s.matrices[at(n.k)], row(s, n.parts[0]), column(s, n.parts[1]));
      case Part::position:
        return fmt::format("0.1 * cast<double>({})", row(s, n.parts[0]));
      case Part::unary:
        return fmt::format(fmt::runtime(unary[n.k]), part(0));
      case Part::binary:
        return fmt::format(fmt::runtime(binary[n.k]), part(0), part(1));
      case Part::choose:
        return parts("select($ < $ + 0.017, $, $)", s, n);
      case Part::branch:
        return parts("IF($ < $ + 0.017, [&] { return $; }, [&] { return $; })", s, n);
      case Part::guarded:
        return fmt::format(fmt::runtime(guarded[n.k]), part(0));
      case Part::by_index: {
        const std::string i = row(s, n.parts[0]), j = row(s, n.parts[1]);
        const std::string c = n.k == 0   ? i + " < " + j
                              : n.k == 1 ? i + " % 2 == 0"
                              : n.k == 2 ? i + " == 0"
                                         : i + " + 1 < n";
        return parts(("IF(" + c + ", [&] { return $; }, [&] { return $; })").c_str(), s, n, 2);
      }
      case Part::whole:
        return whole(s, n);
      case Part::call:
        return fmt::format("g{}({}, {})", n.k, part(0), part(1));
      case Part::recursion:
        return fmt::format(fmt::runtime(n.k == 0 ? "FUN<double(double, std::int64_t)>(\"r\", [](auto self, D "
                                                   "x, I depth) {{ return IF(depth "
                                                   "== 0, "
                                                   "[&] {{ return x; }}, [&] {{ return sin(self(0.7 * x + "
                                                   "0.1, depth - 1)) + 0.3 * x; }}); "
                                                   "}})({}, m)"
                                                 : "FUN<double(double, std::int64_t)>(\"r\", [](auto self, D "
                                                   "x, I depth) {{ return IF(depth "
                                                   "== 0, "
                                                   "[&] {{ return x; }}, [&] {{ return self(0.5 * x, depth - "
                                                   "1) * tanh(self(x + 0.1, depth - "
                                                   "1)); }}); }})({}, I(2))"),
                           part(0));
      case Part::checkpointed:
      case Part::tangent:
      case Part::slope: {
        const std::string x = fresh("x"), body = number(with(s, &Scope::numbers, x), n.parts[1]);
        const std::string f = fmt::format("([&](D {}) {{ return {}; }})({}", x, body, part(0));
        return n.part == Part::checkpointed ? "checkpoint" + f + ")"
               : n.part == Part::slope      ? "grad" + f + ")"
                                            : "std::get<1>(jvp" + f + ", D(0.5)))";
      }
      case Part::ruled:
        return fmt::format(
            fmt::runtime(
                n.k == 0
                    ? "custom_vjp([](D x) {{ return sin(x); }}, [](D x) {{ return std::tuple(sin(x), x); }}, "
                      "[](D x, D g) {{ return g * cos(x); }})({})"
                    : "custom_jvp([](D x) {{ return tanh(x); }}, [](D x, D dx) {{ return std::tuple(tanh(x), "
                      "dx * (1.0 - tanh(x) * tanh(x))); }})({})"),
            part(0));
      case Part::tree_fold: {
        const std::string l = fresh("l"), r = fresh("r");
        const Scope in = with(with(s, &Scope::numbers, l), &Scope::numbers, r);
        return fmt::format(
            "TREE({}, tree, [&](D {}, D {}, T node) {{ return bounded({}) + 0.3 * {} * node.value(); }})",
            part(0), l, r, number(in, n.parts[1]), l);
      }
      default:
        return loop(s, n);
    }
  }

  std::string loop(const Scope& s, const Node& n) {
    const std::string i = fresh("i"), j = fresh("j"), x = fresh("x"), y = fresh("y");
    const Scope rows = with(s, &Scope::rows, i), columns = with(s, &Scope::columns, j);
    const auto total = [&](const std::string& lo, const std::string& hi, const Scope& in,
                           const std::string& k) {
      return fmt::format("FOR({}, {}, 0.0, [&](I {}, D {}) {{ return {} + {}; }})", lo, hi, k, x, x,
                         number(in, n.parts[0]));
    };
    const auto other = [&](const std::string& first) {
      return n.l ? fmt::format("{} + {}", first, n.l) : first;
    };
    switch (n.part) {
      case Part::total_rows:
        return total("0", "n", rows, i);
      case Part::total_below:
        return total("0", other(s.rows[at(n.k)]), rows, i);
      case Part::total_above:
        return total(other(s.rows[at(n.k)]), "n", rows, i);
      case Part::total_columns:
        return total("0", "m", columns, j);
      case Part::products:
        return fmt::format("FOR(0, n, 1.0, [&](I {}, D {}) {{ return {} * (1.0 + 0.1 * sin({})); }})", i, x,
                           x, number(rows, n.parts[0]));
      case Part::largest: {
        const std::string e = number(rows, n.parts[0]);
        return fmt::format(
            fmt::runtime(n.k == 0
                             ? "FOR(0, n, -0.3, [&](I {0}, D {1}) {{ return max({1}, {2}); }})"
                             : "FOR(0, n, -0.3, [&](I {0}, D {1}) {{ const D e = {2}; return select({1} < "
                               "e, e, {1}); }})"),
            i, x, e);
      }
      case Part::steps: {
        const Scope in = with(columns, &Scope::numbers, x);
        return fmt::format("FOR(0, {0}, {1}, [&](I {2}, D {3}) {{ {4}return sin({5}) + 0.5 * {3}; }})",
                           n.k == 0 ? "m" : "3", number(s, n.parts[0]), j, x,
                           n.k == 0 ? "" : j + " = " + j + " % m; ", number(in, n.parts[1]));
      }
      case Part::pair_steps: {
        const Scope in = with(with(columns, &Scope::numbers, x), &Scope::numbers, y);
        return fmt::format(
            "[&] {{ const auto [p, q] = FOR(0, m, std::tuple({0}, {1}), [&](I {2}, D {3}, D {4}) {{ return "
            "std::tuple(0.5 * {4} + sin({5}), tanh({6}) - 0.3 * {3}); }}); return p * q; }}()",
            number(s, n.parts[0]), number(s, n.parts[1]), j, x, y, number(in, n.parts[2]),
            number(in, n.parts[3]));
      }
      case Part::halving:
        return fmt::format(
            "std::get<0>(WHILE(std::tuple({0}, I(0)), [](D x, I iterations) {{ return AND(abs(x) > 0.3, [&] {{ "
            "return "
            "iterations < 7; }}); }}, [&](D {1}, I iterations) {{ return std::tuple(0.6 * {1} + 0.1 * sin({2}), iterations "
            "+ "
            "1); }}))",
            number(s, n.parts[0]), x, number(with(s, &Scope::numbers, x), n.parts[1]));
      case Part::bounded_steps:
        return fmt::format("FOR(0, 9, {0}, [&](I, D {1}) {{ return sin({2}) + 0.4 * {1}; }}, {3})",
                           number(s, n.parts[0]), x, number(with(s, &Scope::numbers, x), n.parts[1]),
                           n.k == 0 ? "{.checkpoints = 3}" : "{.memory = 1 << 16}");
      default: {
        const Scope in = with(columns, &Scope::numbers, y);
        return fmt::format(
            "[&] {{ Var<double> v = {0}; FOR(0, m, [&](I {1}) {{ const D {2} = v; IF({3} < 0.21, [&] {{ v += "
            "sin({4}); }}, [&] {{ v = 0.5 * v - 0.1; }}); }}); return D(v); }}()",
            number(s, n.parts[0]), j, y, number(in, n.parts[2]), number(in, n.parts[1]));
      }
    }
  }

  std::string whole(const Scope& s, const Node& n) {
    static const char* const patterns[] = {"0.1 * sum({0} * tanh({1}))",
                                           "tanh(dot({0}, {1}))",
                                           "0.1 * sum(sin({2}) * {2})",
                                           "sum(tanh(matmul(as_tensor({0}), {2})))",
                                           "tanh(dot(matmul(transpose({2}), as_tensor({0})), "
                                           "matmul(as_tensor({1}), {2})))",
                                           "sum(outer(as_tensor({0}), as_tensor({1}))) * 0.05",
                                           "sum(exp(-{0} * {0}) / (1.0 + {1} * {1}))"};
    return fmt::format(fmt::runtime(patterns[n.k]), s.arrays[at(n.l)], s.arrays[at(n.parts[0].k)],
                       s.matrices[at(n.parts[1].k)]);
  }

  // ---- what is added to the scope

  std::string add(Scope& s, const Node& n) {
    const std::string i = fresh("i"), j = fresh("j"), a = fresh("a"), b = fresh("b"), x = fresh("x");
    const std::string from = s.arrays[std::min(at(n.k), s.arrays.size() - 1)];
    const std::string other = s.arrays[std::min(at(n.l), s.arrays.size() - 1)];
    const auto small = [&](const Scope& in, std::size_t k) {
      return "bounded(" + number(in, n.parts[k]) + ")";
    };
    const Scope rows = with(s, &Scope::rows, i);
    const std::string none = "fill(D(0.0), n)";
    const auto named = [&](Names Scope::*kind, const char* stem, const char* type, const std::string& value) {
      const std::string name = fresh(stem);
      (s.*kind).push_back(name);
      return fmt::format("const {} {} = {};\n", type, name, value);
    };
    const auto array = [&](const std::string& value) { return named(&Scope::arrays, "a", "A", value); };
    const auto each = [&](const std::string& start, const std::string& body) {
      return fmt::format("FOR(0, n, {}, [&](I {}, A {}) {{ return {}; }})", start, i, b, body);
    };
    const auto set = [&](const std::string& to, const std::string& v) {
      return fmt::format("{}.set({}, {})", b, to, v);
    };
    switch (n.part) {
      case Part::let:
        return named(&Scope::numbers, "x", "D", small(s, 0));
      case Part::tabulate:
        return array(each(none, set(i, small(rows, 0))));
      case Part::downwards: {
        const std::string k = "(n - 1 - " + i + ")";
        return array(each(none, set(k, small(with(s, &Scope::rows, k), 0))));
      }
      case Part::own:
      case Part::previous:
      case Part::next: {
        const std::string seen = n.part == Part::own        ? i
                                 : n.part == Part::previous ? "max(" + i + " - 1, 0)"
                                                            : "(" + i + " + 1) % n";
        return array(each(from, set(i, small(with(rows, &Scope::numbers, b + "[" + seen + "]"), 0))));
      }
      case Part::scatter: {
        const std::string to = row(rows, n.parts[0]);
        return array(each(none, set(to, fmt::format("{}[{}] + {}", b, to, small(rows, 1)))));
      }
      case Part::scatter_two: {
        const std::string to = row(rows, n.parts[0]), too = row(rows, n.parts[1]);
        return array(each(from, fmt::format("[&] {{ const A c = {}; return c.set({}, c[{}] - {}); }}()",
                                            set(to, fmt::format("{}[{}] + {}", b, to, small(rows, 2))), too,
                                            too, small(rows, 3))));
      }
      case Part::conditional:
        return array(each(from, fmt::format("IF({} < {} + 0.017, [&] {{ return {}; }}, [&] {{ return {}; }})",
                                            small(rows, 1), number(rows, n.parts[2]),
                                            set(row(rows, n.parts[0]), small(rows, 1)), b)));
      case Part::swap: {
        const std::string to = row(rows, n.parts[0]);
        return array(each(from, fmt::format("{0}.set({1}, {0}[{2}]).set({2}, {0}[{1}])", b, i, to)));
      }
      case Part::repeat:
        return array(fmt::format("FOR(0, 3, {}, [&](I, A {}) {{ return {}; }})", from, a,
                                 each(none, set(i, small(with(rows, &Scope::arrays, a), 0)))));
      case Part::march:
        return array(fmt::format(
            "FOR(0, 4, {}, [&](I, A {}) {{ return {}; }})", from, a,
            each(none,
                 set(i, fmt::format("{0}[{1}] + 0.2 * ({0}[({1} + 1) % n] - 2.0 * {0}[{1}] + {0}[({1} + n "
                                    "- 1) % n]) + 0.1 * {2}",
                                    a, i, small(with(rows, &Scope::arrays, a), 0))))));
      case Part::leapfrog: {
        const Scope in = with(with(rows, &Scope::arrays, a), &Scope::arrays, b);
        const std::string p = fresh("a"), q = fresh("a");
        const std::string text = fmt::format(
            "const auto [{0}, {1}] = FOR(0, 3, std::tuple({2}, {3}), [&](I, A {4}, A {5}) {{ return FOR(0, "
            "n, "
            "std::tuple({4}, {5}), [&](I {6}, A p, A q) {{ const D faster = q[{6}] - 0.1 * {7}; return "
            "std::tuple(p.set({6}, p[{6}] + 0.1 * faster + 0.1 * {8}), q.set({6}, faster)); }}); }});\n",
            p, q, from, other, a, b, i, small(in, 0), small(in, 1));
        s.arrays.push_back(p), s.arrays.push_back(q);
        return text;
      }
      case Part::with_number: {
        const Scope in = with(rows, &Scope::numbers, x);
        const std::string p = fresh("a"), q = fresh("x");
        const std::string text = fmt::format(
            "const auto [{0}, {1}] = FOR(0, n, std::tuple({2}, D(0.3)), [&](I {3}, A {4}, D {5}) {{ return "
            "std::tuple({6}, 0.5 * {5} + {7}); }});\n",
            p, q, none, i, b, x, set(i, small(in, 0)), small(in, 1));
        s.arrays.push_back(p), s.numbers.push_back(q);
        return text;
      }
      case Part::until:
        return array(fmt::format(
            "std::get<0>(WHILE(std::tuple({0}, I(0)), [&](A a, I iterations) {{ return AND(sum(a * a) > 0.5, [&] "
            "{{ "
            "return iterations < 5; }}); }}, [&](A {1}, I iterations) {{ return std::tuple({2}, iterations + 1); }}))",
            from, a,
            each(a, set(i, fmt::format("0.7 * {}[{}] + 0.2 * {}", b, i,
                                       small(with(rows, &Scope::arrays, a), 0))))));
      case Part::choice:
        return array(fmt::format("IF({} < {} + 0.017, [&] {{ return {}; }}, [&] {{ return {}; }})",
                                 number(s, n.parts[0]), number(s, n.parts[1]), from, other));
      case Part::whole_array: {
        static const char* const patterns[] = {
            "{0} + {2} * {1}",
            "tanh({0}) * exp(-{1} * {1}) + {2}",
            "concat({0}.slice(n / 2, n), {1}.slice(0, n / 2))",
            "tanh(as_array(matmul({3}, matmul(transpose({3}), as_tensor({0})))))",
            "concat({1}.slice(n - n / 2, n), {0}.slice(0, n - n / 2)) - {0} / (2.0 + {1} * {1})",
            "{0} + fill({2}, n)",
            "sin({0}) + as_array(matmul({3}, fill({2}, m)))",
            "zeros_like({0}) - {1} * {2}"};
        return array(fmt::format(fmt::runtime(patterns[n.parts[0].k]), from, other, small(s, 1),
                                 s.matrices[at(n.parts[2].k)]));
      }
      case Part::triangular: {
        const Scope in = with(rows, &Scope::rows, j);
        return array(
            each(from, set(i, fmt::format("bounded({0}[{1}] - 0.3 * FOR(0, {1}, 0.0, [&](I {2}, D {3}) "
                                          "{{ return {3} + {0}[{2}] * {4}; }}))",
                                          b, i, j, x, small(in, 0)))));
      }
      default:
        return others(s, n);
    }
  }

  std::string others(Scope& s, const Node& n) {
    const std::string i = fresh("i"), j = fresh("j"), b = fresh("b"), w = fresh("w");
    const Scope rows = with(s, &Scope::rows, i), entry = with(rows, &Scope::columns, j);
    const auto small = [&](const Scope& in) { return "bounded(" + number(in, n.parts[0]) + ")"; };
    const auto named = [&](Names Scope::*kind, const char* stem, const char* type, const std::string& value) {
      const std::string name = fresh(stem);
      (s.*kind).push_back(name);
      return fmt::format("const {} {} = {};\n", type, name, value);
    };
    const auto each = [&](const char* type, const std::string& start, const std::string& to,
                          const std::string& v) {
      return fmt::format("FOR(0, n, {}, [&](I {}, {} {}) {{ return {}.set({}, {}); }})", start, i, type, b, b,
                         to, v);
    };
    const auto matrix = [&](const std::string& start, const std::string& v, bool by_columns = false) {
      return fmt::format(
          "FOR(0, {}, {}, [&](I {}, M all) {{ return FOR(0, {}, all, [&](I {}, M {}) {{ return "
          "{}.set({}, {}, {}); }}); }})",
          by_columns ? "m" : "n", start, by_columns ? j : i, by_columns ? "n" : "m", by_columns ? i : j, b, b,
          i, j, v);
    };
    const std::string no_singles = "fill(S(0.0), n)", no_matrix = "fill(D(0.0), n, m)";
    switch (n.part) {
      case Part::singles:
        return named(&Scope::singles, "f", "Singles",
                     each("Singles", no_singles, i, "cast<float>(" + small(rows) + ")"));
      case Part::single_own:
        return named(
            &Scope::singles, "f", "Singles",
            each("Singles", s.singles[at(n.k)], i,
                 fmt::format("0.5 * {0}[{1}] + cast<float>({2})", b, i,
                             small(with(rows, &Scope::numbers, fmt::format("cast<double>({}[{}])", b, i))))));
      case Part::single_scatter: {
        const std::string to = row(rows, n.parts[1]);
        return named(
            &Scope::singles, "f", "Singles",
            each("Singles", no_singles, to, fmt::format("{}[{}] + cast<float>({})", b, to, small(rows))));
      }
      case Part::indices:
        return named(&Scope::indices, "k", "Ints", each("Ints", "fill(I(0), n)", i, row(rows, n.parts[0])));
      case Part::counts: {
        const std::string to = row(rows, n.parts[0]);
        const std::string counted = each("Ints", "fill(I(0), n)", to, fmt::format("{}[{}] + 1", b, to));
        return named(&Scope::indices, "k", "Ints",
                     each("Ints", counted, i, fmt::format("({}[{}] * 3) % n", b, i)));
      }
      case Part::matrix:
      case Part::by_columns:
        return named(&Scope::matrices, "w", "M", matrix(no_matrix, small(entry), n.part == Part::by_columns));
      case Part::matrix_own:
        return named(&Scope::matrices, "w", "M",
                     matrix(s.matrices[at(n.k)],
                            small(with(entry, &Scope::numbers, fmt::format("{}({}, {})", b, i, j)))));
      case Part::march_matrix: {
        const std::string here = fmt::format("{}({}, {})", w, i, j);
        const std::string next = fmt::format(
            "{0} + 0.1 * ({1}(({2} + 1) % n, {3}) + {1}(({2} + n - 1) % n, {3}) + {1}({2}, ({3} + 1) % m) + "
            "{1}({2}, ({3} + m - 1) % m) - 4.0 * {0}) + 0.1 * {4}",
            here, w, i, j, small(with(entry, &Scope::numbers, here)));
        return named(&Scope::matrices, "w", "M",
                     fmt::format("FOR(0, 3, {}, [&](I, M {}) {{ return {}; }})", s.matrices[at(n.k)], w,
                                 matrix(no_matrix, next)));
      }
      default: {
        static const char* const patterns[] = {
            "M({0} + 0.5 * tanh({1}))",
            "M(matmul(tanh(matmul({0}, transpose({1}))), tanh({1})))",
            "sin({0}) + outer(as_tensor({2}), as_tensor(fill(D(0.3), m)))",
            "M(concat({0}.slice(n / 2, n), {1}.slice(0, n / 2)))",
            "{0} * fill(sum({2}) * 0.05, n, m)",
            "M(concat({1}.slice(1 % max(n, 1), n), {1}.slice(0, 1 % max(n, "
            "1))))"};
        return named(&Scope::matrices, "w", "M",
                     fmt::format(fmt::runtime(patterns[n.parts[0].k]), s.matrices[at(n.parts[1].k)],
                                 s.matrices[at(n.parts[2].k)], s.arrays[at(n.k)]));
      }
    }
  }

  const RandomPlan& plan_;
  int names_ = 2;
};

}  // namespace lantern::test
