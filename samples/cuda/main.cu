// A program of nvcc that calls what Lantern has written: memory of the GPU and a stream of its own, and no part of Lantern.
#include <cuda_runtime.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "saxpy_gradient.h"

static void check(cudaError_t status) {
  if (status == cudaSuccess) return;
  std::printf("BAD  CUDA: %s\n", cudaGetErrorString(status));
  std::exit(1);
}

static lt_f32_1d on_gpu(const std::vector<float>& host) {
  lt_f32_1d there = {nullptr, {static_cast<int64_t>(host.size())}};
  check(cudaMalloc(reinterpret_cast<void**>(&there.data), host.size() * sizeof(float)));
  check(cudaMemcpy(there.data, host.data(), host.size() * sizeof(float), cudaMemcpyHostToDevice));
  return there;
}

int main() {
  const int n = 100000;
  const float a = 0.5F;
  std::vector<float> x(n), y(n), slope(n);
  double value = 0, by_a = 0, furthest = 0;
  for (int i = 0; i < n; ++i) {
    x[i] = std::sin(static_cast<float>(i));
    y[i] = std::cos(static_cast<float>(3 * i));
    const double r = static_cast<double>(a) * x[i] + y[i];
    value += r * r;
    by_a += 2 * r * x[i];
  }
  const lt_f32_1d there_x = on_gpu(x), there_y = on_gpu(y);
  cudaStream_t stream;
  check(cudaStreamCreate(&stream));

  float found = 0, found_a = 0;
  lt_f32_1d by_x;  // of the GPU, valid until the workspace is asked for again
  lt_workspace* const ws = saxpy_gradient_workspace();
  saxpy_gradient_on_stream(ws, stream);
  saxpy_gradient(ws, a, there_x, there_y, &found, &found_a, &by_x);
  saxpy_gradient_wait(ws);
  check(cudaMemcpy(slope.data(), by_x.data, n * sizeof(float), cudaMemcpyDeviceToHost));

  for (int i = 0; i < n; ++i)
    furthest = std::fmax(furthest, std::fabs(slope[i] - 2.0 * a * (static_cast<double>(a) * x[i] + y[i])));
  const bool right = std::fabs(found - value) < 1e-3 * value && std::fabs(found_a - by_a) < 1e-3 * value && furthest < 1e-5;
  std::printf("%s saxpy: value %.4f of %.4f, slope by a %.4f of %.4f, by x within %.1e\n", right ? "ok  " : "BAD ", found, value,
              found_a, by_a, furthest);
  return right ? 0 : 1;
}
