// Taped reverse mode, staged (thesis, 4.4, listing 4.8).
//
// An entry of the tape says what the result of one operation passes on, and to whom: `single u v_u` and
// `double`. The factors v_u, partial derivatives, are computed by the forward part; the backward part
// multiplies and adds. Names and pointers are gone once the tape is played: what the code keeps is the
// factors. A number that depends on no input has no name and leaves nothing on the tape.
#include "lantern/compiler/ad/modes/two_pass.hpp"

namespace lantern::core::ad {

namespace {

class StagedTaped : public TwoPass {
 public:
  using TwoPass::TwoPass;
  const char* name() const override { return "taped reverse mode"; }

 private:
  Update update(Step s, Name k) override {
    Entry entry{k, {}, {}};
    backward_order(s.op.code, s.operands.size(), [&](std::size_t i) {
      if (const Variable* x = receiver(s, i)) entry.pointers.push_back({x->name, i, partial(s, i)});
    });
    entry.rule = std::move(s);
    return [this, entry = std::move(entry)] { deferred(entry); };
  }

  /// `name` receives the result's derivative times the factor; without a factor (tensors) what the rule says.
  struct Pointer {
    Name name;
    std::size_t operand;
    Datum factor;
  };
  struct Entry {
    Name k;
    std::vector<Pointer> pointers;
    Step rule;
  };

  /// The partial derivative of an operation on scalars, where the program is.
  static Datum partial(const Step& s, std::size_t i) {
    if (!ir::info(s.op.code).elementwise || !s.y.type().is_scalar()) return {};
    const ir::Formula& f = *ir::derivative(s.op.code, i, s.operands.size());
    return chooses(f) ? Datum() : partial_derivative(f, s.rule({}));
  }

  /// du += v_u * dk
  void deferred(const Entry& entry) {
    const Datum dk = take(entry.k);
    if (dk.empty()) return;
    const Location& loc = entry.rule.op.loc;
    for (const Pointer& u : entry.pointers)
      if (u.factor.empty())
        propagate_to(entry.rule, u.operand, dk);
      else
        add(u.name, perform({Opcode::mul_, 0, loc}, {at(u.factor), dk}), loc);
  }
};

}  // namespace

std::shared_ptr<TwoPass> make_staged_taped(Staging& staging, std::uint64_t tag) {
  return std::make_shared<StagedTaped>(staging, tag);
}

}  // namespace lantern::core::ad
