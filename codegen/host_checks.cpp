// Indices of a kernel's accesses, checked by the host before the launch:
//
//   if (lt_iterations(0, n) > 0) {
//     const lt_index_check checks[] = {{0, n, x.dim[0], "model.cpp:7"}, {0, n, y.dim[0], "model.cpp:7"}};
//     lt_check_indices(ws, checks, 2);
//   }
//
// An index is a number from around, or that of a loop of the kernel whose range is known before it. Where all
// checks of a kernel are such, none is left in it. An access that a branch may leave out is not checked so,
// but a side of joined loops has rows of its own (member_statements.cpp).
#include <map>
#include <optional>
#include <set>
#include <tuple>

#include "lantern/codegen/launch.hpp"
#include "lantern/codegen/member_sides.hpp"
#include "lantern/compiler/passes/analysis/loops.hpp"
#include "lantern/ir/escape.hpp"
#include "lantern/ir/text.hpp"

namespace lantern::codegen {

class StatementPrinter::HostChecks {
 public:
  HostChecks(StatementPrinter& printer, const Kernel& kernel)
      : printer_(printer), loop_(*kernel.nest.front()) {}

  /// Whether the host can check all that the kernel would.
  bool find(const Kernel& kernel) {
    std::vector<std::string> guards;
    for (const Op* o : kernel.nest)
      if (!enter(*o, guards)) return false;
    const ir::Block* const body = kernel.nest.back()->blocks[1];
    for (std::size_t d = 0; d + 1 < kernel.nest.size(); ++d)
      if (!look(kernel.nest[d]->blocks[1], guards, false, kernel.nest[d + 1])) return false;
    return look(body, guards, false, nullptr);
  }

  /// How many of the loops that were joined the host can check, if not all.
  std::optional<std::size_t> members() const { return members_; }

  void print() {
    for (const auto& [guard, checks] : checks_) {
      printer_.unit_.prelude().need("check_indices");
      printer_.ws();
      if (!guard.empty()) printer_.open("if (" + guard + ") {");
      const std::string name = printer_.names_.unique("checks");
      std::string all;
      for (const std::string& check : checks) all += (all.empty() ? "" : ", ") + check;
      printer_.line("const lt_index_check " + name + "[] = {" + all + "};");
      printer_.line("lt_check_indices(ws, " + name + ", " + std::to_string(checks.size()) + ");");
      if (!guard.empty()) printer_.close();
    }
  }

 private:
  struct Range {
    Expression first, end;

    std::string iterations() const { return called("lt_iterations", {first, end}).text(); }
  };

  bool is_known(const Value* v) const {
    if (is_constant(v)) return true;
    const auto known = printer_.bindings_.find(v);
    return ir::visible_from(v, loop_.parent) && known != printer_.bindings_.end() && !known->second.device;
  }

  /// The tensor outside of the kernel that one in it is in the memory of.
  const Value* around(const Value* v) const {
    for (v = memory_root(v); !v->def && v->block->parent && !ir::visible_from(v, loop_.parent) &&
                             v->block->parent->is(Opcode::loop_);)
      v = memory_root(v->block->parent->operands[v->index]);
    return v;
  }

  /// Notes the range of a loop's number, and that it has iterations.
  bool enter(const Op& loop, std::vector<std::string>& guards) {
    const auto count = passes::counted(&loop);
    if (!count || !is_known(count->first) || !is_known(count->bound)) return false;
    const Range range{printer_.value(count->first), printer_.value(count->bound)};
    ranges_[count->number] = range;
    guards.push_back(range.iterations());
    return true;
  }

  /// The accesses in a block. `skipped`: a loop in it that is looked at by itself.
  bool look(const ir::Block* block, const std::vector<std::string>& guards, bool may_be_left_out,
            const Op* skipped) {
    for (const Op* op : block->ops) {
      if (op == skipped || !printer_.uses_.live(op)) continue;
      if (op->is(Opcode::loop_)) {
        std::vector<std::string> inside = guards;
        const bool known = enter(*op, inside);
        if (!look(op->blocks[0], guards, true, nullptr)) return false;
        if (!look(op->blocks[1], inside, may_be_left_out || !known, nullptr)) return false;
      } else if (op->is(Opcode::branch_)) {
        const MemberSides sides = member_sides(*op, loop_);
        if (!may_be_left_out && sides.blocks.size() > 1) {
          if (!look(sides, guards)) return false;
        } else {
          for (const ir::Block* b : op->blocks)
            if (!look(b, guards, true, nullptr)) return false;
        }
      } else if (ir::is_access(*op)) {
        for (std::size_t i = 1; i <= static_cast<std::size_t>(op->operands[0]->type.rank()); ++i)
          if (!note(*op, i, guards, may_be_left_out)) return false;
      } else if (std::ranges::any_of(op->results, [](const Value* v) { return v->type.is_tensor(); }) ||
                 !op->blocks.empty()) {
        return false;
      }
    }
    return true;
  }

  /// Loops that were joined: each has the rows of its side.
  bool look(const MemberSides& sides, std::vector<std::string> guards) {
    const Value* const number = passes::counted(&loop_)->number;
    const Range all = ranges_.at(number);
    std::erase(guards, all.iterations());
    if (!std::ranges::all_of(sides.ends, [&](const Value* v) { return is_known(v); })) return false;
    for (std::size_t i = 0; i < sides.blocks.size(); ++i) {
      const Range side{i == 0 ? all.first : printer_.value(sides.ends[i - 1]),
                       i < sides.ends.size() ? printer_.value(sides.ends[i]) : all.end};
      const Range rows{integer_literal(0), side.end - side.first};
      std::vector<std::string> inside = guards;
      inside.push_back(side.iterations());
      ranges_.erase(number);
      if (i == 0) ranges_[number] = rows;
      if (const Value* own = sides.rows[i]) ranges_[own] = rows;
      const auto before = std::pair(checks_, seen_);
      if (!look(sides.blocks[i], inside, false,
                nullptr)) {  // the first failure is told: what comes behind is not checked before it
        std::tie(checks_, seen_) = before;
        return (members_ = i) > 0;
      }
    }
    ranges_[number] = all;
    return true;
  }

  /// The check of an index, unless none is needed; false where the host cannot make it.
  bool note(const Op& access, std::size_t operand, const std::vector<std::string>& guards,
            bool may_be_left_out) {
    const Value *const tensor = access.operands[0], *const index = access.operands[operand];
    const passes::KnownRange known = printer_.ranges_->of(access, operand);
    if ((known.low && known.high) || printer_.checked_before(access, known)) return true;
    const std::size_t dimension = operand - 1;
    const Value* const root = around(tensor);
    if (may_be_left_out || !is_known(root)) return false;
    Range range;
    if (const auto of_loop = ranges_.find(index); of_loop != ranges_.end())
      range = of_loop->second;
    else if (is_known(index))
      range = {printer_.value(index), printer_.value(index) + integer_literal(1)};
    else
      return false;
    const std::string size = printer_.dim(root, dimension).text();
    std::string guard;
    for (const std::string& g : std::set<std::string>(guards.begin(), guards.end()))
      guard += (guard.empty() ? "" : " && ") + g + " > 0";
    const std::string what = range.first.text() + ", " + range.end.text() + ", " + size;
    if (seen_.insert(guard + ": " + what).second)
      checks_[guard].push_back("{" + what + ", " + ir::c_string(printer_.where(access)) + "}");
    return true;
  }

  StatementPrinter& printer_;
  const Op& loop_;
  std::unordered_map<const Value*, Range> ranges_;
  std::map<std::string, std::vector<std::string>> checks_;  ///< by what has to hold
  std::set<std::string> seen_;
  std::optional<std::size_t> members_;
};

/// Checks on the host what the iterations of a kernel access, where it can check all; of joined loops those
/// before one that it cannot.
void StatementPrinter::checks_on_host(const Kernel& kernel, Launch& launch) {
  if (!unit_.options().bounds_checks) return;
  HostChecks checks(*this, kernel);
  if (!checks.find(kernel)) return;
  checks.print();
  launch.checked = !checks.members();
  launch.checked_members = checks.members().value_or(0);
}

}  // namespace lantern::codegen
