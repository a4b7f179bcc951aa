// One generated source: what its functions share, and the order of its parts.
#pragma once

#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "lantern/codegen/analysis.hpp"
#include "lantern/codegen/c/prelude.hpp"
#include "lantern/codegen/kernel_texts.hpp"
#include "lantern/codegen/kernels.hpp"
#include "lantern/codegen/naming.hpp"
#include "lantern/codegen/narrow_tensors.hpp"
#include "lantern/codegen/print_options.hpp"
#include "lantern/codegen/source_part.hpp"
#include "lantern/codegen/target.hpp"
#include "lantern/ir/graph.hpp"

namespace lantern::codegen {

/// How a function of the module looks in the source.
struct FunctionInfo {
  std::string name;
  bool workspace = false;   ///< takes `lt_workspace* ws` first
  bool allocates = false;   ///< leaves tensors behind in the arena unless it goes back to a mark
  bool by_pointer = false;  ///< several results go out through pointers rather than in a structure
  bool in_frame =
      false;  ///< takes one pointer to a structure of its arguments and results: they are too many
  bool public_types = false;             ///< has the types of what is called from outside
  bool closure = false;                  ///< code of closures: takes a pointer to what was captured
  std::size_t captured = 0;              ///< how many of the first parameters that is
  std::optional<ir::Type> continuation;  ///< that the closure is
  bool exported = false;                 ///< seen from outside
  bool forked = false;                   ///< threads call it: `runner` is below it
  bool recursive = false;                ///< may call itself
  std::string runner;
  std::string results;  ///< the structure of several results, in C++
};

class Unit {
 public:
  /// `taken`: names that other units of the same source use.
  Unit(const ir::Module& module, const PrintOptions& options, const Target& target,
       const std::vector<std::string>& taken = {});

  /// The whole source.
  std::string print();

  /// The same as several sources of about so many bytes each, which are compiled separately and loaded together.
  /// The target says how functions are seen from other parts; see PartTarget. (parts.cpp)
  std::vector<SourcePart> parts(std::size_t bytes);

  /// The functions alone, and declarations of those used before they are defined: for a target whose source
  /// is assembled elsewhere. `discover` comes first.
  struct Functions {
    std::string declarations, definitions;
    std::string device, kernels;  ///< functions that kernels call, and the kernels, where the target has them
  };
  Functions functions();
  /// What calls need where a function is defined later, or in another part; how threads call it, too.
  std::string forward_declaration(const ir::Function& f);
  void discover();

  /// Everything but the prelude: functions, the entry, and what a stand-alone source offers besides.
  Functions complete();
  /// Names of functions and structures, known after `complete`.
  std::vector<std::string> global_names() const;
  /// The entry as it is called from outside: "double f(double x)". Known after `complete`.
  std::string public_signature();
  const std::string& public_name() const { return public_name_; }
  /// What is beside an entry that takes a workspace, in a stand-alone source: NAME_workspace, which
  /// gives one, and NAME_on_failure.
  const std::string& workspace_name() const { return workspace_name_; }
  const std::string& failure_name() const { return failure_name_; }
  const std::string& entry_name() const { return entry_name_; }
  const std::string& status_name() const { return status_name_; }
  /// NAME_try: "int f_try(double x, double* result, const char** message)". Known after `complete`.
  std::string status_signature() { return call_signature(status_name_, false); }
  /// NAME_strided, the same for tensors with strides, if there are tensors.
  bool has_strided() const;
  std::string strided_signature() { return call_signature(strided_name_, true); }
  bool scalar_entry() const;
  /// A statement asks for threads of itself, besides those that call functions.
  void note_fork() { forks_ = true; }

  const ir::Module& module() const { return module_; }
  const PrintOptions& options() const { return options_; }
  /// Sums, differences and products of integers may be written with operators: nothing is undefined where
  /// they wrap.
  bool integers_wrap() const { return target_.integers_wrap() && !options_.standalone; }
  const Target& target() const { return target_; }
  /// Of the side that is printed.
  Prelude& prelude() { return on_device_ ? device_prelude_ : prelude_; }
  Prelude::Sides prelude_sides() const { return prelude_.sides(device_prelude_); }
  /// The kernel that a loop becomes, or null.
  const Kernel* kernel(const ir::Op* loop) const { return kernels_ ? kernels_->of(loop) : nullptr; }
  bool on_device(const ir::Function* f) const { return kernels_ && kernels_->on_device(f); }
  /// A function, a loop or a call of the host's that works on tensors in the host's memory.
  bool host_function(const ir::Function* f) const { return kernels_ && kernels_->host_function(f); }
  bool runs_on_host(const ir::Op* op) const { return kernels_ && kernels_->on_host(op); }
  /// From here on what is printed runs on the device, or on the host.
  void print_for_device(bool device) { on_device_ = device; }
  const Escapes& escapes() const { return escapes_; }
  const NameScope& names() const { return names_; }
  const FunctionInfo& info(const ir::Function* f) const { return infos_.at(f); }

  /// The type of a variable or parameter; cells are pointers in C, references in C++.
  std::string type(const ir::Type& type);
  /// "double x", "double* d".
  std::string declaration(const ir::Type& type, const std::string& name);
  /// "f16" or "bf16" for a tensor whose elements are that in the GPU's memory; else nothing.
  std::string stored(const ir::Value* v) const { return narrow_ && narrow_->contains(v) ? options_.storage : ""; }
  /// The same for the value, and the type of a tensor's elements in memory.
  std::string type(const ir::Value* v);
  std::string declaration(const ir::Value* v, const std::string& name) { return type(v) + " " + name; }
  std::string element(const ir::Value* tensor) const;
  /// A name for the type that can be part of another name: f64, f64_2d, ref_f64.
  std::string type_name(const ir::Type& type);
  /// The structure that holds several results in C++: r0, r1, ... Its name.
  std::string results_type(const ir::Function* f);
  /// The type of a number that the function takes or gives: what is called from outside has bool in C too.
  std::string number_type(const ir::Function* f, const ir::Type& type);
  /// The structure of a call, a0, ... and r0, ..., where threads share out calls or there are too many
  /// arguments: its name.
  std::string share_type(const ir::Function* f);
  /// The same for the arguments of a continuation.
  std::string call_type(const ir::Type& continuation);
  /// Whether a continuation takes its arguments in such a structure.
  bool in_frame(const ir::Type& continuation) const {
    return continuation.parts().size() > target_.most_arguments();
  }
  /// The structure of so many values of a type, `of`: its name.
  std::string table_type(const std::string& type, std::size_t size);
  /// The structure of what a closure captures: its name.
  std::string captured_type(const ir::Function* f);

  /// The user's line, trimmed, as a comment may hold it; empty if it cannot be read.
  const std::string& source_line(const char* file, std::uint32_t line);

 private:
  /// A function as text, and the functions that the text speaks of.
  struct Printed {
    std::string definition;
    std::vector<KernelText> kernels;
    std::vector<const ir::Function*> callees;
  };
  Printed printed(const ir::Function* f);
  std::string entry_wrapper();
  std::string plain_wrapper();
  std::string status_wrapper();
  std::string strided_wrapper();
  /// What both do first: the thread's workspace `ws`, made ready.
  std::string call_signature(const std::string& name, bool strided);
  std::string before_attempt();
  /// The workspace of the thread that calls, in `ws`, ready for a call of the entry.
  std::string take_workspace();
  bool makes_threads() const;
  std::string plain_signature(std::vector<std::string>* arguments = nullptr);

  const ir::Module& module_;
  PrintOptions options_;
  const Target& target_;
  Prelude prelude_;
  NameScope names_;
  std::vector<const ir::Function*> functions_;
  Escapes escapes_;
  std::unordered_map<const ir::Function*, FunctionInfo> infos_;
  std::unordered_map<std::string, std::vector<std::string>> files_;
  std::unordered_map<const ir::Function*, Printed> printed_;  ///< by `discover`
  bool forks_ = false;
  std::optional<Kernels> kernels_;
  std::optional<NarrowTensors> narrow_;
  Prelude device_prelude_;
  bool on_device_ = false;
  std::string public_name_, entry_name_, workspace_name_, failure_name_, status_name_, strided_name_;
};

/// Gives the `#line` after each function, which says that what follows is generated text, its number.
std::string with_own_lines(const std::string& text);

/// The comment at the head of a source: what it is, and the command that compiles it well.
std::string title(const std::string& names, const PrintOptions& options, const Target& target,
                  std::string_view prelude);

/// What is between the prelude and the functions, for Clang: whether it contracts, and then whatever the
/// expressions it finds. g++ asks its command line.
std::string contraction(const PrintOptions& options);

}  // namespace lantern::codegen
