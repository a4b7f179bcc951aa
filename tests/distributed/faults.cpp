// What goes wrong between processes: distributed_errors_test runs this under mpirun, `faults CASE eager|compiled`, or
// `faults killed FILE RANK MICROSECONDS`.
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <lantern/distributed_training.hpp>
#include <lantern/lantern.hpp>
#include <stdexcept>
#include <string>
#include <sys/time.h>
#include <thread>
#include <vector>

using namespace lantern;
namespace ld = lantern::distributed;
using A = Rep<Array<double>>;

namespace {

template <class F>
void run(bool compiled, const F& f, const std::vector<double>& x) {
  if (compiled)
    compile(f, {.target = Target::c})(x);
  else
    eager(f)(x);
}

template <class S>
struct Weights {
  nn::Parameter<S, dyn> values;
};

/// Steps that communicate and write a checkpoint, until one rank is killed at some time.
void work_until_killed(const std::string& file, std::int64_t victim, std::int64_t microseconds) {
  Weights<double> weights{TensorValue<double>(std::vector<std::int64_t>{2000}, 1.0)};
  const auto step = compile([](Rep<Tensor<double, dyn>> w) { return Rep<Tensor<double, dyn>>((0.5 * ld::all_reduce(w)).datum()); },
                            {.target = Target::c});
  if (ld::world_rank() == victim % ld::world_size()) {
    std::signal(SIGALRM, [](int) { std::raise(SIGKILL); });
    const itimerval at{{}, {microseconds / 1'000'000, microseconds % 1'000'000}};
    setitimer(ITIMER_REAL, &at, nullptr);
  }
  for (double k = 0;; ++k) {
    weights.values = step(weights.values);
    for (double& v : weights.values.data) v = k;  // a whole file has the same number everywhere
    nn::save_together(file, weights);
  }
}

int fault(const std::string& what, bool compiled) {
  if (what == "idle" || what == "busy") {  // a loop that asks for ranks, without and with iterations
    const auto turns = [](Rep<double> x, Rep<int64_t> n) {
      return FOR(0, n, x, [](Rep<int64_t>, Rep<double> s) { return s + cast<double>(ld::world().rank() % ld::world().size()); });
    };
    compile(turns, {.target = Target::c})(1.0, what == "busy" ? 1 : 0);
    return 0;
  }
  const int64_t me = ld::world_rank(), last = ld::world_size() - 1;
  const std::vector<double> x(3, 1.0), longer(4, 1.0);
  const auto all = [](A a) { return ld::all_reduce(a); };
  if (what == "shapes") run(compiled, all, me == last ? longer : x);
  if (what == "overlap") {  // between start and wait is a loop
    const auto beside = [](A a, A b) {
      const Rep<double> own = FOR(0, b.size(), Rep<double>(0.0), [&](Rep<int64_t> i, Rep<double> s) { return s + sin(b[i]) * s; });
      return A(ld::all_reduce(a) + own);
    };
    compile(beside, {.target = Target::c})(me == last ? longer : x, x);
  }
  if (what == "operations") {
    if (me == last)
      run(compiled, [](A a) { return ld::broadcast(a, 0); }, x);
    else
      run(compiled, all, x);
  }
  if (what == "reductions") {  // as many bytes: the engine does not notice
    if (me == last)
      run(compiled, [](A a) { return ld::all_reduce(a, ld::Reduction::max); }, x);
    else
      run(compiled, all, x);
  }
  if (what == "messages")
    run(compiled, [](A a) {
      const Rep<int64_t> n = ld::world().size(), r = ld::world().rank();
      return ld::send_receive(a, (r + 1) % n, (r + n - 1) % n);
    }, me == last ? longer : x);
  if (what == "deadlock")
    run(compiled, [](A a) { return ld::receive(a, (ld::world().rank() + 1) % ld::world().size()); }, x);
  if (what == "unreceived") {
    const auto to_rank_2 = [](A a) {
      ld::send(a, IF(ld::world().rank() == 0, [] { return Rep<int64_t>(int64_t{2}); }, [] { return Rep<int64_t>(int64_t{-1}); }));
      return a;
    };
    run(compiled, to_rank_2, x);
  }
  if (what == "halves") {  // in this order rank 1 takes the one for the other
    const auto rank = [](int64_t r) { return [r] { return Rep<int64_t>(r); }; };
    const auto f = [rank](A a) {
      const auto first = ld::world().rank() == 0, second = ld::world().rank() == 1;
      const Rep<int64_t> to = IF(first, rank(1), rank(-1)), from = IF(second, rank(0), rank(-1));
      ld::send(A(2.0 * stop_gradient(a)), to);
      ld::send(a, to);
      const A r = ld::receive(a, from), s = ld::receive(A(stop_gradient(a)), from);
      return sum(r * a + s);
    };
    run(compiled, grad(sig<double(Array<double>)>(f)), x);
  }
  if (what == "throws") {
    if (me == last) throw std::runtime_error("no more");
    run(compiled, all, x);
  }
  if (what == "raises") {
    run(compiled, [](A a) { return ld::all_reduce(a[IF(ld::world().rank() == ld::world().size() - 1,
                                                      [] { return Rep<int64_t>(int64_t{7}); },
                                                      [] { return Rep<int64_t>(int64_t{0}); })]); }, x);
  }
  if (what == "slow") {  // one fails, one computes for long, the others wait
    if (me == 0) throw std::runtime_error("no more");
    if (me == last) std::this_thread::sleep_for(std::chrono::seconds(15));
    run(compiled, all, x);
  }
  if (what == "leaves" && me != last) run(compiled, all, x);
  if (what == "dies") {
    if (me == last) std::raise(SIGKILL);
    run(compiled, all, x);
  }
  if (what == "counts") {
    const std::vector<int64_t> n(3, me == last ? 2 : 1);
    const auto rows = [](A a, Rep<Array<int64_t>> c) { return std::get<0>(ld::all_to_all(a, c)); };
    if (compiled)
      compile(rows, {.target = Target::c})(x, n);
    else
      eager(rows)(x, n);
  }
  if (what == "root") run(compiled, [](A a) { return ld::broadcast(a, 9); }, x);
  std::printf("done\n");
  return 0;
}

}  // namespace

int main(int, char** argv) {
  const std::string what = argv[1];
  const bool compiled = std::strcmp(argv[2], "compiled") == 0;
  if (what == "throws" || what == "slow") return fault(what, compiled);
  try {
    if (what == "killed") work_until_killed(argv[2], std::atoll(argv[3]), std::atoll(argv[4]));
    return fault(what, compiled);
  } catch (const Error& e) {
    std::fprintf(stderr, "rank %lld: %s\n", static_cast<long long>(ld::world_rank()), e.what());
    return 3;
  }
}
