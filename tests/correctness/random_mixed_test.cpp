// Random small programs over all types, many in a module: what C++ makes of them, run eagerly and compiled in
// every way, is the same, and so are their derivatives. Numbers from the ends are among them.
//
// LANTERN_FIRST_SEED and LANTERN_SEEDS choose other modules than the suite's, and as many as wanted.
#include <algorithm>
#include <fmt/format.h>

#include <catch2/catch.hpp>
#include <cstdlib>
#include <map>
#include <memory>
#include <optional>

#include "depth.hpp"
#include "lantern/compiler/passes/pipeline.hpp"
#include "random_mixed_worlds.hpp"

using namespace lantern;
using namespace lantern::core;
using namespace lantern::test;

namespace {

using D = Rep<double>;
using F = Rep<float>;
using L = Rep<Long>;
using S = Rep<Short>;
using B = Rep<bool>;
using Doubles = Rep<Array<double>>;
using Floats = Rep<Array<float>>;
using Longs = Rep<Array<Long>>;
using Shorts = Rep<Array<Short>>;
using Bools = Rep<Array<bool>>;
using T = Rep<MixedTree>;

/// A program: a number and an integer of the same arguments.
struct Mixed {
  MixedNode real, integer;
};

/// What a program is run on.
struct Input {
  static constexpr std::size_t large = 100;  ///< from so many elements on
  double x = 0, y = 0;
  float f = 0;
  Long n = 0;
  Short i = 0;
  bool b = false;
  std::vector<double> doubles;
  std::vector<Long> longs;
  std::vector<float> floats;
  std::vector<Short> shorts;
  std::vector<char> bools;
  MixedTree tree;

  Input(std::size_t size, unsigned seed, bool reals, bool integers) {
    std::mt19937 random(seed);
    const auto below = [&](std::size_t k) { return random() % k; };
    const auto real = [&] {
      if (below(3)) return 3 * std::sin(static_cast<double>(below(1000)));
      // Among many, those from the ends are few: sums would be nothing else.
      const bool ends = reals && (size < large || below(size) == 0);
      return special_numbers[below(ends ? special_numbers.size() : ordinary_numbers)];
    };
    const auto any = [&] {
      if (!reals || below(size < large ? 6 : size)) return real();
      const double inf = std::numeric_limits<double>::infinity();
      return std::array{inf, -inf, std::nan(""), 1e-320, 1e308}[below(5)];
    };
    const auto integer = [&] {
      return special_integers[below(integers ? special_integers.size() : ordinary_integers)];
    };
    x = any(), y = any(), f = static_cast<float>(any());
    n = integer(), i = static_cast<Short>(integer()), b = below(2) == 1;
    for (std::size_t k = 0; k < size; ++k) doubles.push_back(any());
    for (std::size_t k = 0; k < size / 2; ++k) longs.push_back(integer());
    for (std::size_t k = 0; k < (size + 2) / 3; ++k) floats.push_back(static_cast<float>(any()));
    for (std::size_t k = 0; k < size; ++k) shorts.push_back(static_cast<Short>(integer()));
    for (std::size_t k = 0; k < (size < large ? size % 5 : size); ++k) bools.push_back(below(2) == 1);
    if (size % 2)
      tree = {{0.5, 3}, MixedTree({real(), integer()}), MixedTree({-1.25, 2}, MixedTree({0.75, 1}), {})};
    if (size < large) return;
    for (int k = 0; k < 12; ++k)
      tree = {{real(), integer()}, tree, below(2) ? MixedTree() : MixedTree({real(), 1})};
  }
  std::span<const bool> flags() const { return {reinterpret_cast<const bool*>(bools.data()), bools.size()}; }
  std::string str() const {
    return fmt::format("x {} y {} f {} n {} i {} b {} and arrays of {}", x, y, f, n, i, b, doubles.size());
  }
};

template <class W, class R>
typename MixedRunner<W>::Scope scope_of(const typename W::template N<double>& x,
                                        const typename W::template N<double>& y,
                                        const typename W::template N<float>& f,
                                        const typename W::template N<Long>& n,
                                        const typename W::template N<Short>& i,
                                        const typename W::template N<bool>& b, R&& arrays,
                                        const typename W::T& tree) {
  typename MixedRunner<W>::Scope s;
  s.template of<double>() = {x, y};
  s.template of<float>() = {f, W::template convert<float>(y)};
  s.template of<Long>() = {n, W::template convert<Long>(i)};
  s.template of<Short>() = {i, W::template convert<Short>(n)};
  s.template of<bool>() = {b, W::compare(0, n, typename W::L(3))};
  s.arrays = std::forward<R>(arrays);
  s.tree = tree;
  return s;
}

/// The directions of derivatives: x, f, and the doubles with weights.
constexpr std::size_t directions = 3;
double weight(std::size_t i) { return 1 / (1.0 + static_cast<double>(i)); }

/// Value, integer, derivatives.
struct Answer {
  double value = 0;
  Long integer = 0;
  std::array<double, directions> slopes{};
};

MixedRunner<PlainWorld>::Scope plain_scope(const Input& in, std::size_t direction) {
  std::vector<Real<double>> doubles;
  for (std::size_t k = 0; k < in.doubles.size(); ++k)
    doubles.emplace_back(in.doubles[k], direction == 2 ? weight(k) : 0.0);
  std::vector<Real<float>> floats(in.floats.begin(), in.floats.end());
  return scope_of<PlainWorld>({in.x, direction == 0 ? 1.0 : 0.0}, in.y, {in.f, direction == 1 ? 1.0F : 0.0F},
                              in.n, in.i, in.b, std::tuple(in.bools, in.shorts, in.longs, floats, doubles),
                              in.tree);
}

Answer plainly(const Mixed& p, const Input& in) {
  Answer a;
  for (std::size_t d = 0; d < directions; ++d) {
    const Real<double> r = MixedRunner<PlainWorld>::run<double>(p.real, plain_scope(in, d));
    a.value = r.v, a.slopes[d] = r.d;
  }
  a.integer = MixedRunner<PlainWorld>::run<Long>(p.integer, plain_scope(in, 0));
  return a;
}

/// How far apart, relative to the larger and 1; infinite where only one is a number.
double distance(double a, double b) {
  if (a == b || (std::isnan(a) && std::isnan(b))) return 0;
  if (!std::isfinite(a) || !std::isfinite(b)) return INFINITY;
  return std::abs(a / 2 - b / 2) / std::max({0.5, std::abs(a / 2), std::abs(b / 2)});
}

/// What C++ says, and how sure it is: where rounding decides there is no expectation.
struct Expected {
  Answer answer;
  double value_tolerance = 1e-9;
  std::array<double, directions> slope_tolerances{1e-8, 1e-5, 1e-8};
  bool integer_sure = true;
  bool subnormal = false, infinite = false, steep = false;
};

Expected expect(const Mixed& p, const Input& in, unsigned runs = 3) {
  Expected e;
  plain_run = {};
  e.answer = plainly(p, in);
  e.subnormal = plain_run.subnormal, e.infinite = plain_run.infinite, e.steep = plain_run.steep;
  for (unsigned k = 0; k < runs; ++k) {
    plain_run = {.noise = 1e-15, .flush = k == 1, .random = std::mt19937(k + 1)};
    const Answer off = plainly(p, in);
    e.integer_sure &= off.integer == e.answer.integer;
    e.value_tolerance += 1000 * distance(off.value, e.answer.value);
    for (std::size_t d = 0; d < directions; ++d)
      e.slope_tolerances[d] += 1000 * distance(off.slopes[d], e.answer.slopes[d]);
  }
  plain_run = {};
  return e;
}

/// Many programs as one: numbers, integers, and derivatives of the numbers.
using Programs = std::vector<const Mixed*>;
constexpr std::size_t most = 36;        // tcc takes 200 arguments and results
constexpr std::size_t most_large = 10;  // with arrays of thousands of elements
template <class E>
using Each = std::array<E, most>;

auto value_of(const MixedNode& node) {
  return [&node](D x, F f, Doubles a, D y, L n, S i, B b, Longs q, Floats g, Shorts h, Bools c, T tree) {
    return MixedRunner<StagedWorld>::run<double>(
        node, scope_of<StagedWorld>(x, y, f, n, i, b, std::tuple(c, h, q, g, a), tree));
  };
}

auto all_of(const Programs& programs) {
  return [&programs](D x, F f, Doubles a, D y, L n, S i, B b, Longs q, Floats g, Shorts h, Bools c, T tree) {
    std::tuple<Each<D>, Each<L>, Each<D>, Each<F>, Each<D>> all;
    auto& [values, integers, by_x, by_f, by_a] = all;
    for (std::size_t k = 0; k < most; ++k) {
      if (k >= programs.size()) {
        values[k] = by_x[k] = by_a[k] = 0.0, by_f[k] = 0.0F, integers[k] = Long{0};
        continue;
      }
      const auto value = value_of(programs[k]->real);
      const auto [v, slopes] = value_and_grad<0, 1, 2>(value)(x, f, a, y, n, i, b, q, g, h, c, tree);
      values[k] = v, by_x[k] = std::get<0>(slopes), by_f[k] = std::get<1>(slopes);
      const Doubles ga = std::get<2>(slopes);
      by_a[k] = FOR(0, ga.size(), D(0.0), [&](L j, D sum) { return sum + ga[j] / (1.0 + cast<double>(j)); });
      integers[k] = MixedRunner<StagedWorld>::run<Long>(
          programs[k]->integer, scope_of<StagedWorld>(x, y, f, n, i, b, std::tuple(c, h, q, g, a), tree));
    }
    return all;
  };
}

template <class C>
std::vector<Answer> run(const C& compiled, const Input& in, std::size_t count) {
  const auto [values, integers, by_x, by_f, by_a] = compiled(
      in.x, in.f, in.doubles, in.y, in.n, in.i, in.b, in.longs, in.floats, in.shorts, in.flags(), in.tree);
  std::vector<Answer> answers;
  for (std::size_t k = 0; k < count; ++k)
    answers.push_back({values[k], integers[k], {by_x[k], static_cast<double>(by_f[k]), by_a[k]}});
  return answers;
}

/// Whoever answers.
struct Way {
  std::string name;
  std::optional<CompileOptions> options;  ///< none: eagerly

  std::vector<std::vector<Answer>> answers(const Programs& programs, const std::vector<Input>& inputs) const {
    std::vector<std::vector<Answer>> all;
    const auto ask = [&](const auto& f) {
      for (const Input& in : inputs) all.push_back(run(f, in, programs.size()));
    };
    if (options) {
      const auto f = compile(all_of(programs), *options);
      if (options->target == Target::automatic) f.wait();
      ask(f);
    } else
      ask(eager(all_of(programs)));
    return all;
  }
  bool keeps_subnormals() const { return !options || options->strict_math; }
};

/// What came of all comparisons.
struct Tally {
  std::size_t programs = 0, compared = 0, slopes = 0, unsure = 0, not_finite = 0, wrong = 0;
  std::map<std::string, std::size_t> ways;  ///< programs by way
};
Tally tally;

std::string disagreement(const Expected& e, const Answer& a, bool keeps_subnormals) {
  if (e.subnormal && !keeps_subnormals) return {};
  const auto differs = [](double found, double expected, double tolerance) {
    if (!(tolerance < 1e-3)) return ++tally.unsure, false;
    ++tally.compared;
    return !(distance(found, expected) <= tolerance);
  };
  if (e.integer_sure && (++tally.compared, a.integer != e.answer.integer))
    return fmt::format("the integer is {} for {}", a.integer, e.answer.integer);
  if (differs(a.value, e.answer.value, e.value_tolerance))
    return fmt::format("the value is {} for {}", a.value, e.answer.value);
  for (std::size_t d = 0; d < directions; ++d) {
    // Backwards, what is infinite inside may meet a zero that it does not forwards.
    if (e.infinite || (d == 1 && !std::isfinite(static_cast<float>(e.answer.slopes[d]))) ||
        (e.steep && !std::isfinite(a.slopes[d]))) {
      ++tally.not_finite;
      continue;
    }
    ++tally.slopes;
    if (differs(a.slopes[d], e.answer.slopes[d], e.slope_tolerances[d]))
      return fmt::format("derivative {} is {} for {}", d, a.slopes[d], e.answer.slopes[d]);
  }
  return {};
}

/// The same, with more runs that are off where there is a disagreement: some have many ways to go.
std::string disagreement(const Mixed& p, const Input& in, const Expected& e, const Answer& a,
                         const Way& way) {
  if (disagreement(e, a, way.keeps_subnormals()).empty()) return {};
  return disagreement(expect(p, in, 40), a, way.keeps_subnormals());
}

/// Whether a program alone is still answered otherwise than C++ does, for any of the inputs.
bool fails(const Mixed& p, const Way& way, const std::vector<Input>& inputs) {
  try {
    const auto answers = way.answers({&p}, inputs);
    for (std::size_t i = 0; i < inputs.size(); ++i)
      if (!disagreement(p, inputs[i], expect(p, inputs[i]), answers[i][0], way).empty()) return true;
    return false;
  } catch (const std::exception&) {
    return true;
  }
}

/// The node that is so far from the root, breadth first; null beyond the last.
MixedNode* node_at(MixedNode& root, std::size_t at) {
  std::vector<MixedNode*> nodes{&root};
  for (std::size_t i = 0; i < nodes.size() && nodes.size() <= at; ++i)
    for (MixedNode& part : nodes[i]->parts) nodes.push_back(&part);
  return at < nodes.size() ? nodes[at] : nullptr;
}

/// Replaces parts by simpler ones of the same type while the program still fails.
void reduce(Mixed& p, MixedNode Mixed::*root, const Way& way, const std::vector<Input>& inputs) {
  int tries = 0;
  const auto simplified = [&](std::size_t at) {
    const MixedNode kept = *node_at(p.*root, at);
    if (kept.parts.empty()) return false;
    std::vector<MixedNode> candidates{{MixedNode::variable, kept.type}, {MixedNode::constant, kept.type, 1}};
    for (const MixedNode& part : kept.parts)
      if (part.type == kept.type) candidates.push_back(part);
    for (const MixedNode& simpler : candidates) {
      *node_at(p.*root, at) = simpler;
      ++tries;
      if (fails(p, way, inputs)) return true;
    }
    *node_at(p.*root, at) = kept;
    return false;
  };
  for (std::size_t at = 0; node_at(p.*root, at) && tries < 300;) at = simplified(at) ? 0 : at + 1;
}

void report(Mixed p, const Way& way, const Input& in, const std::string& what) {
  ++tally.wrong;
  const std::vector<Input> only{in};
  std::string alone = "only among others";
  if (fails(p, way, only)) {
    reduce(p, &Mixed::real, way, only);
    reduce(p, &Mixed::integer, way, only);
    alone = p.real.str() + "\n" + p.integer.str();
  }
  FAIL_CHECK(way.name << ": " << what << "\nat " << in.str() << "\n" << alone);
}

std::string name_of(const CompileOptions& o) {
  return fmt::format("{}, opt {}, {} lanes, {} threads{}{}{}",
                     o.target == Target::c     ? "tcc"
                     : o.target == Target::cpp ? "Clang"
                                               : "tcc, then Clang",
                     o.opt, o.lanes ? std::to_string(o.lanes) : "the machine's", o.threads,
                     o.strict_math ? ", strict" : "", o.reassociate ? "" : ", sums in order",
                     o.disabled_passes.empty() ? "" : ", without " + o.disabled_passes[0]);
}

/// All modules go through libtcc, and one of five through Clang, by options that the seed chooses; one of 61
/// through Clang with all numbers of lanes and threads.
std::vector<Way> ways_of(unsigned seed) {
  const auto passes = passes::passes();
  std::mt19937 random(seed);
  const auto one_of = [&](const auto& all) { return all[random() % all.size()]; };
  const std::vector without{std::string(passes[seed % passes.size()].name)};
  constexpr std::array threads{1, 2, 16}, lanes{2, 4, 8};
  constexpr std::array levels{3, 2, 1, 0, 3, 3};
  std::vector<CompileOptions> list{
      {.target = Target::c, .opt = 0},
      {.target = Target::c, .opt = 3},
      {.target = Target::c, .opt = 3, .disabled_passes = without},
      {.target = Target::c, .opt = 1 + static_cast<int>(random() % 3), .threads = random() % 2 ? 2 : 16}};
  if (seed % 61 == 60)
    for (const int l : lanes)
      for (const int t : threads)
        list.push_back(
            {.target = Target::cpp, .opt = 3, .strict_math = random() % 3 == 0, .threads = t, .lanes = l});
  if (seed % 7 == 2 || seed % 21 == 5)
    list.push_back(
        {.target = random() % 8 ? Target::cpp : Target::automatic,
         .opt = one_of(levels),
         .strict_math = random() % 3 == 0,
         .reassociate = random() % 4 != 0,
         .threads = one_of(threads),
         .lanes = one_of(lanes),
         .disabled_passes = random() % 3 ? std::vector<std::string>() : std::vector{one_of(without)}});
  std::vector<Way> ways{{"eager", {}}};
  for (CompileOptions& o : list) ways.push_back({name_of(o), o});
  return ways;
}

void check(unsigned seed) {
  const bool reals = seed % 2 == 1, integers = seed / 2 % 2 == 1, large = seed % 5 == 2;
  const std::size_t programs_in_all = large ? most_large : most;
  std::vector<Mixed> mixed;
  for (unsigned k = 0; k < programs_in_all; ++k) {
    MixedSource source(seed * 1000 + k, reals, integers);
    MixedNode real = source.program(Scalar::f64);
    mixed.push_back({std::move(real), source.program(Scalar::i64)});
  }
  Programs programs;
  for (const Mixed& p : mixed) programs.push_back(&p);
  std::vector<Input> inputs;
  for (const std::size_t size :
       {std::size_t{0}, std::size_t{1}, std::size_t{3}, std::size_t{8 + seed % 3 * 13}})
    inputs.emplace_back(size, seed + static_cast<unsigned>(size), reals, integers);
  if (large) inputs.emplace_back(1000 + seed * 37 % 2500, seed, reals, integers);
  std::vector<std::vector<Expected>> expected;
  for (const Input& in : inputs) {
    expected.emplace_back();
    for (const Mixed& p : mixed) expected.back().push_back(expect(p, in));
  }
  tally.programs += mixed.size();
  std::vector<bool> reported(mixed.size());
  for (const Way& way : ways_of(seed)) {
    INFO("seed " << seed);
    try {
      // Clang takes its time: a few of them, and all in a module that is compiled in parts.
      const bool clang = way.options && way.options->target != Target::c;
      const std::size_t count = clang && seed % 21 != 5 ? 6 : mixed.size();
      const auto answers = way.answers({programs.data(), programs.data() + count}, inputs);
      tally.ways[way.name] += count;
      for (std::size_t i = 0; i < inputs.size(); ++i)
        for (std::size_t k = 0; k < count; ++k) {
          const std::string what =
              reported[k] ? "" : disagreement(mixed[k], inputs[i], expected[i][k], answers[i][k], way);
          if (what.empty()) continue;
          reported[k] = true;
          INFO("program " << k);
          report(mixed[k], way, inputs[i], what);
        }
    } catch (const std::exception& e) {
      ++tally.wrong;
      FAIL_CHECK(way.name << " raised " << e.what());
      const auto raises = [&](const Mixed& p) { return fails(p, way, inputs); };
      const auto found = std::ranges::find_if(mixed, raises);
      for (const Input& in : inputs)
        if (found != mixed.end() && fails(*found, way, {in})) return report(*found, way, in, "it raises");
    }
  }
}

/// What a call raises; empty if it returns.
template <class C>
std::string raised(const C& f, const Input& in) {
  try {
    run(f, in, 1);
    return {};
  } catch (const Error& e) {
    return e.what();
  }
}

/// A program that may raise: eagerly where C++ would, and compiled too, unless what it asks for is not
/// needed: the passes find more of that.
void check_raising(unsigned seed) {
  mixed_may_raise = true;
  MixedSource source(seed, false, seed % 2 == 1);
  MixedNode real = source.program(Scalar::f64);
  const Mixed mixed{std::move(real), source.program(Scalar::i64)};
  const Programs programs{&mixed};
  const auto by_eager = eager(all_of(programs));
  std::optional<decltype(compile(all_of(programs)))> by_clang;
  const auto as_staged = compile(all_of(programs), {.target = Target::c, .opt = 0});
  const auto by_passes = compile(all_of(programs), {.target = Target::c, .opt = 3});
  if (seed % 20 == 0) by_clang = compile(all_of(programs), {.target = Target::cpp, .opt = 2});
  for (const unsigned size : {0U, 1U, 7U}) {
    const Input in(size, seed + size, false, seed % 2 == 1);
    bool raises = false;
    try {
      plainly(mixed, in);
    } catch (const MixedError&) {
      raises = true;
    }
    const std::string expected = raised(by_eager, in), staged = raised(as_staged, in),
                      optimised = raised(by_passes, in);
    INFO("seed " << seed << "\n"
                 << mixed.real.str() << "\n"
                 << mixed.integer.str() << "\nat " << in.str() << "\n"
                 << expected << "\n"
                 << staged << "\n"
                 << optimised);
    CHECK(raises == !expected.empty());
    if (!staged.empty()) CHECK(raises);
    if (!optimised.empty()) CHECK(!staged.empty());
    if (by_clang) CHECK(raised(*by_clang, in).empty() == optimised.empty());
  }
  mixed_may_raise = false;
}

}  // namespace

TEST_CASE("random small programs that may raise", "[random][errors]") {
  Seeds(80, 20000).each(check_raising);
}

TEST_CASE("random small programs of all types", "[random]") {
  Seeds(7, 2800).each(check);
  CHECK(tally.wrong == 0);
  if (std::getenv("LANTERN_VERBOSE"))
    fmt::print(
        "{} programs, {} comparisons, {} of them of derivatives, {} left out where rounding decides, {} "
        "slopes of "
        "what is not finite\n",
        tally.programs, tally.compared, tally.slopes, tally.unsure, tally.not_finite);
  if (std::getenv("LANTERN_VERBOSE"))
    for (const auto& [way, programs] : tally.ways) fmt::print("{:6} {}\n", programs, way);
}
