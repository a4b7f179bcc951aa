// Construction of the graph.
#include "lantern/ir/graph.hpp"

#include <algorithm>

#include "lantern/ir/error.hpp"

namespace lantern::ir {

std::string Location::str() const {
  if (!known()) return "";
  std::string s = std::string(file) + ":" + std::to_string(line);
  return column ? s + ":" + std::to_string(column) : s;
}

bool Block::terminated() const { return !ops.empty() && ops.back()->code == Opcode::yield_; }

std::vector<Value*>& Block::yields() {
  if (!terminated()) throw InternalError("a block without yield");
  return ops.back()->operands;
}

std::vector<Type> types_of(const std::vector<Value*>& values, std::size_t from) {
  std::vector<Type> types;
  types.reserve(values.size());
  for (std::size_t i = from; i < values.size(); ++i) types.push_back(values[i]->type);
  return types;
}

std::vector<Type> Function::parameter_types() const { return types_of(body->params); }

Function* Module::find(const std::string& name) const {
  const auto it = by_name_.find(name);
  return it == by_name_.end() ? nullptr : it->second;
}

Function* Module::add_function(const std::string& name, const std::vector<Type>& params,
                               std::vector<Type> results) {
  std::string unique = name;
  for (int& n = copies_.try_emplace(name, 1).first->second; find(unique);) unique = name + "_" + std::to_string(++n);
  Function& f = function_storage_.emplace_back();
  f.name = unique;
  f.module = this;
  f.body = new_block(nullptr, &f);
  f.result_types = std::move(results);
  for (const Type& t : params) add_param(f.body, t);
  functions_.push_back(&f);
  by_name_[unique] = &f;
  return &f;
}

void Module::remove_function(Function* f) {
  std::erase(functions_, f);
  const auto it = by_name_.find(f->name);
  if (it != by_name_.end() && it->second == f) by_name_.erase(it);
}

void Module::rename(Function* f, const std::string& name) {
  const auto it = by_name_.find(f->name);
  if (it != by_name_.end() && it->second == f) by_name_.erase(it);
  f->name = name;
  by_name_[name] = f;
}

Op* Module::new_op(Opcode code, Block* parent) {
  Op& op = ops_.emplace_back();
  op.code = code;
  op.parent = parent;
  return &op;
}

Block* Module::new_block(Op* parent, Function* function) {
  Block& block = blocks_.emplace_back();
  block.parent = parent;
  block.function = function;
  return &block;
}

Value* Module::new_value(Type type) {
  Value& value = values_.emplace_back();
  value.number = static_cast<std::uint32_t>(values_.size() - 1);
  value.type = std::move(type);
  return &value;
}

Value* Module::add_param(Block* block, Type type, const char* name) {
  Value* v = new_value(std::move(type));
  v->block = block;
  v->index = static_cast<std::uint32_t>(block->params.size());
  v->name = name;
  block->params.push_back(v);
  return v;
}

Value* Module::add_result(Op* op, Type type, const char* name) {
  Value* v = new_value(std::move(type));
  v->def = op;
  v->block = op->parent;
  v->index = static_cast<std::uint32_t>(op->results.size());
  v->name = name;
  op->results.push_back(v);
  return v;
}

const char* Module::intern(const std::string& text) { return strings_.insert(text).first->c_str(); }

Builder Builder::before(Op* op) {
  Builder b(*op->parent->function->module, op->parent, op->loc);
  b.next_ = op;
  return b;
}

Builder Builder::after(Op* op) {
  Builder b = before(op);
  const auto& ops = op->parent->ops;
  const auto next = std::ranges::find(ops, op) + 1;
  b.at_ = static_cast<std::size_t>(next - ops.begin());
  b.next_ = next == ops.end() ? nullptr : *next;
  return b;
}

void Builder::place(Op* op) {
  auto& ops = block_->ops;
  if (!next_) return ops.push_back(op);
  if (at_ >= ops.size() || ops[at_] != next_)
    at_ = static_cast<std::size_t>(std::ranges::find(ops, next_) - ops.begin());
  ops.insert(ops.begin() + static_cast<std::ptrdiff_t>(at_++), op);
}

void Builder::take(Op* op) {
  op->parent = block_;
  for (Value* r : op->results) r->block = block_;
  place(op);
}

Op* Builder::op(Opcode code, std::vector<Value*> operands, const std::vector<Type>& results) {
  Op* op = module_->new_op(code, block_);
  op->operands = std::move(operands);
  op->loc = loc;
  for (const Type& t : results) module_->add_result(op, t);
  place(op);
  return op;
}

Value* Builder::emit(Opcode code, const std::vector<Value*>& operands, std::int64_t attribute,
                     std::span<const std::int64_t> dims, const char* text) {
  Type result = infer_type(code, types_of(operands), attribute, dims, text);
  Op* o = op(code, operands, {result});
  o->integer = attribute;
  if (text) o->text = module_->intern(text);
  return o->result();
}

Value* Builder::number(double v, Type type) {
  Op* o = op(Opcode::constant_, {}, {type});
  o->number = v;
  return o->result();
}

Value* Builder::integer(std::int64_t v, Type type) {
  Op* o = op(Opcode::constant_, {}, {type});
  o->integer = v;
  return o->result();
}

Value* Builder::again(const Op& constant) {
  Op* o = op(constant.code, {}, {constant.result()->type});
  o->number = constant.number;
  o->integer = constant.integer;
  return o->result();
}

Value* Builder::size(Value* tensor, std::size_t dimension) {
  const std::int64_t known = tensor->type.dims()[dimension];
  return known != dynamic ? integer(known) : emit(Opcode::dim_, {tensor}, static_cast<std::int64_t>(dimension));
}

std::vector<Value*> Builder::sizes(Value* tensor) {
  std::vector<Value*> all;
  for (std::size_t d = 0; d < tensor->type.dims().size(); ++d) all.push_back(size(tensor, d));
  return all;
}

Value* Builder::uninitialised(const Type& tensor, std::vector<Value*> sizes) {
  sizes.insert(sizes.begin(), undef(Type(tensor.element())));
  return op(Opcode::fill_, std::move(sizes), {tensor})->result();
}

Value* Builder::zero_like(Value* like) {
  return like->type.is_tensor() ? emit(Opcode::zeros_like_, {like}) : zero(like->type);
}

void Builder::yield(std::vector<Value*> values) { op(Opcode::yield_, std::move(values)); }

Op* Builder::branch(Value* condition, const std::vector<Type>& results) {
  Op* o = op(Opcode::branch_, {condition}, results);
  o->blocks = {module_->new_block(o, block_->function), module_->new_block(o, block_->function)};
  return o;
}

Op* Builder::call(Function* callee, std::vector<Value*> arguments) {
  Op* o = op(Opcode::call_, std::move(arguments), callee->result_types);
  o->callee = callee;
  return o;
}

Op* Builder::fun(const std::vector<Type>& params, const char* name) {
  Op* o = op(Opcode::fun_, {}, {Type::cont(params)});
  o->result()->name = name;
  Block* block = module_->new_block(o, block_->function);
  for (const Type& t : params) module_->add_param(block, t);
  o->blocks = {block};
  return o;
}

bool visible_from(const Value* value, const Block* block) {
  if (value->block == nullptr || block == nullptr || value->block->function != block->function) return false;
  for (const Block* b = block; b; b = b->parent ? b->parent->parent : nullptr)
    if (b == value->block) return true;
  return false;
}

bool is_parallel(const Op& op) {
  return op.is(Opcode::loop_) && op.blocks.size() == 2 && !op.blocks[1]->params.empty() &&
         std::ranges::all_of(op.blocks[1]->params,
                             [](const Value* p) { return p->combine != Combine::none; });
}

std::vector<Block*> blocks_below(Block* root) {
  std::vector<Block*> blocks{root};
  walk(root, [&](const Op* op) { blocks.insert(blocks.end(), op->blocks.begin(), op->blocks.end()); });
  return blocks;
}

std::unordered_set<const Function*> callees(Block* block) {
  std::unordered_set<const Function*> seen;
  std::vector<Block*> work{block};
  while (!work.empty()) {
    Block* const b = work.back();
    work.pop_back();
    walk(b, [&](const Op* op) {
      if (op->callee && seen.insert(op->callee).second) work.push_back(op->callee->body);
    });
  }
  return seen;
}

std::size_t size(const Function& function) {
  std::size_t n = 0;
  walk(function.body, [&](Op*) { ++n; });
  return n;
}

std::size_t size(const Module& module) {
  std::size_t n = 0;
  for (const Function* f : module.functions()) n += size(*f);
  return n;
}

}  // namespace lantern::ir
