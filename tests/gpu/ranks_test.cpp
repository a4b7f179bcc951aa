// Programs for a GPU in several processes: operations in the GPU's stream beside the same program on the CPU. Where there
// is no GPU, with stand-ins for NVIDIA's driver and NCCL. Cases of one error each run in processes of their own.
#include <dlfcn.h>

#include <catch2/catch.hpp>
#include <cmath>
#include <cstdlib>
#include <lantern/cuda.hpp>
#include <lantern/distributed.hpp>
#include <lantern/lantern.hpp>
#include <lantern/tensor.hpp>
#include <string>
#include <vector>

#include "../correctness/depth.hpp"

using namespace lantern;
namespace ld = lantern::distributed;
using ld::Reduction;
using D = Rep<double>;
using I = Rep<std::int64_t>;
using A = Rep<Array<double>>;
using M = Rep<Tensor<double, dyn, dyn>>;
using Numbers = std::vector<double>;

namespace {

const std::int64_t me = ld::world_rank(), ranks = ld::world_size();

Numbers numbers(std::size_t n, double phase) {
  Numbers x(n);
  for (std::size_t i = 0; i < n; ++i) x[i] = std::sin(1.3 * static_cast<double>(i) + phase + static_cast<double>(me));
  return x;
}
TensorValue<double> matrix(std::int64_t rows, std::int64_t columns, double phase) {
  TensorValue<double> t({rows, columns});
  t.data = numbers(static_cast<std::size_t>(rows * columns), phase);
  return t;
}

void same(std::int64_t a, std::int64_t b) { CHECK(a == b); }
void same(double a, double b) { CHECK(a == Approx(b).epsilon(1e-12).margin(1e-12)); }
template <class T>
void same(const std::vector<T>& a, const std::vector<T>& b) {
  REQUIRE(a.size() == b.size());
  for (std::size_t i = 0; i < a.size(); ++i) same(static_cast<double>(a[i]), static_cast<double>(b[i]));
}
template <class T>
void same(const TensorValue<T>& a, const TensorValue<T>& b) {
  CHECK(a.shape == b.shape);
  same(a.data, b.data);
}
template <class... T>
void same(const std::tuple<T...>& a, const std::tuple<T...>& b) {
  [&]<std::size_t... i>(std::index_sequence<i...>) { (same(std::get<i>(a), std::get<i>(b)), ...); }(std::index_sequence_for<T...>());
}

/// How many operations NCCL's stand-in was given; -1 where NCCL is not one.
int queued() {
  void* const library = dlopen("libnccl.so.2", RTLD_NOW | RTLD_NOLOAD);
  auto* const count = library ? reinterpret_cast<int (*)()>(dlsym(library, "stand_in_operations")) : nullptr;
  return count ? count() : -1;
}

/// The same on a GPU and on the CPU; how many operations were queued for it.
template <class F, class... X>
int beside(const F& f, const X&... x) {
  const auto cpu = compile(f, {.target = Target::c});
  const auto gpu = compile(f, {.target = Target::cuda});
  const auto expected = cpu(x...);
  const int before = queued();
  same(gpu(x...), expected);
  const int made = queued() - std::max(before, 0);
  same(gpu(x...), expected);
  return made;
}

D every_operation(A x) {
  const ld::Communicator all;
  const I n = all.size(), r = all.rank();
  const auto rows = ld::all_gather(x * x);
  D s = sum(ld::all_reduce(sin(x)) * x) + sum(ld::reduce(x * x, 0)) + sum(ld::broadcast(cos(x), n - 1) * x);
  s = s + sum(rows * rows) + sum(ld::reduce_scatter(rows * rows) * x) + sum(sin(ld::all_to_all(rows)));
  s = s + sum(ld::all_reduce(x, Reduction::max)) + sum(ld::all_reduce(x, Reduction::product)) + sum(ld::all_reduce(x, Reduction::min) * x);
  s = s + sum(ld::scatter(sin(ld::gather(x, n - 1)), n - 1) * x);
  return s + sum(ld::send_receive(x, (r + 1) % n, (r + n - 1) % n) * x) +
         sum(ld::send_receive(x, select(r + 1 < n, r + 1, I(std::int64_t{-1})), r - 1) * x);
}

}  // namespace

TEST_CASE("operations in the stream, and their derivatives", "[three]") {
  REQUIRE(cuda::missing() == "");
  const Numbers x = numbers(5, 0.3);
  const int made = beside(value_and_grad(every_operation), x);
  if (ranks > 1 && queued() >= 0) CHECK(made >= 24);  // nothing of these goes through the host
  if (test::deep()) beside(hvp(every_operation), x, numbers(5, 1.1));
}

TEST_CASE("every type, empty and of one element") {
  const auto f = [](A a, Rep<Array<float>> b, Rep<Array<std::int64_t>> c, Rep<Array<std::int32_t>> d) {
    const auto of = [](auto x) {
      return std::tuple(ld::all_reduce(x, Reduction::max), ld::all_gather(x), ld::broadcast(x, 0), ld::send_receive(x, -1, -1));
    };
    const Rep<Array<bool>> positive(tabulate([&](I i) { return a[i] > 0.0; }, a.size()).datum());
    const Rep<Tensor<bool>> all(ld::all_reduce(positive, Reduction::min).datum());
    return std::tuple_cat(of(a), of(b), of(c), of(d), std::tuple(count(all)));
  };
  const auto cpu = compile(f, {.target = Target::c});
  const auto gpu = compile(f, {.target = Target::cuda});
  for (const std::size_t n : {0U, 1U, 70U}) {
    const Numbers x = numbers(n, 0.1);
    const auto as = [&]<class T>(T) {
      std::vector<T> y;
      for (const double d : x) y.push_back(static_cast<T>(10 * d));
      return y;
    };
    same(gpu(x, as(float()), as(std::int64_t()), as(std::int32_t())), cpu(x, as(float()), as(std::int64_t()), as(std::int32_t())));
  }
}

TEST_CASE("numbers decide loops; groups; rows that go where counts say; scans") {
  const auto f = [](A x) {
    // Ranks go on until all of them are below the bound: the host waits for each sum.
    const A y = WHILE(x, [](A t) { return ld::all_reduce(sum(t * t)) > 0.1; }, [](A t) { return A(t * 0.5 + 0.01 * ld::all_reduce(t)); });
    const ld::Communicator all;
    const auto half = all.split(all.rank() % 2);
    const auto counts = tabulate([&](I b) { return select(b == (all.rank() + 1) % all.size(), x.size(), I(std::int64_t{0})); }, all.size());
    const A moved = std::get<0>(ld::all_to_all(x, Rep<Array<std::int64_t>>(counts.datum())));
    return sum(y) + sum(ld::all_reduce(exp(x), Reduction::sum, half) * x) + sum(sin(moved)) + sum(ld::scan(x) * x) + sum(ld::deterministic_sum(reshape(x, 1, -1)));
  };
  beside(value_and_grad(f), numbers(6, 0.7));
}

TEST_CASE("a field in parts: halos on a GPU") {
  const auto f = [](M u) {
    const ld::Grid grid({{0, true}, {1, false}});
    const auto next = FOR(0, 3, u, [&](I, M w) {
      const auto h = M(ld::halo_exchange(w, 1, grid).datum());
      const I n = w.dim(0), m = w.dim(1);
      const auto c = [&](int i, int j) { return h(range(1 + i, n + 1 + i), range(1 + j, m + 1 + j)); };
      return M((w + 0.1 * (c(1, 0) + c(-1, 0) + c(0, 1) + c(0, -1) - 4.0 * w)).datum());
    });
    return ld::total(sum(next * next * next));
  };
  beside(value_and_grad(f), matrix(4, 5, 0.2));
}

TEST_CASE("calls on a stream that repeat") {
  const auto f = [](A w, A x) { return A(w - 0.1 * grad<0>([](A p, A q) { return ld::total(sum(exp(ld::replicate(p) * q))); })(w, x)); };
  const auto gpu = compile(f, {.target = Target::cuda});
  const auto cpu = compile(f, {.target = Target::c});
  Numbers w(4, 0.1);
  const Numbers x = numbers(4, 0.5);
  auto there = cuda::to_device(w);
  const auto data = cuda::to_device(x);
  const cuda::Stream stream;
  for (int i = 0; i < 4; ++i) {
    gpu.on(stream).into(there, there, data);
    w = cpu(w, x);
  }
  same(cuda::to_host(there, stream).data, w);
}

// ---- one error each

TEST_CASE("ranks that call different operations", "[.][different]") {
  const auto one = compile([](A x) { return ld::all_reduce(x); }, {.target = Target::cuda});
  const auto two = compile([](A x) { return ld::broadcast(x, 0); }, {.target = Target::cuda});
  const Numbers x(3, 1.0);
  const auto call = [&] { return me == 0 ? one(x) : two(x); };
  CHECK_THROWS_WITH(call(), Catch::Contains("ranks_test.cpp:") && Catch::Contains("the ranks do not agree: rank 0 calls all_reduce(sum) of 3 double") &&
                                Catch::Contains("rank 1 calls broadcast of 3 double, root 0"));
}

TEST_CASE("a message that is not what the other rank expects", "[.][message]") {
  const auto f = compile([](A x) { return ld::send_receive(x, 1 - ld::world().rank(), 1 - ld::world().rank()); }, {.target = Target::cuda});
  CHECK_THROWS_WITH(f(Numbers(static_cast<std::size_t>(3 + me), 1.0)),
                    Catch::Contains("ranks_test.cpp:") && Catch::Contains("send_receive: the ranks do not agree: rank ") && Catch::Contains(" sends send_receive of ") && Catch::Contains(" receives send_receive of "));
}

TEST_CASE("a rank that ends while the other waits for its GPU", "[.][ends]") {
  // Rank 0's stream holds a sum that rank 1 takes no part in; its host waits for the number.
  const auto f = compile(
      [](A x) {
        const A y = IF(ld::world().rank() == 0, [&] { return ld::all_reduce(x); }, [&] { return A(x / x[0]); });
        return IF(y[1] > 0.0, [&] { return y; }, [&] { return A(2.0 * y); });
      },
      {.target = Target::cuda});
  const auto first = compile([](A x) { return ld::all_reduce(x); }, {.target = Target::cuda});
  first(Numbers(3, 1.0));
  if (me == 1) return;
  CHECK_THROWS_WITH(f(Numbers(3, 1.0)), Catch::Contains("ranks_test.cpp:") && Catch::Contains("rank 0 waits for rank 1, which has ended"));
}

TEST_CASE("without NCCL operations go through the host, and where it is asked for it is missed", "[.][without]") {
  const auto f = [](A x) { return sum(ld::all_reduce(x * x) * x); };
  const auto gpu = compile(grad(f), {.target = Target::cuda});
  const auto cpu = compile(grad(f), {.target = Target::c});
  const Numbers x = numbers(4, 0.2);
  const char* const engine = std::getenv("LANTERN_DISTRIBUTED");
  if (engine && std::string(engine) == "nccl")
    CHECK_THROWS_WITH(gpu(x), Catch::Contains("the engine nccl cannot be loaded on all ranks") && Catch::Contains("install NCCL 2"));
  else
    same(gpu(x), cpu(x));
}
