// Neural networks: layers, losses, optimisers and initialisers over <lantern/tensor.hpp>, in namespace
// lantern::nn.
//
//   #include <lantern/nn.hpp>
//   template <class S>
//   struct Mlp {
//     nn::Linear<S> hidden, output;
//     auto operator()(const auto& x) const { return output(relu(hidden(x))); }
//   };
//   using Model = Mlp<Rep<float>>;
//
//   auto step = nn::in_place(compile([](Model m, nn::AdamState<Model> s, Batch x, Labels y) {
//     auto [loss, g] = value_and_grad([&](Model w) { return nn::cross_entropy(w(x), y); })(m);
//     auto [m2, s2] = nn::adam(m, g, s, {.learning_rate = 1e-3});
//     return std::tuple(loss, m2, s2);
//   }));
//
//   nn::Generator rng(1);
//   Mlp<float> model{nn::Linear<float>::init(784, 128, rng), nn::Linear<float>::init(128, 10, rng)};
//   auto state = nn::adam_state(model);
//   float loss = step(model, state, images, labels);  // both are changed
//   nn::save("run.safetensors", model, state);         // nn::load("run.safetensors", model, state)
//
// A model is a plain struct, a gradient by it another of the same kind, and a training step one compiled
// function.
#pragma once

#include "lantern/compiler/nn/attention.hpp"
#include "lantern/compiler/nn/ctc.hpp"
#include "lantern/compiler/nn/files.hpp"
#include "lantern/compiler/nn/in_place.hpp"
#include "lantern/compiler/nn/initializers.hpp"
#include "lantern/compiler/nn/layers.hpp"
#include "lantern/compiler/nn/loss_scale.hpp"
#include "lantern/compiler/nn/losses.hpp"
#include "lantern/compiler/nn/normalization.hpp"
#include "lantern/compiler/nn/optimizers.hpp"
#include "lantern/compiler/nn/parameters.hpp"
#include "lantern/compiler/nn/recurrent.hpp"
#include "lantern/compiler/nn/sparse.hpp"
#include "lantern/lantern.hpp"
