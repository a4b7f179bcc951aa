// Reverse mode by shift and reset (Lantern paper, Fig. 8), of which Fig. 7 is the part without control
// operators: there the operators take their continuation as an argument, and the program is written that way
// by hand, as in explicit_cps.hpp. For programs in direct style shift supplies what they are called with, and
// the two figures are one.
#include "lantern/compiler/ad/modes/stateful_reverse.hpp"

namespace lantern::core::ad {

namespace {

class ReverseByShift : public StatefulReverse {
 public:
  using StatefulReverse::StatefulReverse;
  const char* name() const override { return "reverse mode by shift and reset"; }

  void run(const std::function<void()>& program) override {
    reset(prompt_, [&program] { program(); });
  }

 private:
  // Fig. 8:  x op x' = shift { k => (x op x')(k) }
  Datums handle_step(Step b) override {
    return shift<Datums>(prompt_,
                         [this, b = std::move(b)](auto k) { operate(b, [&k](const Datums& y) { k(y); }); });
  }

  // Fig. 7:  (x op x')(k) = { val y = new NumR0(x.x op x'.x, 0); k(y); x.d += dop/dx * y.d; x'.d += dop/dx' *
  // y.d }
  void operate(const Step& b, const std::function<void(const Datums&)>& k) {
    const Datums y = props(b);
    k(y);
    accumulate(b, y);
  }

  Prompt<void> prompt_;
};

}  // namespace

std::shared_ptr<EagerReverse> make_reverse_by_shift(std::uint64_t tag) {
  return std::make_shared<ReverseByShift>(tag);
}

}  // namespace lantern::core::ad
