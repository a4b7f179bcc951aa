// The verifier's forms: each property that a phase may ask for, violated alone; and what an operation carries.
#include <catch2/catch.hpp>

#include "lantern/ir/error.hpp"
#include "lantern/ir/form.hpp"
#include "lantern/ir/parse.hpp"
#include "lantern/ir/verify.hpp"

using namespace lantern;
using namespace lantern::ir;

namespace {

std::string refusal(const Module& module, Form form) {
  try {
    verify(module, form);
    return "accepted";
  } catch (const InternalError& e) {
    return e.what();
  }
}

/// The module has every form but those with the property, and is refused there.
void check_only(Property property, const std::string& text, const std::string& message) {
  INFO(text);
  const auto module = parse(text);
  CHECK(refusal(*module, {}) == "accepted");
  for (const Property p : {Property::paired, Property::scalar, Property::unplaced, Property::direct,
                           Property::lowered, Property::closed, Property::callable}) {
    INFO(describe(p));
    if (p == property) CHECK(refusal(*module, {p}) == message);
    else CHECK(refusal(*module, {p}) == "accepted");
  }
}

const std::string entry = "entry @main\n\nfun @main(%x: f64) -> f64 { yield %x }\n\n";

}  // namespace

TEST_CASE("forms: cells stand behind their primals", "[ir][verify]") {
  // A cell is no direct style either: the forms that ask for both are refused for what comes first.
  const auto first = parse("fun @f(%dx: ref f64, %x: f64, %k: cont(f64)) cps { ref_add %dx, %x jump %k, %x yield }");
  const std::string rule = "expected each cell that is handed over behind its primal, and of its type, got ";
  CHECK(refusal(*first, forms::staged) == "in @f: " + rule + "a cell as first parameter");
  const auto other = parse("fun @f(%x: f64, %k: cont(f64)) cps { %c = fun (%n: i64, %dn: ref f64) {\n"
                           "ref_add %dn, %x jump %k, %x yield }\n"
                           "%z = constant 0 : i64\n%d = ref_new %x : ref f64\njump %c, %z, %d yield }");
  CHECK(refusal(*other, forms::staged) ==
        "in @f, at '%c = fun': " + rule + "a cell behind a parameter of another type");
  const auto good = parse("fun @f(%x: f64, %dx: ref f64, %k: cont(f64)) cps { ref_add %dx, %x jump %k, %x yield }");
  CHECK(refusal(*good, forms::staged) == "accepted");
}

TEST_CASE("forms: no vectors before the schedule", "[ir][verify]") {
  check_only(Property::scalar, entry + "fun @f(%x: f64) -> f64 {\n%v = lane_splat[4] %x\n%s = lane_sum %v yield %s }",
             "in @f, at '%v = lane_splat[4] %x : f64x4': expected no vectors before the schedule, got f64x4");
}

TEST_CASE("forms: memory is decided last", "[ir][verify]") {
  const std::string rule = "expected no decisions about memory before all operations are in order, got ";
  check_only(Property::unplaced, entry + "fun @f(%x: f64[?]) { forget %x yield }",
             "in @f, at 'forget %x': " + rule + "a tensor that is done with");
  const auto marked = parse("fun @f(%x: f64[?], %i: i64, %v: f64) -> f64[?] { %y = set %x, %i, %v yield %y }");
  CHECK(refusal(*marked, forms::loops) == "accepted");
  marked->functions()[0]->body->ops[0]->in_place = true;
  CHECK(refusal(*marked, forms::placed) == "accepted");
  CHECK(refusal(*marked, forms::loops) ==
        "in @f, at '%y = set[in place] %x, %i, %v : f64[?]': " + rule + "a mark that it works in place");
}

TEST_CASE("forms: direct style", "[ir][verify]") {
  const std::string rule = "expected direct style (no continuations, no cells), got ";
  check_only(Property::direct, entry + "fun @f(%x: f64, %k: cont(f64)) cps { jump %k, %x yield }",
             "in @f: " + rule + "a function in continuation-passing style");
  check_only(Property::direct, entry + "fun @f(%x: f64, %k: cont(f64)) { jump %k, %x yield }",
             "in @f: " + rule + "cont(f64)");
  check_only(Property::direct,
             entry + "fun @f(%x: f64) -> f64 {\n%d = ref_new %x : ref f64\n%g = ref_get %d : f64\nyield %g }",
             "in @f, at '%d = ref_new %x : ref f64': " + rule + "ref f64");
  check_only(Property::direct, entry + "fun @f() { halt yield }",
             "in @f, at 'halt': " + rule + "an operation of continuation-passing style");
}

TEST_CASE("forms: operations on tensors that printers know", "[ir][verify]") {
  const std::string rule = "expected loops over elements in place of operations on tensors, got ";
  check_only(Property::lowered, entry + "fun @f(%t: f64[?]) -> f64[?] { %e = exp %t yield %e }",
             "in @f, at '%e = exp %t : f64[?]': " + rule + "an operation on each element of a tensor");
  check_only(Property::lowered, entry + "fun @f(%t: f64[?]) -> f32[?] { %e = cast[f32] %t yield %e }",
             "in @f, at '%e = cast[f32] %t : f32[?]': " + rule + "an operation on each element of a tensor");
  check_only(Property::lowered, entry + "fun @f(%t: f64[?]) -> f64 { %e = sum %t yield %e }",
             "in @f, at '%e = sum %t : f64': " + rule + "a sum of products");
  check_only(Property::lowered, entry + "fun @f(%x: f64) -> f64 { %e = relu %x yield %e }",
             "in @f, at '%e = relu %x : f64': " + rule + "an operation that is written out by others");
  // Of two whole tensors one, and products that call a routine, are for printers.
  CHECK(refusal(*parse("fun @f(%c: bool, %a: f64[?,?], %b: f64[?,?]) -> f64[?,?] {\n%s = select %c, %a, %b\n"
                       "%r = add_einsum %s, %a, %b, \"ij+=ik,kj\" yield %r }"),
                forms::loops) == "accepted");
}

TEST_CASE("forms: closed functions", "[ir][verify]") {
  const std::string text =
      entry + "fun @f(%x: f64, %k: cont(f64)) cps { %c = fun (%y: f64) { jump %k, %y yield } jump %c, %x yield }";
  CHECK(refusal(*parse(text), {Property::closed}) ==
        "in @f, at '%c = fun': expected closed functions (continuations as functions of the module), got a "
        "continuation whose body is here");
  CHECK(refusal(*parse(entry + "fun @f(%x: f64, %k: cont(f64)) { %c = closure @g(%k) : cont(f64) jump %c, %x yield }\n"
                               "fun @g(%k: cont(f64), %y: f64) { jump %k, %y yield }"),
                forms::printable) == "accepted");
}

TEST_CASE("forms: an entry that takes and gives data", "[ir][verify]") {
  const std::string rule = "expected an entry that takes and gives data, got ";
  CHECK(refusal(*parse("fun @f() { yield }"), forms::printable) == rule + "none");
  CHECK(refusal(*parse("entry @f\nfun @f(%x: f64, %k: cont(f64)) { jump %k, %x yield }"), forms::printable) ==
        "in @f: " + rule + "cont(f64)");
  CHECK(refusal(*parse(entry), forms::printable) == "accepted");
}

// ---- what holds of every graph

TEST_CASE("the verifier refuses attributes that an operation does not know", "[ir][verify]") {
  const auto rejection = [](const std::string& operation, const auto& change) {
    const auto module = parse("fun @f(%x: f64, %t: f64[?], %c: bool) {\n" + operation + " yield }");
    Op* const op = module->functions()[0]->body->ops[0];
    CHECK(refusal(*module, {}) == "accepted");
    change(*op);
    const std::string message = refusal(*module, {});
    return message == "accepted" ? message : message.substr(message.find("': ") + 3);
  };
  const auto number = [](std::int64_t n) { return [n](Op& op) { op.integer = n; }; };
  const std::string rule = "expected an attribute that the operation knows, got ";
  CHECK(rejection("%a = sin %x", number(1)) == rule + "1");
  CHECK(rejection("%a = exp %t", number(1)) == rule + "1");
  const auto in_place = [](Op& op) { op.in_place = true; };
  const std::string no_place =
      "expected an operation in place to have a tensor that its result can lie in, got none";
  CHECK(rejection("%a = exp %t", in_place) == "accepted");
  CHECK(rejection("%a = sin %x", in_place) == no_place);
  CHECK(rejection("%a = lt %t, %t", in_place) == no_place);
  CHECK(rejection("%a = cast[f32] %t", in_place) == no_place);
  CHECK(rejection("%a = lane_splat[4] %x", number(1)) == "expected a number of lanes, got 1");
  CHECK(rejection("%a = lane_splat[4] %x", number(-4)) == "expected a number of lanes, got -4");
  CHECK(rejection("check %c, \"no\"", number(1)) == rule + "1");
  CHECK(rejection("%a = external %x, \"double f(double)\" : f64", number(4)) == rule + "4");
  CHECK(rejection("call @f(%x, %t, %c)", number(1)) == rule + "1");
  CHECK(rejection("call @f(%x, %t, %c)", number(-1)) == rule + "-1");
  CHECK(rejection("loop while () { yield %c } do () { yield }", number(1)) == rule + "1");
  CHECK(rejection("%a = einsum %t, %t, \"i,i->\"", number(3)) == rule + "3");
  CHECK(rejection("%a = sin %x", [](Op& op) { op.number = 2; }) == "expected no number, got one");
  CHECK(rejection("push[0] %x", [](Op& op) { op.number = 2; }) == "expected no number, got one");
  CHECK(rejection("%a = sin %x", [](Op& op) { op.text = "sin"; }) == "expected no text, got one");
  CHECK(rejection("%a = print_adjoint %x, \"x\"", [](Op& op) { op.text = nullptr; }) == "expected a text, got none");
  CHECK(rejection("%a = sin %x", [](Op& op) { op.callee = op.parent->function; }) ==
        "expected a callee of calls only, got one");
}

TEST_CASE("the verifier refuses a tape of two types", "[ir][verify]") {
  CHECK(refusal(*parse("fun @f(%x: f64) -> f64 { push[0] %x\n%y = pop[0] : f64 yield %y }"), {}) == "accepted");
  CHECK(refusal(*parse("fun @f(%t: f64[?]) { push[0] %t yield }\nfun @g() -> f64[3] { %y = pop[0] : f64[3] yield %y }"),
                {}) == "accepted");
  CHECK(refusal(*parse("fun @f(%x: f64) { push[0] %x yield }\nfun @g() -> i64 { %y = pop[0] : i64 yield %y }"), {}) ==
        "in @g, at '%y = pop[0] : i64': expected values of types f64, as the tape has them elsewhere, got i64");
  CHECK(refusal(*parse("fun @f(%x: f64) -> f64 { push[0] %x, %x\n%y = pop[0] : f64 yield %y }"), {}) ==
        "in @f, at '%y = pop[0] : f64': expected values of types f64, f64, as the tape has them elsewhere, got f64");
}

TEST_CASE("the verifier refuses functions of one name, and results beside a continuation", "[ir][verify]") {
  const auto module = parse("fun @f() { yield }\nfun @g() { yield }");
  module->rename(module->functions()[1], "f");
  CHECK(refusal(*module, {}) == "expected functions of different names, got two that are @f");
  CHECK(refusal(*parse("fun @f(%x: f64, %k: cont(f64)) -> f64 cps { jump %k, %x yield %x }"), {}) ==
        "in @f: expected a cps function to hand its results to its continuation, got f64");
}

TEST_CASE("the verifier refuses parallel loops that are none", "[ir][verify][parallel]") {
  const std::string loop = R"(fun @f(%n: i64, %x: f64[?], %c: bool) -> f64 {
  %0 = constant 0 : i64
  %1 = constant 1 : i64
  %2 = constant 2 : i64
  %s0 = constant 0 : f64
  %j1, %y1, %s1, %k1, %m1, %t1 = parallel %0, %x, %s0, %n, %n, %c : i64, f64[?], f64, i64, i64, bool while (%j: i64, %yj: f64[?], %sj: f64, %kj: i64, %mj: i64, %tj: bool) {
    %more = lt %j, %n
    yield %more
  } do (%i: i64 index, %y: f64[?] element, %s: f64 sum, %k: i64 counter, %m: i64 max, %t: bool all) {
    %v = get %x, %i
    %ys = set %y, %i, %v
    %ss = add %s, %v
    %next = add %i, %1
    %ks = sub %k, %2
    %ms = imax %m, %i
    %good = lt %s0, %v
    %ts = land %t, %good
    yield %next, %ys, %ss, %ks, %ms, %ts
  }
  yield %s1
}
)";
  CHECK(refusal(*parse(loop), {}) == "accepted");
  /// What it says where one place reads otherwise.
  const auto rejection = [&](const std::string& text, const std::string& instead) {
    std::string changed = loop;
    REQUIRE(changed.find(text) != std::string::npos);
    changed.replace(changed.find(text), text.size(), instead);
    const std::string message = refusal(*parse(changed), {});
    return message == "accepted" ? message : message.substr(message.rfind("': expected") + 3);
  };
  CHECK(rejection("%k: i64 counter", "%k: i64 index") == "expected one index, got none, or several");
  CHECK(rejection("%i: i64 index", "%i: i64 counter") == "expected one index, got none, or several");
  const std::string bound =
      "expected a parallel loop to run while its index is below a bound from before it, got another "
      "condition";
  CHECK(rejection("lt %j, %n", "le %j, %n") == bound);
  CHECK(rejection("lt %j, %n", "lt %n, %j") == bound);
  CHECK(rejection("lt %j, %n", "lt %kj, %n") == bound);
  CHECK(rejection("%more = lt %j, %n", "%b = add %n, %1 %more = lt %j, %b") == bound);
  CHECK(rejection("%more = lt %j, %n", "%more = lt %j, %kj") == bound);
  CHECK(rejection("yield %more", "yield %tj") == bound);
  const auto state = [&](const std::string& text, const std::string& instead, const std::string& combine) {
    const std::string message = rejection(text, instead);
    CHECK(message.starts_with("expected state that can be '" + combine + "', got "));
  };
  state("%next = add %i, %1", "%next = add %i, %2", "index");
  state("%next = add %i, %1", "%next = sub %i, %1", "index");
  state("%next = add %i, %1", "%next = add %k, %1", "index");
  state("%ks = sub %k, %2", "%ks = sub %k, %n", "counter");
  state("%ks = sub %k, %2", "%ks = sub %2, %k", "counter");
  state("%ks = sub %k, %2", "%ks = add %i, %2", "counter");
  state("%s: f64 sum", "%s: f64 element", "element");
  state("%s: f64 sum", "%s: f64 any", "any");
  state("%y: f64[?] element", "%y: f64[?] max", "max");
  state("%t: bool all", "%t: bool min", "min");
  state("%t: bool all", "%t: bool sum", "sum");
  state("%m: i64 max", "%m: i64 all", "all");

  // What text cannot say.
  const auto module = parse(loop);
  Op* const op = module->functions()[0]->body->ops[4];
  Value* const s = op->blocks[1]->params[2];
  s->combine = Combine::none;
  CHECK(refusal(*module, {})
            .ends_with("expected each piece of a parallel loop's state to say how iterations come together, got "
                       "one that does not"));
  s->combine = Combine::sum;
  CHECK(refusal(*module, {}) == "accepted");
  op->blocks[0]->params[2]->combine = Combine::sum;
  CHECK(
      refusal(*module, {})
          .ends_with(
              "expected iterations to come together in the body of a loop alone, got a parameter that is 'sum'"));
  op->blocks[0]->params[2]->combine = Combine::none;
  module->functions()[0]->body->params[0]->combine = Combine::index;
  CHECK(refusal(*module, {})
            .ends_with("expected iterations to come together in the body of a loop alone, got a parameter that is "
                       "'index'"));
}
