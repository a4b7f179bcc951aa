// Training on several processes beyond nn::data_parallel: sharded optimiser states, batches that do not depend on the
// number of ranks, and checkpoints. Programs link with Lantern::distributed, and with Lantern::data for checkpoints.
//
//   nn::Loader loader(images.shape[0], {.batch = 64});
//   auto state = nn::adam_state(nn::shard_of(model));
//   for (...) train(model, state, nn::rows(images, loader.batch(epoch, k)), ...);
//   nn::save_together("run.safetensors", model, state);
#pragma once

#include "lantern/compiler/distributed/batches.hpp"
#include "lantern/compiler/distributed/checkpoint.hpp"
#include "lantern/compiler/distributed/shards.hpp"
#include "lantern/distributed.hpp"
#include "lantern/nn.hpp"
