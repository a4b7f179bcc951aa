// Jacobians by columns and by rows. Tensors of higher rank are taken as the vectors of their elements,
// row-major; what comes out gets the shape of the result, then that of the argument.
#include "lantern/compiler/ad/jacobian.hpp"

#include "lantern/compiler/staging/control_flow.hpp"

namespace lantern::core::ad {

namespace {

class Passes {
 public:
  Passes(const Program& program, const Datums& arguments, const Active& active, const Location& loc)
      : given_(arguments), loc_(loc) {
    for (std::size_t i = 0; i < arguments.size(); ++i)
      if (active[i]) inputs_.push_back(i);
    // For its shapes alone.
    results_ = program.run(arguments);
    for (const Datum& y : results_) require_floating(y, "a result");
    for (std::size_t i : inputs_) require_floating(arguments[i], "an argument");
    arguments_ = arguments;
    for (std::size_t i : inputs_) arguments_[i] = flat(arguments[i]);
    for (const Datum& y : results_) outputs_.push_back(flat(y));
    program_ = {program.name, [this, program](const Datums& in) {
                  Datums shaped = in, out;
                  for (std::size_t i : inputs_)
                    if (given_[i].type().rank() > 1) shaped[i] = op(Opcode::reshape_, {in[i], given_[i]});
                  for (const Datum& y : program.run(shaped)) out.push_back(flat(y));
                  return out;
                }};
  }
  Passes(const Passes&) = delete;
  Passes& operator=(const Passes&) = delete;

  /// Whether the arguments have at most as many elements as the results.
  Datum tall() const {
    Datums x;
    for (std::size_t i : inputs_) x.push_back(arguments_[i]);
    return op(Opcode::le_, {elements(x), elements(outputs_)});
  }

  /// Column by column, by forward mode; all derivatives in a row, results first.
  Datums columns() const {
    std::vector<Datums> by_input;
    for (std::size_t i : inputs_) {
      Active one(arguments_.size(), false);
      one[i] = true;
      by_input.push_back(along(arguments_[i], outputs_, [&](const Datum& unit) {
        const Datums out = jvp(program_, arguments_, one, {unit}, loc_);
        return slice(out, out.size() - outputs_.size(), out.size());
      }));
    }
    Datums all;
    for (std::size_t o = 0; o < outputs_.size(); ++o)
      for (std::size_t i = 0; i < inputs_.size(); ++i) {
        const Datum& d = by_input[i][o];
        all.push_back(d.type().rank() == 2 ? op(Opcode::transpose_, {d}) : d);
      }
    return all;
  }

  /// Row by row, by reverse mode; in the same order.
  Datums rows() const {
    Active active(arguments_.size(), false);
    Datums inputs, all;
    for (std::size_t i : inputs_) {
      active[i] = true;
      inputs.push_back(arguments_[i]);
    }
    for (std::size_t o = 0; o < outputs_.size(); ++o) {
      const Datums row = along(outputs_[o], inputs, [&](const Datum& unit) {
        Datums seeds;
        for (const Datum& y : outputs_) seeds.push_back(zeros_like(y, loc_));
        seeds[o] = unit;
        return vjp(program_, arguments_, active, seeds, false, loc_);
      });
      all = joined(std::move(all), row);
    }
    return all;
  }

  std::size_t outputs() const { return outputs_.size(); }
  std::size_t inputs() const { return inputs_.size(); }

  /// The derivative of a result by an argument in their shapes.
  Datum shaped(const Datum& block, std::size_t output, std::size_t input) const {
    const Datum &y = results_[output], &x = given_[inputs_[input]];
    if (y.type().rank() <= 1 && x.type().rank() <= 1) return block;
    Datums sizes{Datum::zero(ir::Type(y.type().element()))};
    for (const Datum* d : {&y, &x})
      for (std::size_t k = 0; k < rank(*d); ++k) sizes.push_back(dimension(*d, k));
    return op(Opcode::reshape_, {block, op(Opcode::fill_, sizes)});
  }

 private:
  Datum op(Opcode code, const Datums& operands) const { return perform({code, 0, loc_}, operands); }

  void require_floating(const Datum& d, const char* what) const {
    if (!d.type().is_differentiable())
      raise_at(loc_, std::string("jacobian: expected ") + what +
                         " to be a floating scalar, array or tensor, got " + d.type().str());
    if (d.type().element() != results_[0].type().element())
      raise_at(loc_, "jacobian: expected results and arguments of one type, got " + results_[0].type().str() +
                         " and " + d.type().str() +
                         "; jacobian<0>(f) differentiates by the arguments that are named");
  }

  static std::size_t rank(const Datum& d) { return static_cast<std::size_t>(d.type().rank()); }
  Datum dimension(const Datum& d, std::size_t k) const {
    return dimension_of(d, static_cast<std::int64_t>(k), loc_);
  }
  /// The number of elements.
  Datum size(const Datum& d) const {
    Datum n = Datum::integer(1, ir::I64);
    for (std::size_t k = 0; k < rank(d); ++k)
      n = k == 0 ? dimension(d, k) : op(Opcode::mul_, {n, dimension(d, k)});
    return n;
  }
  /// As a vector; scalars and vectors as they are.
  Datum flat(const Datum& d) const {
    if (rank(d) <= 1) return d;
    const Datum zero = Datum::zero(ir::Type(d.type().element()));
    return op(Opcode::reshape_, {d, op(Opcode::fill_, {zero, size(d)})});
  }
  Datum elements(const Datums& data) const {
    Datum n = Datum::integer(0, ir::I64);
    for (const Datum& d : data) n = op(Opcode::add_, {n, size(d)});
    return n;
  }

  /// `pass` for each unit vector of the space of `from`: what it gives for every one of `to`, as rows.
  Datums along(const Datum& from, const Datums& to, const std::function<Datums(const Datum&)>& pass) const {
    const ir::Type element(from.type().element());
    if (from.type().is_scalar()) return pass(Datum::number(1.0, element));
    const Datum zero = zeros_like(from, loc_), n = size(from);
    Datums empty;
    for (const Datum& t : to) {
      Datums sizes{Datum::zero(ir::Type(t.type().element())), n};
      if (t.type().is_tensor()) sizes.push_back(size(t));
      empty.push_back(op(Opcode::fill_, sizes));
    }
    const auto row = [&](const Datums& s) {
      return pass(op(Opcode::set_, {zero, s[0], Datum::number(1.0, element)}));
    };
    return row_by_row(n, empty, row, loc_);
  }

  const Datums& given_;  ///< the arguments as they came
  Datums results_;       ///< of the program, in their shapes
  Location loc_;
  std::vector<std::size_t> inputs_;  ///< positions of the active arguments
  Program program_;                  ///< on vectors, as `arguments_` and `outputs_` are
  Datums arguments_, outputs_;
};

}  // namespace

std::vector<Datums> jacobian(const Program& program, const Datums& arguments, const Active& active,
                           std::optional<mode> how, const Location& loc) {
  const Passes passes(program, arguments, active, loc);
  const Datums all = how == mode::forward   ? passes.columns()
                   : how == mode::reverse ? passes.rows()
                                          : detail::branch(
                                                passes.tall(), [&] { return passes.columns(); },
                                                [&] { return passes.rows(); }, loc);
  std::vector<Datums> by_output;
  for (std::size_t o = 0; o < passes.outputs(); ++o) {
    Datums& row = by_output.emplace_back();
    for (std::size_t i = 0; i < passes.inputs(); ++i)
      row.push_back(passes.shaped(all[o * passes.inputs() + i], o, i));
  }
  return by_output;
}

}  // namespace lantern::core::ad
