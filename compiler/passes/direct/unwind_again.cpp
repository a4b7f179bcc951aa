// Forward parts that run more than once: without frames where nothing goes back from them, with frames before
// their backward part.
//
// A call that is marked as a checkpoint runs the function's value alone in the forward part; the backward
// part runs the forward half, which leaves its frames, and the backward half at once.
#include "lantern/compiler/passes/direct/unwinder.hpp"
#include "lantern/ir/clone.hpp"

namespace lantern::passes {

/// The forward half without frames. Its body is filled in last, when all frames are known.
ir::Function* Unwinder::value_of(ir::Function* fwd) {
  ir::Function*& value = values_[fwd];
  if (value) return value;
  const std::string base =
      fwd->name.ends_with("_fwd") ? fwd->name.substr(0, fwd->name.size() - 4) : fwd->name;
  value = module_.add_function(base, fwd->parameter_types(), fwd->result_types);
  value->loc = fwd->loc;
  unfilled_.push_back(fwd);
  return value;
}

bool Unwinder::is_frame(const Op& op) const {
  return ir::is_on_tape(op) && frames_.contains(op.integer);
}

void Unwinder::fill_values() {
  while (!unfilled_.empty()) {
    ir::Function* const fwd = unfilled_.back();
    unfilled_.pop_back();
    ir::Function* const value = values_.at(fwd);
    Renaming map;
    for (std::size_t i = 0; i < fwd->body->params.size(); ++i) {
      value->body->params[i]->name = fwd->body->params[i]->name;
      map[fwd->body->params[i]] = value->body->params[i];
    }
    copy_ops(fwd->body, value->body, map, Frames::dropped);
  }
}

/// Copies a block's operations to the end of another. What `map` does not hold stays as it is.
void Unwinder::copy_ops(const Block* from, Block* to, Renaming& map, Frames frames) {
  ir::Builder into(module_, to);
  for (const Op* op : from->ops) ir::clone(into, *op, map);
  // States of inner loops are sorted out in the forward part: what is popped there goes to another tape.
  if (frames == Frames::dropped) drop_frames(to);
}

}  // namespace lantern::passes
