// Exchanges as calls that are queued on the stream of a GPU.
#include "lantern/codegen/communication.hpp"

#include <algorithm>
#include <string>

#include "lantern/codegen/statement_printer.hpp"
#include "lantern/ir/escape.hpp"
#include "lantern/ir/external.hpp"

namespace lantern::codegen {

bool is_queued(const Op& op) {
  const std::int64_t operation = ir::exchange_of(op);
  return operation >= 0 && (operation <= ir::last_exchange_of_all || operation == ir::exchange_of_two);
}

bool needs_host_memory(const Op& op) {
  const auto tensor = [](const Value* v) { return v->type.is_tensor(); };
  return op.is(Opcode::external_) && !is_queued(op) &&
         (std::ranges::any_of(op.operands, tensor) || std::ranges::any_of(op.results, tensor));
}

bool queues_exchanges(const ir::Module& module) {
  bool found = false;
  for (const ir::Function* f : module.functions())
    if (f->body) ir::walk(f->body, [&](const Op* op) { found |= is_queued(*op); });
  return found;
}

/// Operands: communicator, operation, reduction, a, b, n, x, y. y is written from end to end.
void StatementPrinter::queued_exchange(const Op& op) {
  const Value* const x = op.operands[6];
  const Value* const y = op.operands[7];
  std::string list;
  for (std::size_t i = 0; i < 6; ++i) list += text(op.operands[i]) + ", ";
  const std::string sent = atom(x);
  const std::string received = changed_by(op, y, op.result());
  unit_.prelude().need("exchange");
  constexpr std::array kinds{ir::Kind::f64, ir::Kind::f32, ir::Kind::i64, ir::Kind::i32, ir::Kind::boolean};
  const auto kind = std::ranges::find(kinds, x->type.element()) - kinds.begin();
  line("lt_exchanged(ws, distributed_gpu_exchange(" + ir::c_string(where(op)) + ", &lt_queue, ws->device->stream, " + std::to_string(kind) +
       ", " + list + sent + ".data, " + received + ".data));");
}

}  // namespace lantern::codegen
