// Operations between processes: values beside those that one process computes, derivatives beside differences, forward
// and reverse beside each other, to second order; eager and compiled. Runs alone and under mpirun.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <functional>
#include <lantern/distributed.hpp>
#include <lantern/lantern.hpp>
#include <lantern/tensor.hpp>
#include <vector>

using namespace lantern;
namespace ld = lantern::distributed;
using ld::Reduction;
using D = Rep<double>;
using I = Rep<int64_t>;
using A = Rep<Array<double>>;
using Numbers = std::vector<double>;
using Map = std::function<A(A)>;

namespace {

const int64_t me = ld::world_rank(), ranks = ld::world_size();

/// What rank r has: numbers that no other rank has, none of them 0 and no two of them equal.
Numbers held_by(int64_t r, std::size_t n, double phase = 0) {
  Numbers x(n);
  for (std::size_t i = 0; i < n; ++i)
    x[i] = std::sin(1.7 * static_cast<double>(i) + 2.3 * static_cast<double>(r) + phase) + 0.01 * static_cast<double>(i);
  return x;
}
std::vector<Numbers> held(std::size_t n, double phase = 0) {
  std::vector<Numbers> all;
  for (int64_t r = 0; r < ranks; ++r) all.push_back(held_by(r, n, phase));
  return all;
}
/// On all ranks the sum of what they have, without an operation under test.
double over_ranks(double x) {
  double sum = 0;
  distributed_exchange_f64("", 0, distributed_all_reduce, distributed_sum, -1, -1, 1, &x, &sum);
  return sum;
}
double inner(const Numbers& a, const Numbers& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}
Numbers moved(Numbers x, const Numbers& by, double step) {
  for (std::size_t i = 0; i < x.size(); ++i) x[i] += step * by[i];
  return x;
}
void check_close(const Numbers& a, const Numbers& b, double tolerance = 1e-12) {
  REQUIRE(a.size() == b.size());
  for (std::size_t i = 0; i < a.size(); ++i) CHECK(a[i] == Approx(b[i]).epsilon(tolerance).margin(tolerance));
}
/// Of a sum over all ranks, so that all come to the same verdict.
void check_near(double a, double b, double tolerance) {
  CHECK(std::abs(a - b) <= tolerance * std::max({1.0, std::abs(a), std::abs(b)}));
}

std::vector<CompileOptions> ways() {
  if (ranks != 2) return {{.target = Target::c, .opt = 0}};  // Clang takes its time
  return {{.target = Target::c, .opt = 0}, {.target = Target::cpp, .opt = 3}};
}

template <class T>
A vector_of(const Rep<T>& t) {
  return A(ravel(t).datum());
}
/// What depends on all results and has second derivatives.
D energy_of(const A& y) { return sum(sin(y) + 0.5 * y * y * y); }

/// Value and derivatives of a map in which ranks communicate, at the x of this rank.
void check_map(const char* name, const Map& map, const Numbers& x, const Numbers& expected) {
  INFO(name << " on rank " << me << " of " << ranks);
  const auto f = sig<Array<double>(Array<double>)>([map](A a) { return map(a); });
  const auto energy = sig<double(Array<double>)>([map](A a) { return energy_of(map(a)); });
  const Numbers v = held_by(me, x.size(), 0.4), s = held_by(me, expected.size(), 0.9);
  const double h = 1e-5;
  check_close(eager(f)(x), expected);

  // Forward against differences, reverse against forward, over all ranks together.
  const auto [y, dy] = eager(jvp(f))(x, v);
  check_close(y, expected);
  const Numbers up = eager(f)(moved(x, v, h)), down = eager(f)(moved(x, v, -h));
  Numbers slope(up.size());
  for (std::size_t i = 0; i < up.size(); ++i) slope[i] = (up[i] - down[i]) / (2 * h);
  check_close(dy, slope, 1e-8);
  const auto [y2, gx] = eager(vjp(f))(x, s);
  check_near(over_ranks(inner(s, dy)), over_ranks(inner(gx, v)), 1e-12);

  // Second order: forward over reverse against differences, reverse over reverse against it.
  const Numbers along = eager(hvp(energy))(x, v);
  const Numbers up_g = eager(grad(energy))(moved(x, v, h)), down_g = eager(grad(energy))(moved(x, v, -h));
  Numbers bend(up_g.size());
  for (std::size_t i = 0; i < bend.size(); ++i) bend[i] = (up_g[i] - down_g[i]) / (2 * h);
  check_close(along, bend, 1e-7);
  const auto twice = grad<0>(sig<double(Array<double>, Array<double>)>(
      [energy](A a, A b) { return dot(grad(energy)(a), b); }));
  check_close(eager(twice)(x, v), along, 1e-10);

  // Compiled: all of it in one program.
  const auto all = [=](A a, A b, A c) {
    const auto [value, tangent] = jvp(f)(a, b);
    const auto [again, cotangent] = vjp(f)(a, c);
    return std::tuple(value, tangent, cotangent, hvp(energy)(a, b), twice(a, b));
  };
  for (const CompileOptions& way : ways()) {
    CAPTURE(static_cast<int>(way.target), way.opt);
    const auto [y3, dy3, gx3, along3, twice3] = compile(all, way)(x, v, s);
    check_close(y3, expected);
    check_close(dy3, dy, 1e-12);
    check_close(gx3, gx, 1e-12);
    check_close(along3, along, 1e-10);
    check_close(twice3, along, 1e-10);
  }
}

Numbers combined(std::size_t n, int64_t from, int64_t to, Reduction how) {
  const std::vector<Numbers> all = held(n);
  Numbers y(n, how == Reduction::product ? 1 : how == Reduction::min ? HUGE_VAL : how == Reduction::max ? -HUGE_VAL : 0);
  for (int64_t r = from; r < to; ++r)
    for (std::size_t i = 0; i < n; ++i) {
      const double x = all[static_cast<std::size_t>(r)][i];
      y[i] = how == Reduction::sum ? y[i] + x : how == Reduction::product ? y[i] * x : how == Reduction::min ? std::min(y[i], x) : std::max(y[i], x);
    }
  return y;
}

}  // namespace

TEST_CASE("all_reduce") {
  for (const Reduction how : {Reduction::sum, Reduction::product, Reduction::min, Reduction::max})
    check_map("all_reduce", [how](A x) { return ld::all_reduce(x, how); }, held_by(me, 5), combined(5, 0, ranks, how));
}

TEST_CASE("broadcast, reduce") {
  const int64_t last = ranks - 1;
  const Numbers none(4, 0.0);
  check_map("broadcast", [=](A x) { return ld::broadcast(x * x, last); }, held_by(me, 4), [&] {
    Numbers y = held_by(last, 4);
    for (double& x : y) x *= x;
    return y;
  }());
  for (const Reduction how : {Reduction::sum, Reduction::product, Reduction::max})
    check_map("reduce", [=](A x) { return ld::reduce(x, last, how); }, held_by(me, 4),
              me == last ? combined(4, 0, ranks, how) : none);
}

TEST_CASE("send_receive: a ring, and a chain with ends") {
  check_map("ring", [](A x) {
    const ld::Communicator comm;
    const I n = comm.size(), r = comm.rank();
    return ld::send_receive(x, (r + 1) % n, (r + n - 1) % n) * x;
  }, held_by(me, 3), [] {
    Numbers y = held_by((me + ranks - 1) % ranks, 3);
    const Numbers x = held_by(me, 3);
    for (std::size_t i = 0; i < 3; ++i) y[i] *= x[i];
    return y;
  }());
  check_map("chain", [](A x) {
    const ld::Communicator comm;
    const I n = comm.size(), r = comm.rank();
    return ld::send_receive(x, select(r + 1 < n, r + 1, I(int64_t{-1})), r - 1);
  }, held_by(me, 3), me == 0 ? Numbers(3, 0.0) : held_by(me - 1, 3));
}

TEST_CASE("gather, all_gather, scatter, reduce_scatter, all_to_all, scan") {
  const int64_t last = ranks - 1;
  const auto flat = [](const std::vector<Numbers>& all) {
    Numbers y;
    for (const Numbers& x : all) y.insert(y.end(), x.begin(), x.end());
    return y;
  };
  const std::size_t n = 3, all_n = n * static_cast<std::size_t>(ranks);
  const auto rows = [](const A& x) { return reshape(x, ld::Communicator().size(), -1); };
  check_map("gather", [=](A x) { return vector_of((ld::gather(x, last))); }, held_by(me, n),
            me == last ? flat(held(n)) : Numbers(all_n, 0.0));
  check_map("all_gather", [](A x) { return vector_of((ld::all_gather(x))); }, held_by(me, n), flat(held(n)));
  const auto part = [&](const Numbers& x) {
    const auto from = x.begin() + static_cast<std::ptrdiff_t>(n) * me;
    return Numbers(from, from + static_cast<std::ptrdiff_t>(n));
  };
  check_map("scatter", [=](A x) { return vector_of((ld::scatter(rows(x), last))); }, held_by(me, all_n),
            part(held_by(last, all_n)));
  for (const Reduction how : {Reduction::sum, Reduction::min, Reduction::product})
    check_map("reduce_scatter", [=](A x) { return vector_of((ld::reduce_scatter(rows(x), how))); }, held_by(me, all_n),
              part(combined(all_n, 0, ranks, how)));
  check_map("all_to_all", [=](A x) { return vector_of((ld::all_to_all(rows(x)))); }, held_by(me, all_n), [&] {
    Numbers y;
    for (int64_t r = 0; r < ranks; ++r) {
      const Numbers p = part(held_by(r, all_n));
      y.insert(y.end(), p.begin(), p.end());
    }
    return y;
  }());
  for (const Reduction how : {Reduction::sum, Reduction::product}) {
    check_map("scan", [=](A x) { return ld::scan(x, how); }, held_by(me, n), combined(n, 0, me + 1, how));
    check_map("exclusive scan", [=](A x) { return ld::scan(x, how, ld::Scan::exclusive); }, held_by(me, n),
              combined(n, 0, me, how));
  }
  check_map("scan of minima", [](A x) { return ld::scan(x, Reduction::min); }, held_by(me, n), combined(n, 0, me + 1, Reduction::min));
  Numbers before = combined(n, 0, me, Reduction::max);  // of no rank: infinite
  for (double& y : before) y = std::max(y, -9.0);
  check_map("exclusive scan of maxima", [](A x) { return A(max(ld::scan(x, Reduction::max, ld::Scan::exclusive), -9.0)); },
            held_by(me, n), before);
}
