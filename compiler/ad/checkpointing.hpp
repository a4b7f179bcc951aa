// What a handler does with checkpoint(f).
#pragma once

#include <functional>

#include "lantern/compiler/staging/operation.hpp"

namespace lantern::core::ad {

/// A mode with a backward pass that can keep the arguments of a part of the program instead of what is inside.
class Checkpointing {
 public:
  /// The part's results, of which nothing inside is recorded: the backward pass runs `part` again, recorded
  /// this time, and then backward (thesis, 5.2). `part` is kept until then.
  virtual Datums checkpoint(const std::function<Datums(const Datums&)>& part, const Datums& arguments,
                            const Location& loc) = 0;

 protected:
  ~Checkpointing() = default;
};

/// One that treats every function it knows of (closure.hpp) so.
class RunsFunctionsAgain : public Checkpointing {
 protected:
  ~RunsFunctionsAgain() = default;
};

}  // namespace lantern::core::ad
