// A program with tensors as CUDA: compiled by NVRTC (and nvcc), run through the launch emulator, and compared
// with the program run eagerly and compiled for the CPU.
#pragma once

#include <catch2/catch.hpp>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <tuple>
#include <vector>

#include "lantern/codegen/toolchain/emulate.hpp"
#include "lantern/codegen/toolchain/nvcc.hpp"
#include "lantern/codegen/toolchain/nvrtc.hpp"
#include "lantern/lantern.hpp"

namespace lantern::test {

/// A tensor as generated code has it.
struct RawTensor {
  const void* data = nullptr;
  std::int64_t dim[8] = {};
};

template <class T>
const T& raw(const T& number) {
  return number;
}
template <class T>
RawTensor raw(const TensorValue<T>& t) {
  RawTensor r{t.data.data(), {}};
  for (std::size_t i = 0; i < t.shape.size(); ++i) r.dim[i] = t.shape[i];
  return r;
}
template <class T>
RawTensor raw(const std::vector<T>& v) {
  return {v.data(), {static_cast<std::int64_t>(v.size())}};
}

template <class T>
void same(const T& got, const T& expected, double tolerance) {
  if constexpr (std::is_floating_point_v<T>) {
    if (std::isnan(expected))
      CHECK(std::isnan(got));
    else
      CHECK(static_cast<double>(got) ==
            Approx(static_cast<double>(expected)).epsilon(tolerance).margin(tolerance));
  } else {
    CHECK(got == expected);
  }
}

/// A number, where a result lies that is one.
template <class T>
T raw_number(const RawTensor& place) {
  return *reinterpret_cast<const T*>(&place);
}

/// A result where the emulated program has put it, against what is expected.
template <class T>
void compare(const RawTensor& place, const T& expected, double tolerance) {
  same(raw_number<T>(place), expected, tolerance);
}
template <class T>
void compare(const RawTensor& place, const TensorValue<T>& expected, double tolerance) {
  for (std::size_t d = 0; d < expected.shape.size(); ++d) REQUIRE(place.dim[d] == expected.shape[d]);
  for (std::size_t i = 0; i < expected.data.size(); ++i) {
    INFO("element " << i);
    same(static_cast<const T*>(place.data)[i], expected.data[i], tolerance);
  }
}
template <class T>
void compare(const RawTensor& place, const std::vector<T>& expected, double tolerance) {
  REQUIRE(place.dim[0] == static_cast<std::int64_t>(expected.size()));
  for (std::size_t i = 0; i < expected.size(); ++i) {
    INFO("element " << i);
    same(static_cast<const T*>(place.data)[i], expected[i], tolerance);
  }
}
template <class... T>
void compare_all(const std::vector<RawTensor>& places, const std::tuple<T...>& expected, double tolerance) {
  std::size_t i = 0;
  std::apply([&](const auto&... e) { (compare(places.at(i++), e, tolerance), ...); }, expected);
}
template <class T>
void compare_all(const std::vector<RawTensor>& places, const T& expected, double tolerance) {
  compare(places.at(0), expected, tolerance);
}

inline std::size_t kernels_in(const std::string& text) {
  std::size_t n = 0;
  for (std::size_t at = 0; (at = text.find("extern \"C\" __global__ void", at)) != std::string::npos; ++at)
    ++n;
  return n;
}

/// A .cu that runs on this machine.
class Emulated {
 public:
  Emulated(const std::string& text, const std::string& name, bool races = false)
      : code_(codegen::compile_emulated(text, races)), name_(name) {
    code_->function<void(void (*)(const char*))>(name + "_on_failure")(
        [](const char* message) { throw std::runtime_error(message); });
  }

  /// Threads run from the last to the first, or from the first to the last again.
  void backwards(bool yes) const { code_->function<void(int)>("lantern_emulator_backwards")(yes); }

  /// What failed becomes an exception.
  template <class... A>
  std::vector<RawTensor> operator()(const A&... args) const {
    const auto arguments = std::tuple(raw(args)...);
    std::vector<const void*> in;
    std::apply([&](const auto&... a) { (in.push_back(&a), ...); }, arguments);
    std::vector<RawTensor> results(8);
    std::vector<void*> out;
    for (RawTensor& r : results) out.push_back(&r);
    const Protected memory(*code_);
    const Budget before = counts();
    void* const ws = code_->function<void*()>(name_ + "_workspace")();
    try {
      code_->function<void(void*, const void* const*, void* const*)>(name_ + "_entry")(ws, in.data(),
                                                                                       out.data());
    } catch (const std::runtime_error& e) {
      const std::string report = code_->function<const char*()>("lantern_emulator_report")();
      if (report.empty()) throw;
      throw std::runtime_error(e.what() + (": " + report));
    }
    const Budget after = counts();
    spent_ = {after.launches - before.launches, after.waits - before.waits, after.allocations - before.allocations,
              after.copied - before.copied, after.moved - before.moved};
    code_->function<void(void*)>(name_ + "_wait")(ws);
    CHECK(std::string(code_->function<const char*()>("lantern_emulator_report")()) == "");
    return results;
  }

  /// What a call costs beside its arithmetic: kernels and fills, waits of the host, allocations of device memory, bytes
  /// copied between host and device; and, with `races`, bytes of the device's memory that launches must move.
  struct Budget {
    std::int64_t launches = 0, waits = 0, allocations = 0, copied = 0, moved = 0;
  };
  /// Of the last call.
  Budget spent() const { return spent_; }

 private:
  /// Meanwhile the host may touch device memory by copies alone.
  class Protected {
   public:
    explicit Protected(const codegen::LoadedCode& code) : code_(code) { set(1); }
    ~Protected() { set(0); }
    Protected(const Protected&) = delete;
    Protected& operator=(const Protected&) = delete;

   private:
    void set(int yes) const { code_.function<void(int)>("lantern_emulator_protect")(yes); }
    const codegen::LoadedCode& code_;
  };
  Budget counts() const {
    const auto count = code_->function<std::int64_t(int)>("lantern_emulator_count");
    return {count(0), count(1), count(2), count(3), count(4)};
  }

  std::unique_ptr<codegen::LoadedCode> code_;
  std::string name_;
  mutable Budget spent_;
};

struct Cuda {
  std::size_t kernels = 1;  ///< at least
  double tolerance = 1e-12;
  bool nvcc = false;  ///< the host's part too
};

/// Everything about a program with tensors; its text.
template <class F, class... A>
std::string check_cuda(const std::string& name, F f, const Cuda& settings, const A&... args) {
  INFO(name);
  const auto on_cpu = compile(f, {.target = Target::c, .name = name});
  const auto expected = on_cpu(args...);
  const std::string text = on_cpu.source("cuda");
  INFO(text.substr(text.find("__global__") == std::string::npos ? 0 : text.find("__global__")));
  CHECK(kernels_in(text) >= settings.kernels);
  if (codegen::nvrtc_available() && kernels_in(text) > 0)
    CHECK(codegen::compile_with_nvrtc(text).find(".entry") != std::string::npos);
  const auto emulate = [&](const std::string& source) {
    const Emulated emulated(source, name);
    compare_all(emulated(args...), expected, settings.tolerance);
    compare_all(emulated(args...), eager(f)(args...), settings.tolerance * 100);
    emulated.backwards(true);
    compare_all(emulated(args...), expected, settings.tolerance);
  };
  if (!codegen::nvrtc_available()) {
    emulate(text);
    return text;
  }
  INFO("for the GPU");  // as it is made for one, by passes of its own
  const std::string own = compile(f, {.target = Target::cuda, .name = name}).source("cuda");
  if (settings.nvcc && codegen::find_nvcc()) CHECK(!codegen::object_with_nvcc(own).empty());
  emulate(own);
  INFO("for the GPU, not optimised");
  emulate(compile(f, {.target = Target::cuda, .opt = 0, .name = name}).source("cuda"));
  return text;
}

}  // namespace lantern::test
