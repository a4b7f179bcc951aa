// Tables keyed by pointers to parts of the graph, for passes over huge modules: one array, no allocation for
// an entry.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace lantern::ir {

/// From pointers (never null) to values, by open addressing. Entries are added, never removed; adding one may
/// move the others. There is no order.
template <class K, class V>
class PointerMap {
 public:
  struct Entry {
    K* key = nullptr;
    V value{};
  };

  /// The value of a key, or null.
  V* find(K* key) { return const_cast<V*>(std::as_const(*this).find(key)); }
  const V* find(K* key) const {
    if (entries_.empty()) return nullptr;
    const Entry& e = entries_[slot(key)];
    return e.key ? &e.value : nullptr;
  }
  bool contains(K* key) const { return find(key) != nullptr; }

  /// The value of a key, which is added if it is not there.
  V& operator[](K* key) { return *add(key).first; }
  /// The same, and whether it was added.
  std::pair<V*, bool> add(K* key) {
    if (2 * (size_ + 1) > entries_.size()) reserve(2 * size_ + 8);
    Entry& e = entries_[slot(key)];
    const bool added = !e.key;
    if (added) {
      e.key = key;
      ++size_;
    }
    return {&e.value, added};
  }

  /// Makes room for so many entries.
  void reserve(std::size_t size) {
    const std::size_t slots = std::bit_ceil(2 * size + 2);
    if (slots <= entries_.size()) return;
    std::vector<Entry> old(slots);
    old.swap(entries_);
    for (Entry& e : old)
      if (e.key) entries_[slot(e.key)] = std::move(e);
  }
  void clear() {
    entries_.clear();
    size_ = 0;
  }
  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }

 private:
  /// Where the key is, or would be.
  std::size_t slot(K* key) const {
    const std::size_t mask = entries_.size() - 1;
    // Neighbours in memory are neighbours here: what is visited in order is found in the cache.
    const auto address = static_cast<std::size_t>(reinterpret_cast<std::uintptr_t>(key));
    std::size_t i = ((address >> 4) ^ (address >> 23) * 0x9e3779b1U) & mask;
    while (entries_[i].key && entries_[i].key != key) i = (i + 1) & mask;
    return i;
  }

  std::vector<Entry> entries_;
  std::size_t size_ = 0;
};

/// A set of such pointers.
template <class K>
class PointerSet {
 public:
  bool contains(K* key) const { return map_.contains(key); }
  /// Whether it was not there before.
  bool insert(K* key) { return map_.add(key).second; }
  void reserve(std::size_t size) { map_.reserve(size); }
  void clear() { map_.clear(); }
  std::size_t size() const { return map_.size(); }

 private:
  struct Nothing {};
  PointerMap<K, Nothing> map_;
};

}  // namespace lantern::ir
