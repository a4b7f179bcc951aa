// What passes write graphs with: insertion points, users, copies of operations and of whole modules.
#include <catch2/catch.hpp>

#include "lantern/ir/clone.hpp"
#include "lantern/ir/encode.hpp"
#include "lantern/ir/parse.hpp"
#include "lantern/ir/print.hpp"
#include "lantern/ir/uses.hpp"
#include "lantern/ir/verify.hpp"
#include "lantern/lantern.hpp"

using namespace lantern::ir;

namespace {

const char* const nested = R"(entry @f

fun @f(%x: f64, %n: i64, %t: f64[?]) -> f64, f64[?] @ "model.cpp":3 {
  %1 = constant 0 : i64
  %2, %s = loop[memory 64] %1, %x : i64, f64 @ "model.cpp":4:7 while (%i: i64, %s.2: f64) {
    %3 = lt %i, %n : bool
    yield %3
  } do (%i.2: i64, %s.3: f64) {
    %4 = constant 1 : i64
    %5 = add %i.2, %4 : i64
    %6 = mul %s.3, %x : f64 @ "other.cpp":9 backward
    push[2, copy] %t
    yield %5, %6
  }
  %7 = set[in place] %t, %1, %s : f64[?]
  %8 = lt %x, %s : bool
  check %8, "no"
  %9 = call[checkpoint] @g(%s) : f64
  yield %9, %7
}

fun @g(%1: f64) -> f64 {
  %2 = sin %1 : f64
  yield %2
}
)";

const PrintOptions whole{.locations = true, .names = true};

std::string text_of(const Block& block) {
  std::string names;
  for (const Op* op : block.ops) names += std::string(info(op->code).name) + " ";
  return names;
}

}  // namespace

TEST_CASE("a module's copy is the same program, and shares nothing", "[ir]") {
  auto module = parse(nested);
  auto copy = clone(*module);
  verify(*copy);
  CHECK(print(*copy, whole) == nested);
  CHECK(copy->tapes() == module->tapes());
  CHECK(copy->entry == copy->functions()[0]);
  CHECK(copy->functions()[0]->body->ops[5]->callee == copy->functions()[1]);
  copy->functions()[1]->body->ops[0]->code = Opcode::cos_;
  CHECK(print(*module, whole) == nested);
  module = nullptr;  // with the texts that it owns
  CHECK(print(*copy, whole).find("cos") != std::string::npos);
  CHECK(print(*copy, whole).find("\"other.cpp\":9 backward") != std::string::npos);
}

TEST_CASE("continuations nested a hundred thousand deep are copied", "[ir]") {
  Module module;
  Function* f = module.add_function("f", {F64, Type::cont({F64})}, {});
  f->cps = true;
  Builder b(module, f->body);
  Value *x = f->body->params[0], *rest = f->body->params[1];
  for (int i = 0; i < 100000; ++i) {
    Op* const k = b.fun({F64});
    b.op(Opcode::jump_, {k->result(), x});
    b.yield({});
    b.set_block(k->blocks[0]);
    x = k->blocks[0]->params[0];
  }
  b.op(Opcode::jump_, {rest, x});
  b.yield({});
  CHECK(print(*clone(module)) == print(module));
}

TEST_CASE("operations are copied with other values in place of some, and without some updates", "[ir]") {
  const auto module = parse(
      "fun @f(%x: f64, %t: f64[?], %i: i64, %c: bool) -> f64[?] {\n"
      "%y = sin %x\n%z = branch %c : f64[?] { %u = set %t, %i, %y\n%v = add_at %u, %i, %x yield %v }"
      " else { yield %t }\nyield %z }");
  Function* const f = module->functions()[0];
  Block* const body = f->body;
  Builder b = Builder::before(body->ops.back());
  Renaming names{{body->params[0], body->ops[0]->result()}};
  const Op* const set = body->ops[1]->blocks[0]->ops[0];
  Op* const copy = clone(b, *body->ops[1], names, {set});
  CHECK(text_of(*body) == "sin branch branch yield ");
  REQUIRE(copy->blocks[0]->ops.size() == 2);
  const Op& sum = *copy->blocks[0]->ops[0];
  CHECK(sum.operands == std::vector<Value*>{body->params[1], body->params[2], body->ops[0]->result()});
  CHECK(names.at(set->result()) == body->params[1]);
  verify(*module);
}

TEST_CASE("a builder adds before and after operations, whatever else moves", "[ir]") {
  const auto module = parse("fun @f(%x: f64) -> f64 { %a = sin %x\n%b = cos %a yield %b }");
  Block* const body = module->functions()[0]->body;
  Op *const sin = body->ops[0], *const cos = body->ops[1];
  Builder before = Builder::before(cos), after = Builder::after(cos), end(*module, body);
  Value* const x = body->params[0];
  before.emit(Opcode::exp_, {x});
  after.emit(Opcode::tan_, {x});
  before.emit(Opcode::log_, {x});
  Builder::before(sin).emit(Opcode::abs_, {x});
  Builder::after(sin).emit(Opcode::floor_, {x});
  after.emit(Opcode::sqrt_, {x});
  before.emit(Opcode::tanh_, {x});
  CHECK(text_of(*body) == "abs sin floor exp log tanh cos tan sqrt yield ");
  Builder::after(body->ops.back()).emit(Opcode::neg_, {x});
  end.emit(Opcode::ceil_, {x});
  CHECK(text_of(*body) == "abs sin floor exp log tanh cos tan sqrt yield neg ceil ");
}

TEST_CASE("users are found in order, in nested blocks too, and may be given another value", "[ir]") {
  const auto module = parse(nested);
  Function* const f = module->functions()[0];
  const Uses uses(*f);
  const Value* const x = f->body->params[0];
  REQUIRE(uses.count(x) == 3);
  CHECK(uses.of(x)[0].op->is(Opcode::loop_));
  CHECK(uses.of(x)[0].operand == 1);
  CHECK(uses.of(x)[1].op->is(Opcode::mul_));
  CHECK(uses.of(x)[2].op->is(Opcode::lt_));
  CHECK(Uses(f->body->ops[1]).count(x) == 1);  // in the loop alone
  CHECK(uses.once(f->body->ops[3]->result()));
  CHECK(uses.of(nullptr).empty());

  Value *const t = f->body->params[2], *const n = f->body->params[1], *const zero = f->body->ops[0]->result();
  replace_uses(f->body, n, zero);
  CHECK(Uses(*f).count(n) == 0);
  replace_uses(f->body,
               {{x, f->body->ops[1]->results[1]}, {f->body->ops[1]->results[1], t}});  // one after the other
  CHECK(Uses(*f).count(x) == 0);
  CHECK(Uses(*f).count(t) == 8);
}
