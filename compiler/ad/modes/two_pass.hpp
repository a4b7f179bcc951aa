// What the staged modes without continuations have in common: a forward part, and its mirror image.
//
// Where nothing is captured, the code of a gradient is the program followed by its backward part, both in
// direct style. Every construct has a forward block and a mirrored backward block. What an operation does in
// the backward pass is a function of the host language, put on the tape of its block while the forward part
// is staged; playing the tape, last first, stages the backward block. So the tape of functions is gone from
// the code; what stays is what they refer to, their environment: values that the backward block needs are
// pushed at the end of the forward block and popped at the start of the backward block.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <unordered_map>

#include "lantern/compiler/ad/custom_rule.hpp"
#include "lantern/compiler/ad/op_derivative.hpp"
#include "lantern/compiler/ad/replay.hpp"
#include "lantern/compiler/ad/unit.hpp"
#include "lantern/ir/function_ref.hpp"
#include "lantern/ir/graph.hpp"

namespace lantern::core::ad {

class TwoPass : public Mode, public StagedMode {
 public:
  TwoPass(Staging& staging, std::uint64_t tag) : Mode(tag), StagedMode(*this, staging) {}

  /// Emits, at the end of the current function, a scalar program and its backward part: the program's value
  /// if `value`, then one adjoint per active argument.
  Datums gradient(const Unit& unit, bool value, const Location& loc);

  Datum apply(const Operation& op, std::span<const Datum> operands) override;
  Datums branch(const Datum& condition, const Thunk& then, const Thunk& otherwise,
              const std::vector<ir::Type>& results, const Location& loc) override;
  bool bounds_by_rule() const override { return true; }
  Datums loop(const Datums& initial, const std::vector<ir::Type>& state, const Condition& condition,
            const Body& body, std::int64_t attribute, const Location& loc) override;
  Datums call(ir::Function* callee, const Datums& arguments, std::int64_t attribute,
            const Location& loc) override;
  void push(std::int64_t tape, const Datum& value, const Location& loc) override;
  Datum pop(std::int64_t tape, const ir::Type& type, const Location& loc) override;
  /// The rule's forward part, and its backward part in the mirror image.
  Datums follow(const std::shared_ptr<const Rule>& rule, const Datums& arguments, const Location& loc) override;

 protected:
  using Names = std::vector<Name>;
  /// Adjoints by name, as known at a point of the backward part. Staging erases the map: what is in it are
  /// values.
  using Store = std::map<Name, Datum>;
  using Update = std::function<void()>;
  using Variable = Named;

  Variable* variable_of(const Datum& d) const { return number_of<Variable>(d); }
  Datum variable(const Datum& primal);
  static bool has(const Names& names, Name x);
  static void include(Names& names, Name x);

  // ---- an operation: forward

  /// An operation performed one level down. In the backward part: with what its rule looks at available.
  struct Step {
    Operation op;
    Datums operands;  ///< as they came
    Datums primals;   ///< one level down
    Datum y;          ///< the value
    FormulaContext rule(const Datum& g) const { return {op, primals, y, g}; }
  };

  /// What an operation that gave the variable r does in the backward pass; asked for where the program is.
  virtual Update update(Step s, Name r) = 0;
  /// Operand i, if it receives a derivative, or null.
  const Variable* receiver(const Step& s, std::size_t i) const;
  /// Values of which those that are floating, and active, become variables.
  Datums results_of(const Datums& values, const std::function<bool(std::size_t)>& active = {});
  /// Puts an update on the tape of the current block. `uses` are the operands it adds to.
  void record(std::span<const Datum> uses, Update update);

  // ---- an operation: backward

  /// A value of the forward part, where the backward part is being staged.
  Datum at(const Datum& forward);
  Datums at(const Datums& forward);
  /// The rule of operand i, ready for the backward part: what its formula looks at is available.
  Step rule_at(const Step& s, std::size_t i);
  /// An adjoint of operand i with what it receives from the result's cotangent g; `before` may be empty.
  Datum received(const Datum& before, const Step& s, std::size_t i, const Datum& g);
  /// x.d += dop/dx * g for every operand x that receives a derivative; for one.
  void propagate_all(const Step& s, const Datum& g);
  void propagate_to(const Step& s, std::size_t i, const Datum& g);
  void add(Name x, const Datum& g, const Location& loc);
  Datum adjoint_or_zero(Name x, const Location& loc);
  Datums adjoints(const Names& names, const Location& loc);
  /// The adjoint of a variable, which nothing uses again; empty where nothing was added.
  Datum take(Name x);
  Datums take(const Names& names, const Location& loc);
  /// The adjoints of `left` after `run`, which starts from those of `names` alone.
  Datums alone(const Names& names, std::span<const Datum> adjoints_in, const Names& left, const Location& loc,
               const std::function<void()>& run);

  // ---- what modes do differently with constructs

  /// The adjoints that enter the backward block of a construct with results `outs` which adds to those of
  /// `touched`.
  virtual Names passed(const Names& outs, const Names& touched);
  /// Whether one of those belongs to a result.
  virtual bool belongs(Name entry, Name out) const { return entry == out; }
  /// Whether anything was added to the adjoint of a variable.
  virtual bool wanted(Name x) const { return store_.contains(x); }
  /// What was added to `from` is added to `to`, if that is a variable.
  virtual void move(Name from, const Datum& to, const Location& loc);
  /// A zero in the backward part.
  virtual Datum zero_of(Name x, const Location& loc);
  /// Stages the backward block of one side, iteration or function: from the adjoints `in` to those it gives.
  virtual Datums linear(const Datums& in, const std::function<Datums(const Datums&)>& body, const Location& loc);
  /// A call of a function marked by checkpoint(f); others are differentiated like any call.
  virtual bool runs_again(std::int64_t /*attribute*/) const { return false; }

  Store store_;

 private:
  /// A block of the forward part and its mirror image.
  struct Region {
    Region* parent = nullptr;
    ir::Block* forward = nullptr;
    ir::Block* backward = nullptr;
    std::vector<Update> tape;
    bool on_tape = false;  ///< what is pushed and popped inside has an adjoint elsewhere
    Names touched;         ///< variables of enclosing regions that the backward block adds to
    std::unordered_map<const ir::Value*, std::int64_t> pushed;  ///< value -> tape
    std::unordered_map<const ir::Value*, Datum> popped;         ///< value -> the same in `backward`

    void play() const;
  };
  struct Known {
    Region* home;
    Datum primal;
  };

 protected:
  /// A name for something that is not a variable.
  Name fresh_name() {
    known_.push_back({});
    return known_.size() - 1;
  }
  /// Runs the program forward and backward: its value. `arguments` are tagged already.
  Datum both_parts(ir::Function& program, const Datums& arguments, const Location& loc);
  /// Opens the region of the current function; variables belong to it.
  void begin();

 private:
  /// A side of a branch, or the iterations of a loop: of the construct's results that are variables, `outs`, what the
  /// region gave for them, and, in a loop, what they are at the start of an iteration.
  struct Part {
    Region* region = nullptr;
    Datums outs, exits, entries;
  };
  struct Halves {
    ir::Function* forward = nullptr;
    ir::Function* backward = nullptr;
    bool on_tape = false;
  };

  Region* open(Region* parent);
  /// Runs `body`, forward, in a region of its own. Its results.
  Datums inside(Region*& region, ir::FunctionRef<Datums()> body);
  void touch(const Datum& d);
  void mark_tape();
  /// The backward block of a part, from the adjoints `in` of `names` to those of `left`.
  Datums mirrored(const Part& part, const Names& names, const Datums& in, const Names& left, const Location& loc);
  void reverse_branch(const Datum& condition, const Part& then, const Part& otherwise, const Location& loc);
  void reverse_loop(const Datum& iterations, const Part& iteration, const Datums& starts, const Location& loc);
  void reverse_call(const Halves& both, bool twice, const Datums& arguments, const Datums& outs, const Location& loc);

  Region* home_of(const ir::Value* v) const;
  Datum at(ir::Value* v);
  bool invariant(const ir::Value* v, const Region* home, int budget) const;
  Datum again(ir::Value* v, const Region* home);
  bool any_wanted(const Datums& results) const;
  /// The names of the variables among data, each once.
  Names names_of(const Datums& data) const;

  const Halves& halves(ir::Function* callee, const Active& active);
  void stage_halves(Halves& both, ir::Function& callee, const Active& active);

  std::deque<Region> regions_;
  std::unordered_map<const ir::Block*, Region*> homes_;
  std::vector<Known> known_;  // by name
  Region* region_ = nullptr;
  std::unordered_map<std::string, Halves> halves_;
};

// One file each; see `mode`.
std::shared_ptr<TwoPass> make_staged_global_tape(Staging& staging, std::uint64_t tag);
std::shared_ptr<TwoPass> make_staged_functional(Staging& staging, std::uint64_t tag);
std::shared_ptr<TwoPass> make_staged_continuation(Staging& staging, std::uint64_t tag);
std::shared_ptr<TwoPass> make_staged_taped(Staging& staging, std::uint64_t tag);
std::shared_ptr<TwoPass> make_staged_checkpointed(Staging& staging, std::uint64_t tag);

}  // namespace lantern::core::ad
