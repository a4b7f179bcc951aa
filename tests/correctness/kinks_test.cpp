// docs/conventions.md, the page of conventions at kinks, ties, poles and ends: what it says, every way of computing gives.
//
// A row of its tables is | row | function and point | value | slopes | second | why | peers... |. Slopes are those by
// each argument, in order; `rev [..] jvp [..]` where ways differ: rev reverse mode, fwd grad<mode::forward>, jvp tangents that
// are given at run time. Second derivatives likewise: FR forward mode over reverse, RR, RF, T taylor<2>. NaN is written nan, whatever its
// sign; 0 and -0 are one number here.
#include "kinks_rows.hpp"

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <optional>
#include <regex>
#include <sstream>

#include "lantern/codegen/toolchain/emulate.hpp"

using namespace lantern;
using namespace lantern::test::kinks;
using Numbers = std::vector<double>;

namespace {

const std::filesystem::path page = std::filesystem::path(LANTERN_TEST_DIR).parent_path() / "docs" / "conventions.md";

std::string written(double x) {
  if (std::isnan(x)) return "nan";
  if (std::isinf(x)) return x > 0 ? "inf" : "-inf";
  char text[40];
  std::snprintf(text, sizeof text, "%.6g", x == 0 ? 0.0 : x);
  return text;
}
std::string written(const Numbers& v) {
  std::string s = "[";
  for (std::size_t i = 0; i < v.size(); ++i) s += (i ? " " : "") + written(v[i]);
  return s + "]";
}

double number(const std::string& text) {
  if (text == "nan") return none;
  if (text == "inf" || text == "-inf") return text == "inf" ? inf : -inf;
  return std::stod(text);
}

bool same(double a, double b) {
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b);
  if (a == b) return true;
  return std::abs(a - b) <= 1e-5 * std::max(std::abs(a), std::abs(b)) && std::isfinite(a) && std::isfinite(b);
}
bool same(const Numbers& a, const Numbers& b) {
  return a.size() == b.size() &&
         std::equal(a.begin(), a.end(), b.begin(), [](double x, double y) { return same(x, y); });
}

/// What ways are expected to give, by their names; "" is of all that have none of their own.
using Expected = std::map<std::string, Numbers>;

struct Line {
  double value = 0;
  Expected slopes, second;
};

Expected parsed(const std::string& cell) {
  Expected all;
  const std::regex part(R"(([A-Za-z]*)\s*\[([^\]]*)\])");
  for (std::sregex_iterator at(cell.begin(), cell.end(), part), end; at != end; ++at) {
    std::istringstream in((*at)[2]);
    Numbers& v = all[(*at)[1]];
    for (std::string word; in >> word;) v.push_back(number(word));
  }
  return all;
}

const std::map<std::string, Line>& lines() {
  static const std::map<std::string, Line> all = [] {
    std::map<std::string, Line> found;
    std::ifstream in(page);
    for (std::string text; std::getline(in, text);) {
      if (!text.starts_with("| ") || text.starts_with("| row")) continue;
      std::vector<std::string> cells;
      std::istringstream line(text.substr(1));
      for (std::string cell; std::getline(line, cell, '|');) {
        const auto from = cell.find_first_not_of(' '), to = cell.find_last_not_of(' ');
        cells.push_back(from == std::string::npos ? "" : cell.substr(from, to - from + 1));
      }
      if (cells.size() < 6) continue;
      found[cells[0]] = {number(cells[2]), parsed(cells[3]), parsed(cells[4])};
    }
    return found;
  }();
  return all;
}

// ---- a program of all rows

/// Numbers of a row in a result, in this order: the value; slopes by rev, fwd, jvp; second derivatives by FR, RR, RF, T.
struct Out {
  std::vector<D> numbers;
  void add(const D& x) { numbers.push_back(x); }
  void add(const V& x, std::size_t n) {
    for (std::size_t i = 0; i < n; ++i) add(x[static_cast<std::int64_t>(i)]);
  }
  template <class... T>
  void add(const std::tuple<T...>& all) {
    std::apply([&](const auto&... x) { (add(x), ...); }, all);
  }
};

template <class... X, std::size_t... K>
void numbers_of(Out& out, const std::function<D(X...)>& f, bool second, const D& one, const D& zero,
                std::index_sequence<K...>, X... x) {
  out.add(f(x...));
  out.add(grad(f)(x...));
  out.add(grad<mode::forward>(f)(x...));
  const auto along = [&](const auto& g, std::size_t k, auto... a) { return jvp(g)(a..., (K == k ? one : zero)...); };
  for (std::size_t k = 0; k < sizeof...(X); ++k) out.add(std::get<1>(along(f, k, x...)));
  if (!second) return;
  const auto slope = [f]<std::size_t k>(std::integral_constant<std::size_t, k>) {
    return std::function<D(X...)>([f](X... y) -> D {
      if constexpr (sizeof...(X) == 1) return grad(f)(y...);
      else return std::get<k>(grad(f)(y...));
    });
  };
  const auto of_slope = [&]<std::size_t k>(std::integral_constant<std::size_t, k> i, bool forward) {
    if (!forward) return out.add(grad(slope(i))(x...));
    for (std::size_t j = 0; j < sizeof...(X); ++j) out.add(std::get<1>(along(slope(i), j, x...)));
  };
  (of_slope(std::integral_constant<std::size_t, K>{}, true), ...);
  (of_slope(std::integral_constant<std::size_t, K>{}, false), ...);
  for (std::size_t k = 0; k < sizeof...(X); ++k)
    out.add(grad(std::function<D(X...)>([&](X... y) { return D(std::get<1>(along(f, k, y...))); }))(x...));
  if constexpr (sizeof...(X) == 1) out.add(taylor<2>(f)(x..., one)[2]);
}

void numbers_of(Out& out, const Row& row, const D& one, const D& zero, const V& x) {
  const std::size_t n = row.at.size();
  out.add(row.array(x));
  out.add(grad(row.array)(x), n);
  out.add(grad<mode::forward>(row.array)(x), n);
  const auto unit = [&](std::size_t k) {
    V e = fill(zero, static_cast<std::int64_t>(n));
    return e.set(static_cast<std::int64_t>(k), one);
  };
  for (std::size_t k = 0; k < n; ++k) out.add(std::get<1>(jvp(row.array)(x, unit(k))));
  if (!row.second) return;
  for (std::size_t k = 0; k < n; ++k) out.add(std::get<1>(jvp(grad(row.array))(x, unit(k))), n);
  const std::function<D(V)> f = row.array;
  for (std::size_t k = 0; k < n; ++k)
    out.add(grad(std::function<D(V)>([f, k](V y) { return grad(f)(y)[static_cast<std::int64_t>(k)]; }))(x), n);
  for (std::size_t k = 0; k < n; ++k) {
    const V e = unit(k);
    out.add(grad(std::function<D(V)>([f, e](V y) { return D(std::get<1>(jvp(f)(y, e))); }))(x), n);
  }
}

/// All rows' numbers, from their points one after the other and {1, 0}.
std::function<V(V, V)> program_of(const std::vector<Row>& rows) {
  return [rows](V x, V unit) {
    Out out;
    const D one = unit[0], zero = unit[1];
    std::int64_t at = 0;
    for (const Row& row : rows) {
      const auto n = static_cast<std::int64_t>(row.at.size());
      if (row.one) numbers_of(out, row.one, row.second, one, zero, std::make_index_sequence<1>{}, D(x[at]));
      if (row.two) numbers_of(out, row.two, row.second, one, zero, std::make_index_sequence<2>{}, D(x[at]), D(x[at + 1]));
      if (row.three)
        numbers_of(out, row.three, row.second, one, zero, std::make_index_sequence<3>{}, D(x[at]), D(x[at + 1]), D(x[at + 2]));
      if (row.array) numbers_of(out, row, one, zero, x.slice(at, at + n));
      at += n;
    }
    V all = fill(D(0.0), static_cast<std::int64_t>(out.numbers.size()));
    for (std::size_t i = 0; i < out.numbers.size(); ++i) all = all.set(static_cast<std::int64_t>(i), out.numbers[i]);
    return all;
  };
}

Numbers points_of(const std::vector<Row>& rows) {
  Numbers all;
  for (const Row& row : rows) all.insert(all.end(), row.at.begin(), row.at.end());
  return all;
}

Numbers taken(const Numbers& all, std::size_t& at, std::size_t n) {
  const Numbers some(all.begin() + static_cast<std::ptrdiff_t>(at), all.begin() + static_cast<std::ptrdiff_t>(at + n));
  at += n;
  return some;
}

void check(const std::string& way, const Row& row, const Expected& expected, const std::string& by, const Numbers& got) {
  INFO(way << ", row " << row.id << ", " << by << ": " << written(got));
  const auto own = expected.find(by), all = expected.find("");
  REQUIRE((own != expected.end() || all != expected.end()));
  const Numbers& want = own != expected.end() ? own->second : all->second;
  INFO("expected " << written(want));
  CHECK(same(got, want));
}

void check(const std::string& way, const std::vector<Row>& rows, const Numbers& got) {
  std::size_t at = 0;
  for (const Row& row : rows) {
    const std::size_t n = row.at.size();
    const auto line = lines().find(row.id);
    INFO("row " << row.id);
    REQUIRE(line != lines().end());
    const double value = taken(got, at, 1)[0];
    INFO(way << " gives the value " << written(value));
    CHECK(same(value, line->second.value));
    for (const char* by : {"rev", "fwd", "jvp"}) check(way, row, line->second.slopes, by, taken(got, at, n));
    if (!row.second) continue;
    for (const char* by : {"FR", "RR", "RF"}) check(way, row, line->second.second, by, taken(got, at, n * n));
    if (row.one) check(way, row, line->second.second, "T", taken(got, at, 1));
  }
  CHECK(at == got.size());
}

const std::vector<Row>& numbers() {
  static const std::vector<Row> all = rows_of_numbers();
  return all;
}
const std::vector<Row>& arrays() {
  static const std::vector<Row> all = rows_of_arrays();
  return all;
}

std::vector<std::pair<std::string, CompileOptions>> compilers() {
  std::vector<std::pair<std::string, CompileOptions>> all;
  // From 1 on the passes are the same.
  for (const int opt : {0, 3}) {
    all.push_back({"Target::c, opt " + std::to_string(opt), {.target = Target::c, .opt = opt}});
    all.push_back({"Target::cpp, opt " + std::to_string(opt), {.target = Target::cpp, .opt = opt}});
  }
  all.push_back({"strict, two threads", {.target = Target::cpp, .strict_math = true, .threads = 2}});
  return all;
}

}  // namespace

TEST_CASE("the page has each row once, with a reason") {
  std::size_t rows = 0;
  for (const auto* all : {&numbers(), &arrays()})
    for (const Row& row : *all) {
      INFO(row.id);
      CHECK(lines().contains(row.id));
      ++rows;
    }
  CHECK(rows == lines().size());
}

TEST_CASE("what the page would say", "[.print]") {
  const auto cell = [](const std::vector<std::pair<std::string, Numbers>>& ways) {
    bool one = true;
    for (const auto& [by, v] : ways) one = one && same(v, ways[0].second);
    if (one) return written(ways[0].second);
    std::string text;
    for (const auto& [by, v] : ways) text += (text.empty() ? "" : " ") + by + " " + written(v);
    return text;
  };
  for (const auto* rows : {&numbers(), &arrays()}) {
    const Numbers got = eager(program_of(*rows))(points_of(*rows), Numbers{1, 0});
    std::size_t at = 0;
    for (const Row& row : *rows) {
      const std::size_t n = row.at.size();
      const double value = taken(got, at, 1)[0];
      const auto some = [&](const std::vector<const char*>& names, std::size_t size) {
        std::vector<std::pair<std::string, Numbers>> ways;
        for (const char* by : names) ways.emplace_back(by, taken(got, at, size));
        return cell(ways);
      };
      const std::string slopes = some({"rev", "fwd", "jvp"}, n);
      const std::string second = !row.second ? ""
                                 : row.one   ? some({"FR", "RR", "RF", "T"}, 1)
                                             : some({"FR", "RR", "RF"}, n * n);
      std::printf("%s|%s|%s|%s\n", row.id.c_str(), written(value).c_str(), slopes.c_str(), second.c_str());
    }
  }
}

TEST_CASE("eager evaluation keeps the conventions") {
  for (const auto* rows : {&numbers(), &arrays()})
    check("eager", *rows, eager(program_of(*rows))(points_of(*rows), Numbers{1, 0}));
}

TEST_CASE("compiled programs keep the conventions") {
  for (const auto* rows : {&numbers(), &arrays()})
    for (const auto& [name, options] : compilers())
      check(name, *rows, compile(program_of(*rows), options)(points_of(*rows), Numbers{1, 0}));
}

TEST_CASE("loops that replace what they read, differentiated twice") {
  const std::function<D(V)> roots = [](V a) {
    return FOR(0, a.size(), a, [&](auto i, V s) { return s.set(i, sqrt(s[i])); })[1];
  };
  const auto over_reverse = [roots](V a) {
    return grad(std::function<D(V)>([roots](V b) { return grad(roots)(b)[1]; }))(a);
  };
  const auto over_forward = [roots](V a) {
    const V unit = fill(D(0.0), a.size()).set(1, 1.0);
    return grad(std::function<D(V)>([=](V b) { return D(std::get<1>(jvp(roots)(b, unit))); }))(a);
  };
  const Numbers at{0, 4, 0}, expected{0, -1.0 / 32, 0};
  const auto check = [&](const auto& second) {
    CHECK(same(eager(second)(at), expected));
    for (const int opt : {0, 3}) CHECK(same(compile(second, {.target = Target::c, .opt = opt})(at), expected));
  };
  check(over_reverse);
  check(over_forward);
}

TEST_CASE("every eager mode keeps the conventions") {
  const auto slopes = [](const Row& row, const auto& of) {
    Out out;
    if (row.one) out.add(of(row.one)(D(row.at[0])));
    if (row.two) out.add(of(row.two)(D(row.at[0]), D(row.at[1])));
    if (row.three) out.add(of(row.three)(D(row.at[0]), D(row.at[1]), D(row.at[2])));
    Numbers got;
    for (const D& d : out.numbers) got.push_back(d.datum().f());
    return got;
  };
  for (const Row& row : numbers()) {
    const Expected& want = lines().at(row.id).slopes;
    const auto by = [&](const char* name, const auto& of) { check(name, row, want, "rev", slopes(row, of)); };
    by("taped", [](const auto& f) { return grad<mode::taped>(f); });
    by("taped, fast", [](const auto& f) { return grad<mode::taped, form::fast>(f); });
    by("reverse by shift", [](const auto& f) { return grad<mode::reverse, form::literal>(f); });
    by("continuation", [](const auto& f) { return grad<mode::continuation>(f); });
    by("functional", [](const auto& f) { return grad<mode::functional>(f); });
    by("global tape", [](const auto& f) { return grad<mode::global_tape>(f); });
    by("cps", [](const auto& f) { return grad<mode::cps>(f); });
    by("checkpointed", [](const auto& f) { return grad<mode::checkpointed>(f); });
    by("divide and conquer", [](const auto& f) { return grad<mode::divide_and_conquer>(f); });
  }
}

TEST_CASE("lanes keep the conventions") {
  constexpr std::size_t copies = 21;
  std::vector<Row> rows;
  for (const Row& row : numbers())
    if (row.one || row.two) rows.push_back(row);
  const std::function<V(V)> program = [rows](V x) {
    std::vector<V> parts;
    std::int64_t at = 0;
    const auto next = [&] {
      at += static_cast<std::int64_t>(copies);
      return x.slice(at - static_cast<std::int64_t>(copies), at);
    };
    for (const Row& row : rows) {
      const V a = next();
      if (row.one) {
        parts.push_back(grad(std::function<D(V)>([row](V p) {
          return FOR(0, p.size(), D(0.0), [&](auto i, auto s) { return s + row.one(p[i]); });
        }))(a));
      } else {
        const auto [da, db] = grad(std::function<D(V, V)>([row](V p, V q) {
          return FOR(0, p.size(), D(0.0), [&](auto i, auto s) { return s + row.two(p[i], q[i]); });
        }))(a, next());
        parts.push_back(da);
        parts.push_back(db);
      }
    }
    V all = fill(D(0.0), static_cast<std::int64_t>(parts.size() * copies));
    for (std::size_t k = 0; k < parts.size(); ++k)
      for (std::size_t i = 0; i < copies; ++i)
        all = all.set(static_cast<std::int64_t>(k * copies + i), parts[k][static_cast<std::int64_t>(i)]);
    return all;
  };
  Numbers points;
  for (const Row& row : rows)
    for (const double x : row.at) points.insert(points.end(), copies, x);
  for (const int lanes : {2, 4, 8}) {
    const std::string way = std::to_string(lanes) + " lanes";
    const Numbers got = compile(program, {.target = Target::cpp, .lanes = lanes})(points);
    std::size_t at = 0;
    for (const Row& row : rows) {
      std::vector<Numbers> by_argument;
      for (std::size_t k = 0; k < row.at.size(); ++k) by_argument.push_back(taken(got, at, copies));
      for (std::size_t i = 0; i < copies; ++i) {
        Numbers slopes;
        for (const Numbers& all : by_argument) slopes.push_back(all[i]);
        check(way, row, lines().at(row.id).slopes, "rev", slopes);
      }
    }
  }
}

TEST_CASE("emulated kernels keep the conventions") {
  for (const Row& row : numbers()) {
    // One file each: slopes that are not taken, and kinks. (38e has an array, for which a kernel of numbers has no memory.)
    const bool some = row.id.starts_with("38") || row.id == "37b" || row.id == "37c" || row.id == "36b" || row.id == "2a";
    if (!row.one || !some || row.id == "38e") continue;
    const std::string name = "row_" + row.id;
    const auto on_cpu = compile(grad(row.one), {.target = Target::c, .name = name});
    const auto emulated = codegen::compile_emulated(on_cpu.source("cuda"));
    const auto map = reinterpret_cast<int (*)(const double*, double*, std::int64_t)>(emulated->symbol(name + "_map"));
    const Numbers in(5, row.at[0]);
    Numbers out(5);
    REQUIRE(map(in.data(), out.data(), 5) == 0);
    for (const double x : out) check("emulated kernel", row, lines().at(row.id).slopes, "rev", {x});
  }
}

TEST_CASE("nothing flows to elements that are replaced again before they are read") {
  using I = Rep<std::int64_t>;
  using A = Rep<Array<double>>;
  const auto same = [](const auto& program) {
    const auto f = grad<0>(sig<double(Array<double>)>(program));
    const Numbers x{0, 0.5, 0, 2}, expected = eager(f)(x);
    CHECK(std::ranges::none_of(expected, [](double d) { return std::isnan(d); }));
    for (const CompileOptions& o : {CompileOptions{.target = Target::c, .opt = 0}, {.target = Target::c, .opt = 3},
                                    {.target = Target::cpp, .opt = 3}}) {
      const Numbers got = compile(f, o)(x);
      for (std::size_t i = 0; i < x.size(); ++i) CHECK(got[i] == Approx(expected[i]));
    }
  };
  same([](A x) {  // in the same iteration
    A t = x;
    FOR(0, x.size(), [&](I i) {
      t = t.set(i, sqrt(x[i]));
      IF(x[i] <= 0.0, [&] { t = t.set(i, D(0.1)); });
    });
    return sum(t * t);
  });
  same([](A x) {  // by a loop that follows
    A t = x;
    FOR(0, x.size(), [&](I i) { t = t.set(i, 1.0 / x[i]); });
    FOR(0, x.size(), [&](I i) { IF(x[i] == 0.0, [&] { t = t.set(i, D(0.0)); }); });
    return sum(t * t);
  });
  same([](A x) {  // by the same loop, when it runs again
    A t = x;
    FOR(0, 2, [&](I k) {
      FOR(0, x.size(), [&](I i) { t = t.set(i, IF(k == 0, [&] { return sqrt(x[i]); }, [&] { return 3.0 * x[i]; })); });
    });
    return sum(t * t);
  });
  same([](A x) {  // by the next iteration, a tie with an infinite slope
    A t = x;
    const I n = x.size();
    FOR(0, n, [&](I i) {
      t = t.set((i + n - 1) % n, D(0.9));
      t = t.set(i, sin(max(sqrt(x[i]), x[i])));
    });
    return sum(t * t);
  });
  same([](A x) {  // a later loop reads some of them
    A t = x;
    FOR(0, x.size(), [&](I i) { t = t.set(i, max(sqrt(x[i]), x[i]) / (1.0 + x[i])); });
    D s = 0.1;
    FOR(3, x.size(), [&](I i) { s = 0.5 * (s + t[i]); });
    return s * s;
  });
}

TEST_CASE("check_derivative tells of kinks") {
  std::vector<std::string> told;
  const DerivativeCheckOptions options{.kink = [&](const std::string& text) { told.push_back(text); }};
  const auto size = sig<double(double)>([](D x) { return abs(x); });
  CHECK_NOTHROW(check_derivative(size, options)(0.0));  // 0, as differences have it
  CHECK_NOTHROW(check_derivative(sig<double(double)>([](D x) { return relu(x); }), options)(0.0));
  REQUIRE(!told.empty());
  CHECK(told[0].find("has a kink here by argument 1") != std::string::npos);
  told.clear();
  // Halves are what differences have, too; the slope to one side is not.
  const auto tie = sig<double(double, double)>([](D x, D y) { return max(x, y) * min(x, 2.0 * y); });
  CHECK_NOTHROW(check_derivative(tie, options)(1.0, 1.0));
  CHECK(told.empty());
  const auto one_side = sig<double(double, double)>([](D x, D y) { return select(x > y, x, y); });
  CHECK_NOTHROW(check_derivative(one_side, options)(1.0, 1.0));
  CHECK(!told.empty());
  told.clear();
  CHECK_NOTHROW(check_derivative(size, options)(0.5));
  CHECK(told.empty());
  const auto wrong = custom_vjp(
      sig<double(double)>([](auto x) { return abs(x); }), [](D x) { return std::tuple(abs(x), x); },
      [](D, D g) { return 3.0 * g; });
  CHECK_THROWS(check_derivative(sig<double(double)>([wrong](D x) { return wrong(x); }), options)(0.0));
}
