// Copies of a trip's operations, at other trips' indices.
#include "lantern/compiler/passes/shifted_trips.hpp"

#include <algorithm>

#include "lantern/ir/library_function.hpp"

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

std::size_t price(const Block& b) {
  constexpr std::size_t function = 40, division = 16;
  std::size_t sum = 0;
  for (const Op* op : b.ops) {
    if (op->results.empty() || op->is(Opcode::constant_)) continue;
    const bool slow =
        (op->is(Opcode::div_) || op->is(Opcode::sqrt_)) && op->result()->type.is_float_element();
    sum += ir::is_library_function(op->code) ? function : slow ? division : 1;
  }
  return sum;
}

Value* written(ir::Builder& b, const Offset& o) {
  const auto by = static_cast<std::int64_t>(o.by);
  if (!o.base) return b.integer(by);
  auto* const base = const_cast<Value*>(o.base);
  if (by == 0) return base;
  return b.emit(by > 0 ? Opcode::add_ : Opcode::sub_, {base, b.integer(by > 0 ? by : -by)});
}

Value* ShiftedTrips::number(std::size_t loop, std::int64_t shift) {
  Value*& v = numbers_[loop][shift];
  const Offset& base = loops_[loop].base;
  if (!v) v = written(b_, {base.base, base.by + static_cast<std::uint64_t>(shift)});
  return v;
}

Value* ShiftedTrips::at(Value* v, std::int64_t shift) {
  const auto around =
      std::ranges::find_if(loops_, [&](const TripBase& l) { return v->block == l.loop->blocks[1]; });
  if (around == loops_.end()) return v;
  if (v->type == ir::I64) {
    const Offset o = offset(v);
    for (std::size_t k = 0; k < loops_.size(); ++k)
      if (o.base == loops_[k].loop->blocks[1]->params[loops_[k].range.index])
        return number(k, (k == 0 ? shift : 0) + loops_[k].range.ahead + static_cast<std::int64_t>(o.by));
  }
  if (!v->def) return at(around->loop->operands[v->index], shift);
  if (constant(v)) shift = 0;
  if (const auto it = made_.find({v, shift}); it != made_.end()) return it->second;
  Value* const made = copy(*v->def, shift);
  return made_[{v, shift}] = made;
}

Value* ShiftedTrips::copy(const Op& op, std::int64_t shift) {
  std::vector<Value*> operands;
  for (Value* v : op.operands) operands.push_back(at(v, shift));
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
