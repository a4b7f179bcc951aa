// NAME_try: an entry of a stand-alone source, by a call that returns a status.
#include <algorithm>

#include "lantern/codegen/statement.hpp"
#include "lantern/codegen/status_names.hpp"
#include "lantern/codegen/unit.hpp"

namespace lantern::codegen {

StatusNames status_names(const ir::Function& f, const NameScope& outer) {
  NameScope scope(&outer);
  StatusNames names;
  scope.reserve("message");
  scope.reserve("stream");
  for (const ir::Value* p : f.body->params)
    names.arguments.push_back(p->name ? scope.unique(p->name) : scope.numbered("x"));
  const bool one = f.result_types.size() == 1;
  for (std::size_t i = 0; i < f.result_types.size(); ++i)
    names.results.push_back(scope.unique("result" + (one ? "" : std::to_string(i))));
  return names;
}

std::string Unit::call_signature(const std::string& name, bool strided) {
  const ir::Function& f = *module_.entry;
  const StatusNames names = status_names(f, names_);
  // The entry may have an inner name; what others pass has the public types all the same.
  const auto given = [&](const ir::Type& t) {
    return t.is_bool()                 ? target_.public_boolean()
           : strided && t.is_tensor() ? prelude_.strided_tensor(t.element(), t.rank())
                                       : type(t);
  };
  const auto read = [&](const ir::Type& t) {
    return !t.is_tensor() ? given(t)
           : strided      ? prelude_.const_strided_tensor(t.element(), t.rank())
                          : prelude_.const_tensor(t.element(), t.rank());
  };
  std::string list;
  for (std::size_t i = 0; i < names.arguments.size(); ++i) list += read(f.body->params[i]->type) + " " + names.arguments[i] + ", ";
  for (std::size_t i = 0; i < names.results.size(); ++i) list += given(f.result_types[i]) + "* " + names.results[i] + ", ";
  if (!options_.stream.empty()) list += options_.stream + " stream, ";
  return "int " + name + "(" + list + "const char** message)";
}

std::string Unit::before_attempt() {
  std::string text = "  lt_workspace* ws = lt_own_workspace();\n";
  if (target_.has_kernels()) {  // where failures go is known to what fails
    prelude_.need("own_workspace");
    prelude_.need("gpu_attempt");
    return text;
  }
  prelude_.need("attempt");
  prelude_.need("own_workspace");
  if (makes_threads()) {
    prelude_.need("fork");
    text += "  ws->fork = lt_fork;\n";
  }
  if (options_.limited_stack && std::ranges::any_of(infos_, [](const auto& i) { return i.second.recursive; })) {
    prelude_.need("stack_end");
    text += "  ws->stack_end = lt_stack_end();\n";
  }
  return text;
}

std::string Unit::status_wrapper() {
  const ir::Function& f = *module_.entry;
  const FunctionInfo& info = infos_.at(&f);
  const StatusNames names = status_names(f, names_);
  std::string text = "\n" + wrapped(target_.exported() + status_signature() + " {") + "\n";
  const auto own_argument = [&](std::size_t i, const ir::Type& t) {
    const std::string own = "lt_argument" + std::to_string(i), &name = names.arguments[i];
    std::string sizes;
    for (int r = 0; r < t.rank(); ++r) sizes += (r ? ", " : "") + name + ".dim[" + std::to_string(r) + "]";
    text += wrapped("  " + type(t) + " " + own + " = {(" + target_.element(t.element()) + "*)" + name + ".data, {" +
                    (sizes.empty() ? "1" : sizes) + "}};") +
            "\n";
    return own;
  };
  const auto is_tensor = [](const ir::Type& t) { return t.is_tensor(); };
  const auto is_tree = [](const ir::Type& t) { return t.is_tree(); };
  if (!info.workspace && std::ranges::none_of(f.result_types, is_tensor) && std::ranges::none_of(f.parameter_types(), is_tree)) {
    // Nothing in it fails.
    std::string list;
    for (std::size_t i = 0; i < names.arguments.size(); ++i) {
      const ir::Type& t = f.body->params[i]->type;
      list += (list.empty() ? "" : ", ") + (t.is_tensor() ? own_argument(i, t) : names.arguments[i]);
    }
    if (names.results.size() == 1) {
      text += wrapped("  *" + names.results[0] + " = " + public_name_ + "(" + list + ");") + "\n";
    } else {
      for (const std::string& r : names.results) list += (list.empty() ? "" : ", ") + r;
      text += wrapped("  " + public_name_ + "(" + list + ");") + "\n";
    }
    return text + "  if (message) *message = 0;\n  return 0;\n}\n";
  }
  text += before_attempt();
  std::string in, out, operands, results, targets;
  std::size_t operand_count = 0, result_count = 0;
  const auto operand = [&](std::size_t number, const ir::Type& t, const std::string& tensor,
                           const std::string& place) {
    return "{" + std::to_string(number) + ", " + std::to_string(t.rank()) + ", (int64_t)sizeof(" +
           target_.element(t.element()) + "), " + tensor + ", " + place + "}";
  };
  for (std::size_t i = 0; i < names.arguments.size(); ++i) {
    const ir::Type& t = f.body->params[i]->type;
    std::string name = names.arguments[i];
    if (t.is_tensor()) {
      const std::string own = own_argument(i, t);
      operands += (operand_count++ ? ", " : "") + operand(i, t, "&" + own, "0, 0");
      name = own;
    }
    in += (in.empty() ? "&" : ", &") + name;
  }
  for (std::size_t i = 0; i < names.results.size(); ++i) {
    const ir::Type& t = f.result_types[i];
    out += (out.empty() ? "" : ", ") + names.results[i];
    targets += std::string(i ? ", " : "") + "{0, -1}";
    if (!t.is_tensor()) continue;
    const std::string given = "lt_given" + std::to_string(i);
    text += "  const " + type(t) + " " + given + " = *" + names.results[i] + ";\n";
    results += (result_count++ ? ", " : "") + operand(i, t, names.results[i], given + ".data, " + given + ".dim");
  }
  const std::string in_name = local_array(text, "const void* const", "lt_in", in);
  const std::string out_name = local_array(text, "void* const", "lt_out", out);
  const std::string operand_name = local_array(text, "const lt_operand", "lt_tensors", operands);
  const std::string result_name = local_array(text, "const lt_operand", "lt_results", results);
  const std::string target_name = local_array(text, "lt_target", "lt_targets", targets);
  return text +
         wrapped("  lt_attempt lt_call = {" + entry_name_ + ", " + in_name + ", " + out_name + ", " + operand_name +
                 ", " + std::to_string(operand_count) + ", " + result_name + ", " + std::to_string(result_count) +
                 ", " + target_name + ", 0};") +
         "\n  return lt_try(ws, &lt_call, " + (options_.stream.empty() ? "" : "stream, ") + "message);\n}\n";
}

}  // namespace lantern::codegen
