// Eager and staged adjoint cells.
#include "lantern/compiler/ad/adjoint_cell.hpp"

#include <algorithm>

#include "lantern/compiler/ad/double_step.hpp"
#include "lantern/compiler/ad/flow_mask.hpp"
#include "lantern/compiler/staging/staging.hpp"

namespace lantern::core::ad {

namespace {

/// One that is alone.
class OwnCell final : public EagerCell {
 public:
  explicit OwnCell(const Datum& like) : like_(like) {}

 private:
  const Datum& like() const override { return like_; }
  Datum like_;
};

ir::Op* emit(Opcode code, std::vector<ir::Value*> operands, const Location& loc,
             const std::vector<ir::Type>& results = {}) {
  return context().staging->builder(loc).op(code, std::move(operands), results);
}

TensorBox* tensor_box(const Datum& d) {
  const Datum& bare = strip(d);
  return bare.is_boxed(Boxed::Kind::tensor) ? static_cast<TensorBox*>(bare.box()) : nullptr;
}

}  // namespace

Datum flow(const Datum& d) {
  const TensorBox* const box = tensor_box(d);
  return box ? box->flow : Datum();
}

Datum with_flow(const Datum& d, const Datum& flow) {
  if (TensorBox* const box = tensor_box(d)) box->flow = flow;
  return d;
}

Datum flow_at(Datum flow, std::span<const Datum> indices, bool holds) {
  Datums operands{std::move(flow)};
  operands.insert(operands.end(), indices.begin(), indices.end());
  operands.push_back(Datum::integer(holds ? 1 : 0, ir::Bool));
  return evaluate({Opcode::set_, 0, {}}, operands);
}

Datum flow_everywhere(const Datum& d) {
  const TensorBox* const box = tensor_box(d);
  if (!box) return {};
  Datum all = make_tensor(ir::Kind::boolean, box->shape);
  std::ranges::fill(static_cast<TensorBox*>(all.box())->data(), std::byte{1});
  return all;
}

Datum without_flow(Datum d, const Datum& flow, const Location& loc) {
  const ir::Kind element = d.type().element();
  if (!d.is_boxed(Boxed::Kind::tensor) || !d.unique() || (element != ir::Kind::f64 && element != ir::Kind::f32))
    return perform({Opcode::select_, 0, loc}, {flow, d, zeros_like(d, loc)});
  auto& box = *static_cast<TensorBox*>(d.box());
  const auto* const where = static_cast<const TensorBox*>(flow.box())->as<bool>();
  const auto clear = [&]<class T>(T* to) {
    for (std::int64_t i = 0; i < box.count(); ++i) to[i] = where[i] ? to[i] : T(0);
  };
  if (element == ir::Kind::f64) clear(box.as<double>());
  else clear(box.as<float>());
  return d;
}

Datum flow_of_sum(const Datum& a, const Datum& b, const Location& loc) {
  const Datum x = flow(a), y = flow(b);
  return x.empty() || y.empty() ? Datum() : perform({Opcode::lor_, 0, loc}, {x, y});
}

namespace {

/// The same with another answer for the rows that an operation adds to.
Datum flow_in_rows(Datum where, const Operation& op, const Datum& row, const Datum& part) {
  Datum added = flow(part);
  if (added.empty()) added = flow_everywhere(part);
  if (added.empty()) return {};
  Datums operands{std::move(where), strip(row), added};
  return evaluate({op.code, 0, op.loc}, operands);
}

}  // namespace

void EagerCell::add(const Datum& v, const Location& loc) {
  if (value_.empty() || v.type().is_scalar()) {
    value_ = sum(value_, v, loc);
  } else {
    const Datum both = flow_of_sum(value_, v, loc);
    value_ = with_flow(combine({Opcode::add_, 0, loc}, {v}), both);
  }
}

void EagerCell::accumulate(const Operation& op, const Datums& arguments) {
  const bool first = value_.empty();
  if (first) value_ = zeros_like(like(), op.loc);
  const bool part = op.code == Opcode::add_at_ || op.code == Opcode::add_take_ || op.code == Opcode::add_slice_;
  TensorBox* const box = part ? tensor_box(value_) : nullptr;
  Datum where = box && first ? make_tensor(ir::Kind::boolean, box->shape) : box ? std::exchange(box->flow, {}) : Datum();
  value_ = combine(op, arguments);
  if (where.empty()) return;
  const std::span indices = std::span(arguments).first(arguments.size() - 1);
  with_flow(value_, op.code == Opcode::add_at_ ? flow_at(std::move(where), indices, true)
                                                : flow_in_rows(std::move(where), op, indices[0], arguments.back()));
}

// At the bottom level the cell's own memory is reused; above it, the level's mode is asked.
Datum EagerCell::combine(const Operation& op, const Datums& arguments) {
  Datums operands;
  operands.push_back(std::move(value_));
  bool tagged = operands[0].is_tagged();
  for (const Datum& d : arguments) {
    tagged |= d.is_tagged();
    operands.push_back(d);
  }
  if (tagged || operands[0].is_node()) return perform(op, operands);
  return evaluate(op, operands);
}

CellPtr eager_cell(const Datum& like) {
  return std::allocate_shared<OwnCell>(PoolAllocator<OwnCell>(), like);
}

std::shared_ptr<StagedCell> staged_cell(ir::Value* primal, const Location& loc) {
  return std::make_shared<StagedCell>(
      emit(Opcode::ref_new_, {primal}, loc, {ir::Type::ref(primal->type)})->result());
}

void StagedCell::add(const Datum& v, const Location& loc) {
  touched_ = true;
  emit(Opcode::ref_add_, {ref_, context().staging->use(v, loc)}, loc);
}

void StagedCell::accumulate(const Operation& op, const Datums& arguments) {
  touched_ = true;
  std::vector<ir::Value*> operands{ref_};
  for (const Datum& d : arguments) operands.push_back(context().staging->use(d, op.loc));
  ir::Op* const added = emit(Opcode::ref_acc_, std::move(operands), op.loc);
  added->integer = static_cast<std::int64_t>(op.code);
  if (op.text) added->text = context().staging->module().intern(op.text);
}

Datum StagedCell::get(const Location& loc) {
  return Datum::node(emit(Opcode::ref_get_, {ref_}, loc, {ref_->type.content()})->result());
}

}  // namespace lantern::core::ad
