// Communicators: groups of the processes that run a program, and grids of them.
#pragma once

#include <initializer_list>
#include <source_location>
#include <vector>

#include "lantern/compiler/distributed/exchange.hpp"
#include "lantern/compiler/staging/control_flow.hpp"

namespace lantern::distributed {

using core::Rep;

/// Some of the processes that run this program, its ranks, numbered from 0. The default is the world: all of them. A
/// communicator is used in the program, or the evaluation, in which it is made; the world is used everywhere.
class Communicator {
 public:
  Communicator() : kernels_(&detail::kernels()), comm_(Datum::integer(0, ir::I64)) {}

  /// The number of this process among them.
  Rep<std::int64_t> rank(std::source_location l = std::source_location::current()) const {
    return Rep<std::int64_t>(detail::rank(call(l)));
  }
  /// How many there are.
  Rep<std::int64_t> size(std::source_location l = std::source_location::current()) const {
    return Rep<std::int64_t>(detail::size(call(l)));
  }
  /// Those that give the same colour, in the order of their keys, then of their ranks. All ranks call it.
  Communicator split(const Rep<std::int64_t>& colour, const Rep<std::int64_t>& key,
                     std::source_location l = std::source_location::current()) const {
    return {kernels_, detail::split(call(l), colour.datum(), key.datum())};
  }
  Communicator split(const Rep<std::int64_t>& colour, std::source_location l = std::source_location::current()) const {
    return split(colour, Rep<std::int64_t>(std::int64_t{0}), l);
  }
  /// Done when all ranks have come here.
  void barrier(std::source_location l = std::source_location::current()) const { detail::barrier(call(l)); }

  detail::Call call(const std::source_location& l) const { return {kernels_, comm_, core::here(l)}; }

 private:
  using Datum = core::Datum;
  Communicator(const detail::Kernels* kernels, Datum comm) : kernels_(kernels), comm_(std::move(comm)) {}

  const detail::Kernels* kernels_;
  Datum comm_;
};

inline Communicator world() { return {}; }

/// For code outside of programs, `main` for instance: the number of this process in the world, and how many there are.
inline std::int64_t world_rank() { return distributed_rank("", 0); }
inline std::int64_t world_size() { return distributed_size("", 0); }

/// One dimension of a grid of processes.
struct GridDimension {
  std::int64_t size = 0;  ///< how many processes; 0: chosen
  bool periodic = false;  ///< whether the last and the first are neighbours
};

/// The ranks of a communicator as a grid, row by row: the last dimension counts fastest. Sizes that are 0 are chosen,
/// as near to each other as can be. Error where there are more or fewer ranks than places.
class Grid {
 public:
  explicit Grid(const std::vector<GridDimension>& dimensions, Communicator comm = {},
                std::source_location l = std::source_location::current())
      : comm_(std::move(comm)) {
    core::Datums sizes;
    for (const GridDimension& d : dimensions) {
      sizes.push_back(core::Datum::integer(d.size, ir::I64));
      periodic_.push_back(d.periodic);
    }
    for (const core::Datum& n : detail::dims(comm_.call(l), sizes)) sizes_.emplace_back(n);
    Rep<std::int64_t> rest = comm_.rank(l);
    coordinates_.resize(sizes_.size());
    for (std::size_t d = sizes_.size(); d-- > 0;) {
      coordinates_[d] = rest % sizes_[d];
      rest = rest / sizes_[d];
    }
  }

  const Communicator& communicator() const { return comm_; }
  int dimensions() const { return static_cast<int>(sizes_.size()); }
  /// How many processes there are along a dimension, and which of them this one is.
  Rep<std::int64_t> size(int dimension) const { return sizes_.at(static_cast<std::size_t>(dimension)); }
  Rep<std::int64_t> coordinate(int dimension) const { return coordinates_.at(static_cast<std::size_t>(dimension)); }
  /// The rank of the process that is `steps` further along a dimension; -1 where there is none.
  Rep<std::int64_t> neighbour(int dimension, std::int64_t steps) const {
    const Rep<std::int64_t> n = size(dimension), here = coordinate(dimension), there = here + steps;
    const Rep<std::int64_t> inside = ((there % n) + n) % n;
    Rep<std::int64_t> stride = std::int64_t{1};
    for (int d = dimension + 1; d < dimensions(); ++d) stride = stride * size(d);
    const Rep<std::int64_t> rank = comm_.rank() + (inside - here) * stride;
    if (periodic_.at(static_cast<std::size_t>(dimension))) return rank;
    return select(there == inside, rank, Rep<std::int64_t>(std::int64_t{-1}));
  }

 private:
  Communicator comm_;
  std::vector<bool> periodic_;
  std::vector<Rep<std::int64_t>> sizes_, coordinates_;
};

}  // namespace lantern::distributed
