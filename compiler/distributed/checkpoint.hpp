// Checkpoints of a training on several ranks: one file, written by one rank, read on any number of them.
#pragma once

#include <string>

#include "lantern/compiler/distributed/shards.hpp"
#include "lantern/compiler/nn/files.hpp"

namespace lantern::nn {

namespace detail {

/// The state as the file has it, of the whole model.
template <class M, class State>
State whole(const M&, const State& state) {
  return state;
}
template <class M, template <class> class State>
State<M> whole(const M& like, const State<Shard<leaf_of<M>>>& state) {
  return unsharded(like, state);
}

}  // namespace detail

/// Writes a model, which all ranks have, and the state of its optimiser, sharded or not, as nn::save does: rank 0 writes
/// once, and all ranks go on when the file is there. Whenever a rank or the machine stops, `path` is the former file or
/// the new one, whole. All ranks call it. Error on all ranks: the file cannot be written, and the former one stays.
template <class M, class... State>
void save_together(const std::filesystem::path& path, const M& model, const State&... state) {
  const auto all = std::tuple(detail::whole(model, state)...);
  std::string error;
  if (distributed::world_rank() == 0) {
    try {
      std::apply([&](const auto&... s) { save(path, model, s...); }, all);
    } catch (const Error& e) {
      error = e.what();
    }
  }
  std::int64_t failed = error.empty() ? 0 : 1, any = 0;
  distributed_exchange_i64("nn::save_together", 0, distributed_broadcast, distributed_sum, 0, -1, 1, &failed, &any);
  if (!error.empty()) throw Error(error);
  if (any != 0) throw Error("nn::save_together: rank 0 could not write " + core::data::in_quotes(path.string()));
}

/// Reads on each rank what save_together or nn::save has written, on whatever number of ranks. Of a sharded state each
/// rank takes its part. Errors: those of nn::load.
template <class M, class... State>
void load_together(const std::filesystem::path& path, M& model, State&... state) {
  load(path, model, state...);
}
template <class M, template <class> class State>
void load_together(const std::filesystem::path& path, M& model, State<Shard<detail::leaf_of<M>>>& state) {
  State<M> all;
  load(path, model, all);
  state = shard_of(all);
}

}  // namespace lantern::nn
