// Hessian reverse mode: value, gradient and Hessian in one reverse pass (thesis, 5.1 and listing A.22; the
// algorithm of M. Wang, "High Order Reverse Mode of Automatic Differentiation", which is edge pushing
// restricted to live variables: Gower and Mello, "A New Framework for the Computation of Hessians", 2012;
// Wang, Gebremedhin and Pothen, "Capitalizing on Live Variables", 2016).
//
// In the backward pass the result is a function of the variables that are live: those made so far that later
// operations used. Kept are its gradient a and its Hessian h by these. An operation r = op(x, y, ...) is
// undone by substituting it: with w = a[r], and the row u = h[r], both of which are taken out,
//
//   a[x]    += d op/dx * w
//   h[x, v] += d op/dx * u[v]                                          for v other than r, twice where v is x
//   h[x, y] += d op/dx * d op/dy * u[r] + d2 op/dx dy * w              for operands x and y
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

using Name = std::size_t;

/// A symmetric matrix of which only entries that are not known to be zero are kept.
class Symmetric {
 public:
  void add(Name a, Name b, const Datum& v, const Location& loc) {
    add_one(a, b, v, loc);
    if (a != b) add_one(b, a, v, loc);
  }
  /// Takes the row and column of a out. The row.
  std::map<Name, Datum> take(Name a) {
    const auto row = rows_.extract(a);
    if (row.empty()) return {};
    for (const auto& [b, v] : row.mapped())
      if (b != a) rows_[b].erase(a);
    return row.mapped();
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
    entry = entry.empty() ? v : perform({Opcode::add_, 0, loc}, {entry, v});
  }
  std::map<Name, std::map<Name, Datum>> rows_;
};

class HessianReverse : public Mode, public RuleFollowing {
 public:
  using Mode::Mode;
  const char* name() const override { return "Hessian reverse mode"; }

  Datum input(const Datum& primal) { return variable(primal, names_++); }
  /// A vector, each element of which is a variable.
  Datum input_vector(const Datum& primal, std::int64_t size) {
    vector_ = names_;
    size_ = size;
    names_ += static_cast<Name>(size);
    return variable(primal, vector_);
  }
  Name name_of(const Datum& d) const { return static_cast<const Variable*>(d.box())->name; }
  bool is_variable(const Datum& d) const {
    return d.is_tagged() && static_cast<const TaggedBox*>(d.box())->mode.get() == this;
  }
  const Datum& primal(const Datum& d) const {
    return is_variable(d) ? static_cast<const Variable*>(d.box())->primal : d;
  }

  Datum apply(const Operation& op, std::span<const Datum> operands) override {
    const Step b(*this, op, operands);
    const Datum r = b.values()[0];
    if (!r.type().is_differentiable()) return r;
    if (op.code == Opcode::get_ && operands.size() == 2)
      return variable(r, vector_ + element(b.primal(operands[1])));
    if (!b.has_partials())
      raise_at(
          op.loc,
          std::string("hessian<mode::reverse>: expected operations on scalars and elements of the argument, "
                      "got ") +
              std::string(ir::info(op.code).name) + "; use hessian(f)");
    if (!b.differentiable()) return r;
    return shift<Datum>(prompt_, [this, s = partials(b), r](auto k) {
      const Name name = names_++;
      k(variable(r, name));
      undo(s, name);
    });
  }

  /// The results are substituted one after the other, the last one first: those before it are variables like
  /// others.
  Datums follow(const std::shared_ptr<const Rule>& rule, const Datums& arguments,
                const Location& loc) override {
    Datums primals;
    std::vector<std::size_t> places;
    std::vector<Part> parts;
    for (std::size_t i = 0; i < arguments.size(); ++i) {
      primals.push_back(primal(arguments[i]));
      if (!is_variable(arguments[i])) continue;
      const Name name = name_of(arguments[i]);
      const bool vector = primals[i].type().is_tensor();
      for (std::int64_t k = 0; k < (vector ? size_ : 1); ++k)
        parts.push_back(
            {places.size(), vector ? std::optional(k) : std::nullopt, name + static_cast<Name>(k)});
      places.push_back(i);
    }
    const RulePartials all = partials_of(rule, primals, places, loc);
    require_untagged(*rule, all.values, *this, loc);
    std::vector<Partials> steps;
    for (std::size_t j = 0; j < all.first.size(); ++j) {
      require_untagged(*rule, all.first[j], *this, loc);
      Partials& s = steps.emplace_back(Partials{{}, {}, {}, loc});
      for (const Part& x : parts) {
        s.operands.push_back(x.name);
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
      for (std::size_t j = steps.size(); j-- > 0;) undo(steps[j], first + j);
    });
  }

  void run(const std::function<void()>& program) {
    reset(prompt_, [&program] { program(); });
  }
  void seed(const Datum& result) {
    if (is_variable(result)) gradient_[name_of(result)] = Datum::number(1.0, result.type());
  }
  Datum gradient(Name x, const ir::Type& type) const {
    const auto found = gradient_.find(x);
    return found == gradient_.end() ? Datum::zero(type) : found->second;
  }
  Datum hessian(Name x, Name y, const ir::Type& type) const {
    const Datum h = hessian_.at(x, y);
    return h.empty() ? Datum::zero(type) : h;
  }

 private:
  struct Variable : TaggedBox {
    Variable(Mode& m, Datum p, Name n) : TaggedBox(m, std::move(p)), name(n) {}
    Name name;
  };
  /// What an operation contributes: for each of its variable operands the first, for each pair the second
  /// partial derivative; empty where it is zero.
  struct Partials {
    std::vector<Name> operands;
    Datums first;
    std::vector<Datums> second;
    Location loc;
  };

  /// A scalar that a function with a rule is given, by itself or as an element of the vector.
  struct Part {
    std::size_t argument;
    std::optional<std::int64_t> index;
    Name name;
  };
  /// The element of a block at the indices that are there.
  static Datum element(const Datum& block, std::initializer_list<std::optional<std::int64_t>> indices,
                       const Location& loc) {
    Datums operands{block};
    for (const auto& index : indices)
      if (index) operands.push_back(Datum::integer(*index, ir::I64));
    return operands.size() == 1 ? block : perform({Opcode::get_, 0, loc}, operands);
  }

  Datum variable(const Datum& primal, Name name) {
    return Datum::boxed(new Variable(*this, primal, name), primal.type());
  }
  Name element(const Datum& index) const { return static_cast<Name>(strip(index).i()); }

  Partials partials(const Step& b) const {
    Partials s{{}, {}, {}, b.loc()};
    Datums primals;
    std::vector<std::size_t> positions;
    for (std::size_t i = 0; i < b.operands().size(); ++i) {
      primals.push_back(b.primal(b.operands()[i]));
      if (!b.depends_on(i)) continue;
      positions.push_back(i);
      s.operands.push_back(name_of(b.operands()[i]));
      s.first.push_back(b.partial(i));
    }
    for (std::size_t i : positions) {
      s.second.emplace_back();
      for (std::size_t j = 0; j < positions.size(); ++j)
        s.second.back().push_back(
            second_partial(b.op(), primals, b.values()[0], i, positions[j], s.first[j]));
    }
    return s;
  }

  void undo(const Partials& s, Name r) {
    const auto own = gradient_.extract(r);
    const Datum w = own.empty() ? Datum() : own.mapped();
    std::map<Name, Datum> u = hessian_.take(r);
    const auto diagonal = u.extract(r);
    const Location& loc = s.loc;
    const auto times = [&loc](const Datum& a, const Datum& b) {
      return perform({Opcode::mul_, 0, loc}, {a, b});
    };
    for (std::size_t i = 0; i < s.operands.size(); ++i) {
      const Name x = s.operands[i];
      if (!w.empty()) {
        Datum& a = gradient_[x];
        const Datum term = times(s.first[i], w);
        a = a.empty() ? term : perform({Opcode::add_, 0, loc}, {a, term});
      }
      for (const auto& [v, uv] : u) {
        const Datum term = times(s.first[i], uv);
        hessian_.add(x, v, term, loc);
        if (x == v) hessian_.add(x, v, term, loc);
      }
      for (std::size_t j = 0; j < s.operands.size(); ++j) {
        const Name y = s.operands[j];
        // Both orders of a pair of different variables come by; add serves both entries at once.
        if (x != y && j < i) continue;
        if (!diagonal.empty())
          hessian_.add(x, y, times(times(s.first[i], s.first[j]), diagonal.mapped()), loc);
        if (!w.empty() && !s.second[i][j].empty()) hessian_.add(x, y, times(s.second[i][j], w), loc);
      }
    }
  }

  Prompt<void> prompt_;
  Name names_ = 0;
  Name vector_ = 0;
  std::int64_t size_ = 0;
  std::map<Name, Datum> gradient_;
  Symmetric hessian_;
};

}  // namespace

Datum staged_hessian_by_reverse(Staging& s, const Program& program, const Datum& x, const Location& loc) {
  if (x.type().rank() != 1 || !x.type().is_differentiable())
    raise_at(loc, "hessian<mode::reverse>: expected a function of one array, got " + x.type().str());
  const Datums all =
      derivative_unit(s, "hessian", program, {x}, {true}, Beside::nothing, {}, loc, [&](const Unit& unit) {
        require_scalar(unit.primal.result_types, loc);
        const auto mode = std::make_shared<StagedHessian>(s, fresh_number());
        const Ending ending{*mode};
        return mode->value_gradient_hessian(unit.primal, unit.arguments, 0, loc);
      });
  return all[2];
}

SecondOrder hessian_by_reverse(const Program& program, const Datums& arguments, const Active& active,
                               const Location& loc) {
  const Evaluation evaluation;
  const auto mode = std::make_shared<HessianReverse>(fresh_number());
  const Ending ending{*mode};
  Datums tagged = arguments;
  std::vector<std::pair<Name, ir::Type>> inputs;
  for (std::size_t i = 0; i < tagged.size(); ++i) {
    if (!active[i]) continue;
    const Datum& x = arguments[i];
    if (x.type().is_scalar()) {
      tagged[i] = mode->input(x);
      inputs.emplace_back(mode->name_of(tagged[i]), x.type());
      continue;
    }
    if (x.type().rank() != 1 || !inputs.empty())
      raise_at(loc, "hessian<mode::reverse>: expected scalars or one array, got " + x.type().str());
    const std::int64_t n = strip(perform({Opcode::dim_, 0, loc}, {strip(x)})).i();
    tagged[i] = mode->input_vector(x, n);
    for (std::int64_t k = 0; k < n; ++k)
      inputs.emplace_back(mode->name_of(tagged[i]) + static_cast<Name>(k), ir::Type(x.type().element()));
  }
  SecondOrder out;
  mode->run([&] {
    const Datums results = program.run(tagged);
    require_scalar(types_of(results), loc);
    out.value = mode->primal(results[0]);
    mode->seed(results[0]);
  });
  for (const auto& [x, type] : inputs) {
    out.gradient.push_back(mode->gradient(x, type));
    out.hessian.emplace_back();
    for (const auto& [y, ignored] : inputs) out.hessian.back().push_back(mode->hessian(x, y, type));
  }
  return out;
}

}  // namespace lantern::core::ad
