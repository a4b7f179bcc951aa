// The textual form of the IR, its parser and the verifier.
#include <bit>
#include <catch2/catch.hpp>
#include <limits>

#include "lantern/compiler/drawing/drawing.hpp"
#include "lantern/compiler/drawing/svg.hpp"
#include "lantern/ir/error.hpp"
#include "lantern/ir/parse.hpp"
#include "lantern/ir/print.hpp"
#include "lantern/ir/verify.hpp"
#include "random_program.hpp"

using namespace lantern;
using namespace lantern::core;
using namespace lantern::ir;

namespace {

std::string parse_error(std::string_view text) {
  try {
    parse(text);
    return "accepted";
  } catch (const Error& e) {
    return e.what();
  }
}

template <class Graph>
std::string verify_error(const Graph& graph) {
  try {
    verify(graph);
    return "accepted";
  } catch (const InternalError& e) {
    return e.what();
  }
}

std::string rejection(std::string_view text) { return verify_error(*parse(text)); }

/// What the verifier says of a function with this body.
std::string body_rejection(const std::string& body) {
  return rejection("fun @f(%x: f64, %n: i64, %c: bool) -> f64 {\n" + body + "\n}");
}

/// What it says of a function in continuation-passing style with this body.
std::string cps_rejection(const std::string& body) {
  return rejection("fun @f(%x: f64, %c: bool, %k: cont(f64)) cps {\n" + body + "\nyield\n}");
}

void check_round_trip(const std::string& text) {
  const auto module = parse(text);
  verify(*module);
  CHECK(print(*module, {.locations = true}) == text);
}

}  // namespace

// ---- print and parse

TEST_CASE("a gradient in continuation-passing style prints as it was written", "[ir][text]") {
  check_round_trip(R"(entry @df

fun @square(%x: f64, %dx: ref f64, %k: cont(f64, ref f64)) cps {
  %y = mul %x, %x : f64
  %dy = ref_new %y : ref f64
  jump %k, %y, %dy
  %1 = ref_get %dy : f64
  %2 = mul %x, %1 : f64
  ref_add %dx, %2
  ref_add %dx, %2
  yield
}

fun @df(%x: f64) -> f64 {
  %dx = ref_new %x : ref f64
  %seed = fun (%y: f64, %dy: ref f64) {
    %1 = constant 1 : f64
    ref_add %dy, %1
    yield
  }
  call @square(%x, %dx, %seed)
  %2 = ref_get %dx : f64
  yield %2
}
)");
}

TEST_CASE("control flow, attributes and locations print as they were written", "[ir][text]") {
  check_round_trip(
      R"(fun @f(%x: f64, %n: i64, %t: f64[3,?], %tree: tree<i64, f64>) -> f64, i64 @ "model.cpp":3 {
  %1 = constant 0 : i64
  %2, %3 = loop %x, %1 : f64, i64 @ "model.cpp":4:7 while (%s: f64, %i: i64) {
    %4 = lt %i, %n : bool
    yield %4
  } do (%s.2: f64, %i.2: i64) {
    %5 = constant 1 : i64
    %6 = add %i.2, %5 : i64
    push[0] %s.2
    %7 = mul %s.2, %x : f64 @ "a \"b\"\\\n.cpp":5:1
    yield %7, %6
  }
  %8 = pop[0] : f64
  %9 = dim[1] %t : i64
  %10 = tree_value[1] %tree : f64
  %11 = cast[f32] %10 : f32
  %12 = tree_empty %tree : bool
  %13 = branch %12 : f64 {
    yield %8
  } else {
    yield %10
  }
  %14 = ref_new %t : ref f64[3,?]
  ref_acc[add_at] %14, %9, %1, %13
  %15 = ref_get %14 : f64[3,?]
  check %12, "the tree must be empty"
  check[0] %12, %9, %9, "expected {}, got {}"
  check[1] %12, %9, %9, "two shapes"
  %16 = fill %13, %9 : f64[7]
  %17 = undef : f32
  %18, %19 = call @"f 2"(%13, %9) : f64, i64
  %20 = argmax %16, "max" : i64
  %21 = argmax %16 : i64
  %22 = set[in place] %16, %9, %13 : f64[7]
  %23 = add_einsum[inside, in place] %t, %t, %t, "ij+=ij,ij" : f64[3,?]
  push[1, copy] %22
  yield %18, %19
}

fun @"f 2"(%1: f64, %2: i64) -> f64, i64 {
  yield %1, %2
}

fun @nothing() {
  yield
}
)");
}

TEST_CASE("continuations in branches and closures print as they were written", "[ir][text]") {
  check_round_trip(R"(fun @f(%x: f64, %c: bool, %k: cont(f64)) cps {
  branch %c {
    jump %k, %x
    yield
  } else {
    %1 = closure @rest(%k, %x) : cont(f64)
    jump %1, %x
    yield
  }
  yield
}

fun @rest(%k: cont(f64), %x: f64, %y: f64) {
  %1 = add %x, %y : f64
  jump %k, %1
  yield
}

fun @loop(%x: f64, %k: cont(f64)) cps {
  %self = fun (%t: f64) {
    %1 = constant 1 : f64
    %2 = lt %t, %1 : bool
    branch %2 {
      jump %k, %t
      yield
    } else {
      %3 = mul %t, %t : f64
      jump %self, %3
      yield
    }
    yield
  }
  jump %self, %x
  yield
}
)");
}

TEST_CASE("users' names are sanitised and made unique, or dropped", "[ir][text]") {
  Module m;
  Function* f = m.add_function("f", {F64, F64, F64, F64}, {});
  const char* names[] = {"x", "x", "1 é", ""};
  for (std::size_t i = 0; i < 4; ++i) f->body->params[i]->name = names[i];
  Builder(m, f->body).yield({});
  const std::string text = "fun @f(%x: f64, %x.2: f64, %_1___: f64, %1: f64) {\n  yield\n}\n";
  CHECK(print(m) == text);
  CHECK(print(*parse(text)) == text);
  CHECK(print(*f, {.names = false}) == "fun @f(%1: f64, %2: f64, %3: f64, %4: f64) {\n  yield\n}\n");
}

TEST_CASE("programs that differ in names only print equally without them", "[ir][text]") {
  const auto a = parse("fun @f(%x: f64) -> f64 { %y = neg %x yield %y }");
  const auto b = parse("fun @f(%a: f64) -> f64 { %7 = neg %a yield %7 }");
  CHECK(print(*a) != print(*b));
  CHECK(print(*a, {.names = false}) == print(*b, {.names = false}));
}

TEST_CASE("numbers come back with the same bits", "[ir][text]") {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const double inf = std::numeric_limits<double>::infinity();
  const std::vector<std::pair<double, std::string>> doubles = {
      {0.1, "0.1"},
      {-0.0, "-0"},
      {1e22, "1e+22"},
      {5e-324, "5e-324"},
      {inf, "inf"},
      {-inf, "-inf"},
      {nan, "nan"},
      {-nan, "-nan"},
      {std::bit_cast<double>(0xfff8000000000001), "-nan(0x7ff8000000000001)"}};
  for (const auto& [number, text] : doubles) {
    Module m;
    Builder b(m, m.add_function("f", {}, {})->body);
    b.number(number);
    b.yield({});
    CHECK(print(m) == "fun @f() {\n  %1 = constant " + text + " : f64\n  yield\n}\n");
    const double back = parse(print(m))->functions()[0]->body->ops[0]->number;
    CHECK(std::bit_cast<std::uint64_t>(back) == std::bit_cast<std::uint64_t>(number));
  }
  check_round_trip(R"(fun @f() {
  %1 = constant 0.1 : f32
  %2 = constant -inf : f32
  %3 = constant nan : f32
  %4 = constant -9223372036854775808 : i64
  %5 = constant -2147483648 : i32
  %6 = constant true : bool
  %7 = constant false : bool
  yield
}
)");
}

TEST_CASE("the parser takes more than the printer gives", "[ir][text]") {
  const auto module = parse(R"(
; comments, any layout, inferred types, names reused in another block
fun @f(%x:f64,%c:bool)->f64{%y=mul %x,%x
%z=branch %c:f64{%t=neg %y yield %t}else{%t=sin %y yield %t}yield %z} ; end)");
  CHECK(print(*module) == R"(fun @f(%x: f64, %c: bool) -> f64 {
  %y = mul %x, %x : f64
  %z = branch %c : f64 {
    %t = neg %y : f64
    yield %t
  } else {
    %t.2 = sin %y : f64
    yield %t.2
  }
  yield %z
}
)");
  CHECK(parse("")->functions().empty());
  CHECK(parse("fun @f() { push[4] yield }")->tapes() == 5);
}

TEST_CASE("the parser says where and what it expected", "[ir][text]") {
  CHECK(parse_error("fn @f() {}") == "1:1: expected 'fun', got 'fn'");
  CHECK(parse_error("fun f() {}") == "1:5: expected a function name, got 'f'");
  CHECK(parse_error("fun @f(%x) {}") == "1:10: expected ':', got ')'");
  CHECK(parse_error("fun @f(%x: f16) {}") == "1:12: expected a type, got 'f16'");
  CHECK(parse_error("fun @f(%x: f64[3,]) {}") == "1:18: expected a dimension, got ']'");
  CHECK(parse_error("fun @f(%x: f64[-1]) {}") == "1:16: expected a dimension, got '-1'");
  CHECK(parse_error("fun @f(% : f64) {}") == "1:8: expected a name after '%', got none");
  CHECK(parse_error("fun @f(%x: f64, %x: f64) {}") == "1:17: expected a new name, got '%x', which is taken");
  CHECK(parse_error("fun @f() {} fun @f() {}") ==
        "1:17: expected a new function name, got '@f', which is taken");
  CHECK(parse_error("fun @f() {\n  yield") == "2:8: expected an operation or '}', got the end");
  CHECK(parse_error("fun @f() {\n  frob\n}") == "2:3: expected an operation or '}', got 'frob'");
  CHECK(parse_error("fun @f() {\n  %a = %b\n}") == "2:8: expected an operation, got '%b'");
  CHECK(parse_error("fun @f() {\n  %a = neg %b\n}") == "2:12: expected a value defined here, got '%b'");
  CHECK(parse_error("fun @f() {\n  %a = call @g() : f64\n}") ==
        "2:13: expected a function of the module, got '@g'");
  CHECK(parse_error("entry @g") == "1:7: expected a function of the module, got '@g'");
  CHECK(parse_error("fun @f(%x: f64) {\n  %a, %b = neg %x : f64\n}") ==
        "2:12: expected as many types as results, got 1 for 2");
  CHECK(parse_error("fun @f(%x: f64) {\n  yield %x : f64\n}") ==
        "2:12: expected no types, there being no results, got ':'");
  CHECK(parse_error("fun @f(%x: f64) {\n  %a = ref_new %x\n}") == "3:1: expected ':' and a type, got '}'");
  CHECK(parse_error("fun @f(%x: i64) {\n  %a = sin %x\n}") ==
        "2:8: sin: expected floating-point operands (cast integers first), got i64");
  CHECK(parse_error("fun @f() {\n  %a = constant 1.5 : i64\n}") ==
        "2:17: expected a constant of type i64, got '1.5'");
  CHECK(parse_error("fun @f() {\n  %a = constant 1 : bool\n}") ==
        "2:17: expected a constant of type bool, got '1'");
  CHECK(parse_error("fun @f(%t: f64[3]) {\n  %a = dim %t\n}") == "2:12: expected '[', got '%t'");
  CHECK(parse_error("fun @f(%t: f64[3]) {\n  %a = exp[1] %t\n}") == "2:12: expected 'in place', got '1'");
  CHECK(parse_error("fun @f(%t: f64[3]) {\n  %a = exp[in 1] %t\n}") == "2:15: expected 'place', got '1'");
  CHECK(parse_error("fun @f(%t: f64[3]) {\n  %a = dim[0, 1] %t\n}") == "2:15: expected 'in place', got '1'");
  CHECK(parse_error("fun @f(%c: bool) {\n  check %c, what\n}") == "2:13: expected a string, got 'what'");
  CHECK(parse_error("fun @f(%c: bool) {\n  check %c, \"what\n}") ==
        "2:13: expected a string that ends on its line, got none");
  CHECK(parse_error("fun @f(%c: bool) {\n  check %c, \"\\q\"\n}") ==
        "2:13: expected \\n, \\t, \\\", \\\\ or \\x and two digits in a string, got another escape");
  CHECK(parse_error("fun @f(%c: bool) {\n  branch %c { yield }\n}") == "3:1: expected 'else', got '}'");
  CHECK(parse_error("fun @f(%c: bool) {\n  loop { yield }\n}") == "2:8: expected 'while', got '{'");
  const auto loop_error = [](const std::string& word, const std::string& params) {
    return parse_error("fun @f(%n: i64) {\n  %i = " + word +
                       " %n : i64 while (%j: i64) {\n  %c = lt %j, %n\n  yield %c\n" + "} do (" + params +
                       ") {\n yield %k\n}\nyield\n}");
  };
  CHECK(loop_error("loop", "%k: i64") == "accepted");
  CHECK(loop_error("parallel", "%k: i64 index") == "accepted");
  CHECK(loop_error("parallel", "%k: i64 indices") ==
        "5:15: expected how iterations come together, such as 'sum', got 'indices'");
  CHECK(loop_error("parallel", "%k: i64") ==
        "5:16: expected for each piece of a parallel loop's state how iterations come together, got '{'");
  CHECK(loop_error("loop", "%k: i64 index") ==
        "5:22: expected a loop whose iterations come together to be 'parallel', got '{'");
  CHECK(parse_error("fun @f() {\n  fun (%x: f64) { yield }\n}") == "2:3: expected one name for fun, got 0");
  CHECK(parse_error("fun @f() @ \"m.cpp\":0 {}") == "1:20: expected a line number, got '0'");
  CHECK(parse_error("fun @f() { yield } }") == "1:20: expected 'fun', got '}'");
  std::string nested = "f64";
  for (int i = 0; i < 100; ++i) nested = "ref " + nested;
  CHECK(parse_error("fun @f(%x: " + nested + ") {}") ==
        "1:272: expected a type nested at most 64 deep, got 'ref'");
}

TEST_CASE("an operation may be printed from a graph that makes no sense", "[ir][text]") {
  Module m;
  Function* f = m.add_function("f", {F64}, {});
  Function* g = m.add_function("g", {F64}, {});
  Op* op = Builder(m, f->body).op(Opcode::add_, {f->body->params[0], g->body->params[0], nullptr}, {F64});
  CHECK(print(*op, Names(*f)) == "%2 = add %1, %?, %? : f64");
}

// ---- depth

TEST_CASE("continuations nest 100,000 deep", "[ir][text]") {
  constexpr int depth = 100'000;
  Module m;
  Function* f = m.add_function("f", {F64}, {});
  Builder b(m, f->body);
  Value* v = f->body->params[0];
  for (int i = 0; i < depth; ++i) {
    Op* k = b.fun({F64});
    b.op(Opcode::jump_, {k->result(), v});
    b.yield({});
    b.set_block(k->blocks[0]);
    v = k->blocks[0]->params[0];
  }
  b.yield({});
  verify(m);
  const std::string text = print(m);
  CHECK(text.size() < 500 * depth);
  const auto back = parse(text);
  verify(*back);
  CHECK(print(*back) == text);
  const auto drawn = drawing(m);
  REQUIRE(drawn.size() == 1);
  CHECK(drawn[0].operations == 3 * depth + 1);
  CHECK(svg(drawn).size() < 100'000);
}

TEST_CASE("branches nest 100,000 deep", "[ir][text]") {
  constexpr int depth = 100'000;
  std::string text = "fun @f(%c: bool) {\n";
  for (int i = 0; i < depth; ++i) text += "branch %c {\n";
  for (int i = 0; i < depth; ++i) text += "yield } else { yield }\n";
  const auto module = parse(text + "yield }");
  verify(*module);
  CHECK(print(*parse(print(*module))) == print(*module));
}

// ---- the verifier

TEST_CASE("the verifier refuses operands that are not visible", "[ir][verify]") {
  Module m;
  Function* f = m.add_function("f", {F64, Bool}, {});
  Builder b(m, f->body);
  Op* early = b.op(Opcode::neg_, {f->body->params[0]}, {F64});
  Op* branch = b.branch(f->body->params[1], {});
  Builder then(m, branch->blocks[0]);
  Value* inner = then.emit(Opcode::sin_, {f->body->params[0]});
  then.yield({});
  Builder(m, branch->blocks[1]).yield({});
  Op* late = b.op(Opcode::cos_, {f->body->params[0]}, {F64});
  b.yield({});
  CHECK(verify_error(*f) == "accepted");

  early->operands[0] = late->result();
  CHECK(verify_error(*f) ==
        "in @f, at '%3 = neg %5 : f64': expected operand %5 to be defined before its use, got no definition "
        "so far");
  early->operands[0] = early->result();
  CHECK(verify_error(*f) ==
        "in @f, at '%3 = neg %3 : f64': expected operand %3 to be defined before its use, got no definition "
        "so far");
  early->operands[0] = f->body->params[0];
  late->operands[0] = inner;
  CHECK(verify_error(*f) ==
        "in @f, at '%5 = cos %4 : f64': expected operand %4 to be visible here, got one of a block that has "
        "ended");
  late->operands[0] = nullptr;
  CHECK(verify_error(*f) == "in @f, at '%5 = cos %? : f64': expected operands, got null");
  Function* g = m.add_function("g", {F64}, {});
  late->operands[0] = g->body->params[0];
  CHECK(verify_error(*f) ==
        "in @f, at '%5 = cos %? : f64': expected operand %? to be defined before its use, got no definition "
        "so far");
}

TEST_CASE("the verifier refuses broken links", "[ir][verify]") {
  Module m;
  Function* f = m.add_function("f", {F64, Bool}, {});
  Builder b(m, f->body);
  Op* op = b.op(Opcode::neg_, {f->body->params[0]}, {F64});
  Op* branch = b.branch(f->body->params[1], {});
  for (Block* block : branch->blocks) Builder(m, block).yield({});
  b.yield({});
  const std::string at_neg = "in @f, at '%3 = neg %1 : f64': ";
  const std::string at_branch = "in @f, at 'branch %2': ";

  op->parent = branch->blocks[0];
  CHECK(verify_error(m) ==
        at_neg + "expected the operation's parent to be the block that holds it, got another");
  op->parent = f->body;
  op->result()->index = 1;
  CHECK(verify_error(m) == at_neg + "expected the value %3 to know where it is defined, got another place");
  op->result()->index = 0;
  op->result()->def = branch;
  CHECK(verify_error(m) == at_neg + "expected the value %3 to know where it is defined, got another place");
  op->result()->def = op;
  f->body->params[1]->block = branch->blocks[0];
  CHECK(verify_error(m) == "in @f: expected the value %2 to know where it is defined, got another place");
  f->body->params[1]->block = f->body;
  branch->blocks[0]->parent = op;
  CHECK(verify_error(m) ==
        at_branch + "expected the block's parent to be the operation that holds it, got another");
  branch->blocks[0]->parent = branch;
  branch->blocks[0]->function = nullptr;
  CHECK(verify_error(m) == at_branch + "expected the block to belong to this function, got another");
  branch->blocks[0]->function = f;
  std::swap(branch->blocks[0], f->body);
  CHECK(verify_error(m) ==
        "in @f: expected the block's parent to be the operation that holds it, got another");
  std::swap(branch->blocks[0], f->body);
  Block* then = branch->blocks[0];
  branch->blocks[0] = nullptr;
  CHECK(verify_error(m) == at_branch + "expected blocks without parameters, got others");
  branch->blocks[0] = branch->blocks[1];
  CHECK(verify_error(m) == at_branch + "expected a block of its own, got one that occurs twice");
  branch->blocks[0] = then;
  f->body->ops.insert(f->body->ops.begin(), op);
  CHECK(verify_error(m) == at_neg + "expected %3 to be defined once, got a second");
  f->body->ops[0] = nullptr;
  CHECK(verify_error(m) == "in @f: expected an operation, got null");
  f->body->ops.erase(f->body->ops.begin());
  CHECK(verify_error(m) == "accepted");

  Module other;
  m.entry = other.add_function("g", {}, {});
  CHECK(verify_error(m) == "expected the entry of the module to be one of its functions, got @g");
  m.entry = nullptr;
  f->module = &other;
  CHECK(verify_error(m) == "expected @f to know its module, got another");
}

TEST_CASE("the verifier refuses blocks that do not end with a fitting yield", "[ir][verify]") {
  CHECK(body_rejection("") == "in @f: expected a block that ends with yield, got none");
  CHECK(body_rejection("yield %x yield %x") ==
        "in @f, at 'yield %x': expected yield at the end of its block, got operations after it");
  CHECK(body_rejection("yield") ==
        "in @f, at 'yield': expected results of the function of types f64, got nothing");
  CHECK(body_rejection("yield %n") ==
        "in @f, at 'yield %n': expected results of the function of types f64, got i64");
  CHECK(body_rejection("%r = branch %c : f64 { yield %x } else { } yield %r") ==
        "in @f, at '%r = branch %c : f64': expected a block that ends with yield, got none");
  CHECK(body_rejection("%r = branch %c : f64 { yield %x } else { yield %n } yield %r") ==
        "in @f, at 'yield %n': expected results of the branch of types f64, got i64");
  CHECK(
      body_rejection("%r = loop %x : f64 while (%t: f64) { yield %t } do (%t: f64) { yield %t } yield %r") ==
      "in @f, at 'yield %t': expected a loop condition of types bool, got f64");
  CHECK(
      body_rejection("%r = loop %x : f64 while (%t: f64) { yield %c } do (%t: f64) { yield %n } yield %r") ==
      "in @f, at 'yield %n': expected the next state of types f64, got i64");
  CHECK(body_rejection("%k = fun (%y: f64) { yield %y } yield %x") ==
        "in @f, at 'yield %y': expected the results of a continuation of types nothing, got f64");
}

TEST_CASE("the verifier refuses results of another type than the operation has", "[ir][verify]") {
  CHECK(body_rejection("%a = lt %x, %x : f64 yield %a") ==
        "in @f, at '%a = lt %x, %x : f64': expected a result of type bool, got f64");
  CHECK(body_rejection("%a = add %x, %n : f64 yield %a") ==
        "in @f, at '%a = add %x, %n : f64': add: expected operands of one type and shape, got f64, i64");
  CHECK(body_rejection("%a = add %x : f64 yield %a") ==
        "in @f, at '%a = add %x : f64': expected 2 operands, got 1");
  CHECK(body_rejection("neg %x yield %x") == "in @f, at 'neg %x': expected 1 results, got 0");
  CHECK(body_rejection("%a = get : f64 yield %a") ==
        "in @f, at '%a = get : f64': expected operands, got none");
  CHECK(body_rejection("%a = constant 1 : f64[3] yield %x") ==
        "in @f, at '%a = constant 1 : f64[3]': expected a constant of scalar type, got f64[3]");
  CHECK(body_rejection("%a = constant 3000000000 : i32 yield %x") ==
        "in @f, at '%a = constant 3000000000 : i32': expected a number that fits i32, got 3000000000");
  CHECK(body_rejection("%a = branch %x : f64 { yield %x } else { yield %x } yield %a") ==
        "in @f, at '%a = branch %x : f64': expected a bool, got f64");
  CHECK(
      body_rejection("%a = loop %x : f64 while (%t: i64) { yield %c } do (%t: f64) { yield %t } yield %a") ==
      "in @f, at '%a = loop %x : f64': expected parameters of types f64, got i64");
  CHECK(
      body_rejection("%a = loop %x : i64 while (%t: f64) { yield %c } do (%t: f64) { yield %t } yield %x") ==
      "in @f, at '%a = loop %x : i64': expected results of types f64, got i64");
  CHECK(body_rejection("check %x, \"no\" yield %x") ==
        "in @f, at 'check %x, \"no\"': expected a bool, got f64");
  CHECK(body_rejection("push[0] yield %x") == "in @f, at 'push[0]': expected values to push, got none");
  CHECK(body_rejection("pop[0] yield %x") == "in @f, at 'pop[0]': expected values to pop, got none");
  CHECK(body_rejection("%k = fun (%y: f64) { yield } jump %k, %n yield %x") ==
        "in @f, at 'jump %k, %n': expected arguments of types f64, got i64");
  CHECK(body_rejection("jump %x yield %x") ==
        "in @f, at 'jump %x': expected a continuation to call, got f64");
  CHECK(body_rejection("%a = closure @f(%x) : f64 yield %a") ==
        "in @f, at '%a = closure @f(%x) : f64': expected a continuation, got f64");
  CHECK(body_rejection("%a = closure @f(%x) : cont(f64, bool) yield %x") ==
        "in @f, at '%a = closure @f(%x) : cont(f64, bool)': expected captured values and parameters of types "
        "f64, i64, bool, got f64, f64, bool");
  CHECK(body_rejection("%a = call @f(%x) : f64 yield %a") ==
        "in @f, at '%a = call @f(%x) : f64': expected arguments of types f64, i64, bool, got f64");
  CHECK(body_rejection("%a = call @f(%x, %n, %c) : i64 yield %x") ==
        "in @f, at '%a = call @f(%x, %n, %c) : i64': expected results of types f64, got i64");
}

TEST_CASE("the verifier refuses numbers that name nothing", "[ir][verify]") {
  Module m;
  Function* f = m.add_function("f", {F64}, {});
  Builder b(m, f->body);
  Op* op = b.op(Opcode::push_, {f->body->params[0]});
  b.yield({});
  CHECK(verify_error(m) == "in @f, at 'push[0] %1': expected a tape of the module, got 0");
  m.new_tape();
  CHECK(verify_error(m) == "accepted");
  op->code = Opcode::cast_;
  m.add_result(op, F64);
  op->integer = 77;
  CHECK(verify_error(m) == "in @f, at '%2 = cast[?] %1 : f64': expected the kind of a scalar, got 77");
  op->code = Opcode::call_;
  CHECK(verify_error(m) == "in @f, at '%2 = call @?(%1) : f64': expected a callee, got none");
  op->callee = f;
  m.remove_function(f);
  CHECK(verify_error(*f) ==
        "in @f, at '%2 = call @f(%1) : f64': expected a callee of this module, got another");
  op->code = Opcode::count_;
  CHECK(verify_error(*f).starts_with("in @f, at '%2 = ? %1 : f64': expected a known operation, got "));
}

TEST_CASE("the verifier wants one call of a continuation on every path of a cps function", "[ir][verify]") {
  const std::string one = "expected exactly one call of a continuation on every path, got ";
  CHECK(cps_rejection("jump %k, %x") == "accepted");
  CHECK(cps_rejection("branch %c { jump %k, %x yield } else { jump %k, %x yield }") == "accepted");
  CHECK(cps_rejection("call @f(%x, %c, %k)") == "accepted");
  CHECK(cps_rejection("") == "in @f: " + one + "a body without one");
  CHECK(cps_rejection("jump %k, %x jump %k, %x") ==
        "in @f, at 'jump %k, %x': expected one call of a continuation on every path, got a second");
  CHECK(cps_rejection("jump %k, %x call @f(%x, %c, %k)") ==
        "in @f, at 'call @f(%x, %c, %k)': expected one call of a continuation on every path, got a second");
  CHECK(cps_rejection("branch %c { jump %k, %x yield } else { yield }") ==
        "in @f, at 'branch %c': expected both blocks of a branch to call a continuation, or none, got one "
        "that does");
  CHECK(cps_rejection("%r = branch %c : f64 { jump %k, %x yield %x } else { jump %k, %x yield %x }") ==
        "in @f, at '%r = branch %c : f64': expected a branch that calls continuations to have no results, "
        "got f64");
  CHECK(cps_rejection("loop while () { yield %c } do () { jump %k, %x yield } jump %k, %x") ==
        "in @f, at 'loop': expected no call of a continuation in a loop, got one");
  CHECK(cps_rejection("%l = fun (%y: f64) { yield } jump %l, %x") ==
        "in @f, at '%l = fun': " + one + "a continuation without one");
  CHECK(rejection("fun @f(%x: f64) cps { yield }") ==
        "in @f: expected the last parameter of a cps function to be its continuation, got f64");
  CHECK(rejection("fun @f() cps { yield }") ==
        "in @f: expected the last parameter of a cps function to be its continuation, got none");
}

TEST_CASE("the verifier refuses continuations used as data", "[ir][verify]") {
  const std::string rule =
      "to be called, handed to jump or closure, or the last argument of a call, got another use";
  CHECK(cps_rejection("%l = select %c, %k, %k jump %k, %x") ==
        "in @f, at '%l = select %c, %k, %k : cont(f64)': expected the continuation %k " + rule);
  CHECK(cps_rejection("push[0] %k jump %k, %x") ==
        "in @f, at 'push[0] %k': expected the continuation %k " + rule);
  CHECK(
      cps_rejection("%l = undef : cont(f64) jump %l, %x") ==
      "in @f, at '%l = undef : cont(f64)': expected a continuation to be made by fun or closure, got undef");
  CHECK(rejection("fun @f(%k: cont(), %x: f64) { call @f(%k, %x) yield }") ==
        "in @f, at 'call @f(%k, %x)': expected the continuation %k " + rule);
}

TEST_CASE("the verifier refuses cells used as data or read by others", "[ir][verify]") {
  const std::string rule =
      "to be used by a ref operation or handed to jump, call or closure, got another use";
  const std::string cell = "%d = ref_new %x : ref f64 ";
  CHECK(body_rejection(cell + "ref_add %d, %x ref_set %d, %x %g = ref_get %d : f64 yield %g") == "accepted");
  CHECK(body_rejection(cell + "branch %c { %g = ref_get %d : f64 yield } else { yield } yield %x") ==
        "accepted");
  CHECK(body_rejection(cell + "push[0] %d yield %x") ==
        "in @f, at 'push[0] %d': expected the cell %d " + rule);
  CHECK(body_rejection(cell + "%e = ref_new %d : ref ref f64 yield %x") ==
        "in @f, at '%e = ref_new %d : ref ref f64': expected the cell %d " + rule);
  CHECK(body_rejection("%d = undef : ref f64 yield %x") ==
        "in @f, at '%d = undef : ref f64': expected a cell to be made by ref_new, got undef");
  CHECK(body_rejection("%d = ref_new %n : ref f64 yield %x") ==
        "in @f, at '%d = ref_new %n : ref f64': expected a result of types ref i64, got ref f64");
  CHECK(body_rejection(cell + "ref_add %d, %n yield %x") ==
        "in @f, at 'ref_add %d, %n': expected a value of types f64, got i64");
  CHECK(body_rejection(cell + "%g = ref_get %d : i64 yield %x") ==
        "in @f, at '%g = ref_get %d : i64': expected a result of types f64, got i64");
  CHECK(body_rejection("ref_add %x, %x yield %x") == "in @f, at 'ref_add %x, %x': expected a cell, got f64");
  CHECK(body_rejection(cell + "ref_acc[mul] %d, %x yield %x") ==
        "in @f, at 'ref_acc[mul] %d, %x': expected an accumulating operation, got mul");
  CHECK(body_rejection(cell + "ref_acc[add_at] %d, %n, %x yield %x") ==
        "in @f, at 'ref_acc[add_at] %d, %n, %x': add_at: expected a tensor, one index per dimension, and a "
        "value, "
        "got f64, i64, f64");
  CHECK(body_rejection(cell + "%k = fun () { %g = ref_get %d : f64 yield } jump %k yield %x") ==
        "in @f, at '%g = ref_get %d : f64': expected the cell %d to be read by its creator, got a read in a "
        "continuation");
  CHECK(rejection("fun @f(%d: ref f64) -> f64 { %g = ref_get %d : f64 yield %g }") ==
        "in @f, at '%g = ref_get %d : f64': expected the cell %d to be read by its creator, got a parameter");
}

// ---- random programs

TEST_CASE("random programs verify, and print and parse to the same text", "[ir][text][verify]") {
  for (unsigned seed = 0; seed < 500; ++seed) {
    INFO("seed " << seed);
    Module m;
    test::RandomProgram(m, seed).run();
    REQUIRE(verify_error(m) == "accepted");
    const PrintOptions options{.locations = true};
    const std::string text = print(m, options);
    const auto back = parse(text);
    REQUIRE(verify_error(*back) == "accepted");
    REQUIRE(print(*back, options) == text);
    REQUIRE(print(*back, {.names = false}) == print(m, {.names = false}));
    REQUIRE(size(*back) == size(m));
  }
}
