// Checkpointed reverse mode, staged (thesis, 5.2, listing 5.2).
//
//   reversec <checkpoint p -> k> =
//     let res = evaluatet p! in          -- a call of the function itself
//     ...
//     reversec ((deriv p!) := deriv r)   -- in the backward part: its forward half, then its backward half
//
// The forward half records; what it records lives until the backward half has run, which follows at once.
// Without checkpoints this is Fig. 8 with the continuation already run.
#include "lantern/compiler/ad/modes/two_pass.hpp"
#include "lantern/ir/checkpoint.hpp"

namespace lantern::core::ad {

namespace {

class StagedCheckpointed : public TwoPass {
 public:
  using TwoPass::TwoPass;
  const char* name() const override { return "checkpointed reverse mode"; }

 private:
  Update update(Step s, Name r) override {
    return [this, s = std::move(s), r] {
      if (const Datum d = take(r); !d.empty()) propagate_all(s, d);
    };
  }
  bool runs_again(std::int64_t attribute) const override { return attribute == ir::checkpointed; }
};

}  // namespace

std::shared_ptr<TwoPass> make_staged_checkpointed(Staging& staging, std::uint64_t tag) {
  return std::make_shared<StagedCheckpointed>(staging, tag);
}

}  // namespace lantern::core::ad
