// std::mdspan as an argument and as a target: by a view of its interface and, where the
// library has it, by itself.
#include "lantern/mdspan.hpp"

#include <array>
#include <catch2/catch.hpp>
#include <version>

#ifdef __cpp_lib_mdspan
#include <mdspan>
#endif

using namespace lantern;

namespace {

/// What std::mdspan has, with any strides.
template <class T, std::size_t r>
struct Strided {
  using element_type = T;
  using value_type = std::remove_cv_t<T>;
  struct extents_type {};
  struct layout_type {};
  T* data;
  std::array<std::size_t, r> extents, strides;

  static constexpr std::size_t rank() { return r; }
  static constexpr bool is_always_strided() { return true; }
  T* data_handle() const { return data; }
  std::size_t extent(std::size_t k) const { return extents[k]; }
  std::size_t stride(std::size_t k) const { return strides[k]; }
};

using M = Rep<Tensor<double, dyn, dyn>>;

/// Twice the elements, and a sum with different weights.
std::tuple<M, Rep<double>> f(M m) { return {2.0 * m, 10.0 * m(0, 1) + m(m.dim(0) - 1, 0)}; }

template <class View, class Out>
void check(const View& view, const Out& target, const std::vector<double>& twice, double weighted) {
  const auto compiled = compile(f, {.target = Target::c});
  CHECK(std::get<0>(compiled(view)).data == twice);
  CHECK(std::get<1>(compiled(view)) == weighted);
  CHECK(std::get<1>(eager(f)(view)) == weighted);
  double result = 0;
  compiled.into(target, result, view);
  CHECK(result == weighted);
  compiled.accumulate_into(Out(target), result, view);  // a temporary, too
  CHECK(result == 2 * weighted);
  compiled.into(tensor_view(target), result, view);
  CHECK(result == weighted);
}

}  // namespace

TEST_CASE("views of mdspan's interface are arguments, and targets") {
  const std::vector<double> data{1, 2, 3, 4, 5, 6};
  std::vector<double> out(6);
  Strided<double, 2> target{out.data(), {2, 3}, {1, 2}};  // columns first
  check(Strided<const double, 2>{data.data(), {2, 3}, {3, 1}}, target, {2, 4, 6, 8, 10, 12}, 24);
  CHECK(out == std::vector<double>{2, 8, 4, 10, 6, 12});
  Strided<double, 2> transposed{out.data(), {3, 2}, {2, 1}};
  check(Strided<const double, 2>{data.data(), {3, 2}, {1, 3}}, transposed, {2, 8, 4, 10, 6, 12}, 43);
  CHECK(out == std::vector<double>{2, 8, 4, 10, 6, 12});
  // Every other element as an array.
  const auto sum_of = compile([](Rep<Array<double>> a) { return sum(a); }, {.target = Target::c});
  CHECK(sum_of(Strided<const double, 1>{data.data(), {3}, {2}}) == 9);
  CHECK_THROWS_WITH(sum_of(Strided<const double, 2>{data.data(), {2, 3}, {3, 1}}),
                    Catch::Contains("a matrix is passed where the function takes an array"));
}

#ifdef __cpp_lib_mdspan
TEST_CASE("std::mdspan is an argument and a target") {
  const std::vector<double> data{1, 2, 3, 4, 5, 6};
  std::vector<double> out(6);
  std::mdspan target(out.data(), 2, 3);
  check(std::mdspan(data.data(), 2, 3), target, {2, 4, 6, 8, 10, 12}, 24);
  CHECK(out == std::vector<double>{2, 4, 6, 8, 10, 12});
}
#endif
