// Calls of operations between processes (runtime/distributed) in programs for a GPU.
#pragma once

#include <array>

#include "lantern/ir/graph.hpp"

namespace lantern::codegen {

/// True for an exchange that can be queued on a stream of the GPU, for tensors in its memory (distributed_gpu_exchange).
/// Other functions of the host take copies in its memory.
bool is_queued(const ir::Op& op);
/// True for a call of a function of the host that takes or changes tensors, other than those.
bool needs_host_memory(const ir::Op& op);
/// Whether a program queues exchanges anywhere.
bool queues_exchanges(const ir::Module& module);

/// What the text of such programs calls (runtime/distributed/device.h).
inline constexpr std::array<const char*, 4> queue_functions{"distributed_gpu_enter", "distributed_gpu_exchange",
                                                            "distributed_gpu_wait", "distributed_gpu_of_rank"};

}  // namespace lantern::codegen
