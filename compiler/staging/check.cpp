// The check of eager evaluation.
#include "lantern/compiler/staging/check.hpp"

#include <atomic>
#include <cmath>
#include <cstdlib>

#include "lantern/compiler/staging/staging.hpp"
#include "lantern/ir/error.hpp"
#include "lantern/ir/not_finite.hpp"

namespace lantern::core {

Check check_named(const std::string& text, const std::string& option) {
  if (text == "nan") return Check::nan;
  if (text == "none") return Check::none;
  throw Error(option + ": expected nan or none, got '" + text + "'");
}

Check check_from_environment() {
  const char* const text = std::getenv("LANTERN_CHECK");
  return text == nullptr || *text == '\0' ? Check::none : check_named(text, "LANTERN_CHECK");
}

namespace detail {

namespace {

/// How many threads are checking.
std::atomic<int> scopes{0};

std::string text_of(double v) { return std::isnan(v) ? "nan" : v > 0 ? "inf" : "-inf"; }

/// Calls f(v, index) for the numbers of a floating scalar or tensor until it says false.
template <class F>
void for_each_number(const Datum& d, const F& f) {
  if (!d.type().is_differentiable() || d.empty()) return;
  if (d.is_literal()) {
    static_cast<void>(f(d.f(), std::size_t{0}));
    return;
  }
  if (!d.is_boxed(Boxed::Kind::tensor)) return;
  const auto& t = *static_cast<const TensorBox*>(d.box());
  const bool narrow = d.type().element() == ir::Kind::f32;
  for (std::size_t i = 0, n = static_cast<std::size_t>(t.count()); i < n; ++i)
    if (!f(narrow ? static_cast<double>(t.as<float>()[i]) : t.as<double>()[i], i)) return;
}

}  // namespace

CheckScope::CheckScope(Check check) : saved_(context().check) {
  context().check = check == Check::nan;
  if (context().check) ++scopes;
}

CheckScope::~CheckScope() {
  if (context().check) --scopes;
  context().check = saved_;
}

bool checking() { return scopes.load(std::memory_order_relaxed) != 0 && context().check; }

bool all_finite(const Datum& d) {
  bool finite = true;
  for_each_number(d, [&](double v, std::size_t) { return finite = std::isfinite(v); });
  return finite;
}

void check_result(const Operation& op, const Datum& result, bool operands_finite) {
  for_each_number(result, [&](double v, std::size_t) {
    if (std::isfinite(v) || (!std::isnan(v) && !operands_finite)) return true;
    const ir::NotFinite message = ir::not_finite(op.loc, op.code);
    throw Error(message.before + text_of(v) + message.after);
  });
}

void check_argument(std::size_t i, const Datum& argument) {
  for_each_number(argument, [&](double v, std::size_t at) {
    if (std::isfinite(v)) return true;
    const std::string element = argument.type().is_tensor() ? "[" + std::to_string(at) + "]" : "";
    throw Error("argument " + std::to_string(i + 1) + element + ": expected finite values, got " +
                text_of(v));
  });
}

}  // namespace detail

}  // namespace lantern::core
