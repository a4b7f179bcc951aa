// Evaluation by a handler (thesis, 4, listing 4.3). A program that is run as it is needs none: its numbers
// carry no tag. This shows what the others are built on.
#include "lantern/compiler/ad/modes/effects.hpp"
#include "lantern/compiler/ad/modes/modes.hpp"
#include "lantern/compiler/staging/staging.hpp"

namespace lantern::core::ad {

namespace {

class Evaluate : public Mode {
 public:
  using Mode::Mode;
  const char* name() const override { return "evaluation"; }
  Datum apply(const Operation& op, std::span<const Datum> operands) override {
    return perform_on<Smooth>(this, Step(*this, op, operands))[0];
  }
  Datums follow(const std::shared_ptr<const Rule>& rule, const Datums& arguments,
                const Location& loc) override {
    return perform_on<Smooth>(this, Step(*this, rule, arguments, loc));
  }

  Datum number(const Datum& d) {
    return d.type().is_differentiable() ? make_number<TaggedBox>(d) : d;
  }

  //   evaluate <ap2 b x y -> k> = evaluate (k (x b y))
  Datums evaluate(const std::function<Datums()>& program) {
    return handle([&program] { return program(); }, resuming<Smooth>(this, [this](const Step& b) {
                    Datums r;
                    for (const Datum& y : b.values()) r.push_back(number(y));
                    return r;
                  }));
  }
};

}  // namespace

Datums evaluate_by_handler(const Program& program, const Datums& arguments) {
  const Evaluation evaluation;
  const auto mode = std::make_shared<Evaluate>(fresh_number());
  const Ending ending{*mode};
  Datums tagged;
  for (const Datum& d : arguments) tagged.push_back(mode->number(d));
  return mode->primals(mode->evaluate([&] { return program.run(tagged); }));
}

}  // namespace lantern::core::ad
