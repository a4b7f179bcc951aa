// Reverse mode with a refunctionalised tape, staged (Lantern paper, Fig. 12).
//
//   tape = (() => x.d += ... y.d) andThen tape
//
// The functions are composed while the program is staged; calling the composition once the program has been
// staged emits what they do. No continuation is captured, so the code has none, before any pass has run.
#include "lantern/compiler/ad/modes/two_pass.hpp"

namespace lantern::core::ad {

namespace {

class StagedGlobalTape : public TwoPass {
 public:
  using TwoPass::TwoPass;
  const char* name() const override { return "reverse mode with a tape of functions"; }

 private:
  Update update(Step s, Name y) override {
    return [this, s = std::move(s), y] {
      if (const Datum d = take(y); !d.empty()) propagate_all(s, d);
    };
  }
};

}  // namespace

std::shared_ptr<TwoPass> make_staged_global_tape(Staging& staging, std::uint64_t tag) {
  return std::make_shared<StagedGlobalTape>(staging, tag);
}

}  // namespace lantern::core::ad
