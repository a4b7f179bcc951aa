// What a program over a semiring may not do.
#include "lantern/compiler/ad/semiring/over.hpp"

#include <charconv>
#include <cmath>
#include <iterator>

#include "lantern/ir/op.hpp"

namespace lantern::core::semiring::detail {

std::vector<bool> binary(double n, const Location& loc) {
  constexpr double limit = 9007199254740992.0;  // 2^53: up to there a double is that natural number
  if (!(n >= 0 && n <= limit && n == std::floor(n))) {
    char text[32];
    const std::string number(text, std::to_chars(text, std::end(text), n).ptr);
    raise_at(loc, "over: expected a natural number up to 2^53, which in a semiring is a sum of ones, got " +
                      number + "; pass other constants as arguments");
  }
  std::vector<bool> digits;
  for (auto rest = static_cast<std::uint64_t>(n); rest > 0; rest /= 2) digits.push_back(rest % 2 == 1);
  return {digits.rbegin(), digits.rend()};
}

void refuse_operation(const Operation& op) {
  raise_at(op.loc, "over: expected + and *, which are all that a semiring has, got the operation " +
                       std::string(ir::info(op.code).name));
}

void refuse_operand(const Datum& d, const Location& loc) {
  raise_at(loc,
           "over: expected a number of the function's own, got " +
               (d.empty()       ? std::string("a Rep that was never given a value")
                : d.is_tagged() ? "one of a derivative or an evaluation around it; pass it as an argument"
                : d.is_node()
                    ? "one of a program that is being staged; pass what is known while staging as an argument"
                    : "a value of type " + d.type().str()));
}

}  // namespace lantern::core::semiring::detail
