// Communication beside computation: which order a function has after the pass overlap, and that its results are those
// without it. Runs alone and under mpirun.
#include <catch2/catch.hpp>
#include <cmath>
#include <lantern/distributed.hpp>
#include <lantern/lantern.hpp>
#include <lantern/tensor.hpp>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "lantern/compiler/passes/pipeline.hpp"
#include "lantern/ir/external.hpp"
#include "lantern/ir/print.hpp"

using namespace lantern;
namespace ld = lantern::distributed;
using D = Rep<double>;
using I = Rep<int64_t>;
using A = Rep<Array<double>>;
using Numbers = std::vector<double>;

namespace {

const int64_t me = ld::world_rank(), ranks = ld::world_size();

/// The function after the passes.
template <class F>
std::unique_ptr<ir::Module> optimised(F f, const std::vector<std::string>& disabled = {}) {
  std::vector<ir::Type> types;
  core::detail::types_of<typename core::detail::FunctionTraits<F>::Params>(types);
  auto module = core::driver::stage("f", types, core::detail::program_of(f).run);
  passes::PipelineOptions options;
  options.verify_each = true;
  options.disabled = disabled;
  core::run_on_large_stack([&] { passes::run_pipeline(*module, options); });
  return module;
}
/// What the outermost block of the function does that takes time: S for a start, W for a wait, X for an operation that is
/// waited for, . for a loop.
template <class F>
std::string order_of(F f, const std::vector<std::string>& disabled = {}) {
  const auto module = optimised(f, disabled);
  std::string order;
  for (const ir::Op* op : module->entry->body->ops) {
    const std::string text = op->is(ir::Opcode::external_) ? op->text : "";
    if (text.find("distributed_start_") != std::string::npos) order += 'S';
    if (text.find("distributed_wait_") != std::string::npos) order += 'W';
    if (text.find("distributed_exchange_") != std::string::npos) order += 'X';
    if (op->is(ir::Opcode::loop_)) order += '.';
  }
  return order;
}

D sines(const A& x) {
  return FOR(0, x.size(), D(0.0), [&](I i, D s) { return s + sin(x[i]) * s; });
}
std::tuple<A, D> beside(A x, A w) {
  const D own = sines(w);
  return {ld::all_reduce(x), own};
}
A needed_at_once(A x, A w) { return ld::all_reduce(x * w); }
A two_in_flight(A x, A w) {
  const A sum = ld::all_reduce(x), all = ld::broadcast(w, 0);
  return A(sum + all);
}

template <class S>
struct Layers {
  S first, second, third;
};
using Model = Layers<A>;
D loss_of(const Model& m, const A& x) {
  const auto layer = [](const A& w, const A& u) {
    return A(tabulate([&](I i) {
      return FOR(0, u.size(), D(0.0), [&](I j, D s) { return s + sin(w[i] * u[j]); });
    }, w.size()).datum());
  };
  const A y = layer(m.third, layer(m.second, layer(m.first, x)));
  return sum(y * y);
}
template <int buckets>
std::tuple<D, Model> gradient(Model m, A x) {
  const auto [value, g] = nn::data_parallel(loss_of, {}, {.buckets = buckets})(m, x);
  return {value, g};
}

}  // namespace

TEST_CASE("an operation starts before what does not need it, and is waited for behind") {
  const std::string order = order_of(beside);
  CAPTURE(order);
  CHECK(order.find('X') == std::string::npos);
  CHECK(order.find('S') < order.find('.'));
  CHECK(order.find('W') > order.rfind('.'));
  CHECK(order_of(beside, {"overlap"}).find('X') != std::string::npos);
  CHECK(order_of(needed_at_once).find_first_of("SW") == std::string::npos);  // nothing could run meanwhile
  const std::string two = order_of(two_in_flight);
  CAPTURE(two);
  CHECK(two.find("S") < two.find("W"));
}

TEST_CASE("gradients in buckets: the messages of later layers start before the backward part of earlier ones") {
  const std::string whole = order_of(gradient<1>), three = order_of(gradient<3>);
  CAPTURE(whole, three);
  const auto loops_after_first_start = [](const std::string& order) {
    // The first message of the backward part: that of the loss comes before.
    const std::size_t loss = order.find_first_of("SX"), first = order.find_first_of("SX", loss + 1);
    return std::ranges::count(order.substr(first), '.');
  };
  CHECK(loops_after_first_start(three) > loops_after_first_start(whole));
  CHECK(std::ranges::count(three, 'S') >= 2);
}

TEST_CASE("who sends to whom is computed before a loop of messages") {
  const auto ring = [](A x, I times) {
    return FOR(0, times, x, [](I, A u) {
      const I n = ld::world().size(), r = ld::world().rank();
      return ld::send_receive(u, (r + 1) % n, (r + n - 1) % n);
    });
  };
  const auto module = optimised(ring);
  int in_loop = 0, before = 0;
  for (const ir::Op* op : module->entry->body->ops) {
    const auto counts = [](const ir::Op& o) { return o.is(ir::Opcode::rem_) || ir::is_constant_call(o); };
    before += counts(*op);
    if (op->is(ir::Opcode::branch_))  // ranks, if the loop has an iteration
      for (const ir::Op* inner : op->blocks[0]->ops) before += counts(*inner);
    if (op->is(ir::Opcode::loop_))
      for (const ir::Op* inner : op->blocks[1]->ops) in_loop += counts(*inner);
  }
  CHECK(before == 4);
  CHECK(in_loop == 0);
  const Numbers x{static_cast<double>(me), 1};
  for (const int64_t times : {0, 3})
    CHECK(compile(ring, {.target = Target::c})(x, times) == (times == 0 ? x : Numbers{static_cast<double>((me + 3 * ranks - 3) % ranks), 1}));
}

TEST_CASE("the same numbers with and without overlap") {
  Numbers x(40), w(12);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = std::sin(static_cast<double>(i) + static_cast<double>(me));
  for (std::size_t i = 0; i < w.size(); ++i) w[i] = 0.3 * std::cos(static_cast<double>(i));
  const CompileOptions on{.target = Target::c}, off{.target = Target::c, .disabled_passes = {"overlap"}};
  const auto [a, b] = compile(beside, on)(x, w);
  const auto [c, d] = compile(beside, off)(x, w);
  // Open MPI may add in another order where a sum is waited for.
  const auto same = [](const auto& p, const auto& q) {
    REQUIRE(p.size() == q.size());
    for (std::size_t i = 0; i < p.size(); ++i) CHECK(p[i] == Approx(q[i]).epsilon(1e-14));
  };
  same(a, c);
  CHECK(b == Approx(d).epsilon(1e-14));
  same(compile(two_in_flight, on)(x, x), compile(two_in_flight, off)(x, x));
  const auto [value, g] = compile(gradient<3>, on)(Layers<std::span<const double>>{w, w, w}, x);
  const auto [value_off, g_off] = compile(gradient<3>, off)(Layers<std::span<const double>>{w, w, w}, x);
  const auto [value_one, g_one] = eager(gradient<1>)(Layers<std::span<const double>>{w, w, w}, x);
  CHECK(value == Approx(value_off).epsilon(1e-14));
  same(g.first, g_off.first);
  same(g.second, g_off.second);
  same(g.third, g_off.third);
  CHECK(value == Approx(value_one));
  for (std::size_t i = 0; i < w.size(); ++i) {
    CHECK(g.first[i] == Approx(g_one.first[i]));
    CHECK(g.third[i] == Approx(g_one.third[i]));
  }
  // In a loop, and with single precision.
  const auto steps = [](Rep<Array<float>> u) {
    return FOR(0, 5, u, [&](I, Rep<Array<float>> v) {
      const Rep<Array<float>> s = ld::all_reduce(v);
      const Rep<float> own = FOR(0, v.size(), Rep<float>(0.0F), [&](I i, Rep<float> t) { return t * 0.5F + v[i]; });
      return Rep<Array<float>>(s / cast<float>(ld::world().size()) + own);
    });
  };
  const std::vector<float> u{1.0F, 2.0F, static_cast<float>(me)};
  const auto with = compile(steps, on)(u), without = compile(steps, off)(u);
  for (std::size_t i = 0; i < u.size(); ++i) CHECK(with[i] == Approx(without[i]).epsilon(1e-6));
  CHECK(ranks >= 1);
}
