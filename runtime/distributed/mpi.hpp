// The functions of Open MPI that are used, found in its library when the process runs.
#pragma once

#include <cstddef>
#include <string>

namespace lantern::distributed {

/// Open MPI's handles are pointers.
using MpiComm = void*;
using MpiType = void*;
using MpiOp = void*;
using MpiRequest = void*;
struct MpiStatus {
  int source, tag, error, cancelled;
  std::size_t count;
};

struct Mpi {
  static constexpr int funneled = 1, serialized = 2, any = -1, no_rank = -2, truncated = 15;
  static constexpr int longest_error = 256;

  int (*initialized)(int*);
  int (*finalized)(int*);
  int (*init_thread)(int*, char***, int, int*);
  int (*query_thread)(int*);
  int (*finalize)();
  int (*error_string)(int, char*, int*);
  int (*comm_set_errhandler)(MpiComm, void*);
  int (*comm_dup)(MpiComm, MpiComm*);
  int (*comm_split)(MpiComm, int, int, MpiComm*);
  int (*comm_rank)(MpiComm, int*);
  int (*comm_size)(MpiComm, int*);
  int (*iallreduce)(const void*, void*, int, MpiType, MpiOp, MpiComm, MpiRequest*);
  int (*isend)(const void*, int, MpiType, int, int, MpiComm, MpiRequest*);
  int (*irecv)(void*, int, MpiType, int, int, MpiComm, MpiRequest*);
  int (*test)(MpiRequest*, int*, MpiStatus*);
  int (*wait)(MpiRequest*, MpiStatus*);
  int (*sendrecv)(const void*, int, MpiType, int, int, void*, int, MpiType, int, int, MpiComm, MpiStatus*);
  int (*iprobe)(int, int, MpiComm, int*, MpiStatus*);
  int (*cancel)(MpiRequest*);
  int (*allreduce)(const void*, void*, int, MpiType, MpiOp, MpiComm);
  int (*reduce)(const void*, void*, int, MpiType, MpiOp, int, MpiComm);
  int (*bcast)(void*, int, MpiType, int, MpiComm);
  int (*gather)(const void*, int, MpiType, void*, int, MpiType, int, MpiComm);
  int (*allgather)(const void*, int, MpiType, void*, int, MpiType, MpiComm);
  int (*scatter)(const void*, int, MpiType, void*, int, MpiType, int, MpiComm);
  int (*reduce_scatter_block)(const void*, void*, int, MpiType, MpiOp, MpiComm);
  int (*alltoall)(const void*, int, MpiType, void*, int, MpiType, MpiComm);
  int (*alltoallv)(const void*, const int*, const int*, MpiType, void*, const int*, const int*, MpiType, MpiComm);
  int (*ireduce)(const void*, void*, int, MpiType, MpiOp, int, MpiComm, MpiRequest*);
  int (*ibcast)(void*, int, MpiType, int, MpiComm, MpiRequest*);
  int (*igather)(const void*, int, MpiType, void*, int, MpiType, int, MpiComm, MpiRequest*);
  int (*iallgather)(const void*, int, MpiType, void*, int, MpiType, MpiComm, MpiRequest*);
  int (*iscatter)(const void*, int, MpiType, void*, int, MpiType, int, MpiComm, MpiRequest*);
  int (*ireduce_scatter_block)(const void*, void*, int, MpiType, MpiOp, MpiComm, MpiRequest*);
  int (*ialltoall)(const void*, int, MpiType, void*, int, MpiType, MpiComm, MpiRequest*);
  int (*scan)(const void*, void*, int, MpiType, MpiOp, MpiComm);
  int (*exscan)(const void*, void*, int, MpiType, MpiOp, MpiComm);
  /// Open MPI's own: a function that it calls now and then while it waits.
  int (*progress_register)(int (*)());
  int (*progress_unregister)(int (*)());

  MpiComm world;
  void* errors_return;
  MpiType byte, f64, i64;
  MpiType types[5];  ///< by Kind
  MpiOp ops[4];      ///< by the number of a reduction
  MpiOp op_sum, op_max, op_and, op_or;
};

/// Loads the library; null, and why, where it cannot be had. LANTERN_MPI names another file than libmpi.so.40.
const Mpi* load_mpi(std::string& why);

}  // namespace lantern::distributed
