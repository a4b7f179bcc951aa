// One unit for each module. The names of one are taken for the next.
#include "lantern/codegen/library.hpp"

#include <cctype>
#include <memory>
#include <unordered_set>
#include <vector>

#include "lantern/codegen/example_main.hpp"
#include "lantern/codegen/statement.hpp"
#include "lantern/codegen/unit.hpp"
#include "lantern/ir/escape.hpp"
#include "lantern/ir/prototype.hpp"
#include "lantern/ir/text.hpp"

namespace lantern::codegen {

namespace {

using Modules = std::span<const ir::Module* const>;

struct Library {
  std::vector<std::unique_ptr<Unit>> units;
  std::vector<Unit::Functions> parts;
};

Library complete(Modules modules, PrintOptions options, const Target& target, const std::string& suffix,
                 const std::vector<bool>& workspace) {
  Library library;
  NameScope scope;
  std::vector<std::string> publics, inner;  // names that all sources know, and that only those before use
  for (const ir::Module* m : modules) publics.push_back(scope.unique_function(options.prefix + m->entry->name + suffix));
  for (const ir::Module* m : modules)
    for (const ir::Prototype& p : ir::external_functions(*m)) inner.push_back(p.name);
  for (std::size_t i = 0; i < modules.size(); ++i) {
    std::vector<std::string> taken = inner;
    for (const std::string& name : publics)
      if (name != publics[i]) taken.push_back(name);
    options.name = publics[i];
    options.entry_workspace = i < workspace.size() && workspace[i];
    if (!suffix.empty()) options.entry = linked_entry(modules[i]->entry->name);
    library.units.push_back(std::make_unique<Unit>(*modules[i], options, target, taken));
    library.parts.push_back(library.units.back()->complete());
    for (std::string& name : library.units.back()->global_names()) inner.push_back(std::move(name));
  }
  return library;
}

std::string listed(const Library& library) {
  std::string names;
  for (std::size_t i = 0; i < library.units.size(); ++i)
    names += (i == 0 ? "" : i + 1 == library.units.size() ? " and " : ", ") + library.units[i]->public_name();
  return names;
}

/// "f64[3,?] x" for a parameter that has a name, the type alone otherwise.
std::string with_shape(const ir::Value* p) {
  return p->type.str() + (p->name ? " " + std::string(p->name) : "");
}

/// (f64 x, f64[?] y) -> f64
std::string typed(const ir::Function& f) {
  std::string text = "(";
  for (std::size_t i = 0; i < f.body->params.size(); ++i)
    text += (i ? ", " : "") + with_shape(f.body->params[i]);
  text += ") -> ";
  if (f.result_types.size() != 1) text += "(";
  for (std::size_t i = 0; i < f.result_types.size(); ++i) text += (i ? ", " : "") + f.result_types[i].str();
  return text + (f.result_types.size() != 1 ? ")" : "");
}

/// The structures that a header needs, each defined once however many headers are included.
class HeaderTypes {
 public:
  HeaderTypes(bool with_status, bool with_strides) : with_status_(with_status), with_strides_(with_strides) {}
  void add(const ir::Type& type) {
    const CTarget target;
    Prelude prelude(target);
    if (type.is_tensor()) {
      define(prelude.tensor(type.element(), type.rank()), prelude);
      if (with_status_) define(prelude.const_tensor(type.element(), type.rank()), prelude);
      if (with_strides_) {
        define(prelude.strided_tensor(type.element(), type.rank()), prelude);
        define(prelude.const_strided_tensor(type.element(), type.rank()), prelude);
      }
      return;
    }
    if (type.is_tree()) return define(prelude.tree(type), prelude);
  }
  const std::string& text() const { return text_; }

 private:
  void define(const std::string& name, const Prelude& prelude) {
    if (!seen_.insert(name).second) return;
    const std::string all = prelude.text();
    const std::size_t to = all.find("} " + name + ";"), from = all.rfind("typedef struct {", to);
    text_ += "#ifndef LANTERN_TYPE_" + name + "\n#define LANTERN_TYPE_" + name + "\n" +
             all.substr(from, to + name.size() + 4 - from) + "#endif\n";
  }
  bool with_status_;   ///< there are functions NAME_try, whose arguments are read only
  bool with_strides_;  ///< there are functions NAME_strided
  std::unordered_set<std::string> seen_;
  std::string text_;
};

}  // namespace

std::string offered(Unit& unit) {
  const ir::Function& f = *unit.module().entry;
  const std::string& name = unit.public_name();
  const bool workspace = unit.info(&f).workspace;
  std::string text = "/* " + name + ir::c_block_comment(typed(f));
  if (workspace && !unit.scalar_entry())
    text += "\n * ws: " + unit.workspace_name() + "(); results stay valid until it is asked for again.";
  text += (workspace && !unit.scalar_entry() ? "\n */\n" : " */\n") + wrapped(unit.public_signature() + ";") +
          "\n";
  if (workspace) {
    if (!unit.scalar_entry()) text += "struct lt_workspace* " + unit.workspace_name() + "(void);\n";
    text +=
        "/* Called with the message when something fails, instead of ending the program; must not return. "
        "*/\n";
    text += "void " + unit.failure_name() + "(void (*handler)(const char* message));\n";
  }
  text += "/* The same by pointers to the arguments and results; ws may be null where nothing above takes one. */\n";
  text += wrapped("void " + unit.entry_name() + "(lt_workspace* ws, const void* const* in, void* const* out);") + "\n";
  if (unit.options().status_functions) {
    const bool tensors = std::ranges::any_of(f.result_types, [](const ir::Type& t) { return t.is_tensor(); });
    text += unit.scalar_entry() && !workspace
                ? "/* The same; returns 0: nothing in it can fail. */\n"
                : "/* The same, without a workspace, for any thread. Returns 0, or 1 if something fails; then message says what,\n"
                  " * until this thread calls again. Nothing ends the program.";
    const bool on_gpu = !unit.options().stream.empty();
    if (on_gpu)
      text += "\n * Queues its work on the stream, and waits only for numbers that the host needs, and where a kernel may fail.";
    if (tensors)
      text += "\n * Set data and dim of a result to your memory" + std::string(on_gpu ? ", of the GPU or of the host," : "") +
              " and its shape, or data to null: the result then stays in the\n"
              " * library's memory until this thread calls again. Returns 2 if a result has another shape than your memory.";
    if (!text.ends_with("\n")) text += "\n */\n";
    text += wrapped(unit.status_signature() + ";") + "\n";
  }
  if (unit.has_strided())
    text += "/* The same for tensors whose elements lie with strides, counted in elements; they may be negative, of arguments\n"
            " * 0 too. What is not packed in row-major order is copied. A result without memory is packed. */\n" +
            wrapped(unit.strided_signature() + ";") + "\n";
  return text;
}

std::string offered_on_gpu(const Unit& unit, const std::string& stream) {
  const std::string& name = unit.public_name();
  std::string text;
  if (unit.scalar_entry())
    text += "/* Memory for a call of " + unit.entry_name() + ". */\nstruct lt_workspace* " + unit.workspace_name() + "(void);\n";
  return text +
         "/* All later calls of this thread queue their work on the stream, a cudaStream_t; null, as at first, is CUDA's own\n"
         " * default stream. Another stream than before waits for the GPU: calls use the same memory one after the other. */\n"
         "void " + name + "_on_stream(lt_workspace* ws, " + stream + " stream);\n"
         "/* Waits until all work is done. What failed in a kernel fails here, where no number was asked for before. */\n"
         "void " + name + "_wait(lt_workspace* ws);\n"
         "/* Replaces the tensors among the results, by pointers as " + unit.entry_name() +
         " has them, by copies in the host's\n * memory; waits for the GPU. */\nvoid " + name +
         "_to_host(lt_workspace* ws, void* const* out);\n";
}

namespace {

/// In a header the workspace is an incomplete structure, which C wants to be called one.
std::string with_struct_tag(std::string text) {
  const std::string plain = "lt_workspace* ws";
  for (std::size_t at = 0; (at = text.find("(" + plain, at)) != std::string::npos; at += plain.size())
    text.insert(at + 1, "struct ");
  return text;
}

/// C as a header may hold it that C++ reads too.
class HeaderTarget : public CTarget {
 public:
  std::string public_boolean() const override { return "bool"; }
};

}  // namespace

std::string linked_entry(const std::string& function) { return "lantern_entry_" + function; }

std::string print_library(Modules modules, const PrintOptions& options, const Target& target,
                          const std::string& suffix, const std::vector<bool>& workspace) {
  const Library library = complete(modules, options, target, suffix, workspace);
  Prelude prelude(target);
  std::string declared, forward, text;
  for (std::size_t i = 0; i < library.units.size(); ++i) {
    if (options.standalone) declared += offered(*library.units[i]) + "\n";
    prelude.merge(library.units[i]->prelude());
    forward += library.parts[i].declarations;
    text += (text.empty() ? "" : "\n") + library.parts[i].definitions;
  }
  if (options.with_main) text += example_main(library.units, target);
  // What a header declares is declared here too: a compiler sees that it is what is defined.
  if (!declared.empty() && target.is_cpp()) declared = "extern \"C\" {\n\n" + declared + "}\n\n";
  return with_own_lines(title(listed(library), options, target, prelude.text()) + prelude.text() + declared +
                        contraction(options) + (forward.empty() ? "" : forward + "\n") + text);
}

std::vector<std::string> status_names(Modules modules, const PrintOptions& options, const Target& target,
                                      const std::vector<bool>& workspace) {
  std::vector<std::string> names;
  for (const auto& unit : complete(modules, options, target, {}, workspace).units) names.push_back(unit->status_name());
  return names;
}

bool asks_for_workspace(const ir::Module& module, PrintOptions options, const Target& target) {
  options.standalone = true;
  Unit unit(module, options, target);
  unit.discover();
  return unit.info(module.entry).workspace;
}

std::string print_header(Modules modules, PrintOptions options, const std::string& guard,
                         const std::vector<bool>& workspace, bool on_gpu) {
  const HeaderTarget target;
  options.standalone = true;
  if (on_gpu && options.status_functions) options.stream = "struct CUstream_st*";
  const Library library = complete(modules, options, target, {}, workspace);
  HeaderTypes types(options.status_functions, options.strided_functions);
  std::string text;
  for (const auto& unit : library.units) {
    const ir::Function& f = *unit->module().entry;
    for (const ir::Type& t : f.parameter_types()) types.add(t);
    for (const ir::Type& t : f.result_types) types.add(t);
    text += "\n" + with_struct_tag(offered(*unit) + (on_gpu ? offered_on_gpu(*unit, "struct CUstream_st*") : ""));
  }
  std::string macro;
  for (const char c : guard)
    macro += std::isalnum(static_cast<unsigned char>(c)) != 0
                 ? static_cast<char>(std::toupper(static_cast<unsigned char>(c)))
                 : '_';
  if (macro.empty() || ir::is_digit(macro.front())) macro = "LANTERN_" + macro;
  const bool incomplete = text.find("struct lt_workspace*") != std::string::npos;
  return "/* Declarations of " + listed(library) + ", generated by Lantern. */\n#ifndef " + macro +
         "\n#define " + macro +
         "\n\n#include <stdbool.h>\n#include <stdint.h>\n\n#ifdef __cplusplus\nextern \"C\" {\n#endif\n" +
         (incomplete ? "\nstruct lt_workspace;\n" : "") + (on_gpu ? "struct CUstream_st;\n" : "") + types.text() + text +
         "\n#ifdef __cplusplus\n}\n#endif\n\n#endif\n";
}

}  // namespace lantern::codegen
