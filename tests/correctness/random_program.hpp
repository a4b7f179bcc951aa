// Random well-typed functions for property tests: direct style, and CPS as a reverse handler would stage it.
#pragma once

#include <bit>
#include <limits>
#include <random>

#include "lantern/ir/graph.hpp"

namespace lantern::ir::test {

/// Fills a module; the same seed gives the same program.
class RandomProgram {
 public:
  RandomProgram(Module& module, unsigned seed) : module_(module), random_(seed) {}

  void run() {
    for (int i = 0; i < 2; ++i) direct_.push_back(direct_function());
    cps_.push_back(module_.add_function("c p s", {F64, Type::ref(F64), continuation()}, {}));
    cps_.push_back(module_.add_function("cps", {F64, Type::ref(F64), continuation()}, {}));
    for (Function* f : cps_) fill_cps(f);
    module_.entry = unit();
  }

 private:
  static Type continuation() { return Type::cont({F64, Type::ref(F64)}); }

  int below(int n) { return static_cast<int>(random_() % static_cast<unsigned>(n)); }
  bool chance(int percent) { return below(100) < percent; }

  /// A value made in a block is seen there and below: the list is cut back when the block ends.
  template <class Body>
  void scoped(Block* block, Body&& body) {
    const std::size_t seen = visible_.size();
    Builder b(module_, block);
    for (Value* p : block->params) see(p);
    body(b);
    visible_.resize(seen);
  }

  Value* see(Value* v) {
    static const char* const names[] = {"x", "y", "loss", "1st", "a b", "x_2"};
    if (chance(40)) v->name = names[below(6)];
    if (v->def && chance(20))
      v->def->loc = {"model.cpp", 1u + static_cast<unsigned>(below(99)), chance(50) ? 0u : 7u};
    visible_.push_back(v);
    return v;
  }

  Value* pick(Builder& b, const Type& type) {
    std::vector<Value*> fitting;
    for (Value* v : visible_)
      if (v->type == type) fitting.push_back(v);
    if (!fitting.empty() && chance(85)) return fitting[random_() % fitting.size()];
    if (type == F64 || type == F32) return see(b.number(random_number(type), type));
    if (type.is_tensor()) return see(b.emit(Opcode::fill_, {pick(b, F64), pick(b, I64)}, 0, type.dims()));
    return see(b.integer(type == Bool ? below(2) : below(1000) - 500, type));
  }

  double random_number(const Type& type) {
    const double special[] = {0.0, -0.0, std::numeric_limits<double>::infinity(), 0.1,
                              std::numeric_limits<double>::quiet_NaN()};
    double v = chance(20)
                   ? special[below(5)]
                   : std::bit_cast<double>((std::uint64_t{random_()} << 32 | random_()) & ~(1ull << 62));
    return type == F32 ? static_cast<float>(v) : v;
  }

  void scalar_op(Builder& b) {
    const auto op = static_cast<Opcode>(below(static_cast<int>(Opcode::cast_)));
    const Type tensor = Type::tensor(Kind::f64, {3});
    const OpInfo& row = info(op);
    Type type = chance(15) ? tensor : chance(20) ? F32 : F64;
    if (row.rule == Rule::integer) type = chance(50) ? I64 : I32;
    if (row.rule == Rule::logic) type = Bool;
    std::vector<Value*> operands;
    for (int i = 0; i < row.arity; ++i) {
      const bool condition = row.rule == Rule::choice && i == 0;
      operands.push_back(
          pick(b, condition ? (type.is_tensor() ? tensor.with_element(Kind::boolean) : Bool) : type));
      if (condition && type.is_tensor())
        operands.back() = see(b.emit(Opcode::lt_, {pick(b, tensor), pick(b, tensor)}));
    }
    see(b.emit(op, operands));
  }

  void some_op(Builder& b, int depth) {
    switch (below(depth > 0 ? 12 : 9)) {
      case 0:
        see(b.emit(Opcode::cast_, {pick(b, F64)}, below(5)));
        return;
      case 1:
        see(b.emit(Opcode::get_, {pick(b, Type::tensor(Kind::f64, {3})), pick(b, I64)}));
        return;
      case 2:
        b.op(Opcode::check_, {pick(b, Bool)})->text = module_.intern("a \"message\"\n");
        return;
      case 3: {
        b.op(Opcode::push_, {pick(b, F64), pick(b, I64)})->integer = module_.new_tape();
        Op* pop = b.op(Opcode::pop_, {}, {F64, I64});
        pop->integer = module_.tapes() - 1;
        for (Value* v : pop->results) see(v);
        return;
      }
      case 9:
        return branch(b, depth - 1);
      case 10:
        return loop(b, depth - 1);
      case 11:
        if (direct_.empty()) return;
        see(b.call(direct_[random_() % direct_.size()], {pick(b, F64), pick(b, I64)})->result());
        return;
      default:
        scalar_op(b);
    }
  }

  void ops(Builder& b, int depth) {
    for (int n = below(6); n > 0; --n) some_op(b, depth);
  }

  void branch(Builder& b, int depth) {
    std::vector<Type> results;
    for (int n = below(3); n > 0; --n) results.push_back(chance(50) ? F64 : I64);
    Op* op = b.branch(pick(b, Bool), results);
    for (Block* block : op->blocks)
      scoped(block, [&](Builder& inner) {
        ops(inner, depth);
        yield(inner, results);
      });
    for (Value* v : op->results) see(v);
  }

  void loop(Builder& b, int depth) {
    const std::vector<Type> state = chance(50) ? std::vector{F64, I64} : std::vector{I64};
    std::vector<Value*> initial;
    for (const Type& t : state) initial.push_back(pick(b, t));
    Op* op = b.op(Opcode::loop_, initial, state);
    for (int i = 0; i < 2; ++i) {
      Block* block = module_.new_block(op, b.block()->function);
      for (const Type& t : state) module_.add_param(block, t);
      op->blocks.push_back(block);
      scoped(block, [&](Builder& inner) {
        ops(inner, depth);
        yield(inner, i == 0 ? std::vector{Bool} : state);
      });
    }
    for (Value* v : op->results) see(v);
  }

  void yield(Builder& b, const std::vector<Type>& types) {
    std::vector<Value*> values;
    for (const Type& t : types) values.push_back(pick(b, t));
    b.yield(values);
  }

  Function* direct_function() {
    Function* f = module_.add_function("direct", {F64, I64}, {F64});
    scoped(f->body, [&](Builder& b) {
      ops(b, 3);
      yield(b, {F64});
    });
    return f;
  }

  /// Operations that end with one call of `k`, and the backward part.
  void call_continuation(Builder& b, Value* k, int depth) {
    ops(b, 1);
    Value* x = pick(b, F64);
    Value* dx = b.op(Opcode::ref_new_, {x}, {Type::ref(F64)})->result();
    Value* target = k;
    if (depth > 0 && chance(70)) {
      Op* fun = b.fun({F64, Type::ref(F64)}, chance(30) ? "k" : nullptr);
      target = fun->result();
      scoped(fun->blocks[0], [&](Builder& inner) {
        call_continuation(inner, chance(10) ? target : k, depth - 1);
        inner.op(Opcode::ref_add_, {fun->blocks[0]->params[1], pick(inner, F64)});
        inner.yield({});
      });
    }
    if (depth > 0 && chance(30)) {
      Op* op = b.branch(pick(b, Bool), {});
      for (Block* block : op->blocks)
        scoped(block, [&](Builder& inner) {
          call_continuation(inner, target, depth - 1);
          inner.yield({});
        });
    } else if (chance(40)) {
      b.call(cps_[random_() % cps_.size()], {x, dx, target});
    } else {
      b.op(Opcode::jump_, {target, x, dx});
    }
    see(b.op(Opcode::ref_get_, {dx}, {F64})->result());
    ops(b, 1);
  }

  void fill_cps(Function* f) {
    f->cps = true;
    scoped(f->body, [&](Builder& b) {
      call_continuation(b, f->body->params[2], 4);
      b.yield({});
    });
  }

  /// A function in direct style that starts a computation in CPS with a continuation that seeds the adjoint.
  Function* unit() {
    Function* f = module_.add_function("unit", {F64}, {F64});
    scoped(f->body, [&](Builder& b) {
      Op* seed = b.fun({F64, Type::ref(F64)}, "seed");
      scoped(seed->blocks[0], [&](Builder& inner) {
        inner.op(Opcode::ref_add_, {seed->blocks[0]->params[1], inner.number(1)});
        inner.yield({});
      });
      call_continuation(b, seed->result(), 3);
      yield(b, {F64});
    });
    return f;
  }

  Module& module_;
  std::mt19937 random_;
  std::vector<Value*> visible_;
  std::vector<Function*> direct_, cps_;
};

}  // namespace lantern::ir::test
