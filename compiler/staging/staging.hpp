// The staging bottom handler: a program run under it emits its own graph.
#pragma once

#include <functional>
#include <memory>
#include <unordered_map>
#include <vector>

#include "lantern/compiler/staging/operation.hpp"
#include "lantern/ir/function_ref.hpp"
#include "lantern/ir/graph.hpp"

namespace lantern::core {

class Staging;

namespace ad {
class StagedRule;
}

class Region;

namespace detail {

/// A run of a function's body. What a function captured was visible where it was defined: it lies in the run of
/// a body, in those in which that body's function was defined in turn, and outside of all bodies. Only code
/// there can change it: a body changes nothing outside of itself.
struct BodyRun {
  std::uint32_t graph = 0;
  std::shared_ptr<const BodyRun> home;  ///< in which the function was defined; null outside of all
  std::uint64_t last = 0;               ///< the call of a function that its own code made last
  bool ended = false;                   ///< what lay in it is gone
};

}  // namespace detail

/// The ambient state of a thread: which graph is being built, or which evaluation it is in the middle of.
struct Context {
  Staging* staging = nullptr;
  std::uint64_t evaluation = 0;
  int keeping = 0;             ///< copies of functions are made that outlive the region (StorageBase::Kept)
  bool check = false;          ///< eager evaluation raises where a value is not finite
  Location caller;             ///< of the function of the library that runs; see caller.hpp
};
Context& context();

/// A number that nothing else in the process has: later ones of a thread are larger. For modes,
/// definitions of functions, evaluations.
std::uint64_t fresh_number();

/// An evaluation at once, for its lifetime, unless the thread is in the middle of one. What it makes no other
/// thread can see before it has ended.
class Evaluation {
 public:
  Evaluation();
  ~Evaluation();
  Evaluation(const Evaluation&) = delete;
  Evaluation& operator=(const Evaluation&) = delete;

 private:
  std::uint64_t own_ = 0;
};

/// A staged function: being built, or finished. Values of enclosing functions become captured parameters.
struct StagedFunction {
  struct CallSite {
    ir::Op* op;
    StagedFunction* caller;
  };
  ir::Function* function = nullptr;
  StagedFunction* parent = nullptr;  ///< the function whose staging was in progress when this one began
  ir::Block* block = nullptr;        ///< where operations go while open
  bool open = true;
  bool results_known = false;        ///< the result types may be used by recursive calls
  std::vector<ir::Value*> captured;  ///< values of enclosing functions, in parameter order
  std::unordered_map<const ir::Value*, ir::Value*> captures;  ///< captured value -> parameter
  std::vector<CallSite> calls;
  std::size_t depth = 0;
  std::uint64_t checked = 0;  ///< of a body: the call (Staging::calls) for which it was found to mean this
};

/// What is done to an outermost loop as soon as it is staged; gives what represents its results.
using FinishLoop = std::function<std::vector<ir::Value*>(ir::Module&, ir::Op* loop)>;

/// Builds functions of one module. Made by compile(), lanternc and the tests; one per thread at a time.
class Staging {
 public:
  explicit Staging(ir::Module& module, FinishLoop canonicalise_before_ad = {});
  ~Staging();
  Staging(const Staging&) = delete;
  Staging& operator=(const Staging&) = delete;

  std::uint32_t id() const { return id_; }

  ir::Module& module() { return module_; }
  StagedFunction* current() { return current_; }
  /// Of what is being staged, outermost first.
  std::vector<Region*>& regions() { return regions_; }
  const std::vector<Region*>& regions() const { return regions_; }
  /// Where regions that have ended stood, by number: for messages.
  std::unordered_map<std::uint64_t, Location> ended_regions;
  /// The region that a region has become part of, by number (IterationRegion).
  std::unordered_map<std::uint64_t, std::uint64_t> joined_regions;
  ir::Block* block() { return current_->block; }
  void set_block(ir::Block* b) { current_->block = b; }

  /// Stages `body` as a function of the module. `results`, when given, are the types the body must produce
  /// (so that it may call itself). `early` is set before the body runs. An exception leaves no function
  /// behind. Errors: recursion while staging deeper than 256 functions; results that do not fit.
  StagedFunction& stage(const std::string& name, const std::vector<ir::Type>& params,
                        const std::vector<ir::Type>* results, ir::FunctionRef<Datums(Datums)> body,
                        const Location& loc, const std::function<void(StagedFunction*)>& begun = {});

  /// Emits a call, passing what the callee captured; a recursive call to an open function is completed later.
  Datums call(StagedFunction& callee, std::span<const Datum> arguments, const Location& loc);

  /// Emits a call of a function without captures.
  Datums call(ir::Function* callee, std::span<const Datum> arguments, const Location& loc);

  /// The graph value of a datum, visible here: literals become constants, values of enclosing functions are
  /// captured. Error when a value is used outside the block or function it belongs to.
  ir::Value* use(const Datum& d, const Location& loc);
  std::vector<ir::Value*> use(std::span<const Datum> data, const Location& loc);
  Datums nodes(std::span<const Datum> data, const Location& loc);

  /// Emits a pure operation.
  Datum emit(const Operation& op, std::span<const Datum> operands);

  ir::Builder builder(const Location& loc);

  /// Staged functions by definition and argument types: one for each meaning that the body had.
  std::unordered_map<std::string, std::vector<StagedFunction*>> instances;
  std::shared_ptr<detail::BodyRun> run;  ///< the innermost one; null outside of all bodies
  detail::BodyRun outside;
  std::uint64_t calls = 0;  ///< of functions so far: a clock
  /// Functions with a derivative of their own.
  std::unordered_map<const ir::Function*, std::shared_ptr<ad::StagedRule>> rules;
  const FinishLoop canonicalise_before_ad;  ///< staging knows no passes: whoever makes it says which ones loops get
  bool keeps_loops = false;      ///< while values inside of loops are noted that are asked for after the loops
  bool inside_rule = false;      ///< while a part of such a derivative is staged
  StagedFunction* find(const ir::Function* f) const;

  /// The parameter of a function through which every call passes a value of an enclosing one.
  ir::Value* capture(StagedFunction& function, ir::Value* outer);
  /// Replaces what functions captured, of those staged from number `first` on.
  void replace_captured(std::size_t first, const std::unordered_map<const ir::Value*, ir::Value*>& by);

  /// What is staged in its lifetime is taken back at its end, unless it is kept: operations at the insertion
  /// point, functions. (Variables are put back by their region.) So an exception leaves nothing half-made behind, wherever it
  /// is caught.
  class Attempt {
   public:
    explicit Attempt(Staging& s);
    ~Attempt();
    Attempt(const Attempt&) = delete;
    Attempt& operator=(const Attempt&) = delete;
    void keep() { kept_ = true; }

   private:
    Staging& staging_;
    ir::Block* block_;
    std::size_t ops_, staged_functions_;
    const ir::Function* last_;  ///< of the module's functions; null: it had none
    bool kept_ = false;
  };

  /// For building functions directly (replay): makes `f` current with its body as insertion point.
  class Scope {
   public:
    Scope(Staging& s, ir::Function* f);
    ~Scope();
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    Staging& staging_;
    StagedFunction* saved_;
    StagedFunction* own_;
    std::unique_ptr<Region> region_;
  };

 private:
  friend class LoopRegion;
  ir::Value* view(StagedFunction& function, ir::Value* outer, const Location& loc);
  void name_captures(const StagedFunction& outer);
  void pass_captures(StagedFunction& callee, const StagedFunction::CallSite& site, std::size_t from);
  void remove_functions_after(const ir::Function* last, std::size_t staged);

  ir::Module& module_;
  std::uint32_t id_;
  std::size_t operations_ = 0;  ///< made so far
  StagedFunction* current_ = nullptr;
  std::vector<Region*> regions_;
  std::vector<std::unique_ptr<StagedFunction>> functions_;
  std::unordered_map<const ir::Function*, StagedFunction*> by_function_;
};

/// Makes `staging` the graph under construction for its lifetime (null: eager).
class StagingScope {
 public:
  explicit StagingScope(Staging* staging) : saved_(context().staging) { context().staging = staging; }
  ~StagingScope() { context().staging = saved_; }
  StagingScope(const StagingScope&) = delete;
  StagingScope& operator=(const StagingScope&) = delete;

 private:
  Staging* saved_;
};

/// The type that both fit: equal up to dimensions, which become symbolic where they differ. Error otherwise.
ir::Type join_types(const ir::Type& a, const ir::Type& b, const std::string& what, const Location& loc);

}  // namespace lantern::core
