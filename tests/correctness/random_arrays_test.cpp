// Random programs over arrays, with loops in loops: whatever the passes make of them (lanes, threads, tables,
// loops that join, tensors without a fill, updates in place), the derivatives are those of eager evaluation.
#include <fmt/format.h>

#include <catch2/catch.hpp>
#include <cmath>
#include <random>

#include "cuda_tensors.hpp"
#include "depth.hpp"
#include "lantern/compiler/passes/pipeline.hpp"
#include "lantern/lantern.hpp"
#include "watched.hpp"

using namespace lantern;

namespace {

using D = Rep<double>;
using I = Rep<std::int64_t>;
using A = Rep<Array<double>>;
using Ints = Rep<Array<std::int64_t>>;
using M = Rep<Tensor<double, dyn, dyn>>;

/// What a program may name. Arrays have n elements, matrices n rows of m.
struct Scope {
  I n, m;
  Ints at;  ///< n rows, repeated ones among them
  std::vector<D> scalars;
  std::vector<A> arrays;
  std::vector<M> matrices;
  std::vector<I> rows, columns;  ///< indices of the loops around
};

enum class Place { same, mirrored, shifted, gathered };

/// A number, as a tree.
struct Term {
  enum Kind {
    constant,
    scalar,
    element,
    entry,
    negative,
    sine,
    tangent,
    exponential,
    logarithm,
    root,
    sum,
    difference,
    product,
    quotient,
    larger,
    chosen,
    branch,
    total_rows,
    total_columns,
    total_below,
    steps
  } kind = constant;
  double number = 0;
  std::size_t which = 0, row = 0, column = 0;
  Place place = Place::same;
  std::vector<Term> parts = {};
};

/// What is added to the scope.
struct Stage {
  enum Kind { tabulate, own, previous, scatter, repeat, pair, choice, matrix, by_columns } kind = tabulate;
  std::size_t which = 0, other = 0;
  std::vector<Term> terms = {};
};

struct Plan {
  std::vector<Stage> stages;
  Term result;
};

class Source {
 public:
  explicit Source(unsigned seed) : random_(seed) {}

  Plan plan() {
    Plan p;
    Counts c{.scalars = 0, .arrays = 2, .matrices = 1, .rows = 0, .columns = 0};
    const int stages = 1 + below(4);
    for (int i = 0; i < stages; ++i) p.stages.push_back(stage(c));
    Term last{.kind = Term::total_rows};
    Counts inside = c;
    ++inside.rows;
    Term seen{.kind = Term::element, .which = static_cast<std::size_t>(c.arrays - 1)};
    last.parts.push_back({.kind = Term::product, .parts = {std::move(seen), term(inside, 3)}});
    p.result = {.kind = Term::sum, .parts = {std::move(last), term(c, 3)}};
    return p;
  }

 private:
  struct Counts {
    int scalars, arrays, matrices, rows, columns;
  };
  int below(int n) { return std::uniform_int_distribution<int>(0, n - 1)(random_); }
  std::size_t index(int n) { return static_cast<std::size_t>(below(n)); }

  Term leaf(const Counts& c) {
    for (;;) switch (below(5)) {
        case 0:
          return {.kind = Term::constant, .number = 0.25 * (below(9) - 4)};
        case 1:
          if (c.scalars) return {.kind = Term::scalar, .which = index(c.scalars)};
          break;
        case 2:
        case 3:
          if (c.rows)
            return {.kind = Term::element,
                    .which = index(c.arrays),
                    .row = index(c.rows),
                    .place = std::array{Place::same, Place::same, Place::mirrored, Place::shifted,
                                        Place::gathered}[index(5)]};
          break;
        default:
          if (c.rows && c.columns)
            return {
                .kind = Term::entry,
                .which = index(c.matrices),
                .row = index(c.rows),
                .column = index(c.columns),
                .place = std::array{Place::same, Place::same, Place::mirrored, Place::gathered}[index(4)]};
          if (!c.rows) return {.kind = Term::constant, .number = 0.5};
      }
  }

  Term term(const Counts& c, int depth) {
    if (depth <= 0) return leaf(c);
    static constexpr std::array kinds{Term::negative,    Term::sine,    Term::tangent,    Term::exponential,
                                      Term::logarithm,   Term::root,    Term::sum,        Term::sum,
                                      Term::difference,  Term::product, Term::product,    Term::quotient,
                                      Term::larger,      Term::chosen,  Term::branch,     Term::total_columns,
                                      Term::total_below, Term::steps,   Term::total_rows, Term::scalar};
    Term t{.kind = kinds[index(static_cast<int>(kinds.size()))]};
    Counts inside = c;
    switch (t.kind) {
      case Term::negative:
      case Term::sine:
      case Term::tangent:
      case Term::exponential:
      case Term::logarithm:
      case Term::root:
        t.parts = {term(c, depth - 1)};
        return t;
      case Term::chosen:
      case Term::branch:
        t.parts = {term(c, depth - 1), leaf(c), term(c, depth - 1), term(c, depth - 2)};
        return t;
      case Term::total_below:
        if (!c.rows) return leaf(c);
        t.row = index(c.rows);
        ++inside.rows;
        break;
      case Term::total_rows:
        if (c.rows >= 2) return leaf(c);
        ++inside.rows;
        break;
      case Term::total_columns:
        ++inside.columns;
        break;
      case Term::steps:
        ++inside.columns;
        ++inside.scalars;
        t.parts = {leaf(c)};
        break;
      case Term::scalar:
        return leaf(c);
      default:
        t.parts = {term(c, depth - 1), term(c, depth - 1)};
        return t;
    }
    t.parts.push_back(term(inside, depth - 1));
    return t;
  }

  Stage stage(Counts& c) {
    Stage s{.kind = static_cast<Stage::Kind>(below(9)), .which = index(c.arrays), .other = index(c.arrays)};
    Counts inside = c;
    ++inside.rows;
    if (s.kind == Stage::matrix || s.kind == Stage::by_columns) ++inside.columns;
    if (s.kind == Stage::own || s.kind == Stage::previous || s.kind == Stage::pair) ++inside.scalars;
    if (s.kind == Stage::repeat) ++inside.arrays;
    if (s.kind == Stage::choice) {
      s.terms = {term(c, 2), leaf(c)};
    } else {
      s.terms = {term(inside, 3)};
      if (s.kind == Stage::pair) s.terms.push_back(term(inside, 2));
    }
    if (s.kind == Stage::matrix || s.kind == Stage::by_columns)
      ++c.matrices;
    else
      ++c.arrays;
    if (s.kind == Stage::pair) ++c.scalars;
    return s;
  }

  std::mt19937 random_;
};

I row(const Scope& s, const Term& t) {
  const I i = s.rows[t.row];
  switch (t.place) {
    case Place::same:
      return i;
    case Place::mirrored:
      return s.n - 1 - i;
    case Place::shifted:
      return (i + 1) % s.n;
    case Place::gathered:
      return s.at[i];
  }
  return i;
}

/// While a program runs eagerly: every number is off by so much of itself, at random. What that makes of the
/// results is what rounding may make of them.
struct Noise {
  double relative = 0;
  std::mt19937 random{1};
  D on(const D& x) {
    if (relative == 0) return x;
    return x * (1 + relative * std::uniform_real_distribution<double>(-1, 1)(random));
  }
} noise;

D exact(const Scope& s, const Term& t);
D number(const Scope& s, const Term& t) { return noise.on(exact(s, t)); }

D exact(const Scope& s, const Term& t) {
  const auto part = [&](std::size_t k) { return number(s, t.parts[k]); };
  const auto with = [&](auto add) {
    Scope inside = s;
    add(inside);
    return number(inside, t.parts.back());
  };
  const auto total = [&](const I& n, std::vector<I> Scope::*indices) {
    return FOR(0, n, 0.0,
               [&](I i, D sum) { return sum + with([&](Scope& in) { (in.*indices).push_back(i); }); });
  };
  switch (t.kind) {
    case Term::constant:
      return t.number;
    case Term::scalar:
      return s.scalars[t.which];
    case Term::element:
      return s.arrays[t.which][row(s, t)];
    case Term::entry:
      return s.matrices[t.which](row(s, t), s.columns[t.column]);
    case Term::negative:
      return -part(0);
    case Term::sine:
      return sin(part(0));
    case Term::tangent:
      return tanh(part(0));
    case Term::exponential:
      return exp(sin(part(0)));
    case Term::logarithm: {
      const D x = part(0);
      return log(1.5 + x * x);
    }
    case Term::root: {
      const D x = part(0);
      return sqrt(0.1 + x * x);
    }
    case Term::sum:
      return part(0) + part(1);
    case Term::difference:
      return part(0) - part(1);
    case Term::product:
      return part(0) * tanh(part(1));
    case Term::quotient: {
      const D y = part(1);
      return part(0) / (1.0 + y * y);
    }
    case Term::larger:
      return max(part(0), part(1) + 0.03);
    case Term::chosen:
      return select(part(0) < part(1) + 0.017, part(2), part(3));
    case Term::branch:
      return IF(
          part(0) < part(1) + 0.017, [&] { return part(2); }, [&] { return part(3); });
    case Term::total_rows:
      return total(s.n, &Scope::rows);
    case Term::total_columns:
      return total(s.m, &Scope::columns);
    case Term::total_below:
      return total(s.rows[t.row], &Scope::rows);
    case Term::steps:
      return FOR(0, s.m, part(0), [&](I j, D x) {
        return sin(with([&](Scope& in) {
                 in.columns.push_back(j);
                 in.scalars.push_back(x);
               })) +
               0.5 * x;
      });
  }
  return 0.0;
}

D bounded(const Scope& s, const Term& t) {
  const D x = number(s, t);
  return x / (1.0 + 0.1 * x * x);
}

A tabulate(const Scope& s, const Term& t) {
  return FOR(0, s.n, fill(D(0.0), s.n), [&](I i, A a) {
    Scope in = s;
    in.rows.push_back(i);
    return a.set(i, bounded(in, t));
  });
}

void add(Scope& s, const Stage& stage) {
  const Term& first = stage.terms[0];
  const A start = s.arrays[stage.which], none = fill(D(0.0), s.n);
  const auto at = [&](const I& i) {
    Scope in = s;
    in.rows.push_back(i);
    return in;
  };
  const auto at_with = [&](const I& i, const D& x) {
    Scope in = at(i);
    in.scalars.push_back(x);
    return in;
  };
  switch (stage.kind) {
    case Stage::tabulate:
      s.arrays.push_back(tabulate(s, first));
      break;
    case Stage::own:
      s.arrays.push_back(
          FOR(0, s.n, start, [&](I i, A a) { return a.set(i, bounded(at_with(i, a[i]), first)); }));
      break;
    case Stage::previous:
      s.arrays.push_back(FOR(0, s.n, start, [&](I i, A a) {
        return a.set(i, bounded(at_with(i, a[select(i == 0, I(0), i - 1)]), first));
      }));
      break;
    case Stage::scatter:
      s.arrays.push_back(FOR(0, s.n, none, [&](I i, A a) {
        const I to = s.at[i];
        return a.set(to, a[to] + bounded(at(i), first));
      }));
      break;
    case Stage::repeat:
      s.arrays.push_back(FOR(0, 3, start, [&](I, A a) {
        Scope in = s;
        in.arrays.push_back(a);
        return tabulate(in, first);
      }));
      break;
    case Stage::pair: {
      const auto [a, x] = FOR(0, s.n, std::tuple(none, D(0.3)), [&](I i, A b, D y) {
        const Scope in = at_with(i, y);
        return std::tuple(b.set(i, bounded(in, first)), 0.5 * y + bounded(in, stage.terms[1]));
      });
      s.arrays.push_back(a);
      s.scalars.push_back(x);
      break;
    }
    case Stage::choice:
      s.arrays.push_back(IF(
          number(s, first) < number(s, stage.terms[1]) + 0.017, [&] { return start; },
          [&] { return s.arrays[stage.other]; }));
      break;
    case Stage::matrix:
      s.matrices.push_back(FOR(0, s.n, fill(D(0.0), s.n, s.m), [&](I i, M all) {
        return FOR(0, s.m, all, [&](I j, M w) {
          Scope in = at(i);
          in.columns.push_back(j);
          return w.set(i, j, bounded(in, first));
        });
      }));
      break;
    case Stage::by_columns:
      s.matrices.push_back(FOR(0, s.m, fill(D(0.0), s.n, s.m), [&](I j, M all) {
        return FOR(0, s.n, all, [&](I i, M w) {
          Scope in = at(i);
          in.columns.push_back(j);
          return w.set(i, j, bounded(in, first));
        });
      }));
      break;
  }
}

auto program_of(const Plan& plan) {
  return [&plan](A a, A b, M w, Ints at) {
    Scope s{.n = a.size(),
            .m = w.dim(1),
            .at = at,
            .scalars = {},
            .arrays = {a, b},
            .matrices = {w},
            .rows = {},
            .columns = {}};
    for (const Stage& stage : plan.stages) add(s, stage);
    return number(s, plan.result);
  };
}

struct Input {
  std::vector<double> a, b, w;
  std::vector<std::int64_t> at;
  std::int64_t m = 0;
  Input(std::size_t n, std::size_t columns) : m(static_cast<std::int64_t>(columns)) {
    for (std::size_t i = 0; i < n; ++i) {
      const double x = static_cast<double>(i);
      a.push_back(std::sin(1.3 * x + 0.4));
      b.push_back(std::cos(2.1 * x + 0.2));
      at.push_back(static_cast<std::int64_t>((i * i + 3 * i + 1) % n));
    }
    for (std::size_t i = 0; i < n * columns; ++i) w.push_back(std::sin(0.7 * static_cast<double>(i) + 0.9));
  }
};

template <class F>
std::vector<double> run(F&& f, const Input& in) {
  const auto [value, gradient] =
      f(in.a, in.b, TensorView<const double>(in.w.data(), {static_cast<std::int64_t>(in.a.size()), in.m}),
        in.at);
  const auto& [a, b, w] = gradient;
  std::vector<double> all(1, value);
  all.insert(all.end(), a.begin(), a.end());
  all.insert(all.end(), b.begin(), b.end());
  all.insert(all.end(), w.data.begin(), w.data.end());
  return all;
}

/// How far the numbers are apart, relative to the largest.
double distance(const std::vector<double>& x, const std::vector<double>& y) {
  if (x.size() != y.size()) return INFINITY;
  double most = 1, apart = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (std::isnan(x[i]) != std::isnan(y[i])) return INFINITY;
    if (std::isnan(x[i])) continue;
    most = std::max(most, std::abs(x[i]));
    apart = std::max(apart, std::abs(x[i] - y[i]));
  }
  return apart / most;
}

/// How far rounding may move each result: a hundred times what it is here, where each number of the program
/// is off by ten roundings.
template <class F>
double conditioned(const F& gradient, const Input& in, const std::vector<double>& exactly) {
  double apart = 0;
  noise = {.relative = 1e-15};
  for (int i = 0; i < 3; ++i) apart = std::max(apart, distance(run(gradient, in), exactly));
  noise = {};
  return 1e-10 + 100 * apart;
}

void check(unsigned seed) {
  const Plan plan = Source(seed).plan();
  const auto gradient = value_and_grad<0, 1, 2>(program_of(plan));
  std::vector<CompileOptions> ways{
      {.target = Target::cpp, .opt = 3, .lanes = 2 << seed % 3},
      {.target = Target::c, .opt = seed % 2 ? 3 : 0},
      {.target = Target::c, .opt = 3, .threads = 2},
  };
  const auto passes = passes::passes();
  if (seed % 3 == 0)
    ways.push_back({.target = Target::cpp,
                    .opt = 3,
                    .bounds_checks = false,
                    .disabled_passes = {std::string(passes[seed / 3 % passes.size()].name)}});
  std::vector<Input> inputs;
  for (const auto& [n, m] : {std::pair{1, 1}, {3, 5}, {8, 2}, {37, 3}, {70, 1}})
    inputs.emplace_back(static_cast<std::size_t>(n), static_cast<std::size_t>(m));
  std::vector<std::vector<double>> expected;
  std::vector<double> tolerances;
  for (const Input& in : inputs) {
    expected.push_back(run(eager(gradient), in));
    tolerances.push_back(conditioned(eager(gradient), in, expected.back()));
  }
  for (const CompileOptions& way : ways) {
    const auto f = compile(gradient, way);
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      const double apart = distance(run(f, inputs[i]), expected[i]);
      INFO(fmt::format("seed {}, opt {}, threads {}, {} elements, without {}: {} of {}", seed, way.opt,
                       way.threads, inputs[i].a.size(),
                       way.disabled_passes.empty() ? "nothing" : way.disabled_passes[0], apart,
                       tolerances[i]));
      CHECK(apart <= tolerances[i]);
    }
  }
}

/// As CUDA through the launch emulator, whichever thread is first.
void check_kernels(unsigned seed) {
  const Plan plan = Source(seed).plan();
  const auto gradient = value_and_grad<0, 1, 2>(program_of(plan));
  const auto fast =
      compile(gradient, {.target = Target::c, .opt = 1 + static_cast<int>(seed % 3), .name = "arrays"});
  const test::Emulated emulated(fast.source("cuda"), "arrays");
  for (const auto& [n, m] : {std::pair{1, 1}, {3, 5}, {37, 3}, {70, 1}}) {
    const Input in(static_cast<std::size_t>(n), static_cast<std::size_t>(m));
    const std::vector<double> expected = run(fast, in);
    const double tolerance = conditioned(eager(gradient), in, expected);
    std::vector<double> forwards;
    for (const bool backwards : {false, true}) {
      CAPTURE(seed, n, m, backwards);
      emulated.backwards(backwards);
      const auto places = emulated(in.a, in.b, TensorValue<double>{in.w, {n, m}}, in.at);
      std::vector<double> got{test::raw_number<double>(places[0])};
      for (const std::size_t i : {1U, 2U, 3U}) {
        const auto* data = static_cast<const double*>(places[i].data);
        got.insert(got.end(), data, data + (i < 3 ? n : n * m));
      }
      CHECK(distance(got, expected) <= tolerance);
      if (backwards) CHECK(distance(got, forwards) == 0);
      forwards = got;
    }
  }
}

/// With the check for NaN and without: the same numbers.
void check_watched(unsigned seed) {
  const Plan plan = Source(seed).plan();
  const std::vector<Input> inputs{{1, 1}, {3, 5}, {37, 3}};
  test::compare_watched(fmt::format("seed {}", seed), value_and_grad<0, 1, 2>(program_of(plan)),
                        test::watched_ways(seed % 4 == 0), inputs,
                        [](const auto& f, const Input& in) { return run(f, in); });
}

}  // namespace

TEST_CASE("random programs over arrays, their values checked", "[arrays][check]") {
  test::Seeds(3, 3000).each(check_watched);
}

TEST_CASE("random programs over arrays as kernels", "[arrays][cuda]") {
  check_kernels(7045);  // a loop of the host took a tensor from a tape on which the GPU's memory had been saved
  test::Seeds(3, 300).each(check_kernels);
}

TEST_CASE("programs over arrays that were wrong once", "[arrays]") {
  check(1034);   // iterations of a loop in lanes popped what lanes of a loop inside its partner had pushed
  check(20255);  // a loop that only adds vectors to elements was no construct that holds vectors
}

// LANTERN_FIRST_SEED and LANTERN_SEEDS choose others.
TEST_CASE("random programs over arrays", "[arrays]") { test::Seeds(8, 2000).each(check); }
