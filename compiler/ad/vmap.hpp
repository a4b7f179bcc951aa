// vmap(f): a function of examples as a function of batches.
#pragma once

#include "lantern/compiler/ad/derivative.hpp"
#include "lantern/compiler/staging/mapped.hpp"

namespace lantern::core {

namespace ad {

/// Runs `f` for every example. `mapped`: the arguments of which example i is row i; the others are passed
/// whole. `results`: the types of f's results as far as they are known without running it; empty where not
/// even their number is.
Datums vmap(const Program& f, const Datums& arguments, const std::vector<bool>& mapped,
          const std::vector<ir::Type>& results, const Location& loc);

}  // namespace ad

namespace detail {

/// The type of many values of a type: with one more dimension, the first.
template <class P>
struct Batch {
  static_assert(dependent_false<P>,
                "vmap: expected scalars, arrays and tensors of numbers, or products of them");
  using type = P;
};
template <ScalarElement T>
struct Batch<Rep<T>> {
  using type = Rep<Array<T>>;
};
template <FloatElement T>
struct Batch<Rep<Array<T>>> {
  using type = Rep<Tensor<T, dyn, dyn>>;
};
template <class T>
struct Batch<Rep<Tensor<T>>> {
  using type = Rep<Tensor<T>>;
};
template <class T, std::int64_t D, std::int64_t... Dims>
struct Batch<Rep<Tensor<T, D, Dims...>>> {
  using type = Rep<Tensor<T, dyn, D, Dims...>>;
};
struct Batched {
  template <class R>
  using apply = typename Batch<R>::type;
};
template <class P>
using batch_t = mapped_t<P, Batched>;

/// A batch with the structure (the sizes of vectors of Reps) of an example, or the other way round.
template <class To, class From>
To structured_like(const From& from) {
  To to{};
  map_onto(to, from, [](auto&, const auto&) {});
  return to;
}

template <class Options, class F, class Params, class Indices>
class Vectorised;
template <class Options, class F, class... P, std::size_t... I>
class Vectorised<Options, F, std::tuple<P...>, std::index_sequence<I...>> : public Derived<F> {
  using Value = typename FunctionTraits<F>::Result;
  using Result = batch_t<Value>;
  template <std::size_t K>
  static constexpr bool maps = Options::selects(K, true);
  static_assert((maps<I> || ...), "vmap: expected a function with an argument to map over");
  template <std::size_t K, class Q>
  using Given = typename std::conditional_t<maps<K>, Mapped<Q, Batched>, std::type_identity<Q>>::type;

 public:
  using Derived<F>::Derived;
  Result operator()(const Given<I, P>&... given) const {
    Datums data;
    std::vector<bool> mapped;
    const auto add = [&](const auto& argument, bool many) {
      for_each_rep(argument, [&](const auto& r) {
        data.push_back(r.datum());
        mapped.push_back(many);
      });
    };
    (add(given, maps<I>), ...);
    const std::tuple<P...> example(structured_like<P>(given)...);
    Structure<Value> value;
    std::vector<ir::Type> results;
    if constexpr (countable<Value>())
      if (!types_of<Value>(results)) results.clear();
    const Datums out = ad::vmap(program_of(this->f_, example, value), data, mapped, results, this->loc_);
    return rebuild(structured_like<Result>(*value), out);
  }
};

}  // namespace detail

/// f for every example of a batch: a function of arrays where f is one of scalars, and of tensors with one
/// more dimension, the first, where f is one of arrays or tensors. vmap(f) maps over every argument; vmap<0,
/// 2>(f) over those positions, and passes the others whole to every example. Products are mapped component by
/// component, results as arguments are. Row i of each result is what f gives for the rows i of its arguments.
///
///   vmap<1>(grad<0>(loss))(weights, examples)     one gradient for every example
///
/// vmap nests in itself and in every derivative; f may contain any control flow. It becomes a loop over the
/// examples, which runs in the lanes of vectors where f allows it. Where f gives arrays, the sizes of the
/// first example's results are those of all.
///
/// Errors: arguments of different numbers of examples; results of different sizes; no example, eagerly, where
/// f gives tensors of unknown rank.
template <auto... O, class F>
  requires detail::Takes<F, detail::TemplateArguments::positions_of_any_arguments, O...>
auto vmap(F f, std::source_location l = std::source_location::current()) {
  using Params = typename detail::FunctionTraits<F>::Params;
  return detail::Vectorised<detail::GradOptions<O...>, F, Params,
                            std::make_index_sequence<std::tuple_size_v<Params>>>(std::move(f), "vmap_", here(l));
}
LANTERN_TAKES_OPTIONS(vmap, positions_of_any_arguments)

}  // namespace lantern::core
