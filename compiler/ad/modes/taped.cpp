// Taped reverse mode (thesis, 4.4, listing 4.8): the backward pass, defunctionalised.
//
// A number is a value with the name of its derivative, or without one if it depends on no input: constants
// leave nothing on the tape. An entry of the tape says what the result of one operation passes on to its
// operands.
#include <algorithm>
#include <optional>
#include <vector>

#include "lantern/compiler/ad/modes/eager_reverse.hpp"

namespace lantern::ad {

namespace {

class Taped : public EagerReverse {
 public:
  using EagerReverse::EagerReverse;
  const char* name() const override { return "taped reverse mode"; }

  Datum apply(const Operation& op, std::span<const Datum> operands) override {
    const Step s = step(op, operands);
    if (!differentiable(s)) return s.y;
    Entry entry{fresh(s.y), {}, {}};
    for (std::size_t i = 0; i < operands.size(); ++i) {
      const auto* x = variable_of<Variable>(operands[i]);
      if (!x || !carries_derivative(op, i, operands.size())) continue;
      entry.pointers.push_back({x->name, i, partial(i, s)});
      if (entry.pointers.back().factor.empty() && !entry.rule) entry.rule = s;
    }
    if (entry.rule) entry.rule->operands.clear();  // names stand for them
    tape_.push_back(std::move(entry));
    return make_variable<Variable>(s.y, tape_.back().result);
  }

  Datum input(const Datum& primal) override { return make_variable<Variable>(primal, fresh(primal)); }
  void run(const std::function<void()>& program) override {
    program();
    for (; !tape_.empty(); tape_.pop_back()) reverse(tape_.back());
  }
  void seed(const Datum& result, const Datum& g, const Location& loc) override {
    if (const auto* z = variable_of<Variable>(result)) adjoints_[z->name]->add(g, loc);
  }
  Datum adjoint(const Datum& input, const Location& loc) override {
    return adjoints_[variable_of<Variable>(input)->name]->get(loc);
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
  struct Entry {
    Name result;
    std::vector<Pointer> pointers;
    std::optional<Step> rule;  // where a derivative is not a factor: tensors
  };

  Name fresh(const Datum& primal) {
    adjoints_.push_back(eager_cell(primal));
    return adjoints_.size() - 1;
  }

  /// The partial derivative of an operation on scalars.
  static Datum partial(std::size_t i, const Step& s) {
    if (!ir::info(s.op.code).elementwise || !s.y.type().is_scalar()) return {};
    const CellPtr alone = eager_cell(s.primals[i]);
    propagate(i, s.rule(Datum::number(1.0, s.y.type())), *alone);
    return alone->get(s.op.loc);
  }

  void reverse(const Entry& e) {
    const CellPtr d = std::move(adjoints_[e.result]);  // nobody asks for it again
    if (!d->touched()) return;
    const Datum g = d->get({});
    const auto pass_on = [&](const Pointer& p) {
      Cell& x = *adjoints_[p.name];
      if (p.factor.empty())
        propagate(p.operand, e.rule->rule(g), x);
      else
        x.add(perform({Opcode::mul_, 0, {}}, {p.factor, g}), {});
    };
    if (e.rule)
      std::for_each(e.pointers.rbegin(), e.pointers.rend(), pass_on);  // see Step::backward
    else
      std::for_each(e.pointers.begin(), e.pointers.end(), pass_on);
  }

  std::vector<Entry> tape_;
  std::vector<CellPtr> adjoints_;  // by name
};

}  // namespace

std::shared_ptr<EagerReverse> make_taped(std::uint64_t tag) { return std::make_shared<Taped>(tag); }

}  // namespace lantern::ad
