// The host's side of the memory that generated code works in: owns it, and turns failures into exceptions.
#pragma once

#include <cstdint>

#include "lantern/runtime/workspace.h"

namespace lantern {

/// Arena and tapes for calls of generated code. Memory is kept between calls, so repeated calls allocate
/// nothing. One call at a time; different threads use different workspaces.
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
  /// needs no copy. After a failure their contents are unspecified.
  int call(lt_entry* entry, const void* const* in, void* const* out, lt_target* targets = nullptr);

  /// The same around any function, without reset. A failure leaves `body` by longjmp: no frame between here
  /// and generated code may own anything. Calls may nest. Returns 0 (a failure throws).
  int call(void (*body)(lt_workspace*, void*), void* data);

  /// Bytes held. As nothing is given back before the end, this is also the most ever held.
  std::int64_t peak_bytes() const;

  lt_workspace* get() { return &memory_; }

 private:
  lt_workspace memory_;
};

}  // namespace lantern
