// store_forwarding: which updates of one element become one, and which must not.
#include "lantern/compiler/passes/array/store_forwarding.hpp"

#include <algorithm>
#include <catch2/catch.hpp>

#include "lantern/ir/parse.hpp"
#include "lantern/ir/print.hpp"
#include "lantern/ir/verify.hpp"
#include "lantern/lantern.hpp"

using namespace lantern;

namespace {

/// The function of a tensor %t, integers %i and %j and numbers %x and %y after the pass, without its frame.
std::string after(const std::string& body, const std::string& result = "f64[?]",
                  const std::string& type = "f64[?]") {
  const auto module = ir::parse("entry @f\n\nfun @f(%t: " + type +
                                ", %i: i64, %j: i64, %x: f64, %y: f64) -> " + result + " {\n" + body + "}\n");
  passes::store_forwarding(*module);
  ir::verify(*module);
  const std::string text = ir::print(*module);
  const std::size_t start = text.find("{\n") + 2;
  return text.substr(start, text.rfind("}\n") - start);
}

/// True where the pass leaves as many operations as there were.
bool unchanged(const std::string& body, const std::string& result = "f64[?]") {
  const auto count = [](const std::string& text) { return std::count(text.begin(), text.end(), '='); };
  return count(after(body, result)) == count(body);
}

}  // namespace

TEST_CASE("store_forwarding: two updates of one element", "[passes]") {
  CHECK(after("%1 = set %t, %i, %x\n%2 = add_at %1, %i, %y\nyield %2\n") ==
        "  %1 = add %x, %y : f64\n  %2 = set %t, %i, %1 : f64[?]\n  yield %2\n");
  CHECK(after("%1 = add_at %t, %i, %x\n%2 = add_at %1, %i, %y\nyield %2\n") ==
        "  %1 = add %x, %y : f64\n  %2 = add_at %t, %i, %1 : f64[?]\n  yield %2\n");
  CHECK(after("%1 = set %t, %i, %x\n%2 = set %1, %i, %y\nyield %2\n") ==
        "  %1 = set %t, %i, %y : f64[?]\n  yield %1\n");
  CHECK(after("%1 = add_at %t, %i, %x\n%2 = set %1, %i, %y\nyield %2\n") ==
        "  %1 = set %t, %i, %y : f64[?]\n  yield %1\n");
}

TEST_CASE("store_forwarding: what is added to zero, and what is there already", "[passes]") {
  CHECK(after("%zero = constant 0 : f64\n%1 = set %t, %i, %zero\n%2 = add_at %1, %i, %y\nyield %2\n") ==
        "  %1 = set %t, %i, %y : f64[?]\n  yield %1\n");
  CHECK(after("%1 = get %t, %i\n%2 = set %t, %i, %1\nyield %2\n") == "  yield %t\n");
  CHECK(after("%zero = constant 0 : f64\n%0 = get %t, %i\n%1 = set %t, %i, %zero\n%2 = add_at %1, %i, "
              "%0\nyield %2\n") == "  yield %t\n");
  // Another element, and one of another array.
  CHECK(unchanged("%1 = get %t, %j\n%2 = set %t, %i, %1\nyield %2\n"));
  CHECK(unchanged("%1 = set %t, %j, %x\n%2 = get %t, %i\n%3 = set %1, %i, %2\nyield %3\n"));
}

TEST_CASE("store_forwarding: many of one element, in the order in which they were made", "[passes]") {
  CHECK(after("%1 = set %t, %i, %x\n%2 = add_at %1, %i, %y\n%3 = add_at %2, %i, %x\nyield %3\n") ==
        "  %1 = add %x, %y : f64\n  %2 = add %1, %x : f64\n  %3 = set %t, %i, %2 : f64[?]\n  yield %3\n");
}

TEST_CASE("store_forwarding: other elements in between", "[passes]") {
  // i and i + 1 are never one.
  CHECK(
      after("%one = constant 1 : i64\n%k = add %i, %one\n%1 = set %t, %i, %x\n%2 = set %1, %k, %y\n%3 = "
            "add_at %2, %i, %y\nyield %3\n") ==
      "  %one = constant 1 : i64\n  %k = add %i, %one : i64\n  %1 = set %t, %k, %y : f64[?]\n  %2 = add %x, "
      "%y : f64\n  %3 = set %1, %i, %2 : f64[?]\n  yield %3\n");
  // i and j may be: what is put at j would be lost.
  CHECK(unchanged("%1 = set %t, %i, %x\n%2 = add_at %1, %j, %y\n%3 = add_at %2, %i, %y\nyield %3\n"));
  CHECK(unchanged("%1 = add_at %t, %i, %x\n%2 = set %1, %j, %y\n%3 = add_at %2, %i, %y\nyield %3\n"));
  CHECK(unchanged("%1 = add_at %t, %i, %x\n%2 = add_at %1, %j, %y\n%3 = set %2, %i, %y\nyield %3\n"));
  // Sums may be made in any order.
  CHECK(after("%1 = add_at %t, %i, %x\n%2 = add_at %1, %j, %y\n%3 = add_at %2, %i, %y\nyield %3\n") ==
        "  %1 = add_at %t, %j, %y : f64[?]\n  %2 = add %x, %y : f64\n  %3 = add_at %1, %i, %2 : f64[?]\n  "
        "yield %3\n");
}

TEST_CASE("store_forwarding: rows and columns", "[passes]") {
  const auto matrix = [](const std::string& body) { return after(body, "f64[?,?]", "f64[?,?]"); };
  CHECK(matrix("%one = constant 1 : i64\n%k = sub %i, %one\n%1 = set %t, %i, %j, %x\n%2 = set %1, %k, %j, "
               "%y\n%3 = add_at %2, %i, %j, %y\nyield %3\n") ==
        "  %one = constant 1 : i64\n  %k = sub %i, %one : i64\n  %1 = set %t, %k, %j, %y : f64[?,?]\n  %2 = "
        "add %x, %y : f64\n  %3 = set %1, %i, %j, %2 : f64[?,?]\n  yield %3\n");
  // (i, j) and (j, i) are one where i is j.
  CHECK(matrix("%1 = set %t, %i, %j, %x\n%2 = set %1, %j, %i, %y\n%3 = add_at %2, %i, %j, %y\nyield %3\n")
            .find("add_at") != std::string::npos);
}

TEST_CASE("store_forwarding: what is read in between", "[passes]") {
  const std::string both = "f64[?], f64";
  CHECK(after("%1 = set %t, %i, %x\n%r = get %1, %i\n%2 = add_at %1, %i, %y\nyield %2, %r\n", both) ==
        "  %1 = add %x, %y : f64\n  %2 = set %t, %i, %1 : f64[?]\n  yield %2, %x\n");
  CHECK(after("%1 = add_at %t, %i, %x\n%r = get %1, %i\n%2 = set %1, %i, %y\nyield %2, %r\n", both) ==
        "  %r = get %t, %i : f64\n  %r.2 = add %r, %x : f64\n  %1 = set %t, %i, %y : f64[?]\n  yield %1, "
        "%r.2\n");
  // Two reads and two updates either way.
  CHECK(unchanged("%1 = add_at %t, %i, %x\n%r = get %1, %i\n%2 = add_at %1, %i, %y\nyield %2, %r\n", both));
  // j may be i.
  CHECK(unchanged("%1 = set %t, %i, %x\n%r = get %1, %j\n%2 = add_at %1, %i, %y\nyield %2, %r\n", both));
}

TEST_CASE("store_forwarding: a tensor that is still needed keeps its elements", "[passes]") {
  CHECK(unchanged("%1 = set %t, %i, %x\n%2 = add_at %1, %i, %y\nyield %2, %1\n", "f64[?], f64[?]"));
  CHECK(unchanged("%1 = set %t, %i, %x\n%s = sum %1\n%2 = add_at %1, %i, %y\nyield %2, %s\n", "f64[?], f64"));
}

TEST_CASE("store_forwarding: what an element was is added to", "[passes]") {
  const std::string head = "%one = constant 1 : i64\n%k = add %i, %one\n%old = get %t, %i\n";
  // Another element changes in between.
  CHECK(after(head + "%1 = add_at %t, %k, %x\n%2 = set %1, %i, %old\nyield %2\n") ==
        "  %one = constant 1 : i64\n  %k = add %i, %one : i64\n  %1 = add_at %t, %k, %x : f64[?]\n  yield %1\n");
  const std::string sums = "%1 = add_at %t, %k, %x\n%2 = add %y, %old\n%3 = add %2, %x\n%4 = set %1, %i, %3";
  const std::string added = after(head + sums + " @ \"m.cpp\":1:1 backward\nyield %4\n");
  CHECK(added.find("= add %y, %x : f64\n") != std::string::npos);
  CHECK(added.find("set ") == std::string::npos);
  // The order of sums of the program's own is its order; j may be i.
  CHECK(unchanged(head + sums + "\nyield %4\n"));
  CHECK(unchanged("%old = get %t, %i\n%1 = add_at %t, %j, %x\n%2 = set %1, %i, %old\nyield %2\n"));
}

TEST_CASE("store_forwarding: what is set comes before sums of other elements", "[passes]") {
  const std::string head = "%one = constant 1 : i64\n%k = add %i, %one\n", place = " @ \"m.cpp\":1:1 backward\n";
  const auto order = [&](const std::string& body) {
    const std::string text = after(head + body);
    return text.find("= set %t, %i, %y") < text.find("= add_at");
  };
  CHECK(order("%1 = add_at %t, %k, %x" + place + "%2 = set %1, %i, %y" + place + "yield %2\n"));
  CHECK(order("%1 = add_at %t, %k, %x" + place + "%2 = add_at %1, %one, %x" + place + "%m = sub %i, %one\n%3 = add_at %2, %m, %y" + place +
              "%4 = set %3, %i, %y" + place + "yield %4\n") == false);  // i may be 1
  CHECK(order("%1 = add_at %t, %k, %x" + place + "%m = sub %i, %one\n%2 = add_at %1, %m, %y" + place + "%3 = set %2, %i, %y" + place +
              "yield %3\n"));
  CHECK(unchanged(head + "%1 = add_at %t, %k, %x\n%2 = set %1, %i, %y\nyield %2\n"));
  CHECK_FALSE(order("%1 = add_at %t, %j, %x" + place + "%2 = set %1, %i, %y" + place + "yield %2\n"));
}

TEST_CASE("store_forwarding: sums of neighbours follow each other", "[passes]") {
  const std::string head = "%one = constant 1 : i64\n%k = add %i, %one\n", place = " @ \"m.cpp\":1:1 backward\n";
  const std::string text = after(head + "%1 = add_at %t, %k, %x" + place + "%2 = add_at %1, %j, %y" + place + "%3 = add_at %2, %i, %y" +
                                 place + "yield %3\n");
  CHECK(text.find("add_at %t, %k, %x") < text.find(", %i, %y"));
  CHECK(text.find(", %i, %y") < text.find(", %j, %y"));
  // A sum that is set, with one in between that may be of the same element.
  const std::string set = after("%1 = set %t, %i, %x" + place + "%2 = add_at %1, %j, %y" + place + "%3 = add_at %2, %i, %y" + place + "yield %3\n");
  CHECK(set.find("= add %x, %y : f64") < set.find("= set %t, %i"));
  CHECK(set.find("= set %t, %i") < set.find(", %j, %y"));
  CHECK(set.rfind("add_at") == set.find("add_at"));
}

TEST_CASE("store_forwarding: both sides of a branch write one element", "[passes]") {
  const auto sides = [](const std::string& yes, const std::string& no) {
    return "%one = constant 1 : i64\n%c = lt %i, %j\n%r = branch %c : f64[?] {\n" + yes + "} else {\n" + no + "}\nyield %r\n";
  };
  const std::string text = after(sides("%k = add %i, %one\n%v = mul %x, %y\n%1 = set %t, %k, %v\nyield %1\n",
                                       "%k = add %i, %one\n%1 = set %t, %k, %x\nyield %1\n"));
  CHECK(text.find("= branch %c : f64 {") != std::string::npos);
  CHECK(text.find("set %t, %k") > text.rfind("}"));
  // Two elements, and sums.
  CHECK(after(sides("%1 = add_at %t, %i, %x\n%2 = set %1, %j, %y\nyield %2\n",
                    "%1 = add_at %t, %i, %y\n%2 = set %1, %j, %x\nyield %2\n"))
            .find("= branch %c : f64, f64 {") != std::string::npos);
  // Another element, another operation, one that is still read, and one before a print stay.
  const auto stays = [&](const std::string& yes, const std::string& no) { return unchanged(sides(yes, no)); };
  CHECK(stays("%1 = set %t, %i, %x\nyield %1\n", "%1 = set %t, %j, %x\nyield %1\n"));
  CHECK(stays("%1 = set %t, %i, %x\nyield %1\n", "%1 = add_at %t, %i, %x\nyield %1\n"));
  CHECK(stays("%1 = set %t, %i, %x\nyield %1\n", "yield %t\n"));
}

TEST_CASE("store_forwarding: another block runs more often, or not at all", "[passes]") {
  CHECK(
      unchanged("%c = lt %i, %j\n%1 = set %t, %i, %x\n%r = branch %c : f64[?] {\n%2 = add_at %1, %i, "
                "%y\nyield %2\n} else {\nyield %1\n}\nyield %r\n"));
}

namespace {

/// A recurrence in place: each iteration takes its row, and the row's neighbour, and puts something else there.
Rep<double> recurrence(Rep<Array<double>> start, Rep<Array<double>> w, Rep<int64_t> iterations) {
  const auto state = FOR(0, iterations, start, [&](Rep<int64_t>, Rep<Array<double>> s) {
    return FOR(0, w.size() - 1, s, [&](Rep<int64_t> i, Rep<Array<double>> a) {
      const Rep<double> h = tanh(a[i] * w[i] + a[i + 1]);
      return a.set(i, h).set(i + 1, h * a[i] + w[i + 1] * h).set(i, h * h);
    });
  });
  return FOR(0, w.size(), 0.0, [&](Rep<int64_t> i, Rep<double> sum) { return sum + state[i] * w[i]; });
}

}  // namespace

TEST_CASE("store_forwarding: the gradient of a recurrence in place", "[passes]") {
  const std::vector<double> start{0.3, -0.2, 0.5, 0.1, 0.7}, w{0.9, -0.4, 0.6, 0.2, -0.8};
  const auto with = compile(grad<0, 1>(recurrence));
  const auto without = compile(grad<0, 1>(recurrence), {.disabled_passes = {"store_forwarding"}});
  const auto value = compile(recurrence);
  const auto [ds, dw] = with(start, w, 3);
  const auto [ds0, dw0] = without(start, w, 3);
  const double h = 1e-6;
  for (std::size_t i = 0; i < w.size(); ++i) {
    CHECK(ds[i] == Approx(ds0[i]).epsilon(1e-13));
    CHECK(dw[i] == Approx(dw0[i]).epsilon(1e-13));
    std::vector<double> up = w, down = w;
    up[i] += h, down[i] -= h;
    CHECK(dw[i] == Approx((value(start, up, 3) - value(start, down, 3)) / (2 * h)).margin(1e-8));
  }
}
