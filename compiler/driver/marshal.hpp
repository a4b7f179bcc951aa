// Arguments and results of generated code's entry points (runtime/workspace.h): descriptors over host values.
#pragma once

#include <algorithm>
#include <cstddef>
#include <deque>
#include <span>
#include <vector>

#include "lantern/compiler/driver/host_types.hpp"
#include "lantern/runtime/workspace.h"

namespace lantern::detail {

/// Raises where a view's shape does not fit the parameter's type, naming both.
void check_shape(const std::vector<std::int64_t>& shape, const ir::Type& declared, std::size_t argument);

/// Storage for the descriptors of one call.
class Arguments {
 public:
  template <class T, class H>
  void add(std::type_identity<T>, const H& host) {
    if constexpr (Scalar<T>) {
      in_.push_back(&host);
    } else if constexpr (Traits<T>::tensor) {
      using E = typename Traits<T>::element;
      auto& d = words_.emplace_back();
      if constexpr (std::same_as<T, Array<E>>) {
        d = {word(host.data()), static_cast<std::int64_t>(host.size())};
        memory_.push_back(std::as_bytes(std::span<const E>(host)));
      } else {
        if constexpr (!std::same_as<T, Tensor<E>>) check_shape(host.shape(), TypeOf<T>::get(), in_.size());
        const E* data = host.data();
        if (!host.contiguous()) {
          auto& copy = copies_.emplace_back(static_cast<std::size_t>(host.size()) * sizeof(E));
          E* to = reinterpret_cast<E*>(copy.data());
          for (std::int64_t i = 0; i < host.size(); ++i) to[i] = host.at_flat(i);
          data = to;
        }
        memory_.push_back(std::as_bytes(std::span(data, static_cast<std::size_t>(host.size()))));
        d.push_back(word(data));
        d.insert(d.end(), host.shape().begin(), host.shape().end());
      }
      in_.push_back(d.data());
    } else {
      auto& d = words_.emplace_back();
      const TreeColumns& c = *host.columns();
      d = {word(c.left.data()), word(c.right.data())};
      for (const auto& column : c.values) d.push_back(word(column.data()));
      d.push_back(host.root());
      in_.push_back(d.data());
    }
  }
  const void* const* data() const { return in_.data(); }

  /// A result's place in the caller's memory, for code to compute it there; none where that is not all its
  /// own. To be asked for all results before the call.
  template <class T, class Out>
  lt_target target(std::type_identity<T>, Out& out) {
    if constexpr (Scalar<T>) {
      return {nullptr, -1};
    } else {
      static_assert(std::same_as<std::remove_reference_t<decltype(*out.data())>, typename Traits<T>::element>,
                    "into: the target of an array or tensor has elements of the result's type");
      if constexpr (requires { out.contiguous(); })
        if (!out.contiguous()) return {nullptr, -1};
      const auto bytes = std::as_bytes(std::span(out.data(), static_cast<std::size_t>(out.size())));
      const bool shared = std::any_of(memory_.begin(), memory_.end(), [&](const auto& m) {
        return bytes.data() < m.data() + m.size() && m.data() < bytes.data() + bytes.size();
      });
      memory_.push_back(bytes);
      return {shared ? nullptr : out.data(), shared ? -1 : static_cast<std::int64_t>(bytes.size())};
    }
  }

  /// The elements of a result where nothing that is written to an argument or a target changes them: where
  /// they are, or, if that is such memory other than the result's own `place`, in a copy.
  template <class E>
  std::span<const E> apart(std::span<const E> result, const void* place) {
    if (result.data() == place) return result;
    const auto bytes = std::as_bytes(result);
    const auto inside = [&](const auto& m) {
      return bytes.data() >= m.data() && bytes.data() < m.data() + m.size();
    };
    if (std::none_of(memory_.begin(), memory_.end(), inside)) return result;
    const auto& copy = copies_.emplace_back(bytes.begin(), bytes.end());
    return {reinterpret_cast<const E*>(copy.data()), result.size()};
  }

 private:
  static std::int64_t word(const void* p) { return reinterpret_cast<std::int64_t>(p); }
  std::vector<const void*> in_;
  std::deque<std::vector<std::int64_t>> words_;
  std::deque<std::vector<std::byte>> copies_;
  std::vector<std::span<const std::byte>> memory_;  ///< of arrays and tensors, then of targets
};

/// Storage for the results of one call, and their way to host values.
///
/// Results are taken one by one, in order, as host values or as the elements where they lie.
class Results {
 public:
  /// Room for one result of each type, in order.
  explicit Results(const std::vector<ir::Type>& types) {
    for (const ir::Type& t : types) {
      words_.emplace_back(t.is_tensor() ? static_cast<std::size_t>(t.rank()) + 1 : 1);
      ranks_.push_back(t.rank());
    }
    for (auto& w : words_) out_.push_back(w.data());
  }
  void* const* data() const { return out_.data(); }

  /// The elements of the next result: in the workspace, until the next call, or in an argument's memory.
  template <class T>
  std::span<const typename Traits<T>::element> elements(std::type_identity<T>) {
    static_assert(Scalar<T> || Traits<T>::tensor, "a compiled function cannot return a tree");
    using E = typename Traits<T>::element;
    const std::int64_t* w = words_[at_].data();
    const auto rank = static_cast<std::size_t>(ranks_[at_++]);
    if constexpr (Scalar<T>) {
      return {reinterpret_cast<const E*>(w), 1};
    } else {
      std::int64_t n = 1;
      for (std::size_t i = 0; i < rank; ++i) n *= w[1 + i];
      return {reinterpret_cast<const E*>(w[0]), static_cast<std::size_t>(n)};
    }
  }

  template <class T, class H>
  void take(std::type_identity<T> type, H& host) {
    const std::int64_t* shape = words_[at_].data() + 1;
    const int rank = ranks_[at_];
    const auto from = elements(type);
    if constexpr (Scalar<T>) {
      host = from[0];
    } else if constexpr (std::same_as<T, Array<typename Traits<T>::element>>) {
      host.assign(from.begin(), from.end());
    } else {
      host.data.assign(from.begin(), from.end());
      host.shape.assign(shape, shape + rank);
    }
  }

 private:
  std::vector<std::vector<std::int64_t>> words_;
  std::vector<int> ranks_;
  std::vector<void*> out_;
  std::size_t at_ = 0;
};

}  // namespace lantern::detail
