// Copies of a trip's operations, at other trips' indices.
#include "lantern/compiler/passes/shifted_trips.hpp"

namespace lantern::passes {

std::optional<TripRange> trip_range(const Op* loop) {
  if (!loop->is(Opcode::loop_) || loop->integer != 0 || loop->blocks[0]->ops.size() > 3) return {};
  TripRange r;
  if (const auto up = counted(loop)) {
    r.index = up->index;
    r.number = loop->blocks[1]->params[up->index];
    r.first = offset(loop->operands[up->index]);
    r.last = offset(up->bound);
  } else if (const auto down = counts_down(loop)) {
    r.index = down->index;
    r.number = down->trip;
    r.ahead = 1;
    r.last = offset(loop->operands[down->index]);
  } else {
    return {};
  }
  if (!(r.number->type == ir::I64)) return {};
  return r;
}

Value* ShiftedTrips::number(std::int64_t shift) {
  Value*& v = numbers_[shift];
  if (v) return v;
  const auto by = static_cast<std::int64_t>(base_.by + static_cast<std::uint64_t>(shift));
  if (!base_.base) return v = b_.integer(by);
  auto* const base = const_cast<Value*>(base_.base);
  if (by == 0) return v = base;
  return v = b_.emit(by > 0 ? Opcode::add_ : Opcode::sub_, {base, b_.integer(by > 0 ? by : -by)});
}

std::vector<Value*> ShiftedTrips::indices(const Op& access, std::int64_t shift) {
  std::vector<Value*> all;
  const auto rank = static_cast<std::size_t>(access.operands[0]->type.rank());
  for (std::size_t d = 1; d <= rank; ++d) all.push_back(at(access.operands[d], shift));
  return all;
}

Value* ShiftedTrips::at(Value* v, std::int64_t shift) {
  const Block* const body = loop_->blocks[1];
  if (v->block != body) return v;
  if (v->type == ir::I64)
    if (const Offset o = offset(v); o.base == body->params[range_.index])
      return number(shift + range_.ahead + static_cast<std::int64_t>(o.by));
  if (!v->def) return loop_->operands[v->index];
  if (constant(v)) shift = 0;
  if (const auto it = made_.find({v, shift}); it != made_.end()) return it->second;
  Value* const made = copy(*v->def, shift);
  return made_[{v, shift}] = made;
}

Value* ShiftedTrips::copy(const Op& op, std::int64_t shift) {
  std::vector<Value*> operands;
  for (Value* v : op.operands) {
    // An element that no trip has changed yet: as it was before the loop.
    const bool state = op.is(Opcode::get_) && v == op.operands[0] && v->block == loop_->blocks[1];
    if (state)
      while (v->def) v = v->def->operands[0];
    operands.push_back(at(v, shift));
  }
  const Key key{op.code, op.integer, operands};
  if (!operands.empty())
    if (const auto it = equal_.find(key); it != equal_.end()) return it->second;
  Op* const made = b_.op(op.code, operands, {op.result()->type});
  made->number = op.number;
  made->integer = op.integer;
  made->loc = op.loc;
  made->result()->name = op.result()->name;
  if (!operands.empty()) equal_[key] = made->result();
  return made->result();
}

}  // namespace lantern::passes
