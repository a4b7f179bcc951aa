// Ordinary C++ with much control flow, macros and large libraries: none of it is staged.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <Eigen/Dense>
#include <algorithm>
#include <boost/algorithm/string.hpp>
#include <boost/multiprecision/cpp_int.hpp>
#include <cstdio>
#include <map>
#include <optional>
#include <regex>
#include <string>
#include <vector>

#define EACH(v, list) for (auto& v : list)
#define UNLESS(c) if (!(c))

namespace {

template <class T>
T collatz(T n) {
  T steps = 0;
  for (;;) {
    if (n == 1) break;
    n = n % 2 == 0 ? n / 2 : 3 * n + 1;
    if (++steps > 1000) goto too_long;
  }
  return steps;
too_long:
  return -1;
}

enum class Token { number, word, space, other };

Token kind(char c) {
  switch (c) {
    case '0' ... '9':
      return Token::number;
    case ' ':
    case '\t':
      return Token::space;
    default:
      if ((c >= 'a' && c <= 'z') || c == '_') return Token::word;
  }
  return Token::other;
}

std::optional<int> parse(const std::string& text) try {
  int value = 0;
  EACH(c, text) {
    UNLESS(kind(c) == Token::number) throw c;
    value = value * 10 + (c - '0');
  }
  return text.empty() ? std::nullopt : std::optional(value);
} catch (char) {
  return std::nullopt;
}

double iterate(const Eigen::MatrixXd& a) {
  Eigen::VectorXd v = Eigen::VectorXd::Ones(a.rows());
  double value = 0;
  do {
    const double before = value;
    v = (a * v).eval();
    value = v.norm();
    v /= value;
    if (std::abs(value - before) < 1e-12 || value > 1e6) return value;
  } while (true);
}

}  // namespace

int ordinary() {
  std::string out;
  for (int i = 1, j = 40; i < j; i += 3, --j) out += fmt::format("{}:{} ", i, collatz(i * j));
  std::map<Token, int> count;
  for (const char c : std::string("let x_1 = 42 + y;")) ++count[kind(c)];
  for (const auto& [token, n] : count) out += fmt::format("{}={} ", static_cast<int>(token), n);
  for (const char* text : {"12", "", "1x", "077"}) out += fmt::format("{} ", parse(text).value_or(-1));
  Eigen::MatrixXd a(3, 3);
  a << 2, 1, 0, 1, 3, 1, 0, 1, 4;
  out += fmt::format("{:.10f} {:.6f} ", iterate(a), a.fullPivLu().solve(Eigen::VectorXd::Ones(3)).sum());
  boost::multiprecision::cpp_int factorial = 1;
  for (int i = 2; i <= 30; ++i) factorial *= i;
  out += factorial.str() + " ";
  std::vector<std::string> words;
  boost::split(words, "a,b;c", boost::is_any_of(",;"));
  out += fmt::format("{} ", fmt::join(words, "|"));
  const std::regex number(R"((\d+)(\.\d+)?)");
  const std::string text = "1.5 and 22 or .3";
  for (std::sregex_iterator m(text.begin(), text.end(), number), end; m != end; ++m)
    out += m->str() + (m->position() > 3 && (*m)[2].matched ? "!" : "?") + " ";
  std::puts(out.c_str());
  return 0;
}
