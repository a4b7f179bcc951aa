// The layout of statements: indentation, comments, `else if`, `#line`, long lines.
#include "lantern/codegen/statement.hpp"

#include <catch2/catch.hpp>

using namespace lantern::codegen;

namespace {

Statement construct(const std::string& head, Statements body) {
  Statement s(head);
  s.body = std::move(body);
  s.end = "}";
  return s;
}

}  // namespace

TEST_CASE("constructs are indented, comments stand above what they are about") {
  Statement sum("s += x[i];");
  sum.comments = {"backward", "total = total + x[i];"};
  CHECK(text_of({Statement("double s = 0.0;"), construct("for (int i = 0; i < n; ++i) {", {sum})}) ==
        "double s = 0.0;\n"
        "for (int i = 0; i < n; ++i) {\n"
        "  // backward\n"
        "  // total = total + x[i];\n"
        "  s += x[i];\n"
        "}\n");
  CHECK(text_of({sum}, 2) == "    // backward\n    // total = total + x[i];\n    s += x[i];\n");
}

TEST_CASE("an if that stands alone in an else joins its line, but only where it is said to") {
  Statement last = construct("if (y) {", {Statement("b();")});
  last.otherwise = {Statement("c();")};
  Statement first = construct("if (x) {", {Statement("a();")});
  first.otherwise = {last};
  CHECK(text_of({first}) ==
        "if (x) {\n  a();\n} else {\n  if (y) {\n    b();\n  } else {\n    c();\n  }\n}\n");
  first.otherwise[0].joins = true;
  CHECK(text_of({first}) == "if (x) {\n  a();\n} else if (y) {\n  b();\n} else {\n  c();\n}\n");
  first.otherwise.push_back(Statement("d();"));
  CHECK(text_of({first}) ==
        "if (x) {\n  a();\n} else {\n  if (y) {\n    b();\n  } else {\n    c();\n  }\n  d();\n}\n");
}

TEST_CASE("an else without statements is not printed") {
  CHECK(text_of({construct("if (x) {", {Statement("a();")})}) == "if (x) {\n  a();\n}\n");
}

TEST_CASE("a place stands right before its line, and lines with one are not broken") {
  Statement s("x = 1;");
  s.place = {"a \"b\".cpp", 7, 0, {}};
  Statement block = construct("{", {s});
  block.end_place = {"c.cpp", 9, 0, {}};
  CHECK(text_of({block}) == "{\n#line 7 \"a \\\"b\\\".cpp\"\n  x = 1;\n#line 9 \"c.cpp\"\n}\n");

  std::string call = "f(";
  for (int i = 0; i < 30; ++i) call += "argument, ";
  call += "last);";
  Statement longer(call);
  const std::string broken = text_of({longer});
  CHECK(broken.find("argument,\n    argument") != std::string::npos);
  longer.place = s.place;
  CHECK(text_of({longer}) == "#line 7 \"a \\\"b\\\".cpp\"\n" + call + "\n");
}
