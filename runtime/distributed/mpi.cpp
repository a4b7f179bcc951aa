// Open MPI by dlopen: programs that communicate are built without it, and run alone where it is not installed.
#include "mpi.hpp"

#include <dlfcn.h>

#include <cstdlib>

namespace lantern::distributed {

const Mpi* load_mpi(std::string& why) {
  const char* const named = std::getenv("LANTERN_MPI");
  const char* const file = named != nullptr && *named != '\0' ? named : "libmpi.so.40";
  // Global: the parts that Open MPI loads in turn look for its functions.
  void* const library = dlopen(file, RTLD_NOW | RTLD_GLOBAL);
  if (library == nullptr) {
    why = dlerror();
    return nullptr;
  }
  static Mpi mpi;
  const auto find = [&](auto& to, const char* name) {
    // A program that is linked with MPI has its own copies of the library's data, and the library uses those.
    void* address = dlsym(RTLD_DEFAULT, name);
    if (address == nullptr) address = dlsym(library, name);
    if (address == nullptr && why.empty()) why = std::string(file) + " has no '" + name + "': it is not Open MPI 4";
    to = reinterpret_cast<std::remove_reference_t<decltype(to)>>(address);
  };
  find(mpi.initialized, "MPI_Initialized");
  find(mpi.finalized, "MPI_Finalized");
  find(mpi.init_thread, "MPI_Init_thread");
  find(mpi.query_thread, "MPI_Query_thread");
  find(mpi.finalize, "MPI_Finalize");
  find(mpi.error_string, "MPI_Error_string");
  find(mpi.comm_set_errhandler, "MPI_Comm_set_errhandler");
  find(mpi.comm_dup, "MPI_Comm_dup");
  find(mpi.comm_split, "MPI_Comm_split");
  find(mpi.comm_rank, "MPI_Comm_rank");
  find(mpi.comm_size, "MPI_Comm_size");
  find(mpi.iallreduce, "MPI_Iallreduce");
  find(mpi.isend, "MPI_Isend");
  find(mpi.irecv, "MPI_Irecv");
  find(mpi.test, "MPI_Test");
  find(mpi.wait, "MPI_Wait");
  find(mpi.sendrecv, "MPI_Sendrecv");
  find(mpi.iprobe, "MPI_Iprobe");
  find(mpi.cancel, "MPI_Cancel");
  find(mpi.allreduce, "MPI_Allreduce");
  find(mpi.reduce, "MPI_Reduce");
  find(mpi.bcast, "MPI_Bcast");
  find(mpi.gather, "MPI_Gather");
  find(mpi.allgather, "MPI_Allgather");
  find(mpi.scatter, "MPI_Scatter");
  find(mpi.reduce_scatter_block, "MPI_Reduce_scatter_block");
  find(mpi.alltoall, "MPI_Alltoall");
  find(mpi.alltoallv, "MPI_Alltoallv");
  find(mpi.ireduce, "MPI_Ireduce");
  find(mpi.ibcast, "MPI_Ibcast");
  find(mpi.igather, "MPI_Igather");
  find(mpi.iallgather, "MPI_Iallgather");
  find(mpi.iscatter, "MPI_Iscatter");
  find(mpi.ireduce_scatter_block, "MPI_Ireduce_scatter_block");
  find(mpi.ialltoall, "MPI_Ialltoall");
  find(mpi.scan, "MPI_Scan");
  find(mpi.exscan, "MPI_Exscan");
  find(mpi.progress_register, "opal_progress_register_lp");
  find(mpi.progress_unregister, "opal_progress_unregister");
  find(mpi.world, "ompi_mpi_comm_world");
  find(mpi.errors_return, "ompi_mpi_errors_return");
  find(mpi.byte, "ompi_mpi_byte");
  find(mpi.f64, "ompi_mpi_double");
  find(mpi.i64, "ompi_mpi_int64_t");
  find(mpi.types[0], "ompi_mpi_double");
  find(mpi.types[1], "ompi_mpi_float");
  find(mpi.types[2], "ompi_mpi_int64_t");
  find(mpi.types[3], "ompi_mpi_int32_t");
  find(mpi.types[4], "ompi_mpi_c_bool");
  find(mpi.ops[0], "ompi_mpi_op_sum");
  find(mpi.ops[1], "ompi_mpi_op_prod");
  find(mpi.ops[2], "ompi_mpi_op_min");
  find(mpi.ops[3], "ompi_mpi_op_max");
  find(mpi.op_sum, "ompi_mpi_op_sum");
  find(mpi.op_max, "ompi_mpi_op_max");
  find(mpi.op_and, "ompi_mpi_op_land");
  find(mpi.op_or, "ompi_mpi_op_lor");
  return why.empty() ? &mpi : nullptr;
}

}  // namespace lantern::distributed
