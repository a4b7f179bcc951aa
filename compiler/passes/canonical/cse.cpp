// Common subexpressions: a table of what is available, scoped by the nesting of blocks.
#include <bit>
#include <string_view>
#include <vector>

#include "lantern/compiler/passes/canonical/simplify.hpp"
#include "lantern/compiler/passes/support/rewrite.hpp"

namespace lantern::passes {

namespace {

std::uint64_t bits(double v) { return std::bit_cast<std::uint64_t>(v); }

std::size_t hash(const Op& op) {
  std::uint64_t h = static_cast<std::uint64_t>(op.code);
  const auto mix = [&](std::uint64_t v) {
    h = (h ^ v) * 0x9e3779b97f4a7c15ull;
    h ^= h >> 29;
  };
  mix(bits(op.number));
  mix(static_cast<std::uint64_t>(op.integer));
  mix(static_cast<std::uint64_t>(op.result()->type.element()));
  for (const Value* v : op.operands) mix(reinterpret_cast<std::uintptr_t>(v));
  return static_cast<std::size_t>(h);
}

/// Index notations: one text, one copy of it. (That of argmax is for its message alone.)
bool same_text(const Op& a, const Op& b) {
  return a.is(Opcode::argmax_) || a.text == b.text || (a.text && b.text && std::string_view(a.text) == b.text);
}

bool equal(const Op& a, const Op& b) {
  return a.code == b.code && a.integer == b.integer && bits(a.number) == bits(b.number) &&
         a.operands == b.operands && same_text(a, b) && a.result()->type == b.result()->type;
}

/// The expressions available. The last one added is the first one removed: then a slot that falls empty was
/// empty when the others looked for theirs.
class ValueTable {
 public:
  /// The expression that is known already and the same, or this one, which then is known.
  Op* find_or_add(Op* op) {
    if (2 * (known_.size() + 1) > slots_.size()) grow();
    const std::size_t h = hash(*op);
    std::size_t i = h & (slots_.size() - 1);
    for (; slots_[i] != 0; i = (i + 1) & (slots_.size() - 1)) {
      const Known& k = known_[slots_[i] - 1];
      if (k.hash == h && equal(*k.op, *op)) return k.op;
    }
    known_.push_back({h, op});
    slots_[i] = static_cast<std::uint32_t>(known_.size());
    return op;
  }
  std::size_t size() const { return known_.size(); }
  void shrink(std::size_t size) {
    for (; known_.size() > size; known_.pop_back()) {
      std::size_t i = known_.back().hash & (slots_.size() - 1);
      while (slots_[i] != known_.size()) i = (i + 1) & (slots_.size() - 1);
      slots_[i] = 0;
    }
  }

 private:
  struct Known {
    std::size_t hash;
    Op* op;
  };

  void grow() {
    slots_.assign(std::bit_ceil(4 * known_.size() + 16), 0);
    for (std::uint32_t n = 0; n < known_.size(); ++n) {
      std::size_t i = known_[n].hash & (slots_.size() - 1);
      while (slots_[i] != 0) i = (i + 1) & (slots_.size() - 1);
      slots_[i] = n + 1;
    }
  }

  std::vector<Known> known_;          ///< in the order in which they were added
  std::vector<std::uint32_t> slots_;  ///< by open addressing: which of them, plus one
};

/// A function of its operands and attributes alone.
bool is_expression(const Op& op) {
  // Of two that are distinguished by their labels each is wanted.
  if (ir::has_text(op.code) && !ir::is_einsum(op.code)) return false;
  if (op.is(Opcode::undef_, Opcode::closure_, Opcode::yield_)) return false;
  if (op.is(Opcode::copy_)) return false;  // for memory of its own
  return ir::is_pure(op) && op.results.size() == 1;
}

/// A tensor of one value that is made outside a loop: each iteration that updates it would have to copy it, which
/// takes longer than making it.
bool is_cheaper_made(const Op& op, const Op& first) {
  if (!op.result()->type.is_tensor() || !op.is(Opcode::zeros_like_, Opcode::fill_)) return false;
  for (const Block* b = op.parent; b && b != first.parent; b = b->parent ? b->parent->parent : nullptr)
    if (b->parent && b->parent->is(Opcode::loop_)) return true;
  return false;
}

class Sharing : public Rewriter {
 public:
  using Rewriter::Rewriter;

 private:
  Action enter(Op* op) override {
    if (!is_expression(*op)) return Action::keep;
    Op* first = known_.find_or_add(op);
    if (first == op || is_cheaper_made(*op, *first)) return Action::keep;
    if (!first->loc.known()) first->loc = op->loc;
    replace(op->result(), first->result());
    return Action::drop;
  }
  void block_opened(Block*) override { scopes_.push_back(known_.size()); }
  void block_closed(Block*) override {
    const std::size_t before = scopes_.back();
    scopes_.pop_back();
    if (!scopes_.empty()) known_.shrink(before);
  }

  ValueTable known_;
  std::vector<std::size_t> scopes_;  ///< how much was known before each open block
};

}  // namespace

bool cse(ir::Function& function) { return Sharing(function).run(); }

}  // namespace lantern::passes
