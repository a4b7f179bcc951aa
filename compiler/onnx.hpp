// ONNX models: reading and checking files, running them compiled or eagerly, and importing them as functions
// of programs, differentiable by their weights. Programs link with Lantern::onnx.
//
//   #include <lantern/onnx.hpp>
//   onnx::Session session = onnx::compile(onnx::load("squeezenet.onnx"));
//   onnx::Value probabilities = session.run({picture})[0];
//
//   const auto net = onnx::import_onnx<Rep<Tensor<float>>(Rep<Tensor<float>>)>("mnist.onnx");
//   auto slope = [=](Rep<Array<float>> w, Images x, Labels y) {
//     return grad([&](Rep<Array<float>> v) { return nn::cross_entropy(net(v, x), y); })(w);
//   };
//   std::vector<float> weights = net.parameters();
//
// Operators of versions 7 to 17 of ai.onnx, most of later ones too. Elements compute as Lantern's: float16
// and bfloat16 as float, integers of up to 32 bits as int32_t (uint32 as int64_t), with values that wrap as
// their types say; uint64 as int64_t. What is not supported, and what is wrong with a file, is a
// lantern::Error that names the node.
#pragma once

#include "lantern/compiler/onnx/export.hpp"
#include "lantern/compiler/onnx/import.hpp"
#include "lantern/compiler/onnx/model.hpp"
#include "lantern/compiler/onnx/session.hpp"
#include "lantern/compiler/onnx/value.hpp"
#include "lantern/lantern.hpp"
