// Tapes as statements.
//
// A loop that pushes to a tape, or pops from it, once an iteration keeps the top of the tape in a variable of its
// own: plain stores and loads through a pointer. Where the number of iterations is known there is room for all of
// them before the loop starts; otherwise each iteration compares the top with the end of the memory. Tapes of bounded size
// lie in arrays of their function (static_tapes.hpp).
#include <algorithm>

#include "lantern/codegen/statement_printer.hpp"
#include "lantern/ir/checkpoint.hpp"
#include "lantern/ir/error.hpp"

namespace lantern::codegen {

namespace {

const Value* taped(const Op& op) { return taped_values(op).front(); }

/// Truth values in lanes: a tape holds one bit for each lane.
bool is_packed(const ir::Type& type) { return type.is_vector() && type.kind() == Kind::boolean; }

}  // namespace

/// The element type of a tape whose values have one type and lie side by side; empty for any other.
std::string StatementPrinter::plain_tape(const Op& op) {
  if (unit_.escapes().tape_slot(op.integer) != 0) return "";
  const ir::Type& type = taped(op)->type;
  if (!type.is_scalar() ||
      std::ranges::any_of(taped_values(op), [&](const Value* v) { return v->type != type; }))
    return "";
  if (is_packed(type)) return packed_truths(type.lanes());
  return type.is_vector() ? unit_.type(type) + "_memory" : unit_.target().element(type.kind());
}

/// What is put on a tape for a value, and what a value is of what is there: of truth values in lanes, bits.
std::string StatementPrinter::taped_text(const Value* v, const std::string& text) {
  if (!is_packed(v->type)) return text;
  return unit_.prelude().vector_function("pack", Kind::boolean, v->type.lanes()) + "(" + text + ")";
}
std::string StatementPrinter::untaped_text(const Value* v, const std::string& text) {
  if (!is_packed(v->type)) return text;
  return unit_.prelude().vector_function("unpack", Kind::boolean, v->type.lanes()) + "(" + text + ")";
}

/// What names the functions for such a tape.
std::string StatementPrinter::tape_suffix(const Op& op) {
  const ir::Type& type = taped(op)->type;
  if (is_packed(type)) return "bits" + std::to_string(std::max(type.lanes(), 8));
  return type.is_vector() ? unit_.type_name(type) : ir::kind_name(type.kind());
}

/// Gives the tapes that a loop's body itself works on, in one direction, a pointer each. `iterations`: how often
/// the loop runs, where that is known.
std::vector<std::int64_t> StatementPrinter::open_tapes(const Op& loop, const std::optional<Iterations>& iterations) {
  struct Tape {
    const Op* first;
    std::size_t uses = 0;
    bool simple = true;
  };
  std::vector<std::pair<std::int64_t, Tape>> tapes;
  bool calls = false;
  for (const ir::Block* block : loop.blocks)
    ir::walk(const_cast<ir::Block*>(block), [&](const Op* op) {
      calls |= op->is(Opcode::call_, Opcode::jump_);
      if (!ir::is_on_tape(*op)) return;
      auto it = std::ranges::find(tapes, op->integer, &std::pair<std::int64_t, Tape>::first);
      if (it == tapes.end()) it = tapes.insert(it, {op->integer, Tape{op}});
      Tape& t = it->second;
      t.uses += taped_values(*op).size();
      t.simple &= op->parent == loop.blocks[1] && op->code == t.first->code && !plain_tape(*op).empty() &&
                  taped(*op)->type == taped(*t.first)->type;
    });
  std::vector<std::int64_t> opened;
  // What is called may work on the same tape.
  if (calls || !unit_.target().contiguous_tapes()) return opened;
  for (const auto& [number, t] : tapes) {
    if (!t.simple || tape_tops_.contains(number)) continue;
    const Op& op = *t.first;
    const std::string element = plain_tape(op), id = std::to_string(number);
    const std::string suffix = tape_suffix(op);
    TapeTop top{names_.unique("tape" + id), "", suffix};
    const auto make = [&](const std::string& name, const std::string& function, const std::string& more) {
      unit_.prelude().tape_function(function, suffix, element, "");
      line(element + "* " + name + " = lt_" + function + "_" + suffix + "(" + ws() + ", " + id + more + ");");
    };
    const bool push = op.is(Opcode::push_);
    if (push && iterations) {
      make(top.name, "room", ", " + iterations->first.text() + ", " + iterations->last.text() + ", " + std::to_string(t.uses));
    } else {
      make(top.name, "top", "");
      if (push) {
        top.end = names_.unique(top.name + "_end");
        make(top.end, "end", "");
        unit_.prelude().tape_function("more", suffix, element, "");
      }
    }
    tape_tops_.emplace(number, std::move(top));
    opened.push_back(number);
  }
  return opened;
}

void StatementPrinter::close_tapes(const std::vector<std::int64_t>& opened) {
  for (const std::int64_t number : opened) {
    unit_.prelude().need("leave_tape");
    line("lt_leave_tape(" + ws() + ", " + std::to_string(number) + ", (char*)" + tape_tops_.at(number).name +
         ");");
    tape_tops_.erase(number);
  }
}

/// Arrays for the tapes that a block fills and empties, and pointers to their tops.
void StatementPrinter::open_static_tapes(const ir::Block* block) {
  const auto found = static_tapes_.find(block);
  if (found == static_tapes_.end()) return;
  for (const StaticTape& tape : found->second) {
    const std::string element = plain_tape(*tape.first);
    if (element.empty()) continue;
    const std::string name = names_.unique("tape" + std::to_string(tape.number));
    const std::string memory = names_.unique(name + "_memory");
    line(element + " " + memory + "[" + std::to_string(tape.values) + "];");
    line(element + "* " + name + " = " + memory + ";");
    tape_tops_.emplace(tape.number, TapeTop{name, "", ""});
  }
}

void StatementPrinter::close_static_tapes(const ir::Block* block) {
  const auto found = static_tapes_.find(block);
  if (found == static_tapes_.end()) return;
  for (const StaticTape& tape : found->second) tape_tops_.erase(tape.number);
}

/// A tensor on a tape with its elements: sizes last, so that they are found from the top.
void StatementPrinter::tape_elements(const Op& op) {
  const ir::Type& type = taped(op)->type;
  const bool push = op.is(Opcode::push_);
  const std::string f =
      unit_.prelude().tensor_function(on_gpu(push ? "save" : "load"), type.element(), type.rank());
  const std::string list = "(" + ws() + ", " + std::to_string(op.integer);
  if (push) return line(f + list + ", " + text(op.operands[0]) + ");");
  ++allocations_;
  define_statement(op.result(), Expression(f + list + ")"));
}

/// Through the pointer of the loop around.
void StatementPrinter::tape(const Op& op, const TapeTop& top) {
  const std::vector<Value*>& values = taped_values(op);
  const std::string count = std::to_string(values.size());
  if (op.is(Opcode::pop_)) {
    if (values.size() == 1 && uses_.count(values[0]) > 0)
      return define_statement(values[0], Expression(untaped_text(values[0], "*--" + top.name)));
    line(values.size() == 1 ? "--" + top.name + ";" : top.name + " -= " + count + ";");
    fetch_below(op, top.name);
    return elements(values, top.name);
  }
  std::vector<std::string> pushed;
  for (const Value* v : values) pushed.push_back(taped_text(v, text(v)));
  if (!top.end.empty()) {
    const std::string arguments = "_" + top.suffix + "(" + ws() + ", " + std::to_string(op.integer);
    const std::string room =
        values.size() == 1 ? top.name + " == " + top.end : top.end + " - " + top.name + " < " + count;
    open("if (" + room + ") {");
    line(top.name + " = lt_more" + arguments + ", " + top.name + ", " + count + ");");
    line(top.end + " = lt_end" + arguments + ");");
    close();
  }
  if (values.size() == 1) return line("*" + top.name + "++ = " + pushed[0] + ";");
  for (std::size_t i = 0; i < pushed.size(); ++i)
    line(top.name + "[" + std::to_string(i) + "] = " + pushed[i] + ";");
  line(top.name + " += " + count + ";");
}

/// The values of a record that somebody asks for.
void StatementPrinter::elements(const std::vector<Value*>& values, const std::string& record) {
  for (std::size_t i = 0; i < values.size(); ++i)
    if (uses_.count(values[i]) > 0)
      define_statement(values[i], Expression(untaped_text(values[i], record + "[" + std::to_string(i) + "]")));
}

/// Vectors that take more than two cache lines are asked for before they are popped. (Only compilers that
/// have vectors know how to say that.)
void StatementPrinter::fetch_below(const Op& pop, const std::string& record) {
  const ir::Type& type = taped(pop)->type;
  if (!type.is_vector()) return;
  const std::size_t bytes = static_cast<std::size_t>(taped_bytes(type)) * pop.results.size();
  if (bytes <= 128) return;
  unit_.prelude().need("fetch_below");
  line("lt_fetch_below(" + record + ", " + std::to_string(bytes) + ");");
}

/// Several values of one type at once.
void StatementPrinter::tape_record(const Op& op) {
  const std::vector<Value*>& values = taped_values(op);
  const bool push = op.is(Opcode::push_);
  const std::string element = plain_tape(op), name = names_.unique(push ? "record" : "recalled");
  const std::string f =
      unit_.prelude().tape_function(push ? "record" : "recall", tape_suffix(op), element, "");
  const std::string call = " = " + f + "(" + ws() + ", " + std::to_string(op.integer) + ", " +
                           std::to_string(values.size()) + ");";
  if (!push) {
    line("const " + element + "* " + name + call);
    fetch_below(op, name);
    return elements(values, name);
  }
  std::vector<std::string> pushed;
  for (const Value* v : values) {
    const Expression e = value(v);
    pushed.push_back(taped_text(v, e.text()));
    if (!e.calls()) continue;
    // What is called may work on the same tape: before there is room for the record.
    const std::string saved = names_.unique("saved");
    line(unit_.declaration(v->type, saved) + " = " + e.text() + ";");
    pushed.back() = taped_text(v, saved);
  }
  line(element + "* " + name + call);
  for (std::size_t i = 0; i < pushed.size(); ++i)
    line(name + "[" + std::to_string(i) + "] = " + pushed[i] + ";");
}

void StatementPrinter::tape(const Op& op) {
  if (const auto top = tape_tops_.find(op.integer); top != tape_tops_.end()) return tape(op, top->second);
  if (ir::owns_elements(op)) return tape_elements(op);
  if (taped_values(op).size() > 1 && unit_.target().contiguous_tapes() && !plain_tape(op).empty())
    return tape_record(op);
  const bool push = op.is(Opcode::push_);
  const std::vector<Value*>& values = push ? op.operands : op.results;
  const std::int64_t slot = unit_.escapes().tape_slot(op.integer);
  const auto function = [&](const Value* v) {
    const ir::Type& type = v->type;
    if (is_packed(type)) {
      const std::string bits = packed_truths(type.lanes());
      return unit_.prelude().tape_function(push ? "push" : "pop", "bits" + std::to_string(std::max(type.lanes(), 8)), bits,
                                           "(int64_t)sizeof(" + bits + ")");
    }
    if (type.is_vector()) {
      const std::string memory = unit_.type(type) + "_memory";
      return unit_.prelude().tape_function(push ? "push" : "pop", unit_.type_name(type), memory,
                                           "(int64_t)sizeof(" + memory + ")");
    }
    const std::string c_type = type.is_scalar() ? unit_.target().element(type.kind()) : unit_.type(type);
    const bool small = type.kind() == Kind::boolean || type.kind() == Kind::i32 || type.kind() == Kind::f32;
    const bool wide = slot > 0 && small;
    return unit_.prelude().tape_function(push ? "push" : "pop", unit_.type_name(type) + (wide ? "_wide" : ""),
                                         c_type,
                                         wide ? std::to_string(slot) : "(int64_t)sizeof(" + c_type + ")");
  };
  const std::string number = std::to_string(op.integer);
  if (push) {
    for (const Value* v : values) {
      const std::string pushed = taped_text(v, text(v));
      line(function(v) + "(" + ws() + ", " + number + ", " + pushed + ");");
    }
    return;
  }
  for (std::size_t i = values.size(); i-- > 0;) {  // the last one pushed comes first
    const std::string text = function(values[i]) + "(" + ws() + ", " + number + ")";
    if (uses_.count(values[i]) == 0) {
      line("(void)" + text + ";");
    } else {
      define_statement(values[i], Expression(untaped_text(values[i], text)));
    }
  }
}

}  // namespace lantern::codegen
