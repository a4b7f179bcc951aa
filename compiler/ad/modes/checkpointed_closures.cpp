// Checkpointed reverse mode for higher-order functions (thesis, 5.3, listing 5.4, after Vakar and Smeding): a
// call of an instrumented function is run twice, once for its value and once more in the backward pass.
#include "lantern/compiler/ad/modes/closures.hpp"

namespace lantern::core::ad {

namespace {

class CheckpointedClosures : public Closures {
 public:
  using Closures::Closures;
  const char* name() const override { return "checkpointed higher-order reverse mode"; }

 private:
  //   let g = {x -> let res = evaluatet s (f x) in
  //                 let r = prop (fwd (fst res)) (new 0) in
  //                 pair r {let q = reversehc ((deriv (f x)) := @(deriv r)) in (snd q)!}}
  Func instrumented(const Part& f) override {
    return [this, f](const Datums& x) {
      const Datums r = evaluated(f, x);
      return std::pair(r, Pass([this, f, x, r] { run([&] { seed_again(f, x, r, {}); }); }));
    };
  }
};

}  // namespace

std::shared_ptr<EagerReverse> make_checkpointed_closures(std::uint64_t tag) {
  return std::make_shared<CheckpointedClosures>(tag);
}

}  // namespace lantern::core::ad
