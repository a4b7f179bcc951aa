// The eager reverse modes: what they have in common.
#pragma once

#include <functional>
#include <memory>

#include "lantern/compiler/ad/program.hpp"
#include "lantern/compiler/ad/step.hpp"

namespace lantern::core::ad {

/// A way to compute a gradient by running a program at once. Modes differ in how the program is reversed and where
/// adjoints are kept.
class EagerReverse : public Mode {
 public:
  using Mode::Mode;
  Datum apply(const Operation& op, std::span<const Datum> operands) override;
  /// A function with a rule is one step.
  Datums follow(const std::shared_ptr<const Rule>& rule, const Datums& arguments,
                const Location& loc) override;

  /// A variable to differentiate by.
  virtual Datum input(const Datum& primal) = 0;
  /// Runs `program`, which calls seed for its results. When this returns the adjoints of the inputs are
  /// complete.
  virtual void run(const std::function<void()>& program) = 0;
  /// In `program`: adds g to the adjoint of a result.
  virtual void seed(const Datum& result, const Datum& g, const Location& loc) = 0;
  /// After run: the adjoint of an input.
  virtual Datum adjoint(const Datum& input, const Location& loc) = 0;

 protected:
  /// Handles a step: its values, the floating ones as numbers of the mode. Unless a mode says otherwise, the
  /// step is an effect of the program, Smooth, which the handler installed by `run` has a clause for.
  virtual Datums handle_step(Step b);

  /// Where something waits on the stack for the rest of the program after b. Error, naming the place of b, where
  /// the stack ends.
  void require_stack(const Step& b) const;

  /// The values of a step, each floating one as make(value) gives it.
  template <class Make>
  static Datums numbers(std::span<const Datum> values, const Make& make) {
    Datums out;
    for (const Datum& y : values) out.push_back(y.type().is_differentiable() ? make(y) : y);
    return out;
  }
};

/// The gradient of a scalar program by a mode: its value if `value`, then one adjoint per active argument.
Datums gradient_by(EagerReverse& mode, const Program& program, const Datums& arguments,
                   const Active& active, bool value, const Location& loc);

// The rules of the papers, one file each. See `mode` in modes.hpp for what they are.
std::shared_ptr<EagerReverse> make_reverse_by_shift(std::uint64_t tag);
std::shared_ptr<EagerReverse> make_stateful_reverse(std::uint64_t tag);
std::shared_ptr<EagerReverse> make_global_tape(std::uint64_t tag);
std::shared_ptr<EagerReverse> make_functional(std::uint64_t tag);
std::shared_ptr<EagerReverse> make_continuation(std::uint64_t tag);
std::shared_ptr<EagerReverse> make_taped(std::uint64_t tag);
std::shared_ptr<EagerReverse> make_checkpointed(std::uint64_t tag);
std::shared_ptr<EagerReverse> make_closures(std::uint64_t tag);
std::shared_ptr<EagerReverse> make_checkpointed_closures(std::uint64_t tag);
std::shared_ptr<EagerReverse> make_divide_and_conquer(std::uint64_t tag);
// A fast path beside its rule.
std::shared_ptr<EagerReverse> make_fast_taped(std::uint64_t tag);

}  // namespace lantern::core::ad
