// Datum: what a Rep<T> holds. A literal, a node of the graph, or a box (eager tensor or tree, tagged number).
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "lantern/compiler/control/pool.hpp"
#include "lantern/ir/type.hpp"

namespace lantern::ir {
struct Value;
}

namespace lantern::core {

struct TreeColumns;

/// Things too large for a Datum, shared by reference count. Threads may share tensors and trees: what a
/// program captured is seen by all that run it. Tagged numbers belong to the thread of their derivative,
/// which makes millions of them, and are counted without an atomic operation.
struct Boxed {
  enum class Kind : std::uint8_t { tensor, tree, tagged };
  explicit Boxed(Kind k) : kind(k) {}
  Boxed(const Boxed&) = delete;
  Boxed& operator=(const Boxed&) = delete;
  virtual ~Boxed() = default;
  static void* operator new(std::size_t bytes) { return pool_take(bytes); }
  static void operator delete(void* memory, std::size_t bytes) noexcept { pool_give(memory, bytes); }

  void retain() noexcept {
    if (kind == Kind::tagged)
      count(1);
    else
      references_.fetch_add(1, std::memory_order_relaxed);
  }
  /// True where that was the last reference.
  bool release() noexcept {
    if (kind == Kind::tagged) return count(-1) == 0;
    return references_.fetch_sub(1, std::memory_order_acq_rel) == 1;
  }
  bool shared() const noexcept { return references_.load(std::memory_order_acquire) > 1; }

  const Kind kind;

 private:
  std::int32_t count(std::int32_t more) noexcept {
    const std::int32_t now = references_.load(std::memory_order_relaxed) + more;
    references_.store(now, std::memory_order_relaxed);
    return now;
  }
  std::atomic<std::int32_t> references_{0};
};

/// Identity of the graph that this thread is building; 0 when it builds none.
std::uint32_t current_graph();

/// A value of the program under either bottom handler. It knows its type; a literal belongs to no context.
class Datum {
 public:
  enum class State : std::uint8_t { empty, literal, node, boxed };

  Datum() = default;
  Datum(const Datum& o) noexcept : type_(o.type_), state_(o.state_), graph_(o.graph_), bits_(o.bits_) {
    retain();
  }
  Datum(Datum&& o) noexcept
      : type_(std::move(o.type_)),
        state_(std::exchange(o.state_, State::empty)),
        graph_(o.graph_),
        bits_(o.bits_) {}
  Datum& operator=(const Datum& o) noexcept { return *this = Datum(o); }
  Datum& operator=(Datum&& o) noexcept;
  ~Datum() { release(); }

  static Datum number(double v, const ir::Type& type) {
    Datum d(type, State::literal);
    d.bits_.f = v;
    return d;
  }
  static Datum integer(std::int64_t v, const ir::Type& type) {
    Datum d(type, State::literal);
    d.bits_.i = v;
    return d;
  }
  /// A zero literal of a scalar type.
  static Datum zero(const ir::Type& type) {
    return type.is_float_element() ? number(0.0, type) : integer(0, type);
  }
  /// A node of the graph under construction.
  static Datum node(ir::Value* v);
  static Datum boxed(Boxed* box, const ir::Type& type) {
    Datum d(type, State::boxed);
    d.bits_.box = box;
    box->retain();
    return d;
  }

  const ir::Type& type() const { return type_; }
  State state() const { return state_; }
  bool empty() const { return state_ == State::empty; }
  bool is_literal() const { return state_ == State::literal; }
  bool is_node() const { return state_ == State::node; }
  bool is_boxed(Boxed::Kind k) const { return state_ == State::boxed && bits_.box->kind == k; }
  bool is_tagged() const { return is_boxed(Boxed::Kind::tagged); }

  double f() const { return bits_.f; }
  std::int64_t i() const { return bits_.i; }
  bool b() const { return bits_.i != 0; }
  ir::Value* node() const { return bits_.node; }
  Boxed* box() const { return bits_.box; }
  /// Which graph a node belongs to: the node itself must not be looked at once that graph is gone.
  std::uint32_t graph() const { return graph_; }
  /// Nothing else can see the box: it may be changed in place.
  bool unique() const { return state_ == State::boxed && !bits_.box->shared(); }

 private:
  Datum(const ir::Type& type, State state) noexcept : type_(type), state_(state) {}
  void retain() const {
    if (state_ == State::boxed) retain_box();
  }
  void release() {
    if (state_ == State::boxed) release_box();
  }
  // Compiled once: what is inlined here is in each function of a program that holds a Rep.
  void retain_box() const noexcept;
  void release_box() noexcept;

  // Three words: the state and the graph lie in what the type leaves of its own.
  [[no_unique_address]] ir::Type type_;
  State state_ = State::empty;
  std::uint32_t graph_ = 0;
  union Bits {
    double f;
    std::int64_t i = 0;
    ir::Value* node;
    Boxed* box;
  } bits_;
};
static_assert(sizeof(Datum) == 24);

}  // namespace lantern::core

extern template class std::vector<lantern::core::Datum>;
extern template class std::vector<lantern::ir::Type>;

namespace lantern::core {

namespace detail {
// Compiled once, and not in each program.
void append(std::vector<Datum>& to, Datum d);
void append(std::vector<ir::Type>& to, const ir::Type& t);
}  // namespace detail

/// Which evaluation this thread is in the middle of; 0 when it is in none. No two have the same number.
std::uint64_t current_evaluation();

/// An eager tensor: contiguous, row-major; elements of the kind in its Datum's type.
///
/// Tensors are values, and a program that changes one element at a time must not copy all of it each time. So
/// a new version of a tensor takes over the memory, and the old one, if somebody can still see it, keeps what
/// was there before the change, and a reference to the new one; it gets memory of its own again when it is
/// looked at as a whole (Baker, "Shallow binding makes functional arrays fast", SIGPLAN Notices 26, 1991).
/// Changes are kept up to the size of the tensor, then it is copied: an update takes constant time on the
/// average, and no program copies more than if each update did.
class TensorBox : public Boxed {
 public:
  TensorBox(std::vector<std::int64_t> s, std::size_t bytes)
      : Boxed(Kind::tensor), shape(std::move(s)), evaluation_(current_evaluation()), data_(bytes) {}
  ~TensorBox() override;

  const std::vector<std::int64_t> shape;
  /// Of a derivative: true where something flows, a tensor of bools; empty: everywhere. An element elsewhere is 0 because
  /// what it comes from was not taken.
  Datum flow;
  std::int64_t count() const {
    std::int64_t n = 1;
    for (std::int64_t d : shape) n *= d;
    return n;
  }
  template <class T>
  T* as() {
    return reinterpret_cast<T*>(data().data());
  }
  template <class T>
  const T* as() const {
    return reinterpret_cast<const T*>(data().data());
  }
  std::vector<std::byte>& data() {
    if (older_.load(std::memory_order_acquire)) restore();
    return data_;
  }
  const std::vector<std::byte>& data() const { return const_cast<TensorBox*>(this)->data(); }
  /// Element number `i`, also of an old version, of which it needs no copy if it is a recent one.
  template <class T>
  T element(std::size_t i) const {
    if (!older_.load(std::memory_order_acquire)) return reinterpret_cast<const T*>(data_.data())[i];
    T value;
    read_older(i * sizeof(T), &value, sizeof(T));
    return value;
  }

  /// A tensor with the same elements, of which `bytes` bytes from `at` on will be written next: the new
  /// version if this evaluation made the tensor, else a copy. What others made, other threads may be reading.
  TensorBox* successor(std::size_t at, std::size_t bytes);

 private:
  /// What an old version is: the next one, but for these bytes.
  struct Older;
  void restore();
  void read_older(std::size_t at, void* to, std::size_t bytes) const;
  TensorBox* take_newer() noexcept;

  std::uint64_t evaluation_;
  std::size_t kept_ = 0;  ///< bytes that old versions keep, since the last copy
  std::vector<std::byte> data_;
  std::atomic<Older*> older_{nullptr};
};

/// An eager tree: shared columns and a node number.
struct TreeBox : Boxed {
  TreeBox(std::shared_ptr<const TreeColumns> c, std::int64_t n)
      : Boxed(Kind::tree), columns(std::move(c)), node(n) {}
  std::shared_ptr<const TreeColumns> columns;
  std::int64_t node;
};

/// Bytes of one element.
std::size_t element_size(ir::Kind k);

/// An eager tensor datum with static dimensions equal to `shape`, zeroed.
Datum make_tensor(ir::Kind element, std::vector<std::int64_t> shape);

using Datums = std::vector<Datum>;

}  // namespace lantern::core
