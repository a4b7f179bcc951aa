// Datum: what a Rep<T> holds. A literal, a node of the graph, or a box (eager tensor or tree, tagged number).
#pragma once

#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "lantern/compiler/staging/pool.hpp"
#include "lantern/ir/graph.hpp"

namespace lantern {

namespace detail {
struct TreeColumns;
}

/// Things too large for a Datum, shared by reference count. Confined to one thread.
struct Boxed {
  enum class Kind : std::uint8_t { tensor, tree, tagged };
  explicit Boxed(Kind k) : kind(k) {}
  Boxed(const Boxed&) = delete;
  Boxed& operator=(const Boxed&) = delete;
  virtual ~Boxed() = default;
  static void* operator new(std::size_t bytes) { return pool_take(bytes); }
  static void operator delete(void* memory, std::size_t bytes) noexcept { pool_give(memory, bytes); }
  Kind kind;
  std::uint32_t references = 0;
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
  Datum& operator=(Datum o) noexcept {
    std::swap(type_, o.type_);
    std::swap(state_, o.state_);
    std::swap(graph_, o.graph_);
    std::swap(bits_, o.bits_);
    return *this;
  }
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
  static Datum node(ir::Value* v) {
    Datum d(v->type, State::node);
    d.graph_ = current_graph();
    d.bits_.node = v;
    return d;
  }
  static Datum boxed(Boxed* box, const ir::Type& type) {
    Datum d(type, State::boxed);
    d.bits_.box = box;
    ++box->references;
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
  /// Nobody else can see the box: it may be changed in place.
  bool unique() const { return state_ == State::boxed && bits_.box->references == 1; }

 private:
  Datum(const ir::Type& type, State state) noexcept : type_(type), state_(state) {}
  void retain() const {
    if (state_ == State::boxed) ++bits_.box->references;
  }
  void release() {
    if (state_ == State::boxed && --bits_.box->references == 0) delete bits_.box;
  }

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

/// An eager tensor: contiguous, row-major; elements of the kind in its Datum's type.
struct TensorBox : Boxed {
  TensorBox(std::vector<std::int64_t> s, std::size_t bytes) : Boxed(Kind::tensor), shape(std::move(s)), data(bytes) {}
  std::vector<std::int64_t> shape;
  std::vector<std::byte> data;
  std::int64_t count() const {
    std::int64_t n = 1;
    for (std::int64_t d : shape) n *= d;
    return n;
  }
  template <class T>
  T* as() {
    return reinterpret_cast<T*>(data.data());
  }
  template <class T>
  const T* as() const {
    return reinterpret_cast<const T*>(data.data());
  }
};

/// An eager tree: shared columns and a node number.
struct TreeBox : Boxed {
  TreeBox(std::shared_ptr<const detail::TreeColumns> c, std::int64_t n)
      : Boxed(Kind::tree), columns(std::move(c)), node(n) {}
  std::shared_ptr<const detail::TreeColumns> columns;
  std::int64_t node;
};

/// Bytes of one element.
std::size_t element_size(ir::Kind k);

/// An eager tensor datum with static dimensions equal to `shape`, zeroed.
Datum make_tensor(ir::Kind element, std::vector<std::int64_t> shape);

using Datums = std::vector<Datum>;

}  // namespace lantern
