// The eager bottom handler: every operation of the table computed at once.
#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <string>

#include "lantern/compiler/staging/check.hpp"
#include "lantern/compiler/staging/operation.hpp"
#include "lantern/ir/error.hpp"
#include "lantern/ir/notation.hpp"
#include "lantern/ir/op.hpp"
#include "lantern/ir/points.hpp"
#include "lantern/ir/scalar_value.hpp"
#include "lantern/runtime/tree.hpp"

namespace lantern::core {

namespace {

using ir::converted;
using ir::Kind;
using ir::Rule;
using ir::scalar_compare;
using ir::Type;
using ir::with_kind;
using ir::Wrapping;
using ir::WrappingOr;

template <class T>
T literal(const Datum& d) {
  if constexpr (std::is_floating_point_v<T>) return static_cast<T>(d.f());
  else return static_cast<T>(d.i());
}

template <class T>
Datum make(T v, const Type& type) {
  if constexpr (std::is_floating_point_v<T>) return Datum::number(static_cast<double>(v), type);
  else return Datum::integer(static_cast<std::int64_t>(v), type);
}

/// x + y and x * y as operations on numbers of the kind: integers wrap.
template <class T>
T plus(T x, T y) {
  return static_cast<T>(WrappingOr<T>(x) + WrappingOr<T>(y));
}
template <class T>
T times(T x, T y) {
  return static_cast<T>(WrappingOr<T>(x) * WrappingOr<T>(y));
}

TensorBox& box(const Datum& d) { return *static_cast<TensorBox*>(d.box()); }

void check_divisor(const Operation& op, bool zero) {
  if (zero) raise_at(op.loc, "integer division by zero");
}

template <class T>
T guarded_value(const Operation& op, T x, T y, T z) {
  if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>)
    if (op.code == Opcode::div_ || op.code == Opcode::rem_) check_divisor(op, y == 0);
  return ir::defined_value<T>(op.code, x, y, z);
}

Datum evaluate_scalar(const Operation& op, std::span<const Datum> in) {
  const Rule rule = ir::info(op.code).rule;
  if (rule == Rule::choice) return in[0].b() ? in[1] : in[2];
  return with_kind(in[0].type().kind(), [&]<class T>(T) -> Datum {
    const T x = literal<T>(in[0]);
    const T y = in.size() > 1 ? literal<T>(in[1]) : T{};
    const T z = in.size() > 2 ? literal<T>(in[2]) : T{};
    if (rule == Rule::compare) return make(scalar_compare<T>(op.code, x, y), ir::Bool);
    return make(guarded_value<T>(op, x, y, z), in[0].type());
  });
}

void same_shape(const Operation& op, const TensorBox& a, const TensorBox& b) {
  if (a.shape == b.shape) return;
  raise_at(op.loc, ir::shapes_differ(ir::info(op.code).name, a.shape, b.shape));
}

Datum evaluate_elementwise(const Operation& op, std::span<Datum> in) {
  const Rule rule = ir::info(op.code).rule;
  if (rule == Rule::choice && in[0].type().is_scalar()) {  // of one tensor or the other, whole
    same_shape(op, box(in[1]), box(in[2]));
    return in[in[0].b() ? 1 : 2];
  }
  const TensorBox& first = box(in[0]);
  for (const Datum& d : in) same_shape(op, first, box(d));
  const auto n = static_cast<std::size_t>(first.count());
  if (rule == Rule::choice) {
    Datum out = make_tensor(in[1].type().element(), first.shape);
    with_kind(in[1].type().element(), [&]<class T>(T) {
      const bool* const c = first.as<bool>();
      const T *const x = box(in[1]).as<T>(), *const y = box(in[2]).as<T>();
      T* const to = box(out).as<T>();
      for (std::size_t i = 0; i < n; ++i) to[i] = (c[i] ? x : y)[i];
    });
    return out;
  }
  return with_kind(in[0].type().element(), [&]<class T>(T) -> Datum {
    const T* x = first.as<T>();
    const T* y = in.size() > 1 ? box(in[1]).as<T>() : x;
    const T* z = in.size() > 2 ? box(in[2]).as<T>() : x;
    if (rule == Rule::compare) {
      Datum out = make_tensor(Kind::boolean, first.shape);
      bool* const to = box(out).as<bool>();
      for (std::size_t i = 0; i < n; ++i) to[i] = scalar_compare<T>(op.code, x[i], y[i]);
      return out;
    }
    Datum out = in[0].unique() ? in[0] : make_tensor(in[0].type().element(), first.shape);
    box(out).flow = {};
    T* r = box(out).as<T>();
    for (std::size_t i = 0; i < n; ++i) r[i] = guarded_value<T>(op, x[i], y[i], z[i]);
    return out;
  });
}

/// The datum itself if nothing else sees it, else a tensor like it, of which so many bytes from `at` on may be
/// written: at first a few, in constant time (TensorBox).
Datum own(Datum& d, std::size_t at, std::size_t bytes) {
  if (d.unique()) {
    box(d).flow = {};
    return std::move(d);
  }
  return Datum::boxed(box(d).successor(at, bytes), d.type());
}
Datum own(Datum& d) { return own(d, 0, box(d).data().size()); }

std::int64_t check_index(const Operation& op, std::int64_t i, std::int64_t size) {
  if (i < 0 || i >= size)
    raise_at(op.loc, "index " + std::to_string(i) + " is outside " +
                         (size > 0 ? "0.." + std::to_string(size - 1) : "an empty dimension"));
  return i;
}

std::size_t flat_index(const Operation& op, const TensorBox& t, std::span<const Datum> indices) {
  std::int64_t flat = 0;
  for (std::size_t d = 0; d < indices.size(); ++d)
    flat = flat * t.shape[d] + check_index(op, indices[d].i(), t.shape[d]);
  return static_cast<std::size_t>(flat);
}

std::int64_t row_size(const TensorBox& t) {
  std::int64_t n = 1;
  for (std::size_t i = 1; i < t.shape.size(); ++i) n *= t.shape[i];
  return n;
}

void need(const Operation& op, bool ok, const char* what) {
  if (!ok) raise_at(op.loc, std::string(ir::info(op.code).name) + ": " + what);
}

/// Rows lo .. lo + rows - 1 of `t` as element offset and count, checked.
std::pair<std::size_t, std::size_t> rows_of(const Operation& op, const TensorBox& t, std::int64_t lo,
                                            std::int64_t rows) {
  if (lo < 0 || rows < 0 || lo > t.shape[0] - rows)
    raise_at(op.loc, "rows " + std::to_string(lo) + " to " + std::to_string(plus(lo, rows)) +
                         " (exclusive) are outside 0.." + std::to_string(t.shape[0]));
  return {static_cast<std::size_t>(lo * row_size(t)), static_cast<std::size_t>(rows * row_size(t))};
}

template <class T>
struct Kernels {
  const Operation& op;
  std::span<Datum> in;

  TensorBox& t(std::size_t i) const { return box(in[i]); }
  const T* p(std::size_t i) const { return t(i).template as<T>(); }
  std::size_t d(std::size_t i, std::size_t k) const { return static_cast<std::size_t>(t(i).shape[k]); }
  Kind kind() const { return in[0].type().element(); }
  static T* data(const Datum& out) { return box(out).template as<T>(); }

  /// An operation in index notation, point by point.
  Datum sum_of_products(const ir::Notation& general) const {
    std::vector<Type> types;
    for (const Datum& d : in) types.push_back(d.type());
    const ir::Notation n = ir::concrete(general, types);
    for (const ir::SameSize& s : ir::same_sizes(n))
      if (t(s.a).shape[s.a_dimension] != t(s.b).shape[s.b_dimension]) shapes_differ(s.a, s.b);
    ir::Points points(n, [&](const ir::SizeSource& s) {
      const std::int64_t size = s.dimension < 0 ? in[s.operand].i() : t(s.operand).shape[s.dimension];
      if (size < 0) raise_at(op.loc, "a tensor of negative size");
      return size;
    });
    const auto shape = [](const Datum& d) -> std::span<const std::int64_t> {
      if (!d.type().is_tensor()) return {};
      return box(d).shape;
    };
    // Before factors are asked where their elements are: one may be the tensor that is added to, whose memory goes on.
    Datum out;
    if (n.accumulates && in[0].type().is_tensor()) out = own(in[0]);
    const auto numbers = std::make_unique<T[]>(in.size());  // of operands without dimensions
    std::vector<const T*> from;
    for (std::size_t i = 0; i < n.operands.size(); ++i) {
      if (!n.is_factor(i)) continue;
      if (!in[i].type().is_tensor()) numbers[i] = literal<T>(in[i]);
      from.push_back(in[i].type().is_tensor() ? p(i) : &numbers[i]);
      points.follow(n.operands[i].at, shape(in[i]));
    }
    T total{};
    if (n.accumulates && out.empty()) {
      total = literal<T>(in[0]);
    } else if (!n.accumulates && !n.result.empty()) {
      std::vector<std::int64_t> sizes;
      for (const ir::Subscript& s : n.result) sizes.push_back(points.size(s.letter()));
      out = make_tensor(kind(), std::move(sizes));
    }
    points.follow(n.result, shape(out));
    T* const to = out.empty() ? &total : data(out);
    points.run([&](std::span<const std::int64_t> at) {
      T product = from.empty() ? T(1) : from[0][at[0]];
      for (std::size_t k = 1; k < from.size(); ++k) product = times(product, from[k][at[k]]);
      to[at.back()] = plus(to[at.back()], product);
    });
    return out.empty() ? make(total, Type(kind())) : out;
  }
  [[noreturn]] void shapes_differ(std::size_t a, std::size_t b) const {
    raise_at(op.loc, ir::shapes_differ(ir::info(op.code).name, t(a).shape, t(b).shape));
  }
  Datum largest() const {
    const T* x = p(0);
    std::int64_t best = 0;
    for (std::int64_t i = 1; i < t(0).count(); ++i)
      if (x[i] > x[best] || (x[best] != x[best] && x[i] == x[i])) best = i;
    return Datum::integer(best, ir::I64);
  }
  Datum concat() const {
    std::vector<std::int64_t> shape = t(0).shape;
    need(op, row_size(t(0)) == row_size(t(1)), "the trailing dimensions differ");
    shape[0] += t(1).shape[0];
    Datum out = make_tensor(kind(), std::move(shape));
    std::copy_n(p(0), t(0).count(), data(out));
    std::copy_n(p(1), t(1).count(), data(out) + t(0).count());
    return out;
  }

  Datum run() const {
    if (const ir::Notation* n = ir::notation_of(op.code, op.text)) return sum_of_products(*n);
    switch (op.code) {
      case Opcode::get_: {
        const std::size_t i = flat_index(op, t(0), in.subspan(1));
        return make(t(0).template element<T>(i), Type(kind()));
      }
      case Opcode::set_:
      case Opcode::add_at_: {
        const std::size_t i = flat_index(op, t(0), in.subspan(1, in.size() - 2));
        const T v = literal<T>(in.back());
        Datum out = own(in[0], i * sizeof(T), sizeof(T));
        data(out)[i] = op.code == Opcode::set_ ? v : plus(data(out)[i], v);
        return out;
      }
      case Opcode::take_: {
        const std::int64_t row = check_index(op, in[1].i(), t(0).shape[0]);
        Datum out = make_tensor(kind(), {t(0).shape.begin() + 1, t(0).shape.end()});
        std::copy_n(p(0) + row * row_size(t(0)), row_size(t(0)), data(out));
        return out;
      }
      case Opcode::slice_: {
        // Of a range that is outside the number of rows may wrap: the first row shows it all the same.
        const std::int64_t rows = static_cast<std::int64_t>(Wrapping(in[2].i()) - Wrapping(in[1].i()));
        const auto [at, n] = rows_of(op, t(0), in[1].i(), rows);
        std::vector<std::int64_t> shape = t(0).shape;
        shape[0] = rows;
        Datum out = make_tensor(kind(), std::move(shape));
        std::copy_n(p(0) + at, n, data(out));
        return out;
      }
      case Opcode::add_take_:
      case Opcode::add_slice_: {
        const auto [at, n] = rows_of(op, t(0), in[1].i(), op.code == Opcode::add_take_ ? 1 : t(2).shape[0]);
        Datum out = own(in[0], at * sizeof(T), n * sizeof(T));
        T* const to = data(out) + at;
        const T* const from = p(2);
        for (std::size_t i = 0; i < n; ++i) to[i] = plus(to[i], from[i]);
        return out;
      }
      case Opcode::fill_: {
        std::vector<std::int64_t> shape;
        for (const Datum& size : in.subspan(1)) {
          if (size.i() < 0) raise_at(op.loc, "a tensor of negative size, " + std::to_string(size.i()));
          shape.push_back(size.i());
        }
        Datum out = make_tensor(in[0].type().kind(), std::move(shape));
        std::fill_n(data(out), box(out).count(), literal<T>(in[0]));
        return out;
      }
      case Opcode::zeros_like_:
        return in[0].type().is_scalar() ? Datum::zero(in[0].type()) : make_tensor(kind(), t(0).shape);
      case Opcode::argmax_:
        if (t(0).count() == 0) raise_at(op.loc, std::string(op.text ? op.text : "argmax") + " of an empty tensor");
        return largest();
      case Opcode::reshape_: {
        need(op, t(0).count() == t(1).count(), "the numbers of elements differ");
        Datum out = make_tensor(kind(), t(1).shape);
        box(out).data() = t(0).data();
        return out;
      }
      case Opcode::concat_: return concat();
      case Opcode::copy_: return own(in[0]);
      default: throw InternalError("eager evaluation of " + std::string(ir::info(op.code).name));
    }
  }
};

Datum evaluate_cast(const Operation& op, std::span<Datum> in) {
  const Kind to = op.code == Opcode::cast_ ? static_cast<Kind>(op.attribute) : in[1].type().element();
  return with_kind(in[0].type().element(), [&]<class From>(From) {
    return with_kind(to, [&]<class To>(To) -> Datum {
      if (in[0].type().is_scalar()) return make(converted<To>(literal<From>(in[0])), Type(to));
      Datum out = make_tensor(to, box(in[0]).shape);
      const From* const x = box(in[0]).as<From>();
      To* const to_data = box(out).as<To>();
      for (std::size_t i = 0, n = static_cast<std::size_t>(box(in[0]).count()); i < n; ++i)
        to_data[i] = converted<To>(x[i]);
      return out;
    });
  });
}

Datum evaluate_tree(const Operation& op, const Datum& tree) {
  const auto& t = *static_cast<const TreeBox*>(tree.box());
  if (op.code == Opcode::tree_empty_) return Datum::integer(t.node < 0, ir::Bool);
  if (t.node < 0) raise_at(op.loc, std::string(ir::info(op.code).name) + " of an empty tree");
  const auto n = static_cast<std::size_t>(t.node);
  if (op.code == Opcode::tree_left_) return Datum::boxed(new TreeBox(t.columns, t.columns->left[n]), tree.type());
  if (op.code == Opcode::tree_right_) return Datum::boxed(new TreeBox(t.columns, t.columns->right[n]), tree.type());
  const auto c = static_cast<std::size_t>(op.attribute);
  const Type& type = tree.type().parts()[c];
  return with_kind(type.kind(), [&]<class T>(T) {
    return make(reinterpret_cast<const T*>(t.columns->values[c].data())[n], type);
  });
}

}  // namespace

Datum evaluate_literals(const Operation& op, std::span<const Datum> in) {
  if (in.size() == 2 && in[0].type().kind() == Kind::f64) {
    const double x = in[0].f(), y = in[1].f();
    switch (op.code) {
      case Opcode::add_: return Datum::number(x + y, ir::F64);
      case Opcode::sub_: return Datum::number(x - y, ir::F64);
      case Opcode::mul_: return Datum::number(x * y, ir::F64);
      default: break;
    }
  }
  return evaluate_scalar(op, in);
}

double evaluate_number(Opcode code, double x, double y, double z) {
  return ir::number_value<double>(code, x, y, z);
}

namespace {

Datum evaluate_unchecked(const Operation& op, std::span<Datum> in) {
  if (ir::info(op.code).elementwise)
    return in.back().type().is_scalar() ? evaluate_scalar(op, in) : evaluate_elementwise(op, in);
  switch (op.code) {
    case Opcode::stop_gradient_:
    case Opcode::print_adjoint_: return in[0];
    case Opcode::cast_:
    case Opcode::cast_like_: return evaluate_cast(op, in);
    case Opcode::dim_: return Datum::integer(box(in[0]).shape[static_cast<std::size_t>(op.attribute)], ir::I64);
    case Opcode::tree_empty_:
    case Opcode::tree_left_:
    case Opcode::tree_right_:
    case Opcode::tree_value_: return evaluate_tree(op, in[0]);
    default:
      return with_kind(in[0].type().element(), [&]<class T>(T) { return Kernels<T>{op, in}.run(); });
  }
}

}  // namespace

Datum evaluate(const Operation& op, std::span<Datum> in) {
  if (!detail::checking()) return evaluate_unchecked(op, in);
  bool finite = true;
  for (const Datum& d : in) finite = finite && detail::all_finite(d);
  Datum result = evaluate_unchecked(op, in);
  detail::check_result(op, result, finite);
  return result;
}

}  // namespace lantern::core
