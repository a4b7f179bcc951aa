// Values, expressions and control flow.
#include "lantern/codegen/statement_printer.hpp"

#include <algorithm>

#include "lantern/compiler/passes/analysis/recurrence.hpp"
#include "lantern/ir/error.hpp"
#include "lantern/ir/escape.hpp"

namespace lantern::codegen {

namespace {

constexpr std::size_t longest_expression = 64;
constexpr std::size_t longest_operands = 80;

/// True where C computes an operand only if another one asks for it.
bool may_be_skipped(const Op& user, std::size_t operand) {
  return operand > 0 && user.is(Opcode::select_, Opcode::land_, Opcode::lor_, Opcode::finite_);
}

}  // namespace

StatementPrinter::StatementPrinter(Unit& unit, const ir::Function& function)
    : unit_(unit), function_(function), info_(unit.info(&function)), uses_(function), names_(&unit.names()) {
  if (unit.options().bounds_checks || !unit.integers_wrap()) ranges_.emplace(function, uses_);
  if (unit.target().has_kernels()) {
    place_ = unit.on_device(&function) ? Place::thread : unit.host_function(&function) ? Place::plain : Place::host;
    for (const char* taken : {"order", "failure", "thread", "ended", "i"}) names_.reserve(taken);
  }
  static_tapes_ = static_tapes(function, unit.escapes());
  bind_parameters();
  if (function.module->entry == &function && !function.cps) find_placed();
}

// ---- statements

void StatementPrinter::open(Statement head) {
  open_.push_back({std::move(head), std::exchange(statements_, {})});
}

/// What comes now is behind `else`.
void StatementPrinter::otherwise() {
  open_.back().head.body = std::exchange(statements_, {});
  open_.back().otherwise = true;
  leave(open_.size() - 1);
}

void StatementPrinter::close(const std::string& text) {
  Open construct = std::move(open_.back());
  open_.pop_back();
  (construct.otherwise ? construct.head.otherwise : construct.head.body) = std::move(statements_);
  construct.head.end = text;
  construct.head.end_place = debug_place({});
  statements_ = std::move(construct.before);
  statements_.push_back(std::move(construct.head));
  leave(open_.size());
}

/// What is known of numbers of the GPU, or was read, in more constructs than these is not known from here on.
void StatementPrinter::leave(std::size_t depth) {
  const auto inside = [&](const Known& k) { return k.depth > depth; };
  std::erase_if(device_numbers_, inside);
  for (const Known& k : read_)
    if (inside(k) && std::ranges::find(device_numbers_, k.value, &Known::value) != device_numbers_.end()) {
      bind(k.value, prefix("*", Expression(k.pointer)));
      bindings_[k.value].device = true;
    }
  std::erase_if(read_, inside);
}

std::string StatementPrinter::memory(const std::string& what) {
  const std::string name = place_ == Place::host ? "device_" + what : what;
  unit_.prelude().need(name);
  return "lt_" + name;
}

std::string StatementPrinter::ws() {
  used_workspace_ = true;
  unit_.prelude().need("workspace");
  return "ws";
}

std::string StatementPrinter::where(const Op& op) const {
  if (!op.loc.known()) return "";
  return std::string(op.loc.file) + ":" + std::to_string(op.loc.line);
}

// ---- values

/// What a value is called in the program; a tensor also by what goes on in its memory.
const char* StatementPrinter::name_of(const Value* v) const {
  constexpr int furthest = 16;
  for (int steps = 0; steps < furthest; ++steps) {
    if (v->name) return v->name;
    // What goes through a construct keeps the name it has inside.
    if (v->def && v->def->is(Opcode::loop_))
      for (const ir::Block* b : v->def->blocks)
        if (b->params[v->index]->name) return b->params[v->index]->name;
    if (!v->type.is_tensor() || uses_.count(v) != 1) return nullptr;
    const Op& user = *uses_.user(v);
    const auto i = static_cast<std::size_t>(std::ranges::find(user.operands, v) - user.operands.begin());
    if (user.is(Opcode::loop_) ? !keeps_memory(user, i) : i != 0 || !user.in_place) return nullptr;
    v = user.results[i];
  }
  return nullptr;
}

std::string StatementPrinter::fresh_name(const Value* v, const char* stem) {
  if (const char* name = name_of(v)) return names_.unique(name);
  if (const auto it = placed_.find(v); it != placed_.end())
    return names_.unique("result" + (placed_.size() > 1 ? std::to_string(it->second) : ""));
  if (!stem) {
    const bool cell = v->type.is_ref(), k = v->type.is_cont(), t = v->type.is_tree();
    stem = cell ? "d" : k ? "k" : t ? "t" : v->def ? "v" : "x";
  }
  return names_.numbered(stem);
}

/// A tensor in the memory of another, and of its shape, goes by the same name.
void StatementPrinter::bind_same(const Value* v, const Value* other) {
  set_dims(v, dims(other));
  bindings_[v] = Binding(bindings_.at(other));
}

void StatementPrinter::bind(const Value* v, Expression e) { bindings_[v] = {.expression = std::move(e)}; }

Expression StatementPrinter::value(const Value* v) {
  if (v->def && v->def->is(Opcode::constant_)) {
    const Kind kind = v->type.kind();
    if (v->type.is_float_element()) return float_literal(v->def->number, kind);
    if (kind == Kind::boolean) return Expression(unit_.target().boolean(v->def->integer != 0));
    return integer_literal(v->def->integer);
  }
  const auto it = bindings_.find(v);
  if (it == bindings_.end())
    throw InternalError("a value of " + function_.name + " is used before it is printed");
  if (it->second.device) {
    read_numbers(v);
    return bindings_.at(v).expression;
  }
  return it->second.expression;
}

std::string StatementPrinter::atom(const Value* v) {
  const auto it = bindings_.find(v);
  if (it != bindings_.end() && it->second.pending) materialise(v);
  const Expression e = value(v);
  return e.precedence() == Precedence::primary ? e.text() : "(" + e.text() + ")";
}

void StatementPrinter::materialise(const Value* v) {
  define_statement(v, Expression(bindings_.at(v).expression));
}

void StatementPrinter::define_statement(const Value* v, const Expression& e) {
  const std::string name = fresh_name(v);
  line(unit_.declaration(v, name) + " = " + e.text() + ";");
  bind(v, name);
}

bool StatementPrinter::needs_atom(const Op& user, std::size_t operand) const {
  const ir::OpInfo& row = ir::info(user.code);
  if (row.elementwise) {
    const bool integer =
        user.operands[0]->type.element() == Kind::i64 || user.operands[0]->type.element() == Kind::i32;
    if (integer && user.is(Opcode::div_, Opcode::rem_)) return false;
    return occurrences(row.expression, static_cast<char>('x' + operand)) > 1;
  }
  // Indices are checked and then used. The value stored at the end is used once.
  if (ir::is_write(user) || user.is(Opcode::ref_acc_)) return operand + 1 != user.operands.size();
  return user.is(Opcode::get_, Opcode::lane_get_, Opcode::lane_set_, Opcode::lane_add_at_, Opcode::take_, Opcode::add_take_,
                 Opcode::slice_, Opcode::add_slice_, Opcode::tree_left_, Opcode::tree_right_, Opcode::tree_value_,
                 Opcode::finite_);
}

/// `epoch`: the state of memory that the expression reads.
bool StatementPrinter::foldable(const Op& op, const Expression& e, int epoch) const {
  const Value* v = op.result();
  if (!v->type.is_scalar() || uses_.count(v) != 1 || is_named(v)) return false;
  if (e.text().size() > longest_expression) return false;
  const Op* user = uses_.user(v);
  // Each line of the user's is to be seen in a debugger, in both parts of a derivative.
  if (unit_.options().line_directives && op.loc.known() &&
      (user->loc.file != op.loc.file || user->loc.line != op.loc.line || user->loc.part != op.loc.part))
    return false;
  // Into branches an expression may sink; a loop would repeat it, a continuation would capture its operands.
  for (const ir::Block* b = user->parent; b != op.parent; b = b->parent->parent)
    if (e.reads_memory() || !b->parent || !b->parent->is(Opcode::branch_)) return false;
  if (e.reads_memory() && epoch != uses_.epoch(user)) return false;
  for (std::size_t i = 0; i < user->operands.size(); ++i)
    // A function that works on tapes is called whatever a condition says.
    if (user->operands[i] == v && (needs_atom(*user, i) || (e.calls() && may_be_skipped(*user, i))))
      return false;
  return true;
}

void StatementPrinter::define(const Op& op, Expression e) {
  if (!foldable(op, e, uses_.epoch(&op))) return define_statement(op.result(), e);
  bindings_[op.result()] = {.expression = std::move(e), .pending = true};
}

/// Gives names to the longest operands until the expression that combines them fits a line.
void StatementPrinter::shorten(const Op& op) {
  for (;;) {
    std::size_t total = 0, longest = 24;
    const Value* longest_operand = nullptr;
    for (const Value* v : op.operands) {
      const auto it = bindings_.find(v);
      // What begins a state that nothing reads is not printed here, but where it is read.
      if (it == bindings_.end() || (it->second.pending && uses_.user(v) != &op)) continue;
      const std::size_t n = it->second.expression.text().size();
      total += n;
      if (it->second.pending && n > longest) {
        longest = n;
        longest_operand = v;
      }
    }
    if (total <= longest_operands || !longest_operand) return;
    materialise(longest_operand);
  }
}

std::string StatementPrinter::zero(const ir::Type& type) {
  if (type.is_vector())
    return unit_.prelude().vector_function("splat", type.kind(), type.lanes()) + "(" +
           zero(ir::Type(type.kind())) + ")";
  if (type.is_float_element() && type.is_scalar()) return float_literal(0, type.kind()).text();
  if (type.is_bool()) return unit_.target().boolean(false);
  if (type.is_scalar()) return "0";
  if (type.is_tensor()) return "{0, {0}}";
  return unit_.target().is_cpp() ? "{}" : "{0}";
}

// ---- structure

void StatementPrinter::block(const ir::Block* b, const Sink& sink) {
  const std::vector<Op*>& ops = b->ops;
  const std::size_t names = names_.mark();
  bool scoped = false;
  open_static_tapes(b);
  for (std::size_t i = 0; i < ops.size(); ++i) {
    const Op& op = *ops[i];
    if (op.is(Opcode::yield_)) {
      finish(op, sink);
      break;
    }
    if (op.is(Opcode::forget_)) forget(op);
    if (!uses_.live(&op) || in_header_.contains(&op)) continue;
    current_ = &op;
    // gdb stops once for each line and block: the backward part is one of its own.
    if (unit_.options().line_directives && !scoped && section_ == ir::Part::forward &&
        part_of(op) == ir::Part::backward) {
      open(Statement("{"));
      scoped = true;
    }
    enter_section(op);
    // A branch whose results are all that the block yields hands them over directly.
    if (op.is(Opcode::branch_) && i + 2 == ops.size() && !op.results.empty() &&
        ops[i + 1]->operands == op.results && (!sink.returns || mark_.empty())) {
      branch(op, &sink);
      break;
    }
    operation(op);
    if (!op.blocks.empty() && part_of(op) == ir::Part::plain) section_ = shown_section_ = ir::Part::plain;
  }
  if (scoped) close();
  close_static_tapes(b);
  names_.release(names);
}

void StatementPrinter::finish(const Op& yield, const Sink& sink) {
  current_ = &yield;
  std::vector<const Value*> values(yield.operands.begin(), yield.operands.end());
  for (std::size_t i = 0; i < values.size() && i < sink.types.size(); ++i)
    if (sink.returns || !sink.targets[i].empty())
      check_fits(values[i], sink.types[i], sink.returns ? "result" : "value", yield);
  if (!sink.returns) return copies(values, sink);
  if (values.empty()) {
    if (!mark_.empty()) line((place_ == Place::host ? "lt_device_leave(" : "lt_leave(") + ws() + ", " + mark_ + ");");
    return;
  }
  std::vector<Expression> results;
  for (const Value* v : values) results.push_back(value(v));
  if (!mark_.empty()) {
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (results[i].is_atom() || is_constant(values[i])) continue;
      define_statement(values[i], results[i]);
      results[i] = value(values[i]);
    }
    line((place_ == Place::host ? "lt_device_leave(" : "lt_leave(") + ws() + ", " + mark_ + ");");
  }
  if (values.size() == 1) return line("return " + results[0].text() + ";");
  if (info_.by_pointer) {
    for (std::size_t i = 0; i < values.size(); ++i)
      line("*" + result_names_[i] + " = " + results[i].text() + ";");
    return;
  }
  std::string list;
  for (const Expression& e : results) list += (list.empty() ? "" : ", ") + e.text();
  line("return {" + list + "};");
}

/// Assigns all at once: a variable is overwritten when nothing reads its old value any more.
void StatementPrinter::copies(const std::vector<const Value*>& values, const Sink& sink) {
  struct Copy {
    std::string target;
    Expression from;
    ir::Type type;
  };
  std::vector<Copy> waiting;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (i == sink.skip || sink.targets[i].empty()) continue;
    Expression e = value(values[i]);
    if (e.text() != sink.targets[i]) waiting.push_back({sink.targets[i], std::move(e), values[i]->type});
  }
  std::unordered_map<std::string, int> readers;
  const auto count = [&](const Copy& c, int by) {
    for (const std::string& name : c.from.varying())
      if (name != c.target) readers[name] += by;
  };
  for (const Copy& c : waiting) count(c, 1);
  while (!waiting.empty()) {
    const std::size_t before = waiting.size();
    std::erase_if(waiting, [&](const Copy& c) {
      if (readers[c.target] > 0) return false;
      line(assignment(Expression(c.target), c.from));
      count(c, -1);
      return true;
    });
    if (waiting.size() < before) continue;
    // A cycle: one value has to wait elsewhere; one that does already would not help.
    Copy& c = *std::find_if(waiting.begin(), waiting.end(), [](const Copy& w) {
      return std::any_of(w.from.varying().begin(), w.from.varying().end(),
                         [&](const std::string& name) { return name != w.target; });
    });
    count(c, -1);
    const std::string saved = names_.unique("next_" + c.target);
    line(unit_.declaration(c.type, saved) + " = " + c.from.text() + ";");
    c.from = Expression(saved);
  }
}

void StatementPrinter::operation(const Op& op) {
  if (place_ == Place::block && in_block(op)) return;
  if (place_ == Place::host && unit_.runs_on_host(&op)) return on_host(op);
  statement(op);
}

void StatementPrinter::statement(const Op& op) {
  const ir::OpInfo& row = ir::info(op.code);
  shorten(op);
  if (!op.results.empty() && op.result()->type.is_vector() &&
      (row.elementwise || op.is(Opcode::cast_, Opcode::cast_like_)))
    return vector(op);
  if (row.elementwise) return op.result()->type.is_tensor() ? choice(op) : scalar(op);
  switch (op.code) {
    case Opcode::constant_:
    case Opcode::halt_:
      return;
    case Opcode::undef_: {
      if (op.result()->type.is_scalar()) return bind(op.result(), zero(op.result()->type));
      const std::string name = fresh_name(op.result());
      line(unit_.declaration(op.result()->type, name) + " = " + zero(op.result()->type) + ";");
      return bind(op.result(), name);
    }
    case Opcode::branch_:
      return branch(op, nullptr);
    case Opcode::loop_:
      return loop(op);
    case Opcode::call_:
      return call(op);
    case Opcode::fun_:
      return fun(op);
    case Opcode::jump_:
      return jump(op);
    case Opcode::closure_:
      return closure(op);
    case Opcode::check_: {
      const std::string failed = prefix("!", value(op.operands[0])).text();
      if (op.operands.size() > 1) return telling_check(op, failed);
      return line("if (" + failed + ") " + ws() + "->fail(ws, " +
                  ir::c_string(op.text ? op.text : "check failed") + ");");
    }
    case Opcode::finite_:
      return check_value(op);
    case Opcode::print_:
      return print(op);
    case Opcode::external_:
      return external(op);
    case Opcode::slot_:
    case Opcode::ref_new_:
    case Opcode::ref_get_:
    case Opcode::ref_set_:
    case Opcode::ref_add_:
    case Opcode::ref_acc_:
      return cell(op);
    case Opcode::push_:
    case Opcode::pop_:
      return tape(op);
    case Opcode::cast_:
    case Opcode::cast_like_:
      return cast(op);
    case Opcode::lane_index_:
    case Opcode::lane_splat_:
    case Opcode::lane_sum_:
    case Opcode::lane_max_:
    case Opcode::lane_min_:
    case Opcode::lane_any_:
      return vector(op);
    case Opcode::lane_get_:
    case Opcode::lane_set_:
    case Opcode::lane_add_at_:
      return lanes_access(op);
    default:
      return tensor(op);
  }
}

/// True for an operation on integers that has to be spelled as a function: C leaves undefined what it gives
/// where it wraps, and nothing says that it does not.
bool StatementPrinter::may_wrap(const Op& op, Kind kind) const {
  if (unit_.integers_wrap() || (kind != Kind::i64 && kind != Kind::i32)) return false;
  if (!op.is(Opcode::add_, Opcode::sub_, Opcode::mul_, Opcode::neg_)) return false;
  return !ranges_ || !ranges_->exact(op);
}

Expression StatementPrinter::applied(const Op& op, const std::vector<Expression>& operands) {
  // A choice between the same is that. (tcc takes `(c ? 0 : 0) ? a : b` for something else.)
  if (op.is(Opcode::select_) && operands[1] == operands[2]) return operands[1];
  std::vector<std::string> functions;
  const Kind kind = op.operands[op.is(Opcode::select_) ? 1 : 0]->type.element();
  if (may_wrap(op, kind)) {
    const std::string function = std::string(ir::info(op.code).name) + "_" + ir::kind_name(kind);
    unit_.prelude().need(function);
    return called("lt_" + function, operands);
  }
  const bool carried = op.is(Opcode::min_, Opcode::max_) && passes::is_recurrence(op);
  const std::string_view pattern = !carried                ? ir::info(op.code).expression
                                   : op.is(Opcode::min_) ? std::string_view("lt_carried_min(x, y)")
                                                         : std::string_view("lt_carried_max(x, y)");
  Expression e = substitute(pattern, operands, unit_.target(), kind, functions);
  for (const std::string& f : functions) unit_.prelude().math(f, kind);
  return e;
}

void StatementPrinter::scalar(const Op& op) {
  const Kind kind = op.operands[0]->type.kind();
  const bool integer = kind == Kind::i64 || kind == Kind::i32;
  if (integer && op.is(Opcode::div_, Opcode::rem_)) return division(op);
  std::vector<Expression> operands;
  const std::size_t first = op.is(Opcode::select_) ? 1 : 0;
  // Literals alone would be computed as int; a shift as what is shifted.
  bool literals = op.result()->type.kind() == Kind::i64;
  const bool shift = op.is(Opcode::shift_left_, Opcode::shift_right_);
  for (std::size_t i = first; i < (shift ? 1 : op.operands.size()); ++i) literals &= is_constant(op.operands[i]);
  for (const Value* v : op.operands) operands.push_back(value(v));
  if (literals) operands[first] = cast_to("int64_t", operands[first]);
  define(op, applied(op, operands));
}

void StatementPrinter::division(const Op& op) {
  const Value* divisor = op.operands[1];
  if (is_constant(divisor) && divisor->def->integer != 0 && divisor->def->integer != -1)
    return define(op, applied(op, {value(op.operands[0]), value(divisor)}));
  const std::string at = where(op);
  const std::string message = "integer division by zero" + (at.empty() ? "" : " (" + at + ")");
  const std::string f = unit_.prelude().kernel(op.is(Opcode::div_) ? "div" : "rem", op.result()->type.kind());
  // It may fail, and must do so where the program says.
  define_statement(op.result(), called(f, {Expression(ws()), value(op.operands[0]), value(divisor), Expression(ir::c_string(message))}));
}

void StatementPrinter::cast(const Op& op) {
  if (op.result()->type.is_tensor()) return choice(op);
  Expression e = value(op.operands[0]);
  const Kind to = op.result()->type.kind();
  if (op.operands[0]->type.kind() == to) return define(op, e);
  if (to == Kind::boolean) {
    e = binary(e, "!=", integer_literal(0));
  } else {
    if (op.result()->type.is_integer()) unit_.prelude().need("integers");
    e = converted(e, op.operands[0]->type.kind(), to);
  }
  define(op, e);
}

/// A scalar as one of another kind, which is not bool.
Expression StatementPrinter::converted(const Expression& x, Kind from, Kind to) {
  const bool saturates = (from == Kind::f32 || from == Kind::f64) && (to == Kind::i32 || to == Kind::i64);
  if (saturates) {
    const std::string function = std::string(ir::kind_name(to)) + "_of_" + ir::kind_name(from);
    unit_.prelude().need(function);
    return called("lt_" + function, {x});
  }
  return cast_to(unit_.target().scalar(to), x);
}

void StatementPrinter::branch(const Op& op, const Sink* forwarded) {
  if (launch_ && !forwarded && members(op)) return;
  Sink own;
  if (!forwarded) {
    for (const Value* v : op.results) {
      own.types.push_back(v->type);
      if (uses_.count(v) == 0) {
        own.targets.emplace_back();
        continue;
      }
      if (const Value* root = memory_root(v); root != v && v->type.is_tensor()) {
        bind_same(v, root);
        own.targets.emplace_back();
        continue;
      }
      const std::string name = fresh_name(v);
      line(unit_.declaration(v->type, name) + ";");
      own.targets.push_back(name);
      bind(v, name);
    }
  }
  const Sink& sink = forwarded ? *forwarded : own;
  if (place_ == Place::block) barrier();
  std::string condition = "if (" + text(op.operands[0]) + ") {";
  const ir::Block *then = op.blocks[0], *otherwise = op.blocks[1];
  const bool last = forwarded || (op.results.empty() && op.parent->ops.size() >= 2 &&
                                  op.parent->ops[op.parent->ops.size() - 2] == &op &&
                                  op.parent->ops.back()->operands.empty() && !sink.returns);
  // Nothing comes before it in an `else`, nor behind it: "} else {" and "if" become one line.
  const bool joins = last && !open_.empty() && open_.back().otherwise && statements_.empty();
  Statement head = joins ? Statement(condition) : annotated(condition);
  head.joins = joins;
  open(std::move(head));
  block(then, sink);
  if (place_ == Place::block) barrier();
  this->otherwise();
  block(otherwise, sink);
  if (place_ == Place::block) barrier();
  close();
}

}  // namespace lantern::codegen
