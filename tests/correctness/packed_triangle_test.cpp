// Sums over triangles that are stored column by column: inner loops walk through them by leaps, in wide
// vectors and without.
#include "../lanes.hpp"
#include "row_programs.hpp"

using namespace lantern;
using namespace lantern::core;
using namespace lantern::test;

namespace {

/// Entry (i, j), j <= i, of a lower triangle that is stored column by column.
I packed(const I& n, const I& i, const I& j) { return j * (2 * n - j - 1) / 2 + i; }

/// The squares of a triangle's products with the rows of x.
D triangle(A t, M x) {
  return total(x.dim(0), [&](I r) {
    return total(x.dim(1), [&](I i) {
      const D s = total(i + 1, [&](I j) { return t[packed(x.dim(1), i, j)] * x(r, j); });
      return s * s;
    });
  });
}

/// Triangles of several classes, and one loop more around, which does not change what is read.
D classes(M t, M x) {
  return total(2, [&](I twice) {
    return total(x.dim(0), [&](I r) {
      return total(t.dim(0), [&](I c) {
        return sin(total(x.dim(1), [&](I i) {
          const D own = exp(t(c, packed(x.dim(1), i, i)));
          const D s = FOR(0, i, own * x(r, i), [&](I j, D sum) {
            return sum + t(c, packed(x.dim(1), i, j)) * x(r, j) * cast<double>(twice + 1);
          });
          return s * s;
        }));
      });
    });
  });
}

/// Two loops of other sizes read the triangle by the same formula.
D products(A t, M x) {
  const I n = x.dim(1);
  return total(x.dim(0), [&](I r) {
    return total(n, [&](I i) {
      return total(n / 2, [&](I j) {
        return sin(total(n / 2, [&](I k) { return t[packed(n, i, k)] * t[packed(n, j, k)] * x(r, k); }));
      });
    });
  });
}

std::vector<double> flat(std::vector<double> v) { return v; }
std::vector<double> flat(TensorValue<double> t) { return t.data; }

/// A program's value and gradient in lanes and without, in threads: each gives
/// what the code without any pass does. Of the gradient only the triangle's part: that for x is added to
/// elements that lie apart, and such loops run in narrow vectors.
template <class F>
class Gradients {
 public:
  explicit Gradients(F f) : plain_(compile(value_and_grad<0>(f), {.target = Target::c, .opt = 0})) {
    const auto add = [&](Target target, int threads, std::vector<std::string> off) {
      ways_.push_back(compile(value_and_grad<0>(f), {.target = target,
                                                     .opt = 3,
                                                     .threads = threads,
                                                     .lanes = lanes_under_test(),
                                                     .disabled_passes = off}));
    };
    add(Target::c, 1, {});
    for (const std::vector<std::string>& off : {std::vector<std::string>{}, {"vectorise"}})
      add(Target::cpp, 1, off);
    add(Target::cpp, 2, {});
  }

  template <class T, class X>
  void check(const T& t, const X& x) const {
    const auto [y, dt] = plain_(t, x);
    for (const auto& way : ways_) {
      const auto [value, ft] = way(t, x);
      CHECK(agree::close(value, y, 1e-11));
      check_close(flat(ft), flat(dt));
    }
  }

 private:
  using Call = decltype(compile(value_and_grad<0>(std::declval<F>())));
  Call plain_;
  std::vector<Call> ways_;
};

}  // namespace

TEST_CASE("packed triangles: nothing is read that the program does not read", "[passes]") {
  const std::vector<double> x = numbers(120, 0.4), few = numbers(2, 0.1);
  for (const Target target : {Target::c, Target::cpp}) {
    const auto f = compile(value_and_grad<0>(triangle), {.target = target, .opt = 3});
    const auto [none, d] = f(few, matrix(x, 0, 3));
    CHECK(none == 0.0);
    CHECK(d == std::vector<double>(2, 0.0));
    for (const std::size_t rows : {4u, 40u}) {  // without wide vectors and with them
      CHECK_THROWS_WITH(f(few, matrix(x, rows, 3)), Catch::Contains("is outside 0..1"));
      CHECK_THROWS_WITH(f(few, matrix(x, rows, 3)), Catch::Contains("packed_triangle_test.cpp"));
    }
  }
}

TEST_CASE("packed triangles: gradients", "[passes]") {
  const Gradients of_triangle(triangle);
  const Gradients of_classes(classes);
  const Gradients of_products(products);
  for (const std::size_t n : {1u, 3u, 4u, 5u, 13u})
    for (const std::size_t rows : {1u, 7u, 32u, 41u, 97u}) {
      CAPTURE(n, rows);
      const std::vector<double> x = numbers(rows * n, 0.4), t = numbers(n * (n + 1) / 2, 0.9),
                                three = numbers(3 * n * (n + 1) / 2, 0.7);
      of_triangle.check(t, matrix(x, rows, n));
      if (n >= 3) of_products.check(t, matrix(x, rows, n));
      of_classes.check(matrix(three, 3, n * (n + 1) / 2), matrix(x, rows, n));
    }
}

TEST_CASE("packed triangles: all ways agree", "[passes]") {
  const auto f = [](A a) {
    const M x = FOR(0, 12, fill(D(0.0), 12, 3), [&](I r, M m) {
      return FOR(0, 3, m, [&](I j, M k) { return k.set(r, j, sin(a[j] * cast<double>(r + j))); });
    });
    return triangle(a, x);
  };
  check_all("packed triangle", f, numbers(6, 0.3));
}
