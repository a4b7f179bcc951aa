// The graph as boxes and rows, and the image that is made of them.
#include "lantern/compiler/drawing/drawing.hpp"

#include <catch2/catch.hpp>
#include <string>

#include "../occurrences.hpp"
#include "lantern/ir/parse.hpp"
#include "lantern/compiler/drawing/svg.hpp"

using namespace lantern::ir;

namespace {

/// A row to a line, blocks indented.
std::string outline(const std::vector<DrawnItem>& items, const std::vector<std::vector<std::size_t>>& rows,
                    const std::string& indent) {
  std::string text;
  for (const auto& row : rows) {
    std::string line, below;
    for (const std::size_t i : row) {
      line += (line.empty() ? "" : " | ") + items[i].text;
      for (const DrawnBlock& b : items[i].blocks) {
        if (!b.title.empty()) below += indent + "  " + b.title + ":\n";
        below += outline(b.items, b.rows, indent + "  ");
      }
    }
    text += indent + line + "\n" + below;
  }
  return text;
}

std::string outline(const std::string& ir) {
  const auto module = parse(ir);
  const auto drawn = drawing(*module);
  std::vector<std::vector<std::size_t>> rows;
  for (std::size_t i = 0; i < drawn.size(); ++i) rows.push_back({i});
  return outline(drawn, rows, "");
}

using lantern::test::count;

}  // namespace

TEST_CASE("operations that are used once stand inside their users, and boxes say what they do") {
  CHECK(outline(R"(
fun @f(%a: f64[?], %c: f64) -> f64 {
  %0 = constant 0 : i64  %1 = constant 1 : i64  %s0 = constant 0 : f64
  %n = dim[0] %a : i64
  %i.1, %s.1 = loop %0, %s0 : i64, f64 while (%i.2: i64, %s.2: f64) {
    %go = lt %i.2, %n : bool
    yield %go
  } do (%i: i64, %s: f64) {
    %4 = get %a, %i : f64
    %d = sub %4, %c : f64
    %5 = mul %d, %d : f64
    %6 = add %s, %5 : f64
    %7 = add %i, %1 : i64
    yield %7, %6
  }
  %8 = lt %s.1, %c : bool
  %r = branch %8 : f64 { %9 = add %s.1, %c : f64  %10 = mul %9, %c : f64 yield %10 } else { yield %s0 }
  %11 = div %r, %c : f64  %12 = sub %r, %11 : f64
  yield %12
})") == R"(f
  a: f64[?] | c: f64
  i, s = for i.3 from 0 to size(a)
    s.3 = 0
    d = a[i.3] - c
    s.3 ← s.3 + d * d
  r = if s < c
    then:
    r = (s + c) * c
    else:
    r = 0
  return r - r / c
)");
}

TEST_CASE("what cannot go into a title is a block of its own; effects keep their order") {
  CHECK(outline(R"(
fun @f(%x: f64) -> f64 {
  %r = loop %x : f64 while (%t: f64) {
    %1 = call @g(%t) : f64
    %2 = lt %1, %x : bool
    yield %2
  } do (%u: f64) {
    print %u, "first"
    %3 = sin %u : f64
    print %3, "<second> & third"
    yield %3
  }
  yield %r
}
fun @g(%x: f64) -> f64 { yield %x })") == R"(f
  x: f64
  r = loop
    while:
    %1 = g(u)
    go on if %1 < x
    do:
    u = x
    %3 = sin(u)
    print(u, "first") | print(%3, "<second> & third")
    u ← %3
  return r
g
  x: f64
  return x
)");
}

TEST_CASE("long straight lines are folded into groups, in time that is linear") {
  std::string ir = "fun @f(%x: f64) -> f64 {\n %0 = sin %x : f64\n";
  constexpr int n = 50'000;
  for (int i = 1; i <= n; ++i) {
    const std::string last = "%" + std::to_string(i - 1);
    ir += "%" + std::to_string(i) + " = mul " + last + ", " + last + " : f64\n";
  }
  const auto module = parse(ir + "yield %" + std::to_string(n) + "\n}");
  const auto drawn = drawing(*module);
  REQUIRE(drawn.size() == 1);
  CHECK(drawn[0].operations == n + 2);
  CHECK(drawn[0].open);
  const DrawnBlock& body = drawn[0].blocks[0];
  CHECK(body.items.size() < 100);
  CHECK(body.left_out > 0);
  CHECK(count(svg(drawn), "<g>") < 100);
}

TEST_CASE("any text can stand in an image") {
  const auto module =
      parse("fun @\"<a & 'b'>\"(%x: f64) -> f64 { print %x, \"\\\"</text>\\x01]]>\" yield %x }");
  const std::string image =
      svg(drawing(*module), [](const Location&) { return std::string("</title><script>"); });
  CHECK(image.find("</text>\\") == std::string::npos);
  CHECK(image.find("&lt;a &amp; 'b'&gt;") != std::string::npos);
  CHECK(image.find('\x01') == std::string::npos);
  CHECK(image.find("<script") == std::string::npos);
  CHECK(markup("a\nb<\"&>\x02") == "a\nb&lt;&quot;&amp;&gt; ");
}
