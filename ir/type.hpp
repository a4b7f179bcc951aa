// Types of the IR: scalars, tensors (an array is a tensor of rank 1), trees, adjoint cells, continuations.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace lantern::ir {

/// What a type is at its outermost level.
enum class Kind : std::uint8_t { boolean, i32, i64, f32, f64, tensor, tree, ref, cont };

/// A dimension whose size is known only at run time.
inline constexpr std::int64_t dynamic = -1;

/// A type is a value: cheap to copy, compared by structure. It belongs to no context.
///
///   bool i32 i64 f32 f64     scalars
///   f64x8                    vector: the values of a scalar in so many lanes (made by the vectorise pass)
///   f64[3,?]                 tensor: element type, one entry per dimension, `?` symbolic (rank always known)
///   tree<i64, f64>           binary tree whose nodes carry a product of scalars; structure of arrays
///   ref T                    adjoint cell: created as zero, only added to, read by its creator
///   cont(T...)               continuation: called exactly once on every path
class Type {
 public:
  constexpr Type() = default;
  constexpr explicit Type(Kind scalar) : kind_(scalar) {}
  Type(const Type& o) noexcept : data_(o.data_), lanes_(o.lanes_), kind_(o.kind_) {
    if (data_) retain(data_);
  }
  Type(Type&& o) noexcept : data_(std::exchange(o.data_, nullptr)), lanes_(o.lanes_), kind_(o.kind_) {}
  Type& operator=(const Type& o) noexcept { return *this = Type(o); }
  Type& operator=(Type&& o) noexcept {
    std::swap(data_, o.data_);
    lanes_ = o.lanes_;
    kind_ = o.kind_;
    return *this;
  }
  constexpr ~Type() {
    if (data_) release(data_);
  }

  /// A scalar in `lanes` lanes at once; one lane is the scalar itself.
  static Type vector(Kind element, int lanes);
  static Type tensor(Kind element, std::vector<std::int64_t> dims);
  static Type tree(std::vector<Type> node_values);
  static Type ref(Type cell);
  static Type cont(std::vector<Type> parameters);

  Kind kind() const { return kind_; }
  /// Scalars, and vectors of them.
  bool is_scalar() const { return kind_ <= Kind::f64; }
  bool is_vector() const { return lanes_ > 1; }
  int lanes() const { return lanes_; }
  bool is_tensor() const { return kind_ == Kind::tensor; }
  bool is_tree() const { return kind_ == Kind::tree; }
  bool is_ref() const { return kind_ == Kind::ref; }
  bool is_cont() const { return kind_ == Kind::cont; }
  bool is_bool() const { return kind_ == Kind::boolean; }

  /// Element kind of a tensor, or the kind of a scalar.
  Kind element() const { return kind_ == Kind::tensor ? tensor_element() : kind_; }
  bool is_float_element() const { return element() == Kind::f32 || element() == Kind::f64; }
  /// A floating-point scalar or tensor: the types that carry derivatives.
  bool is_differentiable() const { return (is_scalar() || is_tensor()) && is_float_element(); }
  bool is_integer() const { return kind_ == Kind::i32 || kind_ == Kind::i64; }

  int rank() const { return static_cast<int>(dims().size()); }
  const std::vector<std::int64_t>& dims() const;
  /// Values of a tree node, parameters of a continuation, or the content of a ref.
  const std::vector<Type>& parts() const;
  const Type& content() const { return parts().front(); }

  /// The same shape and lanes with another element kind.
  Type with_element(Kind k) const;

  bool operator==(const Type& other) const;
  std::string str() const;

 private:
  /// What scalars do not have, shared by the copies of a type, in any thread.
  struct Data;
  Type(Kind kind, Kind element, std::vector<std::int64_t> dims, std::vector<Type> parts);
  Kind tensor_element() const;
  static void retain(const Data* data) noexcept;
  static void release(const Data* data) noexcept;

  // The order leaves the last bytes to whoever holds a type: a Datum, of which eager derivatives keep
  // millions.
  const Data* data_ = nullptr;
  std::uint16_t lanes_ = 1;
  Kind kind_ = Kind::f64;
};

inline constexpr Type Bool{Kind::boolean};
inline constexpr Type I32{Kind::i32};
inline constexpr Type I64{Kind::i64};
inline constexpr Type F32{Kind::f32};
inline constexpr Type F64{Kind::f64};

/// "f64" for Kind::f64 and so on; scalars only.
const char* kind_name(Kind k);

/// True where two types agree up to symbolic dimensions: `f64[3,?]` fits `f64[?,4]`.
bool compatible(const Type& a, const Type& b);

/// True where a value of type `value` may be taken for one of type `as`: they agree, but that `as` may not
/// know a dimension that `value` knows. The other way round a shape would be taken for granted that nothing
/// checked.
bool fits(const Type& value, const Type& as);

}  // namespace lantern::ir
