// Structure, comparison and text of IR types.
#include "lantern/ir/type.hpp"

#include <atomic>

#include "lantern/ir/error.hpp"
#include "lantern/ir/infix.hpp"

namespace lantern::ir {

struct Type::Data {
  Kind element = Kind::f64;
  std::vector<std::int64_t> dims;
  std::vector<Type> parts;
  mutable std::atomic<std::uint32_t> references{1};
};

Type Type::vector(Kind element, int lanes) {
  Type t(element);
  t.lanes_ = static_cast<std::uint16_t>(lanes);
  return t;
}

Type::Type(Kind kind, Kind element, std::vector<std::int64_t> dims, std::vector<Type> parts)
    : data_(new Data{element, std::move(dims), std::move(parts)}), kind_(kind) {}

Kind Type::tensor_element() const { return data_->element; }

void Type::retain(const Data* data) noexcept { data->references.fetch_add(1, std::memory_order_relaxed); }

void Type::release(const Data* data) noexcept {
  if (data->references.fetch_sub(1, std::memory_order_acq_rel) == 1) delete data;
}

Type Type::tensor(Kind element, std::vector<std::int64_t> dims) {
  return {Kind::tensor, element, std::move(dims), {}};
}

Type Type::tree(std::vector<Type> node_values) { return {Kind::tree, Kind::f64, {}, std::move(node_values)}; }

Type Type::ref(Type cell) { return {Kind::ref, Kind::f64, {}, {std::move(cell)}}; }

Type Type::cont(std::vector<Type> parameters) { return {Kind::cont, Kind::f64, {}, std::move(parameters)}; }

const std::vector<std::int64_t>& Type::dims() const {
  static const std::vector<std::int64_t> none;
  return kind_ == Kind::tensor ? data_->dims : none;
}

const std::vector<Type>& Type::parts() const {
  if (!data_) throw InternalError("type " + str() + " has no parts");
  return data_->parts;
}

Type Type::with_element(Kind k) const { return is_tensor() ? tensor(k, data_->dims) : vector(k, lanes_); }

bool Type::operator==(const Type& other) const {
  if (kind_ != other.kind_ || lanes_ != other.lanes_) return false;
  if (data_ == other.data_) return true;
  if (!data_ || !other.data_) return false;
  return data_->element == other.data_->element && data_->dims == other.data_->dims &&
         data_->parts == other.data_->parts;
}

const char* kind_name(Kind k) {
  switch (k) {
    case Kind::boolean:
      return "bool";
    case Kind::i32:
      return "i32";
    case Kind::i64:
      return "i64";
    case Kind::f32:
      return "f32";
    case Kind::f64:
      return "f64";
    default:
      return "?";
  }
}

std::string Type::str() const {
  switch (kind_) {
    case Kind::tensor: {
      std::string s = kind_name(data_->element);
      s += '[';
      for (std::size_t i = 0; i < data_->dims.size(); ++i) {
        if (i) s += ',';
        s += data_->dims[i] == dynamic ? std::string("?") : std::to_string(data_->dims[i]);
      }
      return s + "]";
    }
    case Kind::tree:
      return "tree<" + joined(data_->parts) + ">";
    case Kind::ref:
      return "ref " + content().str();
    case Kind::cont:
      return "cont(" + joined(data_->parts) + ")";
    default:
      return is_vector() ? kind_name(kind_) + ("x" + std::to_string(lanes_)) : kind_name(kind_);
  }
}

bool compatible(const Type& a, const Type& b) {
  if (a == b) return true;
  if (a.is_ref() && b.is_ref()) return compatible(a.content(), b.content());
  if ((a.is_cont() && b.is_cont()) || (a.is_tree() && b.is_tree())) {
    if (a.parts().size() != b.parts().size()) return false;
    for (std::size_t i = 0; i < a.parts().size(); ++i)
      if (!compatible(a.parts()[i], b.parts()[i])) return false;
    return true;
  }
  if (!a.is_tensor() || !b.is_tensor() || a.element() != b.element() || a.rank() != b.rank()) return false;
  for (int i = 0; i < a.rank(); ++i) {
    const auto x = a.dims()[static_cast<std::size_t>(i)], y = b.dims()[static_cast<std::size_t>(i)];
    if (x != dynamic && y != dynamic && x != y) return false;
  }
  return true;
}

bool fits(const Type& value, const Type& as) {
  if (!compatible(value, as)) return false;
  for (int i = 0; i < as.rank(); ++i) {
    const auto k = static_cast<std::size_t>(i);
    if (as.dims()[k] != dynamic && value.dims()[k] == dynamic) return false;
  }
  return true;
}

}  // namespace lantern::ir
