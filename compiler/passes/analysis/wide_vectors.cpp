// Which code on wide vectors can go strip by strip, and which should.
#include "lantern/compiler/passes/analysis/wide_vectors.hpp"

#include <algorithm>

namespace lantern::passes {

namespace {

/// Registers for vectors: AVX-512 has 32, AVX2 and SSE2 have 16.
int registers(int native) { return native >= 8 ? 32 : 16; }

bool accesses_some(const Op& op) {
  return op.is(Opcode::lane_get_) || op.is(Opcode::lane_set_) || op.is(Opcode::lane_add_at_);
}

/// A lane's number with something added that all lanes share.
bool in_lane_order(const Value* v) {
  if (!v->def) return false;
  if (v->def->is(Opcode::lane_index_)) return true;
  if (!(v->def->is(Opcode::add_) || v->def->is(Opcode::sub_))) return false;
  const Value *x = v->def->operands[0], *y = v->def->operands[1];
  const auto splat = [](const Value* w) { return w->def && w->def->is(Opcode::lane_splat_); };
  return (splat(y) && in_lane_order(x)) || (v->def->is(Opcode::add_) && splat(x) && in_lane_order(y));
}

class Analysis {
 public:
  Analysis(Block* root, int lanes, int native) : native_(native) {
    found_.root = root;
    found_.lanes = lanes;
  }

  std::optional<WideVectors> run() {
    bool legal = true;
    ir::walk(found_.root, [&](const Op* op) {
      note(op->results);
      for (const Block* b : op->blocks) note(b->params);
      bool holds = false;
      for (const Value* v : op->results) holds |= v->type.is_vector();
      for (Block* b : op->blocks)
        ir::walk(b, [&](const Op* o) {
          for (const Value* v : o->results) holds |= v->type.is_vector();
          for (const Value* v : o->operands) holds |= v->type.is_vector();  // it may only add them somewhere
        });
      if (holds && !op->blocks.empty()) found_.constructs.insert(op);
    });
    ir::walk(found_.root, [&](const Op* op) { legal &= allowed(*op); });
    if (!legal) return {};
    if (!worthwhile()) return {};
    return std::move(found_);
  }

 private:
  void note(const std::vector<Value*>& values) {
    for (const Value* v : values)
      if (v->type.is_vector()) found_.wide.insert(v);
  }

  bool allowed(const Op& op) {
    bool vectors = false;
    const auto right = [&](const Value* v) {
      if (!v->type.is_vector()) return true;
      vectors = true;
      return v->type.lanes() == found_.lanes && found_.wide.contains(v);
    };
    if (!std::ranges::all_of(op.operands, right) || !std::ranges::all_of(op.results, right)) return false;
    if (op.is(Opcode::loop_) || op.is(Opcode::branch_)) {
      for (const Value* v : op.results)
        if (v->type.is_vector() && v->type.kind() != ir::Kind::f64) return false;
      if (!op.is(Opcode::loop_) || !found_.holds(&op)) return true;
      bool plain = true;
      ir::walk(op.blocks[0], [&](const Op* o) {
        for (const Value* v : o->operands) plain &= !v->type.is_vector();
        for (const Value* v : o->results) plain &= !v->type.is_vector();
      });
      return plain;
    }
    if (!vectors) return true;
    if (op.is(Opcode::yield_)) return op.parent != found_.root;
    if (!op.blocks.empty() || op.results.size() != 1) return false;
    if (accesses_some(op)) {
      if (found_.active && found_.active != op.operands.back()) return false;
      found_.active = op.operands.back();
      if (!ir::visible_from(found_.active, found_.root)) return false;
    }
    return found_.is_repeatable(&op) || found_.is_simple(op);
  }

  /// How many vectors a block's own operations hold at once. What comes from outside stays throughout.
  int most_alive(const Block* block) const {
    std::unordered_set<const Value*> alive;
    const auto held = [&](const Value* v) {
      return found_.is_wide(v) && !(v->def && found_.is_repeatable(v->def));
    };
    for (const Op* op : block->ops)
      if (found_.is_simple(*op))
        for (const Value* v : op->operands)
          if (held(v) && v->block != block) alive.insert(v);
    std::size_t most = alive.size();
    for (std::size_t i = block->ops.size(); i-- > 0;) {
      const Op& op = *block->ops[i];
      for (const Value* v : op.results) alive.erase(v);
      if (op.is(Opcode::yield_) || !op.blocks.empty()) continue;
      for (const Value* v : op.operands)
        if (held(v)) alive.insert(v);
      most = std::max(most, alive.size());
    }
    return static_cast<int>(most);
  }

  /// Some vectors do not fit into the registers; and so it is in each loop that carries vectors along.
  bool worthwhile() const {
    const int per_vector = found_.lanes / native_;
    const auto too_many = [&](const Block* b) { return most_alive(b) * per_vector > registers(native_); };
    bool any = false, fits = false;
    ir::walk(found_.root, [&](const Op* op) {
      if (!op->is(Opcode::loop_)) return;
      bool here = too_many(op->blocks[1]);
      ir::walk(op->blocks[1], [&](const Op* o) {
        for (const Block* b : o->blocks) here |= too_many(b);
      });
      any |= here;
      fits |= !here && std::ranges::any_of(op->results, [&](const Value* v) { return found_.is_wide(v); });
    });
    return any && !fits;
  }

  WideVectors found_;
  int native_;
};

}  // namespace

bool WideVectors::is_repeatable(const Op* op) const {
  if (op->is(Opcode::lane_index_) || op->is(Opcode::lane_splat_)) return true;
  if (!is_arithmetic(*op)) return false;
  const ir::Kind kind = op->result()->type.kind();
  return kind == ir::Kind::boolean || (kind == ir::Kind::i64 && in_lane_order(op->result()));
}

bool WideVectors::is_arithmetic(const Op& op) const {
  if (op.results.size() != 1 || !op.result()->type.is_vector() || !op.blocks.empty()) return false;
  return ir::info(op.code).elementwise || op.is(Opcode::select_) || op.is(Opcode::cast_);
}

std::optional<WideVectors::Access> WideVectors::access(const Op& op) const {
  switch (op.code) {
    case Opcode::get_:
    case Opcode::set_:
    case Opcode::add_at_:
    case Opcode::lane_get_:
    case Opcode::lane_set_:
    case Opcode::lane_add_at_:
      break;
    default:
      return {};
  }
  const auto rank = static_cast<std::size_t>(op.operands[0]->type.rank());
  std::optional<Access> found;
  for (std::size_t i = 1; i <= rank; ++i) {
    const Value* index = op.operands[i];
    if (!index->type.is_vector()) continue;
    if (found) return {};
    found = Access{i, index, in_lane_order(index)};
  }
  return found;
}

const std::vector<const Op*>& WideVectors::uses(const Value* v) const {
  static const std::vector<const Op*> none;
  const auto it = used_by.find(v);
  return it == used_by.end() ? none : it->second;
}

std::vector<const Op*> WideVectors::users(const Value* v) const {
  std::vector<const Op*> found;
  std::vector<const Value*> todo{v};
  std::unordered_set<const Value*> seen{v};
  while (!todo.empty()) {
    const Value* from = todo.back();
    todo.pop_back();
    for (const Op* op : uses(from)) {
      if (!is_repeatable(op))
        found.push_back(op);
      else if (seen.insert(op->result()).second)
        todo.push_back(op->result());
    }
  }
  return found;
}

void WideVectors::find_uses() {
  used_by.clear();
  ir::walk(root, [&](const Op* op) {
    for (const Value* v : op->operands)
      if (v->type.is_vector() || v->type.is_tensor()) used_by[v].push_back(op);
  });
}

std::optional<WideVectors> wide_vectors(Block* root, int lanes, int native) {
  return Analysis(root, lanes, native).run();
}

}  // namespace lantern::passes
