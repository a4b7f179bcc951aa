// Batches of trees in a new order every epoch, made ahead by a thread.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <future>
#include <numeric>
#include <random>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "lantern/ir/error.hpp"

namespace lantern {

/// Indices of trees in batches of `size`, shuffled anew for every epoch; the last batch of an epoch may be smaller. While the
/// program works on a batch, a thread makes what `make` makes of the next one, such as a TreeBatch:
///
///   TreeLoader loader(trees.size(), 25, 1, [&](std::span<const std::size_t> which) { return a batch of these trees; });
///   for (std::size_t i = 0; i < loader.batches(); ++i) { const auto batch = loader.next(); ... }  // an epoch
///
/// `make` runs in one other thread, a call at a time, in the order of the batches. An exception of it leaves `next`.
/// Error: size 0.
template <class Make>
class TreeLoader {
 public:
  using Batch = std::invoke_result_t<Make&, std::span<const std::size_t>>;

  TreeLoader(std::size_t count, std::size_t size, std::uint64_t seed, Make make)
      : order_(count), size_(size), random_(seed), make_(std::move(make)) {
    if (size == 0) throw Error("TreeLoader: expected batches of one tree or more, got 0");
    std::iota(order_.begin(), order_.end(), std::size_t{0});
    begin_next();
  }
  TreeLoader(const TreeLoader&) = delete;
  TreeLoader& operator=(const TreeLoader&) = delete;
  ~TreeLoader() {
    if (next_.valid()) next_.wait();
  }

  /// Of an epoch.
  std::size_t batches() const { return (order_.size() + size_ - 1) / size_; }

  /// Error where there are no trees.
  Batch next() {
    if (order_.empty()) throw Error("TreeLoader: expected a tree or more, got none");
    std::future<Batch> made = std::move(next_);
    made.wait();
    begin_next();
    return made.get();
  }

 private:
  void begin_next() {
    if (order_.empty()) return;
    if (at_ == 0) std::shuffle(order_.begin(), order_.end(), random_);
    const std::size_t count = std::min(size_, order_.size() - at_);
    std::vector<std::size_t> which(order_.begin() + static_cast<std::ptrdiff_t>(at_),
                                   order_.begin() + static_cast<std::ptrdiff_t>(at_ + count));
    at_ = at_ + count == order_.size() ? 0 : at_ + count;
    next_ = std::async(std::launch::async,
                       [this, which = std::move(which)] { return make_(std::span<const std::size_t>(which)); });
  }

  std::vector<std::size_t> order_;
  std::size_t size_, at_ = 0;
  std::mt19937_64 random_;
  Make make_;
  std::future<Batch> next_;
};

}  // namespace lantern
