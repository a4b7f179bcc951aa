// Tensors in files: NumPy's .npy and .npz, safetensors, CSV, and checkpoints. Programs link with
// Lantern::data.
//
//   #include <lantern/data.hpp>
//   TensorValue<float> w = load_npy<float>("w.npy");
//   save_checkpoint("run.checkpoint", {.tensors = {{"w", w}}, .values = {{"step", 100}}});
//
// What is wrong with a file is a lantern::Error that names it, what was expected, and what is there.
#pragma once

#include "lantern/runtime/data/array.hpp"
#include "lantern/runtime/data/checkpoint.hpp"
#include "lantern/runtime/data/csv.hpp"
#include "lantern/runtime/data/npy.hpp"
#include "lantern/runtime/data/npz.hpp"
#include "lantern/runtime/data/safetensors.hpp"
