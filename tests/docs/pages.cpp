// What the pages of docs/ show, compiled and run: readme.cmake looks for each of their blocks here, in native.cpp and in
// samples/. Ends with a status other than 0 where a result is wrong.
#include <fmt/core.h>
#include <fmt/ranges.h>

#include <cmath>
#include <cstdlib>
#include <lantern/cuda.hpp>
#include <lantern/distributed.hpp>
#include <lantern/eigen.hpp>
#include <lantern/lantern.hpp>
#include <lantern/nn.hpp>
#include <lantern/runtime/tree_loader.hpp>
#include <stdexcept>
#include <vector>

using namespace lantern;

void expect(bool right, const char* what) {
  if (!right) throw std::runtime_error(what);
}
bool near(double a, double b) { return std::abs(a - b) <= 1e-6 * (1 + std::abs(b)); }

// ---- howto.md

namespace lapack {
using D = Rep<double>;
using A = Rep<Array<double>>;
using M = Rep<Tensor<double, dyn, dyn>>;

extern "C" void dgesv_(const int* n, const int* right_sides, double* a, const int* lda, int* pivots, double* b, const int* ldb,
                       int* info);

// The solution of a x = b in the place of b. LAPACK takes columns, and destroys the matrix.
extern "C" void solve(int64_t n, const double* a, double* b) {
  std::vector<double> columns(static_cast<std::size_t>(n * n));
  for (int64_t i = 0; i < n * n; ++i) columns[static_cast<std::size_t>(i % n * n + i / n)] = a[i];
  const int size = static_cast<int>(n), one = 1;
  std::vector<int> pivots(static_cast<std::size_t>(n));
  int info = 0;
  dgesv_(&size, &one, columns.data(), &size, pivots.data(), b, &size, &info);
  if (info != 0) lantern_fail("solve: the matrix is singular");
}
const auto solve_ = external<int64_t, Tensor<double, dyn, dyn>, Array<double>>("solve", solve);
A solution(M a, A b) { return solve_(a.dim(0), a, b); }  // what `T*` changes is a result

// The rule: with a^T w = cotangent, that of b is w, and that of a is -w x^T.
const auto solved = custom_vjp(
    solution,
    [](M a, A b) {
      const A x = solution(a, b);
      return std::tuple(x, a, x);
    },
    [](M a, A x, A cotangent) {
      const A w = solution(transpose(a), cotangent);
      return std::tuple(M(-1.0 * outer(w, x)), w);
    });
D energy(M a, A b) {
  const A x = solved(a, b);
  return dot(x, x);
}

void run() {
  const std::vector<double> matrix{4, 1, 0, 2}, b{5, 4};
  const TensorView<const double> a(matrix.data(), {2, 2});
  check_derivative(energy)(a, b);  // raises where differences say otherwise
  const auto x = compile(solution)(a, b);
  expect(near(x[0], 0.75) && near(x[1], 2), "solution");
}
}  // namespace lapack

namespace rules {
using D = Rep<double>;
using A = Rep<Array<double>>;
using I = Rep<int64_t>;

void run() {
  {
    const auto root = custom_jvp([](D x) { return sqrt(x); },
                                 [](D x, D dx) { return std::tuple(sqrt(x), dx / (2.0 * max(sqrt(x), 1e-8))); });
    auto slope = compile(grad([&](D x) { return root(x); }));
    fmt::print("{}\n", slope(0.0));  // 50000000: a number, where sqrt alone has inf
    expect(near(slope(0.0), 5e7), "rule");
  }
  {
    // Each element meets its neighbours: three colours, however long the array is.
    const auto f = [](A a) {
      return FOR(0, a.size(), a, [&](I i, A r) { return r.set(i, a[i] * a[max(i - 1, 0)] * a[min(i + 1, a.size() - 1)]); });
    };
    const std::vector<double> a(1000, 2.0);
    const Sparsity s = jacobian_sparsity(f)(a);
    const std::vector<double> entries = compile(sparse_jacobian(f))(a, s);  // row i: s.row_start[i] <= k < s.row_start[i + 1], column s.column[k]
    fmt::print("{} entries by {} passes\n", entries.size(), s.forward + s.reverse);
    expect(entries.size() == 2998 && s.forward + s.reverse == 3, "sparse");
  }
  {
    const auto energy = [](A a) { return FOR(0, a.size(), D(0.0), [&](I i, D sum) { return sum + exp(sin(a[i])); }); };
    const auto gradient = compile(grad(energy), {.threads = 2});
    const std::vector<double> g = gradient(std::vector<double>(100'000, 0.5));
    expect(near(g[7], std::exp(std::sin(0.5)) * std::cos(0.5)), "threads");
  }
  {
    using Vector = Eigen::Matrix<Rep<double>, 3, 1>;
    const auto spring = [](Vector x) {
      const D stretch = x.norm() - 1.0;
      return 0.5 * stretch * stretch;
    };
    auto force = compile(grad(spring));
    const Eigen::Vector3d f = force(Eigen::Vector3d(0, 3, 4));  // 4 in the direction of x
    expect(near(f[1], 2.4) && near(f[2], 3.2), "Eigen");
  }
  {
    const auto f = [](D x) {
      D y = x * x;
      print(x, "x");                         // "x = 3", each time it is computed, in order
      y = print_adjoint(y, "adjoint of y");  // y; the backward part prints the adjoint that arrives
      return 2.0 * y;
    };
    expect(near(eager(grad(f))(3.0), 12), "print");
  }
  {
    const auto f = [](D x) { return log(x) * x; };
    auto df = compile(grad(f), {.check = Check::nan});
    try {
      df(-1.0);
      expect(false, "check");
    } catch (const Error& e) {
      fmt::print("{}\n", e.what());  // names the line, the operation and its part of the derivative
    }
  }
}
}  // namespace rules

// ---- trees.md

namespace trees_page {
using D = Rep<double>;
using I = Rep<int64_t>;
using V = Rep<Tensor<double, dyn>>;
using M = Rep<Tensor<double, dyn, dyn>>;

// The sum of the root's vector, for all trees of the batch.
D loss(M inner, M leaf, Trees<int64_t> trees) {
  const V zero = zeros_like(V(leaf.row(0)));
  M roots = TREE(zero, trees, [&](V left, V right, auto node) {
    return IF(
        node.is_leaf(), [&] { return V(leaf.row(node.value())); },
        [&] { return V(tanh(matmul(inner, concat(left, right)))); });
  });
  return sum(roots);
}

// A child-sum network (Tai, Socher and Manning 2015): the hidden state of each root.
M hidden(M inner, M words, Dags<int64_t> dags) {
  const V zero = zeros_like(V(words.row(0)));
  return TREE(zero, dags, [&](const auto& children, auto node) {
    const V sum = FOR(0, children.size(), zero, [&](I k, V now) { return V(now + children[k]); });
    return V(tanh(matmul(inner, sum) + words.row(node.value())));
  });
}

void run() {
  const TensorValue<double> inner({2, 4}), square({2, 2}), leaf({9, 2});
  const Tree<int64_t> one(3), two(0, Tree<int64_t>(1), Tree<int64_t>(2));
  const std::vector<Tree<int64_t>> sentences{one, two};
  TreeBatch<int64_t> batch(sentences);  // sorts the nodes by height
  auto [by_inner, by_leaf] = compile(grad<0, 1>(loss))(inner, leaf, batch);
  expect(near(by_leaf[6], 1), "trees");

  const std::vector<Tree<int64_t>>& trees = sentences;
  const std::uint64_t seed = 1;
  int steps = 0;
  const auto step = [&](const TreeBatch<int64_t>&) { ++steps; };
  TreeLoader loader(trees.size(), 25, seed, [&](std::span<const std::size_t> which) {
    std::vector<Tree<int64_t>> some;
    for (const std::size_t i : which) some.push_back(trees[i]);
    return TreeBatch<int64_t>(some);
  });
  for (std::size_t i = 0; i < loader.batches(); ++i) step(loader.next());  // an epoch
  expect(steps == 1, "loader");

  DagBuilder<int64_t> builder;
  const auto it = builder.add(4), works = builder.add(7);  // the numbers of the nodes
  builder.root(builder.add(0, {it, works}));               // results come in the order of the roots
  auto h = compile(hidden)(square, leaf, builder.finish());
  expect(h.data.size() == 2, "dags");
}
}  // namespace trees_page

// ---- distributed.md

namespace distributed_page {
Rep<double> local_loss(Rep<Array<double>> w, Rep<Array<double>> points) {
  const auto off = w[0] * points - w[1];
  return dot(off, off);
}
Rep<double> loss(Rep<Array<double>> w, Rep<Array<double>> own_points) {
  return distributed::total(local_loss(distributed::replicate(w), own_points));
}
LANTERN_FUNCTION(slope, value_and_grad<0>(loss))

void run() {
  const auto [value, g] = slope(std::vector<double>{1, 0}, std::vector<double>{3, 4});
  expect(near(value, 25) && near(g[0], 50), "distributed");
}
}  // namespace distributed_page

// ---- gpu.md: runs where there is a GPU, compiles everywhere

namespace gpu_page {
using F = Rep<float>;
using V = Rep<Tensor<float, dyn>>;

std::tuple<F, V> training_step(V w, V x, F y, F rate) {
  const auto [value, g] = value_and_grad([&](V v) {
    const F off = sum(v * x) - y;
    return off * off;
  })(w);
  return {value, V(w - rate * g)};
}

void scaled() {
  const TensorValue<float> points({2}, 1.0f);
  TensorValue<float> weights({2}, 2.0f);
  using State = nn::SgdState<V>;
  auto scaled_step = [](V w, State s, nn::LossScale<V> now, V x, F y) {
    const auto loss = [&](V v) { return nn::mse(V(v * x), fill(y, x.dim(0))); };
    return nn::scaled_step(loss, w, s, now, [&](V g) { return nn::sgd(w, g, s, {.learning_rate = 0.1}); });
  };
  auto state = nn::sgd_state(weights);
  auto scale = nn::loss_scale(weights);  // 65536
  const float loss = nn::in_place(compile(scaled_step))(weights, state, scale, points, 1.0f);
  expect(near(loss, 1) && near(weights[0], 1.9) && scale.steps == 1, "scaled loss");
}

void run() {
  scaled();
  if (!cuda::missing().empty()) return;
  const TensorValue<float> x({2}, 1.0f);
  TensorValue<float> weights({2}, 2.0f);
  const float y = 1.0f;
  float loss = 0;
  auto step = compile(training_step, {.target = Target::cuda});
  auto result = step(weights, x, y, 0.1f);  // tensors of the host: copied there and back
  expect(near(std::get<0>(result), 9), "gpu");

  cuda::DeviceTensor<float> w = cuda::to_device(weights);  // a TensorValue<float>, or a std::vector<float>
  cuda::Stream s;                                          // or cuda::Stream(a_cudaStream_t)
  step.on(s).into(loss, w, w, x, y, 0.1f);                 // queued; w is changed in place
  auto [loss2, w2] = step.on(s)(w, x, y, 0.1f);            // results are new tensors of the GPU
  weights = cuda::to_host(w, s);                           // waits
  expect(loss2 < loss, "gpu step");

  auto in_place = nn::in_place(step.on(s));
  const float loss3 = in_place(w, x, y, 0.1f);  // w gets its new value
  expect(near(loss3, loss2), "gpu step in place");
}
}  // namespace gpu_page

int main() {
  try {
    lapack::run();
    rules::run();
    trees_page::run();
    distributed_page::run();
    gpu_page::run();
  } catch (const std::exception& e) {
    fmt::print(stderr, "{}\n", e.what());
    return 1;
  }
}
