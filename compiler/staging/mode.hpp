// Derivative handlers, and the numbers under them.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <utility>

#include "lantern/compiler/staging/datum.hpp"

namespace lantern::core {

struct Operation;

/// A derivative handler (thesis 4; Lantern paper 2-3). Each application of grad, jvp, ... makes a fresh one:
/// its identity is the tag. The handler in charge of an operation is the one with the highest tag among the
/// operands; its own arithmetic happens one level down.
class Mode : public std::enable_shared_from_this<Mode> {
 public:
  explicit Mode(std::uint64_t tag) : tag_(tag) {}
  virtual ~Mode() = default;

  std::uint64_t tag() const { return tag_; }
  bool ended() const { return ended_; }
  void end() { ended_ = true; }
  virtual const char* name() const = 0;

  /// Computes the operation; at least one operand carries this tag.
  virtual Datum apply(const Operation& op, std::span<const Datum> operands) = 0;

 private:
  friend class ModeRef;
  std::uint64_t tag_;
  bool ended_ = false;
  std::uint64_t values_ = 0;    ///< how many refer to it
  std::shared_ptr<Mode> self_;  ///< while some do
};

/// What a value knows of its handler, which lives as long as it has values. These are confined to a thread,
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
    const std::shared_ptr<Mode> last = std::move(mode_->self_);  // the handler may end here
  }
  Mode* get() const { return mode_; }
  Mode* operator->() const { return mode_; }

 private:
  Mode* mode_;
};

/// A number under a derivative handler: the primal lives one level down. Each mode adds what it carries. A
/// handler of the lowest level whose numbers are not Datums (semiring/over.hpp) has none there.
struct TaggedBox : Boxed {
  TaggedBox(Mode& m, Datum p) : Boxed(Kind::tagged), mode(m), primal(std::move(p)) {}
  ModeRef mode;
  Datum primal;
};

/// The handler in charge of an operation, or of a function, on such operands: the one with the highest tag; null
/// where there is none.
Mode* in_charge(std::span<const Datum> operands);

/// The innermost primal: all tags taken off, but that of a number without a primal.
const Datum& strip(const Datum& d);

}  // namespace lantern::core
