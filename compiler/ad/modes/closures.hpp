// Reverse mode for higher-order functions (thesis, 5.3, listing 5.3).
#pragma once

#include "lantern/compiler/ad/modes/stateful_reverse.hpp"

namespace lantern::core::ad {

/// The handler gives the program's reverse pass as a function. An instrumented function gives that of each
/// call, which the reverse pass of the caller runs where the call's turn comes.
class Closures : public StatefulReverse {
 public:
  using StatefulReverse::StatefulReverse;
  const char* name() const override { return "higher-order reverse mode"; }
  void run(const std::function<void()>& program) override;

 protected:
  /// g of  reverseh <abs f -> k> = reverseh (k (func g)).
  virtual Func instrumented(const Part& f);

  /// reverseh: the program's result, and its reverse pass.
  template <class Y>
  std::pair<Y, Pass> reverseh(const std::function<Y()>& program);
};

template <class Y>
std::pair<Y, Pass> Closures::reverseh(const std::function<Y()>& program) {
  using Answer = std::pair<Y, Pass>;
  return handle([&program] { return program(); },
                //   reverseh <ap b (prop x dx) ... -> k> =
                //     let r = prop (ap b x ...) (new 0) in
                //     let res = reverseh (k r) in
                //     pair (fst res) {(snd res)!; dx := p @dx (t (der b x ...) @(deriv r)); ...}
                on<Smooth>(this,
                           [this](Step b, auto k) -> Answer {
                             Datums r = props(b);
                             Answer res = k(r);
                             return {std::move(res.first), [this, rest = std::move(res.second),
                                                            b = std::move(b), r = std::move(r)] {
                                       rest();
                                       accumulate(b, r);
                                     }};
                           }),
                resuming<Abs>(this, [this](const Part& f) { return instrumented(f); }),
                //   reverseh <app (func f) x -> k> =
                //     let r = f x in
                //     let res = reverseh (k (fst r)) in
                //     pair (fst res) {(snd res)!; (snd r)!}
                on<App>(this,
                        [](const Func& f, const Datums& x, auto k) -> Answer {
                          auto [y, own] = f(x);
                          Answer res = k(std::move(y));
                          return {std::move(res.first), [rest = std::move(res.second), own = std::move(own)] {
                                    rest();
                                    own();
                                  }};
                        }),
                returning([](Y x) { return Answer(std::move(x), [] {}); }));
}

}  // namespace lantern::core::ad
