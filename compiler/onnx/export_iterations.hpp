// Numbers of iterations: what a value computed in a nest of loops is for all iterations at once. Internal to the
// exporter.
#pragma once

#include <algorithm>
#include <map>
#include <memory>
#include <vector>

#include "lantern/compiler/onnx/exporter.hpp"

namespace lantern::onnx::exporting {

/// A nest is no expression over whole tensors.
struct NotTensors {};

/// A sum of multiples of indices; with `minus`, less max(minus, 0).
struct Affine {
  std::map<int, std::int64_t> factors;
  std::int64_t constant = 0;
  std::shared_ptr<const Affine> minus = {};

  bool is_letter(int l) const {
    return constant == 0 && !minus && factors.size() == 1 && factors.begin()->first == l &&
           factors.begin()->second == 1;
  }
  bool is_letter() const { return factors.size() == 1 && is_letter(factors.begin()->first); }
  bool operator==(const Affine& o) const {
    return factors == o.factors && constant == o.constant && !minus == !o.minus &&
           (!minus || *minus == *o.minus);
  }
};

struct Store;

struct Iteration {
  enum class What : std::uint8_t {
    plain,    ///< the same in all iterations
    tensor,   ///< `name`, with a dimension for each of `letters`, ascending
    affine,   ///< of the indices
    element,  ///< of the tensor `form`, at `at`: not read yet
    ordered,  ///< whether `of` is no NaN
    reduced,  ///< `of`, taken together by `op` over the indices `over`
    low,      ///< max(affine, 0)
    high,     ///< min(affine, size)
    span,     ///< high - low
    at_least, ///< max(affine, low)
    between,  ///< min(max(affine, low), upper)
    number,   ///< `of`, a whole number that is exact in the floating kind that it has become
    // What states are is known when their loop has ended.
    state,      ///< as the iteration finds it
    fold,       ///< state, op, of
    unordered,  ///< whether the state is a NaN
    better,     ///< whether `of` is better than the state, by `op`
    place,      ///< `which` where `of` was best, of a state
    found,      ///< the same when all loops have ended: `of` is reduced
    store,      ///< a tensor whose elements iterations set
  };
  What what = What::plain;
  ir::Kind kind = ir::Kind::f32;
  Form form = {};
  std::string name = {};
  std::vector<int> letters = {};
  Affine affine = {};
  Affine low = {}, upper = {};
  std::vector<std::shared_ptr<const Iteration>> at = {};
  bool guarded = false;  ///< the element may lie outside, and is not used then
  ir::Opcode op = ir::Opcode::count_;
  std::shared_ptr<const Iteration> of = {}, which = {};
  std::vector<int> over = {};
  const ir::Value* state = nullptr;
  const ir::Value* best = nullptr;
  std::shared_ptr<Store> store = {};
  std::size_t version = 0;
};
using T = std::shared_ptr<const Iteration>;

/// An element that each iteration of these loops sets, or adds to.
struct Update {
  bool adds;
  std::vector<T> at;
  T value;
  std::vector<int> letters;
};
struct Store {
  Form root;
  std::size_t depth = 0;  ///< how many loops were around when it was made
  std::vector<Update> updates = {};
  std::vector<std::vector<T>> reads = {};
};

/// The loops of a nest and the values of their iterations.
class Iterations {
 public:
  explicit Iterations(Exporter& exporter) : e(exporter) {}

  // ---- loops
  /// A loop from a number to a value begins; its index.
  int begin(std::int64_t from, const T& to);
  /// One from a value down to above a number: its index is one more than that in the last iteration.
  int begin_down(std::int64_t to, const T& from);
  void finish() { active_.pop_back(); }
  /// Their indices, but for those of loops of one iteration.
  std::vector<int> active() const;
  std::size_t depth() const { return active_.size(); }
  /// What its index is after the last iteration; empty where it is not used.
  std::optional<Size> end(int letter) const;

  // ---- values
  T plain(const Form& f) const;
  T index(int letter) const;
  /// A value that is not used.
  static T unknown();
  T element(const Form& tensor, const std::vector<T>& at, bool guarded);
  T elementwise(ir::Opcode op, ir::Kind kind, const std::vector<T>& operands);
  T cast(const T& x, ir::Kind to);
  T reduced(ir::Opcode op, const T& of, int letter);
  bool is_affine(const T& t) const;
  /// start + step * index, in an iteration and after the last.
  T grown(const T& start, int letter, std::int64_t step) const;
  T grown_to_end(const T& start, int letter, std::int64_t step) const;

  bool same(const T& a, const T& b) const;
  bool same(const std::vector<T>& a, const std::vector<T>& b) const;
  /// Whether `start` is the first of the elements that `all` is taken over.
  bool is_first(const T& start, const T& all) const;
  /// Whether different iterations have different places.
  bool injective(const Update& u) const;

  /// A value that is the same in all iterations.
  Form form(const T& t);
  /// The tensor after all iterations.
  Form with(const Form& root, const Update& u, const ir::Type& type);

 private:
  struct Letter {
    std::int64_t from = 0;
    Size count, end;
    std::optional<Affine> low = {};  ///< of a window that is cut off at the edges: where it begins
    Size size = {};                  ///< and of what
  };

  Exporter& e;
  std::vector<Letter> letters_;
  std::vector<int> active_;
  std::map<const Iteration*, T> written_;  ///< as tensors
  std::vector<T> kept_;               ///< keys of written_

  const Letter& letter(int l) const { return letters_[static_cast<std::size_t>(l)]; }
  bool is_one(int l) const { return letter(l).count.is(1) && !letter(l).low; }
  std::optional<Affine> affine_of(const T& t) const;
  static T of_affine(Affine a);
  T tensor(std::string name, std::vector<int> letters, ir::Kind kind) const;
  std::optional<T> integer_arithmetic(ir::Opcode op, const std::vector<T>& x) const;
  bool ragged(const std::vector<int>& letters) const;
  bool is_small(const Affine& a) const;

  /// With a dimension for each index that it depends on.
  T write(const T& t);
  T write_affine(const Affine& a);
  T written_between(const T& t, const Affine& low, const Affine* upper);
  T write_element(const Iteration& t, std::optional<double> outside);
  T write_reduced(const Iteration& t);
  T write_pool(const Iteration& t);
  T write_found(const Iteration& t);
  T write_gather(const Iteration& t, const std::vector<int>& all);
  std::string clamped(const std::string& at, const Size& size);
  /// Aligned with others: dimensions of size 1 for the indices that it lacks, but for those in front.
  std::string spread(const T& t, const std::vector<int>& all);
  /// With all of these dimensions.
  std::string expanded(const T& t, const std::vector<int>& all);
  Sizes counts(const std::vector<int>& letters) const;
  bool is_all_of(const T& at, const Size& size) const;
};

// ---- what the files of this share

[[noreturn]] inline void no() { throw NotTensors(); }

inline Affine plus(const Affine& a, const Affine& b, std::int64_t times = 1) {
  if ((a.minus && b.minus) || (b.minus && times != 1)) no();
  Affine sum = a;
  if (b.minus) sum.minus = b.minus;
  sum.constant += times * b.constant;
  for (const auto& [l, f] : b.factors)
    if ((sum.factors[l] += times * f) == 0) sum.factors.erase(l);
  return sum;
}
inline Affine without(Affine a, const std::vector<int>& letters) {
  for (const int l : letters) a.factors.erase(l);
  return a;
}
inline std::vector<int> united(std::vector<int> a, const std::vector<int>& b) {
  for (const int l : b)
    if (!std::ranges::binary_search(a, l)) a.insert(std::ranges::lower_bound(a, l), l);
  return a;
}
inline bool has(const std::vector<int>& all, int l) { return std::ranges::find(all, l) != all.end(); }
inline std::int64_t place_of(const std::vector<int>& all, int l) {
  return std::ranges::find(all, l) - all.begin();
}
inline std::vector<int> letters_of(const Affine& a) {
  std::vector<int> all;
  for (const auto& entry : a.factors) all.push_back(entry.first);
  return all;
}
inline std::shared_ptr<Iteration> iteration(Iteration::What what, ir::Kind kind) {
  auto t = std::make_shared<Iteration>();
  t->what = what;
  t->kind = kind;
  return t;
}
/// The sum of multiples that a place is, or would be but for the bounds that it is kept within.
inline std::optional<Affine> unbounded(const T& t) {
  if (t->what == Iteration::What::affine || t->what == Iteration::What::between) return t->affine;
  return std::nullopt;
}
/// A place between bounds, all of it further on.
inline T moved_between(const T& t, const Affine& by) {
  auto sum = std::make_shared<Iteration>(*t);
  sum->affine = plus(t->affine, by), sum->low = plus(t->low, by), sum->upper = plus(t->upper, by);
  return sum;
}
inline bool is_extreme(ir::Opcode op) {
  return op == ir::Opcode::max_ || op == ir::Opcode::min_ || op == ir::Opcode::imax_ ||
         op == ir::Opcode::imin_;
}

}  // namespace lantern::onnx::exporting
