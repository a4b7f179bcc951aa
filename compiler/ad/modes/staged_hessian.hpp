// Hessian reverse mode, staged: hessian_reverse.cpp has the algorithm and its sources.
#pragma once

#include "lantern/compiler/ad/modes/second_partial.hpp"
#include "lantern/compiler/ad/modes/two_pass.hpp"
#include "lantern/ir/graph.hpp"

namespace lantern::core::ad {

/// The gradient a and the Hessian h of the result by the variables that are live, as the backward part goes
/// on, are entries of one store: an entry of h has a name of its own. They are numbers of the code, and
/// vectors where one variable is the argument x. Constructs pass those of their results, of what they use,
/// and of what either is coupled with. Functions that call themselves, loops with a bound on memory, and
/// functions with rules are operations, of scalars and of x. Error for other operations than on scalars and
/// elements of x, and for derivatives inside.
class StagedHessian : public TwoPass {
 public:
  using TwoPass::TwoPass;
  const char* name() const override { return "Hessian reverse mode"; }

  /// Emits the program and its backward part: its value, its gradient and its Hessian by its argument, a vector.
  Datums value_gradient_hessian(const Unit& unit, const Location& loc);

  Datums follow(const std::shared_ptr<const Rule>& rule, const Datums& arguments, const Location& loc) override;
  Datums call(ir::Function* callee, const Datums& arguments, std::int64_t attribute,
            const Location& loc) override;
  void push(std::int64_t tape, const Datum& value, const Location& loc) override;
  Datum pop(std::int64_t tape, const ir::Type& type, const Location& loc) override;

 private:
  using Pair = std::pair<Name, Name>;

  Update update(Step s, Name r) override;
  Names passed(const Names& outs, const Names& touched) override;
  bool belongs(Name entry, Name out) const override;
  bool wanted(Name x) const override;
  void move(Name from, const Datum& to, const Location& loc) override;
  Datum zero_of(Name entry, const Location& loc) override;

  template <class Live>
  friend void ad::substitute(Live&, const Partials&, Name);
  /// The same for r = x[i].
  void undo_get(const Datum& index, Name r, const Location& loc);
  HessianRow take_row(Name r);
  Datum here(const Datum& d) { return d.empty() ? d : at(d); }
  Datum product(Name x, Name y, const Datum& a, const Datum& b, const Location& loc) const;
  /// Of h[x, x] half is kept, where x is the vector: the other half is its transpose.
  bool is_halved(Name x, Name y) const { return x == vector_ && y == vector_; }
  Datum kept(Name x, Name y, const Datum& d, const Location& loc) const;
  /// The name of h[x, y], which is h[y, x].
  Name entry(Name x, Name y);
  void add_entry(Name x, Name y, const Datum& v, const Location& loc);

  Name vector_ = 0;
  Datum x_;
  std::map<Pair, Name> entries_;
  std::map<Name, Pair> pairs_;  ///< the reverse
};

}  // namespace lantern::core::ad
