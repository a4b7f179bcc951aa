// Random nests of loops over flat arrays and matrices, with indices that are sums of products, stop at ends,
// go around them or fall: whatever is proved of them (iterations that do not meet, elements that are not written
// again or were not before, writes that nobody reads, products of matrices, steps from lane to lane), values
// and derivatives are those of eager evaluation.
#include <algorithm>
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
using M = Rep<Tensor<double, dyn, dyn>>;

constexpr int most_loops = 3;

/// From 0, 1 or the index around to n, n - 1, or that index.
struct Bounds {
  enum Kind { all, inner, below, from } kind = all;
};

/// c0 i0 + c1 i1 + c2 i2 + d, each index as it is, from the other end, beside it, or one further around.
struct Index {
  enum Turn { plain, falling, before, after, around };
  struct Part {
    int times = 0;  ///< of n where negative
    Turn turn = plain;
  };
  std::vector<Part> parts;
  int add = 0;
};

struct Element {
  int array = 0;  ///< 0 to 2: arrays; 3, 4: matrices
  Index row, column;
};

/// array[...] = or += a product of elements; or an array becomes another, or both trade places
struct Statement {
  enum Kind { store, add, mixed, sum, take, trade } kind = store;
  Element target;
  int other = 0;  ///< of its kind
  std::vector<Element> factors = {};
  double scale = 1;
  bool bent = false;  ///< its sine
};

struct Loop {
  Bounds bounds;
  struct Item {
    std::vector<Loop> loop;  ///< one, or none: a statement
    Statement statement;
  };
  std::vector<Item> items;
};

struct Plan {
  std::vector<Loop> nests;
  bool seen[5];  ///< whether the result asks for an array
};

class Source {
 public:
  explicit Source(unsigned seed) : random_(seed) {}

  Plan plan() {
    Plan p;
    for (int i = 1 + below(2); i > 0; --i) p.nests.push_back(below(4) == 0 ? product() : loop(0));
    for (bool& s : p.seen) s = below(3) > 0;
    return p;
  }

 private:
  int below(int n) { return std::uniform_int_distribution<int>(0, n - 1)(random_); }

  Loop loop(int depth) {
    Loop l;
    l.bounds.kind = depth == 0 ? Bounds::Kind(below(2)) : Bounds::Kind(below(4));
    const int items = 1 + below(2);
    for (int i = 0; i < items; ++i) {
      Loop::Item item;
      if (depth + 1 < most_loops && below(10) < 7 - 2 * i)
        item.loop.push_back(loop(depth + 1));
      else
        item.statement = statement(depth + 1);
      l.items.push_back(std::move(item));
    }
    // As steps in time do it, where what was written is what is read next.
    if (below(4) == 0) {
      Statement s{.kind = below(2) ? Statement::take : Statement::trade, .target = {below(5), {}, {}}};
      s.other = s.target.array < 3 ? below(3) : 3 + below(2);
      l.items.insert(l.items.begin() + below(2) * items, {{}, s});
    }
    return l;
  }

  Index index(int loops, bool flat) {
    Index x;
    for (int l = 0; l < loops; ++l) {
      constexpr int usual[] = {0, 1, 1, 2, 3, -1, -1};
      const int times = flat ? usual[below(7)] : below(2);
      const int turn = below(9);
      x.parts.push_back({times, turn > 4 ? Index::plain : Index::Turn(turn)});
    }
    x.add = below(3);
    return x;
  }
  Element element(int loops) {
    const int array = below(5);
    return {array, index(loops, array < 3), index(loops, false)};
  }
  Statement statement(int loops) {
    Statement s;
    s.kind = Statement::Kind(below(4));
    s.target = element(loops);
    for (int i = 1 + below(2); i > 0; --i) s.factors.push_back(element(loops));
    s.scale = 0.25 * (1 + below(5)) - 0.6;
    s.bent = below(5) == 0;
    return s;
  }

  /// A product of matrices, in some order of loops, flat or not, with something else beside it.
  Loop product() {
    int order[] = {0, 1, 2};
    std::shuffle(order, order + 3, random_);
    const auto place = [&](int array, int row, int column) {
      Element e{array, {}, {}};
      for (int l = 0; l < 3; ++l) {
        const bool is_row = order[l] == row, is_column = order[l] == column;
        if (array < 3)
          e.row.parts.push_back({is_row ? -1 : is_column ? 1 : 0, Index::plain});
        else
          e.row.parts.push_back({is_row, Index::plain}), e.column.parts.push_back({is_column, Index::plain});
      }
      return e;
    };
    const int c = below(5);
    int a = below(5), b = below(5);
    Statement s{.kind = below(2) ? Statement::add : Statement::mixed, .target = place(c, 0, 1)};
    s.factors.push_back(below(2) ? place(a, 0, 2) : place(a, 2, 0));
    s.factors.push_back(below(2) ? place(b, 2, 1) : place(b, 1, 2));
    s.scale = 0.4;
    Loop inner{{Bounds::Kind(below(2))}, {{{}, s}}};
    Loop middle{{Bounds::Kind(below(2))}, {{{inner}, {}}}};
    if (below(3) == 0) middle.items.push_back({{}, statement(2)});
    Loop outer{{Bounds::Kind(below(2))}, {{{middle}, {}}}};
    if (below(2)) outer.items.insert(outer.items.begin() + below(2), {{}, statement(1)});
    return outer;
  }

  std::mt19937 random_;
};

/// The state of a program.
struct World {
  I n;
  std::vector<A> arrays;
  std::vector<M> matrices;
  D total;
};
using Indices = std::vector<I>;  ///< of the loops around

I number(const World& w, const Indices& at, const Index& x) {
  I sum = x.add;
  for (std::size_t l = 0; l < x.parts.size() && l < at.size(); ++l) {
    const auto [times, turn] = x.parts[l];
    if (times == 0) continue;
    I i = at[l];
    if (turn == Index::falling) i = w.n - 1 - i;
    if (turn == Index::before) i = max(i - 1, I(0));
    if (turn == Index::after) i = min(i + 1, w.n - 1);
    if (turn == Index::around) i = (i + 1) % w.n;
    sum += times < 0 ? w.n * i : I(times) * i;
  }
  return sum;
}

D read(const World& w, const Indices& at, const Element& e) {
  if (e.array < 3) return w.arrays[static_cast<std::size_t>(e.array)][number(w, at, e.row)];
  return w.matrices[static_cast<std::size_t>(e.array - 3)](number(w, at, e.row), number(w, at, e.column));
}
void write(World& w, const Indices& at, const Element& e, const D& v) {
  if (e.array < 3) {
    A& a = w.arrays[static_cast<std::size_t>(e.array)];
    a = a.set(number(w, at, e.row), v);
  } else {
    M& m = w.matrices[static_cast<std::size_t>(e.array - 3)];
    m = m.set(number(w, at, e.row), number(w, at, e.column), v);
  }
}

template <class T>
void hand_on(T& target, T& other, bool both) {
  const T before = target;
  target = other;
  if (both) other = before;
}

void run(World& w, const Indices& at, const Statement& s) {
  if (s.kind >= Statement::take) {
    const auto a = static_cast<std::size_t>(s.target.array), b = static_cast<std::size_t>(s.other);
    if (a < 3)
      hand_on(w.arrays[a], w.arrays[b], s.kind == Statement::trade);
    else
      hand_on(w.matrices[a - 3], w.matrices[b - 3], s.kind == Statement::trade);
    return;
  }
  D v = s.scale;
  for (const Element& e : s.factors) v = v * read(w, at, e);
  if (s.bent) v = sin(v);
  switch (s.kind) {
    case Statement::store:
      return write(w, at, s.target, v);
    case Statement::add:
      return write(w, at, s.target, read(w, at, s.target) + v);
    case Statement::mixed:
      return write(w, at, s.target, 0.75 * read(w, at, s.target) - v);
    default:
      w.total += v;
  }
}

void run(World& w, const Indices& at, const Loop& l) {
  const bool inner = l.bounds.kind == Bounds::inner;
  const I around = at.empty() ? I(0) : at.back();
  const I first = l.bounds.kind == Bounds::from ? around : I(inner ? 1 : 0);
  const I end = l.bounds.kind == Bounds::below ? around : inner ? w.n - 1 : w.n;
  FOR(first, end, [&](I i) {
    Indices inside = at;
    inside.push_back(i);
    for (const Loop::Item& item : l.items) {
      if (item.loop.empty())
        run(w, inside, item.statement);
      else
        run(w, inside, item.loop[0]);
    }
  });
}

auto program(const Plan& plan) {
  return sig<double(Array<double>, Array<double>, Array<double>, Tensor<double, dyn, dyn>,
                    Tensor<double, dyn, dyn>, std::int64_t)>([plan](A a, A b, A c, M m, M k, I n) {
    World w{n, {a, b, c}, {m, k}, 0.0};
    for (const Loop& l : plan.nests) run(w, {}, l);
    D sum_of_all = w.total;
    for (std::size_t i = 0; i < 5; ++i) {
      if (!plan.seen[i]) continue;
      if (i < 3)
        sum_of_all += sum(w.arrays[i] * w.arrays[i]);
      else
        sum_of_all += sum(w.matrices[i - 3] * w.matrices[i - 3]);
    }
    return sum_of_all;
  });
}

struct Input {
  std::int64_t n;
  std::vector<double> arrays[3], matrices[2];
  std::int64_t rows, flat;

  explicit Input(std::int64_t size)
      : n(size), rows(3 * size + 3), flat(most_loops * size * size + 10 * size + 10) {
    std::mt19937 random(static_cast<unsigned>(size));
    std::uniform_real_distribution<double> numbers(-0.5, 0.5);
    for (auto& a : arrays) a.resize(static_cast<std::size_t>(flat));
    for (auto& a : matrices) a.resize(static_cast<std::size_t>(rows * rows));
    for (auto* list : {&arrays[0], &arrays[1], &arrays[2], &matrices[0], &matrices[1]})
      for (double& x : *list) x = numbers(random);
  }
};

/// The value and the gradient, one after the other.
template <class F>
std::vector<double> results(const F& f, const Input& in) {
  const TensorValue<double> m{in.matrices[0], {in.rows, in.rows}}, k{in.matrices[1], {in.rows, in.rows}};
  const auto [value, slopes] = f(in.arrays[0], in.arrays[1], in.arrays[2], m, k, in.n);
  std::vector<double> all{value};
  std::apply(
      [&](const auto&... s) {
        const auto put = [&](const auto& x) {
          if constexpr (requires { x.data[0]; })
            all.insert(all.end(), x.data.begin(), x.data.end());
          else
            all.insert(all.end(), x.begin(), x.end());
        };
        (put(s), ...);
      },
      slopes);
  return all;
}

/// Infinite where one of them is no number.
double largest(const std::vector<double>& all) {
  double most = 1;
  for (const double x : all) most = std::max(most, std::isfinite(x) ? std::abs(x) : HUGE_VAL);
  return most;
}
constexpr double too_large = 1e12;

/// Whether something grows too fast, be it that nobody asks for it: what is nothing times infinity is not a
/// number where it is computed, and nothing where it is not.
bool grows(Plan plan, const Input& in) {
  std::ranges::fill(plan.seen, true);
  const double value = eager(program(plan))(in.arrays[0], in.arrays[1], in.arrays[2],
                                            TensorValue<double>{in.matrices[0], {in.rows, in.rows}},
                                            TensorValue<double>{in.matrices[1], {in.rows, in.rows}}, in.n);
  return !(std::abs(value) <= too_large);
}

void check(unsigned seed) {
  const Plan plan = Source(seed).plan();
  const auto gradient = value_and_grad<0, 1, 2, 3, 4>(program(plan));
  const auto passes = passes::passes();
  std::vector<CompileOptions> ways{{.target = Target::cpp, .opt = 3, .lanes = 2 << seed % 3},
                                   {.target = Target::c, .opt = seed % 2 ? 3 : 0}};
  if (seed % 2 == 0) ways.push_back({.target = Target::cpp, .opt = 3, .threads = 2});
  if (seed % 3 == 0)
    ways.push_back({.target = Target::cpp,
                    .opt = 3,
                    .disabled_passes = {std::string(passes[seed / 3 % passes.size()].name)}});
  // Sizes around those of lanes, and one at which products of matrices are worth a call.
  std::vector<Input> inputs;
  for (const int n : {1, 2, 7, 18}) inputs.emplace_back(n);
  if (seed % 4 == 0) inputs.emplace_back(41);
  std::erase_if(inputs, [&](const Input& in) { return grows(plan, in); });
  std::vector<std::vector<double>> expected;
  for (const Input& in : inputs) expected.push_back(results(eager(gradient), in));
  for (const CompileOptions& way : ways) {
    const auto fast = compile(gradient, way);
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      if (way.opt == 0 && inputs[i].n > 7) continue;  // each version of an array has memory of its own
      const std::vector<double> got = results(fast, inputs[i]);
      const double most = largest(expected[i]);
      if (most > too_large) continue;
      double apart = 0;
      REQUIRE(got.size() == expected[i].size());
      for (std::size_t k = 0; k < got.size(); ++k) {
        const double d = std::abs(got[k] - expected[i][k]);
        apart = std::isnan(d) ? HUGE_VAL : std::max(apart, d);
      }
      INFO(fmt::format("seed {}, opt {}, lanes {}, threads {}, n = {}, without {}: {} of {}", seed, way.opt,
                       way.lanes, way.threads, inputs[i].n,
                       way.disabled_passes.empty() ? "nothing" : way.disabled_passes[0], apart, most));
      CHECK(apart <= 1e-9 * most);
    }
  }
}

/// As CUDA through the launch emulator, whichever thread is first.
void check_kernels(unsigned seed) {
  const Plan plan = Source(seed).plan();
  const auto gradient = value_and_grad<0, 1, 2, 3, 4>(program(plan));
  const auto fast = compile(gradient, {.target = Target::c, .opt = seed % 5 == 4 ? 1 : 3, .name = "nests"});
  // As the passes for a GPU make it, where its compiler is.
  const bool device = codegen::nvrtc_available();
  const test::Emulated emulated(
      device ? compile(gradient, {.target = Target::cuda, .opt = seed % 5 == 4 ? 1 : 3, .name = "nests"}).source("cuda")
             : fast.source("cuda"),
      "nests");
  for (const int n : {1, 2, 7, 18}) {
    const Input in(n);
    if (grows(plan, in)) continue;
    const std::vector<double> expected = results(fast, in);
    const double most = largest(expected);
    if (most > too_large) continue;
    std::vector<double> forwards;
    for (const bool backwards : {false, true}) {
      CAPTURE(seed, n, backwards);
      emulated.backwards(backwards);
      const auto places = emulated(in.arrays[0], in.arrays[1], in.arrays[2],
                                   TensorValue<double>{in.matrices[0], {in.rows, in.rows}},
                                   TensorValue<double>{in.matrices[1], {in.rows, in.rows}}, in.n);
      std::vector<double> got{test::raw_number<double>(places[0])};
      for (std::size_t i = 1; i < 6; ++i) {
        const auto* data = static_cast<const double*>(places[i].data);
        got.insert(got.end(), data, data + (i < 4 ? in.flat : in.rows * in.rows));
      }
      REQUIRE(got.size() == expected.size());
      double apart = 0;
      for (std::size_t k = 0; k < got.size(); ++k) {
        const double d = std::abs(got[k] - expected[k]);
        apart = std::isnan(d) ? HUGE_VAL : std::max(apart, d);
      }
      CHECK(apart <= 1e-9 * most);
      if (backwards) CHECK(got == forwards);
      forwards = got;
    }
  }
}

/// Along a direction, forward mode and differences say what the gradient does.
void check_slope(unsigned seed) {
  const auto f = program(Source(seed).plan());
  const Input in(5);
  const std::vector<double> slopes =
      results(compile(value_and_grad<0, 1, 2, 3, 4>(f), {.target = Target::cpp}), in);
  if (largest(slopes) > 1e6) return;
  Input direction = in;
  double slope = 0;
  std::size_t at = 1;
  std::mt19937 random(seed);
  for (auto* list : {&direction.arrays[0], &direction.arrays[1], &direction.arrays[2], &direction.matrices[0],
                     &direction.matrices[1]})
    for (double& x : *list)
      slope += slopes[at++] * (x = std::uniform_real_distribution<double>(-1, 1)(random));
  const auto plain = eager(f);
  const auto value = [&](double t) {
    Input moved = in;
    for (int k = 0; k < 3; ++k)
      for (std::size_t e = 0; e < moved.arrays[k].size(); ++e)
        moved.arrays[k][e] += t * direction.arrays[k][e];
    for (int k = 0; k < 2; ++k)
      for (std::size_t e = 0; e < moved.matrices[k].size(); ++e)
        moved.matrices[k][e] += t * direction.matrices[k][e];
    return plain(moved.arrays[0], moved.arrays[1], moved.arrays[2],
                 TensorValue<double>{moved.matrices[0], {in.rows, in.rows}},
                 TensorValue<double>{moved.matrices[1], {in.rows, in.rows}}, in.n);
  };
  const double h = 1e-4;
  const double difference = (8 * (value(h) - value(-h)) - (value(2 * h) - value(-2 * h))) / (12 * h);
  CAPTURE(seed, slope, difference);
  CHECK(std::abs(slope - difference) <= 1e-6 * std::max({1.0, largest(slopes), std::abs(difference)}));
}

/// With the check for NaN and without: the same numbers.
void check_watched(unsigned seed) {
  const auto gradient = value_and_grad<0, 1, 2, 3, 4>(program(Source(seed).plan()));
  const std::vector<Input> inputs{Input(1), Input(2), Input(5)};
  test::compare_watched(fmt::format("seed {}", seed), gradient, test::watched_ways(seed % 4 == 0), inputs,
                        [](const auto& f, const Input& in) { return results(f, in); });
}

}  // namespace

TEST_CASE("random nests of loops, their values checked", "[arrays][check]") {
  test::Seeds(3, 3000).each(check_watched);
}

TEST_CASE("an array that becomes another at the end of a step, and is not asked for itself", "[arrays]") {
  const auto f = [](A a, I steps) {
    A u = a, v = a;
    FOR(0, steps, [&](I) {
      FOR(1, a.size() - 1, [&](I i) { v = v.set(i, u[i] + 0.1 * (u[i - 1] - 2.0 * u[i] + u[i + 1])); });
      u = v;
    });
    return sum(u * u);
  };
  const auto g = value_and_grad<0>(sig<double(Array<double>, std::int64_t)>(f));
  const std::vector<double> a{1.0, -0.5, 2.0, 0.3, 0.7, -1.5, 0.2};
  for (const std::int64_t steps : {0, 1, 4}) {
    std::vector<double> u = a, v = a;
    for (std::int64_t t = 0; t < steps; ++t, u = v)
      for (std::size_t i = 1; i + 1 < a.size(); ++i)
        v[i] = u[i] + 0.1 * (u[i - 1] - 2.0 * u[i] + u[i + 1]);
    double expected = 0;
    for (const double x : u) expected += x * x;
    const auto slopes = std::get<1>(eager(g)(a, steps));
    for (const Target target : {Target::c, Target::cpp}) {
      CAPTURE(steps);
      const auto [value, got] = compile(g, {.target = target, .opt = 3})(a, steps);
      CHECK(value == Approx(expected));
      CHECK(compile(sig<double(Array<double>, std::int64_t)>(f), {.target = target, .opt = 3})(a, steps) ==
            Approx(expected));
      for (std::size_t i = 0; i < a.size(); ++i) CHECK(got[i] == Approx(slopes[i]));
    }
  }
}

// LANTERN_FIRST_SEED and LANTERN_SEEDS choose others.
TEST_CASE("random nests of loops", "[arrays]") { test::Seeds(8, 3000).each(check); }
TEST_CASE("random nests of loops as kernels", "[arrays][cuda]") { test::Seeds(3, 300).each(check_kernels); }
TEST_CASE("slopes of random nests of loops", "[arrays]") { test::Seeds(8, 3000).each(check_slope); }
