// Operations between the ranks of a communicator, over Reps.
#pragma once

#include <source_location>
#include <tuple>

#include "lantern/compiler/distributed/communicator.hpp"
#include "lantern/compiler/staging/product.hpp"

namespace lantern::distributed {

namespace detail {

/// A dimension of all ranks before those of T.
template <class T>
struct Gathered {
  using type = core::Array<T>;
};
template <class E>
struct Gathered<core::Array<E>> {
  using type = core::Tensor<E, core::dyn, core::dyn>;
};
template <class E, std::int64_t... n>
struct Gathered<core::Tensor<E, n...>> {
  using type = std::conditional_t<sizeof...(n) == 0, core::Tensor<E>, core::Tensor<E, core::dyn, n...>>;
};
/// T with a first dimension whose size is known when the program runs.
template <class T>
struct Ragged {
  using type = T;
};
template <class E, std::int64_t first, std::int64_t... n>
struct Ragged<core::Tensor<E, first, n...>> {
  using type = core::Tensor<E, core::dyn, n...>;
};
/// T without its first dimension.
template <class T>
struct Parted;
template <class E>
struct Parted<core::Array<E>> {
  using type = E;
};
template <class E>
struct Parted<core::Tensor<E>> {
  using type = core::Tensor<E>;
};
template <class E, std::int64_t first>
struct Parted<core::Tensor<E, first>> {
  using type = E;
};
template <class E, std::int64_t first, std::int64_t... n>
struct Parted<core::Tensor<E, first, n...>> {
  using type = std::conditional_t<sizeof...(n) == 1, core::Array<E>, core::Tensor<E, n...>>;
};

template <class T>
concept FloatRows = core::detail::TensorLike<T> && core::FloatElement<core::detail::element_t<T>>;

template <class P>
concept Product = !core::detail::RepType<P> &&
                  (core::detail::TupleType<P> || core::detail::SequenceType<P> || core::detail::StructType<P>);
template <class P, class F>
P on_product(const Call& call, const P& p, const F& body) {
  return core::detail::rebuild(p, in_one_message(call, core::detail::flatten(p), body));
}

}  // namespace detail

/// The reduction of the values of all ranks, on all ranks. x: a number, array or tensor of the same shape on all.
///
/// Derivatives. Sum: of cotangents that are partial the sum, and `Cotangent::replicated` is for sums alone: see
/// docs/distributed.md. Product: zeros are as good as other numbers. Min and max: the first rank that holds the
/// extremum has the derivative, element by element.
template <class T>
Rep<T> all_reduce(const Rep<T>& x, Reduction reduction = Reduction::sum, const Communicator& comm = {},
                  std::source_location l = std::source_location::current()) {
  return Rep<T>(detail::all_reduce(comm.call(l), reduction, x.datum()));
}
/// The sum over all ranks of what is used as one value, a loss for instance: its cotangent is that of the one value,
/// and reaches each rank's x as it is. The partner of `replicate`.
template <class T>
Rep<T> total(const Rep<T>& x, const Communicator& comm = {},
             std::source_location l = std::source_location::current()) {
  return Rep<T>(detail::total(comm.call(l), x.datum()));
}
/// x, which is the same on all ranks, parameters for instance, for use with what belongs to this rank. Its cotangent
/// is the sum over all ranks: again the same on all. The partner of `total`. Error: none; that x is the same is not checked.
template <class T>
Rep<T> replicate(const Rep<T>& x, const Communicator& comm = {},
                 std::source_location l = std::source_location::current()) {
  return Rep<T>(detail::share(comm.call(l), x.datum()));
}
/// The same for structs, tuples and vectors of Reps: all of one element type go in one message.
template <detail::Product P>
P all_reduce(const P& x, Reduction reduction = Reduction::sum, const Communicator& comm = {},
             std::source_location l = std::source_location::current()) {
  const detail::Call call = comm.call(l);
  return detail::on_product(call, x, [&](const core::Datum& d) { return detail::all_reduce(call, reduction, d); });
}
template <detail::Product P>
P total(const P& x, const Communicator& comm = {}, std::source_location l = std::source_location::current()) {
  const detail::Call call = comm.call(l);
  return detail::on_product(call, x, [&](const core::Datum& d) { return detail::total(call, d); });
}
template <detail::Product P>
P replicate(const P& x, const Communicator& comm = {}, std::source_location l = std::source_location::current()) {
  const detail::Call call = comm.call(l);
  return detail::on_product(call, x, [&](const core::Datum& d) { return detail::share(call, d); });
}

/// The reduction on the root; zeros on the other ranks. Derivative of the sum: the root's cotangent on all ranks.
template <class T>
Rep<T> reduce(const Rep<T>& x, const Rep<std::int64_t>& root, Reduction reduction = Reduction::sum,
              const Communicator& comm = {}, std::source_location l = std::source_location::current()) {
  return Rep<T>(detail::reduce(comm.call(l), reduction, x.datum(), root.datum()));
}
/// The root's x on all ranks; of the others' only the shape counts. Derivative: the root has the sum of all cotangents.
template <class T>
Rep<T> broadcast(const Rep<T>& x, const Rep<std::int64_t>& root, const Communicator& comm = {},
                 std::source_location l = std::source_location::current()) {
  return Rep<T>(detail::broadcast(comm.call(l), x.datum(), root.datum()));
}
template <detail::Product P>
P broadcast(const P& x, const Rep<std::int64_t>& root, const Communicator& comm = {},
            std::source_location l = std::source_location::current()) {
  const detail::Call call = comm.call(l);
  return detail::on_product(call, x, [&](const core::Datum& d) { return detail::broadcast(call, d, root.datum()); });
}

/// What all ranks have, along a new first dimension, on the root; zeros on the other ranks. Derivative: `scatter`.
template <class T>
Rep<typename detail::Gathered<T>::type> gather(const Rep<T>& x, const Rep<std::int64_t>& root,
                                               const Communicator& comm = {},
                                               std::source_location l = std::source_location::current()) {
  return Rep<typename detail::Gathered<T>::type>(detail::gather(comm.call(l), x.datum(), root.datum()));
}
/// The same on all ranks. Derivative: `reduce_scatter`.
template <class T>
Rep<typename detail::Gathered<T>::type> all_gather(const Rep<T>& x, const Communicator& comm = {},
                                                   std::source_location l = std::source_location::current()) {
  return Rep<typename detail::Gathered<T>::type>(detail::all_gather(comm.call(l), x.datum()));
}
/// Rank i has part i of the root's x along the first dimension, which has a part for each rank; of the others' x only
/// the shape counts. Derivative: `gather`.
template <core::detail::TensorLike T>
Rep<typename detail::Parted<T>::type> scatter(const Rep<T>& x, const Rep<std::int64_t>& root,
                                              const Communicator& comm = {},
                                              std::source_location l = std::source_location::current()) {
  return Rep<typename detail::Parted<T>::type>(detail::scatter(comm.call(l), x.datum(), root.datum()));
}
/// Rank i has part i, along the first dimension, of the reduction of all x. Derivative of the sum: `all_gather`.
template <core::detail::TensorLike T>
Rep<typename detail::Parted<T>::type> reduce_scatter(const Rep<T>& x, Reduction reduction = Reduction::sum,
                                                     const Communicator& comm = {},
                                                     std::source_location l = std::source_location::current()) {
  return Rep<typename detail::Parted<T>::type>(detail::reduce_scatter(comm.call(l), reduction, x.datum()));
}
/// Part i of x goes to rank i; part i of the result comes from rank i. Its own derivative.
template <core::detail::TensorLike T>
Rep<T> all_to_all(const Rep<T>& x, const Communicator& comm = {},
                  std::source_location l = std::source_location::current()) {
  return Rep<T>(detail::all_to_all(comm.call(l), x.datum()));
}

/// Rows of x, along its first dimension, go to other ranks: first counts[0] of them to rank 0, then counts[1] to rank 1,
/// and so on. The rows that come, in the order of ranks, and how many come from each. Counts may differ between ranks and
/// be 0; the other dimensions agree. Errors: not one count for each rank, one below 0, a sum that is not the rows of x.
/// Derivative: cotangents of rows go back to where the rows came from.
template <core::detail::TensorLike T>
std::tuple<Rep<typename detail::Ragged<T>::type>, Rep<core::Array<std::int64_t>>> all_to_all(
    const Rep<T>& x, const Rep<core::Array<std::int64_t>>& counts, const Communicator& comm = {},
    std::source_location l = std::source_location::current()) {
  const auto [rows, from] = detail::ragged_all_to_all(comm.call(l), x.datum(), counts.datum());
  return {Rep<typename detail::Ragged<T>::type>(rows), Rep<core::Array<std::int64_t>>(from)};
}

/// The sum over the first dimension of `terms` and over all ranks, on all ranks, computed exactly and rounded once: the
/// same bits for the same terms on any number of ranks, in whatever order and on whichever rank they are. Ranks may have
/// different numbers of terms, also none. Its cotangent is partial, as that of `all_reduce`; each term gets the sum of all.
/// A message has 8 bytes for each 32 bits between the largest and the smallest term.
template <detail::FloatRows T>
Rep<typename detail::Parted<T>::type> deterministic_sum(const Rep<T>& terms, const Communicator& comm = {},
                                                        std::source_location l = std::source_location::current()) {
  return Rep<typename detail::Parted<T>::type>(
      detail::deterministic_sum(comm.call(l), Cotangent::partial, terms.datum()));
}
/// The same used as one value, a loss for instance: each term gets the cotangent of the one value, as with `total`.
template <detail::FloatRows T>
Rep<typename detail::Parted<T>::type> deterministic_total(const Rep<T>& terms, const Communicator& comm = {},
                                                          std::source_location l = std::source_location::current()) {
  return Rep<typename detail::Parted<T>::type>(
      detail::deterministic_sum(comm.call(l), Cotangent::replicated, terms.datum()));
}
/// x, which all ranks have, once for each of the `rows` terms of this rank, along a new first dimension. Its cotangent is
/// the deterministic sum over all terms of all ranks: with `deterministic_total` the bits of a gradient do not depend on
/// the number of ranks either.
template <class T>
Rep<typename detail::Gathered<T>::type> deterministic_replicate(
    const Rep<T>& x, const Rep<std::int64_t>& rows, const Communicator& comm = {},
    std::source_location l = std::source_location::current()) {
  return Rep<typename detail::Gathered<T>::type>(detail::deterministic_replicate(comm.call(l), rows.datum(), x.datum()));
}

/// Whether a scan counts the rank itself.
enum class Scan : std::uint8_t { inclusive, exclusive };
/// The reduction over the ranks up to this one, or before it; of no ranks the reduction's identity: 0, 1, infinity.
/// Derivative of the sum: the scan from the other side.
template <class T>
Rep<T> scan(const Rep<T>& x, Reduction reduction = Reduction::sum, Scan which = Scan::inclusive,
            const Communicator& comm = {}, std::source_location l = std::source_location::current()) {
  return Rep<T>(detail::scan(comm.call(l), reduction, which == Scan::exclusive, x.datum()));
}

/// x goes to rank `to`, the result comes from rank `from`; -1 is none: nothing is sent, or the result is zeros. Shapes
/// agree. Derivative: cotangents go the other way.
template <class T>
Rep<T> send_receive(const Rep<T>& x, const Rep<std::int64_t>& to, const Rep<std::int64_t>& from,
                    const Communicator& comm = {}, std::source_location l = std::source_location::current()) {
  return Rep<T>(detail::send_receive(comm.call(l), x.datum(), to.datum(), from.datum()));
}
/// x goes to rank `to`, which receives it. In a derivative both sides take part in the way back: `send` where x is
/// differentiated, `receive` where `like` is.
template <class T>
void send(const Rep<T>& x, const Rep<std::int64_t>& to, const Communicator& comm = {},
          std::source_location l = std::source_location::current()) {
  detail::send_receive(comm.call(l), x.datum(), to.datum(), core::Datum::integer(-1, ir::I64));
}
/// What rank `from` sends, which is of the shape of `like`. Where the sender's value is differentiated, `like` has to
/// depend on what is differentiated here, in derivatives of any order on the same arguments.
template <class T>
Rep<T> receive(const Rep<T>& like, const Rep<std::int64_t>& from, const Communicator& comm = {},
               std::source_location l = std::source_location::current()) {
  return Rep<T>(
      detail::send_receive(comm.call(l), like.datum(), core::Datum::integer(-1, ir::I64), from.datum()));
}

/// u, this rank's part of a field, with `width` elements of its neighbours at both ends of each dimension of the grid,
/// corners included: each of these dimensions grows by 2 width. Beyond the end of a dimension that is not periodic are
/// zeros. Dimension d of the grid is dimension d of u; u may have more. Error: a width of more than the part has.
/// Derivative: the cotangent of what was sent comes back and is added.
template <core::detail::TensorLike T>
Rep<core::Tensor<core::detail::element_t<T>>> halo_exchange(const Rep<T>& u, const Rep<std::int64_t>& width,
                                                            const Grid& grid,
                                                            std::source_location l = std::source_location::current()) {
  const detail::Call call = grid.communicator().call(l);
  core::Datum out = u.datum();
  if (out.type().rank() < grid.dimensions())
    core::raise_at(call.loc, "distributed::halo_exchange: expected a tensor with the " +
                                 std::to_string(grid.dimensions()) + " dimensions of the grid, got " + out.type().str());
  for (int d = 0; d < grid.dimensions(); ++d)
    out = detail::with_halo(call, out, d, width.datum(), grid.neighbour(d, -1).datum(), grid.neighbour(d, 1).datum());
  return Rep<core::Tensor<core::detail::element_t<T>>>(out);
}

}  // namespace lantern::distributed
