// Checkpointing without annotations, by divide and conquer (Siskind and Pearlmutter, "Divide-and-Conquer
// Checkpointing for Arbitrary Programs with No User Annotation"; thesis, chapter 9, as future work).
//
// A first run measures: it counts the operations, n. To reverse the operations from a to b, reverse the later
// half, then the earlier half; a part that is short is run from the start of the program, remembering nothing
// up to a, everything from a, and nothing from b on. Names of values are given in the same order in every
// run, so that adjoints pass from one part to an earlier one. A run represents the continuation of the
// original, called a second time: C++ stacks are resumed once. What follows b is evaluated, at a fraction of
// the cost of what is watched, rather than dropped: to unwind the frames of a program that has done nothing
// wrong would end it where one of them is noexcept.
//
// Kept at a time: the adjoints of values that are live where two parts meet, and what one part records, a
// number of operations that grows as log n. Time grows as n^2 / log n evaluations.
#include <bit>
#include <map>
#include <vector>

#include "lantern/compiler/ad/modes/eager_reverse.hpp"
#include "lantern/compiler/control/control.hpp"

namespace lantern::core::ad {

namespace {

class DivideAndConquer : public EagerReverse {
 public:
  using EagerReverse::EagerReverse;
  const char* name() const override { return "divide-and-conquer reverse mode"; }

  Datum input(const Datum& primal) override { return make_number<Variable>(primal, inputs_++); }
  void run(const std::function<void()>& program) override {
    measuring_ = true;
    part_ = {kEndless, kEndless, 0};
    once(program);
    measuring_ = false;
    total_ = count_;
    longest_ = kLeaf * std::bit_width(total_);
    reverse(program, 0, total_, fingerprint_);
  }
  void seed(const Datum& result, const Datum& g, const Location& loc) override {
    if (measuring_ || past_) return;
    if (fingerprint_ != part_.fingerprint_at_end || count_ != part_.end) refuse(loc);
    if (const auto* z = number_of<Variable>(result)) cell(z->name, primal(result)).add(g, loc);
  }
  Datum adjoint(const Datum& input, const Location& loc) override {
    const auto* x = number_of<Variable>(input);
    const auto found = adjoints_.find(x->name);
    return found == adjoints_.end() ? zeros_like(x->primal, loc) : found->second->get(loc);
  }

 private:
  using Variable = Named;
  /// The operations that a run records, and what the operations before its end amount to.
  struct Part {
    std::size_t begin, end;
    std::uint64_t fingerprint_at_end;
  };
  static constexpr std::size_t kEndless = ~std::size_t{0};
  static constexpr std::size_t kLeaf = 16;

  /// Reverses the operations from begin to end; `fingerprint` is that of all before `end`. That of all before
  /// `begin`.
  std::uint64_t reverse(const std::function<void()>& program, std::size_t begin, std::size_t end,
                        std::uint64_t fingerprint) {
    if (end - begin > longest_) {
      const std::size_t middle = begin + (end - begin) / 2;
      const std::uint64_t at_middle = reverse(program, middle, end, fingerprint);
      return reverse(program, begin, middle, at_middle);
    }
    part_ = {begin, end, fingerprint};
    once(program);
    if (count_ != end) refuse({});
    for (; !tape_.empty(); tape_.pop_back()) tape_.back()();
    return fingerprint_at_begin_;
  }

  /// Runs the program and records the part.
  void once(const std::function<void()>& program) {
    count_ = 0;
    names_ = inputs_;
    fingerprint_ = fingerprint_at_begin_ = 0;
    past_ = false;
    run_on_large_stack(program);
  }

  /// Whether the part has ended: nothing of the rest of the program is looked at.
  bool ended(const Location& loc) {
    if (past_ || count_ != part_.end) return past_;
    if (count_ == total_ || fingerprint_ != part_.fingerprint_at_end) refuse(loc);
    return past_ = true;
  }
  /// Counts an operation, or a function with a rule: whether the run records it.
  bool counts() {
    if (++count_ == part_.begin) fingerprint_at_begin_ = fingerprint_;
    return count_ > part_.begin;
  }

  Datums handle_step(Step b) override {
    if (ended(b.loc())) return Datums(b.values().begin(), b.values().end());
    for (const Datum& y : b.values()) note(b.code(), y);
    Datums results =
        numbers(b.values(), [this](const Datum& y) { return make_number<Variable>(y, names_++); });
    if (counts()) tape_.push_back([this, b = std::move(b), results] { undo(b, results); });
    return results;
  }

  void undo(const Step& b, const Datums& results) {
    Datums cotangents;
    for (const Datum& r : results) {
      const auto* y = number_of<Variable>(r);
      const auto own = y ? adjoints_.extract(y->name) : decltype(adjoints_)::node_type();
      cotangents.push_back(own.empty() || !own.mapped()->touched() ? Datum() : own.mapped()->get(b.backward()));
    }
    b.propagate(cotangents, [this](const Datum& x) -> Cell& {
      const auto* v = number_of<Variable>(x);
      return cell(v->name, v->primal);
    });
  }

  Cell& cell(Name x, const Datum& like) {
    CellPtr& c = adjoints_[x];
    if (!c) c = eager_cell(like);
    return *c;
  }

  /// Operations and the numbers they give, in order, as one number.
  void note(Opcode code, const Datum& y) {
    const Datum& v = strip(y);
    const std::uint64_t bits = v.is_literal() ? std::bit_cast<std::uint64_t>(v.f()) : 0;
    fingerprint_ = (fingerprint_ ^ (bits + static_cast<std::uint64_t>(code))) * 0x9e3779b97f4a7c15u;
    fingerprint_ ^= fingerprint_ >> 29;
  }
  [[noreturn]] void refuse(const Location& loc) const {
    raise_at(loc,
             "grad<mode::divide_and_conquer>: expected a program that does the same each time it is run, got "
             "other "
             "operations or numbers the second time; use another mode where a program reads what it changes");
  }

  Name inputs_ = 0;
  bool measuring_ = false;
  bool past_ = false;
  Part part_{};
  std::size_t count_ = 0;
  Name names_ = 0;
  std::size_t total_ = kEndless;
  std::size_t longest_ = 0;
  std::uint64_t fingerprint_ = 0, fingerprint_at_begin_ = 0;
  std::vector<std::function<void()>> tape_;
  std::map<Name, CellPtr> adjoints_;
};

}  // namespace

std::shared_ptr<EagerReverse> make_divide_and_conquer(std::uint64_t tag) {
  return std::make_shared<DivideAndConquer>(tag);
}

}  // namespace lantern::core::ad
