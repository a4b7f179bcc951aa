// Expressions as trees: operators put parentheses where C needs them, and what an expression is made of decides how it is
// assigned, not what it looks like.
#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <regex>

#include "lantern/codegen/c/print_c.hpp"
#include "lantern/codegen/expression.hpp"
#include "lantern/codegen/target.hpp"

using namespace lantern;
using namespace lantern::codegen;

namespace {

const Expression a("a"), b("b"), c("c"), d("d"), zero = integer_literal(0), one = integer_literal(1), minus = integer_literal(-3);

Expression of(const char* pattern, const Expression& x, const Expression& y) {
  const CTarget target;
  std::vector<std::string> functions;
  const Expression both[] = {x, y};
  return substitute(pattern, both, target, ir::Kind::f64, functions);
}

}  // namespace

TEST_CASE("operators put parentheses around what binds looser") {
  const Expression sum = binary(a, "+", b), choice = conditional(binary(a, "<", b), c, minus);
  CHECK((sum * c).text() == "(a + b) * c");
  CHECK((a - sum).text() == "a - (a + b)");
  CHECK((sum - a).text() == "a + b - a");
  CHECK(binary(a, "/", binary(b, "*", c)).text() == "a / (b * c)");
  CHECK((choice + d).text() == "(a < b ? c : -3) + d");
  CHECK((choice * choice).text() == "(a < b ? c : -3) * (a < b ? c : -3)");
  CHECK(binary(choice, "<", sum).text() == "(a < b ? c : -3) < a + b");
  CHECK(binary(binary(a, "<", b), "==", c).text() == "(a < b) == c");
  CHECK(binary(binary(a, "<", b), "&", binary(c, "&", d)).text() == "(a < b) & (c & d)");
  CHECK(binary(binary(a, "&&", b), "||", c).text() == "(a && b) || c");
  CHECK((d - minus).text() == "d - -3");
  CHECK(prefix("-", minus).text() == "-(-3)");
  CHECK(prefix("-", sum).text() == "-(a + b)");
  CHECK(prefix("!", binary(a, "<", b)).text() == "!(a < b)");
  CHECK(cast_to("float", minus).text() == "(float)(-3)");
  CHECK(element_at(sum, choice).text() == "(a + b)[a < b ? c : -3]");
  CHECK(member(prefix("*", a), "data").text() == "(*a).data");
  CHECK(called("f", {choice, sum}).text() == "f(a < b ? c : -3, a + b)");
}

TEST_CASE("index arithmetic leaves out zeros and ones") {
  CHECK((zero * a + b).text() == "b");
  CHECK((a * one + zero).text() == "a");
  CHECK((one * a - zero).text() == "a");
  CHECK((zero - a).text() == "0 - a");
  CHECK((a * zero).integer() == 0);
  const Expression both[] = {a, binary(b, "+", c)};
  CHECK(plus_product(zero, 2, both).text() == "2 * a * (b + c)");
  CHECK(plus_product(zero, -1, both).text() == "-a * (b + c)");
  CHECK(plus_product(d, -1, both).text() == "d - a * (b + c)");
  CHECK(plus_product(d, -4, {}).text() == "d - 4");
  CHECK(displaced(a, binary(b, "-", c)).text() == "a + b - c");
  CHECK(displaced(a, zero).text() == "a");
}

TEST_CASE("the table's expressions") {
  CHECK(of("x ? x : y", binary(a, "<", b), conditional(a, b, c)).text() == "a < b ? a < b : a ? b : c");
  CHECK(of("(T)((x > 0) - (x < 0))", minus, b).text() == "(double)((-3 > 0) - (-3 < 0))");
  CHECK(of("x % y", binary(a, "%", b), binary(c, "%", d)).text() == "a % b % (c % d)");
  CHECK(of("x << y", binary(a, "+", b), c).text() == "(a + b) << c");
  CHECK(of("pow(x, y)", binary(a, "+", b), minus).text() == "pow(a + b, -3)");
  CHECK(occurrences("(T)((x > 0) - (x < 0))", 'x') == 2);
  CHECK(occurrences("expx(y)", 'x') == 0);
}

TEST_CASE("an expression knows what it varies with, and whether it reads memory") {
  const Expression read = element_at(Expression::variable("x"), Expression::variable("i")).reading_memory();
  for (const Expression& e : {prefix("~", read), binary(a, "&", read), cast_to("int", read), called("f", {a, read}),
                              conditional(a, b, read), of("x + y", read, a)}) {
    CHECK(e.reads_memory());
    CHECK(e.varying() == std::vector<std::string>{"x", "i"});
  }
  CHECK_FALSE(binary(a, "+", b).reads_memory());
}

TEST_CASE("sums, differences and products are added to, taken from and multiplied with a variable") {
  const auto assigned = [](const Expression& e) { return assignment(a, e); };
  CHECK(assigned(binary(a, "+", b)) == "a += b;");
  CHECK(assigned(binary(b, "+", a)) == "a += b;");
  CHECK(assigned(binary(a, "-", binary(b, "-", c))) == "a -= (b - c);");
  CHECK(assigned(binary(b, "-", a)) == "a = b - a;");
  CHECK(assigned(binary(a, "*", binary(b, "+", c))) == "a *= (b + c);");
  // Reassociation, a division, and a part of another expression.
  CHECK(assigned(binary(binary(b, "+", c), "+", a)) == "a = b + c + a;");
  CHECK(assigned(binary(a, "/", b)) == "a = a / b;");
  CHECK(assigned(cast_to("int64_t", binary(a, "+", b))) == "a = (int64_t)(a + b);");
}

TEST_CASE("a negative literal is the negation of the other") {
  const Expression literal = float_literal(-2.5, ir::Kind::f64);
  CHECK(literal.is(Expression::Form::prefix, "-"));
  CHECK(beside(literal, 0) == "2.5");
  CHECK_FALSE(float_literal(2.5, ir::Kind::f64).is(Expression::Form::prefix, "-"));
  CHECK(minus.is(Expression::Form::prefix, "-"));
  CHECK(minus.integer() == -3);
}

TEST_CASE("printers leave operators beside expressions to the tree") {
  // "x.text() + \" * \"" would be right only where x binds tightly enough.
  const std::string op = R"((\+|-|\*|/|%|<|>|<=|>=|==|!=|\?|&|\||&&|\|\|))";
  const std::regex pasted(R"(text\([^()]*\)\)? \+ " )" + op + " ");
  int files = 0;
  for (const auto& file : std::filesystem::directory_iterator(LANTERN_TEST_DIR "/../codegen")) {
    const std::string name = file.path().filename().string();
    if (!name.ends_with(".cpp") || name == "expression.cpp") continue;
    ++files;
    std::ifstream in(file.path());
    for (std::string line; std::getline(in, line);) {
      CAPTURE(name, line);
      CHECK_FALSE(std::regex_search(line, pasted));
    }
  }
  CHECK(files > 10);
  CHECK(std::regex_search(std::string(R"(line(x.text() + " * " + y.text()))"), pasted));
}
