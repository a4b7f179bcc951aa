// Checkpointed reverse mode (thesis, 5.2, listing 5.2): a checkpointed part is run twice, once for its value,
// remembering nothing, and once more in the backward pass, when everything after it has been forgotten.
#include "lantern/compiler/ad/modes/stateful_reverse.hpp"

namespace lantern::core::ad {

namespace {

class Checkpointed : public StatefulReverse {
 public:
  using StatefulReverse::StatefulReverse;
  const char* name() const override { return "checkpointed reverse mode"; }

  //   reversec <checkpoint p -> k> =
  //     let res = evaluatet s p! in
  //     let r = prop (fwd res) (new 0) in
  //     reversec (k r);                             -- the rest of the program, and its backward pass
  //     reversec ((deriv p!) := @(deriv r))         -- the part again, under the same handler
  // One handler has both clauses, this and reverse's, as in the thesis' Eff and OCaml: the backward part of
  // what is before a checkpoint then comes after the checkpoint's.
  void run(const std::function<void()>& program) override {
    handle([&program] { program(); }, reverse_clause(),
           on<Checkpoint>(this, [this](const Part& p, const Datums& x, const Location& loc, auto k) {
             const Datums r = evaluated(p, x);
             k(r);
             run([&] { seed_again(p, x, r, loc); });
           }));
  }
};

}  // namespace

std::shared_ptr<EagerReverse> make_checkpointed(std::uint64_t tag) {
  return std::make_shared<Checkpointed>(tag);
}

}  // namespace lantern::core::ad
