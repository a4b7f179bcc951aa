// The functions of NCCL 2 that are used, found in its library when a program for a GPU first communicates.
#pragma once

#include <array>
#include <cstddef>
#include <string>

namespace lantern::distributed {

using NcclComm = void*;
/// Passed by value, as NCCL has it.
struct NcclId {
  std::array<char, 128> bytes;
};

/// Declarations of nccl.h. Those that return an int return 0 or NCCL's error.
struct Nccl {
  enum Type : int { boolean = 1, i32 = 2, i64 = 4, f32 = 7, f64 = 8 };
  enum Op : int { sum = 0, product = 1, max = 2, min = 3 };
  static constexpr int in_progress = 7;

  int (*get_id)(NcclId*);
  int (*init_rank)(NcclComm*, int size, NcclId, int rank);
  int (*abort)(NcclComm);
  int (*async_error)(NcclComm, int*);
  const char* (*error_string)(int);
  int (*all_reduce)(const void*, void*, std::size_t, int type, int op, NcclComm, void* stream);
  int (*reduce)(const void*, void*, std::size_t, int type, int op, int root, NcclComm, void* stream);
  int (*broadcast)(const void*, void*, std::size_t, int type, int root, NcclComm, void* stream);
  int (*all_gather)(const void*, void*, std::size_t, int type, NcclComm, void* stream);
  int (*reduce_scatter)(const void*, void*, std::size_t, int type, int op, NcclComm, void* stream);
  int (*send)(const void*, std::size_t, int type, int peer, NcclComm, void* stream);
  int (*receive)(void*, std::size_t, int type, int peer, NcclComm, void* stream);
  int (*group_start)();
  int (*group_end)();
};

/// Loads the library; null, and why, where it cannot be had. LANTERN_NCCL names another file than libnccl.so.2.
const Nccl* load_nccl(std::string& why);

}  // namespace lantern::distributed
