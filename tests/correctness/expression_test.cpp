// What an expression is made of decides how it is assigned, not what it looks like.
#include <catch2/catch.hpp>

#include "lantern/codegen/c/print_c.hpp"
#include "lantern/codegen/expression.hpp"
#include "lantern/codegen/target.hpp"

using namespace lantern;
using namespace lantern::codegen;

namespace {

Expression name(const char* text) { return {text, Precedence::primary, false, {}}; }

Expression of(const char* pattern, const Expression& x, const Expression& y) {
  const CTarget target;
  std::vector<std::string> functions;
  const Expression both[] = {x, y};
  return substitute(pattern, both, target, ir::Kind::f64, functions);
}

}  // namespace

TEST_CASE("sums, differences and products know their operands") {
  const Expression sum = of("x + y", of("x - y", name("a"), name("b")), of("x - y", name("c"), name("d")));
  CHECK(sum.text == "a - b + (c - d)");
  CHECK(sum.last.sign == '+');
  CHECK(sum.last.left == "a - b");
  CHECK(sum.last.right == "(c - d)");
  CHECK(sum.last.left_binds == Precedence::additive);

  const Expression product = of("x * y", sum, name("e"));
  CHECK(product.last.sign == '*');
  CHECK(product.last.left == "(" + sum.text + ")");
  CHECK(product.last.left_binds == Precedence::primary);
}

TEST_CASE("nothing else splits") {
  CHECK(of("x / y", name("a"), name("b")).last.sign == 0);
  CHECK(of("f(x, y)", name("a"), name("b")).last.sign == 0);
  CHECK(of("x < y", name("a"), name("b")).last.sign == 0);
  Expression rewritten = of("x + y", name("a"), name("b"));
  rewritten.rewrite("(int64_t)(" + rewritten.text + ")", Precedence::unary);
  CHECK(rewritten.last.sign == 0);
}

TEST_CASE("a negative literal is the negation of the other") {
  CHECK(float_literal(-2.5, ir::Kind::f64).last.right == "2.5");
  CHECK(float_literal(-2.5, ir::Kind::f64).last.left.empty());
  CHECK(float_literal(2.5, ir::Kind::f64).last.sign == 0);
  CHECK(integer_literal(-3).last.sign == '-');
}
