// Taped reverse mode (thesis, 4.4, listing 4.8): the backward pass, defunctionalised.
//
// A number is a value with the name of its derivative, or without one if it depends on no input: constants
// leave nothing on the tape. An entry of the tape says what the result of one operation passes on to its
// operands.
#include <deque>
#include <memory>

#include "lantern/compiler/ad/modes/eager_reverse.hpp"

namespace lantern::ad {

namespace {

class Taped : public EagerReverse {
 public:
  using EagerReverse::EagerReverse;
  const char* name() const override { return "taped reverse mode"; }

  Datum apply(const Operation& op, std::span<const Datum> operands) override {
    const Transient primals(operands, [this](const Datum& d) -> const Datum& { return primal(d); });
    const Datum y = perform(op, primals);
    if (!y.type().is_differentiable()) return y;
    const bool factors = ir::info(op.code).elementwise && y.type().is_scalar();
    const std::size_t first = pointers_.size(), n = operands.size();
    for (std::size_t i = 0; i < n; ++i) {
      const auto* x = variable_of<Variable>(operands[i]);
      if (!x || !carries_derivative(op, i, n)) continue;
      Datum factor;
      if (factors) factor = partial_derivative(*ir::derivative(op.code, i, n), {op, primals, y, y});
      pointers_.push_back({x->name, i, std::move(factor)});
    }
    const std::size_t count = pointers_.size() - first;
    if (count == 0) return y;
    tape_.push_back({fresh(), first, count,
                     factors ? nullptr : std::make_unique<Step>(step_of(op, operands, y)), nullptr});
    return make_variable<Variable>(y, tape_.back().result);
  }

  Datum input(const Datum& primal) override { return make_variable<Variable>(primal, fresh()); }
  void run(const std::function<void()>& program) override {
    program();
    for (; !tape_.empty(); tape_.pop_back()) {
      reverse(tape_.back());
      pointers_.resize(tape_.back().first);
    }
  }
  void seed(const Datum& result, const Datum& g, const Location& loc) override {
    if (const auto* z = variable_of<Variable>(result)) add(z->name, g, loc);
  }
  Datum adjoint(const Datum& input, const Location& loc) override {
    const auto* x = variable_of<Variable>(input);
    const Datum& d = adjoints_[x->name];
    return d.empty() ? zeros_like(x->primal, loc) : d;
  }

 private:
  using Name = std::size_t;
  struct Variable : TaggedBox {
    Variable(std::shared_ptr<Mode> m, Datum p, Name n) : TaggedBox(std::move(m), std::move(p)), name(n) {}
    Name name;
  };
  /// `name` receives the result's derivative times the factor; without a factor, as the rule of the operation
  /// says.
  struct Pointer {
    Name name;
    std::size_t operand;
    Datum factor;
  };
  /// What a function with a rule leaves: its pointers say where the shares that its rule gives go.
  struct Vertex {
    struct Result {
      Name name;
      Datum value;
    };
    std::vector<Result> results;
    Pullback pullback;
    Location loc;
  };
  struct Entry {
    Name result;
    std::size_t first, count;    // of its pointers
    std::unique_ptr<Step> rule;  // where a derivative is not a factor: tensors
    std::unique_ptr<Vertex> vertex;
  };

  Name fresh() {
    adjoints_.emplace_back();
    return adjoints_.size() - 1;
  }

  void add(Name x, const Datum& g, const Location& loc) {
    Datum& d = adjoints_[x];
    d = d.empty() ? g : perform({Opcode::add_, 0, loc}, {d, g});
  }

  Data vertex(const Data& operands, const Data& values, Pullback pullback, const Location& loc) override {
    Data out;
    auto names = std::make_unique<Vertex>(Vertex{{}, std::move(pullback), loc});
    for (const Datum& y : values) {
      const bool floating = y.type().is_differentiable();
      if (floating) names->results.push_back({fresh(), y});
      out.push_back(floating ? make_variable<Variable>(y, names->results.back().name) : y);
    }
    const std::size_t first = pointers_.size();
    for (std::size_t i = 0; i < operands.size(); ++i)
      if (const auto* x = variable_of<Variable>(operands[i])) pointers_.push_back({x->name, i, {}});
    tape_.push_back({0, first, pointers_.size() - first, nullptr, std::move(names)});
    return out;
  }

  void reverse_vertex(const Entry& e) {
    bool touched = false;
    Data cotangents;
    for (const auto& [name, like] : e.vertex->results) {
      const Datum g = std::exchange(adjoints_[name], {});
      touched |= !g.empty();
      cotangents.push_back(g.empty() ? zeros_like(like, e.vertex->loc) : g);
    }
    if (!touched) return;
    const Data shares = e.vertex->pullback(cotangents);
    for (std::size_t i = e.first; i < e.first + e.count; ++i)
      if (const Pointer& p = pointers_[i]; !shares[p.operand].empty())
        add(p.name, shares[p.operand], e.vertex->loc);
  }

  void reverse(const Entry& e) {
    if (e.vertex) return reverse_vertex(e);
    const Datum g = std::exchange(adjoints_[e.result], {});  // nobody asks for it again
    if (g.empty()) return;
    if (!e.rule) {
      for (std::size_t i = e.first; i < e.first + e.count; ++i)
        add(pointers_[i].name, perform({Opcode::mul_, 0, {}}, {pointers_[i].factor, g}), {});
      return;
    }
    const StepRule rule = e.rule->rule(g);
    for (std::size_t i = e.first + e.count; i-- > e.first;) {  // see Step::backward
      const Pointer& p = pointers_[i];
      const CellPtr x = eager_cell(rule.primals.data()[p.operand]);
      Datum& d = adjoints_[p.name];
      if (!d.empty()) x->add(std::exchange(d, {}), {});
      propagate(p.operand, rule, *x);
      d = x->get({});
    }
  }

  std::deque<Entry> tape_;
  std::deque<Pointer> pointers_;
  std::deque<Datum> adjoints_;  // by name; empty: zero
};

}  // namespace

std::shared_ptr<EagerReverse> make_taped(std::uint64_t tag) { return std::make_shared<Taped>(tag); }

}  // namespace lantern::ad
