// Derivative formulas of the operation table, carried out by performing operations one level down.
#pragma once

#include <functional>

#include "lantern/compiler/ad/adjoint_cell.hpp"
#include "lantern/ir/function_ref.hpp"
#include "lantern/ir/formula.hpp"
#include "lantern/ir/op.hpp"

namespace lantern::core::ad {

/// What the variables of a formula represent.
struct FormulaContext {
  const Operation& op;
  std::span<const Datum> operands;  ///< x y z, one level down
  const Datum& result;              ///< r
  const Datum& cotangent;           ///< g; empty where formulas do not use it
};

/// Computes a formula.
Datum evaluate_formula(const ir::Formula& f, const FormulaContext& c);

/// A partial derivative of an element-wise operation. Numbers are computed without a detour over modes.
Datum partial_derivative(const ir::Formula& f, const FormulaContext& c);

/// Whether a partial derivative is a choice between formulas.
bool chooses(const ir::Formula& f);
/// What `of` gives for a partial derivative, case by case; empty where nothing flows. The choice is between results, so that
/// what is not taken does not matter. `like`: of the results' shape.
Datum by_cases(const ir::Formula& f, const FormulaContext& c, const Datum& like,
               ir::FunctionRef<Datum(const ir::Formula&)> of);
/// Whether a partial derivative of eager numbers is a choice, and the case that nothing flows is taken.
bool nothing_flows(const ir::Formula& f, const FormulaContext& c);

/// Adds what operand `i` receives from the cotangent to its adjoint cell.
void propagate(std::size_t i, const FormulaContext& c, Cell& cell);

/// The operands of a sum of products that what operand `i` receives depends on.
std::vector<std::size_t> read_by_adjoint(const Operation& op, std::span<const Datum> operands, std::size_t i);

/// Calls each(i) for the operands, of which there are n, in the order of a backward step. For tensors the last one
/// first: an update's base comes first among the operands, and its adjoint can then take over the memory of the
/// cotangent, which nothing reads any more.
template <class Each>
void backward_order(Opcode code, std::size_t n, const Each& each) {
  const bool last_first = !ir::info(code).elementwise;
  for (std::size_t j = 0; j < n; ++j) each(last_first ? n - 1 - j : j);
}

/// The tangent of the result from the operands' tangents (empty Datum: zero); empty where it vanishes.
Datum tangent(const FormulaContext& c, std::span<const Datum> tangents);
/// The same where of the operands' tangents it is known where they are zero because nothing flows (`flows`, conditions;
/// empty: they are not): so it is of the result's.
Datum tangent(const FormulaContext& c, std::span<const Datum> tangents, std::span<const Datum> flows, Datum& flow);

/// True where operand `i` passes a derivative on to the result.
bool carries_derivative(const Operation& op, std::size_t i, std::size_t n);

}  // namespace lantern::core::ad
