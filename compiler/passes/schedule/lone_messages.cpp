// Halves of messages, by what they carry.
#include "lantern/compiler/passes/schedule/lone_messages.hpp"

#include <map>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "lantern/ir/error.hpp"
#include "lantern/ir/external.hpp"

namespace lantern::passes {

using ir::Op;
using ir::Opcode;
using ir::Value;

namespace {

// As in runtime/distributed/kernels.h.
constexpr std::int64_t reductions = 4, kinds_of_roles = 5, cotangent = 2;

/// Whether what is sent goes to where the program has sent from.
bool is_transposed(std::int64_t roles) {
  bool is = false;
  for (; roles > 0; roles /= kinds_of_roles) is ^= roles % kinds_of_roles == cotangent;
  return is;
}

class Messages {
 public:
  explicit Messages(const ir::Module& module) {
    std::vector<ir::Block*> all{module.entry->body};
    for (const ir::Function* f : ir::callees(module.entry->body)) all.push_back(f->body);
    for (ir::Block* block : all)
      ir::walk(block, [&](const Op* op) {
        if (op->callee) calls_[op->callee].push_back(op);
        if (ir::exchange_of(*op) == ir::exchange_of_two) halves_.push_back(op);
      });
  }

  /// A half of a derivative without the other one; null where there is none. Whether it sends.
  std::pair<const Op*, bool> lone() {
    struct Sides {
      const Op *sent = nullptr, *received = nullptr;
    };
    std::map<std::pair<std::int64_t, std::string>, Sides> messages;
    bool any[] = {false, false};  // the program's own sends and receives
    for (const Op* op : halves_) {
      const Op* const what = op->operands[2]->def;
      if (!what || !what->is(Opcode::constant_)) return {};
      const std::int64_t roles = what->integer / reductions;
      Sides& sides = messages[{roles, op->text}];
      if (!is_none(op->operands[3])) sides.sent = op, any[is_transposed(roles)] = true;
      if (!is_none(op->operands[4])) sides.received = op, any[!is_transposed(roles)] = true;
    }
    if (!any[0] || !any[1]) return {};
    for (const auto& [key, sides] : messages)
      if (key.first != 0 && !(sides.sent && sides.received)) return {sides.sent ? sides.sent : sides.received, sides.sent != nullptr};
    return {};
  }

 private:
  /// Whether a rank is -1 wherever it comes from. A value that is being asked for is.
  bool is_none(const Value* rank) {
    if (!asked_.insert(rank).second) return true;
    bool none = false;
    if (const Op* const def = rank->def) {
      if (def->is(Opcode::constant_)) none = def->integer == -1;
      if (def->is(Opcode::call_) && def->callee->body->terminated()) none = is_none(def->callee->body->yields()[rank->index]);
    } else if (const ir::Function* const f = rank->block->function; f && f->body == rank->block && calls_.contains(f)) {
      none = true;
      for (const Op* call : calls_.at(f)) none &= call->is(Opcode::call_) && is_none(call->operands[rank->index]);
    }
    asked_.erase(rank);
    return none;
  }

  std::vector<const Op*> halves_;
  std::unordered_map<const ir::Function*, std::vector<const Op*>> calls_;
  std::unordered_set<const Value*> asked_;
};

}  // namespace

void refuse_lone_messages(const ir::Module& module) {
  if (module.entry == nullptr || module.entry->body == nullptr) return;
  const auto [half, sends] = Messages(module).lone();
  if (half == nullptr) return;
  const std::string where = half->loc.str();
  raise((where.empty() ? "" : where + ": error: ") +
            "distributed::send_receive: a part of this derivative would wait for ever, for no rank " +
            (sends ? "receives what is sent here" : "sends what is received here") +
            "; to a `send` of what is differentiated belongs a `receive` whose `like` is differentiated, and the other way around");
}

}  // namespace lantern::passes
