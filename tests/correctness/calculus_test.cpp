// The lambda calculus of the Lantern paper: evaluation, control, names, errors; and the four transformations
// on programs written by hand, with derivatives worked out by hand beside them.
#include "lantern/compiler/calculus/calculus.hpp"

#include <catch2/catch.hpp>
#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "lantern/lantern.hpp"

using namespace lantern::calculus;
using lantern::Error;

namespace {

const Term x = variable("x"), y = variable("y"), f = variable("f"), k = variable("k"), r = variable("r"),
           t = variable("t"), n = variable("n");

std::string value_of(const Term& e) {
  Machine machine;
  return to_string(machine.evaluate(e));
}

template <class Run>
std::string error_of(const Run& run) {
  try {
    run();
  } catch (const Error& e) {
    const std::string message = e.what();
    return message.substr(message.find("calculus: "));
  }
  return "no error";
}

struct Transformation {
  const char* name;
  Term (*apply)(const Term&, Place);
};
const std::vector<Transformation>& transformations() {
  static const std::vector<Transformation> all{{"Fig. 4", forward},
                                               {"Fig. 9", reverse_by_control},
                                               {"Fig. 10", reverse_by_meta_control},
                                               {"Fig. 11", reverse_by_cps}};
  return all;
}
// Those that take the result of the other: Figs. 10 and 11 need a source without control operators.
bool composes(const Transformation& outer, const Term& source) {
  return control_level(source) == 0 || outer.apply == forward || outer.apply == reverse_by_control;
}

struct Example {
  const char* name;
  Term f;
  std::function<double(double)> derivative, second;
};

// if 1 < x then x * x else 3 * x
const Term branching = lambda("x", if_then_else(1 < x, x* x, 3 * x));
// while (t < 10) t = t * x, from x: x^n for the first n with x^n >= 10
const Term looping = lambda("x", while_loop("f", "t", t < 10, t* x, x));
// x^n by recursion over a number, not in tail position
const Term power =
    lambda("x", letrec("f", "n", if_then_else(variable("n") < 1, 1, x* apply(f, n + -1)), apply(f, 5)));
// The tree of Fig. 3, inr (inl 5, inl 6), with x in a leaf more: the product of the leaves and x at every
// node.
const Term tree = lambda("x", fold_tree("f", "v", variable("v"), "l", "r", variable("l") * variable("r") * x,
                                        node(node(leaf(5), leaf(6)), leaf(x))));
// Two cells, one of which is overwritten and read before and after
const Term mutating = lambda(
    "x", let("r", ref(x* x),
             let("s", ref(3),
                 sequence(assign(variable("s"), read(r) * x),
                          sequence(add_to(r, read(variable("s"))), read(r) * read(variable("s")) + x)))));
// A function that returns functions, and one that takes them
const Term higher_order = lambda(
    "x", let("f", lambda("y", lambda("z", y* variable("z") + x)),
             let("twice", lambda("g", lambda("a", apply(variable("g"), apply(variable("g"), variable("a"))))),
                 apply(apply(variable("twice"), apply(f, x)), 2))));
// The example by which operands' effects are seen to stay in order: !r + (r := 2 * x; x * x), r = 5 * x
// before.
const Term in_order = lambda("x", let("r", ref(5 * x), read(r) + sequence(assign(r, 2 * x), x* x) + read(r)));
// A reference to a function, called through it
const Term cell_of_function =
    lambda("x", let("r", ref(lambda("y", y)),
                    sequence(assign(r, lambda("y", y* y* x)), apply(read(r), apply(read(r), x)))));

const std::vector<Example>& examples() {
  static const std::vector<Example> all{
      {"2 * x + x * x * x", lambda("x", 2 * x + x * x * x), [](double v) { return 2 + 3 * v * v; },
       [](double v) { return 6 * v; }},
      {"constant", lambda("x", 7), [](double) { return 0.0; }, [](double) { return 0.0; }},
      {"identity", lambda("x", x), [](double) { return 1.0; }, [](double) { return 0.0; }},
      {"branching", branching, [](double v) { return v > 1 ? 2 * v : 3; },
       [](double v) { return v > 1 ? 2 : 0; }},
      {"looping", looping,
       [](double v) {
         const double m = std::max(1.0, std::ceil(std::log(10) / std::log(v)));
         return m * std::pow(v, m - 1);
       },
       [](double v) {
         const double m = std::max(1.0, std::ceil(std::log(10) / std::log(v)));
         return m * (m - 1) * std::pow(v, m - 2);
       }},
      {"power", power, [](double v) { return 5 * std::pow(v, 4); },
       [](double v) { return 20 * std::pow(v, 3); }},
      {"tree", tree, [](double v) { return 90 * v * v; }, [](double v) { return 180 * v; }},
      // s = x^3, r = x^2 + x^3: x^5 + x^6 + x
      {"mutating", mutating, [](double v) { return 5 * std::pow(v, 4) + 6 * std::pow(v, 5) + 1; },
       [](double v) { return 20 * std::pow(v, 3) + 30 * std::pow(v, 4); }},
      // x * (x * 2 + x) + x
      {"higher order", higher_order, [](double v) { return 6 * v + 1; }, [](double) { return 6.0; }},
      {"in order", in_order, [](double v) { return 7 + 2 * v; }, [](double) { return 2.0; }},
      // (x^3)^2 x
      {"cell of a function", cell_of_function, [](double v) { return 7 * std::pow(v, 6); },
       [](double v) { return 42 * std::pow(v, 5); }},
  };
  return all;
}

const std::vector<double> points{1.25, 2.0, 3.0};

}  // namespace

TEST_CASE("terms are evaluated by value, left to right", "[calculus]") {
  CHECK(value_of(2 * Term(3) + 1) == "7");
  CHECK(value_of(apply(lambda("x", x * x), 4)) == "16");
  CHECK(value_of(let("x", 2, let("x", x + 1, x * x))) == "9");
  CHECK(value_of(pair(unit(), inl(inr(pair(1, 2))))) == "((), inl (inr (1, 2)))");
  CHECK(value_of(fst(snd(pair(1, pair(2, 3))))) == "2");
  CHECK(value_of(Term(1) < 2) == "inl ()");
  CHECK(value_of(Term(2) < 2) == "inr ()");
  CHECK(value_of(case_of(inr(5), "x", 0, "y", y * y)) == "25");
  CHECK(value_of(lambda("x", x)) == "a function");
  CHECK(value_of(let("r", ref(1), pair(read(r), sequence(assign(r, 2), read(r))))) == "(1, 2)");
  CHECK(value_of(let("r", ref(1), sequence(sequence(add_to(r, 5), add_to(r, 7)), read(r)))) == "13");
  // Two closures share a cell.
  CHECK(value_of(let("r", ref(0),
                     let("f", lambda("_", assign(r, read(r) + 1)),
                         sequence(apply(f, unit()), sequence(apply(f, unit()), read(r)))))) == "2");
  // Left before right: the read of the left operand is not disturbed.
  CHECK(value_of(let("r", ref(1), read(r) * 10 + sequence(assign(r, 2), read(r)))) == "12");
}

TEST_CASE("the derived constructs mean what they should", "[calculus]") {
  CHECK(value_of(if_then_else(truth(true), 1, 2)) == "1");
  CHECK(value_of(if_then_else(truth(false), 1, 2)) == "2");
  const Term factorial = letrec("f", "n", if_then_else(n < 1, 1, n * apply(f, n + -1)), apply(f, 10));
  CHECK(value_of(factorial) == "3628800");
  CHECK(value_of(while_loop("f", "x", x < 100, x * 3, 1)) == "243");
  CHECK(value_of(while_loop("f", "x", x < 0, x * 3, 1)) == "1");
  const Term sum = fold_tree("f", "v", variable("v"), "l", "r", variable("l") + 10 * variable("r"),
                             node(leaf(1), node(leaf(2), leaf(3))));
  CHECK(value_of(sum) == "321");
  CHECK(to_string(node(leaf(1), leaf(2))) == "inr (inl 1, inl 2)");
  CHECK(to_string(while_loop("f", "x", x < 100, x * 3, 1)) ==
        "letrec f = λx. if x < 100 then @ f (x * 3) else x in\n@ f 1");
  CHECK(as_letrec(factorial).has_value());
  CHECK(as_letrec(distinct_binders(let("f", 1, factorial)).as<Let>()->body).has_value());
}

TEST_CASE("shift captures up to the enclosing reset, any number of times", "[calculus]") {
  CHECK(value_of(1 + delimited(2 * shift_in("k", 10))) == "11");
  CHECK(value_of(1 + delimited(2 * shift_in("k", apply(k, 10)))) == "21");
  CHECK(value_of(1 + delimited(2 * shift_in("k", apply(k, apply(k, 10))))) == "41");
  CHECK(value_of(delimited(1 + delimited(2 * shift_in("k", apply(k, 3))) * 10)) == "61");
  // The body of shift is delimited: the second shift captures only what is left of it.
  CHECK(value_of(delimited(1 + shift_in("k", apply(k, 5) + shift_in("k", 100)))) == "100");
  // An applied continuation is delimited: a shift in it does not reach around the application.
  CHECK(value_of(delimited(let("x", shift_in("k", 1000 + apply(k, 0)), 1 + shift_in("k", 7)))) == "1007");
  // Danvy and Filinski, 1990: nondeterminism. Sum over choices of a and b of a * b.
  const auto choose = [](double a, double b) { return shift_in("k", apply(k, a) + apply(k, b)); };
  CHECK(value_of(delimited(choose(1, 2) * choose(10, 100))) == "330");
  // A continuation may leave its reset, and keep the cells it closed over.
  CHECK(value_of(let("r", ref(0),
                     let("f", delimited(let("x", shift_in("k", k), sequence(add_to(r, x), read(r)))),
                         pair(apply(f, 3), apply(f, 4))))) == "(3, 7)");
}

TEST_CASE("shift of a higher level captures the resets below it", "[calculus]") {
  const auto k_of = [](Term e) { return apply(k, std::move(e)); };
  // ⟨ ... ⟨ ... ⟩ ... ⟩₂: to the inner reset, and to the outer.
  CHECK(value_of(delimited(1 + delimited(2 * shift_in("k", 10)), 2)) == "11");
  CHECK(value_of(delimited(1 + delimited(2 * shift_in("k", 10, 2)), 2)) == "10");
  CHECK(value_of(delimited(1 + delimited(2 * shift_in("k", k_of(k_of(10)), 2)), 2)) == "43");
  CHECK(value_of(100 + delimited(1 + delimited(2 * shift_in("k", k_of(k_of(10)), 2)), 2)) == "143");
  // A reset of level 2 delimits level 1 as well, and so does the application of a continuation of level 2.
  CHECK(value_of(delimited(1 + delimited(2 * shift_in("k", 10), 2))) == "11");
  CHECK(value_of(delimited(
            1000 + delimited(let("x", shift_in("k", 100 + k_of(0), 2), 1 + shift_in("k", 7)), 2))) == "1107");
  // The captured reset of level 1 is there again when the continuation runs: its shift goes no further.
  CHECK(value_of(delimited(1 + delimited(let("x", shift_in("k", k_of(3), 2), 2 * shift_in("j", x))), 2)) ==
        "4");
  // The body of a shift of level 2 is delimited at both levels.
  CHECK(value_of(delimited(1 + shift_in("k", 5 + shift_in("j", 7), 2), 2)) == "7");
  // A continuation of level 2 may leave its reset and run under another.
  CHECK(value_of(let("f", delimited(1 + delimited(2 * shift_in("k", k, 2)), 2), apply(f, 3) + apply(f, 4))) ==
        "16");
  CHECK(error_of([] { Machine().evaluate(delimited(1 + shift_in("k", 1, 2))); }) ==
        "calculus: expected shift inside ⟨ ⟩₂, got one that nothing delimits, in `shift₂ k in 1`");
  CHECK(to_string(delimited(1 + shift_in("k", delimited(k_of(1), 12), 3))) ==
        "⟨ 1 + (shift₃ k in ⟨ @ k 1 ⟩₁₂) ⟩");
  CHECK(!alpha_equal(delimited(1), delimited(1, 2)));
  CHECK(!alpha_equal(shift_in("k", 1), shift_in("k", 1, 2)));
  CHECK(control_level(lambda("x", 1 + delimited(shift_in("k", 1), 3))) == 3);
  CHECK(control_level(lambda("x", x)) == 0);
}

TEST_CASE("deep terms and long evaluations need no stack", "[calculus]") {
  Term sum = 0;
  for (int i = 0; i < 200'000; ++i) sum = sum + 1;
  CHECK(value_of(sum) == "200000");
  Term nested = 0;
  for (int i = 0; i < 200'000; ++i) nested = 1 + nested;
  CHECK(value_of(nested) == "200000");
  CHECK(alpha_equal(nested, distinct_binders(nested)));
  CHECK(value_of(letrec("f", "n", if_then_else(n < 1, 0, 1 + apply(f, n + -1)), apply(f, 100'000))) ==
        "100000");
  Machine machine;
  Term list = inl(unit());
  for (int i = 0; i < 100'000; ++i) list = inr(pair(i, list));
  CHECK(to_string(machine.evaluate(list)).size() > 1'000'000);
}

TEST_CASE("names: alpha-equality, free variables, Barendregt's convention", "[calculus]") {
  CHECK(alpha_equal(lambda("x", x), lambda("y", y)));
  CHECK(!alpha_equal(lambda("x", y), lambda("y", y)));
  CHECK(!alpha_equal(lambda("x", lambda("y", x)), lambda("x", lambda("y", y))));
  CHECK(alpha_equal(let("x", x, x), let("y", x, y)));
  CHECK(!alpha_equal(let("x", x, x), let("y", y, y)));
  CHECK(!alpha_equal(lambda("x", 1), lambda("x", 2)));
  CHECK(alpha_equal(case_of(x, "a", variable("a"), "b", y), case_of(x, "b", variable("b"), "a", y)));
  CHECK(!alpha_equal(case_of(x, "a", variable("a"), "b", y), case_of(x, "a", variable("a"), "y", y)));
  CHECK(free_variables(let("x", x, lambda("y", x * y + variable("z")))) == std::set<Name>{"x", "z"});

  const Term shadowed = apply(lambda("x", let("x", x + 1, apply(lambda("x", x), x))), x);
  const Term renamed = distinct_binders(shadowed);
  CHECK(alpha_equal(shadowed, renamed));
  CHECK(excerpt(renamed) == "@ (λx1. let x2 = x1 + 1 in @ (λx3. x3) x2) x");
  CHECK(excerpt(distinct_binders(renamed)) == excerpt(renamed));
}

TEST_CASE("stuck terms say where and why", "[calculus]") {
  const auto error = [](const Term& e) { return error_of([&] { Machine().evaluate(e); }); };
  CHECK(error(1 + x) == "calculus: expected a closed term, got the free variable x, in `x`");
  CHECK(error(lambda("x", x) + 1) ==
        "calculus: expected a number on the left of +, got a function, in `(λx. x) + 1`");
  CHECK(error(2 * pair(1, 2)) ==
        "calculus: expected a number on the right of *, got a pair, in `2 * (1, 2)`");
  CHECK(error(unit() < 1) == "calculus: expected a number on the left of <, got (), in `() < 1`");
  CHECK(error(apply(3, 4)) ==
        "calculus: expected a function on the left of an application, got the number 3, in `@ 3 4`");
  CHECK(error(fst(inl(1))) ==
        "calculus: expected a pair as operand of fst, got inl of a value, in `fst (inl 1)`");
  CHECK(error(snd(1)) == "calculus: expected a pair as operand of snd, got the number 1, in `snd 1`");
  CHECK(error(read(1)) == "calculus: expected a reference as operand of !, got the number 1, in `!1`");
  CHECK(error(assign(unit(), 1)) == "calculus: expected a reference as operand of :=, got (), in `() := 1`");
  CHECK(
      error(case_of(ref(1), "x", x, "y", y)) ==
      "calculus: expected inl or inr as operand of case, got a reference, in `case ref 1 of x ⇒ x or y ⇒ y`");
  CHECK(error(1 + shift_in("k", 1)) ==
        "calculus: expected shift inside ⟨ ⟩, got one that nothing delimits, in `shift k in 1`");
  CHECK(error(lambda("x", x) +
              (variable("a_long_name") + variable("another_long_name") + variable("a_third_name"))) ==
        "calculus: expected a closed term, got the free variable a_long_name, in `a_long_name`");
  const Term forever = letrec("f", "x", apply(f, x), apply(f, 1));
  CHECK(error_of([&] { Machine(1000).evaluate(forever); }) ==
        "calculus: expected the evaluation to end within 1000 steps; raise the limit, or look for a "
        "recursion without "
        "end");
  CHECK(error_of([] { call(lambda("x", pair(x, x)), 1); }) ==
        "calculus: expected a number as result, got a pair");
  try {
    Machine().evaluate(x);
    FAIL("no error");
  } catch (const Error& e) {
    CHECK(std::string(e.what()).find("calculus_test.cpp:" + std::to_string(__LINE__ - 3)) !=
          std::string::npos);
  }
}

TEST_CASE("each transformation differentiates each example", "[calculus]") {
  for (const Example& e : examples())
    for (const Transformation& d : transformations()) {
      const Term derivative = d.apply(e.f, Place::current());
      for (double at : points) {
        INFO(d.name << " of " << e.name << " at " << at << "\n" << to_string(derivative));
        CHECK(call(derivative, at) == Approx(e.derivative(at)).epsilon(1e-12));
      }
    }
}

TEST_CASE("the derivative is a term: transformations compose", "[calculus]") {
  for (const Example& e : examples())
    for (const Transformation& outer : transformations())
      for (const Transformation& inner : transformations()) {
        const Term first = inner.apply(e.f, Place::current());
        if (!composes(outer, first)) continue;
        const Term second = outer.apply(first, Place::current());
        for (double at : points) {
          INFO(outer.name << " of " << inner.name << " of " << e.name << " at " << at);
          CHECK(call(second, at) == Approx(e.second(at)).epsilon(1e-12).margin(1e-12));
        }
      }
}

TEST_CASE("third derivatives", "[calculus]") {
  int composed = 0;
  for (const Transformation& a : transformations())
    for (const Transformation& b : transformations())
      for (const Transformation& c : transformations()) {
        INFO(a.name << " of " << b.name << " of " << c.name);
        const Place l = Place::current();
        const Term first = c.apply(lambda("x", x * x * x * x), l);
        if (!composes(b, first)) continue;
        const Term second = b.apply(first, l);
        if (!composes(a, second)) continue;
        ++composed;
        CHECK(call(a.apply(second, l), 2.0) == Approx(48));
      }
  CHECK(composed == 46);  // of 64: no Fig. 10 or 11 of what Fig. 9 has a part in
}

TEST_CASE("reverse mode over reverse mode by two levels of control (Fig. 13)", "[calculus]") {
  // The figure's example: the second derivative of 2 * x + x * x * x is 6 * x.
  const Term source = lambda("x", 2 * x + x * x * x), first = reverse_by_control(source),
             second = reverse_by_control(first);
  for (double at : points) CHECK(call(second, at) == 6 * at);
  const std::string text = to_string(second);
  for (const char* operation : {"shift k", "shift₂ k", "⟩", "⟩₂"}) {
    INFO(operation);
    CHECK(text.find(operation) != std::string::npos);
  }
  // Third and fourth derivatives: the next levels.
  const Term third = reverse_by_control(second);
  CHECK(control_level(third) == 3);
  for (double at : points) {
    CHECK(call(third, at) == 6);
    CHECK(call(reverse_by_control(third), at) == 0);
  }
  // A derivative as a part of a program.
  const Term part = lambda("x", x * apply(first, x * x));  // x * (2 + 3 x^4)
  for (double at : points) CHECK(call(reverse_by_control(part), at) == Approx(2 + 15 * std::pow(at, 4)));
  // Both levels as one: the outer derivative then misses what waits behind the inner resets.
  const std::function<Term(const Term&)> on_one_level = [&](const Term& e) -> Term {
    const auto& go = on_one_level;
    return match(
        e, [&](const Plus& p) { return go(p.left) + go(p.right); },
        [&](const Times& p) { return go(p.left) * go(p.right); },
        [&](const Lambda& l) { return lambda(l.parameter, go(l.body)); },
        [&](const Apply& a) { return apply(go(a.function), go(a.argument)); },
        [&](const Let& l) { return let(l.name, go(l.value), go(l.body)); },
        [&](const Pair& p) { return pair(go(p.first), go(p.second)); },
        [&](const First& p) { return fst(go(p.of)); }, [&](const Second& p) { return snd(go(p.of)); },
        [&](const Ref& r) { return ref(go(r.initial)); }, [&](const Read& r) { return read(go(r.cell)); },
        [&](const Assign& a) { return assign(go(a.cell), go(a.value)); },
        [&](const Shift& s) { return shift_in(s.continuation, go(s.body)); },
        [&](const Reset& r) { return delimited(go(r.body)); }, [&](const auto&) { return e; });
  };
  CHECK(call(on_one_level(first), 2.0) == 14);
  CHECK(call(on_one_level(second), 2.0) != 12);
}

TEST_CASE("reverse mode over reverse mode takes time in proportion to the program", "[calculus]") {
  // Each level's shift captures what the inner levels' resets have put aside without looking at it.
  const auto steps = [](int n) {
    Term product = x;
    for (int i = 0; i < n; ++i) product = product * x;
    Machine machine;
    machine.apply(machine.evaluate(reverse_by_control(reverse_by_control(lambda("x", product)))), {1.0});
    return machine.steps();
  };
  const auto ten = steps(10), twenty = steps(20), thirty = steps(30);
  CHECK(twenty - ten == thirty - twenty);
}

TEST_CASE("where control operators are", "[calculus]") {
  for (const Example& e : examples()) {
    INFO(e.name);
    const bool arithmetic = std::string(e.name) != "constant" && std::string(e.name) != "identity";
    // At least the reset; that of a derivative's derivative is of the next level.
    CHECK(control_level(reverse_by_control(e.f)) == 1);
    CHECK(control_level(forward(reverse_by_control(e.f))) == 1);
    CHECK(control_level(reverse_by_control(reverse_by_control(e.f))) == 2);
    CHECK(control_level(forward(e.f)) == 0);
    CHECK(control_level(reverse_by_meta_control(e.f)) == 0);
    CHECK(control_level(reverse_by_cps(e.f)) == 0);
    if (arithmetic) CHECK(to_string(reverse_by_control(e.f)).find("shift") != std::string::npos);
  }
}

TEST_CASE("the results of Figs. 10 and 11 are the same term", "[calculus]") {
  // Running the meta-language's continuations or writing them out is the same, except for where the
  // continuation of a conditional is bound: around the condition in Fig. 11, after it in Fig. 10.
  for (const Example& e : examples()) {
    INFO(e.name);
    const Term a = reverse_by_meta_control(e.f), b = reverse_by_cps(e.f);
    INFO(to_string(a) << "\n" << to_string(b));
    CHECK(alpha_equal(a, b));
  }
}

TEST_CASE("tail calls stay tail calls", "[calculus]") {
  // A hundred thousand steps of a loop that does no arithmetic on what it passes on.
  const Term counting = letrec("f", "p",
                               if_then_else(fst(variable("p")) < 1, snd(variable("p")),
                                            apply(f, pair(fst(variable("p")) + -1, snd(variable("p"))))),
                               apply(f, pair(20'000, x)));
  for (const Transformation& d : transformations()) {
    INFO(d.name);
    CHECK(call(d.apply(lambda("x", counting), Place::current()), 3.0) == 1.0);
  }
  // The continuation of a tail call is passed on as it is: λ~a. @ k a is k.
  const Term loop = lambda("x", letrec("f", "t", apply(f, t), apply(f, x)));
  const std::string text = to_string(reverse_by_cps(loop));
  CHECK(text.find("@ (@ f t) k") != std::string::npos);
}

TEST_CASE("deep sources are transformed", "[calculus]") {
  Term sum = x;
  for (int i = 0; i < 2'000; ++i) sum = sum + x;
  for (const Transformation& d : transformations()) {
    INFO(d.name);
    CHECK(call(d.apply(lambda("x", sum), Place::current()), 1.0) == 2001.0);
  }
  Term lets = x;
  for (int i = 0; i < 500; ++i) lets = let("x", x + 1, lets);
  for (const Transformation& d : transformations()) {
    INFO(d.name);
    CHECK(call(d.apply(lambda("x", lets), Place::current()), 1.0) == 1.0);
  }
}

TEST_CASE("sources a transformation refuses", "[calculus]") {
  CHECK(error_of([] { reverse_by_meta_control(lambda("x", delimited(x))); }) ==
        "calculus: reverse_by_meta_control: expected a source without shift and reset, got `λx. ⟨ x ⟩`; "
        "forward and "
        "reverse_by_control take one that has them");
  CHECK(error_of([] {
          reverse_by_cps(reverse_by_control(lambda("x", x)));
        }).starts_with("calculus: reverse_by_cps: expected a source without shift and reset, got `λx1."));
  CHECK(
      error_of([] { reverse_by_meta_control(lambda("x", x * y)); }) ==
      "calculus: reverse_by_meta_control: expected a closed source, got the free variable y in `λx. x * y`");
  CHECK(error_of([] { reverse_by_control(y); }) ==
        "calculus: reverse_by_control: expected a closed source, got the free variable y in `y`");
}

// ---- the bridge to Rep ----

using lantern::compile;
using lantern::eager;
using lantern::grad;
using lantern::mode;
using lantern::Target;

TEST_CASE("terms run over Rep, eagerly and compiled", "[calculus]") {
  for (const Example& e : examples()) {
    const std::string name = e.name;
    INFO(name);
    if (name == "cell of a function") continue;  // references hold numbers over Rep
    const auto over_rep = program(e.f);
    const auto derivative = eager(grad(over_rep));
    const auto tangent = eager(grad<mode::forward>(over_rep));
    const auto naive = compile(grad(over_rep), {.target = Target::c, .opt = 0});
    const auto fast = compile(grad(over_rep), {.target = Target::c, .opt = 3});
    const auto second = compile(grad(grad(over_rep)), {.target = Target::c, .opt = 3});
    const auto clang = compile(grad(over_rep), {.target = Target::cpp, .opt = 3});
    for (double at : points) {
      CHECK(eager(over_rep)(at) == Approx(call(e.f, at)));
      CHECK(derivative(at) == Approx(e.derivative(at)));
      CHECK(tangent(at) == Approx(e.derivative(at)));
      CHECK(naive(at) == Approx(e.derivative(at)));
      CHECK(fast(at) == Approx(e.derivative(at)));
      CHECK(clang(at) == Approx(e.derivative(at)));
      CHECK(second(at) == Approx(e.second(at)).margin(1e-12));
    }
  }
}

TEST_CASE("Fig. 13 over Rep: the paper's operators and those of grad", "[calculus]") {
  // One derivative by the figure, one by the product's handler, in either order; both by the figure; both by
  // handlers.
  for (const Example& e : examples()) {
    const std::string name = e.name;
    INFO(name);
    const Term first = reverse_by_control(e.f);
    const auto by_figure = eager(program(reverse_by_control(first)));
    const auto grad_of_figure = eager(grad(program(first)));
    const auto tangent_of_figure = eager(grad<mode::forward>(program(first)));
    const auto by_handlers = eager(grad(grad(program(e.f))));
    for (double at : points) {
      CHECK(eager(program(first))(at) == Approx(e.derivative(at)));
      CHECK(by_figure(at) == Approx(e.second(at)).margin(1e-12));
      CHECK(grad_of_figure(at) == Approx(e.second(at)).margin(1e-12));
      CHECK(tangent_of_figure(at) == Approx(e.second(at)).margin(1e-12));
      CHECK(by_handlers(at) == Approx(e.second(at)).margin(1e-12));
    }
  }
  // The levels mean what they mean in the calculus.
  const auto over_rep = [](const Term& e) { return eager(program(lambda("x", e)))(5.0); };
  CHECK(over_rep(delimited(1 + delimited(x * shift_in("k", apply(k, 10), 2)), 2)) == 51);
  CHECK(over_rep(delimited(1 + delimited(x * shift_in("k", 10, 2)), 2)) == 10);
  CHECK(over_rep(delimited(1 + delimited(x * shift_in("k", 10), 2))) == 11);
  CHECK(over_rep(delimited(1 + shift_in("k", x + shift_in("j", 7), 2), 2)) == 7);
  CHECK_THROWS_WITH(over_rep(delimited(x + shift_in("k", apply(k, apply(k, 1))))),
                    Catch::Matchers::Contains("a continuation may be resumed only once"));
  CHECK_THROWS_WITH(over_rep(1 + shift_in("k", x)),
                    Catch::Matchers::Contains("no reset of this prompt is active"));
}

TEST_CASE("terms outside the subset over Rep are refused", "[calculus]") {
  const auto error = [](const Term& e) {
    return error_of([&] { compile(program(e), {.target = Target::c, .opt = 0}); });
  };
  CHECK(error(lambda("x", delimited(x))) ==
        "calculus: expected a program without shift and reset, got one that is being staged, in `⟨ x ⟩`");
  CHECK(error(lambda("x", shift_in("k", x))) ==
        "calculus: expected a program without shift and reset, got one that is being staged, in `shift k in "
        "x`");
  CHECK(error(lambda("x", pair(x, x))) ==
        "calculus: expected a number as the result, got a pair, in `λx. (x, x)`");
  CHECK(error(lambda("x", x + unit())) ==
        "calculus: expected a number as the right operand, got (), in `x + ()`");
  CHECK(error(lambda("x", fst(if_then_else(x < 1, pair(x, 1), x)))) ==
        "calculus: expected branches of one shape, got (nn) and n, in `if x < 1 then (x, 1) else x`");
  CHECK(error(lambda("x", apply(if_then_else(x < 1, lambda("y", y), lambda("y", y * y)), x))) ==
        "calculus: expected a branch without functions and references in its result, got a function, in `λy. "
        "y`");
  CHECK(error(lambda("x", let("r", ref(unit()), x))) ==
        "calculus: expected a number as the content of a reference, got (), in `ref ()`");
  CHECK(
      error(lambda("x", letrec("f", "t", if_then_else(fst(t) < 1, x, apply(f, t)), apply(f, pair(x, x)))))
          .starts_with(
              "calculus: expected a recursion that data known while staging ends, got one 500 calls deep"));
}
