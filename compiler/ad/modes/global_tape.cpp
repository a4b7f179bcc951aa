// Reverse mode with a refunctionalised tape (Lantern paper, Fig. 12).
//
// What follows the continuation in Fig. 8 becomes a function, composed before those of earlier operations:
//   tape = (() => x.d += ... y.d) andThen tape
// No continuation is captured: all calls of k would be tail calls.
#include "lantern/compiler/ad/modes/eager_reverse.hpp"

namespace lantern::core::ad {

namespace {

class GlobalTape : public EagerReverse {
 public:
  using EagerReverse::EagerReverse;
  const char* name() const override { return "reverse mode with a tape of functions"; }

  Datum apply(const Operation& op, std::span<const Datum> operands) override {
    Step s = step(op, operands);
    if (!differentiable(s)) return s.y;
    const Datum y = make_variable<WithAdjoint>(s.y);
    and_then_tape([this, s = std::move(s), y] {
      Cell& d = *cell_of(y);
      if (d.touched()) s.propagate_to([this](const Datum& x) { return cell_of(x); }, d.get(s.op.loc));
    });
    return y;
  }

  Datum input(const Datum& primal) override { return make_variable<WithAdjoint>(primal); }
  void run(const std::function<void()>& program) override {
    struct Clear {
      Tape& tape;
      ~Clear() { tape.clear(); }  // what is on the tape refers to this handler
    } clear{tape_};
    program();
    play();
  }
  void seed(const Datum& result, const Datum& g, const Location& loc) override {
    if (Cell* d = cell_of(result)) d->add(g, loc);
  }
  Datum adjoint(const Datum& input, const Location& loc) override { return cell_of(input)->get(loc); }

 private:
  /// A composition of functions, as the list of its factors: calling it needs no stack. The last one is
  /// called first.
  using Tape = control::Deferred;

  Datums vertex(const Datums& operands, const Datums& values, Pullback pullback, const Location& loc) override {
    return vertex_for_later(tape_, operands, values, std::move(pullback), loc);
  }

  template <class Update>
  void and_then_tape(Update update) {
    tape_.push(std::move(update));
  }
  void play() { tape_.run(); }

  Tape tape_;
};

}  // namespace

std::shared_ptr<EagerReverse> make_global_tape(std::uint64_t tag) {
  return std::make_shared<GlobalTape>(tag);
}

}  // namespace lantern::core::ad
