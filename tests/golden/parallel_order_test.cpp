// What a parallel loop says of itself holds: with its iterations in another order it gives the same.
#include <catch2/catch.hpp>
#include <random>

#include "interpreter.hpp"
#include "lantern/compiler/passes/schedule/parallel.hpp"
#include "lantern/compiler/passes/support/remarks.hpp"
#include "lantern/ir/parse.hpp"
#include "lantern/ir/print.hpp"

using namespace lantern;
using lantern::ir::test::Interpreter;
using lantern::ir::test::same_numbers;

namespace {

/// Loops over two vectors that they update, a number and a counter, with accesses of many kinds: some are
/// parallel, some nearly. Numbers are whole, so that sums are the same in any order.
class RandomLoop {
 public:
  explicit RandomLoop(unsigned seed) : random_(seed) {}

  std::string text() {
    std::string body;
    const auto line = [&](const std::string& operation) {
      body += "    %" + std::to_string(++last_) + " = " + operation + "\n";
      return "%" + std::to_string(last_);
    };
    std::string y = "%y", z = "%z", s = "%s";
    std::string e = line("get %x, %i");
    for (int n = 1 + below(3); n > 0; --n) {
      const std::string at = index(line);
      std::string& t = below(3) ? y : z;
      switch (below(10)) {
        case 0:
        case 1:
          e = line("add " + e + ", " + line("get " + t + ", " + at));
          break;
        case 2:
          e = line("max " + e + ", " + line("get %x, " + at));
          break;
        case 3:
          t = line("add_at " + t + ", " + at + ", " + e);
          break;
        case 4:
        case 5:
          t = line("set " + t + ", " + at + ", " + e);
          break;
        case 8:
        case 9: {
          const std::string before = line("get " + t + ", " + at);
          t = line("set " + t + ", " + at + ", " +
                   line(std::string(below(4) ? "add " : "sub ") + before + ", " + e));
          break;
        }
        case 6:
          s = line(std::string(below(2) ? "add " : "max ") + s + ", " + e);
          break;
        default:
          s = line(below(4) ? "add " + e + ", " + s : "mul " + s + ", " + e);
      }
    }
    const std::string next = line("add %i, %one"),
                      step = line("add %c, " + std::string(below(2) ? "%two" : "%back"));
    return R"(entry @f
fun @f(%n: i64, %x: f64[?], %y0: f64[?], %z0: f64[?]) -> f64[?], f64[?], f64, i64, i64 {
  %one = constant 1 : i64
  %two = constant 2 : i64
  %back = constant -1 : i64
  %five = constant 5 : i64
  %three = constant 3 : f64
  %ye = copy %y0
  %ze = copy %z0
  %i1, %c1, %y1, %z1, %s1 = loop %one, %five, %ye, %ze, %three : i64, i64, f64[?], f64[?], f64 while (%j: i64, %cj: i64, %yj: f64[?], %zj: f64[?], %sj: f64) {
    %more = lt %j, %n
    yield %more
  } do (%i: i64, %c: i64, %y: f64[?], %z: f64[?], %s: f64) {
)" + body + "    yield " +
           next + ", " + step + ", " + y + ", " + z + ", " + s +
           "\n  }\n  yield %y1, %z1, %s1, %i1, %c1\n}\n";
  }

 private:
  int below(int n) { return static_cast<int>(random_() % static_cast<unsigned>(n)); }

  template <class Line>
  std::string index(Line&& line) {
    switch (below(7)) {
      case 0:
        return "%c";
      case 1:
        return line("add %i, %one");
      case 2:
        return line("mul %i, %two");
      case 3:
        return line("sub %n, %i");
      case 4:
        return line("rem %i, %five");
      case 5:
        return below(4) ? "%i" : "%one";
      default:
        return "%i";
    }
  }

  std::mt19937 random_;
  int last_ = 0;
};

std::vector<double> run(const ir::Module& module, std::int64_t n, bool backwards) {
  Interpreter interpreter;
  if (backwards) interpreter.last_trip_first();
  Interpreter::Items arguments{Interpreter::integer(n)};
  for (const double factor : {1.0, 7.0, 31.0}) {
    std::vector<double> elements;
    for (int i = 0; i < 24; ++i) elements.push_back(factor * (i * i % 7) - i);
    arguments.push_back(Interpreter::tensor({24}, elements));
  }
  return interpreter.run(module, arguments);
}

/// Whether the loop is parallel; if so, the order of its iterations is of no account.
bool check_any_order(const std::string& text) {
  const auto module = ir::parse(text);
  passes::parallel(*module);
  ir::verify(*module);
  if (ir::print(*module).find(" parallel ") == std::string::npos) return false;
  INFO(ir::print(*module));
  for (const std::int64_t n : {0, 1, 2, 3, 6, 9}) {
    std::vector<double> forwards;
    try {
      forwards = run(*module, n, false);
    } catch (const Error&) {
      continue;  // an element outside
    }
    CHECK(same_numbers(forwards, run(*module, n, true)));
  }
  return true;
}

}  // namespace

TEST_CASE("parallel: iterations in another order give the same", "[passes][parallel][random]") {
  int parallel = 0, ordered = 0;
  for (unsigned seed = 0; seed < 4000; ++seed)
    ++(check_any_order(RandomLoop(seed).text()) ? parallel : ordered);
  CHECK(parallel > 500);
  CHECK(ordered > 500);
}

TEST_CASE("parallel: a loop that is not is seen to be none", "[passes][parallel]") {
  // Else the check above would prove nothing.
  const auto module = ir::parse(R"(entry @f
fun @f(%n: i64, %x: f64[?], %y0: f64[?], %z0: f64[?]) -> f64[?] {
  %zero = constant 0 : i64
  %one = constant 1 : i64
  %two = constant 2 : i64
  %ye = copy %y0
  %i1, %y1 = parallel %zero, %ye : i64, f64[?] while (%j: i64, %yj: f64[?]) {
    %more = lt %j, %n
    yield %more
  } do (%i: i64 index, %y: f64[?] element) {
    %k = rem %i, %two
    %e = get %x, %i
    %t = set %y, %k, %e
    %next = add %i, %one
    yield %next, %t
  }
  yield %y1
}
)");
  ir::verify(*module);
  CHECK(same_numbers(run(*module, 2, false), run(*module, 2, true)));
  CHECK_FALSE(same_numbers(run(*module, 4, false), run(*module, 4, true)));
}
