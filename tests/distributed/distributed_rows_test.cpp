// Rows of all ranks: sent in unequal numbers, and summed to bits that do not depend on the number of ranks. Values beside
// what one process computes, derivatives beside differences and beside each other. Runs alone and under mpirun.
#include <bit>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstdlib>
#include <lantern/distributed.hpp>
#include <lantern/lantern.hpp>
#include <lantern/tensor.hpp>
#include <limits>
#include <memory>
#include <random>
#include <span>
#include <vector>

using namespace lantern;
namespace ld = lantern::distributed;
using D = Rep<double>;
using I = Rep<int64_t>;
using A = Rep<Array<double>>;
using Rows = Rep<Tensor<double, dyn, dyn>>;
using Counts = Rep<Array<int64_t>>;
using Numbers = std::vector<double>;
using Whole = std::vector<int64_t>;

namespace {

const int64_t me = ld::world_rank(), ranks = ld::world_size();

/// How many rows rank a sends to rank b: 0 to 3.
int64_t sent(int64_t a, int64_t b) { return (2 * a + 3 * b) % 4; }
double cell(int64_t a, int64_t b, int64_t i, int64_t j, double phase) {
  return std::sin(static_cast<double>(31 * a + 7 * b + 3 * i + j) + phase);
}
Whole counts_of(int64_t r) {
  Whole n;
  for (int64_t b = 0; b < ranks; ++b) n.push_back(sent(r, b));
  return n;
}
constexpr int64_t columns = 2;
TensorValue<double> table(const Numbers& all, int64_t n = columns) {
  TensorValue<double> t(Whole{static_cast<int64_t>(all.size()) / n, n});
  t.data = all;
  return t;
}
/// What rank r sends, and what it gets.
TensorValue<double> out_of(int64_t r, double phase = 0) {
  Numbers all;
  for (int64_t b = 0; b < ranks; ++b)
    for (int64_t i = 0; i < sent(r, b); ++i)
      for (int64_t j = 0; j < columns; ++j) all.push_back(cell(r, b, i, j, phase));
  return table(all);
}
TensorValue<double> into(int64_t r, double phase = 0) {
  Numbers all;
  for (int64_t a = 0; a < ranks; ++a)
    for (int64_t i = 0; i < sent(a, r); ++i)
      for (int64_t j = 0; j < columns; ++j) all.push_back(cell(a, r, i, j, phase));
  return table(all);
}
double over_ranks(double x) {
  double sum = 0;
  distributed_exchange_f64("", 0, distributed_all_reduce, distributed_sum, -1, -1, 1, &x, &sum);
  return sum;
}
double inner(const Numbers& a, const Numbers& b) {
  REQUIRE(a.size() == b.size());
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}
bool same_bits(const Numbers& a, const Numbers& b) {
  bool same = a.size() == b.size();
  for (std::size_t i = 0; same && i < a.size(); ++i)
    same = std::bit_cast<std::uint64_t>(a[i]) == std::bit_cast<std::uint64_t>(b[i]);
  return same;
}
const CompileOptions plain{.target = Target::c, .opt = 0}, optimised{.target = Target::c};

Rows swapped(const Rows& x, const Counts& n) { return std::get<0>(ld::all_to_all(x, n)); }
D energy(Rows x, Counts n) {
  const Rows y = swapped(x, n);
  return sum(sin(y) + 0.5 * y * y * y);
}

}  // namespace

TEST_CASE("ragged all_to_all: values and counts of every type") {
  const Whole n = counts_of(me);
  Whole from;
  for (int64_t a = 0; a < ranks; ++a) from.push_back(sent(a, me));
  const TensorValue<double> x = out_of(me), expected = into(me);
  const auto f = [](Rows t, Counts c) { return ld::all_to_all(t, c); };
  const auto check = [&](const auto& way) {
    const auto [y, got] = way(x, n);
    CHECK(y.data == expected.data);
    CHECK(y.shape == expected.shape);
    CHECK(got == from);
  };
  check(eager(f));
  check(compile(f, plain));
  check(compile(f, optimised));
  const auto others = [](Rep<Array<float>> a, Rep<Array<int64_t>> b, Rep<Array<int32_t>> c, Rep<Array<bool>> d, Counts k) {
    return std::tuple(std::get<0>(ld::all_to_all(a, k)), std::get<0>(ld::all_to_all(b, k)),
                      std::get<0>(ld::all_to_all(c, k)), std::get<0>(ld::all_to_all(d, k)));
  };
  // Rank r sends r + 1 numbers to each: its own number.
  const auto m = static_cast<std::size_t>((me + 1) * ranks);
  const Whole each(static_cast<std::size_t>(ranks), me + 1);
  Whole all;
  for (int64_t a = 0; a < ranks; ++a) all.insert(all.end(), static_cast<std::size_t>(a + 1), a);
  const auto odd = std::make_unique<bool[]>(m);
  std::fill_n(odd.get(), m, me % 2 == 1);
  const auto [a, b, c, d] =
      compile(others, plain)(std::vector<float>(m, static_cast<float>(me)), Whole(m, me),
                             std::vector<int32_t>(m, static_cast<int32_t>(me)), std::span<const bool>(odd.get(), m), each);
  REQUIRE(a.size() == all.size());
  for (std::size_t i = 0; i < all.size(); ++i) {
    CHECK(a[i] == static_cast<float>(all[i]));
    CHECK(b[i] == all[i]);
    CHECK(c[i] == all[i]);
    CHECK(d[i] == (all[i] % 2 == 1));
  }
}

TEST_CASE("ragged all_to_all: derivatives to second order") {
  const Whole n = counts_of(me);
  const TensorValue<double> x = out_of(me), v = out_of(me, 0.4), w = into(me, 0.9);
  const auto f = sig<Tensor<double, dyn, dyn>(Tensor<double, dyn, dyn>)>([&](Rows t) {
    return swapped(t, tabulate([](I i) { return I((2 * ld::world().rank() + 3 * i) % 4); }, ld::world().size()));
  });
  // The transpose brings what comes here back: <w, P v> is <P' w, v> over all ranks.
  const auto [y, back] = eager(vjp(f))(x, w);
  CHECK(y.data == into(me).data);
  CHECK(over_ranks(inner(back.data, v.data)) == Approx(over_ranks(inner(w.data, into(me, 0.4).data))));
  const auto slope = grad<0>(sig<double(Tensor<double, dyn, dyn>, Array<int64_t>)>(energy));
  Numbers expected;
  for (const double c : x.data) expected.push_back(std::cos(c) + 1.5 * c * c);
  const auto twice = grad<0>(sig<double(Tensor<double, dyn, dyn>, Tensor<double, dyn, dyn>, Array<int64_t>)>(
      [&](Rows a, Rows b, Counts k) { return sum(slope(a, k) * b); }));
  Numbers bend;
  for (std::size_t i = 0; i < x.data.size(); ++i) bend.push_back((3 * x.data[i] - std::sin(x.data[i])) * v.data[i]);
  const auto close = [](const Numbers& a, const Numbers& b) {
    REQUIRE(a.size() == b.size());
    for (std::size_t i = 0; i < a.size(); ++i) CHECK(a[i] == Approx(b[i]).epsilon(1e-13).margin(1e-13));
  };
  close(eager(slope)(x, n).data, expected);
  close(compile(slope, plain)(x, n).data, expected);
  close(compile(slope, optimised)(x, n).data, expected);
  close(eager(twice)(x, v, n).data, bend);
  close(compile(twice, optimised)(x, v, n).data, bend);
}

namespace {

/// Terms whose sizes differ by 2^400, some of which cancel.
Numbers terms_of(std::size_t n, unsigned seed) {
  std::mt19937 engine(seed);
  std::uniform_real_distribution<double> number(-1, 1);
  Numbers x(n);
  for (std::size_t i = 0; i < n; ++i) x[i] = std::ldexp(number(engine), static_cast<int>(engine() % 400) - 200);
  for (std::size_t i = 0; i + 3 < n; i += 4) x[i + 1] = -x[i];
  return x;
}
/// Unequal parts, of which that of rank 1 is empty.
std::size_t begin_of(int64_t r, std::size_t n) {
  if (r == 1) r = 2;
  return std::min(n, n * static_cast<std::size_t>(r * (r + 1)) / static_cast<std::size_t>(ranks * (ranks + 1)));
}
Numbers own(const Numbers& all, std::size_t row) {
  const std::size_t n = all.size() / row;
  const auto at = [&](std::size_t i) { return all.begin() + static_cast<std::ptrdiff_t>(i * row); };
  return {at(me == 0 ? 0 : begin_of(me, n)), me == ranks - 1 ? all.end() : at(begin_of(me + 1, n))};
}
ld::Communicator alone() { return ld::world().split(ld::world().rank()); }

}  // namespace

TEST_CASE("deterministic sums: rounded once") {
  const auto total = [](A x) { return ld::deterministic_sum(x, alone()); };
  const auto sum_of = [f = compile(total, plain)](const Numbers& x) { return f(x); };
  const double e = std::numeric_limits<double>::epsilon(), small = std::numeric_limits<double>::denorm_min(),
               infinity = std::numeric_limits<double>::infinity(), most = std::numeric_limits<double>::max();
  CHECK(sum_of({1e308, 1, -1e308}) == 1);
  CHECK(sum_of({1, e / 2}) == 1);
  CHECK(sum_of({1, e / 2, small}) == 1 + e);
  CHECK(sum_of({1, e, e / 2}) == 1 + 2 * e);
  CHECK(sum_of({-1, -e / 2, -small}) == -1 - e);
  CHECK(sum_of({small, small, small}) == 3 * small);
  CHECK(sum_of({1e-300, -1e-300, -small}) == -small);
  CHECK(sum_of({most, most, -most}) == most);
  CHECK(sum_of({most, most}) == infinity);
  CHECK(sum_of({infinity, -1}) == infinity);
  CHECK(std::isnan(sum_of({infinity, -infinity})));
  CHECK(std::isnan(sum_of({1, std::nan("")})));
  CHECK(sum_of({}) == 0);
  // Whole numbers are exact in double: so is their sum, scaled.
  std::mt19937_64 engine(3);
  for (int exponent = -1060; exponent <= 960; exponent += 20) {
    Numbers x;
    int64_t all = 0;
    for (int i = 0; i < 50; ++i) {
      const auto k = static_cast<int64_t>(engine() >> 16U) - (int64_t{1} << 47);
      x.push_back(std::ldexp(static_cast<double>(k), exponent));
      all += k;
    }
    CHECK(sum_of(x) == std::ldexp(static_cast<double>(all), exponent));
  }
}

TEST_CASE("deterministic sums: the same bits on any number of ranks") {
  const Numbers all = terms_of(240, 5), part = own(all, 1);
  const auto together = [](A x) { return ld::deterministic_total(x); };
  const auto one = [](A x) { return ld::deterministic_total(x, alone()); };
  const double expected = eager(one)(all);
  CHECK(expected != 0);
  for (const Numbers& bits : {Numbers{eager(together)(part)}, Numbers{compile(together, optimised)(part)}})
    CHECK(same_bits(bits, {expected}));
  const auto rows = [](const Numbers& x) { return table(x, 3); };
  const auto by_column = [](Rows x) { return ld::deterministic_sum(x); };
  const auto by_column_alone = [](Rows x) { return ld::deterministic_sum(x, alone()); };
  CHECK(same_bits(compile(by_column, plain)(rows(own(all, 3))), eager(by_column_alone)(rows(all))));
  const auto single = [](Rep<Array<float>> x) { return ld::deterministic_sum(x); };
  CHECK(compile(single, plain)(std::vector<float>{0.1F, 1e8F, -1e8F}) ==
        static_cast<float>(static_cast<double>(0.1F) * static_cast<double>(ranks)));
}

TEST_CASE("deterministic training: the same gradient bits on any number of ranks") {
  // The loss of each point is of a copy of the parameters of its own.
  const auto loss = [](const A& p, const A& x, const ld::Communicator& comm) {
    const Rows w = ld::deterministic_replicate(p, x.size(), comm);
    const A miss = tabulate([&](I i) { return D(sin(w(i, 0) * x[i]) + w(i, 1) * x[i] * x[i] - 0.3); }, x.size());
    return ld::deterministic_total(A(miss * miss), comm);
  };
  using Loss = double(Array<double>, Array<double>);
  const auto together = value_and_grad<0>(sig<Loss>([&](A p, A x) { return loss(p, x, {}); }));
  const auto one = value_and_grad<0>(sig<Loss>([&](A p, A x) { return loss(p, x, alone()); }));
  const auto usual = value_and_grad<0>(sig<Loss>([&](A p, A x) {
    return FOR(0, x.size(), D(0.0), [&](I i, D s) {
      const D miss = sin(p[0] * x[i]) + p[1] * x[i] * x[i] - 0.3;
      return s + miss * miss;
    });
  }));
  Numbers x(150);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = std::sin(1.3 * static_cast<double>(i));
  const Numbers p{0.7, -0.2}, part = own(x, 1);
  const auto [value, slope] = compile(one, optimised)(p, x);
  const auto [v, s] = compile(together, optimised)(p, part);
  CHECK(same_bits({v, s[0], s[1]}, {value, slope[0], slope[1]}));
  const auto [near, near_slope] = eager(usual)(p, x);
  CHECK(v == Approx(near));
  CHECK(s[0] == Approx(near_slope[0]));
  CHECK(s[1] == Approx(near_slope[1]));
  // Partial cotangents: a result that all ranks return is counted by each.
  const auto partial = grad(sig<double(Array<double>)>([](A a) {
    const D y = ld::deterministic_sum(a);
    return y * y;
  }));
  const Numbers g = compile(partial, plain)(Numbers{1, 2});
  CHECK(g == Numbers(2, 2 * 3 * static_cast<double>(ranks) * static_cast<double>(ranks)));
}

TEST_CASE("ragged all_to_all: counts that are wrong") {
  if (std::getenv("OMPI_COMM_WORLD_SIZE") != nullptr) return;  // distributed_errors has the messages of several ranks
  const auto f = eager([](A x, Counts n) { return std::get<0>(ld::all_to_all(x, n)); });
  const auto said = [&](const Numbers& x, const Whole& n) {
    try {
      f(x, n);
    } catch (const Error& e) {
      return std::string(e.what());
    }
    return std::string();
  };
  CHECK(said({1, 2}, {1}).find("expected counts whose sum is the 2 rows, got 1") != std::string::npos);
  CHECK(said({1, 2}, {-2}).find("expected counts of 0 or more, got -2 for rank 0") != std::string::npos);
  CHECK(said({1, 2}, {1, 1}).find("expected a count of rows for each rank: 1 of them, got 2") != std::string::npos);
  CHECK(f({1, 2}, {2}) == Numbers{1, 2});
}
