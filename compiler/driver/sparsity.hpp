// jacobian_sparsity and hessian_sparsity: patterns of derivatives, found by running the program.
#pragma once

#include "lantern/compiler/ad/sparse.hpp"
#include "lantern/compiler/driver/compile.hpp"

namespace lantern::core {

namespace detail {

/// The pattern and a colouring of it, as data of a program.
inline Sparsity sparsity_of(ad::Pattern p, ad::Colouring c) {
  return {p.rows,
          p.columns,
          c.forward,
          c.reverse,
          std::move(p.row_start),
          std::move(p.column),
          std::move(c.column_colour),
          std::move(c.row_colour),
          std::move(c.pass_start),
          std::move(c.entry),
          std::move(c.element)};
}

template <bool symmetric, std::size_t position, class F, class Params = typename FunctionTraits<F>::Params>
class SparsityOfProgram;
template <bool symmetric, std::size_t position, class F, class... P>
class SparsityOfProgram<symmetric, position, F, std::tuple<P...>> {

 public:
  SparsityOfProgram(F f, Location loc) : f_(std::move(f)), loc_(loc) {}

  Sparsity operator()(const host_in<P>&... args) const {
    Datums data;
    std::size_t argument = 0, at = 0;
    const auto add = [&]<class Q>(std::type_identity<Q>, const auto& arg) {
      if (at++ == position) argument = data.size();
      for_each_leaf<Q>(arg, AppendDatum{data});
    };
    (add(std::type_identity<P>{}, args), ...);
    ad::Pattern p = ad::dependences(program_of(f_), data, argument, loc_);
    if constexpr (symmetric) p = p.merged(p.transposed());
    ad::Colouring c = symmetric ? ad::colour_hessian(p) : ad::colour_jacobian(p);
    return sparsity_of(std::move(p), std::move(c));
  }

 private:
  F f_;
  Location loc_;
};

}  // namespace detail

/// The sparsity of the Jacobian of f by its argument number `position`: jacobian_sparsity(f)(x...), with the
/// arguments of eager(f). The program is run once on sets of element numbers; the pattern is that of the
/// branches and iterations it takes there (ad::dependences), so a program that branches differently elsewhere has
/// another. Forward and reverse passes are mixed where that takes fewer: an arrow of n rows takes 3 passes.
/// Errors: an argument or a result that is not an array of floating numbers.
template <std::size_t position = 0, class F>
  requires detail::Takes<F, detail::TemplateArguments::position, position>
auto jacobian_sparsity(F f, std::source_location l = std::source_location::current()) {
  return detail::SparsityOfProgram<false, position, F>(std::move(f), here(l));
}
LANTERN_TAKES_OPTIONS(jacobian_sparsity, position)

/// The sparsity of the Hessian of f, a scalar function: that of its gradient's Jacobian, coloured as a
/// symmetric matrix.
template <std::size_t position = 0, class F>
  requires detail::Takes<F, detail::TemplateArguments::position, position>
auto hessian_sparsity(F f, std::source_location l = std::source_location::current()) {
  auto g = grad<position>(std::move(f), l);
  return detail::SparsityOfProgram<true, position, decltype(g)>(std::move(g), here(l));
}
LANTERN_TAKES_OPTIONS(hessian_sparsity, position)

}  // namespace lantern::core
