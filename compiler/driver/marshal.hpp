// Arguments and results of generated code's entry points (runtime/workspace.h): descriptors over host values.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include "lantern/compiler/driver/host_types.hpp"
#include "lantern/runtime/workspace.h"

namespace lantern::core::detail {

/// Raises: a view's shape does not fit the parameter's type.
[[noreturn]] void fail_shape(const std::vector<std::int64_t>& shape, const ir::Type& declared,
                             std::size_t argument);
/// Raises: sizes that are negative, or that no memory holds. Generated code relies on there being none.
[[noreturn]] void fail_sizes(const std::vector<std::int64_t>& shape, std::size_t argument);

/// Whether a view of such a shape is a tensor of the declared type.
template <class T>
struct Declared;
template <class E, std::int64_t... D>
struct Declared<Tensor<E, D...>> {
  static bool fits(const std::vector<std::int64_t>& shape) {
    std::size_t i = 0;
    return shape.size() == sizeof...(D) && ((i += 1, D == dyn || D == shape[i - 1]) && ...);
  }
};

/// Memory that a call asks for where its frame does not do. What asks for it is compiled once, and not in each program.
class CallMemory {
 public:
  CallMemory() = default;
  CallMemory(const CallMemory&) = delete;
  CallMemory& operator=(const CallMemory&) = delete;
  ~CallMemory() {
    if (last_ != nullptr) release();
  }
  /// So many bytes, for any type, for as long as this lives.
  std::byte* take(std::size_t bytes);

 private:
  struct Block;
  void release() noexcept;
  Block* last_ = nullptr;
};

/// Memory for descriptors, which stay where they are. So many words lie in the caller's frame: a call of a
/// small function takes as long as asking for memory once.
template <std::size_t Here>
class Words {
 public:
  std::int64_t* take(std::size_t n) {
    if (n <= Here - used_) return here_.data() + std::exchange(used_, used_ + n);
    return reinterpret_cast<std::int64_t*>(more_.take(n * sizeof(std::int64_t)));
  }

 private:
  std::array<std::int64_t, Here> here_;  // not set before it is taken
  std::size_t used_ = 0;
  CallMemory more_;
};

/// Storage for the descriptors of one call, of up to Count arguments and targets.
template <std::size_t Count>
class Arguments {
 public:
  template <class T, class H>
  void add(std::type_identity<T>, const H& host) {
    if constexpr (ScalarElement<T>) {
      in_[count_++] = &host;
    } else if constexpr (Traits<T>::tensor) {
      using E = typename Traits<T>::element;
      if constexpr (std::same_as<T, Array<E>>) {
        put({word(host.data()), static_cast<std::int64_t>(host.size())}, {});
        keep(std::span<const E>(host));
      } else {
        if constexpr (!std::same_as<T, Tensor<E>>)
          if (!Declared<T>::fits(host.shape())) fail_shape(host.shape(), TypeOf<T>::get(), count_);
        if (!addressable(host.shape())) fail_sizes(host.shape(), count_);
        const E* data = host.data();
        if (!host.contiguous()) {
          E* to = reinterpret_cast<E*>(copies_.take(static_cast<std::size_t>(host.size()) * sizeof(E)));
          for (std::int64_t i = 0; i < host.size(); ++i) to[i] = host.at_flat(i);
          data = to;
        }
        put({word(data)}, host.shape());
        keep(std::span(data, static_cast<std::size_t>(host.size())));
      }
    } else {
      const TreeColumns& c = *host.columns();
      std::int64_t* to = words_.take(c.values.size() + 3);
      in_[count_++] = to;
      *to++ = word(c.left.data());
      *to++ = word(c.right.data());
      for (const auto& column : c.values) *to++ = word(column.data());
      *to = host.root();
    }
  }
  const void* const* data() const { return in_.data(); }

  /// A result's place in the caller's memory, for code to compute it there; none where that is not all its
  /// own. To be asked for all results before the call.
  template <class T, class Out>
  lt_target target(std::type_identity<T>, Out& out) {
    if constexpr (ScalarElement<T>) {
      return {nullptr, -1};
    } else {
      static_assert(std::same_as<std::remove_reference_t<decltype(*out.data())>, typename Traits<T>::element>,
                    "into: the target of an array or tensor has elements of the result's type");
      if constexpr (requires { out.contiguous(); })
        if (!out.contiguous()) return {nullptr, -1};
      const auto bytes = std::as_bytes(std::span(out.data(), static_cast<std::size_t>(out.size())));
      bool shared = false;
      for (const auto& m : kept())
        shared |= bytes.data() < m.data() + m.size() && m.data() < bytes.data() + bytes.size();
      keep(bytes);
      return {shared ? nullptr : out.data(), shared ? -1 : static_cast<std::int64_t>(bytes.size())};
    }
  }

  /// The elements of a result where nothing that is written to an argument or a target changes them: where
  /// they are, or, if that is such memory other than the result's own `place`, in a copy.
  template <class E>
  std::span<const E> apart(std::span<const E> result, const void* place) {
    if (result.data() == place) return result;
    const auto bytes = std::as_bytes(result);
    bool inside = false;
    for (const auto& m : kept()) inside |= bytes.data() >= m.data() && bytes.data() < m.data() + m.size();
    if (!inside) return result;
    std::byte* const copy = copies_.take(bytes.size());
    std::ranges::copy(bytes, copy);
    return {reinterpret_cast<const E*>(copy), result.size()};
  }

 private:
  static std::int64_t word(const void* p) { return reinterpret_cast<std::int64_t>(p); }
  void put(std::initializer_list<std::int64_t> first, std::span<const std::int64_t> rest) {
    std::int64_t* to = words_.take(first.size() + rest.size());
    in_[count_++] = to;
    for (const std::int64_t word : first) *to++ = word;
    for (const std::int64_t word : rest) *to++ = word;
  }
  std::span<const std::span<const std::byte>> kept() const { return {memory_.data(), kept_}; }
  template <class E>
  void keep(std::span<E> memory) {
    memory_[kept_++] = std::as_bytes(memory);
  }

  std::array<const void*, Count> in_;
  std::array<std::span<const std::byte>, Count> memory_;  ///< of arrays and tensors, then of targets
  unsigned count_ = 0, kept_ = 0;
  Words<4 * Count> words_;
  CallMemory copies_;
};

/// Storage for the Count results of one call, and their way to host values.
///
/// Results are taken by number, as host values or as the elements where they lie.
template <std::size_t Count>
class Results {
 public:
  /// Room for one result of each type, in order.
  explicit Results(const std::vector<ir::Type>& types) : types_(types) {
    for (std::size_t i = 0; i < Count; ++i)
      out_[i] = words_.take(types[i].is_tensor() ? static_cast<std::size_t>(types[i].rank()) + 1 : 1);
  }
  void* const* data() const { return out_.data(); }

  /// The elements of result i: in the workspace, until the next call, or in an argument's memory.
  template <class T>
  std::span<const typename Traits<T>::element> elements(std::size_t i, std::type_identity<T>) const {
    static_assert(ScalarElement<T> || Traits<T>::tensor, "a compiled function cannot return a tree");
    using E = typename Traits<T>::element;
    const std::int64_t* w = words_of(i);
    if constexpr (ScalarElement<T>) {
      return {reinterpret_cast<const E*>(w), 1};
    } else {
      std::int64_t n = 1;
      for (int d = 0; d < types_[i].rank(); ++d) n *= w[1 + d];
      return {reinterpret_cast<const E*>(w[0]), static_cast<std::size_t>(n)};
    }
  }

  template <class T, class H>
  void take(std::size_t i, std::type_identity<T> type, H& host) const {
    const auto from = elements(i, type);
    if constexpr (ScalarElement<T>) {
      host = from[0];
    } else if constexpr (std::same_as<T, Array<typename Traits<T>::element>>) {
      host.assign(from.begin(), from.end());
    } else {
      host.data.assign(from.begin(), from.end());
      host.shape.assign(words_of(i) + 1, words_of(i) + 1 + types_[i].rank());
    }
  }

 private:
  const std::int64_t* words_of(std::size_t i) const { return static_cast<const std::int64_t*>(out_[i]); }

  const std::vector<ir::Type>& types_;
  std::array<void*, Count> out_;
  Words<4 * Count> words_;
};

}  // namespace lantern::core::detail
