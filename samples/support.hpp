// What several samples need: how long a call takes, and random numbers.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>

/// Seconds of a call of `work`: the best of 20 runs, each of as many calls as fill a millisecond.
template <class Work>
double seconds(const Work& work) {
  using Clock = std::chrono::steady_clock;
  const auto run = [&](int calls) {
    const auto start = Clock::now();
    for (int i = 0; i < calls; ++i) work();
    return std::chrono::duration<double>(Clock::now() - start).count();
  };
  int calls = 1;
  while (run(calls) < 1e-3) calls *= 2;
  double best = 1e9;
  for (int i = 0; i < 20; ++i) best = std::min(best, run(calls));
  return best / calls;
}

/// Uniform between -1 and 1, the same everywhere: Knuth's linear congruential generator.
class Random {
 public:
  explicit Random(std::uint64_t seed = 1) : state_(seed) {}
  double operator()() {
    state_ = state_ * 6364136223846793005U + 1442695040888963407U;
    return static_cast<double>(state_ >> 11) * 0x1p-52 - 1.0;
  }

 private:
  std::uint64_t state_;
};
