// What a program of several processes may hold: sizes of nothing, rows that only some ranks send, grids, groups made inside
// of functions, operations in branches, loops and recursion, second derivatives. Runs alone and under mpirun.
#include <catch2/catch.hpp>
#include <chrono>
#include <cmath>
#include <lantern/distributed.hpp>
#include <lantern/lantern.hpp>
#include <lantern/tensor.hpp>
#include <string>
#include <thread>
#include <vector>

using namespace lantern;
namespace ld = lantern::distributed;
using ld::Reduction;
using D = Rep<double>;
using I = Rep<std::int64_t>;
using A = Rep<Array<double>>;
using Counts = Rep<Array<std::int64_t>>;
using Numbers = std::vector<double>;

namespace {

const std::int64_t me = ld::world_rank(), ranks = ld::world_size();
const double own = static_cast<double>(me) + 1;
double sum_of(const auto& f) {
  double s = 0;
  for (std::int64_t r = 0; r < ranks; ++r) s += f(static_cast<double>(r) + 1);
  return s;
}
/// Eagerly, compiled, and compiled without passes.
template <class F, class Check, class... X>
void each_way(const F& f, const Check& check, const X&... x) {
  check(eager(f)(x...));
  for (const int level : {0, 2}) check(compile(f, {.target = Target::c, .opt = level})(x...));
}

}  // namespace

TEST_CASE("rows that only some ranks send, of integers and truths") {
  // Rank r sends r rows to rank 0, and none to others.
  const auto f = [](Rep<Tensor<std::int32_t, dyn, 2>> x) {
    const auto counts = tabulate([](I r) { return select(r == 0, ld::world().rank(), I(std::int64_t{0})); }, ld::world().size());
    const auto [rows, from] = ld::all_to_all(x, Counts(counts.datum()));
    return std::tuple(sum(rows), rows.dim(0), from);
  };
  TensorValue<std::int32_t> x({me, 2}, static_cast<std::int32_t>(me));
  each_way(f, [](const auto& result) {
    const auto& [total, rows, from] = result;
    CHECK(total == (me == 0 ? static_cast<int>(sum_of([](double r) { return 2 * (r - 1) * (r - 1); })) : 0));
    CHECK(rows == (me == 0 ? ranks * (ranks - 1) / 2 : 0));
    for (std::int64_t r = 0; r < ranks; ++r) CHECK(from[static_cast<std::size_t>(r)] == (me == 0 ? r : 0));
  }, x);
}

TEST_CASE("parts of no elements") {
  const auto f = [](Rep<Tensor<double, dyn, dyn>> x) {
    const auto all = ld::all_gather(x);
    const auto back = ld::reduce_scatter(all);
    const A sums = ld::all_reduce(A(ravel(x).datum()));
    return std::tuple(all.dim(0), all.dim(2), back.dim(0), sums.size(), ld::all_reduce(sum(x)));
  };
  each_way(f, [](const auto& result) {
    CHECK(result == std::tuple<std::int64_t, std::int64_t, std::int64_t, std::int64_t, double>(ranks, 3, 0, 0, 0.0));
  }, TensorValue<double>({0, 3}));
  CHECK(compile(grad([](A x) { return sum(ld::scan(ld::all_reduce(x))); }), {.target = Target::c})(Numbers{}).empty());
}

TEST_CASE("groups that a function makes, from the last rank to the first") {
  const auto f = [](D x) {
    const ld::Communicator all;
    const ld::Communicator turned = all.split(0, all.size() - all.rank());
    const ld::Communicator pairs = turned.split(turned.rank() / 2);
    return std::tuple(ld::all_gather(x, turned), turned.rank(), ld::all_reduce(x, Reduction::sum, pairs), pairs.size());
  };
  each_way(f, [](const auto& result) {
    const auto& [row, rank, pair, size] = result;
    for (std::int64_t r = 0; r < ranks; ++r) CHECK(row[static_cast<std::size_t>(r)] == static_cast<double>(ranks - r));
    CHECK(rank == ranks - 1 - me);
    const std::int64_t other = rank % 2 == 0 ? me - 1 : me + 1;
    CHECK(size == (other >= 0 && other < ranks ? 2 : 1));
    CHECK(pair == own + (size == 2 ? static_cast<double>(other) + 1 : 0));
  }, own);
}

TEST_CASE("a ring of periods and a chain without, in three dimensions") {
  const auto f = [](Rep<Tensor<double>> u) {
    const ld::Grid grid({{1, true}, {0, true}, {1, false}});
    return std::tuple(ld::halo_exchange(u, 1, grid), grid.size(1), grid.neighbour(1, -1), grid.neighbour(2, 1));
  };
  TensorValue<double> u({2, 2, 2}, own);
  each_way(f, [](const auto& result) {
    const auto& [h, n, below, beyond] = result;
    CHECK(h.shape == std::vector<std::int64_t>{4, 4, 4});
    CHECK(n == ranks);
    CHECK(below == (me + ranks - 1) % ranks);
    CHECK(beyond == -1);
    const auto at = [&](int i, int j, int k) { return h.data[static_cast<std::size_t>(16 * i + 4 * j + k)]; };
    const double before = static_cast<double>((me + ranks - 1) % ranks) + 1, after = static_cast<double>((me + 1) % ranks) + 1;
    CHECK(at(0, 1, 1) == own);     // around the ring of one
    CHECK(at(3, 0, 2) == before);  // a corner
    CHECK(at(1, 3, 1) == after);
    CHECK(at(1, 1, 0) == 0);  // beyond the end
  }, u);
}

TEST_CASE("integers and truths") {
  const auto f = [](I a, Rep<std::int32_t> b, Rep<bool> c) {
    return std::tuple(ld::scan(a, Reduction::product), ld::scan(b, Reduction::max), ld::scan(a, Reduction::min, ld::Scan::exclusive),
                      ld::all_reduce(c, Reduction::min), ld::all_reduce(c, Reduction::max), ld::reduce(a, 0, Reduction::product));
  };
  each_way(f, [](const auto& result) {
    const auto& [product, most, least, every, any, whole] = result;
    std::int64_t factorial = 1, of_all = 1;
    for (std::int64_t r = 0; r < ranks; ++r) of_all *= r + 2, factorial *= r <= me ? r + 2 : 1;
    CHECK(product == factorial);
    CHECK(most == 7);
    CHECK(least == (me == 0 ? std::numeric_limits<std::int64_t>::max() : 2));
    CHECK(every == (ranks == 1));
    CHECK(any);
    CHECK(whole == (me == 0 ? of_all : 0));
  }, me + 2, static_cast<std::int32_t>(7 - me), me == 0);
}

TEST_CASE("operations in branches, loops and recursion, and their second derivatives") {
  // All ranks go the same way: what decides is the same on all.
  const auto step = [](D x) {
    const D all = ld::all_reduce(x);
    return IF(all > 0.0, [&] { return sin(x) + 0.1 * all; }, [&] { return ld::broadcast(x, 0) * x; });
  };
  const auto looped = [step](D x) {
    const D y = WHILE(x, [](D t) { return ld::all_reduce(t * t) < 40.0; }, [&](D t) { return 1.5 * t + 0.2 * ld::all_reduce(t); });
    return ld::total(FOR(0, 2, y, [&](I, D t) { return step(t); }));
  };
  const auto recursive = [](D x) {
    const auto go = FUN<double(double, std::int64_t)>("go", [&](auto self, D t, I n) {
      return IF(n == 0, [&] { return ld::all_reduce(t * t); }, [&] { return self(t * 0.5 + 0.3 * ld::scan(sin(t)), n - 1) * t; });
    });
    return ld::total(go(x, I(std::int64_t{3})));
  };
  const auto check = [](const auto& f) {
    const double h = 1e-5, x = 0.3 * own;
    const auto g = sig<double(double)>(f);
    // One rank's x after the other is moved: what the other ranks find is a row of the derivative.
    const double slope = eager(grad(g))(x), bend = eager(hvp(g))(x, 1.0);
    for (std::int64_t r = 0; r < ranks; ++r) {
      const double d = r == me ? h : 0;
      const double difference = (eager(g)(x + d) - eager(g)(x - d)) / (2 * h);
      if (r == me) CHECK(slope == Approx(difference).epsilon(1e-6));
    }
    const double up = eager(grad(g))(x + h), down = eager(grad(g))(x - h);
    CHECK(bend == Approx((up - down) / (2 * h)).epsilon(1e-6));
    for (const int level : {0, 2}) {
      const CompileOptions way{.target = Target::c, .opt = level};
      CHECK(compile(grad(g), way)(x) == Approx(slope).epsilon(1e-11));
      CHECK(compile(hvp(g), way)(x, 1.0) == Approx(bend).epsilon(1e-10));
    }
  };
  check(looped);
  check(recursive);
}

TEST_CASE("halves of messages: second derivatives, and what has no partner") {
  const auto at = [](std::int64_t rank, std::int64_t then) { return select(ld::world().rank() == rank, I(then), I(std::int64_t{-1})); };
  const auto f = sig<double(double)>([=](D x) {
    ld::send(x * x, at(0, 1));
    const D r = ld::receive(x, at(1, 0));
    return r * r * 0.5;
  });
  if (ranks > 1) {  // x0^4 / 2 on rank 1; what comes back to rank 0 is differentiated though nothing follows its send
    const double x = 1.5, bend = me == 0 ? 6 * x * x : 0;
    const auto twice = sig<double(double)>([=](D y) { return grad(sig<double(double)>([=](D z) { return grad(f)(z); }))(y); });
    each_way(hvp(f), [&](double h) { CHECK(h == Approx(bend)); }, x, 1.0);
    each_way(twice, [&](double h) { CHECK(h == Approx(bend)); }, x);
    each_way(sig<double(double)>([=](D y) { return grad<0>(hvp(f))(y, D(1.0)); }), [&](double t) { CHECK(t == Approx(me == 0 ? 12 * x : 0)); }, x);
  }
  const auto refused = [&](const auto& program, const std::string& what) {
    const std::string never = "distributed::send_receive: a part of this derivative would wait for ever, for no rank " + what +
                              "; to a `send` of what is differentiated belongs a `receive` whose `like` is differentiated, and the other way around";
    for (const int level : {0, 2})
      CHECK_THROWS_WITH(compile(program, {.target = Target::c, .opt = level}), Catch::EndsWith(never) && Catch::Contains("distributed_corners_test.cpp:"));
  };
  const auto like = sig<double(double)>([=](D x) { return ld::send(x * x, at(0, 1)), x * ld::receive(D(0.0), at(1, 0)); });
  const auto sent = sig<double(double)>([=](D x) { return ld::send(stop_gradient(x), at(0, 1)), x * ld::receive(x, at(1, 0)); });
  refused(grad(like), "receives what is sent here");
  refused(jvp(like), "receives what is sent here");
  refused(grad(sent), "sends what is received here");
  CHECK_NOTHROW(compile(like, {.target = Target::c}));
  // One half alone is the program of some of the ranks.
  CHECK_NOTHROW(compile(grad(sig<double(double)>([=](D x) { return ld::send(x * x, at(0, 1)), x; })), {.target = Target::c}));
}

TEST_CASE("a late rank: the others tell each other meanwhile what they have called, which is long") {
  const std::string place(100, 'p');  // with 200 operations more than the engine sends without a second message
  double y = 0;
  const auto sum = [&] { distributed_exchange_f64(place.c_str(), 0, distributed_all_reduce, distributed_sum, -1, -1, 1, &own, &y); };
  for (int k = 0; k < 200; ++k) sum();
  if (me == ranks - 1) std::this_thread::sleep_for(std::chrono::milliseconds(ranks > 1 ? 600 : 0));
  sum();
  CHECK(y == sum_of([](double r) { return r; }));
  distributed_end(place.c_str());
}

TEST_CASE("a part that is computed again for the derivative communicates again") {
  const auto inner = [](D x) { return sin(ld::all_reduce(x * x)); };
  const auto f = sig<double(double)>([=](D x) { return ld::total(checkpoint(inner)(x) * x); });
  const double square = sum_of([](double r) { return 0.01 * r * r; }), weight = sum_of([](double r) { return 0.1 * r; });
  const double expected = std::sin(square) + 2 * 0.1 * own * std::cos(square) * weight;
  CHECK(eager(grad(f))(0.1 * own) == Approx(expected));
  for (const int level : {0, 2}) CHECK(compile(grad(f), {.target = Target::c, .opt = level})(0.1 * own) == Approx(expected));
}

TEST_CASE("the Hessian of a loss over all ranks, the same on all of them") {
  const auto loss = sig<double(Array<double>, double)>([](A w, D x) {
    const A shared = ld::replicate(w);
    return ld::total(exp(shared[0] * x) * shared[1]);
  });
  const auto check = [](const TensorValue<double>& h) {
    const Numbers w{0.2, 0.5};
    const auto sum = [&](const auto& f) { return sum_of([&](double r) { return f(0.3 * r) * std::exp(w[0] * 0.3 * r); }); };
    CHECK(h.data[0] == Approx(sum([&](double x) { return x * x * w[1]; })));
    CHECK(h.data[1] == Approx(sum([](double x) { return x; })));
    CHECK(h.data[2] == Approx(h.data[1]));
    CHECK(h.data[3] == Approx(0).margin(1e-12));
  };
  check(eager(hessian<0>(loss))(Numbers{0.2, 0.5}, 0.3 * own));
  check(compile(hessian<0>(loss), {.target = Target::c})(Numbers{0.2, 0.5}, 0.3 * own));
}
