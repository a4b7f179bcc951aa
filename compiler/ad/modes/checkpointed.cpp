// Checkpointed reverse mode (thesis, 5.2, listing 5.2).
//
// The handler of operations is that of Fig. 8. A checkpointed part is run twice: once for its value,
// remembering nothing, and once more in the backward pass, when everything after it has been forgotten:
//
//   reversec <checkpoint p -> k> =
//     let res = evaluatet p! in                 -- the value alone; checkpoints inside are just run
//     let r = prop res (new 0) in
//     reversec (k r);                           -- the rest of the program, and its backward pass
//     reversec ((deriv p!) := deriv r)          -- the part again, under the same handler: checkpoints inside
//     it count
#include "lantern/compiler/ad/checkpointing.hpp"
#include "lantern/compiler/ad/modes/eager_reverse.hpp"
#include "lantern/compiler/ad/modes/modes.hpp"
#include "lantern/compiler/control/control.hpp"

namespace lantern::core::ad {

namespace {

using Part = std::function<Datums(const Datums&)>;

class Checkpointed : public EagerReverse, public RunsFunctionsAgain {
 public:
  using EagerReverse::EagerReverse;
  const char* name() const override { return "checkpointed reverse mode"; }

  Datum apply(const Operation& op, std::span<const Datum> operands) override {
    Step s = step(op, operands);
    if (!differentiable(s)) return s.y;
    if (evaluating_) return make_variable<Variable>(s.y, nullptr);
    const CellPtr d = eager_cell(s.y);
    Datum y = make_variable<Variable>(s.y, d);
    defer(prompt_, [this, s = std::move(s), d] {
      if (!d->touched()) return;
      s.propagate_to(
          [this, &s](const Datum& x) {
            const auto* v = variable_of<Variable>(x);
            return v ? &cell(*v, s.op.loc) : nullptr;
          },
          d->get(s.op.loc));
    });
    return y;
  }

  /// `part` is kept until the backward pass.
  Datums checkpoint(const Part& part, const Datums& arguments, const Location& loc) override {
    if (evaluating_) return part(arguments);
    const Datums values = evaluate_only(part, arguments);
    return shift<Datums>(prompt_, [this, part, arguments, values, loc](auto k) {
      Datums results;
      std::vector<CellPtr> cells;
      for (const Datum& v : values) {
        const bool active = variable_of<Variable>(v) != nullptr;
        cells.push_back(active ? eager_cell(primal(v)) : nullptr);
        results.push_back(active ? make_variable<Variable>(primal(v), cells.back()) : v);
      }
      k(std::move(results));
      run([&] {
        const Datums again = part(arguments);
        for (std::size_t i = 0; i < again.size(); ++i)
          if (cells[i] && cells[i]->touched()) seed(again[i], cells[i]->get(loc), loc);
      });
    });
  }

  Datum input(const Datum& primal) override { return make_variable<Variable>(primal, eager_cell(primal)); }
  void run(const std::function<void()>& program) override {
    reset(prompt_, [&program] { program(); });
  }
  void seed(const Datum& result, const Datum& g, const Location& loc) override {
    if (auto* z = variable_of<Variable>(result)) cell(*z, loc).add(g, loc);
  }
  Datum adjoint(const Datum& input, const Location& loc) override {
    return variable_of<Variable>(input)->d->get(loc);
  }

 private:
  struct Variable : TaggedBox {
    Variable(Mode& m, Datum p, CellPtr cell) : TaggedBox(m, std::move(p)), d(std::move(cell)) {}
    CellPtr d;  // null where only the value is computed
  };

  Datums vertex(const Datums& operands, const Datums& values, Pullback pullback, const Location& loc) override {
    if (evaluating_) {
      Datums out;
      for (const Datum& y : values)
        out.push_back(y.type().is_differentiable() ? make_variable<Variable>(y, nullptr) : y);
      return out;
    }
    return shift<Datums>(prompt_, [this, operands, values, pullback = std::move(pullback), loc](auto k) {
      Datums made, cotangents;
      Datums results;
      for (const Datum& y : values) {
        const bool floating = y.type().is_differentiable();
        results.push_back(floating ? make_variable<Variable>(y, eager_cell(y)) : y);
        if (floating) made.push_back(results.back());
      }
      k(results);
      bool touched = false;
      for (const Datum& y : made) {
        const CellPtr& d = variable_of<Variable>(y)->d;
        touched |= d->touched();
        cotangents.push_back(d->get(loc));
      }
      if (!touched) return;
      const Datums shares = pullback(cotangents);
      for (std::size_t i = 0; i < operands.size(); ++i)
        if (auto* x = variable_of<Variable>(operands[i]); x && !shares[i].empty())
          cell(*x, loc).add(shares[i], loc);
    });
  }

  static Cell& cell(const Variable& x, const Location& loc) {
    if (!x.d)
      raise_at(loc,
               "a value computed in a checkpointed function is used outside it; return it from the function: "
               "what it "
               "assigns elsewhere belongs to its first run, which is not remembered");
    return *x.d;
  }

  Datums evaluate_only(const Part& part, const Datums& arguments) {
    struct Evaluating {
      bool& flag;
      explicit Evaluating(bool& f) : flag(f) { flag = true; }
      ~Evaluating() { flag = false; }
    } evaluating(evaluating_);
    return part(arguments);
  }

  Prompt<void> prompt_;
  bool evaluating_ = false;
};

}  // namespace

std::shared_ptr<EagerReverse> make_checkpointed(std::uint64_t tag) {
  return std::make_shared<Checkpointed>(tag);
}

}  // namespace lantern::core::ad
