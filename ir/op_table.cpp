// The rows of ops.inc as data.
#include <unordered_map>

#include "lantern/ir/op.hpp"

namespace lantern::ir {

namespace {

std::vector<OpInfo> make_table() {
  std::vector<OpInfo> table;
#define SCALAR_OP(name, arity, rule, expression, ...) \
  table.push_back({#name, arity, Rule::rule, Effect::none, #expression, {__VA_ARGS__}, true});
#define COMPOSED_OP(name, arity, value, ...)                                                  \
  table.push_back({#name, arity, Rule::real, Effect::none, value, {__VA_ARGS__}, true}); \
  table.back().composed = true;
#define TENSOR_OP(name, arity, linearity, attribute_, ...)                                          \
  table.push_back(                                                                                  \
      {#name, arity, Rule::special, Effect::none, "", {__VA_ARGS__}, false, Linearity::linearity}); \
  table.back().attribute = Attribute::attribute_;
#define INDEX_OP(name, arity, notation, ...)                                                              \
  table.push_back({#name, arity, Rule::special, Effect::none, "", {}, false, Linearity::each, notation}); \
  __VA_OPT__(table.back().attribute = Attribute::__VA_ARGS__;)
#define CORE_OP(name, effect, ...)                                            \
  table.push_back({#name, -1, Rule::special, Effect::effect, "", {}, false}); \
  __VA_OPT__(table.back().attribute = Attribute::__VA_ARGS__;)
#include "lantern/ir/ops.inc"
  return table;
}

const std::vector<OpInfo>& table() {
  static const std::vector<OpInfo> rows = make_table();
  return rows;
}

}  // namespace

const OpInfo& info(Opcode op) { return table()[static_cast<std::size_t>(op)]; }

Opcode opcode_named(std::string_view name) {
  static const auto index = [] {
    std::unordered_map<std::string_view, Opcode> map;
    for (std::size_t i = 0; i < table().size(); ++i) map.emplace(table()[i].name, static_cast<Opcode>(i));
    return map;
  }();
  const auto it = index.find(name);
  return it == index.end() ? Opcode::count_ : it->second;
}

std::string_view derivative_formula(Opcode op, std::size_t i, std::size_t n) {
  const OpInfo& row = info(op);
  if (row.arity >= 0) return i < row.formulas.size() ? row.formulas[i] : "-";
  if (row.formulas.empty()) return "-";
  if (i == 0) return row.formulas[0];
  return row.formulas.size() > 1 && i + 1 == n ? row.formulas[1] : "-";
}

}  // namespace lantern::ir
