// Cuts long blocks into functions.
#include "lantern/compiler/passes/memory/outline.hpp"

#include <algorithm>
#include <vector>

#include "lantern/ir/checkpoint.hpp"
#include "lantern/ir/pointer_map.hpp"
#include "lantern/ir/shape.hpp"
#include "lantern/ir/team.hpp"

namespace lantern::passes {

namespace {

using ir::Block;
using ir::Builder;
using ir::Function;
using ir::Op;
using ir::Opcode;
using ir::Value;

// In operations. A loop costs a compiler as much as many.
constexpr std::size_t loop_weight = 40, longest_block = 3000, piece = 250;
// What is left at the end of a block and is shorter stays with what is before it.
constexpr std::size_t least_piece = 25;
// What an iteration keeps or reads back goes to memory, where compilers compare each access with each other one:
// the body of a loop is cut earlier.
constexpr std::size_t longest_loop_body = 700;
// Loop nests in one function: from a few dozen on, each costs a compiler more than the one before.
constexpr std::ptrdiff_t most_loops = 32;

// A launch of a kernel, whose body is not the host's.
constexpr std::size_t launch_weight = 8;

/// `kernels`: parallel loops are launches.
std::size_t weight(const Op* op, bool kernels) {
  if (kernels && ir::is_parallel(*op)) return launch_weight;
  std::size_t sum = op->is(Opcode::loop_) ? loop_weight : 1;
  for (const Block* b : op->blocks)
    for (const Op* inner : b->ops) sum += weight(inner, kernels);
  return sum;
}

class Outline {
 public:
  Outline(ir::Module& module, Function* function, bool kernels) : module_(module), function_(function), kernels_(kernels) {}

  void run() {
    std::vector<Block*> blocks{function_->body};
    ir::walk(function_->body, [&](const Op* op) {
      if (kernels_ && op->is(Opcode::loop_) && ir::is_parallel(*op)) return false;
      if (op->is(Opcode::loop_)) blocks.push_back(op->blocks[1]);
      return true;
    });
    for (std::size_t i = blocks.size(); i-- > 0;)
      if (too_long(blocks[i]) && data_only(blocks[i])) split(blocks[i]);
  }

 private:
  bool too_long(const Block* block) const {
    std::size_t total = 0;
    for (const Op* op : block->ops) total += weight(op, kernels_);
    const auto loops = std::ranges::count_if(
        block->ops, [&](const Op* op) { return op->is(Opcode::loop_) && !(kernels_ && ir::is_parallel(*op)); });
    return total > (block->parent ? longest_loop_body : longest_block) || loops > most_loops;
  }

  void split(Block* block) {
    const std::vector<Op*> ops(block->ops.begin(), block->ops.end() - 1);
    Op* const yield = block->ops.back();
    std::vector<std::vector<Op*>> pieces;
    std::size_t sum = piece;
    std::int64_t in_team = 0;  // so many calls belong together from here on
    for (Op* op : ops) {
      in_team = std::max(in_team - 1, ir::team_size(*op));
      // Memory is given back where it was last used: elsewhere is not known whether there is any.
      if (sum >= piece && (in_team <= 0 || ir::team_size(*op) > 0) && !op->is(Opcode::forget_)) {
        pieces.emplace_back();
        sum = 0;
      }
      pieces.back().push_back(op);
      sum += weight(op, kernels_);
    }
    if (sum < least_piece && pieces.size() > 1) {
      std::vector<Op*> rest = std::move(pieces.back());
      pieces.pop_back();
      pieces.back().insert(pieces.back().end(), rest.begin(), rest.end());
    }
    // One or two constructs are most of it: they would be no shorter on their own, and a result made in a
    // piece cannot lie where the caller wants it.
    if (pieces.size() < (block->parent ? 2 : 3)) return;
    make_shapes_again(pieces);
    find_crossing(pieces, *yield);
    block->ops.clear();
    if (slots_.empty()) {
      frame_ = nullptr;
    } else {
      make_frame(static_cast<std::int64_t>(slots_.size()));
    }
    moved_.clear();
    for (std::vector<Op*>& p : pieces) cut(block, p);
    // What is yielded comes out of the frame.
    for (Value*& v : yield->operands) v = in_block(block, v, yield->loc);
    block->ops.push_back(yield);
  }

  /// Cells and continuations stay where they are.
  static bool data_only(const Block* block) {
    bool only = true;
    const auto look = [&](const Value* v) { only &= !v->type.is_ref() && !v->type.is_cont(); };
    ir::walk(const_cast<Block*>(block), [&](const Op* op) {
      for (const Value* v : op->operands) look(v);
      for (const Value* v : op->results) look(v);
    });
    return only;
  }

  static bool is_number(const Value* v) { return v->type == ir::F64; }
  /// Constants and lanes' numbers, which each part makes for itself. Of an index that was handed in, nothing
  /// would see any more that its lanes lie side by side.
  static bool is_constant(const Value* v) {
    return v->def && v->def->is(Opcode::constant_, Opcode::lane_index_);
  }

  /// A filled tensor of which another piece asks for the shape is made there once more, from its sizes and
  /// without memory; handed over, it would count as read.
  void make_shapes_again(std::vector<std::vector<Op*>>& pieces) {
    ir::PointerMap<const Value, std::size_t> home;
    for (std::size_t p = 0; p < pieces.size(); ++p)
      for (const Op* op : pieces[p])
        if (op->is(Opcode::fill_)) home[op->result()] = p;
    for (std::size_t p = 0; p < pieces.size(); ++p) {
      std::vector<Op*> ops;
      ir::PointerMap<const Value, Value*> here;
      const auto look = [&](Op* user) {
        for (std::size_t i = 0; i < user->operands.size(); ++i) {
          Value*& v = user->operands[i];
          const std::size_t* at = home.find(v);
          if (!at || *at == p || !ir::only_shape(*user, i)) continue;
          Value*& again = here[v];
          if (!again) {
            Op* copy = module_.new_op(Opcode::fill_, v->def->parent);
            copy->loc = user->loc;
            copy->operands = v->def->operands;
            again = module_.add_result(copy, v->type);
            ops.push_back(copy);
          }
          v = again;
        }
      };
      for (Op* op : pieces[p]) {
        look(op);
        for (Block* b : op->blocks) ir::walk(b, look);
        ops.push_back(op);
      }
      pieces[p] = std::move(ops);
    }
  }

  /// Which values are asked for in another piece than they are made in, and by which piece last.
  void find_crossing(const std::vector<std::vector<Op*>>& pieces, const Op& yield) {
    slots_.clear();
    crossing_.clear();
    ir::PointerMap<const Value, std::size_t> home;
    for (std::size_t p = 0; p < pieces.size(); ++p)
      for (const Op* op : pieces[p])
        for (const Value* v : op->results) home[v] = p;
    const auto ask = [&](Value* v, std::size_t p) {
      const std::size_t* at = home.find(v);
      if (!at || *at == p || is_constant(v) || !crossing_.insert(v)) return;
      if (!is_number(v) || kernels_) return;  // the frame would lie in the GPU's memory
      const auto next = static_cast<std::int64_t>(slots_.size());
      slots_[v] = next;
    };
    for (std::size_t p = 0; p < pieces.size(); ++p)
      for (Op* op : pieces[p]) {
        for (Value* v : op->operands) ask(v, p);
        for (Block* b : op->blocks)
          ir::walk(b, [&](const Op* inner) {
            for (Value* v : inner->operands) ask(v, p);
          });
      }
    for (Value* v : yield.operands) ask(v, pieces.size());
  }

  /// At the start of the function: memory for the numbers that wait.
  void make_frame(std::int64_t size) {
    Block* body = function_->body;
    std::vector<Op*> rest;
    rest.swap(body->ops);
    Builder b(module_, body);
    Value* none = b.undef(ir::F64);
    Value* n = b.integer(size);
    frame_ = b.op(Opcode::fill_, {none, n}, {ir::Type::tensor(ir::Kind::f64, {size})})->result();
    frame_->name = "frame";
    body->ops.insert(body->ops.end(), rest.begin(), rest.end());
  }

  /// Moves operations into a function of their own, and calls it at the end of the block.
  void cut(Block* block, const std::vector<Op*>& ops) {
    ir::PointerSet<const Value> own;
    for (const Op* op : ops)
      for (const Value* v : op->results) own.insert(v);

    Function* part = module_.add_function(function_->name + "_part", {}, {});
    part->loc = ops.front()->loc;
    std::vector<Value*> arguments;
    ir::PointerMap<const Value, Value*> here;  // outer values as the part knows them
    const auto parameter = [&](Value* v) {
      Value* p = module_.add_param(part->body, v->type, v->name);
      arguments.push_back(v);
      return p;
    };
    Value* frame = nullptr;
    if (frame_) frame = parameter(frame_);
    ir::PointerSet<const Value> inside;  // blocks' parameters and what nested operations make
    for (const Op* op : ops) inside_of(op, inside);

    Builder b(module_, part->body);
    const auto local = [&](Value* v) -> Value* {
      if (own.contains(v) || inside.contains(v)) return v;
      if (Value* const* known = here.find(v)) return *known;
      Value* result = nullptr;
      if (is_constant(v)) {
        result = b.again(*v->def);
      } else if (const std::int64_t* slot = slots_.find(v)) {
        result = b.emit(Opcode::get_, {frame, b.integer(*slot)});
        result->name = v->name;
      } else {
        result = parameter(current(v));
      }
      return here[v] = result;
    };
    for (Op* op : ops) {
      b.loc = op->loc;
      for (Value*& v : op->operands) v = local(v);
      for (Block* nested : op->blocks) {
        nested->function = part;
        ir::walk(nested, [&](Op* inner) {
          for (Block* n : inner->blocks) n->function = part;
          for (Value*& v : inner->operands) v = local(v);
        });
      }
      op->parent = part->body;
      part->body->ops.push_back(op);
      for (Value* v : op->results) {
        v->block = part->body;
        if (const std::int64_t* slot = slots_.find(v)) {
          Value* at = b.integer(*slot);
          Op* save = b.op(Opcode::set_, {frame, at, v}, {frame->type});
          save->in_place = true;
          frame = save->result();
        }
      }
    }

    std::vector<Value*> results;
    if (frame_) results.push_back(frame);
    std::vector<Value*> handed;
    for (const Op* op : ops)
      for (Value* v : op->results)
        if (crossing_.contains(v) && !slots_.contains(v)) handed.push_back(v);
    results.insert(results.end(), handed.begin(), handed.end());
    part->result_types = ir::types_of(results);
    b.yield(results);

    Builder outer(module_, block, ops.front()->loc);
    Op* call = outer.call(part, std::move(arguments));
    std::size_t at = 0;
    if (frame_) frame_ = call->results[at++];
    for (Value* v : handed) {
      call->results[at]->name = v->name;
      moved_[v] = call->results[at++];
    }
  }

  static void inside_of(const Op* op, ir::PointerSet<const Value>& inside) {
    for (const Block* b : op->blocks) {
      for (const Value* v : b->params) inside.insert(v);
      for (const Op* inner : b->ops) {
        for (const Value* v : inner->results) inside.insert(v);
        inside_of(inner, inside);
      }
    }
  }

  /// A value that was moved into a part, as the block knows it now.
  Value* current(Value* v) const {
    Value* const* call = moved_.find(v);
    return call ? *call : v;
  }

  Value* in_block(Block* block, Value* v, const ir::Location& loc) {
    Builder b(module_, block, loc);
    if (const std::int64_t* slot = slots_.find(v)) return b.emit(Opcode::get_, {frame_, b.integer(*slot)});
    if (is_constant(v) && v->block->function != block->function) return b.again(*v->def);
    return current(v);
  }

  ir::Module& module_;
  Function* function_;
  bool kernels_;
  Value* frame_ = nullptr;
  ir::PointerMap<const Value, std::int64_t> slots_;  ///< of numbers, in the frame
  ir::PointerSet<const Value> crossing_;
  ir::PointerMap<const Value, Value*> moved_;  ///< results of calls in place of what moved
};

}  // namespace

void outline(ir::Module& module, bool kernels) {
  const std::vector<Function*> functions = module.functions();
  for (Function* f : functions)
    if (!f->cps) Outline(module, f, kernels).run();
}

}  // namespace lantern::passes
