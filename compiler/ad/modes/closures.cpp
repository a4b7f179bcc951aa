// Reverse mode for higher-order functions (thesis, 5.3, listing 5.3).
//
// Functions are made known to the mode: `abs` is closure(f), `app` is a call of what it gives.
//
//   reverseh <abs f -> k>          = let g = {x -> reverseh (f x)} in reverseh (k (func g))
//   reverseh <app (func f) x -> k> = let r = f x in
//                                    let res = reverseh (k (fst r)) in
//                                    pair (fst res) {(snd res)!; (snd r)!}
//
// A call gives its result and its own reverse pass, a function; the reverse pass of the caller runs it where
// the call's turn comes. Under mode::checkpointed a call is run twice instead (listing 5.4, after Vakar and
// Smeding).
#include <vector>

#include "lantern/compiler/ad/closure.hpp"
#include "lantern/compiler/ad/modes/eager_reverse.hpp"

namespace lantern::ad {

namespace {

class Closures : public EagerReverse, public HigherOrder {
 public:
  using EagerReverse::EagerReverse;
  const char* name() const override { return "higher-order reverse mode"; }

  // pair (fst res) {(snd res)!; dx := ...; dy := ...}
  Datum apply(const Operation& op, std::span<const Datum> operands) override {
    Step s = step(op, operands);
    if (!differentiable(s)) return s.y;
    const CellPtr d = eager_cell(s.y);
    Datum r = make_variable<Variable>(s.y, d);
    pass_.push_back([this, s = std::move(s), d] {
      if (!d->touched()) return;
      const Datum g = d->get(s.op.loc);
      const StepRule rule = s.rule(g);
      s.backward([&](std::size_t i) {
        if (auto* x = variable_of<Variable>(s.operands[i])) propagate(i, rule, *x->d);
      });
    });
    return r;
  }

  Data app(const Function& f, const Data& x, const Location&) override {
    auto [result, own] = instrumented(f, x);
    pass_.push_back([own = std::move(own)]() mutable { backward(own); });
    return result;
  }

  Datum input(const Datum& primal) override { return make_variable<Variable>(primal, eager_cell(primal)); }
  void run(const std::function<void()>& program) override {
    struct Clear {
      Pass& pass;
      ~Clear() { pass.clear(); }  // what is in it refers to this handler
    } clear{pass_};
    program();
    backward(pass_);
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
  /// A reverse pass: the functions it runs, the last first.
  using Pass = std::vector<std::function<void()>>;

  Data vertex(const Data& operands, const Data& values, Pullback pullback, const Location& loc) override {
    std::vector<CellPtr> cells;
    Data out = with_cells<Variable>(values, cells);
    pass_.push_back([this, operands, cells, pullback = std::move(pullback), loc] {
      pull_back<Variable>(operands, cells, pullback, loc,
                          [&](Variable& x, const Datum& g) { x.d->add(g, loc); });
    });
    return out;
  }

  static void backward(Pass& pass) {
    for (; !pass.empty(); pass.pop_back()) pass.back()();
  }

  /// g = {x -> reverseh (f x)}: the result, and the reverse pass of this call alone.
  std::pair<Data, Pass> instrumented(const Function& f, const Data& x) {
    struct Caller {
      Pass& current;
      Pass saved;
      ~Caller() { current = std::move(saved); }
    } caller{pass_, std::exchange(pass_, {})};
    Data result = f(x);
    return {std::move(result), std::exchange(pass_, {})};
  }

  Pass pass_;
};

}  // namespace

std::shared_ptr<EagerReverse> make_closures(std::uint64_t tag) { return std::make_shared<Closures>(tag); }

}  // namespace lantern::ad
