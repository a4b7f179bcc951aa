// One walk over a function in order; a value is visible while its block is open and once it has been met.
#include "lantern/ir/verify.hpp"

#include <limits>
#include <type_traits>
#include <unordered_map>
#include <unordered_set>

#include "lantern/ir/checkpoint.hpp"
#include "lantern/ir/error.hpp"
#include "lantern/ir/infix.hpp"
#include "lantern/ir/external.hpp"
#include "lantern/ir/notation.hpp"
#include "lantern/ir/print.hpp"
#include "lantern/ir/prototype.hpp"
#include "lantern/ir/team.hpp"

namespace lantern::ir {

namespace {

std::string list(const std::vector<Type>& types) {
  return types.empty() ? "nothing" : joined(types);
}

bool all_fit(const std::vector<Type>& values, const std::vector<Type>& as) {
  if (values.size() != as.size()) return false;
  for (std::size_t i = 0; i < values.size(); ++i)
    if (!fits(values[i], as[i])) return false;
  return true;
}

/// A call of a continuation: whoever ends with it leaves the rest of the program to it.
bool passes_continuation(const Op& op) {
  return op.is(Opcode::jump_, Opcode::halt_) ||
         (op.is(Opcode::call_) && !op.operands.empty() && op.operands.back()->type.is_cont());
}

/// As many as a type's name can say.
constexpr std::int64_t most_lanes = 999;

class Verifier {
 public:
  using Functions = std::unordered_set<const Function*>;

  Verifier(const Function& function, const Functions& module_functions)
      : function_(function), module_functions_(module_functions) {}

  void run() {
    check_signature();
    open(function_.body, nullptr);
    while (!stack_.empty()) step();
  }

 private:
  struct Position {
    const Block* block;
    const Op* owner;           ///< null for the body
    std::size_t next = 0;      ///< next operation
    std::size_t pending = 0;   ///< blocks of operation `next - 1` already walked
    const Op* exit = nullptr;  ///< the operation that calls a continuation
    int calls[2] = {0, 0};     ///< by the blocks of operation `next - 1`
  };

  void step() {
    Position& top = stack_.back();
    if (top.next > 0) {
      const Op* open_op = top.block->ops[top.next - 1];
      if (top.pending < open_op->blocks.size()) {
        open(open_op->blocks[top.pending], open_op);  // `top` dangles from here on
        return;
      }
      leave(*open_op, top);
    }
    if (top.next == top.block->ops.size()) {
      close();
      return;
    }
    const Op* op = top.block->ops[top.next++];
    top.pending = 0;
    top.calls[0] = top.calls[1] = 0;
    enter(op, top);
  }

  // ---- blocks

  void open(const Block* block, const Op* owner) {
    op_ = owner;
    need(block != nullptr, "a block", "null");
    need(blocks_.insert(block).second, "a block of its own", "one that occurs twice");
    need(block->parent == owner, "the block's parent to be the operation that holds it", "another");
    need(block->function == &function_, "the block to belong to this function", "another");
    const std::size_t funs = owner ? open_.at(owner->parent) + (owner->is(Opcode::fun_) ? 1 : 0) : 0;
    open_.emplace(block, funs);
    for (std::size_t i = 0; i < block->params.size(); ++i) define(block->params[i], nullptr, block, i);
    if (!owner || !owner->is(Opcode::loop_) || block != owner->blocks[1])
      for (const Value* p : block->params)
        need(p->combine == Combine::none, "iterations to come together in the body of a loop alone",
             [&] { return "a parameter that is '" + std::string(ir::name(p->combine)) + "'"; });
    stack_.push_back({block, owner});
  }

  void close() {
    const Position done = stack_.back();
    stack_.pop_back();
    op_ = done.owner;
    need(done.block->terminated(), "a block that ends with yield", "none");
    op_ = done.block->ops.back();
    check_yield(*op_, done);
    op_ = done.owner;
    if (op_ && op_->is(Opcode::loop_) && done.block == op_->blocks[1]) check_parallel(*op_);
    open_.erase(done.block);
    const int calls = done.exit ? 1 : 0;
    if (!done.owner) {
      op_ = nullptr;
      need(!function_.cps || calls == 1, "exactly one call of a continuation on every path",
           "a body without one");
      return;
    }
    op_ = done.owner;
    if (done.owner->is(Opcode::fun_))
      need(!function_.cps || calls == 1, "exactly one call of a continuation on every path",
           "a continuation without one");
    Position& around = stack_.back();
    if (around.pending < 2) around.calls[around.pending] = calls;
    ++around.pending;
  }

  void check_yield(const Op& yield, const Position& done) {
    const std::vector<Type> got = types_of(yield.operands);
    const auto expect = [&](const std::vector<Type>& types, const char* what) {
      need(
          all_fit(got, types), [&] { return what + (" of types " + list(types)); }, got);
    };
    if (!done.owner) return expect(function_.result_types, "results of the function");
    if (done.owner->is(Opcode::fun_)) return expect({}, "the results of a continuation");
    if (done.owner->is(Opcode::loop_) && done.block == done.owner->blocks[0])
      return expect({Bool}, "a loop condition");
    if (done.owner->is(Opcode::loop_)) return expect(types_of(done.block->params), "the next state");
    expect(types_of(done.owner->results), "results of the branch");
  }

  // ---- operations

  void enter(const Op* op, const Position& top) {
    op_ = nullptr;
    need(op != nullptr, "an operation", "null");
    op_ = op;
    need(op->code < Opcode::count_, "a known operation", static_cast<int>(op->code));
    need(op->parent == top.block, "the operation's parent to be the block that holds it", "another");
    need(!op->is(Opcode::yield_) || op == top.block->ops.back(), "yield at the end of its block",
         "operations after it");
    for (std::size_t i = 0; i < op->operands.size(); ++i) check_operand(*op, i);
    for (const Value* v : op->results) check_result(*op, v);
    check_types(*op);
    check_attributes(*op);
    // A continuation may refer to itself; other results exist only after the blocks.
    if (op->is(Opcode::fun_)) define_results(*op);
  }

  void leave(const Op& op, Position& top) {
    op_ = &op;
    if (!op.is(Opcode::fun_)) define_results(op);
    bool exits = passes_continuation(op);
    if (op.is(Opcode::branch_)) {
      need(top.calls[0] == top.calls[1], "both blocks of a branch to call a continuation, or none",
           "one that does");
      exits = top.calls[0] == 1;
      need(!exits || op.results.empty(), "a branch that calls continuations to have no results",
           [&] { return list(types_of(op.results)); });
    }
    if (op.is(Opcode::loop_))
      need(top.calls[0] == 0 && top.calls[1] == 0, "no call of a continuation in a loop", "one");
    if (!exits) return;
    need(top.exit == nullptr, "one call of a continuation on every path", "a second");
    top.exit = &op;
  }

  void check_result(const Op& op, const Value* v) {
    need(v != nullptr, "results", "null");
    need(!v->type.is_ref() || op.is(Opcode::ref_new_, Opcode::slot_), "a cell to be made by ref_new",
         info(op.code).name.data());
    need(!v->type.is_cont() || op.is(Opcode::fun_, Opcode::closure_),
         "a continuation to be made by fun or closure", info(op.code).name.data());
  }

  void define_results(const Op& op) {
    for (std::size_t i = 0; i < op.results.size(); ++i) define(op.results[i], &op, op.parent, i);
  }

  void define(const Value* value, const Op* def, const Block* block, std::size_t index) {
    need(value != nullptr, "a value", "null");
    if (value->def != def || value->block != block || value->index != index)
      fail("expected the value " + name(value) + " to know where it is defined, got another place");
    if (!defined_.insert(value).second) fail("expected " + name(value) + " to be defined once, got a second");
  }

  void check_operand(const Op& op, std::size_t i) {
    const Value* v = op.operands[i];
    need(v != nullptr, "operands", "null");
    if (!defined_.contains(v))
      fail("expected operand " + name(v) + " to be defined before its use, got no definition so far");
    if (!open_.contains(v->block))
      fail("expected operand " + name(v) + " to be visible here, got one of a block that has ended");
    if (v->type.is_ref()) check_cell_use(op, i, *v);
    if (v->type.is_cont()) check_continuation_use(op, i, *v);
  }

  void check_continuation_use(const Op& op, std::size_t i, const Value& k) {
    const bool last_of_call = op.is(Opcode::call_) && i + 1 == op.operands.size();
    if (!op.is(Opcode::jump_, Opcode::closure_) && !last_of_call)
      fail("expected the continuation " + name(&k) +
           " to be called, handed to jump or closure, or the last argument of a call, got another use");
  }

  void check_cell_use(const Op& op, std::size_t i, const Value& cell) {
    const bool ref_op = op.is(Opcode::ref_get_, Opcode::ref_set_, Opcode::ref_add_, Opcode::ref_acc_);
    const bool passed = op.is(Opcode::jump_, Opcode::call_, Opcode::closure_);
    const bool looked_at = op.is(Opcode::finite_) && i == 0;
    if (!passed && !looked_at && !(ref_op && i == 0))
      fail("expected the cell " + name(&cell) +
           " to be used by a ref operation or handed to jump, call or closure, got another use");
    if (!op.is(Opcode::ref_get_)) return;
    if (!cell.def) fail("expected the cell " + name(&cell) + " to be read by its creator, got a parameter");
    // Control flow may lie between a cell and its reader, a `fun` may not: others run that.
    if (open_.at(op.parent) != open_.at(cell.block))
      fail("expected the cell " + name(&cell) + " to be read by its creator, got a read in a continuation");
  }

  // ---- attributes

  /// What an operation carries beside its operands is of its kind; others carry nothing.
  void check_attributes(const Op& op) {
    const bool tape = is_on_tape(op), calls = op.is(Opcode::call_, Opcode::closure_);
    need(calls || op.callee == nullptr, "a callee of calls only", "one");
    need(may_have_text(op.code) || op.text == nullptr, "no text", "one");
    need(!has_text(op.code) || op.text != nullptr, "a text", "none");
    need(op.is(Opcode::constant_) || op.number == 0 || (tape && op.number == 1), "no number", "one");
    need(attribute_fits(op), "an attribute that the operation knows", op.integer);
    need(!op.in_place || may_work_in_place(op),
         "an operation in place to have a tensor that its result can lie in", "none");
  }

  static bool attribute_fits(const Op& op) {
    const std::int64_t n = op.integer;
    switch (info(op.code).attribute) {
      case Attribute::none:
        return n == 0;
      // Where they are checked, beside the types that they belong to.
      case Attribute::value:
      case Attribute::dimension:
      case Attribute::component:
      case Attribute::lanes:
      case Attribute::kind:
      case Attribute::tape:
      case Attribute::operation:
        return true;
      case Attribute::sizes:
        return n == 0 || op.operands.size() > 1;
      case Attribute::threads:
        return n == 0 || n == in_threads || n == in_order;
      case Attribute::zeros:
        return n == 0 || n == as_minus_zero;
      case Attribute::bounds:
        return n == 0 || n == inside;
      case Attribute::runs:
        if (n >= 0) return n == 0 || n == checkpointed;
        return team_size(op) >= 2 && team_size(op) <= largest_team && team_threads(op) >= 2 &&
               team_threads(op) <= team_size(op);
      case Attribute::memory:
        return n != 1;  // LoopMemory
    }
    return false;
  }

  /// It changes its first operand, or makes a tensor of the same elements where that one lies.
  static bool may_work_in_place(const Op& op) {
    if (op.operands.empty() || op.results.empty()) return false;
    const Type &from = op.operands[0]->type, &to = op.result()->type;
    return from.is_tensor() && to.is_tensor() && from.element() == to.element();
  }

  // ---- types

  void check_types(const Op& op) {
    switch (op.code) {
      case Opcode::constant_:
        return check_constant(op);
      case Opcode::undef_:
        return check_shape(op, 0, 1, 0);
      case Opcode::branch_:
        return check_branch(op);
      case Opcode::loop_:
        return check_loop(op);
      case Opcode::call_:
        return check_call(op);
      case Opcode::fun_:
        return check_fun(op);
      case Opcode::jump_:
        return check_jump(op);
      case Opcode::closure_:
        return check_closure(op);
      case Opcode::yield_:
        return check_shape(op, op.operands.size(), 0, 0);
      case Opcode::check_:
        check_shape(op, std::max<std::size_t>(op.operands.size(), 1), 0, 0);
        need(op.operands[0]->type == Bool, "a bool", op.operands[0]->type);
        for (std::size_t i = 1; i < op.operands.size(); ++i)
          need(op.operands[i]->type == I64, "whole numbers to tell", op.operands[i]->type);
        if (op.operands.size() > 1)
          need(op.integer >= 0 && op.integer + 1 < std::ssize(op.operands), "sizes of two shapes", op.integer);
        return need(op.text != nullptr, "a message", "none");
      case Opcode::finite_:
        return check_finite(op);
      case Opcode::forget_:
        check_shape(op, std::max<std::size_t>(op.operands.size(), 1), 0, 0);
        for (const Value* v : op.operands) need(v->type.is_tensor(), "a tensor", v->type);
        return;
      case Opcode::print_:
        check_shape(op, 1, 0, 0);
        need(op.operands[0]->type.is_scalar() || op.operands[0]->type.is_tensor(), "a number",
             op.operands[0]->type);
        return need(op.text != nullptr, "a label", "none");
      case Opcode::external_:
        return check_external(op);
      case Opcode::halt_:
        return check_shape(op, 0, 0, 0);
      case Opcode::slot_:
        check_shape(op, 0, 1, 0);
        return need(op.result()->type.is_ref(), "a cell", op.result()->type);
      case Opcode::ref_new_:
      case Opcode::ref_get_:
      case Opcode::ref_set_:
      case Opcode::ref_add_:
      case Opcode::ref_acc_:
        return check_cell(op);
      case Opcode::push_:
        check_shape(op, op.operands.size(), 0, 0);
        need(!op.operands.empty(), "values to push", "none");
        return check_tape(op);
      case Opcode::pop_:
        check_shape(op, 0, op.results.size(), 0);
        need(!op.results.empty(), "values to pop", "none");
        return check_tape(op);
      default:
        return check_pure(op);
    }
  }

  void check_shape(const Op& op, std::size_t operands, std::size_t results, std::size_t blocks) {
    const auto need_count = [&](std::size_t got, std::size_t expected, const char* what) {
      need(
          got == expected, [&] { return std::to_string(expected) + what; }, got);
    };
    need_count(op.operands.size(), operands, " operands");
    need_count(op.results.size(), results, " results");
    need_count(op.blocks.size(), blocks, " blocks");
  }

  void check_pure(const Op& op) {
    const OpInfo& row = info(op.code);
    check_shape(op, row.arity < 0 ? op.operands.size() : static_cast<std::size_t>(row.arity), 1, 0);
    need(row.arity >= 0 || !op.operands.empty(), "operands", "none");
    if (op.is(Opcode::cast_))
      need(op.integer >= 0 && op.integer <= static_cast<std::int64_t>(Kind::f64), "the kind of a scalar",
           op.integer);
    if (op.is(Opcode::lane_index_, Opcode::lane_splat_))
      need(op.integer > 1 && op.integer <= most_lanes, "a number of lanes", op.integer);
    const Type& result = op.result()->type;
    const Type inferred = infer(op.code, types_of(op.operands), op.integer, result, op.text);
    need(
        fits(inferred, result), [&] { return "a result of type " + inferred.str(); }, result);
  }

  void check_finite(const Op& op) {
    check_shape(op, std::max<std::size_t>(op.operands.size(), 1), 0, 0);
    for (const Value* v : op.operands) {
      const Type& type = v->type.is_ref() ? v->type.content() : v->type;
      need(type.is_differentiable() && !type.is_vector(), "floating numbers", v->type);
    }
    need(op.integer >= 0 && op.integer < static_cast<std::int64_t>(Opcode::count_), "an operation", op.integer);
  }

  void check_external(const Op& op) {
    need(op.text != nullptr, "a prototype", "none");
    std::vector<Type> results;
    try {
      results = parse_prototype(op.text).results(types_of(op.operands));
    } catch (const std::exception& e) {
      fail(e.what());
    }
    check_shape(op, op.operands.size(), results.size(), 0);
    for (std::size_t i = 0; i < results.size(); ++i)
      need(fits(results[i], op.results[i]->type), [&] { return "a result of type " + results[i].str(); },
           op.results[i]->type);
  }

  /// infer_type, its Error being ours: whoever made the graph should have noticed.
  Type infer(Opcode code, const std::vector<Type>& operands, std::int64_t attribute, const Type& result,
             const char* text = nullptr) {
    try {
      const bool sized = (code == Opcode::fill_ || is_einsum(code)) && result.is_tensor();
      return infer_type(code, operands, attribute, sized ? result.dims() : std::vector<std::int64_t>{}, text);
    } catch (const std::exception& e) {
      fail(e.what());
    }
  }

  void check_constant(const Op& op) {
    check_shape(op, 0, 1, 0);
    const Type& type = op.result()->type;
    need(type.is_scalar(), "a constant of scalar type", type);
    if (type == Bool) need(op.integer == 0 || op.integer == 1, "true or false", op.integer);
    if (type == I32)
      need(op.integer >= std::numeric_limits<std::int32_t>::min() &&
               op.integer <= std::numeric_limits<std::int32_t>::max(),
           "a number that fits i32", op.integer);
  }

  void check_branch(const Op& op) {
    check_shape(op, 1, op.results.size(), 2);
    need(op.operands[0]->type == Bool, "a bool", op.operands[0]->type);
    for (const Block* b : op.blocks) need(b && b->params.empty(), "blocks without parameters", "others");
  }

  void check_loop(const Op& op) {
    check_shape(op, op.operands.size(), op.results.size(), 2);
    for (const Block* b : op.blocks) {
      need(b != nullptr, "a block", "null");
      gives(types_of(op.operands), types_of(b->params), "parameters");
    }
    gives(types_of(op.blocks[1]->params), types_of(op.results), "results");
    gives(types_of(op.blocks[1]->params), types_of(op.blocks[0]->params), "parameters");
  }

  /// A loop whose iterations may run in any order counts by ones to a bound that is known before, and what it says
  /// of each piece of its state is of a type that can be that. (That no iteration needs what another has made is
  /// what the pass parallel has found; nothing here looks at elements.)
  void check_parallel(const Op& op) {
    const Block &test = *op.blocks[0], &body = *op.blocks[1];
    if (std::ranges::all_of(body.params, [](const Value* p) { return p->combine == Combine::none; })) return;
    need(is_parallel(op), "each piece of a parallel loop's state to say how iterations come together",
         "one that does not");
    need(std::ranges::count(body.params, Combine::index, &Value::combine) == 1, "one index",
         "none, or several");
    const auto index = static_cast<std::size_t>(
        std::ranges::find(body.params, Combine::index, &Value::combine) - body.params.begin());
    const auto is_constant = [](const Value* v) { return v->def && v->def->is(Opcode::constant_); };
    const Op* less = test.ops.back()->operands[0]->def;
    const bool counts = less && less->is(Opcode::lt_) && less->operands[0] == test.params[index] &&
                        (less->operands[1]->block != &test || is_constant(less->operands[1])) &&
                        std::ranges::all_of(test.ops, [&](const Op* o) {
                          return o == less || o->is(Opcode::constant_, Opcode::yield_);
                        });
    need(counts, "a parallel loop to run while its index is below a bound from before it",
         "another condition");
    for (const Value* p : body.params) {
      const Op* next = body.ops.back()->operands[p->index]->def;
      const auto moves = [&] {
        if (!next || !next->is(Opcode::add_, Opcode::sub_)) return false;
        const Value *x = next->operands[0], *by = next->operands[1];
        if (next->is(Opcode::add_) && is_constant(x)) std::swap(x, by);
        return x == p && is_constant(by) &&
               (p->combine == Combine::counter || (next->is(Opcode::add_) && by->def->integer == 1));
      };
      const Type& type = p->type;
      const bool number = type.is_scalar() && !type.is_bool();
      bool fits = false;
      switch (p->combine) {
        case Combine::index:
        case Combine::counter:
          fits = type == I64 && moves();
          break;
        case Combine::element:
          fits = type.is_tensor();
          break;
        case Combine::sum:
          fits = number || (type.is_tensor() && type.element() != Kind::boolean);
          break;
        case Combine::max:
        case Combine::min:
          fits = number;
          break;
        default:
          fits = type == Bool;
      }
      need(
          fits, [&] { return "state that can be '" + std::string(ir::name(p->combine)) + "'"; },
          [&] { return name(p) + " of type " + type.str(); });
    }
  }

  void check_callee(const Op& op) {
    need(op.callee != nullptr, "a callee", "none");
    need(module_functions_.contains(op.callee), "a callee of this module", "another");
  }

  void check_call(const Op& op) {
    check_shape(op, op.operands.size(), op.results.size(), 0);
    check_callee(op);
    takes(op.callee->parameter_types(), types_of(op.operands), "arguments");
    gives(op.callee->result_types, types_of(op.results), "results");
    need(
        team_size(op) == 0 || team_stands(op),
        [&] { return "a team of " + std::to_string(team_size(op)) + " calls of one function, in a row"; },
        "something between them");
  }

  void check_jump(const Op& op) {
    check_shape(op, op.operands.size(), 0, 0);
    need(!op.operands.empty() && op.operands[0]->type.is_cont(), "a continuation to call",
         [&] { return op.operands.empty() ? "none" : op.operands[0]->type.str(); });
    takes(op.operands[0]->type.parts(), types_of(op.operands, 1), "arguments");
  }

  void check_closure(const Op& op) {
    check_shape(op, op.operands.size(), 1, 0);
    check_callee(op);
    const Type& type = op.result()->type;
    need(type.is_cont(), "a continuation", type);
    std::vector<Type> arguments = types_of(op.operands);
    arguments.insert(arguments.end(), type.parts().begin(), type.parts().end());
    takes(op.callee->parameter_types(), arguments, "captured values and parameters");
  }

  void check_fun(const Op& op) {
    check_shape(op, 0, 1, 1);
    need(op.blocks[0] != nullptr, "a block", "null");
    const Type type = Type::cont(types_of(op.blocks[0]->params));
    need(
        compatible(op.result()->type, type), [&] { return "a result of type " + type.str(); },
        op.result()->type);
  }

  void check_cell(const Op& op) {
    const auto cell = [&] {
      need(!op.operands.empty() && op.operands[0]->type.is_ref(), "a cell",
           [&] { return op.operands.empty() ? "none" : op.operands[0]->type.str(); });
      return op.operands[0]->type.content();
    };
    if (op.is(Opcode::ref_new_)) {
      check_shape(op, 1, 1, 0);
      return gives({Type::ref(op.operands[0]->type)}, types_of(op.results), "a result");
    }
    if (op.is(Opcode::ref_get_)) {
      check_shape(op, 1, 1, 0);
      return gives({cell()}, types_of(op.results), "a result");
    }
    if (!op.is(Opcode::ref_acc_)) {
      check_shape(op, 2, 0, 0);
      return takes({cell()}, types_of(op.operands, 1), "a value");
    }
    check_shape(op, op.operands.size(), 0, 0);
    std::vector<Type> operands = types_of(op.operands);
    operands.front() = cell();
    const bool known = op.integer >= 0 && op.integer < static_cast<std::int64_t>(Opcode::count_);
    const Opcode code = known ? accumulated_by(op) : Opcode::count_;
    need(known && info(code).name.starts_with("add_"), "an accumulating operation",
         [&] { return known ? std::string(info(code).name) : std::to_string(op.integer); });
    const Type result = infer(code, operands, 0, operands.front(), op.text);
    need(
        compatible(result, operands.front()), [&] { return "an update of type " + operands.front().str(); },
        result);
  }

  void check_tape(const Op& op) {
    need(op.integer >= 0 && op.integer < function_.module->tapes(), "a tape of the module", op.integer);
  }

  /// What is declared as `types` takes values of types `got`.
  void takes(const std::vector<Type>& types, const std::vector<Type>& got, const char* what) {
    need(
        all_fit(got, types), [&] { return what + (" of types " + list(types)); }, got);
  }

  /// Values of types `types` are declared as `got`.
  void gives(const std::vector<Type>& types, const std::vector<Type>& got, const char* what) {
    need(
        all_fit(types, got), [&] { return what + (" of types " + list(types)); }, got);
  }

  void check_signature() {
    need(function_.body != nullptr, "a body", "none");
    if (!function_.cps) return;
    need(function_.result_types.empty(), "a cps function to hand its results to its continuation",
         [&] { return list(function_.result_types); });
    const auto& params = function_.body->params;
    need(!params.empty() && params.back()->type.is_cont(),
         "the last parameter of a cps function to be its continuation",
         [&] { return params.empty() ? "none" : params.back()->type.str(); });
  }

  // ---- messages

  std::string name(const Value* value) const { return Names(function_)(value); }

  /// Texts are made only for a failure; hence functions that return them.
  template <class Expected, class Got>
  void need(bool ok, const Expected& expected, const Got& got) const {
    if (!ok) fail("expected " + text(expected) + ", got " + text(got));
  }
  static std::string text(const char* s) { return s; }
  static std::string text(const Type& type) { return type.str(); }
  static std::string text(const std::vector<Type>& types) { return list(types); }
  template <class T>
  static std::string text(const T& t) {
    if constexpr (std::is_integral_v<T>)
      return std::to_string(t);
    else
      return t();
  }

  [[noreturn]] void fail(const std::string& message) const {
    std::string where = "in " + function_text(function_.name);
    if (op_) where += ", at '" + print(*op_, Names(function_)) + "'";
    throw InternalError(where + ": " + message);
  }

  const Function& function_;
  const Functions& module_functions_;
  std::vector<Position> stack_;
  std::unordered_set<const Block*> blocks_;  ///< all met so far
  std::unordered_map<const Block*, std::size_t>
      open_;  ///< those around us, with the number of funs around each
  std::unordered_set<const Value*> defined_;
  const Op* op_ = nullptr;  ///< what a message is about
};

std::unordered_set<const Function*> functions_of(const Module& module) {
  return {module.functions().begin(), module.functions().end()};
}

/// What goes onto a tape is what comes from it: all pushes and pops of a tape are of as many values, and of the
/// same types but for sizes.
class Tapes {
 public:
  void check(const Function& f) {
    walk(f.body, [&](const Op* op) {
      if (!op->is(Opcode::push_, Opcode::pop_)) return;
      const auto& values = op->is(Opcode::push_) ? op->operands : op->results;
      const std::vector<Type> types = types_of(values);
      const auto [entry, added] = types_.try_emplace(op->integer, types);
      bool same = entry->second.size() == types.size();
      for (std::size_t i = 0; same && i < types.size(); ++i) same = compatible(entry->second[i], types[i]);
      if (!same)
        throw InternalError("in " + function_text(f.name) + ", at '" + print(*op, Names(f)) +
                            "': expected values of types " + list(entry->second) +
                            ", as the tape has them elsewhere, got " + list(types));
    });
  }

 private:
  std::unordered_map<std::int64_t, std::vector<Type>> types_;
};

}  // namespace

void verify(const Module& module) {
  const auto functions = functions_of(module);
  if (module.entry && !functions.contains(module.entry))
    throw InternalError("expected the entry of the module to be one of its functions, got " +
                        function_text(module.entry->name));
  Tapes tapes;
  std::unordered_set<std::string_view> names;
  for (const Function* f : module.functions()) {
    if (f->module != &module)
      throw InternalError("expected " + function_text(f->name) + " to know its module, got another");
    if (!names.insert(f->name).second)
      throw InternalError("expected functions of different names, got two that are " + function_text(f->name));
    Verifier(*f, functions).run();
    tapes.check(*f);
  }
}

void verify(const Function& function) { Verifier(function, functions_of(*function.module)).run(); }

}  // namespace lantern::ir
