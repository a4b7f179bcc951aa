// The graph: operations in blocks, functions in a module. Meaning of the forms, before the structures:
//
// A block is a list of operations in order, with parameters; `yield` ends it and gives its results. A value
// is defined once and may be used in its own block after its definition and in blocks nested there
// (a `fun` may also be used inside its own block). Tensors are values: operations never change an operand
// that can still be seen (the printers reuse memory where nothing can tell the difference).
//
// Direct style: `branch` and `loop` hold nested blocks that yield; `call` names a function of the module.
//
// A loop is `parallel` where its iterations may run in any order, and at once: each parameter of its body then says how the
// iterations come together in that piece of state (Combine). Nests of such loops are what array languages write as one
// operation over an index space: elements of results, windows of what there is (`element`), accumulation at any place
// (`sum` of a tensor), reductions. It is a loop to whoever asks no more; the pass parallel finds them.
//
//   %end, %y2, %s2 = parallel %zero, %y, %s : i64, f64[?], f64 while (%j: i64, %y0: f64[?], %s0: f64) {
//     %more = lt %j, %n
//     yield %more
//   } do (%i: i64 index, %y1: f64[?] element, %s1: f64 sum) { ... }
//
// Continuation-passing style (Lantern paper, 4): `fun` makes a continuation; `jump k(args)` and a `call` that
// takes a continuation as its last argument run the rest of the program and come back; what follows them in
// the block is the backward part. On every path through a function in this form its continuation is called
// exactly once. Adjoints are `ref` cells.
//
// User programs are staged in direct style. A derivative runs the graph again under its handler, where `shift`
// captures the rest, and so it is made in continuation-passing style; the pass unwind brings it to direct style
// before it is optimised or differentiated again. The pass cps writes any program in the other form, to be read.
//
// Integers wrap; division of integers by zero raises; floating point is IEEE without traps.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "lantern/ir/combine.hpp"
#include "lantern/ir/location.hpp"
#include "lantern/ir/op.hpp"
#include "lantern/ir/type.hpp"

namespace lantern::ir {

struct Op;
struct Block;
struct Function;
class Module;

struct Value {
  Type type;
  Op* def = nullptr;       ///< the operation, or null for a block parameter
  Block* block = nullptr;  ///< the block that defines it
  std::uint32_t index = 0; ///< which result or parameter
  std::uint32_t number = 0;  ///< of the module's values, in the order in which they were made
  Combine combine = Combine::none;  ///< of a parameter of a parallel loop's body
  const char* name = nullptr;  ///< the user's name for it, if any
};

struct Block {
  std::vector<Value*> params;
  std::vector<Op*> ops;
  Op* parent = nullptr;          ///< the operation this block belongs to; null for a function's body
  Function* function = nullptr;
  /// The operands of the terminating yield; an InternalError when there is none.
  std::vector<Value*>& yields();
  bool terminated() const;
};

struct Op {
  Opcode code = Opcode::count_;
  std::vector<Value*> operands;
  std::vector<Value*> results;
  std::vector<Block*> blocks;
  double number = 0;            ///< value of a floating constant
  std::int64_t integer = 0;     ///< value of another constant, or the operation's attribute (op.hpp)
  Function* callee = nullptr;   ///< of call
  const char* text = nullptr;   ///< message of check, label of print and print_adjoint, notation of einsum
  bool in_place = false;        ///< works in the memory of its first operand: the pass inplace has decided that
  Location loc;
  Block* parent = nullptr;

  Value* result(std::size_t i = 0) const { return results[i]; }
  /// True for one of these operations.
  template <typename... Others>
  bool is(Opcode c, Others... others) const {
    return code == c || ((code == others) || ...);
  }
};

struct Function {
  std::string name;
  Block* body = nullptr;
  std::vector<Type> result_types;
  Module* module = nullptr;
  Location loc;
  bool cps = false;  ///< in continuation-passing style: the last parameter is its continuation

  std::vector<Type> parameter_types() const;
};

/// The types of values, from one on.
std::vector<Type> types_of(const std::vector<Value*>& values, std::size_t from = 0);

/// Owns everything. Not shared between threads; any number may exist.
class Module {
 public:
  Module() = default;
  Module(const Module&) = delete;
  Module& operator=(const Module&) = delete;

  /// Adds a function with an empty body; the name is made unique within the module.
  Function* add_function(const std::string& name, const std::vector<Type>& params,
                         std::vector<Type> results);
  void remove_function(Function* f);
  void rename(Function* f, const std::string& name);
  const std::vector<Function*>& functions() const { return functions_; }
  Function* find(const std::string& name) const;

  Op* new_op(Opcode code, Block* parent);
  Block* new_block(Op* parent, Function* function);
  Value* new_value(Type type);
  Value* add_param(Block* block, Type type, const char* name = nullptr);
  Value* add_result(Op* op, Type type, const char* name = nullptr);
  /// A copy of the text that lives as long as the module.
  const char* intern(const std::string& text);
  /// A tape identity not used before in this module.
  std::int64_t new_tape() { return tapes_++; }
  std::int64_t tapes() const { return tapes_; }
  void reserve_tapes(std::int64_t n) { tapes_ = tapes_ < n ? n : tapes_; }

  Function* entry = nullptr;

 private:
  std::deque<Op> ops_;
  std::deque<Block> blocks_;
  std::deque<Value> values_;
  std::deque<Function> function_storage_;
  std::vector<Function*> functions_;
  std::unordered_map<std::string, Function*> by_name_;
  std::unordered_map<std::string, int> copies_;   ///< how often a name was asked for
  std::unordered_set<std::string> strings_;
  std::int64_t tapes_ = 0;
};

/// Adds operations to a block: at its end, or before one of its operations, whose place is the new ones' too.
class Builder {
 public:
  Builder(Module& module, Block* block, const Location& at = {}) : loc(at), module_(&module), block_(block) {}
  /// Each before the operation, in the order in which they are made, and at its location or another one.
  static Builder before(Op* op);
  static Builder before(Op* op, const Location& at) {
    Builder b = before(op);
    b.loc = at;
    return b;
  }
  /// Before what follows the operation now, or at the end.
  static Builder after(Op* op);

  Module& module() const { return *module_; }
  Block* block() const { return block_; }
  /// Goes on at the end of another block.
  void set_block(Block* block) {
    block_ = block;
    next_ = nullptr;
  }
  Location loc;

  /// A pure operation; its result type is inferred.
  Value* emit(Opcode code, const std::vector<Value*>& operands, std::int64_t attribute = 0,
              std::span<const std::int64_t> dims = {}, const char* text = nullptr);
  Value* add(const std::vector<Value*>& operands) { return emit(Opcode::add_, operands); }
  Value* sub(const std::vector<Value*>& operands) { return emit(Opcode::sub_, operands); }
  Value* mul(const std::vector<Value*>& operands) { return emit(Opcode::mul_, operands); }
  Value* div(const std::vector<Value*>& operands) { return emit(Opcode::div_, operands); }
  Value* rem(const std::vector<Value*>& operands) { return emit(Opcode::rem_, operands); }
  Value* imin(const std::vector<Value*>& operands) { return emit(Opcode::imin_, operands); }
  Value* imax(const std::vector<Value*>& operands) { return emit(Opcode::imax_, operands); }
  Value* lt(const std::vector<Value*>& operands) { return emit(Opcode::lt_, operands); }
  Value* le(const std::vector<Value*>& operands) { return emit(Opcode::le_, operands); }
  Value* eq(const std::vector<Value*>& operands) { return emit(Opcode::eq_, operands); }
  Value* land(const std::vector<Value*>& operands) { return emit(Opcode::land_, operands); }
  Value* select(const std::vector<Value*>& operands) { return emit(Opcode::select_, operands); }
  /// An operation with the given results.
  Op* op(Opcode code, std::vector<Value*> operands, const std::vector<Type>& results = {});
  Value* number(double v, Type type = F64);
  Value* integer(std::int64_t v, Type type = I64);
  Value* boolean(bool v) { return integer(v, Bool); }
  /// The same number as a constant.
  Value* again(const Op& constant);
  /// Without a value.
  Value* undef(const Type& type) { return op(Opcode::undef_, {}, {type})->result(); }
  /// A tensor of these sizes, whose elements have no values.
  Value* uninitialised(const Type& tensor, std::vector<Value*> sizes);
  /// Of a dimension of a tensor: a constant where the type tells it.
  Value* size(Value* tensor, std::size_t dimension);
  std::vector<Value*> sizes(Value* tensor);
  Value* zero(const Type& scalar) { return scalar.is_float_element() ? number(0, scalar) : integer(0, scalar); }
  /// Zero of a scalar or the zero tensor of `like`'s shape.
  Value* zero_like(Value* like);
  void yield(std::vector<Value*> values);
  Op* branch(Value* condition, const std::vector<Type>& results);
  Op* call(Function* callee, std::vector<Value*> arguments);
  Op* fun(const std::vector<Type>& params, const char* name = nullptr);
  /// Operations whose old place is given up, by the one who asks, are here.
  void take(Op* op);
  void take(const std::vector<Op*>& ops) {
    for (Op* o : ops) take(o);
  }

 private:
  void place(Op* op);

  Module* module_;
  Block* block_;
  Op* next_ = nullptr;  ///< what is behind the place; null at the end
  std::size_t at_ = 0;  ///< where that stood
};

/// An access to an element of a tensor, the first operand, at the indices that follow: `get`, `set` and `add_at`.
inline bool is_write(const Op& op) { return op.is(Opcode::set_, Opcode::add_at_); }
inline bool is_access(const Op& op) { return op.is(Opcode::get_) || is_write(op); }
/// What computes values and has no effect besides, without blocks. An index or a divisor may still be wrong.
inline bool is_pure(const Op& op) { return op.blocks.empty() && info(op.code).effect == Effect::none; }
/// A quotient or remainder of integers, which raises an error where the divisor is 0.
inline bool divides_integers(const Op& op) {
  return (op.is(Opcode::div_) || op.is(Opcode::rem_)) && !op.result()->type.is_float_element();
}
/// What may not change places with its like, on whatever data.
inline bool keeps_order(const Op& op) {
  const Effect effect = info(op.code).effect;
  return effect == Effect::effect || effect == Effect::cell || op.is(Opcode::call_) || op.is(Opcode::jump_);
}
inline bool is_on_tape(const Op& op) { return op.is(Opcode::push_) || op.is(Opcode::pop_); }
/// True for a loop whose iterations may run in any order.
bool is_parallel(const Op& op);
/// How its iterations come together in a piece of its state.
inline Combine combine(const Op& loop, std::size_t state) { return loop.blocks[1]->params[state]->combine; }

/// What a ref_acc accumulates by.
inline Opcode accumulated_by(const Op& op) { return static_cast<Opcode>(op.integer); }

/// The operation of a block that is another one, or holds it; null where that is elsewhere.
inline const Op* holder_in(const Block* block, const Op* op) {
  while (op && op->parent != block) op = op->parent->parent;
  return op;
}

/// True where the value is visible from `block`: defined there or in an enclosing block of the same function.
bool visible_from(const Value* value, const Block* block);

/// Every operation below a block in order, without recursion; `enter` may return false to skip its blocks.
template <class Enter>
void walk(Block* root, Enter&& enter) {
  struct Position {
    Block* block;
    std::size_t next;
  };
  std::vector<Position> stack{{root, 0}};
  while (!stack.empty()) {
    auto& [block, next] = stack.back();
    if (next == block->ops.size()) {
      stack.pop_back();
      continue;
    }
    Op* op = block->ops[next++];
    if constexpr (std::is_same_v<decltype(enter(op)), bool>) {
      if (!enter(op)) continue;
    } else {
      enter(op);
    }
    for (std::size_t i = op->blocks.size(); i-- > 0;) stack.push_back({op->blocks[i], 0});
  }
}

/// A block and those in it, each before those in itself.
std::vector<Block*> blocks_below(Block* root);

/// What runs in a block calls these functions, they call these, and so on.
std::unordered_set<const Function*> callees(Block* block);

/// Number of operations in the module.
std::size_t size(const Module& module);
std::size_t size(const Function& function);

}  // namespace lantern::ir
