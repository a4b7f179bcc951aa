// Programs in several processes beside the same programs in one: losses over shared parameters, fields with halos,
// groups, structs, every element type; random programs. Runs alone and under mpirun.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <functional>
#include <lantern/distributed.hpp>
#include <lantern/lantern.hpp>
#include <lantern/tensor.hpp>
#include <random>
#include <vector>

#include "../correctness/depth.hpp"

using namespace lantern;
namespace ld = lantern::distributed;
using ld::Reduction;
using D = Rep<double>;
using I = Rep<int64_t>;
using A = Rep<Array<double>>;
using T = Rep<Tensor<double>>;
using Numbers = std::vector<double>;

namespace {

const int64_t me = ld::world_rank(), ranks = ld::world_size();

Numbers numbers(std::size_t n, unsigned seed) {
  std::mt19937 engine(seed);
  std::uniform_real_distribution<double> number(-1, 1);
  Numbers x(n);
  for (double& v : x) v = number(engine);
  return x;
}
void check_close(const Numbers& a, const Numbers& b, double tolerance = 1e-10) {
  REQUIRE(a.size() == b.size());
  for (std::size_t i = 0; i < a.size(); ++i) CHECK(a[i] == Approx(b[i]).epsilon(tolerance).margin(tolerance));
}
Numbers part_of(const Numbers& all, int64_t r) {
  const std::size_t n = all.size() / static_cast<std::size_t>(ranks);
  const auto from = all.begin() + static_cast<std::ptrdiff_t>(n) * r;
  return {from, from + static_cast<std::ptrdiff_t>(n)};
}
/// A communicator of this rank alone: the program of one process.
ld::Communicator alone() { return ld::world().split(ld::world().rank()); }

template <class Product>
struct Model {
  Rep<Array<double>> w;
  Rep<double> bias;
  Rep<Array<float>> scale;
};

}  // namespace

TEST_CASE("a loss over data of all ranks, of parameters that all share") {
  const Numbers data = numbers(static_cast<std::size_t>(ranks) * 6, 1), w{0.3, -0.7}, v{1, 2};
  const auto loss = [](const A& p, const A& x) {
    return FOR(0, x.size(), D(0.0), [&](I i, D s) {
      const D miss = sin(p[0] * x[i]) + p[1] * p[1] * x[i] - 0.3;
      return s + miss * miss;
    });
  };
  const auto together = [&](A p, A x) { return ld::total(loss(ld::replicate(p), x)); };
  const auto slope = grad<0>(sig<double(Array<double>, Array<double>)>(together));
  const auto bend = [&](A p, A x, A along) {
    return grad<0>(sig<double(Array<double>, Array<double>, Array<double>)>(
        [&](A q, A y, A b) { return dot(slope(q, y), ld::replicate(b)); }))(p, x, along);
  };
  const auto slope_alone = grad<0>(sig<double(Array<double>, Array<double>)>([&](A p, A x) { return loss(p, x); }));
  const auto bend_alone = [&](A p, A x, A along) {
    return grad<0>(sig<double(Array<double>, Array<double>, Array<double>)>(
        [&](A q, A y, A b) { return dot(slope_alone(q, y), b); }))(p, x, along);
  };
  const double value = eager(sig<double(Array<double>, Array<double>)>([&](A p, A x) { return loss(p, x); }))(w, data);
  const Numbers g = eager(slope_alone)(w, data), h = eager(bend_alone)(w, data, v);
  const Numbers own = part_of(data, me);
  CHECK(eager(together)(w, own) == Approx(value));
  CHECK(compile(together, {.target = Target::c})(w, own) == Approx(value));
  check_close(eager(slope)(w, own), g);
  check_close(compile(slope, {.target = Target::c})(w, own), g);
  // `bend` is a dot product that all ranks have, not a part of one: the same on all of them.
  check_close(eager(bend)(w, own, v), h);
  check_close(compile(bend, {.target = Target::c})(w, own, v), h);
}

TEST_CASE("structs in one message") {
  const auto f = [](A w, D bias, Rep<Array<float>> scale) {
    const Model<void> m = ld::all_reduce(Model<void>{w * bias, bias, scale});
    const auto [a, b] = ld::broadcast(std::tuple(m.w, bias), 0);
    return std::tuple(m.w, m.bias, m.scale, a, b);
  };
  const double mine = static_cast<double>(me) + 1, n = static_cast<double>(ranks), sum = n * (n + 1) / 2;
  const auto check = [&](const auto& way) {
    const auto [w, bias, scale, a, b] = way(Numbers{1, 2}, mine, std::vector<float>{0.5F});
    CHECK(w == Numbers{sum, 2 * sum});
    CHECK(bias == sum);
    CHECK(scale == std::vector<float>{0.5F * static_cast<float>(ranks)});
    CHECK(a == w);
    CHECK(b == 1);
  };
  check(eager(f));
  check(compile(f, {.target = Target::c}));
}

TEST_CASE("every type, empty and of one element, rank 0 to 3") {
  const auto f = [](Rep<float> a, Rep<int32_t> b, I c, Rep<bool> d, Rep<Array<bool>> e, Rep<Tensor<float, 2, dyn, 2>> t,
                    A none) {
    return std::tuple(ld::all_reduce(a), ld::all_reduce(b, Reduction::max), ld::all_reduce(c, Reduction::product),
                      ld::all_reduce(d, Reduction::min), ld::all_reduce(e, Reduction::max), ld::all_reduce(t),
                      ld::all_reduce(none), ld::all_gather(c), ld::broadcast(d, 0));
  };
  const auto check = [&](const auto& way) {
    const bool even = me % 2 == 0, flags[] = {false, even};
    const TensorValue<float> t({2, 1, 2}, static_cast<float>(me));
    const auto [a, b, c, d, e, s, none, all, first] =
        way(1.5F, static_cast<int32_t>(me), me + 1, even, flags, t, Numbers{});
    CHECK(a == 1.5F * static_cast<float>(ranks));
    CHECK(b == ranks - 1);
    int64_t factorial = 1;
    for (int64_t r = 1; r <= ranks; ++r) factorial *= r;
    CHECK(c == factorial);
    CHECK(d == (ranks == 1));
    CHECK(e == std::vector<bool>{false, true});
    CHECK(s.data == std::vector<float>(4, static_cast<float>(ranks * (ranks - 1) / 2)));
    CHECK(none.empty());
    CHECK(all.size() == static_cast<std::size_t>(ranks));
    CHECK(all.back() == ranks);
    CHECK(first);
  };
  check(eager(f));
  check(compile(f, {.target = Target::c}));
}

TEST_CASE("a product with zeros, extrema that several ranks hold") {
  // d(x_0 x_1 ... )/dx_r where x of the last rank is 0; with two zeros nothing is left.
  const auto product = grad<0>(sig<double(double)>([](D x) { return ld::total(ld::all_reduce(x, Reduction::product)); }));
  const auto value_of = [&](int64_t r) { return r == ranks - 1 ? 0.0 : static_cast<double>(r) + 2; };
  double others = static_cast<double>(ranks);  // the total counts the product once for each rank
  for (int64_t r = 0; r < ranks; ++r)
    if (r != me) others *= value_of(r);
  CHECK(eager(product)(value_of(me)) == Approx(others));
  CHECK(compile(product, {.target = Target::c})(value_of(me)) == Approx(others));
  const auto largest = grad<0>(sig<double(double)>([](D x) { return ld::all_reduce(x, Reduction::max); }));
  CHECK(eager(largest)(3.0) == (me == 0 ? static_cast<double>(ranks) : 0.0));
  CHECK(compile(largest, {.target = Target::c})(3.0) == (me == 0 ? static_cast<double>(ranks) : 0.0));
}

TEST_CASE("groups: each reduces for itself, and groups of groups") {
  const auto f = [](D x) {
    const ld::Communicator all, half = all.split(all.rank() % 2), quarter = half.split(half.rank() % 2, -half.rank());
    return std::tuple(ld::all_reduce(x, Reduction::sum, half), half.rank(), half.size(), quarter.size(),
                      ld::all_reduce(x * x, Reduction::sum, quarter));
  };
  const auto slope = grad<0>(sig<double(double)>([&](D x) { return std::get<0>(f(x)) * std::get<4>(f(x)); }));
  double sum = 0, squares = 0;
  int64_t size = 0, quarter = 0;
  for (int64_t r = me % 2; r < ranks; r += 2) sum += static_cast<double>(r) + 1, ++size;
  for (int64_t r = me % 4; r < ranks; r += 4) squares += (static_cast<double>(r) + 1) * (static_cast<double>(r) + 1), ++quarter;
  const double x = static_cast<double>(me) + 1;
  const auto check = [&](const auto& way) {
    const auto [a, r, n, q, b] = way(x);
    CHECK(a == sum);
    CHECK(r == me / 2);
    CHECK(n == size);
    CHECK(q == quarter);
    CHECK(b == squares);
  };
  check(eager(f));
  check(compile(f, {.target = Target::c}));
  CHECK(compile(slope, {.target = Target::c})(x) == Approx(eager(slope)(x)));
}

namespace {

/// Steps of heat on the part of this rank; `halo` gives the part with its neighbours' cells.
template <class Halo>
T heated(const T& start, int64_t steps, const Halo& halo) {
  return FOR(0, steps, start, [&](I, T u) {
    const T p = halo(u);
    const I m = u.dim(0), n = u.dim(1);
    // Corners take part, so that they are seen.
    const T around = p(range(0, m), range(1, n + 1)) + p(range(2, m + 2), range(1, n + 1)) +
                     p(range(1, m + 1), range(0, n)) + p(range(1, m + 1), range(2, n + 2)) +
                     0.5 * (p(range(0, m), range(0, n)) + p(range(2, m + 2), range(2, n + 2)));
    return T(u + 0.1 * (around - 5.0 * u) + 0.01 * u * u);
  });
}

}  // namespace

TEST_CASE("halos: cells of neighbours, with corners and without ends") {
  int64_t grid[2] = {0, 0};
  distributed_dims("", 0, 2, grid);
  constexpr int64_t width = 2, rows = 3, columns = 4;
  const int64_t m = rows * grid[0], n = columns * grid[1], row = me / grid[1] * rows, column = me % grid[1] * columns;
  const auto cell = [&](int64_t i, int64_t j) { return static_cast<double>(100 * i + j + 1); };
  TensorValue<double> u({rows, columns});
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < columns; ++j) u.data[static_cast<std::size_t>(i * columns + j)] = cell(row + i, column + j);
  for (const bool periodic : {false, true}) {
    const auto f = [periodic](T t) { return ld::halo_exchange(t, width, ld::Grid({{0, periodic}, {0, periodic}})); };
    const auto check = [&](const auto& way) {
      const TensorValue<double> all = way(u);
      REQUIRE(all.shape == std::vector<int64_t>{rows + 2 * width, columns + 2 * width});
      for (int64_t i = -width; i < rows + width; ++i)
        for (int64_t j = -width; j < columns + width; ++j) {
          const int64_t x = row + i, y = column + j;
          const bool inside = x >= 0 && x < m && y >= 0 && y < n;
          const double expected = periodic ? cell((x + m) % m, (y + n) % n) : inside ? cell(x, y) : 0;
          CHECK(all.data[static_cast<std::size_t>((i + width) * (columns + 2 * width) + j + width)] == expected);
        }
    };
    check(eager(f));
    check(compile(f, {.target = Target::c}));
  }
}

TEST_CASE("a field in parts: values and gradients of the whole") {
  int64_t grid[2] = {0, 0};
  distributed_dims("", 0, 2, grid);
  const int64_t rows = 12 / grid[0], columns = 12 / grid[1], m = rows * grid[0], n = columns * grid[1];
  const Numbers whole = numbers(static_cast<std::size_t>(m * n), 7);
  const auto own = [&](const Numbers& all) {
    TensorValue<double> u({rows, columns});
    for (int64_t i = 0; i < rows; ++i)
      for (int64_t j = 0; j < columns; ++j)
        u.data[static_cast<std::size_t>(i * columns + j)] = all[static_cast<std::size_t>((me / grid[1] * rows + i) * n + me % grid[1] * columns + j)];
    return u;
  };
  const TensorValue<double> field(whole, {m, n});
  for (const bool periodic : {false, true}) {
    const auto energy = [=](const T& u, const ld::Grid& g, int64_t steps) {
      const T end = heated(u, steps, [&](const T& t) { return ld::halo_exchange(t, 1, g); });
      return sum(end * end * end);
    };
    const auto parts = [=](T u) { return ld::total(energy(u, ld::Grid({{0, periodic}, {0, periodic}}), 4)); };
    const auto one = [=](T u) { return energy(u, ld::Grid({{1, periodic}, {1, periodic}}, alone()), 4); };
    const double value = eager(one)(field);
    const auto slope = eager(grad(one))(field);
    CHECK(eager(parts)(own(whole)) == Approx(value));
    CHECK(compile(parts, {.target = Target::c})(own(whole)) == Approx(value));
    check_close(eager(grad(parts))(own(whole)).data, own(slope.data).data);
    for (const Target target : {Target::c, Target::cpp}) {
      if (target == Target::cpp && (ranks != 2 || periodic)) continue;  // Clang takes its time
      check_close(compile(grad(parts), {.target = target})(own(whole)).data, own(slope.data).data);
    }
  }
}

TEST_CASE("a message from one rank to another") {
  // The last rank gets what the first one has, squares it, and sends it back.
  const auto f = [](D x) {
    const ld::Communicator all;
    const I last = all.size() - 1;
    ld::send(x * x, select(all.rank() == 0, last, I(int64_t{-1})));
    const D there = ld::receive(x, select(all.rank() == last, I(int64_t{0}), I(int64_t{-1})));
    return there * there;
  };
  if (ranks == 1) return;  // nobody sends to itself by two operations
  const double x = 1.5;
  const double expected = me == ranks - 1 ? 1.5 * 1.5 * 1.5 * 1.5 : 0, slope = me == 0 ? 4 * 1.5 * 1.5 * 1.5 : 0;
  CHECK(eager(f)(x) == Approx(expected));
  CHECK(eager(grad(sig<double(double)>(f)))(x) == Approx(slope));
  CHECK(compile(f, {.target = Target::c})(x) == Approx(expected));
  CHECK(compile(grad(sig<double(double)>(f)), {.target = Target::c})(x) == Approx(slope));
}

TEST_CASE("what one rank alone uses has a cotangent on all") {
  const auto f = [](D x) {
    const D y = ld::all_reduce(x);
    return IF(ld::world().rank() == 0, [&] { return y * y; }, [&] { return D(0.0); });
  };
  const auto slope = grad(sig<double(double)>(f));
  const double x = static_cast<double>(me) + 1, n = static_cast<double>(ranks);
  CHECK(eager(slope)(x) == Approx(n * (n + 1)));
  CHECK(compile(slope, {.target = Target::c})(x) == Approx(n * (n + 1)));
  CHECK(compile(slope, {.target = Target::c, .opt = 0})(x) == Approx(n * (n + 1)));
}

namespace {

/// One step of a random program, for ranks that communicate, and for one process that has what all of them have.
struct Step {
  int kind;
  int64_t root;
  double weight;
};
constexpr int kinds = 13;

A stepped(const Step& s, const A& x) {
  const ld::Communicator all;
  const I n = all.size(), r = all.rank();
  switch (s.kind) {
    case 0: return ld::all_reduce(x) * s.weight;
    case 1: return x + s.weight * ld::send_receive(x, (r + 1) % n, (r + n - 1) % n);
    case 2: return ld::broadcast(x, s.root) * s.weight + x;
    case 3: return ld::scan(x) * s.weight;
    case 4: return sin(x) * s.weight + x * x;
    case 5: return ld::all_reduce(tanh(x), Reduction::max) - s.weight * x;
    case 6: return ld::reduce(x, s.root) * s.weight + cos(x);
    case 7: return FOR(0, 2, x, [&](I, A y) { return A(0.5 * y + s.weight * ld::all_reduce(y * x)); });
    case 8: return sum(ld::all_gather(x)) * s.weight + x;
    case 9: {  // all elements to the rank that is `root` further
      const auto counts = tabulate([&](I b) { return select(b == (r + s.root) % n, x.size(), I(int64_t{0})); }, n);
      return std::get<0>(ld::all_to_all(x, Rep<Array<int64_t>>(counts.datum()))) * s.weight + x;
    }
    case 10: {
      const auto rows = ld::gather(x, s.root);
      return A(ld::scatter(sin(rows), s.root).datum()) * s.weight + x;
    }
    case 11: return A(ld::reduce_scatter(ld::all_to_all(ld::all_gather(x * x))).datum()) * s.weight + x;
    default: return ld::scan(x, Reduction::sum, ld::Scan::exclusive) * s.weight + ld::deterministic_sum(reshape(x, 1, -1));
  }
}
std::vector<A> stepped(const Step& s, const std::vector<A>& x) {
  const std::size_t n = x.size();
  const auto total = [](const std::vector<A>& all) {
    A y = all[0];
    for (std::size_t r = 1; r < all.size(); ++r) y = y + all[r];
    return y;
  };
  std::vector<A> out;
  const auto root = static_cast<std::size_t>(s.root);
  for (std::size_t r = 0; r < n; ++r) {
    const std::vector<A> before(x.begin(), x.begin() + static_cast<std::ptrdiff_t>(r) + 1);
    switch (s.kind) {
      case 0: out.push_back(total(x) * s.weight); break;
      case 1: out.push_back(x[r] + s.weight * x[(r + n - 1) % n]); break;
      case 2: out.push_back(x[root] * s.weight + x[r]); break;
      case 3: out.push_back(total(before) * s.weight); break;
      case 4: out.push_back(sin(x[r]) * s.weight + x[r] * x[r]); break;
      case 5: {
        A most = tanh(x[0]);
        for (std::size_t k = 1; k < n; ++k) most = max(most, tanh(x[k]));
        out.push_back(most - s.weight * x[r]);
        break;
      }
      case 6: out.push_back(r == root ? A(total(x) * s.weight + cos(x[r])) : A(cos(x[r]))); break;
      case 7: out.push_back(x[r]); break;
      case 8: out.push_back(sum(total(x)) * s.weight + x[r]); break;
      case 9: out.push_back(x[(r + n - root) % n] * s.weight + x[r]); break;
      case 10: out.push_back(sin(x[r]) * s.weight + x[r]); break;
      case 11: {  // part b of what rank a gathers is that of rank b; exchanged, rank r has r's in all parts
        out.push_back(total([&] {
          std::vector<A> squares;
          for (const A& one : x) squares.push_back(one * one);
          return squares;
        }()) * s.weight + x[r]);
        break;
      }
      default: {
        const std::vector<A> earlier(x.begin(), x.begin() + static_cast<std::ptrdiff_t>(r));
        out.push_back(r == 0 ? total(x) : A(total(earlier) * s.weight + total(x)));
      }
    }
  }
  if (s.kind == 7)
    for (int k = 0; k < 2; ++k) {
      std::vector<A> products;
      for (std::size_t r = 0; r < n; ++r) products.push_back(out[r] * x[r]);
      for (A& y : out) y = A(0.5 * y + s.weight * total(products));
    }
  return out;
}

}  // namespace

TEST_CASE("random programs of communication and arithmetic") {
  constexpr std::size_t n = 3;
  test::Seeds(40, 2500).each([&](unsigned program) {
    std::mt19937 engine(static_cast<unsigned>(ranks) + 100 * program);
    const auto pick = [&](int64_t below) { return static_cast<int64_t>(engine() % static_cast<unsigned long>(below)); };
    std::vector<Step> steps;
    for (int64_t k = 2 + pick(4); k > 0; --k)
      steps.push_back({static_cast<int>(pick(kinds)), pick(ranks), 0.1 + 0.1 * static_cast<double>(pick(5))});
    CAPTURE(program, me);
    const auto energy = [steps](A x) {
      A y = x;
      for (const Step& s : steps) y = stepped(s, y);
      return sum(sin(y));
    };
    const auto truth = [steps](A x) {
      std::vector<A> y;
      for (int64_t r = 0; r < ranks; ++r) {
        const int64_t first = r * static_cast<int64_t>(n);
        y.push_back(A(T(x.datum())(range(first, first + static_cast<int64_t>(n))).datum()));
      }
      for (const Step& s : steps) y = stepped(s, y);
      D all = 0.0;
      for (const A& part : y) all = all + sum(sin(part));
      return all;
    };
    const Numbers x = numbers(n * static_cast<std::size_t>(ranks), program), v = numbers(x.size(), program + 1000);
    const Numbers own = part_of(x, me), along = part_of(v, me);
    const auto total = [energy](A a) { return ld::total(energy(a)); };
    // Some programs are ill conditioned: what a change of the arguments by 1e-13 makes of the truth is allowed beside it.
    Numbers nudged = x;
    for (double& c : nudged) c *= 1 + 1e-13;
    const double value = eager(truth)(x), near_value = eager(truth)(nudged);
    CHECK(std::abs(eager(total)(own) - value) <= 1e-10 * std::max(1.0, std::abs(value)) + std::abs(value - near_value));
    const Numbers g = part_of(eager(grad(truth))(x), me), h = part_of(eager(hvp(truth))(x, v), me);
    const Numbers near_g = part_of(eager(grad(truth))(nudged), me), near_h = part_of(eager(hvp(truth))(nudged, v), me);
    const auto check_beside = [](const Numbers& a, const Numbers& b, const Numbers& near_b) {
      REQUIRE(a.size() == b.size());
      for (std::size_t i = 0; i < a.size(); ++i)
        CHECK(std::abs(a[i] - b[i]) <= 1e-10 * std::max(1.0, std::abs(b[i])) + std::abs(b[i] - near_b[i]));
    };
    check_beside(eager(grad(total))(own), g, near_g);
    check_beside(eager(hvp(total))(own, along), h, near_h);
    if (program % 4 != 0) return;
    check_beside(compile(grad(total), {.target = Target::c})(own), g, near_g);
    check_beside(compile(hvp(total), {.target = Target::c})(own, along), h, near_h);
    const auto twice = grad<0>(sig<double(Array<double>, Array<double>)>(
        [energy](A a, A b) { return dot(grad(energy)(a), b); }));
    check_beside(compile(twice, {.target = Target::c})(own, along), h, near_h);
  });
}
