// Loops of few iterations in lanes: the same numbers as iteration by iteration for every number of iterations, whether it is
// known or not, with tapes between forward and backward part; and which blocks are chosen.
#include <catch2/catch.hpp>
#include <cmath>
#include <map>
#include <set>

#include "../lanes.hpp"
#include "lantern/compiler/passes/analysis/lanes.hpp"
#include "lantern/compiler/passes/pipeline.hpp"
#include "lantern/lantern.hpp"

namespace lantern {

using namespace core;

namespace {

using Num = Rep<double>;
using Int = Rep<std::int64_t>;
using Vec = Rep<Array<double>>;
using Mat = Rep<Tensor<double, dyn, dyn>>;
using Matrix = Tensor<double, dyn, dyn>;
using passes::VectorWidths;
using passes::LoopShape;

const CompileOptions lanes{.target = Target::cpp, .opt = 3, .lanes = test::lanes_under_test()};
CompileOptions scalar() {
  CompileOptions o = lanes;
  o.disabled_passes = {"vectorise"};
  return o;
}

template <class T = double>
std::vector<T> numbers(std::size_t n, double from = 0.1) {
  std::vector<T> v(n);
  for (std::size_t i = 0; i < n; ++i)
    v[i] = static_cast<T>(from + 0.37 * std::sin(1.7 * static_cast<double>(i)));
  return v;
}

template <class T, class F>
Rep<Array<T>> tabulate(const Int& n, F f) {
  return FOR(0, n, fill(Rep<T>(T(0)), n), [&](Int i, Rep<Array<T>> a) { return a.set(i, f(i)); });
}
template <class T, class F>
Rep<T> total(const Int& n, F f) {
  return FOR(0, n, Rep<T>(T(0)), [&](Int i, Rep<T> s) { return s + f(i); });
}

/// What a step makes of the state is kept on tapes for the backward part, which counts down.
template <class T, class F>
Rep<T> steps(const Int& n, Rep<Array<T>> a, const Int& times, F element) {
  const Rep<Array<T>> last = FOR(0, times, a, [&](Int, Rep<Array<T>> h) {
    return tabulate<T>(n, [&](Int i) { return element(h, i); });
  });
  return total<T>(n, [&](Int i) { return last[i] * last[i]; });
}

// A body that is cheap, one that is not small, one that calls a function, one with a loop over a row.
template <class T>
Rep<T> cheap(Rep<Array<T>> a, Rep<Tensor<T, dyn, dyn>>, Int times) {
  return steps<T>(a.size(), a, times,
                  [](const auto& h, const Int& i) { return sqrt(h[i] * h[i] + T(0.5)) - h[i]; });
}
template <class T>
Rep<T> long_one(Rep<Array<T>> a, Rep<Tensor<T, dyn, dyn>>, Int times) {
  return steps<T>(a.size(), a, times, [](const auto& h, const Int& i) {
    Rep<T> y = h[i];
    for (int k = 0; k < 12; ++k) y = y * (T(0.5) + T(0.25) * y) + T(0.01 * k);
    return y;
  });
}
template <class T>
Rep<T> with_function(Rep<Array<T>> a, Rep<Tensor<T, dyn, dyn>>, Int times) {
  return steps<T>(a.size(), a, times,
                  [](const auto& h, const Int& i) { return tanh(h[i]) * h[i] + sin(h[i]); });
}
template <class T>
Rep<T> by_row(Rep<Array<T>> a, Rep<Tensor<T, dyn, dyn>> w, Int times) {
  return steps<T>(a.size(), a, times, [&](const auto& h, const Int& i) {
    return tanh(total<T>(a.size(), [&](Int j) { return w(i, j) * h[j]; }));
  });
}

/// By columns, which lie side by side from lane to lane: wide blocks, and narrower ones for what is left.
template <class T>
Rep<T> by_column(Rep<Array<T>> a, Rep<Tensor<T, dyn, dyn>> w, Int times) {
  return steps<T>(a.size(), a, times, [&](const auto& h, const Int& i) {
    return tanh(total<T>(a.size(), [&](Int j) { return w(j, i) * h[j]; }));
  });
}
/// An inner loop of more iterations than are written out.
template <class T>
Rep<T> by_twelves(Rep<Array<T>> a, Rep<Tensor<T, dyn, dyn>>, Int times) {
  return steps<T>(a.size(), a, times, [&](const auto& h, const Int& i) {
    return FOR(0, 12, h[i], [&](Int, Rep<T> y) { return y * (T(1.2) - y * y); });
  });
}

template <class T, class F>
void check_every_length(F f, double tolerance) {
  const auto fast = compile(value_and_grad<0, 1>(f), lanes),
             slow = compile(value_and_grad<0, 1>(f), scalar());
  REQUIRE(fast.source("ir").find("lane_") != std::string::npos);
  REQUIRE(slow.source("ir").find("lane_") == std::string::npos);
  const auto close = [&](const auto& a, const auto& b) {
    REQUIRE(a.size() == b.size());
    bool all = true;
    for (std::size_t i = 0; i < a.size(); ++i)
      all &= a[i] == Approx(b[i]).epsilon(tolerance).margin(tolerance);
    CHECK(all);
  };
  for (std::size_t n = 0; n <= 70; ++n) {
    CAPTURE(n);
    const auto a = numbers<T>(n), w = numbers<T>(n * n, 0.05);
    const auto m = static_cast<std::int64_t>(n);
    const TensorView<T> weights(const_cast<T*>(w.data()), {m, m});
    for (const std::int64_t times : {0, 1, 3}) {
      const auto [y, d] = fast(a, weights, times);
      const auto [y1, d1] = slow(a, weights, times);
      CHECK(y == Approx(y1).epsilon(tolerance).margin(tolerance));
      close(std::get<0>(d), std::get<0>(d1));
      close(std::get<1>(d).data, std::get<1>(d1).data);
    }
  }
}

TEST_CASE("blocks: every number of iterations, with tapes", "[vectorise]") {
  SECTION("cheap") { check_every_length<double>(cheap<double>, 1e-11); }
  SECTION("long") { check_every_length<double>(long_one<double>, 1e-11); }
  SECTION("functions") { check_every_length<double>(with_function<double>, 1e-11); }
  SECTION("rows") { check_every_length<double>(by_row<double>, 1e-11); }
  SECTION("columns") { check_every_length<double>(by_column<double>, 1e-11); }
  SECTION("twelves") { check_every_length<double>(by_twelves<double>, 1e-11); }
  SECTION("cheap, floats") { check_every_length<float>(cheap<float>, 1e-4); }
  SECTION("functions, floats") { check_every_length<float>(with_function<float>, 1e-4); }
  SECTION("rows, floats") { check_every_length<float>(by_row<float>, 1e-4); }
}

TEST_CASE("blocks: a tape holds vectors of one width", "[vectorise]") {
  const auto check = [](auto program, int native, bool in_vectors = true) {
    const auto f = grad<0, 1>(program);
    std::vector<ir::Type> types;
    using Params = typename detail::FunctionTraits<decltype(f)>::Params;
    [&]<class... P>(std::type_identity<std::tuple<P...>>) {
      (detail::types_of<P>(types), ...);
    }(std::type_identity<Params>{});
    const auto module = driver::stage("f", types, detail::program_of(f).run);
    std::map<std::int64_t, std::set<std::string>> held, popped;
    std::size_t vectors = 0;
    passes::PipelineOptions options;
    options.vector_lanes = native;
    options.verify_each = true;
    options.after = [&](std::string_view pass, const ir::Module& m) {
      if (pass != "vectorise") return;
      for (const ir::Function* function : m.functions())
        ir::walk(function->body, [&](const ir::Op* op) {
          const auto note = [&](auto& tapes, const std::vector<ir::Value*>& values) {
            for (const ir::Value* v : values) tapes[op->integer].insert(v->type.str());
            for (const ir::Value* v : values) vectors += v->type.is_vector();
          };
          if (op->is(ir::Opcode::push_)) note(held, op->operands);
          if (op->is(ir::Opcode::pop_)) note(popped, op->results);
        });
    };
    run_on_large_stack([&] { passes::run_pipeline(*module, options); });
    CHECK((vectors > 0) == in_vectors);
    CHECK(held == popped);
    for (const auto& [tape, kinds] : held) CHECK(kinds.size() == 1);
  };
  for (const int native : {2, 4, 8}) {
    check(with_function<double>, native);  // what is cheap is computed again, and on no tape
    check(by_row<double>, native, false);  // the lanes lie along the rows, inside the iterations that keep something
    check(by_row<float>, native, false);
    check(by_column<double>, native);
    check(by_twelves<double>, native);
  }
}

TEST_CASE("blocks: a number of iterations that is known", "[vectorise]") {
  const std::vector<double> a = numbers(40);
  for (const int n : {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 12, 13, 16, 19, 33, 37}) {
    CAPTURE(n);
    const auto check = [&](auto element) {
      const auto f = sig<double(Array<double>, double)>(
          [=](Vec v, Num x) { return total<double>(n, [&](Int i) { return element(v[i], x); }) * x; });
      const auto fast = compile(value_and_grad(f), lanes);
      const auto [y, d] = fast(a, 0.7);
      const auto [y1, d1] = eager(value_and_grad(f))(a, 0.7);
      CHECK(y == Approx(y1).epsilon(1e-12));
      CHECK(std::get<1>(d) == Approx(std::get<1>(d1)).epsilon(1e-11));
      for (std::size_t i = 0; i < a.size(); ++i)
        CHECK(std::get<0>(d)[i] == Approx(std::get<0>(d1)[i]).epsilon(1e-11).margin(1e-13));
      return fast.source("ir");
    };
    const std::string sums = check([](const Num& v, const Num& x) { return v * v * x; });
    CHECK((sums.find("lane_") != std::string::npos) == (n >= 4));
    CHECK(sums.find("lane_get") == std::string::npos);
    const std::string functions = check([](const Num& v, const Num& x) { return exp(v * x); });
    CHECK((functions.find("lane_get") == std::string::npos) == (n % (2 * lanes.lanes) == 0));
  }
}

TEST_CASE("blocks: a few iterations around many", "[vectorise]") {
  // Three iterations would leave most lanes idle: the loop inside runs in lanes, over elements that lie together.
  const auto f = [](Mat m) {
    return total<double>(
        3, [&](Int i) { return total<double>(m.dim(1), [&](Int j) { return m(i, j) * m(i, j) * 0.5; }); });
  };
  const auto fast = compile(value_and_grad(f), lanes);
  const std::string text = fast.source("cpp");
  CHECK(text.find("lt_load_f64x") != std::string::npos);
  CHECK(text.find("strided") == std::string::npos);
  for (const std::int64_t n : {0, 1, 3, 7, 30}) {
    const TensorValue<double> m(numbers(static_cast<std::size_t>(3 * n)), {3, n});
    const auto [y, d] = fast(m);
    double expected = 0;
    for (const double v : m.data) expected += 0.5 * v * v;
    CHECK(y == Approx(expected).epsilon(1e-12));
    for (std::size_t i = 0; i < m.data.size(); ++i) CHECK(d.data[i] == Approx(m.data[i]));
  }
}

// ---- the choice

/// How many lanes run for n iterations: each block's, whether they work or are idle. Every iteration must have one.
int lanes_run(const VectorWidths& blocks, int n) {
  int run = 0, left = n;
  for (const int w : blocks.whole) {
    run += left / w * w;
    left %= w;
  }
  for (std::size_t k = 0; k < blocks.rest.size(); ++k) {
    const int w = blocks.rest[k], least = k + 1 < blocks.rest.size() ? blocks.rest[k + 1] + 1 : 1;
    if (least > 1) CHECK(left <= w);
    while (left >= least) {
      run += w;
      left = std::max(0, left - w);
    }
  }
  CHECK(left == 0);
  return run;
}

TEST_CASE("blocks: which are chosen", "[vectorise]") {
  for (const int native : {2, 4, 8})
    for (const std::size_t size : {10u, 1000u})
      for (const bool brief : {false, true})
        for (const bool narrow : {false, true})
          for (const bool inner : {false, true})
            for (const bool strided : {false, true})
              for (const bool heavy : {false, true})
                for (const int work : {1, 16, 17, 64, 65}) {
                  CAPTURE(native, size, brief, narrow, inner, strided, heavy, work);
                  const LoopShape shape{.inner = inner,
                                        .reads = true,
                                        .strided = strided,
                                        .brief = brief,
                                        .heavy = heavy,
                                        .narrow = narrow,
                                        .work = work,
                                        .size = size,
                                        .iterations = {}};
                  const auto blocks = passes::choose_blocks(shape, native);
                  REQUIRE(blocks);
                  const int registers = narrow ? 2 * native : native;
                  CHECK(blocks->widest() <= 8 * registers);
                  // At most two registers are idle.
                  for (int n = 0; n <= 100; ++n) {
                    CAPTURE(n);
                    CHECK(lanes_run(*blocks, n) < n + 2 * registers);
                  }
                  if (!inner && !heavy && work <= 16) CHECK(lanes_run(*blocks, 7) == 7);
                }
  CHECK(!passes::choose_blocks({.reads = true, .work = 2, .iterations = 3}, 4));
  CHECK(passes::choose_blocks({.reads = true, .heavy = true, .work = 2, .iterations = 3}, 4));
}

}  // namespace
}  // namespace lantern
