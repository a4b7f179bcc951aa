// Hessian reverse mode: value, gradient and Hessian in one reverse pass (thesis, 5.1 and listing A.22; the
// algorithm of M. Wang, "High Order Reverse Mode of Automatic Differentiation", which is edge pushing
// restricted to live variables: Gower and Mello, "A New Framework for the Computation of Hessians", 2012;
// Wang, Gebremedhin and Pothen, "Capitalizing on Live Variables", 2016).
//
// In the backward pass the result is a function of the variables that are live: those made so far that later
// operations used. Kept are its gradient a and its Hessian h by these. An operation r = op(x, y, ...) is
// undone by substituting it: see `substitute`.
#include <map>
#include <optional>

#include "lantern/compiler/ad/modes/modes.hpp"
#include "lantern/compiler/ad/modes/second_partial.hpp"
#include "lantern/compiler/ad/modes/staged_hessian.hpp"
#include "lantern/compiler/ad/step.hpp"
#include "lantern/compiler/ad/unit.hpp"
#include "lantern/compiler/control/control.hpp"
#include "lantern/compiler/staging/staging.hpp"

namespace lantern::core::ad {

namespace {

/// A symmetric matrix of which only entries that are not known to be zero are kept.
class Symmetric {
 public:
  void add(Name a, Name b, const Datum& v, const Location& loc) {
    add_one(a, b, v, loc);
    if (a != b) add_one(b, a, v, loc);
  }
  /// Takes the row and column of a out. The row.
  HessianRow take(Name a) {
    HessianRow out;
    const auto row = rows_.extract(a);
    if (row.empty()) return out;
    for (const auto& [b, v] : row.mapped())
      if (b == a) {
        out.diagonal = v;
      } else {
        rows_[b].erase(a);
        out.others.emplace_back(b, v);
      }
    return out;
  }
  Datum at(Name a, Name b) const {
    const auto row = rows_.find(a);
    if (row == rows_.end()) return {};
    const auto entry = row->second.find(b);
    return entry == row->second.end() ? Datum() : entry->second;
  }

 private:
  void add_one(Name a, Name b, const Datum& v, const Location& loc) {
    Datum& entry = rows_[a][b];
    entry = sum(entry, v, loc);
  }
  std::map<Name, std::map<Name, Datum>> rows_;
};

class HessianReverse : public Mode {
 public:
  /// `size`: of the argument, a vector, each element of which is a variable, named by its number.
  HessianReverse(std::uint64_t tag, Name size) : Mode(tag), size_(size), names_(size) {}
  const char* name() const override { return "Hessian reverse mode"; }

  Datum input(const Datum& primal) { return variable(primal, 0); }
  Name name_of(const Datum& d) const { return number_of<Named>(d)->name; }

  Datum apply(const Operation& op, std::span<const Datum> operands) override {
    const Step b(*this, op, operands);
    const Datum r = b.values()[0];
    if (!r.type().is_differentiable()) return r;
    if (op.code == Opcode::get_ && operands.size() == 2)
      return variable(r, static_cast<Name>(strip(operands[1]).i()));
    if (!b.has_partials())
      raise_at(
          op.loc,
          std::string("hessian<mode::reverse>: expected operations on scalars and elements of the argument, "
                      "got ") +
              std::string(ir::info(op.code).name) + "; use hessian(f)");
    if (!b.differentiable()) return r;
    std::vector<std::optional<Name>> by;
    for (std::size_t i = 0; i < operands.size(); ++i)
      by.push_back(b.depends_on(i) ? std::optional(name_of(operands[i])) : std::nullopt);
    return shift<Datum>(prompt_, [this, p = partials_of(b.op(), primals(operands), r, by), r](auto k) {
      const Name name = names_++;
      k(variable(r, name));
      substitute(*this, p, name);
    });
  }

  /// The results are substituted one after the other, the last one first: those before it are variables like
  /// others.
  Datums follow(const std::shared_ptr<const Rule>& rule, const Datums& arguments,
                const Location& loc) override {
    std::vector<std::size_t> places;
    std::vector<Part> parts;
    for (std::size_t i = 0; i < arguments.size(); ++i) {
      if (!number_of(arguments[i])) continue;
      if (arguments[i].type().is_tensor())
        for (Name k = 0; k < size_; ++k) parts.push_back({places.size(), k, k});
      else
        parts.push_back({places.size(), std::nullopt, name_of(arguments[i])});
      places.push_back(i);
    }
    const RulePartials all = partials_of(rule, primals(arguments), places, loc);
    require_untagged(*rule, all.values, *this, loc);
    std::vector<Partials> steps;
    for (std::size_t j = 0; j < all.first.size(); ++j) {
      require_untagged(*rule, all.first[j], *this, loc);
      Partials& s = steps.emplace_back(Partials{{}, {}, {}, loc});
      for (const Part& x : parts) {
        s.by.push_back(x.name);
        s.first.push_back(element(all.first[j][x.argument], {x.index}, loc));
        s.second.emplace_back();
        for (const Part& y : parts)
          s.second.back().push_back(element(all.second[j][x.argument][y.argument], {x.index, y.index}, loc));
      }
    }
    return shift<Datums>(prompt_, [this, steps = std::move(steps), values = all.values](auto k) {
      const Name first = names_;
      names_ += steps.size();
      Datums results;
      Name next = first;
      for (const Datum& y : values) results.push_back(y.type().is_differentiable() ? variable(y, next++) : y);
      k(results);
      for (std::size_t j = steps.size(); j-- > 0;) substitute(*this, steps[j], first + j);
    });
  }

  void run(const std::function<void()>& program) {
    reset(prompt_, [&program] { program(); });
  }
  void seed(const Datum& result) {
    if (number_of(result)) gradient_[name_of(result)] = Datum::number(1.0, result.type());
  }
  /// The derivative by elements x and y of the argument; empty where it is zero.
  Datum hessian(Name x, Name y) const { return hessian_.at(x, y); }

 private:
  /// A scalar that a function with a rule is given, by itself or as an element of the vector.
  struct Part {
    std::size_t argument;
    std::optional<Name> index;
    Name name;
  };
  /// The element of a block at the indices that are there.
  static Datum element(const Datum& block, std::initializer_list<std::optional<Name>> indices,
                       const Location& loc) {
    Datums operands{block};
    for (const auto& index : indices)
      if (index) operands.push_back(Datum::integer(static_cast<std::int64_t>(*index), ir::I64));
    return operands.size() == 1 ? block : perform({Opcode::get_, 0, loc}, operands);
  }

  Datum variable(const Datum& primal, Name name) { return make_number<Named>(primal, name); }

  // What `substitute` asks for.
  template <class Live>
  friend void ad::substitute(Live&, const Partials&, Name);
  Datum take(Name r) {
    const auto own = gradient_.extract(r);
    return own.empty() ? Datum() : own.mapped();
  }
  HessianRow take_row(Name r) { return hessian_.take(r); }
  void add(Name x, const Datum& v, const Location& loc) { gradient_[x] = sum(gradient_[x], v, loc); }
  void add_entry(Name x, Name y, const Datum& v, const Location& loc) { hessian_.add(x, y, v, loc); }
  static const Datum& here(const Datum& d) { return d; }
  static Datum product(Name, Name, const Datum& a, const Datum& b, const Location& loc) {
    return perform({Opcode::mul_, 0, loc}, {a, b});
  }
  static const Datum& kept(Name, Name, const Datum& d, const Location&) { return d; }
  static bool is_halved(Name, Name) { return false; }

  Prompt<void> prompt_;
  Name size_, names_;
  std::map<Name, Datum> gradient_;
  Symmetric hessian_;
};

Datum eager_hessian(const Program& program, const Datum& x, const Location& loc) {
  const Evaluation evaluation;
  const Datum size = perform({Opcode::dim_, 0, loc}, {strip(x)});
  const auto n = static_cast<Name>(size.i());
  const auto mode = std::make_shared<HessianReverse>(fresh_number(), n);
  const Ending ending{*mode};
  mode->run([&] {
    const Datums results = program.run({mode->input(x)});
    require_scalar(types_of(results), loc);
    mode->seed(results[0]);
  });
  Datum matrix = perform({Opcode::fill_, 0, loc}, {Datum::zero(ir::Type(x.type().element())), size, size});
  const auto number = [](Name i) { return Datum::integer(static_cast<std::int64_t>(i), ir::I64); };
  for (Name i = 0; i < n; ++i)
    for (Name j = 0; j < n; ++j)
      if (const Datum h = mode->hessian(i, j); !h.empty())
        matrix = perform({Opcode::set_, 0, loc}, {matrix, number(i), number(j), h});
  return matrix;
}

Datum staged_hessian(Staging& s, const Program& program, const Datum& x, const Location& loc) {
  return derivative_unit(s, "hessian", program, {x}, {true}, Beside::nothing, {}, loc, [&](const Unit& unit) {
    require_scalar(unit.primal.result_types, loc);
    const auto mode = std::make_shared<StagedHessian>(s, fresh_number());
    const Ending ending{*mode};
    return mode->value_gradient_hessian(unit, loc);
  })[2];
}

}  // namespace

Datum hessian_by_reverse(const Program& program, const Datum& x, const Location& loc) {
  if (x.type().rank() != 1 || !x.type().is_differentiable())
    raise_at(loc, "hessian<mode::reverse>: expected a function of one array, got " + x.type().str());
  Staging* s = context().staging;
  return s ? staged_hessian(*s, program, x, loc) : eager_hessian(program, x, loc);
}

}  // namespace lantern::core::ad
