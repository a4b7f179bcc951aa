// Continuation reverse mode in linear time (thesis, 4.3, listing 4.7).
//
// A number is a value with its backpropagator, the linear function that takes the number's cotangent to the
// gradient of the inputs. Run once for each use of the number, as the listing reads, backpropagators cost
// what the paths through the program cost: quadratic for a value that each trip of a loop reads, exponential
// for t = t * t. The thesis finds the wrong complexity in four languages (6.2) and proves the mode correct
// (8.3). What that proof rests on is that backpropagators are linear, and a linear function may be run once,
// on the sum:
//
//   dx z1 + dx z2 = dx (z1 + z2)
//
// (linear factoring: Brunel, Mazza and Pagani, "Backpropagation in the Simply Typed Lambda-Calculus with
// Linear Negation", POPL 2020). So a call adds to what the backpropagator is called with, and it is run when
// no further call can come: one made later is called by none made earlier, and the last made is run first.
// Each is run once at most, so that the gradient takes a constant for every operation of the program, and no
// stack.
#include "lantern/compiler/ad/modes/eager_reverse.hpp"

namespace lantern::core::ad {

namespace {

class Continuations : public EagerReverse {
 public:
  using EagerReverse::EagerReverse;
  const char* name() const override { return "continuation reverse mode"; }

  // r = b(x, y), { z -> p (dx (t (der2 L b x y) z)) (dy (t (der2 R b x y) z)) }
  Datum apply(const Operation& op, std::span<const Datum> operands) override {
    Step s = step(op, operands);
    if (!differentiable(s)) return s.y;
    const Datum y = s.y;
    const Location loc = op.loc;
    return prop(
        y,
        [this, s = std::move(s)](const Datum& z) {
          s.propagate_to([this](const Datum& x) { return d(x); }, z);
        },
        loc);
  }

  /// prop x {z -> z}: what an input's backpropagator is called with is its gradient.
  Datum input(const Datum& primal) override { return make_variable<WithAdjoint>(primal); }
  void run(const std::function<void()>& program) override {
    struct Clear {
      control::Deferred& made;
      ~Clear() { made.clear(); }  // what backpropagators know refers to this handler
    } clear{made_};
    program();
    made_.run();
  }
  void seed(const Datum& result, const Datum& g, const Location& loc) override {
    if (Cell* call = d(result)) call->add(g, loc);
  }
  Datum adjoint(const Datum& input, const Location& loc) override { return d(input)->get(loc); }

 private:
  /// Where calls of the number's backpropagator are added up; null for a constant.
  Cell* d(const Datum& x) const { return cell_of(x); }

  /// A value with its backpropagator.
  template <class Backpropagator>
  Datum prop(const Datum& primal, Backpropagator backpropagator, const Location& loc) {
    Datum r = make_variable<WithAdjoint>(primal);
    made_.push([this, r, backpropagator = std::move(backpropagator), loc] {
      Cell& calls = *d(r);
      if (calls.touched()) backpropagator(calls.get(loc));
    });
    return r;
  }

  // r_j = f_j(x, ...), { z -> the sum of dx (what the rule gives x for the z of all places) }: the rule is
  // linear, and asked once for all values.
  Datums vertex(const Datums& operands, const Datums& values, Pullback pullback, const Location& loc) override {
    return vertex_for_later(made_, operands, values, std::move(pullback), loc);
  }

  control::Deferred made_;  // backpropagators, the last one first
};

}  // namespace

std::shared_ptr<EagerReverse> make_continuation(std::uint64_t tag) {
  return std::make_shared<Continuations>(tag);
}

}  // namespace lantern::core::ad
