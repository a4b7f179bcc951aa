// mpirun -n 2 bench_distributed: operations inside compiled functions beside the same calls of MPI, and the gradient of a heat
// equation beside its objective. `bench distributed` starts it on several numbers of ranks and draws how a program scales.
//
// Each pair is measured in turn, in one run, and the median of the rounds' ratios counts. Ranks share the processors of one
// machine: with more ranks than cores latencies are those of the operating system.
#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <functional>
#include <lantern/distributed.hpp>
#include <lantern/lantern.hpp>
#include <lantern/tensor.hpp>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "distributed_cnn.hpp"
#include "lantern/runtime/distributed/mpi.hpp"

using namespace lantern;
namespace ld = lantern::distributed;
using D = Rep<double>;
using I = Rep<std::int64_t>;
using A = Rep<Array<double>>;
using T = Rep<Tensor<double>>;
using Rows = Rep<Tensor<double, dyn, dyn>>;
using Numbers = std::vector<double>;
using Field = TensorValue<double>;

namespace {

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }
double median(std::vector<double> v) {
  std::ranges::sort(v);
  return v.empty() ? 0 : v[v.size() / 2];
}

struct Pair {
  double plain = 0, here = 0, ratio = 0;  ///< seconds of one operation, and the median of rounds
};
Pair in_turn(const std::function<void()>& plain, const std::function<void()>& here, double times, int rounds) {
  std::vector<double> p, h, r;
  const auto one = [&](const std::function<void()>& f) {
    distributed_barrier("", 0);
    const double start = now();
    f();
    distributed_barrier("", 0);  // a root may be far ahead: what counts is when all have what they get
    return (now() - start) / times;
  };
  one(plain), one(here);
  for (int k = 0; k < rounds; ++k) {
    p.push_back(one(plain));
    h.push_back(one(here));
    r.push_back(h.back() / p.back());
  }
  return {median(p), median(h), median(r)};
}

struct Measured {
  double latency = 0, seconds_a_byte = 0;  ///< of a message there and one back, at the same time
};

using Mpi = lantern::distributed::Mpi;

struct Case {
  const char* name;
  std::function<A(const A&)> here;  ///< of elements that keep their shape
  std::function<void(int n, double* x, double* y)> plain;
};

/// Operations in a loop of a compiled function, beside a loop of calls of MPI: `most` of them where they are small.
Measured operations(const Mpi& mpi, std::int64_t most, int rounds) {
  const int me = static_cast<int>(ld::world_rank()), ranks = static_cast<int>(ld::world_size());
  const auto ring = [](const A& x) {
    const ld::Communicator c;
    const I n = c.size(), r = c.rank();
    return ld::send_receive(x, (r + 1) % n, (r + n - 1) % n);
  };
  const std::vector<Case> cases{
      {"all_reduce", [](const A& x) { return ld::all_reduce(x, ld::Reduction::max); },
       [&](int n, double* x, double* y) { mpi.allreduce(x, y, n, mpi.f64, mpi.op_max, mpi.world); }},
      // From each rank in turn: a root alone may be far ahead of the others, whatever an operation costs it.
      {"broadcast, there and back",
       [](const A& x) { return ld::broadcast(ld::broadcast(x, 0), ld::world().size() - 1); },
       [&](int n, double* x, double* y) {
         if (me == 0) std::memcpy(y, x, sizeof(double) * static_cast<std::size_t>(n));
         mpi.bcast(y, n, mpi.f64, 0, mpi.world);
         if (me == ranks - 1) std::memcpy(x, y, sizeof(double) * static_cast<std::size_t>(n));
         mpi.bcast(x, n, mpi.f64, ranks - 1, mpi.world);
       }},
      {"scan, broadcast",
       [](const A& x) { return ld::broadcast(ld::scan(x, ld::Reduction::max), ld::world().size() - 1); },
       [&](int n, double* x, double* y) {
         mpi.scan(x, y, n, mpi.f64, mpi.op_max, mpi.world);
         if (me == ranks - 1) std::memcpy(x, y, sizeof(double) * static_cast<std::size_t>(n));
         mpi.bcast(x, n, mpi.f64, ranks - 1, mpi.world);
       }},
      {"all_to_all",
       [](const A& x) { return A(ravel(ld::all_to_all(reshape(x, ld::world().size(), -1))).datum()); },
       [&](int n, double* x, double* y) { mpi.alltoall(x, n / ranks, mpi.f64, y, n / ranks, mpi.f64, mpi.world); }},
      {"all_gather, reduce_scatter",
       [](const A& x) { return A(ravel(ld::reduce_scatter(ld::all_gather(x), ld::Reduction::max)).datum()); },
       [&, all = std::make_shared<Numbers>()](int n, double* x, double* y) {
         all->resize(static_cast<std::size_t>(n) * static_cast<std::size_t>(ranks));
         mpi.allgather(x, n, mpi.f64, all->data(), n, mpi.f64, mpi.world);
         mpi.reduce_scatter_block(all->data(), y, n, mpi.f64, mpi.op_max, mpi.world);
       }},
      {"send_receive", ring,
       [&](int n, double* x, double* y) {
         lantern::distributed::MpiRequest send = nullptr, receive = nullptr;
         mpi.irecv(y, n, mpi.f64, (me + ranks - 1) % ranks, 7, mpi.world, &receive);
         mpi.isend(x, n, mpi.f64, (me + 1) % ranks, 7, mpi.world, &send);
         for (int a = 0, b = 0; a == 0 || b == 0;) {
           if (a == 0) mpi.test(&receive, &a, nullptr);
           if (b == 0) mpi.test(&send, &b, nullptr);
         }
       }},
  };
  const auto checks = std::getenv("LANTERN_DISTRIBUTED_CHECKS");
  if (me == 0)
    fmt::print("{} ranks, checks between ranks {}; microseconds of one operation: MPI, Lantern, median of ratios of {} rounds of 100,000 doubles, {} of fewer\n",
               ranks, checks != nullptr && std::string(checks) == "0" ? "off" : "on", rounds, 9 * rounds);
  Measured found;
  for (const Case& c : cases) {
    const auto f = compile([&](A x, I times) { return FOR(0, times, x, [&](I, A u) { return A(c.here(u)); }); },
                           {.target = Target::cpp});
    for (const int n : {2, 1000, 100'000}) {
      const int elements = n / ranks * ranks + (n % ranks == 0 ? 0 : ranks);
      Numbers x(static_cast<std::size_t>(elements), 1.0 + me), y(x);
      const std::int64_t times = n > 10'000 ? most / 25 : most;
      const Pair t = in_turn(
          [&] {
            for (std::int64_t k = 0; k < times; ++k) c.plain(elements, x.data(), y.data()), std::swap(x, y);
          },
          [&] { f(x, times); }, static_cast<double>(times), n > 10'000 ? rounds : 9 * rounds);
      if (me == 0)
        fmt::print("  {:<27} {:>7} doubles {:>10.2f} {:>10.2f} {:>6.2f}\n", c.name, elements, 1e6 * t.plain, 1e6 * t.here, t.ratio);
      if (std::string(c.name) == "send_receive") {
        const double bytes = 8.0 * elements;
        if (n == 2) found.latency = t.here;
        if (n == 100'000) found.seconds_a_byte = std::max(0.0, t.here - found.latency) / bytes;
      }
    }
  }
  return found;
}

/// Heat on a grid of ranks, side x side cells each.
D heat(const T& start, const I& steps) {
  const ld::Grid grid({{0}, {0}});
  const T end = FOR(0, steps, start, [&](I, T u) {
    const T p = ld::halo_exchange(u, 1, grid);
    const I m = u.dim(0), n = u.dim(1);
    const T around = p(range(0, m), range(1, n + 1)) + p(range(2, m + 2), range(1, n + 1)) + p(range(1, m + 1), range(0, n)) +
                     p(range(1, m + 1), range(2, n + 2));
    return T(u + 0.2 * (around - 4.0 * u));
  });
  return ld::total(sum(end * end));
}

/// Seconds of a step of the objective, and of its value and gradient. `rows`, `columns`: the cells of a rank.
Pair heat_gradient(std::int64_t rows, std::int64_t columns, int rounds) {
  const Field u({rows, columns}, 0.5);
  using F = double(Tensor<double>, std::int64_t);
  const auto objective = compile([](T x, I steps) { return heat(x, steps); });
  const auto gradient = compile(value_and_grad<0>(sig<F>([](T x, I steps) { return heat(x, steps); })));
  const std::int64_t steps = 10;
  const Pair t = in_turn([&] { objective(u, steps); }, [&] { gradient(u, steps); }, static_cast<double>(steps), rounds);
  if (ld::world_rank() == 0)
    fmt::print("heat, {} x {} cells on each of {} ranks: objective {:.2f} ms a step, value and gradient {:.2f} ms: {:.2f} times\n",
               rows, columns, ld::world_size(), 1e3 * t.plain, 1e3 * t.here, t.ratio);
  return t;
}

}  // namespace

int main(int argc, char** argv) {
  bool quick = false, steps_alone = false, training_alone = false;
  std::int64_t side = 1024;
  const char* figures = nullptr;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "--quick")
      quick = true;
    else if (word == "--steps")
      steps_alone = true;
    else if (word == "--training")
      training_alone = true;
    else if (word == "--figures" && i + 1 < argc)
      figures = argv[++i];
    else
      return fmt::print(stderr, "usage: mpirun -n RANKS bench_distributed [--quick] [--steps | --training] [--figures FILE]\n"
                        "  --quick: small, and few rounds; --steps: the heat equation alone; --training: the network alone\n"), 2;
  }
  if (quick) side = 128;
  const int rounds = quick ? 3 : 11;
  std::string why;
  const Mpi* const mpi = lantern::distributed::load_mpi(why);
  Measured m;
  if (mpi != nullptr && ld::world_size() > 1 && !steps_alone && !training_alone) m = operations(*mpi, quick ? 100 : 1000, rounds);
  std::int64_t parts[2] = {0, 0};
  distributed_dims("", 0, 2, parts);
  Pair strong, weak;
  if (!training_alone) {
    strong = heat_gradient(side / parts[0], side / parts[1], rounds);
    weak = heat_gradient(side, side, rounds);
  }
  lantern::bench::CnnSteps cnn;
  if (ld::world_size() > 1 && !steps_alone) {
    constexpr int batch = 128;
    cnn = lantern::bench::cnn_steps(batch, rounds);
    if (ld::world_rank() == 0)
      fmt::print("MNIST CNN, {} pictures in all: {:.2f} ms a step on one rank, {:.2f} ms on {}: {:.2f} times as fast, {:.2f} without messages\n", batch,
                 1e3 * cnn.one, 1e3 * cnn.all, ld::world_size(), cnn.ratio, cnn.most);
  }
  if (figures == nullptr || ld::world_rank() != 0) return 0;
  const nlohmann::json all{{"ranks", ld::world_size()}, {"side", side}, {"latency", m.latency},
                           {"seconds_a_byte", m.seconds_a_byte}, {"strong", strong.plain}, {"strong_gradient", strong.here},
                           {"weak", weak.plain}, {"weak_gradient", weak.here}};
  std::ofstream file(figures);
  file << all.dump() << '\n';
  return file ? 0 : 1;
}
