// The table of operators, and looking into it.
#include <algorithm>
#include <array>
#include <map>
#include <string_view>

#include "lantern/compiler/onnx/rules.hpp"

namespace lantern::onnx {

std::span<const Operator> operators() {
  static constexpr Operator all[] = {
#define LANTERN_ONNX_OPERATOR(domain, name, since, until, rule, on_elements, foldable, texts) \
  {domain, #name, since, until, rules::rule, on_elements, foldable, texts},
#include "lantern/compiler/onnx/operators.inc"
#undef LANTERN_ONNX_OPERATOR
  };
  return all;
}

const Operator* find_operator(const std::string& domain, const std::string& name, std::int64_t version,
                              std::string& why) {
  static const auto by_name = [] {
    std::multimap<std::string_view, const Operator*> map;
    for (const Operator& o : operators()) map.emplace(o.name, &o);
    return map;
  }();
  std::int64_t oldest = 0, latest = 0;
  const auto [first, last] = by_name.equal_range(name);
  for (auto at = first; at != last; ++at) {
    const Operator& o = *at->second;
    if (domain != o.domain) continue;
    if (o.since <= version && version <= o.until) return &o;
    oldest = oldest == 0 ? o.since : std::min<std::int64_t>(oldest, o.since);
    latest = std::max<std::int64_t>(latest, o.until);
  }
  const std::string of = domain.empty() ? "ai.onnx" : domain;
  why = latest == 0 ? "expected an operator that is supported, got '" + name + "' of " + of
                    : "expected '" + name + "' of version " + std::to_string(oldest) + " to " +
                          std::to_string(latest) + " of " + of + ", got version " + std::to_string(version);
  return nullptr;
}

}  // namespace lantern::onnx
