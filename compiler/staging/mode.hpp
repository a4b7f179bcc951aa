// Modes at work, and the numbers under them.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "lantern/compiler/staging/datum.hpp"
#include "lantern/ir/location.hpp"

namespace lantern::core {

struct Operation;
struct TaggedBox;
namespace ad {
struct Rule;
}

/// A mode at work: what the thesis (4) has a handler for, and the Lantern paper (2-3) a class of numbers. Each
/// application of grad, jvp, ... makes a fresh one: its identity is the tag. The mode in charge of an operation
/// is the one with the highest tag among the operands; its own arithmetic happens one level down.
class Mode : public std::enable_shared_from_this<Mode> {
 public:
  explicit Mode(std::uint64_t tag) : tag_(tag) {}
  virtual ~Mode() = default;

  std::uint64_t tag() const { return tag_; }
  /// Whether its numbers may no more be used.
  bool ended() const { return ended_ || rule_ != nullptr; }
  void end() { ended_ = true; }
  /// Of whose rule a backward part runs, which is given plain values: null where none does.
  const std::string* rule() const { return rule_; }
  class InRule {
   public:
    InRule(const Mode& mode, const std::string& what)
        : mode_(mode), before_(std::exchange(mode.rule_, &what)) {}
    InRule(const InRule&) = delete;
    InRule& operator=(const InRule&) = delete;
    ~InRule() { mode_.rule_ = before_; }

   private:
    const Mode& mode_;
    const std::string* before_;
  };
  virtual const char* name() const = 0;

  /// Computes the operation; at least one operand carries this tag.
  virtual Datum apply(const Operation& op, std::span<const Datum> operands) = 0;
  /// The results of a function with a rule (ad/custom_rule.hpp), and the derivatives that the rule gives; at least
  /// one argument carries this tag. `rule` is completed. Error, unless a mode says otherwise.
  virtual Datums follow(const std::shared_ptr<const ad::Rule>& rule, const Datums& arguments,
                        const ir::Location& loc);

  /// The number of this very mode that a datum is, or null. `Number`: of what kind all of them are.
  template <class Number = TaggedBox>
  Number* number_of(const Datum& d) const;
  /// One level down: without this mode's tag.
  const Datum& primal(const Datum& d) const;
  Datums primals(std::span<const Datum> data) const;

 protected:
  /// A number of this mode: its primal, and what else it carries.
  template <class Number, class... Parts>
  Datum make_number(Parts&&... parts);

 private:
  friend class ModeRef;
  std::uint64_t tag_;
  bool ended_ = false;
  mutable const std::string* rule_ = nullptr;
  std::uint64_t values_ = 0;    ///< how many refer to it
  std::shared_ptr<Mode> self_;  ///< while some do
};

/// What a value knows of its mode, which lives as long as it has values. These are confined to a thread,
/// as boxes are: a plain count does, where that of a shared pointer would be the dearest part of a small
/// operation.
class ModeRef {
 public:
  explicit ModeRef(Mode& mode) : mode_(&mode) {
    if (mode.values_++ == 0) mode.self_ = mode.shared_from_this();
  }
  ModeRef(const ModeRef&) = delete;
  ModeRef& operator=(const ModeRef&) = delete;
  ~ModeRef() {
    if (--mode_->values_ > 0) return;
    const std::shared_ptr<Mode> last = std::move(mode_->self_);  // the mode may end here
  }
  Mode* get() const { return mode_; }
  Mode* operator->() const { return mode_; }

 private:
  Mode* mode_;
};

/// A number under a mode: the primal lives one level down. Each mode adds what it carries. A mode of the lowest
/// level whose numbers are not Datums (semiring/over.hpp) has none there.
struct TaggedBox : Boxed {
  TaggedBox(Mode& m, Datum p) : Boxed(Kind::tagged), mode(m), primal(std::move(p)) {}
  ModeRef mode;
  Datum primal;
};

template <class Number>
Number* Mode::number_of(const Datum& d) const {
  if (!d.is_tagged()) return nullptr;
  auto* const box = static_cast<TaggedBox*>(d.box());
  return box->mode.get() == this ? static_cast<Number*>(box) : nullptr;
}
inline const Datum& Mode::primal(const Datum& d) const {
  const TaggedBox* const number = number_of(d);
  return number ? number->primal : d;
}
inline Datums Mode::primals(std::span<const Datum> data) const {
  Datums out;
  for (const Datum& d : data) out.push_back(primal(d));
  return out;
}
template <class Number, class... Parts>
Datum Mode::make_number(Parts&&... parts) {
  auto* const box = new Number(*this, std::forward<Parts>(parts)...);
  return Datum::boxed(box, box->primal.type());
}

/// The mode in charge of an operation, or of a function, on such operands: the one with the highest tag; null
/// where there is none.
Mode* in_charge(std::span<const Datum> operands);

/// The innermost primal: all tags taken off, but that of a number without a primal.
const Datum& strip(const Datum& d);

}  // namespace lantern::core
