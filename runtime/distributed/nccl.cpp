// NCCL by dlopen: programs for a GPU are built without it.
#include "nccl.hpp"

#include <dlfcn.h>

#include <cstdlib>
#include <type_traits>

namespace lantern::distributed {

const Nccl* load_nccl(std::string& why) {
  const char* const named = std::getenv("LANTERN_NCCL");
  const char* const file = named != nullptr && *named != '\0' ? named : "libnccl.so.2";
  void* const library = dlopen(file, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    why = dlerror();
    return nullptr;
  }
  static Nccl nccl;
  const auto find = [&](auto& to, const char* name) {
    void* const address = dlsym(library, name);
    if (address == nullptr && why.empty()) why = std::string(file) + " has no '" + name + "': it is not NCCL 2.7 or newer";
    to = reinterpret_cast<std::remove_reference_t<decltype(to)>>(address);
  };
  find(nccl.get_id, "ncclGetUniqueId");
  find(nccl.init_rank, "ncclCommInitRank");
  find(nccl.abort, "ncclCommAbort");
  find(nccl.async_error, "ncclCommGetAsyncError");
  find(nccl.error_string, "ncclGetErrorString");
  find(nccl.all_reduce, "ncclAllReduce");
  find(nccl.reduce, "ncclReduce");
  find(nccl.broadcast, "ncclBroadcast");
  find(nccl.all_gather, "ncclAllGather");
  find(nccl.reduce_scatter, "ncclReduceScatter");
  find(nccl.send, "ncclSend");
  find(nccl.receive, "ncclRecv");
  find(nccl.group_start, "ncclGroupStart");
  find(nccl.group_end, "ncclGroupEnd");
  return why.empty() ? &nccl : nullptr;
}

}  // namespace lantern::distributed
