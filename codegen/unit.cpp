// Assembly of a generated source: functions in order, their types, and the ways in from outside.
#include "lantern/codegen/unit.hpp"

#include <algorithm>
#include <fstream>
#include <utility>

#include "lantern/codegen/expression.hpp"
#include "lantern/codegen/statement_printer.hpp"
#include "lantern/ir/error.hpp"
#include "lantern/ir/escape.hpp"
#include "lantern/ir/prototype.hpp"
#include "lantern/ir/recursion.hpp"
#include "lantern/ir/team.hpp"

namespace lantern::codegen {

namespace {
/// Marks where the lines of the generated text itself begin to count again. No text of a user's holds it.
constexpr std::string_view own_lines = "\x01\n";

/// A place may be one in a model, whose bytes say nothing to a reader.
bool is_no_text(unsigned char c) { return c < ' ' && c != '\t' && c != '\r' && c != '\f' && c != '\v'; }
}  // namespace

std::string with_own_lines(const std::string& text) {
  std::string out;
  std::size_t line = 1, from = 0;
  for (std::size_t at; (at = text.find(own_lines, from)) != std::string::npos; from = at + own_lines.size()) {
    out.append(text, from, at - from);
    line += static_cast<std::size_t>(std::count(text.begin() + static_cast<std::ptrdiff_t>(from),
                                                text.begin() + static_cast<std::ptrdiff_t>(at), '\n'));
    out += "#line " + std::to_string(++line) + " \"generated.c\"\n";
  }
  return out.append(text, from);
}

Unit::Unit(const ir::Module& module, const PrintOptions& options, const Target& target,
           const std::vector<std::string>& taken)
    : module_(module),
      options_(options),
      target_(target),
      prelude_(target, options),
      functions_(reachable(module)),
      escapes_(functions_),
      device_prelude_(target, options) {
  if (target.has_kernels()) kernels_.emplace(module, options.mappings);
  if (kernels_ && options.storage != "f32") narrow_.emplace(functions_, *kernels_);
  for (const ir::Prototype& p : ir::external_functions(module)) names_.reserve(p.name);
  public_name_ = names_.unique_function(options.name.empty() ? module.entry->name : options.name);
  for (const std::string& name : taken) names_.reserve(name);
  entry_name_ = options.entry.empty() ? names_.unique_function(public_name_ + "_entry") : options.entry;
  workspace_name_ = names_.unique_function(public_name_ + "_workspace");
  failure_name_ = names_.unique_function(public_name_ + "_on_failure");
  status_name_ = names_.unique_function(public_name_ + "_try");
  if (options.strided_functions) strided_name_ = names_.unique_function(public_name_ + "_strided");
  for (const ir::Function* f : functions_) {
    infos_[f].exported = f == module.entry;
    ir::walk(f->body, [&](const Op* op) {
      if (ir::team_size(*op) > 0 && target.has_threads()) infos_[op->callee].forked = true;
      if (!op->is(Opcode::closure_)) return;
      FunctionInfo& info = infos_[op->callee];
      info.closure = true;
      info.captured = op->operands.size();
      info.continuation = op->result()->type;
    });
  }
  for (const ir::Function* f : functions_) {
    FunctionInfo& info = infos_.at(f);
    info.name = info.exported ? public_name_ : names_.unique_function(f->name);
    info.public_types = info.exported && options.standalone;
    const bool several = f->result_types.size() > 1;
    info.by_pointer = several && (!target.is_cpp() || info.exported);
    if (several && !info.by_pointer) info.results = names_.unique_function(info.name + "_results");
    if (info.forked) info.runner = names_.unique_function(info.name + "_run");
    info.in_frame = info.closure ? in_frame(*info.continuation)
                                 : !info.public_types && f->body->params.size() + f->result_types.size() >
                                                             target.most_arguments();
  }
  for (const ir::Function* f : ir::recursive_functions(module))
    if (const auto found = infos_.find(f); found != infos_.end()) found->second.recursive = true;
  infos_.at(module.entry).workspace = options.entry_workspace;
}

bool Unit::scalar_entry() const {
  const auto scalar = [](const ir::Type& t) { return t.is_scalar(); };
  const auto& results = module_.entry->result_types;
  const auto parameters = module_.entry->parameter_types();
  return std::all_of(results.begin(), results.end(), scalar) &&
         std::all_of(parameters.begin(), parameters.end(), scalar);
}

/// Prints everything to find out who needs a workspace: the printers alone know what their text uses. Callees
/// come before their callers, so that the text is final, but where functions call each other.
void Unit::discover() {
  std::unordered_map<const ir::Function*, std::vector<const ir::Function*>> callers;
  std::vector<const ir::Function*> work;
  std::unordered_set<const ir::Function*> called_early;
  printed_.clear();
  for (const ir::Function* f : functions_) {
    FunctionInfo& info = infos_.at(f);
    const Prelude before = prelude_;
    on_device_ = on_device(f);
    StatementPrinter printer(*this, *f);
    Printed text{printer.definition(), printer.kernels(), printer.callees()};
    for (const ir::Function* callee : text.callees) {
      callers[callee].push_back(f);
      if (callee != f && !printed_.contains(callee)) called_early.insert(callee);
    }
    if (printer.used_workspace() || (f == module_.entry && options_.entry_workspace)) work.push_back(f);
    const bool workspace = printer.used_workspace() || (f == module_.entry && options_.entry_workspace);
    if (info.workspace != workspace || info.allocates != printer.allocated()) {
      info.workspace = workspace;
      info.allocates = printer.allocated();
      prelude_ = before;
      StatementPrinter again(*this, *f);
      text.definition = again.definition();
      text.kernels = again.kernels();
    }
    printed_[f] = std::move(text);
  }
  on_device_ = false;
  while (!work.empty()) {
    const ir::Function* f = work.back();
    work.pop_back();
    for (const ir::Function* caller : callers[f]) {
      FunctionInfo& info = infos_.at(caller);
      if (std::exchange(info.workspace, true)) continue;
      work.push_back(caller);
    }
  }
  const bool outdated = std::any_of(called_early.begin(), called_early.end(),
                                    [&](const ir::Function* f) { return infos_.at(f).workspace; });
  if (!outdated) return;
  printed_.clear();
  prelude_ = Prelude(target_, options_);
}

Unit::Printed Unit::printed(const ir::Function* f) {
  if (const auto it = printed_.find(f); it != printed_.end()) return std::move(it->second);
  on_device_ = on_device(f);
  StatementPrinter printer(*this, *f);
  std::string definition = printer.definition();
  on_device_ = false;
  return {std::move(definition), printer.kernels(), printer.callees()};
}

std::string Unit::forward_declaration(const ir::Function& f) {
  StatementPrinter printer(*this, f);
  std::string text = wrapped(printer.signature() + ";") + "\n";
  if (infos_.at(&f).forked) text += wrapped(printer.team_runner_signature() + ";") + "\n";
  return text;
}

Unit::Functions Unit::functions() {
  std::string text, forward, device;
  EqualKernels kernels;
  std::unordered_set<const ir::Function*> defined, declared;
  for (const ir::Function* f : functions_) {
    auto [definition, own_kernels, callees] = printed(f);
    definition = kernels.add(own_kernels, std::move(definition));
    defined.insert(f);
    if (on_device(f)) {  // none calls itself: callees stand before
      device += definition + "\n";
      continue;
    }
    for (const ir::Function* callee : callees)
      if (!defined.contains(callee) && declared.insert(callee).second)
        forward += forward_declaration(*callee);
    if (options_.comments && !options_.standalone && f->loc.known())
      text += "// " + ir::c_line_comment(f->loc.str()) + "\n";
    text += definition + (options_.line_directives ? std::string(own_lines) : "");
    if (infos_.at(f).forked) text += StatementPrinter(*this, *f).team_runner();
    text += "\n";
  }
  return {forward, text, device, kernels.text()};
}

std::string title(const std::string& names, const PrintOptions& options, const Target& target,
                  std::string_view prelude) {
  if (!options.standalone) return "/* " + names + ", generated by Lantern. */\n";
  // Without these flags roots and functions are called lane by lane, for the sake of errno.
  const std::string processor = options.processor.empty() ? "native" : options.processor;
  const bool vector_functions = prelude.find("defined LT_LIBMVEC") != std::string_view::npos;
  const std::string command = std::string(target.is_cpp() ? "g++" : "gcc") + " -O3 -march=" + processor +
                              " -fno-math-errno -fno-ivopts" + (options.contraction ? "" : " -ffp-contract=off") +
                              (vector_functions ? " -DLT_LIBMVEC" : "");
  return "/* " + names + ", generated by Lantern; complete in itself.\n * As fast as it is meant to be with\n *   " +
         command + "\n" + (vector_functions ? " * or clang without -fno-ivopts; linked with -lmvec -lm.\n"
                                      : " * or clang without -fno-ivopts.\n") +
         (options.contraction ? "" : " * Each operation is rounded by itself.\n") +
         " */\n"
         "#ifdef __clang__\n"
         "#pragma clang diagnostic ignored \"-Wunused-function\" /* of helpers that come together */\n"
         "#endif\n\n";
}

std::string contraction(const PrintOptions& options) {
  const std::string pragma = options.contraction ? "clang fp contract(fast)" : "STDC FP_CONTRACT OFF";
  return "#ifdef __clang__\n#pragma " + pragma + "\n#endif\n\n";
}

Unit::Functions Unit::complete() {
  discover();
  FunctionInfo& entry = infos_.at(module_.entry);
  if (options_.standalone && entry.workspace && scalar_entry()) {
    entry.name = names_.unique_function(public_name_ + "_inner");
    entry.exported = false;
    printed_.clear();
    prelude_ = Prelude(target_, options_);
  }
  if (entry.closure) throw InternalError("the entry of a module is a continuation");
  Functions parts = functions();
  parts.definitions += entry_wrapper();
  if (options_.standalone && entry.workspace) parts.definitions += plain_wrapper();
  if (options_.standalone && options_.status_functions) parts.definitions += status_wrapper();
  if (options_.standalone && has_strided()) parts.definitions += strided_wrapper();
  return parts;
}

std::vector<std::string> Unit::global_names() const {
  std::vector<std::string> names{public_name_, entry_name_, workspace_name_, failure_name_, status_name_};
  if (!strided_name_.empty()) names.push_back(strided_name_);
  for (const auto& [f, info] : infos_)
    for (const std::string& name : {info.name, info.results, info.runner})
      if (!name.empty()) names.push_back(name);
  return names;
}

std::string Unit::print() {
  const auto [forward, text, device, kernels] = complete();
  return with_own_lines(title(public_name_, options_, target_, prelude_.text()) + prelude_.text() + contraction(options_) +
                        (forward.empty() ? "" : forward + "\n") + text);
}

/// The uniform way in: arguments and results by address.
std::string Unit::entry_wrapper() {
  const ir::Function& f = *module_.entry;
  const FunctionInfo& info = infos_.at(&f);
  prelude_.need("workspace_name");
  const std::string frame = "lt_call";
  std::string body, list = info.workspace ? "ws" : "";
  const auto add = [&](const std::string& s) { list += (list.empty() ? "" : ", ") + s; };
  const auto memory = [&](const ir::Type& t) { return t.is_scalar() ? target_.element(t.kind()) : type(t); };
  bool uses_ws = info.workspace;
  if (info.workspace && module_.tapes() > 0) {
    prelude_.need("require_tapes");
    body += "  lt_require_tapes(ws, " + std::to_string(module_.tapes()) + ");\n";
  }
  if (info.in_frame) body += "  " + share_type(&f) + " " + frame + ";\n";
  for (std::size_t i = 0; i < f.body->params.size(); ++i) {
    const ir::Value* p = f.body->params[i];
    const std::string number = std::to_string(i);
    if (p->type.is_ref() || p->type.is_cont())
      throw Error("the entry of a module takes a cell or a continuation");
    const std::string argument = "*(const " + memory(p->type) + "*)in[" + number + "]";
    if (info.in_frame)
      body += "  " + frame + ".a" + number + " = " + argument + ";\n";
    else
      add(argument);
    for (std::size_t d = 0; p->type.is_tensor() && d < p->type.dims().size(); ++d) {
      if (p->type.dims()[d] == ir::dynamic) continue;
      uses_ws = true;
      prelude_.need("fail_size");
      const std::string expected = std::to_string(p->type.dims()[d]), axis = std::to_string(d);
      const std::string got = "((const " + type(p->type) + "*)in[" + number + "])->dim[" + axis + "]";
      const std::string what =
          p->name ? std::string("argument ") + p->name : "argument " + std::to_string(i + 1);
      body += wrapped("  if (" + got + " != " + expected + ") lt_fail_size(ws, " + ir::c_string(what) + ", " +
                      axis + ", " + expected + ", " + got + ", \"\");") +
              "\n";
    }
  }
  if (info.in_frame) add("&" + frame);
  const auto out = [&](std::size_t i) {
    return "*(" + memory(f.result_types[i]) + "*)out[" + std::to_string(i) + "] = ";
  };
  const auto stored = [&](std::size_t i, const std::string& value) {
    const bool narrow = f.result_types[i].is_bool() && !target_.is_cpp();
    return "  " + out(i) + (narrow ? "(unsigned char)" : "") + value + ";\n";
  };
  if (f.result_types.empty()) {
    body += wrapped("  " + info.name + "(" + list + ");") + "\n";
  } else if (f.result_types.size() == 1) {
    body += wrapped(stored(0, info.name + "(" + list + ")"));
  } else {
    std::string after;
    for (std::size_t i = 0; i < f.result_types.size(); ++i) {
      const ir::Type& t = f.result_types[i];
      const std::string name = "lt_result" + std::to_string(i);
      if (info.in_frame) {
        after += stored(i, frame + ".r" + std::to_string(i));
      } else if (t.is_bool() && !target_.is_cpp()) {
        body += "  " + number_type(&f, t) + " " + name + ";\n";
        add("&" + name);
        after += stored(i, name);
      } else {
        add("(" + type(t) + "*)out[" + std::to_string(i) + "]");
      }
    }
    body += wrapped("  " + info.name + "(" + list + ");") + "\n" + after;
  }
  if (!uses_ws) body = "  (void)ws;\n" + body;
  if (f.body->params.empty()) body = "  (void)in;\n" + body;
  if (f.result_types.empty()) body = "  (void)out;\n" + body;
  return target_.exported() + "void " + entry_name_ +
         "(lt_workspace* ws, const void* const* in, void* const* out) {\n" + body + "}\n";
}

bool Unit::makes_threads() const {
  return forks_ || std::ranges::any_of(infos_, [](const auto& known) { return known.second.forked; });
}

std::string Unit::take_workspace() {
  prelude_.need("own_workspace");
  std::string text = "  lt_workspace* ws = lt_own_workspace();\n";
  if (makes_threads()) {
    prelude_.need("fork");
    text += "  ws->fork = lt_fork;\n";
  }
  if (module_.tapes() > 0) {
    prelude_.need("require_tapes");
    text += "  lt_require_tapes(ws, " + std::to_string(module_.tapes()) + ");\n";
  }
  return text;
}

/// What a stand-alone source offers besides: the function without its workspace, or a workspace for it.
std::string Unit::plain_wrapper() {
  const ir::Function& f = *module_.entry;
  const FunctionInfo& info = infos_.at(&f);
  const std::string take = take_workspace();
  const std::string exported = target_.exported();
  std::string text =
      "\n/* Says what to do instead of ending the program when something fails; must not return. */\n" +
      exported + "void " + failure_name_ + "(void (*handler)(const char* message)) {\n" +
      "  lt_handler = handler;\n}\n\n";
  if (!scalar_entry())
    return text + "/* Memory for one call at a time; results stay valid until it is asked for again. */\n" +
           exported + "lt_workspace* " + workspace_name_ +
           "(void) {\n" + take + "  return ws;\n}\n";
  std::vector<std::string> arguments;
  const std::string signature = plain_signature(&arguments);
  const bool returns = f.result_types.size() == 1;
  std::string list = "ws";
  for (const std::string& a : arguments) list += ", " + a;
  return text + wrapped(exported + signature + " {") + "\n" + take + wrapped("  " + std::string(returns ? "return " : "") + info.name + "(" + list + ");") +
         "\n}\n";
}

/// An entry of scalars without its workspace: what declares it, and the arguments it passes on.
std::string Unit::plain_signature(std::vector<std::string>* arguments) {
  const ir::Function& f = *module_.entry;
  std::string parameters;
  const auto add = [&](const std::string& type, const std::string& name) {
    parameters += (parameters.empty() ? "" : ", ") + type + " " + name;
    if (arguments) arguments->push_back(name);
  };
  NameScope scope(&names_);
  for (const ir::Value* p : f.body->params)
    add(number_type(&f, p->type), p->name ? scope.unique(p->name) : scope.numbered("x"));
  if (infos_.at(&f).by_pointer)
    for (std::size_t i = 0; i < f.result_types.size(); ++i)
      add(number_type(&f, f.result_types[i]) + "*", scope.unique("result" + std::to_string(i)));
  if (parameters.empty() && !target_.is_cpp()) parameters = "void";
  const std::string result = f.result_types.size() == 1 ? number_type(&f, f.result_types[0]) : "void";
  return result + " " + public_name_ + "(" + parameters + ")";
}

std::string Unit::public_signature() {
  const FunctionInfo& entry = infos_.at(module_.entry);
  if (!entry.exported) return plain_signature();
  const std::string text = StatementPrinter(*this, *module_.entry).signature();
  return text.substr(std::string(target_.exported()).size());
}

// ---- types

std::string Unit::type_name(const ir::Type& t) {
  switch (t.kind()) {
    case Kind::tensor:
      return prelude_.tensor(t.element(), t.rank()).substr(3);
    case Kind::tree:
      return prelude_.tree(t).substr(3);
    case Kind::ref:
      return "ref_" + type_name(t.content());
    case Kind::cont: {
      std::string s = "cont" + std::to_string(t.parts().size());
      for (const ir::Type& p : t.parts()) s += "_" + type_name(p);
      return s;
    }
    default:
      if (t.is_vector()) return prelude_.vector(t.kind(), t.lanes()).substr(3);
      return ir::kind_name(t.kind());
  }
}

std::string Unit::type(const ir::Type& t) {
  switch (t.kind()) {
    case Kind::tensor:
      return prelude_.tensor(t.element(), t.rank());
    case Kind::tree:
      return prelude_.tree(t);
    case Kind::ref:
      return type(t.content()) + (target_.is_cpp() ? "&" : "*");
    case Kind::cont: {
      std::string list;
      for (const ir::Type& p : t.parts()) list += ", " + type(p);
      if (in_frame(t)) list = ", void* call";
      if (target_.is_cpp()) {
        prelude_.need("cont");
        return "lt_cont<" + (list.empty() ? "" : list.substr(2)) + ">";
      }
      const std::string name = "lt_" + type_name(t);
      prelude_.add_type(name,
                        "/* A continuation: code, and what it captured in its creator's frame. */\n"
                        "typedef struct {\n  void (*code)(void* captured" +
                            list + ");\n  void* captured;\n} " + name + ";\n");
      return name;
    }
    default:
      if (t.is_vector()) return prelude_.vector(t.kind(), t.lanes());
      if (t.kind() == Kind::i32 || t.kind() == Kind::i64) prelude_.need("integers");
      return target_.scalar(t.kind());
  }
}

std::string Unit::number_type(const ir::Function* f, const ir::Type& t) {
  return t.is_bool() && infos_.at(f).public_types ? target_.public_boolean() : type(t);
}

std::string Unit::type(const ir::Value* v) {
  const std::string narrow = stored(v);
  return narrow.empty() ? type(v->type) : prelude_.tensor(v->type.element(), v->type.rank(), narrow);
}

std::string Unit::element(const ir::Value* tensor) const {
  const std::string narrow = stored(tensor);
  return narrow.empty() ? target_.element(tensor->type.element()) : "lt_" + narrow;
}

std::string Unit::declaration(const ir::Type& t, const std::string& name) { return type(t) + " " + name; }

std::string Unit::results_type(const ir::Function* f) {
  const std::string& name = infos_.at(f).results;
  std::string fields;
  for (std::size_t i = 0; i < f->result_types.size(); ++i)
    fields += "  " + declaration(f->result_types[i], "r" + std::to_string(i)) + ";\n";
  prelude_.add_type(name, "struct " + name + " {\n" + fields + "};\n");
  return name;
}

std::string Unit::share_type(const ir::Function* f) {
  std::string fields;
  const auto field = [&](const ir::Type& t, const char* stem, std::size_t i) {
    fields += "  " + declaration(t, stem + std::to_string(i)) + ";\n";
  };
  for (std::size_t i = 0; i < f->body->params.size(); ++i) field(f->body->params[i]->type, "a", i);
  for (std::size_t i = 0; i < f->result_types.size(); ++i) field(f->result_types[i], "r", i);
  const std::string name = "lt_share_" + infos_.at(f).name;
  prelude_.add_type(name, "/* A call: its arguments, then its results. */\ntypedef struct {\n" + fields +
                              "} " + name + ";\n");
  return name;
}

std::string Unit::call_type(const ir::Type& continuation) {
  std::string fields;
  for (std::size_t i = 0; i < continuation.parts().size(); ++i)
    fields += "  " + declaration(continuation.parts()[i], "a" + std::to_string(i)) + ";\n";
  const std::string name = "lt_call_" + type_name(continuation);
  prelude_.add_type(name, "typedef struct {\n" + fields + "} " + name + ";\n");
  return name;
}

std::string Unit::table_type(const std::string& type, std::size_t size) {
  const std::string name = (type.starts_with("lt_") ? "" : "lt_") + type + "_x" + std::to_string(size);
  prelude_.add_type(name, "typedef struct {\n  " + type + " of[" + std::to_string(size) + "];\n} " + name + ";\n");
  return name;
}

std::string Unit::captured_type(const ir::Function* f) {
  const FunctionInfo& info = infos_.at(f);
  std::string fields;
  if (info.workspace) {
    prelude_.need("workspace_name");
    fields += "  lt_workspace* ws;\n";
  }
  for (std::size_t i = 0; i < info.captured; ++i) {
    const ir::Type& t = f->body->params[i]->type;
    fields += "  " + (t.is_ref() ? type(t.content()) + "*" : type(t)) + " c" + std::to_string(i) + ";\n";
  }
  const std::string name = "lt_captured_" + info.name;
  prelude_.add_type(name, "typedef struct {\n" + fields + "} " + name + ";\n");
  return name;
}

// ---- the user's source

const std::string& Unit::source_line(const char* file, std::uint32_t line) {
  static const std::string none;
  auto [it, added] = files_.try_emplace(file);
  if (added) {
    std::ifstream stream(file);
    for (std::string s; it->second.size() < 100000 && std::getline(stream, s);) {
      if (std::ranges::any_of(s, is_no_text)) {
        it->second.clear();
        break;
      }
      const std::size_t first = s.find_first_not_of(" \t"), last = s.find_last_not_of(" \t\r");
      it->second.push_back(first == std::string::npos || last == std::string::npos || last < first
                               ? ""
                               : s.substr(first, std::min<std::size_t>(last - first + 1, 100)));
      it->second.back() = ir::c_line_comment(it->second.back());
    }
  }
  return line >= 1 && line <= it->second.size() ? it->second[line - 1] : none;
}

}  // namespace lantern::codegen
