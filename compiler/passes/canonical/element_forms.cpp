// Products, sums and accesses written out.
#include "lantern/compiler/passes/canonical/element_forms.hpp"

#include <algorithm>
#include <ranges>

#include "lantern/ir/points.hpp"
#include "lantern/ir/shape.hpp"

namespace lantern::passes {

namespace {

/// A 6 by 6 matrix: the covariance of a position and a velocity in space.
constexpr std::int64_t most_expanded = 36;

bool is_number_or_small(const Value* v) { return v->type.is_scalar() || is_small(v->type); }

/// The operation that says what is computed: of `ref_acc` the one it names.
Opcode meaning(const Op& op) { return op.is(Opcode::ref_acc_) ? ir::accumulated_by(op) : op.code; }

/// The type of what is accessed: a cell's content.
const ir::Type& accessed(const Op& op) {
  const ir::Type& type = op.operands[0]->type;
  return type.is_ref() ? type.content() : type;
}

/// Where the element lies that the indices of an access name, or nothing. `count`: how many indices; they
/// name the first element of a row where there are fewer than dimensions.
std::optional<std::size_t> place(const Op& op, std::size_t count) {
  const std::vector<std::int64_t>& dims = accessed(op).dims();
  std::int64_t at = 0;
  for (std::size_t d = 0; d < dims.size(); ++d) {
    std::int64_t index = 0;
    if (d < count) {
      const Op* known = constant(op.operands[d + 1]);
      if (!known || known->integer < 0 || known->integer >= dims[d]) return std::nullopt;
      index = known->integer;
    }
    at = at * dims[d] + index;
  }
  return static_cast<std::size_t>(at);
}

/// How many indices an access has, or nothing for other operations.
std::optional<std::size_t> indices(const Op& op) {
  const Opcode code = meaning(op);
  if (code == Opcode::take_ || code == Opcode::add_take_) return 1;
  if (code != Opcode::get_ && code != Opcode::set_ && code != Opcode::add_at_) return {};
  return static_cast<std::size_t>(accessed(op).rank());
}

std::int64_t size_in(const ir::Notation& n, const Op& op, char letter) {
  const ir::SizeSource from = *ir::size_source(n, letter);
  const ir::Type& type = op.operands[from.operand]->type;
  return (type.is_ref() ? type.content() : type).dims()[static_cast<std::size_t>(from.dimension)];
}

ir::Points points_of(const ir::Notation& n, const Op& op) {
  std::vector<std::int64_t> sizes;
  for (const char c : n.letters()) sizes.push_back(size_in(n, op, c));
  return {n.letters(), std::move(sizes)};
}

class Form {
 public:
  Form(ir::Builder& b, const Op& op, const ElementsOf& elements) : b_(b), op_(op), elements_(elements) {}

  std::vector<Value*> run() {
    const Opcode code = meaning(op_);
    if (const auto count = indices(op_)) return access(code, *place(op_, *count));
    if (ir::info(code).elementwise) return each();
    if (const auto n = ir::concrete_notation(op_)) return products(*n);
    const auto n = op_.results.empty() ? std::size_t{0} : element_count(op_.result()->type);
    switch (code) {
      case Opcode::cast_:
      case Opcode::stop_gradient_:
        return mapped([&](Value* x) { return b_.emit(code, {x}, op_.integer); });
      case Opcode::cast_like_:
        return mapped([&](Value* x) {
          return b_.emit(Opcode::cast_, {x}, static_cast<std::int64_t>(op_.operands[1]->type.element()));
        });
      case Opcode::copy_:
      case Opcode::reshape_:
        return of(0);
      case Opcode::dim_:
        return {b_.integer(op_.operands[0]->type.dims()[static_cast<std::size_t>(op_.integer)])};
      case Opcode::fill_:
        return std::vector<Value*>(n, op_.operands[0]);
      case Opcode::undef_:
        return std::vector<Value*>(n, b_.undef(ir::Type(op_.result()->type.element())));
      case Opcode::zeros_like_:
        return std::vector<Value*>(n, b_.zero(ir::Type(op_.result()->type.element())));
      default:
        return {};
    }
  }

 private:
  std::vector<Value*> of(std::size_t operand) const { return elements_(op_.operands[operand]); }

  void add(Value*& sum, Value* x) { sum = sum ? b_.add({sum, x}) : x; }

  template <class F>
  std::vector<Value*> mapped(F f) {
    std::vector<Value*> out = of(0);
    for (Value*& x : out) x = f(x);
    return out;
  }

  std::vector<Value*> each() {
    std::vector<std::vector<Value*>> operands;
    for (std::size_t i = 0; i < op_.operands.size(); ++i) operands.push_back(of(i));
    std::vector<Value*> out;
    for (std::size_t i = 0; i < element_count(op_.result()->type); ++i) {
      std::vector<Value*> at;
      for (const std::vector<Value*>& x : operands) at.push_back(x[x.size() == 1 ? 0 : i]);
      out.push_back(b_.emit(op_.code, at, op_.integer));
    }
    return out;
  }

  /// Reads, or writes, what the indices name, which starts at `at`.
  std::vector<Value*> access(Opcode code, std::size_t at) {
    if (code == Opcode::get_) return {of(0)[at]};
    const auto first = static_cast<std::ptrdiff_t>(at);
    if (code == Opcode::take_) {
      const std::vector<Value*> x = of(0);
      return {x.begin() + first,
              x.begin() + first + static_cast<std::ptrdiff_t>(element_count(op_.result()->type))};
    }
    const std::vector<Value*> given = of(op_.operands.size() - 1);
    if (op_.is(Opcode::ref_acc_)) {
      std::vector<Value*> out(element_count(accessed(op_)), nullptr);
      std::ranges::copy(given, out.begin() + first);
      return out;
    }
    std::vector<Value*> out = of(0);
    for (std::size_t i = 0; i < given.size(); ++i)
      out[at + i] = code == Opcode::set_ ? given[i] : b_.add({out[at + i], given[i]});
    return out;
  }

  /// A sum of products; of a cell what each element has added to it, null where that is nothing.
  std::vector<Value*> products(const ir::Notation& n) {
    std::vector<std::vector<Value*>> factors;
    ir::Points points = points_of(n, op_);
    for (std::size_t i = 0; i < n.operands.size(); ++i) {
      if (!n.is_factor(i)) continue;
      factors.push_back(of(i));
      points.follow(n.operands[i].at, op_.operands[i]->type.dims());
    }
    const bool cell = op_.is(Opcode::ref_acc_);
    const ir::Type type = cell ? accessed(op_) : op_.result()->type;
    points.follow(n.result, type.dims());
    std::vector<Value*> out(element_count(type), nullptr);
    if (n.accumulates && !cell) out = of(0);
    points.run([&](std::span<const std::int64_t> at) {
      Value* product = nullptr;
      for (std::size_t k = 0; k < factors.size(); ++k) {
        Value* const x = factors[k][static_cast<std::size_t>(at[k])];
        product = product ? b_.mul({product, x}) : x;
      }
      add(out[static_cast<std::size_t>(at.back())], product);
    });
    const ir::Type element(type.element());
    for (Value*& x : out)
      if (!x && !cell) x = element.is_float_element() ? b_.number(0, element) : b_.integer(0, element);
    return out;
  }

  ir::Builder& b_;
  const Op& op_;
  const ElementsOf& elements_;
};

}  // namespace

bool is_small(const ir::Type& type) {
  if (!type.is_tensor() || type.rank() == 0) return false;
  std::int64_t n = 1;
  for (const std::int64_t d : type.dims()) {
    if (d < 1 || d > most_expanded) return false;  // unknown dimensions are negative
    n *= d;
    if (n > most_expanded) return false;
  }
  return true;
}

std::size_t element_count(const ir::Type& type) {
  std::size_t n = 1;
  if (type.is_tensor())
    for (const std::int64_t d : type.dims()) n *= static_cast<std::size_t>(d);
  return n;
}

std::optional<std::size_t> element_form_cost(const Op& op) {
  const Opcode code = meaning(op);
  const auto small = [](const Value* v) { return is_number_or_small(v); };
  const std::size_t cell = op.is(Opcode::ref_acc_) ? 1 : 0;
  if (cell && !is_small(accessed(op))) return std::nullopt;
  if (!std::ranges::all_of(op.operands.begin() + static_cast<std::ptrdiff_t>(cell), op.operands.end(),
                           small) ||
      !std::ranges::all_of(op.results, small))
    return std::nullopt;
  if (const auto count = indices(op)) {
    if (!place(op, *count)) return std::nullopt;
    return std::size_t{1};
  }
  const std::size_t n = op.results.empty() ? element_count(accessed(op)) : element_count(op.result()->type);
  if (ir::info(code).elementwise) return n;
  if (const auto sum = ir::concrete_notation(op)) {
    if (!sum->sizes.empty()) return std::nullopt;
    std::size_t count = sum->factors();
    for (const char c : sum->letters()) count *= static_cast<std::size_t>(size_in(*sum, op, c));
    return count;
  }
  switch (code) {
    case Opcode::fill_:
      return std::ranges::all_of(op.operands.begin() + 1, op.operands.end(), constant)
                 ? std::optional(std::size_t{1})
                 : std::nullopt;
    case Opcode::copy_:
    case Opcode::reshape_:
    case Opcode::dim_:
    case Opcode::undef_:
    case Opcode::zeros_like_:
      return std::size_t{1};
    case Opcode::cast_:
    case Opcode::cast_like_:
    case Opcode::stop_gradient_:
      return n;
    default:
      return std::nullopt;
  }
}

bool is_row_access(const Op& op) {
  const Opcode code = meaning(op);
  if ((code != Opcode::take_ && code != Opcode::add_take_) || element_form_cost(op)) return false;
  const ir::Type& row = code == Opcode::take_ ? op.result()->type : op.operands.back()->type;
  return is_small(row) && std::ranges::equal(accessed(op).dims() | std::views::drop(1), row.dims());
}

std::vector<Value*> element_form(ir::Builder& b, const Op& op, const ElementsOf& elements) {
  return Form(b, op, elements).run();
}

}  // namespace lantern::passes
