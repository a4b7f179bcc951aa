// mpirun -n 2 bench_distributed: operations inside compiled functions beside the same calls of MPI, the gradient of a heat
// equation beside its objective, and what a model of messages says of more ranks than there are.
//
// Each pair is measured in turn, in one run, and the median of the rounds' ratios counts. Ranks share the processors of one
// machine: with more ranks than cores latencies are those of the operating system.
#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <lantern/distributed.hpp>
#include <lantern/lantern.hpp>
#include <lantern/tensor.hpp>
#include <memory>
#include <string>
#include <vector>

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

/// Operations in a loop of a compiled function, beside a loop of calls of MPI.
Measured operations(const Mpi& mpi, int rounds) {
  const int me = static_cast<int>(ld::world_rank()), ranks = static_cast<int>(ld::world_size());
  const auto ring = [](const A& x) {
    const ld::Communicator c;
    const I n = c.size(), r = c.rank();
    return ld::send_receive(x, (r + 1) % n, (r + n - 1) % n);
  };
  const std::vector<Case> cases{
      {"all_reduce", [](const A& x) { return ld::all_reduce(x, ld::Reduction::max); },
       [&](int n, double* x, double* y) { mpi.allreduce(x, y, n, mpi.f64, mpi.op_max, mpi.world); }},
      {"broadcast", [](const A& x) { return ld::broadcast(x, 0); },
       [&](int n, double* x, double* y) {
         if (me == 0) std::memcpy(y, x, sizeof(double) * static_cast<std::size_t>(n));
         mpi.bcast(y, n, mpi.f64, 0, mpi.world);
       }},
      {"scan", [](const A& x) { return ld::scan(x, ld::Reduction::max); },
       [&](int n, double* x, double* y) { mpi.scan(x, y, n, mpi.f64, mpi.op_max, mpi.world); }},
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
    fmt::print("{} ranks, checks between ranks {}; microseconds of one operation: MPI, Lantern, median of ratios of {} rounds\n",
               ranks, checks != nullptr && std::string(checks) == "0" ? "off" : "on", rounds);
  Measured found;
  for (const Case& c : cases) {
    const auto f = compile([&](A x, I times) { return FOR(0, times, x, [&](I, A u) { return A(c.here(u)); }); },
                           {.target = Target::c});
    for (const int n : {2, 1000, 100'000}) {
      const int elements = n / ranks * ranks + (n % ranks == 0 ? 0 : ranks);
      Numbers x(static_cast<std::size_t>(elements), 1.0 + me), y(x);
      const std::int64_t times = n > 10'000 ? 40 : 1000;
      const Pair t = in_turn(
          [&] {
            for (std::int64_t k = 0; k < times; ++k) c.plain(elements, x.data(), y.data()), std::swap(x, y);
          },
          [&] { f(x, times); }, static_cast<double>(times), rounds);
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

/// Seconds of a step of the objective.
double heat_gradient(std::int64_t side, int rounds) {
  const std::int64_t me = ld::world_rank(), ranks = ld::world_size();
  std::int64_t parts[2] = {0, 0};
  distributed_dims("", 0, 2, parts);
  Field u({side / parts[0], side / parts[1]}, 0.5);
  using F = double(Tensor<double>, std::int64_t);
  const auto objective = compile([](T x, I steps) { return heat(x, steps); });
  const auto gradient = compile(value_and_grad<0>(sig<F>([](T x, I steps) { return heat(x, steps); })));
  const std::int64_t steps = 10;
  const Pair t = in_turn([&] { objective(u, steps); }, [&] { gradient(u, steps); }, static_cast<double>(steps), rounds);
  if (me == 0)
    fmt::print("heat, {} x {} cells on {} ranks: objective {:.2f} ms a step, value and gradient {:.2f} ms: {:.2f} times\n", side,
               side, ranks, 1e3 * t.plain, 1e3 * t.here, t.ratio);
  return t.plain;
}

/// LogGP (Alexandrov, Ionescu, Schauser and Scheiman 1995) with latency and overhead as one number: a message of b bytes
/// takes l + g b. Heat has two exchanges a step, along each dimension of the grid, and each rank computes its cells.
void model(const Measured& m, double step, std::int64_t side) {
  const auto ranks = static_cast<double>(ld::world_size()), cells = static_cast<double>(side * side);
  const auto messages = [&](double p, double edge) {
    return p == 1 ? 0.0 : (p < 4 ? 2.0 : 4.0) * (m.latency + m.seconds_a_byte * 8 * edge);
  };
  const double a_cell = std::max(0.0, step - messages(ranks, static_cast<double>(side) / std::sqrt(ranks))) * ranks / cells;
  fmt::print("model: {:.2f} us a message, {:.2f} GB/s, {:.3f} ns a cell and step\n", 1e6 * m.latency,
             m.seconds_a_byte > 0 ? 1e-9 / m.seconds_a_byte : 0.0, 1e9 * a_cell);
  fmt::print("  ranks   strong: ms a step, speed-up   weak: ms a step, efficiency   share of messages (strong)\n");
  for (double p = 1; p <= 4096; p *= 2) {
    const double edge = static_cast<double>(side) / std::sqrt(p);
    const double strong = a_cell * cells / p + messages(p, edge), weak = a_cell * cells + messages(p, static_cast<double>(side));
    fmt::print("  {:>5} {:>14.4f} {:>14.1f} {:>14.4f} {:>12.3f} {:>22.1f} %{}\n", p, 1e3 * strong, a_cell * cells / strong,
               1e3 * weak, a_cell * cells / weak, 100 * messages(p, edge) / strong,
               p == ranks ? fmt::format("   measured {:.4f} ms", 1e3 * step) : "");
  }
}

}  // namespace

int main(int argc, char** argv) {
  bool quick = false, with_model = false;
  std::int64_t side = 1024;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "--quick")
      quick = true;
    else if (word == "--model")
      with_model = true;
    else
      return fmt::print(stderr, "usage: mpirun -n RANKS bench_distributed [--quick] [--model]\n"), 2;
  }
  if (quick) side = 128;
  const std::int64_t me = ld::world_rank();
  std::string why;
  const Mpi* const mpi = lantern::distributed::load_mpi(why);
  Measured m;
  if (mpi != nullptr && ld::world_size() > 1) m = operations(*mpi, quick ? 3 : 11);
  const double step = heat_gradient(side, quick ? 3 : 11);
  if (with_model && me == 0) model(m, step, side);
}
