// checkpoint(f): a function whose reverse keeps its arguments and computes the inside again.
#pragma once

#include "lantern/compiler/ad/run_again.hpp"

namespace lantern::core {

namespace ad {

/// A program of which reverse mode records nothing but the arguments. Eager: see Reverse::checkpoint; forward
/// mode passes through. While staging: a call with the attribute of ir/checkpoint.hpp.
Datums checkpoint(const Program& program, const Datums& arguments, const Location& loc);

}  // namespace ad

namespace detail {

template <class F, class Params>
class Checkpoint;
template <class F, class... P>
class Checkpoint<F, std::tuple<P...>> {
  using Value = typename FunctionTraits<F>::Result;

 public:
  Checkpoint(F f, Location loc) : f_(kept(std::move(f))), loc_(loc) {}
  Value operator()(const P&... p) const {
    Datums data;
    (flatten(p, data), ...);
    const auto [run, prototype] = run_again<Value>(f_, p...);
    const Datums results = ad::checkpoint({name(), run}, data, loc_);
    return rebuild(**prototype, results);
  }
  std::string name() const { return "checkpoint_" + name_of(*f_); }

 private:
  std::shared_ptr<const F> f_;
  Location loc_;
};

}  // namespace detail

/// A function that computes what f computes. Of a derivative by reverse mode it keeps only its arguments; the
/// inside is computed again when the backward pass reaches it (thesis, 5.2). Checkpoints nest: in one
/// another, in loops, in functions that call themselves; forward mode passes through.
///
/// What f captures is differentiated too, and not kept. Eagerly f runs again after the frame that called it
/// has ended: a lambda then captures by value.
template <class F>
auto checkpoint(F f, std::source_location l = std::source_location::current()) {
  detail::require_known<F>();
  return detail::Checkpoint<F, typename detail::FunctionTraits<F>::Params>(std::move(f), here(l));
}

}  // namespace lantern::core
