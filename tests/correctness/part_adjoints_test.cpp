// Adjoints of parts of tensors: in every way the same, and added up in place, with nothing saved for a
// shape's sake.
#include <catch2/catch.hpp>
#include <cmath>
#include <regex>

#include "../occurrences.hpp"
#include "lantern/lantern.hpp"
#include "lantern/tensor.hpp"
#include "same_tensors.hpp"

using namespace lantern;

namespace {

using D = Rep<double>;
using I = Rep<std::int64_t>;
using M = Rep<Tensor<double, dyn, dyn>>;
using Host = TensorValue<double>;

/// Steps of a stencil of nine points, some of which come in squares; its border stays.
D stencil(M start, I steps) {
  const M end = FOR(0, steps, start, [&](I, M u) {
    const auto part = [&](std::int64_t i, std::int64_t j) {
      return u(range(i, i == 2 ? to_end : i - 2), range(j, j == 2 ? to_end : j - 2));
    };
    const auto middle = part(1, 1);
    const auto around = part(0, 1) + part(2, 1) + part(1, 0) + 2.0 * part(1, 2);
    const auto corners = part(0, 0) * part(0, 0) - part(2, 2) + part(0, 2) * middle - part(2, 0);
    return u.set_part({range(1, -1), range(1, -1)}, middle + 0.2 * (around - 4.0 * middle) + 0.1 * corners);
  });
  return sum(end * end * end);
}

/// A linear one: its adjoint needs no values of the forward part.
D linear(M start, I steps) {
  const M end = FOR(0, steps, start, [&](I, M u) {
    const auto middle = u(range(1, -1), range(1, -1));
    const auto around = u(range(0, -2), range(1, -1)) + u(range(2, to_end), range(1, -1)) +
                        u(range(1, -1), range(0, -2)) + u(range(1, -1), range(2, to_end));
    return u.set_part({range(1, -1), range(1, -1)}, middle + 0.2 * (around - 4.0 * middle));
  });
  return sum(end * end);
}

Host numbers(std::int64_t rows, std::int64_t columns) {
  Host t({rows, columns});
  for (std::size_t i = 0; i < t.data.size(); ++i) t.data[i] = 0.3 + 0.05 * static_cast<double>(i * 7 % 11);
  return t;
}

using lantern::test::same;

using lantern::test::count;

}  // namespace

TEST_CASE("adjoints of parts agree in all ways", "[tensors]") {
  for (const auto f : {stencil, linear}) {
    const auto by_hand = eager(grad<0>(f));
    const auto value = eager(f);
    const auto fast = compile(grad<0>(f), {.target = Target::cpp}),
               small = compile(grad<0>(f), {.target = Target::c});
    const auto in_order = compile(grad<0>(f), {.target = Target::c, .reassociate = false});
    for (const auto& [rows, columns] : {std::pair(2, 2), {3, 3}, {2, 5}, {3, 4}, {5, 4}, {6, 21}, {19, 40}}) {
      Host x = numbers(rows, columns);
      const Host d = by_hand(x, 3);
      same(fast(x, 3), d);
      same(small(x, 3), d);
      same(in_order(x, 3), d);
      const double step = 1e-5;
      for (const std::size_t at : {std::size_t{0}, x.data.size() / 2, x.data.size() - 2}) {
        const double was = x.data[at];
        x.data[at] = was + step;
        const double above = value(x, 3);
        x.data[at] = was - step;
        const double below = value(x, 3);
        x.data[at] = was;
        CHECK(d.data[at] == Approx((above - below) / (2 * step)).epsilon(1e-6).margin(1e-7));
      }
    }
  }
}

TEST_CASE("a linear step's adjoint keeps nothing and makes no tensors of zeros", "[tensors]") {
  const auto d = compile(grad<0>(linear), {.target = Target::cpp});
  const std::string ir = d.source("ir");
  CHECK(count(ir, "push[") == 0);
  CHECK(count(ir, "zeros_like") == 0);
  CHECK(count(ir, "copy") == 1);  // of the argument
  // The adjoint of the part that was replaced becomes zeros, several at once though the loop counts down.
  CHECK(std::regex_search(d.source("cpp"),
                          std::regex("lt_store_f64x[0-9]+\\([^;]*lt_splat_f64x[0-9]+\\(0\\.0\\)")));
  CHECK(count(compile(grad<0>(stencil), {.target = Target::cpp}).source("ir"), "push[") > 0);
}

namespace {

/// All elements are replaced one after the other; later ones are divided by earlier ones, which may be 0.
D replaced(Rep<Array<double>> a, I n) {
  Rep<Array<double>> d = fill(D(0.0), n);
  FOR(0, n, [&](I i) { d = d.set(i, 2.5 + a[i]); });
  FOR(1, n, [&](I h) { FOR(h, n, [&](I i) { d = d.set(i, d[i] / d[i - h]); }); });
  return FOR(0, n, D(0.0), [&](I i, D s) { return s + d[i]; });
}
D replaced_in_rows(Rep<Array<double>> a, I n) {
  M d = fill(D(0.0), n, n);
  FOR(0, n, [&](I i) {
    FOR(0, n, [&](I j) { d = d.set(i, j, a[j] + cast<double>(i)); });
    d = d.set(i, i, 1.0 + a[i]);
  });
  FOR(1, n, [&](I i) { FOR(0, i, [&](I j) { d = d.set(i, j, d(i, j) / d(j, j)); }); });
  return FOR(0, n, D(0.0), [&](I i, D s) { return FOR(0, n, s, [&](I j, D t) { return t + d(i, j); }); });
}

}  // namespace

TEST_CASE("the adjoint of an array whose elements are replaced is gone through once", "[tensors]") {
  for (const auto f : {replaced, replaced_in_rows}) {
    const auto by_hand = eager(grad<0>(f));
    const auto fast = compile(grad<0>(f), {.target = Target::cpp});
    const auto small = compile(grad<0>(f), {.target = Target::c});
    // No iteration adds zero to each element of an array.
    CHECK(count(small.source("c"), "+= 0.0;") == 0);
    for (const std::int64_t n : {0, 1, 2, 5, 19}) {
      for (const bool zero : {false, true}) {
        std::vector<double> x(static_cast<std::size_t>(n));
        for (std::size_t i = 0; i < x.size(); ++i) x[i] = 0.1 * static_cast<double>(i * 5 % 7);
        if (zero && n > 1) x[1] = f == replaced ? -2.5 : -1.0;  // a divisor is 0
        const std::vector<double> expected = by_hand(x, n);
        for (const auto* const compiled : {&fast, &small}) {
          const std::vector<double> got = (*compiled)(x, n);
          REQUIRE(got.size() == expected.size());
          for (std::size_t i = 0; i < got.size(); ++i) {
            CAPTURE(n, zero, i);
            CHECK(std::isnan(got[i]) == std::isnan(expected[i]));
            if (!std::isnan(expected[i])) CHECK(got[i] == Approx(expected[i]).epsilon(1e-12));
          }
        }
      }
    }
  }
}
