// Forward mode by a handler (thesis, 4.1, listing 4.4).
#include "lantern/compiler/ad/forward.hpp"
#include "lantern/compiler/ad/modes/effects.hpp"

namespace lantern::core::ad {

namespace {

class ForwardByHandler : public Forward {
 public:
  using Forward::Forward;

  Datum apply(const Operation& op, std::span<const Datum> operands) override {
    return perform_on<Smooth>(this, Step(*this, op, operands))[0];
  }

  //   diff <ap2 b (paired x dx) (paired y dy) -> k> =
  //     let r = paired (ap2 b x y) (p (t (der2 L b x y) dx) (t (der2 R b x y) dy)) in
  //     diff (k r)
  void run(const std::function<void()>& program) override {
    handle([&program] { program(); }, resuming<Smooth>(this, [this](const Step& b) {
             Datums dx;
             for (const Datum& x : b.operands()) dx.push_back(dual_of(x) ? dual_of(x)->tangent : Datum());
             const Datum& y = b.values()[0];
             const Datum dy = y.type().is_differentiable() ? b.tangent(dx) : Datum();
             return Datums{dy.empty() ? y : dual(y, dy)};
           }));
  }
};

}  // namespace

std::shared_ptr<Forward> make_forward_by_handler(std::uint64_t tag) {
  return std::make_shared<ForwardByHandler>(tag);
}

}  // namespace lantern::core::ad
