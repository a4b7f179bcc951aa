// The C functions of runtime/distributed, as external functions that graphs call by name.
#pragma once

#include <array>

#include "lantern/compiler/staging/external.hpp"
#include "lantern/runtime/distributed/device.h"
#include "lantern/runtime/distributed/kernels.h"

namespace lantern::distributed::detail {

using Kernel = const core::detail::ExternalFunction*;

struct Kernels {
  Kernel f64, f32, i64, i32, boolean;  ///< the operations, by the type of the elements
  Kernel rank, size, barrier, split, dims;
  Kernel ragged_f64, ragged_f32, ragged_i64, ragged_i32, ragged_boolean, counts;
  Kernel exact_sum_f64, exact_sum_f32;
  /// The halves of the operations, which the pass overlap makes of them.
  Kernel start_f64, start_f32, wait_f64, wait_f32;
  Kernel end;  ///< of a compiled function, which the pipeline calls
  std::array<Kernel, 4> on_gpu;  ///< what programs for a GPU call in place of the operations
};

/// A function that printed text calls, and no graph.
template <class R, class... P>
Kernel known_to_text(const char* name, R (*function)(P...)) {
  ir::Prototype prototype;
  prototype.name = name;
  return &core::detail::register_external({std::move(prototype), reinterpret_cast<void (*)()>(function), nullptr}, {});
}

/// The first parameter is the place of the call.
template <class R, class... P>
Kernel known(const char* name, R (*function)(const char*, P...)) {
  ir::Prototype prototype;
  prototype.name = name;
  if constexpr (!std::is_void_v<R>) prototype.returned = core::detail::TypeOf<R>::get().kind();
  prototype.parameters = {ir::Prototype::Parameter{ir::Kind::f64, false, false, true},
                          core::detail::ExternalParameter<P>::get()...};
  // Eagerly, each operation is a program of its own.
  const auto call = [](void (*address)(), void* const* arguments, [[maybe_unused]] void* result) {
    const auto f = reinterpret_cast<R (*)(const char*, P...)>(address);
    [&]<std::size_t... I>(std::index_sequence<I...>) {
      const auto* const place = static_cast<const char*>(arguments[0]);
      if constexpr (std::is_void_v<R>)
        f(place, core::detail::ExternalParameter<P>::from(arguments[I + 1])...);
      else
        *static_cast<R*>(result) = f(place, core::detail::ExternalParameter<P>::from(arguments[I + 1])...);
      distributed_end(place);
    }(std::index_sequence_for<P...>{});
  };
  return &core::detail::register_external({std::move(prototype), reinterpret_cast<void (*)()>(function), call}, {});
}

#ifdef LANTERN_DISTRIBUTED_ENGINE  // lanternc --distributed; while it stages a program there are no engines
extern "C" void distributed_prefer(const char* engine) __attribute__((weak));
inline const bool engine_preferred = distributed_prefer != nullptr && (distributed_prefer(LANTERN_DISTRIBUTED_ENGINE), true);
#endif

/// In a header: a program that includes it links what it names, and no other program does.
inline const Kernels& kernels() {
  static const Kernels all{known("distributed_exchange_f64", distributed_exchange_f64),
                           known("distributed_exchange_f32", distributed_exchange_f32),
                           known("distributed_exchange_i64", distributed_exchange_i64),
                           known("distributed_exchange_i32", distributed_exchange_i32),
                           known("distributed_exchange_bool", distributed_exchange_bool),
                           known("distributed_rank", distributed_rank),
                           known("distributed_size", distributed_size),
                           known("distributed_barrier", distributed_barrier),
                           known("distributed_split", distributed_split),
                           known("distributed_dims", distributed_dims),
                           known("distributed_ragged_f64", distributed_ragged_f64),
                           known("distributed_ragged_f32", distributed_ragged_f32),
                           known("distributed_ragged_i64", distributed_ragged_i64),
                           known("distributed_ragged_i32", distributed_ragged_i32),
                           known("distributed_ragged_bool", distributed_ragged_bool),
                           known("distributed_counts", distributed_counts),
                           known("distributed_exact_sum_f64", distributed_exact_sum_f64),
                           known("distributed_exact_sum_f32", distributed_exact_sum_f32),
                           known("distributed_start_f64", distributed_start_f64),
                           known("distributed_start_f32", distributed_start_f32),
                           known("distributed_wait_f64", distributed_wait_f64),
                           known("distributed_wait_f32", distributed_wait_f32),
                           known("distributed_end", distributed_end),
                           {known_to_text("distributed_gpu_enter", distributed_gpu_enter),
                            known_to_text("distributed_gpu_exchange", distributed_gpu_exchange),
                            known_to_text("distributed_gpu_wait", distributed_gpu_wait),
                            known_to_text("distributed_gpu_of_rank", distributed_gpu_of_rank)}};
  return all;
}

}  // namespace lantern::distributed::detail
