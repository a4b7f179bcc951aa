// One walk over each function, with all properties asked of each operation.
#include "lantern/ir/form.hpp"

#include "lantern/ir/error.hpp"
#include "lantern/ir/print.hpp"
#include "lantern/ir/shape.hpp"
#include "lantern/ir/verify.hpp"

namespace lantern::ir {

namespace {

class Checker {
 public:
  Checker(const Function& function, Form form) : function_(function), form_(form) {}

  void run() {
    need(Property::direct, !function_.cps, nullptr, "a function in continuation-passing style");
    parameters(*function_.body, nullptr);
    walk(function_.body, [&](const Op* op) { operation(*op); });
  }

 private:
  void operation(const Op& op) {
    for (const Value* r : op.results) value(*r, &op);
    for (const Block* block : op.blocks) parameters(*block, &op);
    const bool continues = op.is(Opcode::fun_, Opcode::jump_, Opcode::closure_, Opcode::halt_);
    need(Property::direct, !continues, &op, "an operation of continuation-passing style");
    need(Property::closed, !op.is(Opcode::fun_), &op, "a continuation whose body is here");
    need(Property::unplaced, !op.is(Opcode::forget_), &op, "a tensor that is done with");
    need(Property::unplaced, !op.in_place, &op, "a mark that it works in place");
    const OpInfo& row = info(op.code);
    need(Property::lowered, !row.composed, &op, "an operation that is written out by others");
    need(Property::lowered, !is_pointwise(op), &op, "an operation on each element of a tensor");
    // Products that call a routine are added to what they are handed.
    need(Property::lowered, !row.in_notation() || op.is(Opcode::add_einsum_), &op, "a sum of products");
  }

  void parameters(const Block& block, const Op* op) {
    for (const Value* p : block.params) value(*p, op);
    // A loop carries no cells, and of those that a closure has captured the primals may not be wanted.
    for (std::size_t i = 0; i < block.params.size(); ++i) {
      const Type& type = block.params[i]->type;
      if (!type.is_ref()) continue;
      need(Property::paired, i > 0 && compatible(block.params[i - 1]->type, type.content()), op,
           i > 0 ? "a cell behind a parameter of another type" : "a cell as first parameter");
    }
  }

  void value(const Value& v, const Op* op) {
    need(Property::direct, !v.type.is_cont() && !v.type.is_ref(), op, v.type);
    need(Property::scalar, !v.type.is_vector(), op, v.type);
  }

  static std::string text(const char* s) { return s; }
  static std::string text(const Type& type) { return type.str(); }

  template <class Got>
  void need(Property property, bool ok, const Op* op, const Got& got) const {
    if (ok || !form_.has(property)) return;
    std::string where = "in " + function_text(function_.name);
    if (op) where += ", at '" + print(*op, Names(function_)) + "'";
    throw InternalError(where + ": expected " + describe(property) + ", got " + text(got));
  }

  const Function& function_;
  Form form_;
};

void check_entry(const Module& module) {
  const std::string expected = "expected " + describe(Property::callable) + ", got ";
  if (!module.entry) throw InternalError(expected + "none");
  const auto data = [](const Type& t) { return !t.is_ref() && !t.is_cont() && !t.is_vector(); };
  for (const auto& types : {module.entry->parameter_types(), module.entry->result_types})
    for (const Type& t : types)
      if (!data(t)) throw InternalError("in " + function_text(module.entry->name) + ": " + expected + t.str());
}

}  // namespace

std::string describe(Property property) {
  switch (property) {
    case Property::paired: return "each cell that is handed over behind its primal, and of its type";
    case Property::scalar: return "no vectors before the schedule";
    case Property::unplaced: return "no decisions about memory before all operations are in order";
    case Property::direct: return "direct style (no continuations, no cells)";
    case Property::lowered: return "loops over elements in place of operations on tensors";
    case Property::closed: return "closed functions (continuations as functions of the module)";
    case Property::callable: return "an entry that takes and gives data";
  }
  return "?";
}

void verify(const Module& module, Form form) {
  verify(module);
  if (form.has(Property::callable)) check_entry(module);
  for (const Function* f : module.functions()) Checker(*f, form).run();
}

}  // namespace lantern::ir
