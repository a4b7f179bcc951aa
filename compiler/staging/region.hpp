// Regions: pieces of the program that run under a condition, repeatedly, or in a function of their own, while
// they are being staged. See storage.hpp.
#pragma once

#include <functional>
#include <map>
#include <unordered_map>
#include <vector>

#include "lantern/compiler/staging/staging.hpp"
#include "lantern/compiler/staging/storage.hpp"

namespace lantern::core {

/// Is the innermost region for its lifetime. What it assigned is put back at its end: who opened it gives the
/// variables the values that they have afterwards.
class Region {
 public:
  /// What happened to a variable of an enclosing region.
  struct Change {
    StorageBase* variable;  ///< null: destroyed meanwhile
    Datum before;           ///< what it was when the region first met it
    Datum inside;           ///< what it was taken for then
    Datum after;
    std::uint64_t region;   ///< that had taken note of it before
  };

  /// `what` is done here, for messages: "branch", "loop", "function".
  Region(Staging& s, const char* what, const Location& loc);
  virtual ~Region();
  Region(const Region&) = delete;
  Region& operator=(const Region&) = delete;

  /// Ends the region: what was done to each variable that it met, in the order of meeting. Error: one of them
  /// was destroyed, or taken away.
  const std::vector<Change>& leave();
  /// Gives a variable of an enclosing region its value, after that.
  static void assign(StorageBase& v, Datum d);

  std::uint64_t number() const { return number_; }
  const Location& loc() const { return loc_; }
  static const Datum& value(const StorageBase& v) { return v.datum_; }
  /// Variables of enclosing regions are read here, and not assigned.
  virtual bool is_function() const { return false; }
  /// What is done here may be done again, after what it assigned.
  virtual bool is_loop() const { return false; }
  /// What a variable that has `v` here had before the region, as far as is known; for messages.
  virtual const ir::Value* before(const ir::Value* v) const { return v; }

 protected:
  static void put(StorageBase& v, const Datum& d) { v.datum_ = d; }
  /// What a variable that holds `before` is in here.
  virtual Datum enter(StorageBase& variable, const Datum& before);
  /// Raises where a variable was lost.
  void require_all() const;
  /// Ends the region as a part of the one around.
  void join() noexcept;

  std::vector<Change> met_;
  Staging& staging_;


 private:
  friend class StorageBase;
  void meet(StorageBase& v);
  void restore() noexcept;
  static void forget(Staging& s, StorageBase& v) noexcept;

  const char* what_;
  Location loc_;
  std::uint64_t number_;
  bool open_ = true, lost_ = false;
};

/// A piece that runs once: kept, it becomes part of the region around; else it is taken back.
class IterationRegion : public Region {
 public:
  IterationRegion(Staging& s, const Location& loc) : Region(s, "loop", loc) {}
  void keep();
};

class FunctionRegion : public Region {
 public:
  FunctionRegion(Staging& s, const Location& loc) : Region(s, "function", loc) {}
  bool is_function() const override { return true; }
};

/// Of a loop's condition and body. A variable becomes state of the loop when it is first met; what no iteration
/// changed is taken out again at the end (finish).
class LoopRegion : public Region {
 public:
  /// `types`: of variables whose shape an iteration changes, found by staging the loop before.
  using Types = std::map<const StorageBase*, ir::Type>;
  LoopRegion(Staging& s, ir::Op* loop, Types& types, const Location& loc);

  /// From the condition to the body. False where the condition assigned a variable.
  bool begin_body();
  /// The variables' values after an iteration, for the loop's yield. False where one has another shape than was
  /// assumed, which `types` has now.
  bool end_body(std::vector<ir::Value*>& yields);
  /// After the yield: state that no iteration changes goes, from position `keep` on. The variables that are left,
  /// with the numbers of their results.
  std::vector<std::pair<StorageBase*, std::size_t>> finish(std::size_t keep);
  const ir::Value* before(const ir::Value* v) const override;
  bool is_loop() const override { return true; }

 protected:
  Datum enter(StorageBase& variable, const Datum& before) override;

 private:
  std::size_t add_state(const StorageBase& v, ir::Value* initial);
  ir::Value* before_loop(ir::FunctionRef<Datum()> make);

  ir::Op* loop_;
  StagedFunction* function_;
  ir::Block* around_;
  Types& types_;
  std::unordered_map<const StorageBase*, std::size_t> state_;  ///< positions in the loop's state
  bool in_body_ = false;
  std::size_t functions_;  ///< staged before
  std::size_t own_;        ///< state that is no variable's
};

/// Whether two data are one value for sure.
bool same(const Datum& a, const Datum& b);

/// A value for a variable of a type that was never given one, where C++ leaves open what it is: zero.
Datum unset(Staging& s, const ir::Type& type);

}  // namespace lantern::core
