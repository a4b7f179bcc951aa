// Programs on a GPU whose tensors stay there between calls.
//
//   auto step = compile(training_step, {.target = Target::cuda});
//   cuda::DeviceTensor<float> w = cuda::to_device(weights);       // a TensorValue<float>
//   cuda::Stream s;
//   step.on(s).into(loss, w, w, x, y, 0.1f);                      // queued; w is changed in place
//   weights = cuda::to_host(w, s);                                // waits
//
// Without this header a function for Target::cuda is called like any other: arguments go to the GPU and results come
// back with each call.
#pragma once

#include "lantern/compiler/driver/gpu.hpp"
