// What calls on a GPU cost beside their arithmetic, as goldens: launches (kernels, fills and products), waits
// of the host, bytes copied between host and device, and bytes of the device's memory that launches must
// move, of the third call, when all memory is there. And that results are those of the processor.
#pragma once

#include <cmath>

#include "cuda_tensors.hpp"

namespace lantern::test {

inline TensorValue<float> floats(std::vector<std::int64_t> shape, double scale = 1) {
  TensorValue<float> t(std::move(shape));
  for (std::size_t i = 0; i < t.data.size(); ++i)
    t.data[i] = static_cast<float>(0.3 * scale * std::sin(1.7 * static_cast<double>(i)));
  return t;
}
inline TensorValue<std::int64_t> labels(std::int64_t n, std::int64_t classes) {
  TensorValue<std::int64_t> t({n});
  for (std::int64_t i = 0; i < n; ++i) t.data[static_cast<std::size_t>(i)] = i * 7 % classes;
  return t;
}

struct Budget {
  std::int64_t launches = 0, waits = 0;
  std::int64_t results = 0;  ///< bytes of numbers that the host is given
  double tolerance = 2e-5;
  std::int64_t moved = -1;  ///< bytes of the device's memory; -1: as many as may be
};

template <class A>
std::int64_t bytes(const A& number) {
  return std::is_arithmetic_v<A> ? 0 : static_cast<std::int64_t>(sizeof number);
}
template <class T>
std::int64_t bytes(const TensorValue<T>& t) {
  return static_cast<std::int64_t>(t.data.size() * sizeof(T));
}

/// Results, one after the other, against what is expected.
struct Leaves {
  const std::vector<RawTensor>& places;
  double tolerance;
  std::size_t next = 0;
  template <class T>
  void operator()(const T& expected) {
    compare(places.at(next++), expected, tolerance);
  }
  template <class... T>
  void operator()(const std::tuple<T...>& all) {
    std::apply([&](const auto&... one) { ((*this)(one), ...); }, all);
  }
};

/// Runs it three times by the emulator, and once on the processor.
template <class F, class... A>
void spends(const char* name, F f, Budget budget, const A&... args) {
  if (!codegen::nvrtc_available()) return;
  INFO(name);
  const Emulated emulated(compile(f, {.target = Target::cuda, .name = name}).source("cuda"), name,
                          true);  // no races
  emulated(args...);
  emulated(args...);
  const auto results = emulated(args...);
  Leaves{results, budget.tolerance}(compile(f, {.target = Target::c, .name = name})(args...));
  const auto spent = emulated.spent();
  CHECK(spent.launches == budget.launches);
  CHECK(spent.waits == budget.waits);
  CHECK(spent.allocations == 0);
  if (budget.moved >= 0) CHECK(spent.moved == budget.moved);
  // Arguments lie in the host's memory here, and are copied once; nothing else but numbers is.
  CHECK(spent.copied == budget.results + (std::int64_t{0} + ... + bytes(args)));
}

}  // namespace lantern::test
