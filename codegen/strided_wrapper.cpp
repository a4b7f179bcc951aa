// NAME_strided: NAME_try for tensors with strides. The call is that of NAME_try, through an entry that copies what is not
// packed before and after the function's own (the prelude's "strided").
#include <algorithm>

#include "lantern/codegen/statement.hpp"
#include "lantern/codegen/status_names.hpp"
#include "lantern/codegen/unit.hpp"

namespace lantern::codegen {

bool Unit::has_strided() const {
  const ir::Function& f = *module_.entry;
  const auto is_tensor = [](const ir::Type& t) { return t.is_tensor(); };
  return !strided_name_.empty() && options_.status_functions &&
         (std::ranges::any_of(f.parameter_types(), is_tensor) || std::ranges::any_of(f.result_types, is_tensor));
}

std::string Unit::strided_wrapper() {
  const ir::Function& f = *module_.entry;
  const StatusNames names = status_names(f, names_);
  prelude_.need("strided");
  std::string text = "\n" + wrapped(target_.exported() + strided_signature() + " {") + "\n" + before_attempt();
  std::string in = "&lt_strides", out, from, to, operands, results, targets;
  std::size_t operand_count = 0, result_count = 0;
  const auto size = [&](const ir::Type& t) { return "(int64_t)sizeof(" + target_.element(t.element()) + ")"; };
  const auto begin = [&](std::size_t number, const ir::Type& t) {
    return "{" + std::to_string(number) + ", " + std::to_string(t.rank()) + ", " + size(t) + ", ";
  };
  const auto own_tensor = [&](const std::string& own, const ir::Type& t, const std::string& data, const std::string& from_dim) {
    std::string sizes;
    for (int r = 0; r < t.rank(); ++r)
      sizes += std::string(r ? ", " : "") + (from_dim.empty() ? "0" : from_dim + "[" + std::to_string(r) + "]");
    text += wrapped("  " + type(t) + " " + own + " = {" + data + ", {" + (sizes.empty() ? "1" : sizes) + "}};") + "\n";
  };
  for (std::size_t i = 0; i < names.arguments.size(); ++i) {
    const ir::Type& t = f.body->params[i]->type;
    const std::string& name = names.arguments[i];
    const std::string own = "lt_argument" + std::to_string(i);
    in += ", &" + (t.is_tensor() ? own : name);
    if (!t.is_tensor()) continue;
    own_tensor(own, t, "(" + target_.element(t.element()) + "*)" + name + ".data", name + ".dim");
    from += (operand_count ? ", " : "") + begin(i, t) + "(char*)" + own + ".data, " + name + ".dim, " + name + ".stride, &" + own + ", 0}";
    operands += (operand_count++ ? ", " : "") + begin(i, t) + "&" + own + ", 0, 0}";
  }
  for (std::size_t i = 0; i < names.results.size(); ++i) {
    const ir::Type& t = f.result_types[i];
    const std::string &name = names.results[i], own = "lt_own" + std::to_string(i), given = "lt_given" + std::to_string(i);
    out += (out.empty() ? "" : ", ") + (t.is_tensor() ? "&" + own : name);
    targets += std::string(i ? ", " : "") + "{0, -1}";
    if (!t.is_tensor()) continue;
    text += "  const " + prelude_.strided_tensor(t.element(), t.rank()) + " " + given + " = *" + name + ";\n";
    own_tensor(own, t, "0", "");
    to += (result_count ? ", " : "") + begin(i, t) + "(char*)" + given + ".data, " + given + ".dim, " + given + ".stride, &" + own +
          ", " + name + "}";
    results += (result_count ? ", " : "") + begin(i, t) + "&" + own + ", lt_packed_place(&lt_to[" + std::to_string(result_count) +
               "]), " + given + ".dim}";
    ++result_count;
  }
  const std::string from_name = local_array(text, "const lt_strided", "lt_from", from);
  const std::string to_name = local_array(text, "const lt_strided", "lt_to", to);
  const std::string operand_name = local_array(text, "const lt_operand", "lt_tensors", operands);
  const std::string result_name = local_array(text, "const lt_operand", "lt_results", results);
  const std::string target_name = local_array(text, "lt_target", "lt_targets", targets);
  const std::string numbers = std::to_string(operand_count), result_numbers = std::to_string(result_count);
  text += wrapped("  lt_strided_call lt_strides = {" + entry_name_ + ", " + from_name + ", " + numbers + ", " + to_name + ", " +
                  result_numbers + ", 0};") +
          "\n";
  const std::string in_name = local_array(text, "const void* const", "lt_in", in);
  const std::string out_name = local_array(text, "void* const", "lt_out", out);
  return text +
         wrapped("  lt_attempt lt_call = {lt_enter_strided, " + in_name + ", " + out_name + ", " + operand_name + ", " + numbers +
                 ", " + result_name + ", " + result_numbers + ", " + target_name + ", 0};") +
         "\n  lt_strides.attempt = &lt_call;\n  return lt_try(ws, &lt_call, message);\n}\n";
}

}  // namespace lantern::codegen
