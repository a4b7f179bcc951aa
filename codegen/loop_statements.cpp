// Loops: which form of the language's they take, what their states are called, and the memory of an iteration.

#include "lantern/codegen/statement_printer.hpp"

namespace lantern::codegen {

/// What adds a constant to the state that is an operand of a loop's condition, or takes it away; null where another value is
/// compared, or something asks for the last value of the state.
const Op* StatementPrinter::next_of_compared(const Op& loop, std::size_t operand, Opcode by) const {
  const ir::Block *head = loop.blocks[0], *body = loop.blocks[1];
  const Op* const condition = head->ops.back()->operands[0]->def;
  if (!condition || ir::info(condition->code).rule != ir::Rule::compare) return nullptr;
  const Value* const state = condition->operands[operand];
  if (state->def || state->block != head || uses_.count(loop.results[state->index]) != 0) return nullptr;
  const Op* const next = body->ops.back()->operands[state->index]->def;
  return next && next->parent == body && next->is(by) && next->operands[0] == body->params[state->index] &&
                 is_constant(next->operands[1])
             ? next
             : nullptr;
}

/// The state that makes this a counting loop, `for (i = lo; ...; ++i)`, or none.
std::size_t StatementPrinter::counter(const Op& loop) const {
  constexpr auto none = static_cast<std::size_t>(-1);
  const Op* const next = next_of_compared(loop, 0, Opcode::add_);
  if (!next || !next->result()->type.is_integer() || uses_.count(next->result()) != 1) return none;
  if (next->operands[1]->def->integer != 1 && may_wrap(*next, next->result()->type.kind())) return none;
  return next->operands[0]->index;
}

/// True for a state that needs no variable: its memory is that of its first value in every iteration, under a name
/// that does not change meanwhile. A debugger shows what the user has named.
bool StatementPrinter::shares_name(const Op& loop, std::size_t i) {
  if (!loop.results[i]->type.is_tensor() || !keeps_memory(loop, i)) return false;
  if (unit_.options().line_directives && loop.blocks[1]->params[i]->name) return false;
  return value(loop.operands[i]).operands().empty();
}

/// The state that makes this a loop that counts down, `for (i = hi; i-- > lo;)`, or none: iterations only ask for
/// the number below the state's.
std::size_t StatementPrinter::falling(const Op& loop) const {
  constexpr auto none = static_cast<std::size_t>(-1);
  const Op* const next = next_of_compared(loop, 1, Opcode::sub_);
  if (!next || next->operands[1]->def->integer != 1) return none;
  const Op& condition = *loop.blocks[0]->ops.back()->operands[0]->def;
  const Value *low = condition.operands[0], *param = next->operands[0];
  if (!condition.is(Opcode::lt_) || uses_.count(condition.operands[1]) != 1 || uses_.count(param) != 1) return none;
  if (low->block == loop.blocks[0] && !is_constant(low)) return none;
  return unit_.options().line_directives && param->name ? none : param->index;
}

void StatementPrinter::loop(const Op& op) {
  if (place_ == Place::host)
    if (const Kernel* found = unit_.kernel(&op)) return kernel(op, *found);
  const ir::Block *head = op.blocks[0], *body = op.blocks[1];
  checks_before(op);
  const std::size_t count = counter(op), none = static_cast<std::size_t>(-1);
  const std::size_t down = count == none ? falling(op) : none;
  Sink sink;
  std::vector<std::string> declarations;
  bool owns = false;
  for (std::size_t i = 0; i < op.operands.size(); ++i) {
    const ir::Type& type = op.results[i]->type;
    sink.types.push_back(type);
    if (!uses_.live_state(&op, i)) {
      declarations.emplace_back();
      sink.targets.emplace_back();
      continue;
    }
    owns |= owns_memory(type) && !keeps_memory(op, i);
    check_fits(op.operands[i], type, "loop state", op);
    const std::string initial = text(op.operands[i]);
    if (shares_name(op, i)) {
      for (const Value* v : {head->params[i], body->params[i], op.results[i]}) bind_same(v, op.operands[i]);
      declarations.emplace_back();
      sink.targets.emplace_back();
      continue;
    }
    const Value* named = i == down               ? body->ops.back()->operands[i]
                         : body->params[i]->name ? body->params[i]
                         : head->params[i]->name ? head->params[i]
                                                 : op.results[i];
    const std::string name = fresh_name(named, type.is_integer() ? "n" : type.is_tree() ? "t" : "s");
    const std::optional<std::string> halves = in_halves(type);
    declarations.push_back((halves ? *halves + " " + name : unit_.declaration(type, name)) + " = " + initial);
    sink.targets.push_back(name);
    for (const Value* v : {head->params[i], body->params[i]}) {
      bind(v, halves ? called(name + ".all", {}).varying_with(Expression::variable(name)) : Expression::variable(name));
    }
    set_dims(head->params[i], dims(op.results[i]));
    set_dims(body->params[i], dims(op.results[i]));
  }
  for (std::size_t i = 0; i < declarations.size(); ++i)
    if (i != count && i != down && !declarations[i].empty()) line(declarations[i] + ";");
  const std::vector<std::int64_t> tapes = open_tapes(op, count == none ? std::nullopt : iterations(op, count));
  const std::size_t start = statements_.size(), counted = count != none ? count : down;
  const int allocations = allocations_;

  // The condition becomes part of the head, unless it needs statements of its own.
  if (place_ == Place::block) barrier();
  open("for (;;) {");
  const std::size_t construct = open_.size() - 1;
  const Op* self = current_;
  for (const Op* o : head->ops) {
    if (o->is(Opcode::yield_) || !uses_.live(o)) continue;
    current_ = o;
    operation(*o);
  }
  const Expression condition = value(head->ops.back()->operands[0]);
  current_ = self;
  if (!statements_.empty()) {
    line("if (" + prefix("!", condition).text() + ") break;");
    if (counted != none) {
      Statement declaration = declarations[counted] + ";";
      declaration.comments = std::exchange(open_[construct].head.comments, {});
      open_[construct].before.push_back(std::move(declaration));
    }
  } else if (down != none) {
    const Op& test = *head->ops.back()->operands[0]->def;
    const Op& next = *body->ops.back()->operands[down]->def;
    bind(next.result(), sink.targets[down]);
    in_header_.insert(&next);
    open_[construct].head.text = "for (" + declarations[down] + "; " +
                                 binary(Expression(sink.targets[down] + "--"), ">", value(test.operands[0])).text() + ";) {";
    sink.skip = down;
  } else if (count != none) {
    const std::int64_t step = body->ops.back()->operands[count]->def->operands[1]->def->integer;
    const std::string& name = sink.targets[count];
    open_[construct].head.text = "for (" + declarations[count] + "; " + condition.text() + "; " +
                                 (step == 1 ? "++" + name : name + " += " + integer_literal(step).text()) +
                                 ") {";
    sink.skip = count;
  } else {
    open_[construct].head.text = "while (" + condition.text() + ") {";
  }
  const std::size_t names = names_.mark();
  const std::string mark = names_.unique("mark");
  block(body, sink);
  if (place_ == Place::block) barrier();
  // Tensors of one iteration that nothing refers to any more are forgotten: loops run in constant memory.
  const bool leaves = allocations_ > allocations && !unit_.escapes().from(const_cast<ir::Block*>(body));
  Statements before;
  const std::string prefix = place_ == Place::host ? "lt_device_" : "lt_";
  if (leaves) before.push_back("const " + prefix + "position " + mark + " = " + memory("mark") + "(ws);");
  if (leaves && owns) {
    before.push_back(prefix + "position " + keep_state(op, sink, mark) + " = " + mark + ";");
  } else if (leaves) {
    line(prefix + "release(" + ws() + ", " + mark + ");");
    allocations_ = allocations;
  } else {
    names_.release(names);
  }
  close();
  touched_.read |= place_ == Place::block;  // its condition may read
  const auto at = statements_.begin() + static_cast<std::ptrdiff_t>(start);
  statements_.insert(at, std::make_move_iterator(before.begin()), std::make_move_iterator(before.end()));
  if (leaves && owns) {
    line(memory("reuse") + "(ws, " + mark + ".unused);");
  } else if (leaves) {
    line((place_ == Place::host ? "ws->device->unused = " : "ws->unused = ") + mark + ".unused;");
  }
  close_tapes(tapes);
  for (std::size_t i = 0; i < op.results.size(); ++i)
    if (!sink.targets[i].empty())
      bind(op.results[i], sink.targets[i] + (in_halves(op.results[i]->type) ? ".all()" : ""));
}

/// The type of a variable that holds a vector wider than a register from iteration to iteration, where g++ may compile it.
std::optional<std::string> StatementPrinter::in_halves(const ir::Type& type) {
  const PrintOptions& options = unit_.options();
  const bool others_compile = options.standalone && unit_.target().is_cpp() && options.register_lanes > 0;
  if (!others_compile || !type.is_vector()) return {};
  const int registers = type.lanes() * lane_bytes(type.kind()) / (8 * options.register_lanes);
  if (registers < 2) return {};
  return unit_.prelude().vector_function("halves", type.kind(), type.lanes());
}

/// At the end of an iteration: of what it allocated only the new state stays, moved down where the arena got
/// crowded. The variable that says since when, to begin at the mark.
std::string StatementPrinter::keep_state(const Op& loop, const Sink& sink, const std::string& mark) {
  const std::string compact = memory("compact"), prefix = place_ == Place::host ? "lt_device_" : "lt_";
  std::vector<std::pair<std::string, std::string>> kept;  // variables, and their bytes
  std::string data, sizes, total;
  for (std::size_t i = 0; i < loop.results.size(); ++i) {
    const ir::Type& type = loop.results[i]->type;
    if (sink.targets[i].empty() || !type.is_tensor() || keeps_memory(loop, i)) continue;
    const std::string& name = sink.targets[i];
    std::string bytes = "(int64_t)sizeof *" + name + ".data";
    for (int d = 0; d < type.rank(); ++d) bytes += " * " + name + ".dim[" + std::to_string(d) + "]";
    data += (data.empty() ? "(char*)" : ", (char*)") + name + ".data";
    sizes += (sizes.empty() ? "" : ", ") + bytes;
    total += (total.empty() ? "" : " + ") + bytes;
    kept.emplace_back(name, unit_.target().element(type.element()));
  }
  const std::string since = names_.unique(mark + "_kept"), moved = names_.unique("moved");
  open("if (" + prefix + "crowded(" + ws() + ", " + since + ", " + total + ")) {");
  line("char* " + moved + "[] = {" + data + "};");
  line("const int64_t " + moved + "_bytes[] = {" + sizes + "};");
  line(compact + "(ws, " + mark + ", " + std::to_string(kept.size()) + ", " + moved + ", " + moved +
       "_bytes);");
  for (std::size_t i = 0; i < kept.size(); ++i)
    line(kept[i].first + ".data = (" + kept[i].second + "*)" + moved + "[" + std::to_string(i) + "];");
  line(since + " = " + prefix + "here(ws);");
  close();
  return since;
}

/// How often a counting loop runs (or a number below one, where it does not run), if that shows beforehand.
std::optional<StatementPrinter::Iterations> StatementPrinter::iterations(const Op& loop, std::size_t count) {
  const Op& test = *loop.blocks[0]->ops.back()->operands[0]->def;
  const Value* bound = test.operands[1];
  const Op& step = *loop.blocks[1]->ops.back()->operands[count]->def;
  if (!test.is(Opcode::lt_) || step.operands[1]->def->integer != 1) return {};
  if (bound->block == loop.blocks[0] && !is_constant(bound)) return {};
  return Iterations{value(loop.operands[count]), value(bound)};
}
}  // namespace lantern::codegen
