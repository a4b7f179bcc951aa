// Definitions of functions in terms of `_Custom` and `_differentiable`, which each framework has its own of.
#include "differentiable.hpp"

#include <filesystem>

#include "device_numbers.hpp"
#include "python_parts.hpp"
#include "python_text.hpp"
#include "report.hpp"

namespace lantern::tool {

namespace {

std::string array_type(const ir::Type& t) {
  std::string text = "_Array(\"" + number(kind_of(t)).numpy + "\"";
  if (t.is_tensor())
    for (const std::int64_t d : t.dims())
      text += ", " + (d == ir::dynamic ? std::string("None") : std::to_string(d));
  return text + ")";
}

std::string tuple_of(const std::vector<std::string>& items) {
  std::string text = "(";
  for (const std::string& i : items) text += i + ", ";
  return text + ")";
}

/// The function by itself: what it takes and gives, and of which arguments its results have the shapes.
std::string custom(const StagedFunction& function, const std::string& name, const std::string& symbol) {
  const ir::Function& f = *function.module->entry;
  std::vector<std::string> names, parameters, results, like;
  for (const std::string& n : parameter_names(f)) names.push_back("\"" + n + "\"");
  for (const ir::Type& t : caller_parameters(function)) parameters.push_back(array_type(t));
  for (const ir::Type& t : caller_results(function)) results.push_back(array_type(t));
  if (function.gives_values) like.push_back(std::to_string(f.body->params.size() - 1));  // as the cotangent
  for (std::size_t i = 0; i < f.body->params.size() && like.size() < results.size(); ++i)
    if (f.body->params[i]->type.is_differentiable()) like.push_back(std::to_string(i));
  return "_Custom(\"" + name + "\", \"" + symbol + "\", " + tuple_of(names) + ", " + tuple_of(parameters) +
         ", " + tuple_of(results) + ", " + (function.pullbacks > 0 ? tuple_of(like) : "None") + ")";
}

}  // namespace

void refuse_trees(const std::vector<StagedFunction>& functions, const std::string& option,
                  const std::string& framework) {
  for (const StagedFunction& f : functions)
    for (const ir::Type& t : f.module->entry->parameter_types())
      if (t.is_tree())
        throw PlacedError(f.loc.str() + ": error: --emit=" + option + ": " + f.name +
                          " takes a tree, which " + framework +
                          " has no type for; leave it out by --function=NAME");
}

std::string differentiable_module(const std::vector<StagedFunction>& functions,
                                  const std::vector<std::string>& symbols, const std::string& library,
                                  const Options& options, const std::string& title, const std::string& needs,
                                  const std::string& framework) {
  std::string text, names, listed;
  // Batches are called by the functions before them.
  const auto next = [&](std::size_t i) {
    do ++i;
    while (i < functions.size() && functions[i].batch);
    return i;
  };
  for (std::size_t i = 0; i < functions.size();) {
    const StagedFunction& function = functions[i];
    const ir::Function& f = *function.module->entry;
    const std::string name = python_name(function.name);
    std::vector<std::string> chain, forward, arguments, results;
    const std::vector<std::string> parameters = parameter_names(f);
    const std::vector<ir::Type> parameter_types = caller_parameters(function), result_types = caller_results(function);
    for (std::size_t k = 0; k == 0 || (i < functions.size() && functions[i].pullbacks > 0); ++k, i = next(i))
      chain.push_back(custom(functions[i], name, symbols[i]));
    for (; i < functions.size() && functions[i].pushforwards > 0; i = next(i))
      forward.push_back(custom(functions[i], name, symbols[i]));
    std::string list;
    for (std::size_t k = 0; k < parameters.size(); ++k) {
      list += (list.empty() ? "" : ", ") + parameters[k];
      arguments.push_back(parameters[k] + " : " + described(parameter_types[k]));
    }
    for (const ir::Type& t : result_types) results.push_back(described(t));
    const std::string more = chain.size() > 1 ? "Differentiable by reverse mode, " +
                                                    std::string(chain.size() > 2 ? "twice" : "once") + ".\n"
                                              : "Not differentiable.\n";
    text += "\n\n_c_" + name + " = _differentiable((\n";
    for (const std::string& c : chain) text += "    " + c + ",\n";
    text += "))\n\n\ndef " + name + "(" + list + "):\n" +
            docstring(function, name, arguments, results, more) + "    " +
            (result_types.size() == 1 ? "_r, = " : "return ") + "_c_" + name + "(" + list + ")\n" +
            (result_types.size() == 1 ? "    return _r\n" : "");
    if (!forward.empty()) {
      text += "\n\n" + name + ".forward = _by_forward_mode(_c_" + name + ", (\n";
      for (const std::string& c : forward) text += "    " + c + ",\n";
      text += "))\n";
    }
    names += "\"" + name + "\", ";
    listed += (listed.empty() ? "" : ", ") + name;
  }
  const std::string source = std::filesystem::path(options.sources.front()).filename().string();
  return "\"\"\"" + in_docstring(listed + " of " + source) + " for " + title +
         (options.cuda ? " on GPUs" : " on the CPU") + ", compiled by lanternc " LANTERNC_VERSION
         ".\n\nGenerated code: change the C++ source instead. Needs " +
         needs + ", nothing else.\n\"\"\"\n" + python_imports + "\n\n" + (options.cuda ? "" : required_features(options)) +
         "_library = _load(_base64.b64decode(\n    \"" + base64(library) + "\"\n))\n__all__ = [" + names +
         "\"Error\"]\n" + python_signatures + framework + text;
}

}  // namespace lantern::tool
