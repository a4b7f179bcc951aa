// Reverse mode with a refunctionalised tape (Lantern paper, Fig. 12).
//
// What follows the continuation in Fig. 8 becomes a function, composed before those of earlier operations:
//   tape = (() => x.d += ... y.d) andThen tape
// No continuation is captured: all calls of k would be tail calls.
#include <vector>

#include "lantern/compiler/ad/modes/eager_reverse.hpp"

namespace lantern::ad {

namespace {

class GlobalTape : public EagerReverse {
 public:
  using EagerReverse::EagerReverse;
  const char* name() const override { return "reverse mode with a tape of functions"; }

  Datum apply(const Operation& op, std::span<const Datum> operands) override {
    Step s = step(op, operands);
    if (!differentiable(s)) return s.y;
    const CellPtr d = eager_cell(s.y);
    Datum y = make_variable<Variable>(s.y, d);
    and_then_tape([this, s = std::move(s), d] {
      if (!d->touched()) return;
      const Datum g = d->get(s.op.loc);
      const StepRule rule = s.rule(g);
      s.backward([&](std::size_t i) {
        if (auto* x = variable_of<Variable>(s.operands[i])) propagate(i, rule, *x->d);
      });
    });
    return y;
  }

  Datum input(const Datum& primal) override { return make_variable<Variable>(primal, eager_cell(primal)); }
  void run(const std::function<void()>& program) override {
    struct Clear {
      Tape& tape;
      ~Clear() { tape.clear(); }  // what is on the tape refers to this handler
    } clear{tape_};
    program();
    play();
  }
  void seed(const Datum& result, const Datum& g, const Location& loc) override {
    if (auto* z = variable_of<Variable>(result)) z->d->add(g, loc);
  }
  Datum adjoint(const Datum& input, const Location& loc) override {
    return variable_of<Variable>(input)->d->get(loc);
  }

 private:
  struct Variable : TaggedBox {
    Variable(std::shared_ptr<Mode> m, Datum p, CellPtr cell)
        : TaggedBox(std::move(m), std::move(p)), d(std::move(cell)) {}
    CellPtr d;
  };
  /// A composition of functions, as the list of its factors: calling it needs no stack. The last one is
  /// called first.
  using Tape = std::vector<std::function<void()>>;

  Data vertex(const Data& operands, const Data& values, Pullback pullback, const Location& loc) override {
    std::vector<CellPtr> cells;
    Data out = with_cells<Variable>(values, cells);
    and_then_tape([this, operands, cells, pullback = std::move(pullback), loc] {
      pull_back<Variable>(operands, cells, pullback, loc,
                          [&](Variable& x, const Datum& g) { x.d->add(g, loc); });
    });
    return out;
  }

  void and_then_tape(std::function<void()> update) { tape_.push_back(std::move(update)); }
  void play() {
    for (; !tape_.empty(); tape_.pop_back()) tape_.back()();
  }

  Tape tape_;
};

}  // namespace

std::shared_ptr<EagerReverse> make_global_tape(std::uint64_t tag) {
  return std::make_shared<GlobalTape>(tag);
}

}  // namespace lantern::ad
