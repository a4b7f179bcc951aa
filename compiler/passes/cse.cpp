// Common subexpressions: a table of what is at hand, scoped by the nesting of blocks.
#include <bit>
#include <unordered_set>

#include "lantern/compiler/passes/rewrite.hpp"
#include "lantern/compiler/passes/simplify.hpp"

namespace lantern::passes {

namespace {

std::uint64_t bits(double v) { return std::bit_cast<std::uint64_t>(v); }

struct Hash {
  std::size_t operator()(const Op* op) const {
    std::uint64_t h = static_cast<std::uint64_t>(op->code);
    const auto mix = [&](std::uint64_t v) {
      h = (h ^ v) * 0x9e3779b97f4a7c15ull;
      h ^= h >> 29;
    };
    mix(bits(op->number));
    mix(static_cast<std::uint64_t>(op->integer));
    mix(static_cast<std::uint64_t>(op->result()->type.element()));
    for (const Value* v : op->operands) mix(reinterpret_cast<std::uintptr_t>(v));
    return static_cast<std::size_t>(h);
  }
};

struct Equal {
  bool operator()(const Op* a, const Op* b) const {
    return a->code == b->code && a->integer == b->integer && bits(a->number) == bits(b->number) &&
           a->operands == b->operands && a->result()->type == b->result()->type;
  }
};

/// A function of its operands and attributes alone.
bool is_expression(const Op& op) {
  // Of two that are told apart by their labels each is wanted.
  if (ir::has_text(op.code)) return false;
  if (op.is(Opcode::undef_) || op.is(Opcode::closure_) || op.is(Opcode::yield_)) return false;
  if (op.is(Opcode::copy_)) return false;  // for memory of its own
  return ir::info(op.code).effect == ir::Effect::none && op.blocks.empty() && op.results.size() == 1;
}

class Sharing : public Rewriter {
 public:
  using Rewriter::Rewriter;

 private:
  Action enter(Op* op) override {
    if (!is_expression(*op)) return Action::keep;
    const auto [at, added] = known_.insert(op);
    if (added) {
      scopes_.back().push_back(op);
      return Action::keep;
    }
    Op* first = *at;
    if (!first->loc.known()) first->loc = op->loc;
    replace(op->result(), first->result());
    return Action::drop;
  }
  void block_opened(Block*) override { scopes_.emplace_back(); }
  void block_closed(Block*) override {
    for (Op* op : scopes_.back()) known_.erase(op);
    scopes_.pop_back();
  }

  std::unordered_set<Op*, Hash, Equal> known_;
  std::vector<std::vector<Op*>> scopes_;  ///< what each open block has added
};

}  // namespace

bool cse(ir::Function& function) { return Sharing(function).run(); }

}  // namespace lantern::passes
