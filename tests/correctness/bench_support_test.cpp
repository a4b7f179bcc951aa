// What the benchmarks measure and report with: timing, tables, JSON, plots, and the check of derivatives.
#include <fmt/format.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cmath>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <limits>

#include "../occurrences.hpp"
#include "calibration.hpp"
#include "child.hpp"
#include "derivative_check.hpp"
#include "fit.hpp"
#include "lantern/ir/error.hpp"
#include "plot.hpp"
#include "problem.hpp"
#include "reference/gmm.hpp"
#include "reference/lstm.hpp"
#include "reference/series.hpp"
#include "report.hpp"
#include "timing.hpp"

using namespace lantern;
using namespace lantern::bench;

namespace {

std::filesystem::path data_folder() {
  const char* named = std::getenv("LANTERN_DATA");
  const std::filesystem::path beside = std::filesystem::path(LANTERN_TEST_DIR) / "../../shared/data";
  for (const std::filesystem::path& folder : {std::filesystem::path(named ? named : ""), beside})
    if (exists(folder / "adbench/gmm")) return folder / "adbench";
  WARN("skipped: no adbench/gmm in $LANTERN_DATA or ../shared/data");
  return {};
}

/// Work that takes a time proportional to n.
Callable work(int n) {
  return [n] {
    double x = 1;
    for (int i = 0; i < n; ++i) {
      x = x * 0.5 + 1;
      asm volatile("" : "+x"(x));
    }
  };
}

bool contains(const std::string& text, const std::string& part) { return text.find(part) != text.npos; }

using lantern::test::count;

}  // namespace

TEST_CASE("bench: medians", "[bench]") {
  CHECK(median({3, 1, 2}) == 2);
  CHECK(median({4, 1, 3, 2}) == 2.5);
  CHECK(median({7}) == 7);
  CHECK_THROWS_WITH(median({}), "expected values to take the median of, got none");
}

TEST_CASE("bench: three times the work takes three times as long", "[bench]") {
  const auto timings = paired({work(30'000), work(10'000)}, work(10'000), {.minimum_ms = 2, .repeats = 11});
  REQUIRE(timings.size() == 2);
  CHECK(timings[0].ratio == Approx(3).epsilon(0.25));
  CHECK(timings[1].ratio == Approx(1).epsilon(0.25));
  CHECK(ratio(timings[0], timings[1]) == Approx(3).epsilon(0.25));
  CHECK(timings[0].rounds.size() == 11);
  CHECK(timings[0].ms == Approx(3 * timings[0].reference_ms).epsilon(0.35));
}

TEST_CASE("bench: the limit ends a measurement after three rounds", "[bench]") {
  int calls = 0;
  paired([&] { ++calls; }, work(1'000'000), {.minimum_ms = 0, .repeats = 1000, .limit_ms = 0});
  // Warm-up, a first count, three rounds of at most four tries.
  CHECK(calls >= 1 + 1 + 3);
  CHECK(calls <= 1 + 1 + 12);
}

TEST_CASE("bench: calibration", "[bench]") {
  const Calibration c{.exp = 10.8, .log = 8.4, .tanh = 28};
  CHECK(c.factor() == Approx(2));
  CHECK(reference_machine_ms("ba1") == 0.79);
  CHECK_FALSE(reference_machine_ms("gmm_d3_K3").has_value());
  CHECK(calibration_kernel_ms(kReferenceMachine) == Approx(0.0236));
  CHECK(c.str() ==
        "calibration: exp 10.8 ns, log 8.4 ns, tanh 28.0 ns (reference machine 5.4, 4.2, 14.0): times here "
        "are 2.00 "
        "of the reference machine's");
  const Calibration here = calibrate({.minimum_ms = 1, .repeats = 3});
  CHECK(here.exp > 0.1);
  CHECK(here.log > 0.1);
  CHECK(here.tanh > 0.1);
}

TEST_CASE("bench: rows as a table and as JSON", "[bench]") {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const std::vector<Row> rows{{"gmm", "reverse", 0.5, 0.25, 2, {{"bytes", 4096}}},
                              {"a \"long\" name", "f", 12345.6, 0.125, nan, {{"own", 0.1}}}};
  CHECK(table(rows) ==
        "problem        form        ms  reference_ms  ratio  bytes  own\n"
        "gmm            reverse    0.5          0.25      2   4096\n"
        "a \"long\" name  f        12346         0.125      -         0.1\n");
  CHECK(json(rows) ==
        "[\n"
        "  {\"problem\": \"gmm\", \"form\": \"reverse\", \"ms\": 0.5, \"reference_ms\": 0.25, \"ratio\": 2, "
        "\"bytes\": 4096},\n"
        "  {\"problem\": \"a \\\"long\\\" name\", \"form\": \"f\", \"ms\": 12345.6, \"reference_ms\": 0.125, "
        "\"ratio\": null, \"own\": 0.1}\n"
        "]\n");
  CHECK(json({}) == "[\n]\n");
  CHECK_THROWS_WITH(write_file("/nowhere/x.json", ""),
                    "/nowhere/x.json: expected a file that can be written");
}

TEST_CASE("bench: a line plot over logarithmic axes", "[bench]") {
  const std::string svg =
      line_plot({"Title", "n", "a < b"}, {{"one", {{1, 1}, {10, 100}, {100, 0}}}, {"two", {{1, 10}}}});
  // The area is 640 x 420 from (80, 50): x from 1 to 10, y from 1 to 100; the point at 0 is left out.
  CHECK(contains(svg, "<polyline points=\"80.0,470.0 720.0,50.0 \""));
  CHECK(contains(svg, "<circle cx=\"80.0\" cy=\"260.0\""));
  CHECK(count(svg, "<circle") == 3);
  CHECK(contains(svg, "a &lt; b"));
  for (const char* text : {">Title<", ">one<", ">two<", ">1<", ">10<", ">100<"}) CHECK(contains(svg, text));
  CHECK(svg.substr(svg.size() - 7) == "</svg>\n");
  CHECK_THROWS_WITH(line_plot({}, {{"none", {{0, 1}}}}), "expected a positive point to plot, got none");
}

TEST_CASE("bench: a bar plot", "[bench]") {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const std::string svg = bar_plot({"T", "x", "y"}, {"g1", "g2"}, {"s1", "s2"}, {{1, 4}, {2, nan}});
  CHECK(count(svg, "width=\"23.0\"") == 3);  // bars
  // Ticks at 0, 1, ... 5: the bar of 4 is four fifths of 360 high.
  CHECK(contains(svg, "height=\"288.0\""));
  for (const char* text : {">g1<", ">g2<", ">s1<", ">s2<", ">4<"}) CHECK(contains(svg, text));
  // From 0.1 to 100, in three decades: 1 is a third of 360 high.
  const std::string logarithmic = bar_plot({"T", "x", "y"}, {"g1", "g2"}, {"s"}, {{1, 100}});
  CHECK(contains(logarithmic, "height=\"120.0\""));
  CHECK(contains(logarithmic, "height=\"360.0\""));
  CHECK_THROWS_WITH(bar_plot({}, {"g"}, {"s"}, {{1, 2}}), "expected a value for each of 1 groups, got 2");
  CHECK_THROWS_WITH(bar_plot({}, {"g"}, {"s"}, {}), "expected values of 1 series, got 0");
  CHECK_THROWS_WITH(bar_plot({}, {"g"}, {"s"}, {{0}}), "expected a positive value to plot, got none");
}

TEST_CASE("bench: a power law is found again", "[bench]") {
  const PowerLaw law = power_law({{1, 3}, {10, 300}, {100, 30'000}});
  CHECK(law.slope == Approx(2));
  CHECK(law.factor == Approx(3));
  CHECK(law.r2 == Approx(1));
  CHECK(power_law({{1, 1}, {2, 2}, {4, 1}}).r2 == Approx(0).margin(1e-12));
  CHECK_THROWS_WITH(power_law({{1, 1}, {1, 2}}),
                    "expected at least two different sizes to fit a power law to");
  CHECK_THROWS_WITH(power_law({{1, 1}, {2, 0}}), "expected positive numbers to fit a power law to");
}

TEST_CASE("bench: what a line does not explain, a parabola may", "[bench]") {
  std::vector<std::pair<double, double>> line, square;
  for (const double x : {1e3, 2e3, 5e3, 1e4, 1e6}) {
    line.emplace_back(x, 7 + 3 * x);
    square.emplace_back(x, 1 + x + 2e-3 * x * x);
  }
  CHECK(straight_line(line).r2 == Approx(1));
  CHECK(parabola_r2(line) == Approx(1));
  const std::vector<std::pair<double, double>> even{{0, 0}, {1, 1}, {2, 4}, {3, 9}, {4, 16}};
  CHECK(straight_line(even).r2 == Approx(0.9195).margin(1e-4));
  CHECK(parabola_r2(even) == Approx(1));
  CHECK(parabola_r2(square) == Approx(1));
  CHECK(parabola_r2({{0, 0}, {1, 1}, {2, 0}, {3, 1}}) == Approx(0.2));  // the best parabola is a line
  CHECK_THROWS_WITH(parabola_r2({{1, 1}, {1, 2}}), "expected at least two different sizes to fit a line to");
}

TEST_CASE("bench: plots one below the other", "[bench]") {
  const std::string one = line_plot({"First", "n", "ms"}, {{"a", {{1, 1}}}}),
                    both = stacked({one, line_plot({"Second", "n", "ms"}, {{"b", {{1, 1}}}})});
  CHECK(contains(one, "width=\"890\" height=\"530\""));
  CHECK(contains(both, "width=\"890\" height=\"1060\" viewBox=\"0 0 890 1060\""));
  CHECK(contains(both, "<svg y=\"0\" "));
  CHECK(contains(both, "<svg y=\"530\" "));
  CHECK(count(both, "</svg>") == 3);
  std::vector<Series> many;
  for (int i = 0; i < 8; ++i) many.push_back({fmt::format("s{}", i), {{1, 1.0 + i}, {10, 10.0}}});
  CHECK(count(line_plot({}, many), "stroke-dasharray") == 2);  // the eighth, and its piece in the legend
}

TEST_CASE("bench: the series comes near 1/x", "[bench]") {
  CHECK(reference::series(0.5, 0) == 1);
  CHECK(reference::series(0.5, 3) == 1.875);
  CHECK(reference::series(0.5, 1000) == Approx(2).epsilon(1e-15));
  CHECK(reference::series(1.25, 100) == Approx(0.8).epsilon(1e-15));
}

TEST_CASE("bench: work in a process of its own", "[bench]") {
  constexpr std::int64_t gigabyte = 1'000'000'000;
  const ChildResult right = in_child([] { return std::vector<double>{1, 2.5}; }, gigabyte, 60);
  CHECK(right.failure == "");
  CHECK(right.values == std::vector<double>{1, 2.5});
  CHECK(right.peak_bytes > 100'000);

  const auto failure = [](auto work) { return in_child(work, gigabyte, 60).failure; };
  CHECK(failure([]() -> std::vector<double> { throw Error("no"); }) == "no");
  CHECK(failure([]() -> std::vector<double> {
          std::raise(SIGKILL);
          return {};
        }) == "ended by signal 9 (Killed)");
  CHECK(failure([]() -> std::vector<double> { _exit(3); }) == "ended with status 3");

  const ChildResult large = in_child(
      [] {
        std::vector<double> held(std::size_t{25} << 20, 1.0);  // 200 MB
        return std::vector<double>{held.back()};
      },
      gigabyte, 60);
  CHECK(large.peak_bytes - right.peak_bytes > 190'000'000);
  CHECK(in_child(
            [] {
              std::vector<double> held(std::size_t{25} << 20, 1.0);
              for (;;) pause();
              return held;
            },
            gigabyte / 10, 60)
            .failure == "took more than 0.1 GB");
  CHECK(in_child(
            []() -> std::vector<double> {
              for (;;) pause();
            },
            gigabyte, 0.1)
            .failure == "took longer than 0.1 s");
}

TEST_CASE("bench: names of problems", "[bench]") {
  CHECK(problem_name("x/gmm/1k/gmm_d10_K25.txt") == "gmm_d10_K25");
  CHECK(problem_name("ba/ba1_n49_m7776_p31843.txt") == "ba1");
  CHECK(problem_name("lstm_l2_c1024.txt") == "lstm_l2_c1024");
  CHECK(problem_name("hand/simple_small/hand4_t26_c400.txt") == "hand_simple_hand4");
  CHECK(problem_name("hand/complicated_small/hand4_t26_c400.txt") == "hand_complicated_hand4");
  CHECK_THROWS_WITH(problem_name("a/b.txt"),
                    "expected a file named gmm..., ba..., lstm... or hand..., got a/b.txt");
}

TEST_CASE("bench: a problem takes its forms from the models", "[bench]") {
  Models models;
  models.gmm = [](std::shared_ptr<const GmmInput> in, const std::string& problem) {
    return std::vector<Form>{
        {problem, [in] { static_cast<void>(reference::gmm(*in)); }, [] { return std::string(); }}};
  };
  const Problem p = load_problem("gmm_d2_K3.txt", models);  // no such file: synthetic
  REQUIRE(p.forms.size() == 1);
  CHECK(p.forms[0].name == "gmm_d2_K3");
  CHECK(load_problem("lstm_l1_c10", models).forms.empty());
  CHECK_THROWS_WITH(load_problem("/nowhere/ba1.txt"), "/nowhere/ba1.txt: expected a readable file");
}

TEST_CASE("bench: summaries", "[bench]") {
  const Summary s = summary(std::vector<double>{3, -4});
  CHECK(s.count == 2);
  CHECK(s.sum == -1);
  CHECK(s.norm == 5);
  CHECK(compare(s, s).empty());
  CHECK(compare(s, {3, -1, 5, 3, -4}) == "expected 3 entries, got 2");
  CHECK(compare(s, {2, -1.1, 5, 3, -4}) == "expected the sum -1.1, got -1");
  CHECK(compare(s, {2, -1, 5.1, 3, -4}) == "expected the norm 5.1, got 5");
  CHECK(compare(s, {2, -1, 5, 3.1, -4}) == "expected the first entry 3.1, got 3");
  CHECK(compare(s, {2, -1, 5, 3, -4.1}) == "expected the last entry -4.1, got -4");
}

// The suite's derivatives by hand and differences of the yardstick: two computations that have nothing in
// common.
TEST_CASE("bench: differences of the yardstick give the known derivatives", "[bench]") {
  const std::filesystem::path folder = data_folder();
  if (folder.empty()) return;
  const auto check = [](const std::string& problem, const Differentiable& f) {
    INFO(problem);
    std::vector<double> derivative = differences(f);
    CHECK(compare(summary(derivative), known_values(problem).value().derivative, 1e-6) == "");
    CHECK(compare_with_differences(derivative, f) == "");
    derivative.back() += summary(derivative).norm;
    CHECK(check_derivative(derivative, problem, f).rfind("expected the sum", 0) == 0);
    CHECK(check_derivative(derivative, "unknown", f).rfind("expected entry", 0) == 0);
  };
  check("gmm_d2_K5",
        differentiable(std::make_shared<const GmmInput>(read_gmm(folder / "gmm/1k/gmm_d2_K5.txt"))));
  check("gmm_d10_K5",
        differentiable(std::make_shared<const GmmInput>(read_gmm(folder / "gmm/1k/gmm_d10_K5.txt"))));
  check("lstm_l2_c1024",
        differentiable(std::make_shared<const LstmInput>(read_lstm(folder / "lstm/lstm_l2_c1024.txt"))));
  for (const char* form : {"simple", "complicated"}) {
    const auto file = folder / "hand" / (std::string(form) + "_small") / "hand1_t26_c100.txt";
    check("hand_" + std::string(form) + "_hand1",
          differentiable(std::make_shared<const HandInput>(read_hand(file))));
  }
}

// All cameras, points and features of the file are alike, and so are all observations.
TEST_CASE("bench: the known derivative of the bundle adjustment is that of one observation, repeated",
          "[bench]") {
  const std::filesystem::path folder = data_folder();
  if (folder.empty()) return;
  auto in = std::make_shared<BaInput>(read_ba(folder / "ba/ba1_n49_m7776_p31843.txt"));
  const Differentiable whole = differentiable(std::make_shared<const BaInput>(*in));
  const auto [output, variable] =
      whole.entry(30 * 50 + 15 + 12);  // observation 50: camera 1, point 50, second error
  CHECK(output == 101);
  CHECK(variable == 49 * 11 + 50 * 3 + 1);
  in->cameras = in->points = in->observations = 1;
  in->camera.resize(11), in->point.resize(3), in->weight.resize(1), in->feature.resize(2),
      in->joins = {{0, 0}};
  const std::vector<double> one = differences(differentiable(std::shared_ptr<const BaInput>(in)));
  REQUIRE(one.size() == 31);
  std::vector<double> all;
  for (int i = 0; i < 31843; ++i) all.insert(all.end(), one.begin(), one.end() - 1);
  all.insert(all.end(), 31843, one.back());
  CHECK(compare(summary(all), known_values("ba1").value().derivative, 1e-6) == "");
}

TEST_CASE("bench: outputs beside the yardstick's", "[bench]") {
  const auto in = std::make_shared<const LstmInput>(synthetic_lstm(1, 10, 3));
  const Differentiable f = differentiable(in);
  const double loss = reference::lstm(*in);
  CHECK(check_objective(std::vector<double>{loss * (1 + 1e-13)}, f) == "");
  CHECK(check_objective(std::vector<double>{loss * (1 + 1e-9)}, f).rfind("expected output 0 to be", 0) == 0);
  CHECK(check_objective(std::vector<double>{}, f) == "expected 1 outputs, got 0");
}

TEST_CASE("bench: every file with known values is there", "[bench]") {
  const std::filesystem::path folder = data_folder();
  if (folder.empty()) return;
  for (const auto& file : known_files(folder)) {
    INFO(file);
    CHECK(exists(file));
    CHECK(problem_name(input_file(problem_name(file))) == problem_name(file));
    CHECK(known_values(problem_name(file)).has_value());
  }
  CHECK_FALSE(known_values("gmm_d3_K3").has_value());
}
