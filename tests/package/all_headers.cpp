// All public headers, and what instantiates most of them, for compilers other than the one that builds Lantern.
#include <lantern/complex.hpp>
#include <lantern/data.hpp>
#include <lantern/distributed.hpp>
#include <lantern/lantern.hpp>
#include <lantern/linalg.hpp>
#include <lantern/nn.hpp>
#include <lantern/random.hpp>
#include <lantern/solvers.hpp>
#include <lantern/special.hpp>
#include <lantern/tensor.hpp>
#include <string>
#include <vector>

using namespace lantern;

namespace {

using A = Rep<Array<double>>;

template <class T>
struct Net {
  nn::Linear<T> first_layer, last_layer;
};
static_assert(nn::detail::member_name<Net<float>, 1>() == "last_layer");

}  // namespace

Rep<double> f(A a, Rep<double> x) {
  return FOR(0, a.size(), x, [&](Rep<std::int64_t> i, Rep<double> s) { return IF(a[i] > s, [&] { return s * a[i]; }, [&] { return s; }); });
}

double all(const std::vector<double>& a) {
  const auto compiled = compile(value_and_grad(f));
  const auto [value, gradient] = compiled(a, 2.0);
  const auto second = eager(hessian<0>(f))(a, 2.0);
  std::vector<double> target(a.size());
  compile(grad<0>(f)).into(target, a, 1.0);
  return value + std::get<1>(gradient) + second.data[0];
}
