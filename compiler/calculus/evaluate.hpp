// Evaluation of terms by an abstract machine with explicit continuations.
//
// The machine is Felleisen and Friedman's CEK machine with a second stack, the metacontinuation, for
// delimited control (Danvy and Filinski, "Abstracting Control", 1990; Biernacka, Biernacki and Danvy, "An
// Operational Foundation for Delimited Continuations", 2005): shift captures the frames up to the enclosing
// reset and leaves that reset in place; applying a captured continuation puts a reset around it.
// Continuations may be applied any number of times.
//
// There is one stack for each level of control: the first holds frames, each one above it what a reset of its
// level has put aside of those below. So shift and reset of any level take constant time.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <source_location>
#include <string>
#include <variant>
#include <vector>

#include "lantern/compiler/calculus/term.hpp"

namespace lantern::calculus {

struct PairValue;
struct CellValue;
struct ClosureValue;
struct Context;
struct Value;

/// inl v or inr v.
struct SumValue {
  bool left;
  const Value* of;
};
/// The computation up to a reset.
struct ContinuationValue {
  const Context* context;
};

/// A value, in the memory of the machine that made it: usable as long as that lives.
struct Value {
  std::variant<double, std::monostate, const PairValue*, CellValue*, SumValue, const ClosureValue*,
               ContinuationValue>
      form;
};
struct PairValue {
  Value first, second;
};
struct CellValue {
  Value content;
};

/// "3", "()", "(1, inl ())", "a function", "a reference", "a continuation".
std::string to_string(const Value& v);

/// Evaluates terms. What it has allocated stays until it is destroyed.
class Machine {
 public:
  /// Raises Error, naming the place of the call below, when an evaluation takes more steps than `step_limit`.
  explicit Machine(std::size_t step_limit = 100'000'000);
  ~Machine();
  Machine(const Machine&) = delete;
  Machine& operator=(const Machine&) = delete;

  /// The value of a closed term. Error, with the stuck part of the term and what was found, if there is none:
  /// a free variable, an operand of the wrong kind, a shift outside any reset.
  Value evaluate(const Term& e, std::source_location l = std::source_location::current());
  /// The value of a function applied to a value.
  Value apply(const Value& f, const Value& x, std::source_location l = std::source_location::current());
  /// How many steps have been taken so far.
  std::size_t steps() const { return steps_; }

 private:
  class Run;
  struct Memory;
  std::unique_ptr<Memory> memory_;
  std::size_t step_limit_;
  std::size_t steps_ = 0;
};

/// @ f x for a term f of type R -> R, closed. Error as above, or if the result is no number.
double call(const Term& f, double x, std::source_location l = std::source_location::current());

}  // namespace lantern::calculus
