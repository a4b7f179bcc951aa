// The host's side of the memory that generated code works in: owns it, and turns failures into exceptions.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "lantern/runtime/workspace.h"

namespace lantern {

/// Arena and tapes for calls of generated code. Memory is kept between calls, so repeated calls allocate
/// nothing. One call at a time; different threads use different workspaces. Threads that loops are shared out
/// to belong to the calling thread, and stay as long as it does; their workspaces are kept with this one.
class Workspace {
 public:
  Workspace();
  ~Workspace();
  Workspace(const Workspace&) = delete;
  Workspace& operator=(const Workspace&) = delete;

  /// Forgets what earlier calls left in arena and tapes: tensors they returned become invalid.
  void reset();

  /// Resets, then calls an entry point. A failure of the generated code is thrown as lantern::Error.
  /// Results that are tensors stay valid until the next call or reset. `targets`, if given: where the caller
  /// wants each result that is a tensor, in memory that is no argument's; one that lies there after the call
  /// needs no copy. After a failure their contents are unspecified. `flush`: subnormal numbers are zero while
  /// the code runs, in all of its threads (subnormals.hpp).
  int call(lt_entry* entry, const void* const* in, void* const* out, lt_target* targets = nullptr,
           bool flush = false);

  /// The same around any function, without reset. A failure leaves `body` by longjmp: no frame between here
  /// and generated code may own anything. Calls may nest. Returns 0 (a failure throws).
  int call(void (*body)(lt_workspace*, void*), void* data);

  /// Calls part(w, share) for each of `count` shares of so many bytes, in this thread and in `threads` - 1
  /// others as far as the system has any. Each begins with the share of its own number and then takes what
  /// nothing has begun; each w is a workspace with nothing in it. Returns when all are done: null, or how the
  /// first share that failed did; after it shares need not run.
  const char* fork(std::int64_t threads, std::int64_t count, void (*part)(lt_workspace*, void*), void* shares,
                   std::int64_t bytes);

  /// Bytes held, those of threads included. As nothing is given back before the end, this is also the most
  /// ever held.
  std::int64_t peak_bytes() const;

  lt_workspace* get() { return &memory_; }

 private:
  bool succeeds(void (*body)(lt_workspace*, void*), void* data, bool flush);

  lt_workspace memory_;
  bool flush_ = false;  ///< for the threads of the call that goes on
  std::vector<std::unique_ptr<Workspace>> workers_;  ///< of the shares of a fork
};

}  // namespace lantern
