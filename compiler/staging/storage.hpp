// The storage of a Rep: a variable whose assignment the program being staged sees.
//
// While a program is staged, each piece of it that runs under a condition, repeatedly or in a function of its
// own is a region (region.hpp). A variable belongs to the region in which it was constructed. Where a region
// further in reads or assigns it, the region takes note of it: a branch merges what its sides assigned, a
// loop carries it from iteration to iteration. That is the construction of static single assignment form while the
// program is being read (Braun et al., "Simple and efficient construction of static single assignment form",
// CC 2013), and so it does not matter by which way a variable is reached: its name, a pointer, a reference in
// a struct, a destructor, another file.
//
// Where nothing is staged a variable is a plain value.
#pragma once

#include <atomic>
#include <concepts>
#include <cstdint>
#include <memory>
#include <utility>

#include "lantern/compiler/staging/datum.hpp"

namespace lantern::core {

class Staging;

/// How many graphs are under construction in the process.
inline std::atomic<int> graphs_under_construction{0};

class StorageBase {
 public:
  /// While it lives, this thread makes copies of functions, whose variables outlive the region: they are read in
  /// others, and not assigned.
  class Kept {
   public:
    Kept() noexcept;
    ~Kept();
    Kept(const Kept&) = delete;
    Kept& operator=(const Kept&) = delete;
  };

  /// Takes `d` as a value that is made here and now, whatever was here before.
  void renew(Datum d) noexcept {
    if (region_ != 0) end();
    datum_ = std::move(d);
    region_ = here();
  }
  /// Gives up the value and the region: what is left is the shape of a product, which any region may copy.
  void detach() noexcept {
    if (region_ != 0) end();
    datum_ = Datum();
    region_ = detached;
  }

 protected:
  StorageBase() noexcept : region_(here()) {}
  explicit StorageBase(Datum d) noexcept : datum_(std::move(d)), region_(here()) {}
  /// What `make` gives, where it will lie.
  template <std::invocable F>
  explicit StorageBase(const F& make) : datum_(make()), region_(here()) {}
  StorageBase(const StorageBase& like, Datum d) noexcept
      : datum_(std::move(d)), region_(like.region_ < detached ? here() : detached) {}
  ~StorageBase() {
    if (region_ != 0) end();
  }

  static bool staging() noexcept { return graphs_under_construction.load(std::memory_order_relaxed) != 0; }
  static std::uint64_t here() noexcept { return staging() ? current_region() : 0; }
  enum class Access { read, copy, write };
  const Datum& read(ir::Kind kind, Access access) const { return staging() ? read_staged(kind, access) : datum_; }
  void write_staged(Datum d, ir::Kind kind);
  /// What a variable that is moved from holds; it keeps it, unless it is of this region.
  Datum take(ir::Kind kind) noexcept { return staging() ? take_staged(kind) : std::move(datum_); }

  Datum datum_;

 private:
  friend class Region;
  // What is in region_ beside the number of a region: the innermost one that has taken note of the
  // variable. 0: nothing is staged.
  static constexpr std::uint64_t noted = 1;     ///< the region is not the one it was constructed in
  static constexpr std::uint64_t outside = 2;   ///< constructed outside of the function being staged
  static constexpr std::uint64_t constant = 4;  ///< constructed in a function or Kept, and not assigned since
  static constexpr int flags = 3;
  static constexpr std::uint64_t detached = ~std::uint64_t{7};

  static std::uint64_t current_region() noexcept;
  void follow(const Staging& s) noexcept;
  void meet(Staging& s, ir::Kind kind, Access access);
  const Datum& read_staged(ir::Kind kind, Access access) const;
  Datum take_staged(ir::Kind kind) noexcept;
  void end() noexcept;

  std::uint64_t number() const { return region_ >> flags; }

  std::uint64_t region_;
};

/// `kind`: of the type of a scalar; tensor otherwise. A scalar that has no value yet is zero in a region further in where it
/// is copied or assigned there, or may have been assigned: by another branch, or an earlier iteration. C++ leaves open what
/// it is.
template <ir::Kind kind>
class Storage : public StorageBase {
 public:
  Storage() = default;
  explicit Storage(Datum d) noexcept : StorageBase(std::move(d)) {}
  template <std::invocable F>
  explicit Storage(const F& make) : StorageBase(make) {}
  Storage(const Storage& o) : StorageBase(o, o.copied()) {}
  Storage(Storage&& o) noexcept : StorageBase(o, o.take(kind)) {}
  Storage& operator=(const Storage& o) {
    if (staging()) write_staged(o.copied(), kind);
    else datum_ = o.datum_;
    return *this;
  }
  Storage& operator=(Storage&& o) {
    if (staging()) write_staged(o.take(kind), kind);
    else datum_ = std::move(o.datum_);
    return *this;
  }
  /// The value at the place of the program that is being staged.
  const Datum& get() const { return read(kind, Access::read); }

 private:
  const Datum& copied() const { return read(kind, Access::copy); }
};

/// A copy of a function that outlives the region it is made in.
template <class F>
std::shared_ptr<const F> kept(F f) {
  const StorageBase::Kept scope;
  return std::make_shared<const F>(std::move(f));
}

}  // namespace lantern::core
