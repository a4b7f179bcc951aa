// The rule of stateful reverse mode, by a handler.
#include "lantern/compiler/ad/modes/stateful_reverse.hpp"

namespace lantern::core::ad {

void StatefulReverse::run(const std::function<void()>& program) {
  handle([&program] { program(); }, reverse_clause());
}

void StatefulReverse::accumulate(const Step& b, const Datums& r) const {
  Datums cotangents;
  for (const Datum& y : r) {
    const auto* number = number_of<Prop>(y);
    cotangents.push_back(number && number->d.touched() ? deriv(y, b.loc()).get(b.backward()) : Datum());
  }
  b.propagate(cotangents, [&](const Datum& x) -> Cell& { return deriv(x, b.loc()); });
}

void StatefulReverse::seed(const Datum& result, const Datum& g, const Location& loc) {
  if (number_of(result)) deriv(result, loc).add(g, loc);
}

Cell& StatefulReverse::deriv(const Datum& x, const Location& loc) const {
  auto* number = number_of<Prop>(x);
  if (number->forgotten)
    raise_at(loc,
             "a value computed in a checkpointed function is used outside it; return it from the function: "
             "what it "
             "assigns elsewhere belongs to its first run, which is not remembered");
  return number->d;
}

//   evaluatet s <ap b (prop x dx) ... -> k> = evaluatet s (k (prop (ap b x ...) s))
//   evaluatet s <checkpoint p -> k>         = evaluatet s (k (evaluatet s p!))
//   evaluatet s <app f x -> k>              = evaluatet s (k (f x))
// Where the listings have one cell s for all, here is none: what would be added to it would be lost.
Datums StatefulReverse::evaluate(const Part& part, const Datums& arguments) {
  return handle([&] { return part(arguments); },
                resuming<Smooth>(this,
                                 [this](const Step& b) {
                                   return numbers(b.values(), [this](const Datum& y) {
                                     return make_number<Prop>(y, true);
                                   });
                                 }),
                resuming<Checkpoint>(
                    this, [this](const Part& p, const Datums& x, const Location&) { return evaluate(p, x); }),
                resuming<Abs>(this,
                              [this](const Part& f) {
                                return Func([this, f](const Datums& x) {
                                  return std::pair(evaluate(f, x), Pass([] {}));
                                });
                              }),
                resuming<App>(this, [](const Func& f, const Datums& x) { return f(x).first; }));
}

void StatefulReverse::seed_again(const Part& part, const Datums& arguments, const Datums& r,
                                 const Location& loc) {
  const Datums again = part(arguments);
  for (std::size_t i = 0; i < again.size(); ++i)
    if (const auto* number = number_of<Prop>(r[i]); number && number->d.touched())
      seed(again[i], deriv(r[i], loc).get(loc), loc);
}

std::shared_ptr<EagerReverse> make_stateful_reverse(std::uint64_t tag) {
  return std::make_shared<StatefulReverse>(tag);
}

}  // namespace lantern::core::ad
