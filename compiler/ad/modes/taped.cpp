// Taped reverse mode (thesis, 4.4, listing 4.8): the backward pass, defunctionalised.
//
// A number is a value with the name of its derivative, or without one if it depends on no input: constants
// leave nothing on the tape. An entry of the tape says what the result of one operation passes on to its
// operands.
#include <algorithm>
#include <memory>
#include <optional>

#include "lantern/compiler/ad/modes/eager_reverse.hpp"
#include "lantern/compiler/staging/byte_stack.hpp"

namespace lantern::core::ad {

namespace {

class Taped : public EagerReverse {
 public:
  using EagerReverse::EagerReverse;
  ~Taped() override {
    while (last_) pop();
  }
  const char* name() const override { return "taped reverse mode"; }

  Datum apply(const Operation& op, std::span<const Datum> operands) override {
    const auto primal_of = [this](const Datum& d) -> const Datum& { return primal(d); };
    NumberStep step;
    if (step.perform(op, operands, primal_of)) return apply(operands, step);
    const Transient primals(operands, primal_of);
    const Datum y = perform(op, primals);
    const std::size_t n = operands.size();
    const auto depends = [&](std::size_t i) { return box_of(operands[i]) && carries_derivative(op, i, n); };
    std::uint32_t count = 0;
    if (y.type().is_differentiable())
      for (std::size_t i = 0; i < n; ++i) count += depends(i);
    if (count == 0) return y;
    const bool factors = ir::info(op.code).elementwise && y.type().is_scalar();
    std::vector<Pointer> pointers;
    for (std::size_t i = 0; i < n; ++i) {
      if (!depends(i)) continue;
      pointers.push_back({name_of(operands[i]), i, {}});
      if (factors)
        pointers.back().factor = partial_derivative(*ir::derivative(op.code, i, n), {op, primals, y, y});
    }
    Entry& e = push(0, count);
    std::uninitialized_move(pointers.begin(), pointers.end(), e.pointers());
    if (!factors) e.rule = std::make_unique<EntryRule>(EntryRule{step_of(op, operands, y), {}});
    return make_variable<Variable>(y, &e);
  }

  Datum input(const Datum& primal) override { return make_variable<Variable>(primal, &push(0, 0)); }
  void run(const std::function<void()>& program) override {
    struct Clear {
      Taped& taped;
      Name inputs;
      ~Clear() {
        while (taped.last_ != inputs) taped.pop();  // what is on the tape refers to this handler
      }
    } clear{*this, last_};
    program();
    for (; last_ != clear.inputs; pop()) reverse(*last_);
  }
  void seed(const Datum& result, const Datum& g, const Location& loc) override {
    if (box_of(result)) add(*name_of(result), g, loc);
  }
  Datum adjoint(const Datum& input, const Location& loc) override {
    const Datum& d = name_of(input)->derivative;
    return d.empty() ? zeros_like(primal(input), loc) : d;
  }

 private:
  struct Entry;
  /// The name of a derivative is where it lies: on the tape, with what the operation passes on.
  using Name = Entry*;
  struct Variable : TaggedBox {
    Variable(Mode& m, Datum p, Name n) : TaggedBox(m, std::move(p)), name(n) {}
    Name name;
  };
  /// `name` receives the result's derivative times the factor.
  struct Weight {
    Name name;
    double factor;
  };
  /// The same where the factor is no number at hand; without a factor, as the rule of the operation says.
  struct Pointer {
    Name name;
    std::size_t operand;
    Datum factor;
  };
  /// What a function with a rule leaves: its results, and where the shares that the rule gives go.
  struct Vertex {
    struct Place {
      Name name;
      std::size_t at;
    };
    Datums values;  // the floating ones
    std::vector<Name> results;
    std::vector<Place> operands;
    Pullback pullback;
    Location loc;
  };
  /// One of the two.
  struct EntryRule {
    std::optional<Step> step;
    std::optional<Vertex> vertex;
  };
  struct Entry {
    Datum derivative;  // of the result; empty: zero
    Name below;
    std::unique_ptr<EntryRule> rule;  // where a derivative is not a factor: tensors, functions with a rule
    std::uint32_t weight_count, pointer_count;

    Weight* weights() { return reinterpret_cast<Weight*>(this + 1); }
    Pointer* pointers() { return reinterpret_cast<Pointer*>(this + 1); }
    std::size_t bytes() const {
      return sizeof(Entry) + weight_count * sizeof(Weight) + pointer_count * sizeof(Pointer);
    }
  };

  Name name_of(const Datum& d) const { return static_cast<Variable*>(d.box())->name; }

  Datum apply(std::span<const Datum> operands, const NumberStep& step) {
    const auto depends = [&](std::size_t i) { return box_of(operands[i]) && step.carries(i); };
    std::uint32_t count = 0;
    for (std::size_t i = 0; i < operands.size(); ++i) count += depends(i);
    if (count == 0) return step.value();
    Entry& e = push(count, 0);
    Weight* w = e.weights();
    for (std::size_t i = 0; i < operands.size(); ++i)
      if (depends(i)) ::new (static_cast<void*>(w++)) Weight{name_of(operands[i]), step.partial(i)};
    return make_variable<Variable>(step.value(), &e);
  }

  /// An entry with room for either.
  Entry& push(std::uint32_t weights, std::uint32_t pointers) {
    const std::size_t bytes = sizeof(Entry) + weights * sizeof(Weight) + pointers * sizeof(Pointer);
    return *(last_ = ::new (tape_.push(bytes)) Entry{{}, last_, nullptr, weights, pointers});
  }
  void pop() {
    Entry& e = *last_;
    last_ = e.below;
    const std::size_t bytes = e.bytes();
    std::destroy_n(e.pointers(), e.pointer_count);
    e.~Entry();
    tape_.pop(bytes);
  }

  static void add(Entry& x, const Datum& g, const Location& loc) {
    Datum& d = x.derivative;
    d = d.empty() ? g : plus(d, g, loc);
  }

  Datums vertex(const Datums& operands, const Datums& values, Pullback pullback, const Location& loc) override {
    Datums out;
    Vertex v{{}, {}, {}, std::move(pullback), loc};
    for (const Datum& y : values) {
      if (!y.type().is_differentiable()) {
        out.push_back(y);
        continue;
      }
      v.values.push_back(y);
      v.results.push_back(&push(0, 0));
      out.push_back(make_variable<Variable>(y, v.results.back()));
    }
    for (std::size_t i = 0; i < operands.size(); ++i)
      if (box_of(operands[i])) v.operands.push_back({name_of(operands[i]), i});
    // Above the results: what is passed on to them is complete when its turn comes.
    push(0, 0).rule = std::make_unique<EntryRule>(EntryRule{{}, std::move(v)});
    return out;
  }

  static void reverse_vertex(const Vertex& v) {
    if (std::ranges::all_of(v.results, [](Name y) { return y->derivative.empty(); })) return;
    Datums cotangents;
    for (std::size_t i = 0; i < v.results.size(); ++i) {
      Datum g = std::exchange(v.results[i]->derivative, {});
      cotangents.push_back(g.empty() ? zeros_like(v.values[i], v.loc) : std::move(g));
    }
    const Datums shares = v.pullback(cotangents);
    for (const auto& [name, at] : v.operands)
      if (!shares[at].empty()) add(*name, shares[at], v.loc);
  }

  static void reverse(Entry& e) {
    if (e.rule && e.rule->vertex) return reverse_vertex(*e.rule->vertex);
    const Datum g = std::move(e.derivative);
    if (g.empty()) return;
    for (const Weight& w : std::span(e.weights(), e.weight_count)) add(*w.name, times(w.factor, g, {}), {});
    const std::span pointers(e.pointers(), e.pointer_count);
    if (!e.rule) {
      for (const Pointer& p : pointers) add(*p.name, perform({Opcode::mul_, 0, {}}, {p.factor, g}), {});
      return;
    }
    const StepRule rule = e.rule->step->rule(g);
    for (std::size_t i = pointers.size(); i-- > 0;) {  // see Step::backward
      const Pointer& p = pointers[i];
      const CellPtr x = eager_cell(rule.primals.data()[p.operand]);
      Datum& d = p.name->derivative;
      if (!d.empty()) x->add(std::exchange(d, {}), {});
      propagate(p.operand, rule, *x);
      d = x->get({});
    }
  }

  ByteStack tape_;
  Name last_ = nullptr;
};

}  // namespace

std::shared_ptr<EagerReverse> make_taped(std::uint64_t tag) { return std::make_shared<Taped>(tag); }

}  // namespace lantern::core::ad
