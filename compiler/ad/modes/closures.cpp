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
#include "lantern/compiler/ad/closure.hpp"
#include "lantern/compiler/ad/modes/eager_reverse.hpp"

namespace lantern::core::ad {

namespace {

class Closures : public EagerReverse, public HigherOrder {
 public:
  using EagerReverse::EagerReverse;
  const char* name() const override { return "higher-order reverse mode"; }

  // pair (fst res) {(snd res)!; dx := ...; dy := ...}
  Datum apply(const Operation& op, std::span<const Datum> operands) override {
    Step s = step(op, operands);
    if (!differentiable(s)) return s.y;
    const Datum r = make_variable<WithAdjoint>(s.y);
    pass_.push([this, s = std::move(s), r] {
      Cell& d = *cell_of(r);
      if (d.touched()) s.propagate_to([this](const Datum& x) { return cell_of(x); }, d.get(s.op.loc));
    });
    return r;
  }

  Datums app(const Function& f, const Datums& x, const Location&) override {
    auto [result, own] = instrumented(f, x);
    pass_.push([own = std::move(own)]() mutable { own.run(); });
    return result;
  }

  Datum input(const Datum& primal) override { return make_variable<WithAdjoint>(primal); }
  void run(const std::function<void()>& program) override {
    struct Clear {
      Pass& pass;
      ~Clear() { pass.clear(); }  // what is in it refers to this handler
    } clear{pass_};
    program();
    pass_.run();
  }
  void seed(const Datum& result, const Datum& g, const Location& loc) override {
    if (Cell* d = cell_of(result)) d->add(g, loc);
  }
  Datum adjoint(const Datum& input, const Location& loc) override { return cell_of(input)->get(loc); }

 private:
  /// A reverse pass: the functions it runs, the last first.
  using Pass = control::Deferred;

  Datums vertex(const Datums& operands, const Datums& values, Pullback pullback, const Location& loc) override {
    return vertex_for_later(pass_, operands, values, std::move(pullback), loc);
  }

  /// g = {x -> reverseh (f x)}: the result, and the reverse pass of this call alone.
  std::pair<Datums, Pass> instrumented(const Function& f, const Datums& x) {
    struct Caller {
      Pass& current;
      Pass saved;
      ~Caller() { current = std::move(saved); }
    } caller{pass_, std::exchange(pass_, Pass())};
    Datums result = f(x);
    return {std::move(result), std::exchange(pass_, Pass())};
  }

  Pass pass_;
};

}  // namespace

std::shared_ptr<EagerReverse> make_closures(std::uint64_t tag) { return std::make_shared<Closures>(tag); }

}  // namespace lantern::core::ad
