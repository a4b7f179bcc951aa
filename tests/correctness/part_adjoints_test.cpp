// Adjoints of parts of tensors: in every way the same, and added up in place, with nothing saved for a
// shape's sake.
#include <catch2/catch.hpp>
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
