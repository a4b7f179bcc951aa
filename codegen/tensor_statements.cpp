// Operations on tensors and trees as statements.
//
// Tensors are contiguous and row-major, so rows, slices and reshapes are views of their operand's memory; all
// else makes a new tensor in the arena. An operation whose attribute is 1 works in its first operand's
// memory.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <ranges>

#include "lantern/codegen/launch.hpp"
#include "lantern/compiler/passes/analysis/gemm.hpp"
#include "lantern/ir/error.hpp"
#include "lantern/ir/escape.hpp"
#include "lantern/ir/shape.hpp"

namespace lantern::codegen {

namespace {

std::string number(std::size_t n) { return std::to_string(n); }

}  // namespace

// ---- sizes

std::int64_t StatementPrinter::size_of(const Value* n) {
  if (n->def && n->def->is(Opcode::constant_)) return n->def->integer;
  if (n->def && n->def->is(Opcode::dim_))
    return dims(n->def->operands[0])[static_cast<std::size_t>(n->def->integer)];
  const auto [it, added] = sizes_.try_emplace(n, 0);
  if (added) it->second = --symbols_;
  return it->second;
}

/// What is known about the sizes of a tensor: equal entries are equal sizes, those below zero are symbols.
const StatementPrinter::Dims& StatementPrinter::dims(const Value* t) {
  const auto [it, added] = dims_.try_emplace(t);
  if (added) {
    const ir::Type& type = t->type.is_ref() ? t->type.content() : t->type;
    for (const std::int64_t d : type.dims()) it->second.push_back(d == ir::dynamic ? --symbols_ : d);
  }
  return it->second;
}

void StatementPrinter::set_dims(const Value* t, const Dims& from) {
  Dims d = from;
  for (std::size_t i = 0; i < d.size(); ++i)
    if (t->type.dims()[i] != ir::dynamic) d[i] = t->type.dims()[i];
  dims_[t] = std::move(d);
}

Expression StatementPrinter::dim(const Value* t, std::size_t i) {
  const std::int64_t d = dims(t)[i];
  return d >= 0 ? integer_literal(d) : element_at(field(t, "dim"), integer_literal(static_cast<std::int64_t>(i)));
}

/// A member of the structure that a tensor is in C.
Expression StatementPrinter::field(const Value* t, const char* name) {
  return member(t->type.is_ref() ? place(t) : Expression(atom(t)).varying_with(value(t)), name);
}

std::string StatementPrinter::sizes(const Value* t, std::size_t from) {
  std::string s;
  for (std::size_t i = from; i < dims(t).size(); ++i) s += (s.empty() ? "" : ", ") + dim(t, i).text();
  return s;
}

/// The product of the sizes from a dimension on.
Expression StatementPrinter::elements(const Value* t, std::size_t from) {
  std::int64_t known = 1;
  for (std::size_t i = from; i < dims(t).size(); ++i)
    if (dims(t)[i] >= 0) known *= dims(t)[i];
  Expression product = integer_literal(known);
  for (std::size_t i = from; i < dims(t).size(); ++i)
    if (dims(t)[i] < 0) product = product * dim(t, i);
  return product;
}

/// How much memory elements of this type take.
Expression StatementPrinter::bytes(const Value* t, const std::string& element) {
  return binary(elements(t), "*", cast_to("int64_t", Expression("sizeof(" + element + ")")));
}

/// The offset of an element: (i * d1 + j) * d2 + k.
Expression StatementPrinter::offset(const Value* t, const std::vector<const Value*>& indices) {
  if (indices.empty()) return integer_literal(0);
  Expression e = value(indices[0]);
  for (std::size_t i = 1; i < indices.size(); ++i) e = e * dim(t, i) + value(indices[i]);
  return e;
}

// ---- checks

/// In a kernel, unless the host has checked all of its indices.
bool StatementPrinter::checks_indices() const { return unit_.options().bounds_checks && !(launch_ && launch_->checked); }

void StatementPrinter::check_index(const Op& op, std::size_t operand, const Value* t, std::size_t dimension) {
  if (!checks_indices()) return;
  const Value* index = op.operands[operand];
  const std::int64_t size = dims(t)[dimension];
  const bool constant = index->def && index->def->is(Opcode::constant_);
  if (constant && size >= 0 && index->def->integer >= 0 && index->def->integer < size) return;
  passes::KnownRange known = ranges_->of(op, operand);
  known.low |= constant && index->def->integer >= 0;
  if (known.is_inside() || checked_before(op, known)) return;
  unit_.prelude().need("fail_index");
  const Expression i = value(index), n = dim(t, dimension);
  if (!known.low && !known.high) unit_.prelude().need("outside");
  const Expression outside = known.high  ? binary(i, "<", integer_literal(0))
                             : !known.low ? called("lt_outside", {i, n})
                             : constant   ? binary(n, "<=", i)
                                          : binary(i, ">=", n);
  line("if (" + outside.text() + ") lt_fail_index(" + ws() + ", " + i.text() + ", " + n.text() + ", " + ir::c_string(where(op)) +
       ");");
}

/// True where a check before the loop represents that of an access in it.
bool StatementPrinter::checked_before(const Op& access, const passes::KnownRange& known) const {
  const auto it = checked_.find(access.parent->parent);
  return it != checked_.end() && it->second.contains(known.check);
}

/// One check for what a loop accesses in all of its iterations, where that can be said before it.
void StatementPrinter::checks_before(const Op& loop) {
  if (!checks_indices()) return;
  const std::vector<passes::LoopCheck>& checks = ranges_->before(loop);
  for (std::size_t i = 0; i < checks.size(); ++i) {
    const passes::LoopCheck& c = checks[i];
    const auto first = sum(c.first), end = sum(c.end), size = sum(c.size);
    const auto iterations = c.iterations ? sum(*c.iterations) : integer_literal(1);
    const auto start = c.start ? sum(*c.start, true) : integer_literal(0);
    if (!first || !end || !size || !iterations || !start) continue;
    const std::string function = !c.start         ? "check_range"
                                 : c.times == 1  ? "check_run"
                                 : c.times > 0   ? "check_run_of_multiples"
                                                 : "check_run_back";
    unit_.prelude().need(function);
    const bool runs = !c.iterations || c.iterations->number().value_or(0) > 0;
    const std::string guard = c.start ? "if (" + binary(*first, "<", *end).text() + ") "
                              : runs  ? ""
                                      : "if (" + binary(*iterations, ">", integer_literal(0)).text() + ") ";
    const std::string times = c.times == 1 ? "" : std::to_string(std::abs(c.times)) + ", ";
    line(guard + "lt_" + function + "(" + ws() + ", " + (c.start ? start->text() + ", " + times : "") + first->text() + ", " + end->text() +
         ", " + std::to_string(c.step) + ", " + std::to_string(c.count) + ", " + size->text() + ", " +
         ir::c_string(where(*c.access)) + ");");
    checked_[&loop].insert(static_cast<int>(i));
  }
}

/// A number that has been printed; in a loop that counts down by its header what it counted from is one more.
std::optional<Expression> StatementPrinter::known_number(const Value* v) {
  const Op* loop = v->def ? nullptr : v->block->parent;
  if (loop && loop->is(Opcode::loop_))
    if (const Op* next = loop->blocks[1]->ops.back()->operands[v->index]->def;
        next && in_header_.contains(next))
      return value(next->result()) + integer_literal(1);
  const auto known = bindings_.find(v);
  if (known == bindings_.end()) return {};
  // What is pending has its place where the program uses it, which may be outside the current block.
  const Expression e = value(v);
  return known->second.pending && e.reads_memory() ? std::nullopt : std::optional(e);
}

std::optional<Expression> StatementPrinter::known_size(const Value* t, int dimension) {
  const auto known = bindings_.find(t);
  if (known == bindings_.end() || known->second.pending) return {};
  return dim(t, static_cast<std::size_t>(dimension));
}

/// The text of a sum of products, which may wrap or not; nothing where a value in it is not printed.
std::optional<Expression> StatementPrinter::sum(const passes::IndexForm& form, bool wraps) {
  const bool converts = wraps && !unit_.integers_wrap();
  Expression all = integer_literal(0);
  // What is added comes first, and the newest value.
  for (const bool minus : {false, true})
    for (const auto& [product, factor] : form.terms() | std::views::reverse) {
      if ((factor < 0) != minus) continue;
      std::vector<Expression> factors;
      for (const passes::Unknown& u : product) {
        const auto name = u.is_size() ? known_size(u.value, u.dimension) : known_number(u.value);
        if (!name) return {};
        factors.push_back(converts ? cast_to("unsigned long long", *name) : *name);
      }
      all = plus_product(all, factor, factors);
    }
  return converts && !all.integer() ? cast_to("int64_t", all) : all;
}

/// That n sizes of two tensors agree, unless it is known.
void StatementPrinter::check_dims(const Op& op, const Value* a, std::size_t a_from, const Value* b,
                                  std::size_t b_from, std::size_t n) {
  std::string condition;
  for (std::size_t i = 0; i < n; ++i) {
    if (dims(a)[a_from + i] == dims(b)[b_from + i]) continue;
    condition += (condition.empty() ? "" : " || ") + binary(dim(a, a_from + i), "!=", dim(b, b_from + i)).text();
  }
  if (condition.empty()) return;
  unit_.prelude().need("fail_shapes");
  const auto shape = [&](const Value* t) { return field(t, "dim").text() + ", " + number(dims(t).size()); };
  const Opcode code = op.is(Opcode::ref_acc_) ? ir::accumulated_by(op) : op.code;
  line("if (" + condition + ") lt_fail_shapes(" + ws() + ", " +
       ir::c_string(op.is(Opcode::ref_add_) ? "add" : ir::info(code).name) + ", " + shape(a) + ", " +
       shape(b) + ", " + ir::c_string(where(op)) + ");");
}

/// That a tensor has the sizes that the type it goes to promises.
void StatementPrinter::check_fits(const Value* v, const ir::Type& type, const char* what, const Op& op) {
  if (!v->type.is_tensor() || !type.is_tensor() || v->type == type) return;
  for (std::size_t i = 0; i < type.dims().size(); ++i) {
    if (type.dims()[i] == ir::dynamic || dims(v)[i] == type.dims()[i]) continue;
    check_size_is(dim(v, i), type.dims()[i], what, i, op);
  }
}

void StatementPrinter::check_size_is(const Expression& size, std::int64_t expected, const char* what, std::size_t dimension,
                                     const Op& op) {
  unit_.prelude().need("fail_size");
  const Expression wanted = integer_literal(expected);
  line("if (" + binary(size, "!=", wanted).text() + ") lt_fail_size(" + ws() + ", " + ir::c_string(what) + ", " + number(dimension) +
       ", " + wanted.text() + ", " + size.text() + ", " + ir::c_string(where(op)) + ");");
}

// ---- results

/// Declares a result that a function of the prelude makes; its name.
Expression StatementPrinter::new_tensor(const Value* result, const char* how, const std::string& size_list) {
  const std::string there = (place_ == Place::host ? "device_" : "") + std::string(how);
  const std::string make =
      unit_.prelude().tensor_function(there, result->type.element(), result->type.rank(), unit_.stored(result));
  const std::string name = fresh_name(result);
  line(unit_.declaration(result, name) + " = " + make + "(" + ws() + (size_list.empty() ? "" : ", ") +
       size_list + ");");
  ++allocations_;
  bind(result, name);
  return Expression(name);
}

/// New tensors that loops and updates in place turn into results: they may be made where the caller wants
/// those. (Should one not become the result after all, nothing is lost: the host looks where a result lies.)
void StatementPrinter::find_placed() {
  const Op& yield = *function_.body->ops.back();
  for (std::size_t i = 0; i < yield.operands.size(); ++i) {
    if (!yield.operands[i]->type.is_tensor()) continue;
    const Value* root = storage_root(yield.operands[i]);
    if (root->def && root->def->is(Opcode::fill_, Opcode::zeros_like_)) placed_.emplace(root, i);
  }
}

void StatementPrinter::place_result(const Value* tensor, const std::string& name) {
  const auto it = placed_.find(tensor);
  if (it == placed_.end()) return;
  const std::string element = unit_.target().element(tensor->type.element());
  line(name + ".data = (" + element + "*)" + memory("place") + "(" + ws() + ", " + number(it->second) + ", " +
       name + ".data, " + bytes(tensor, element).text() + ");");
}

/// The memory of a tensor that nothing reads any more may be allocated again.
void StatementPrinter::forget(const Op& op) {
  const Value* tensor = op.operands[0];
  if (!uses_.elements_matter(tensor) || placed_.contains(storage_root(tensor))) return;
  const std::string forgetting = memory("forget");
  const auto place = [&](const Value* v) { return atom(v) + ".data, " + bytes(v, unit_.element(v)).text(); };
  std::string ours;
  for (std::size_t i = 1; i < op.operands.size(); ++i) {
    unit_.prelude().need("lies_in");
    ours += (i == 1 ? "if (!" : " && !") + ("lt_lies_in(" + atom(tensor) + ".data, ") +
            place(op.operands[i]) + ")";
  }
  line((ours.empty() ? "" : ours + ") ") + forgetting + "(" + ws() + ", " + place(tensor) + ");");
}

/// The tensor that an update works on: the operand itself where that is allowed, else a copy; bound as
/// result.
Expression StatementPrinter::updated(const Op& op) {
  const Value* from = op.operands[0];
  if (op.in_place) {
    const Expression name(atom(from));
    bind_same(op.result(), from);
    return name;
  }
  set_dims(op.result(), dims(from));
  return new_tensor(op.result(), "copy", atom(from));
}

/// A copy without the elements that a loop sets next.
void StatementPrinter::partial_copy(const Op& op) {
  const Value* from = op.operands[0];
  set_dims(op.result(), dims(from));
  const std::string name = new_tensor(op.result(), "new", sizes(from)).text();
  const std::string box = names_.unique("box");
  std::string list;
  for (std::size_t i = 1; i < op.operands.size(); ++i) list += (i == 1 ? "" : ", ") + text(op.operands[i]);
  unit_.prelude().need("copy_outside");
  line("const int64_t " + box + "[] = {" + list + "};");
  line("lt_copy_outside(" + name + ".data, " + atom(from) + ".data, " + elements(from).text() + ", (int64_t)sizeof(" +
       unit_.element(from) + "), " + box + ", " + number((op.operands.size() - 3) / 2) + ");");
}

// ---- operations

void StatementPrinter::tensor(const Op& op) {
  switch (op.code) {
    case Opcode::dim_: {
      const auto i = static_cast<std::size_t>(op.integer);
      if (dims(op.operands[0])[i] >= 0) return define(op, integer_literal(dims(op.operands[0])[i]));
      return define(op, dim(op.operands[0], i));
    }
    case Opcode::get_:
    case Opcode::set_:
    case Opcode::add_at_:
      return element_access(op);
    case Opcode::take_:
    case Opcode::slice_:
      return rows(op);
    case Opcode::add_take_:
    case Opcode::add_slice_:
      return accumulate(op.code, updated(op), op);
    case Opcode::copy_:
      return op.in_place || op.operands.size() == 1 ? static_cast<void>(updated(op)) : partial_copy(op);
    case Opcode::fill_:
    case Opcode::zeros_like_:
      return creation(op);
    case Opcode::argmax_:
      return argmax(op);
    case Opcode::reshape_:
    case Opcode::concat_:
      return reshaping(op);
    case Opcode::tree_empty_:
    case Opcode::tree_left_:
    case Opcode::tree_right_:
    case Opcode::tree_value_:
      return tree(op);
    case Opcode::add_einsum_:
    case Opcode::add_matmul_:
      return matrix_product(op);
    case Opcode::gemm_:
      return product_of_parts(op);
    default:
      throw InternalError("no way to print " + std::string(ir::info(op.code).name));
  }
}

/// One of two tensors as it is; element-wise operations on tensors are loops by now (passes/lower).
void StatementPrinter::choice(const Op& op) {
  const Value *x = op.operands[1], *y = op.operands[2];
  if (!op.is(Opcode::select_))
    throw InternalError("no way to print " + std::string(ir::info(op.code).name) + " of tensors");
  Dims known = dims(x);
  check_dims(op, x, 0, y, 0, known.size());
  for (std::size_t i = 0; i < known.size(); ++i)  // the check passed: any known size is the size
    if (known[i] < 0) known[i] = dims(y)[i];
  const Expression first(atom(x)), second(atom(y));
  define_statement(op.result(), conditional(value(op.operands[0]), first, second));
  set_dims(op.result(), known);
}

/// Two shapes that do not fit, or a message with numbers in it.
void StatementPrinter::telling_check(const Op& op, const std::string& failed) {
  unit_.prelude().need(op.integer == 0 ? "fail_numbers" : "fail_shapes");
  const auto first = static_cast<std::size_t>(op.integer);
  const auto list = [&](std::size_t from, std::size_t to) {
    std::string s;
    for (std::size_t i = from; i < to; ++i) s += (s.empty() ? "" : ", ") + text(op.operands[i]);
    return s;
  };
  const std::size_t n = op.operands.size() - 1;
  if (first == 0) {
    const std::string told = names_.unique("told");
    open("if (" + failed + ") {");
    line("const int64_t " + told + "[] = {" + list(1, 1 + n) + "};");
    line("lt_fail_numbers(" + ws() + ", " + ir::c_string(op.text ? op.text : "") + ", " + told + ", " +
         number(n) + ");");
    return close("}");
  }
  const std::string a = list(1, 1 + first), b = list(1 + first, 1 + n);
  const std::string x = names_.unique("first_shape"), y = names_.unique("second_shape");
  open("if (" + failed + ") {");
  line("const int64_t " + x + "[] = {" + a + "}, " + y + "[] = {" + b + "};");
  line("lt_fail_shapes(" + ws() + ", " + ir::c_string(op.text ? op.text : "") + ", " + x + ", " +
       number(first) + ", " + y + ", " + number(n - first) + ", " + ir::c_string(where(op)) + ");");
  close("}");
}

void StatementPrinter::element_access(const Op& op) {
  const Value* t = op.operands[0];
  const std::size_t rank = dims(t).size();
  std::vector<const Value*> indices(op.operands.begin() + 1,
                                    op.operands.begin() + 1 + static_cast<std::ptrdiff_t>(rank));
  if (std::ranges::any_of(indices, [](const Value* i) { return i->type.is_vector(); }))
    return lanes_access(op);
  for (std::size_t i = 0; i < rank; ++i) check_index(op, 1 + i, t, i);
  if (!op.is(Opcode::get_)) return accumulate(op.code, updated(op), op);
  if (place_ == Place::host) {
    const std::string read = unit_.prelude().kernel("read", op.result()->type.kind());
    const Expression element = offset(t, indices);
    return define_statement(op.result(), called(read, {Expression(ws()), displaced(field(t, "data"), element)}));
  }
  Expression e = element_at(field(t, "data"), offset(t, indices)).reading_memory();
  if (!unit_.stored(t).empty()) e = cast_to(unit_.target().element(t->type.element()), e);
  // All threads of a block read now: another one may write the element before the value is used.
  if (place_ == Place::block) return define_statement(op.result(), e);
  define(op, std::move(e));
}

/// Rows are views: no element is copied.
void StatementPrinter::rows(const Op& op) {
  const Value *t = op.operands[0], *first = op.operands[1];
  const bool slice = op.is(Opcode::slice_);
  const Expression data = field(t, "data");
  std::string shape = sizes(t, 1);
  if (slice) {
    const Expression hi = value(op.operands[2]), low = value(first);
    const std::int64_t from = size_of(first), to = size_of(op.operands[2]);
    if (unit_.options().bounds_checks && !(0 <= from && from <= to && to <= dims(t)[0])) {
      unit_.prelude().need("fail_slice");
      const Expression zero = integer_literal(0), size = dim(t, 0);
      const auto is = [](const Expression& x, const char* than, const Expression& y) { return binary(x, than, y).text(); };
      const std::string order = from >= 0 && to >= from ? ""
                                : from == 0             ? is(hi, "<", zero) + " || "
                                                        : is(low, "<", zero) + " || " + is(low, ">", hi) + " || ";
      line("if (" + order + is(hi, ">", size) + ") lt_fail_slice(" + ws() + ", " + low.text() + ", " + hi.text() + ", " +
           size.text() + ", " + ir::c_string(where(op)) + ");");
    }
    const std::string count = from >= 0 && to >= 0 ? std::to_string(to - from) : (hi - low).text();
    shape = count + (shape.empty() ? "" : ", " + shape);
  } else {
    check_index(op, 1, t, 0);
    if (shape.empty()) shape = "1";
  }
  const Expression start = data + value(first) * elements(t, 1);
  define_statement(op.result(), Expression("{" + start.text() + ", {" + shape + "}}"));
  Dims known(dims(t).begin() + 1, dims(t).end());
  if (slice) {
    const std::int64_t from = size_of(first), to = size_of(op.operands[2]);
    known.insert(known.begin(), from >= 0 && to >= 0 ? to - from : from == 0 ? to : --symbols_);
  }
  set_dims(op.result(), known);
}

/// A size that the program computes: the memory would not come to be either, but without a place.
void StatementPrinter::check_size(const Op& op, const Value* n) {
  if (!unit_.options().bounds_checks || where(op).empty()) return;
  if (n->def && n->def->is(Opcode::dim_, Opcode::constant_)) return;
  unit_.prelude().need("fail_negative");
  const Expression size(atom(n));
  line("if (" + binary(size, "<", integer_literal(0)).text() + ") lt_fail_negative(" + ws() + ", " + size.text() + ", " +
       ir::c_string(where(op)) + ");");
}

/// The call that fills elements, up to its first argument.
std::string StatementPrinter::filling(Kind kind, const std::string& stored) {
  if (place_ == Place::host) return unit_.prelude().kernel("device_fill", kind, stored) + "(" + ws() + ", ";
  return unit_.prelude().kernel("fill", kind) + "(";
}

void StatementPrinter::creation(const Op& op) {
  const Value* result = op.result();
  const Kind kind = result->type.element();
  const Value* like = op.operands[0];
  if (op.is(Opcode::zeros_like_)) {
    if (!result->type.is_tensor()) return define_statement(result, Expression(zero(result->type)));
    const bool placed = placed_.contains(result);
    const std::string name = new_tensor(result, placed ? "new" : "zeros", sizes(like)).text();
    set_dims(result, dims(like));
    if (!placed) return;
    place_result(result, name);
    return line(filling(kind) + name + ".data, " + elements(result).text() + ", " + zero(ir::Type(kind)) + ");");
  }
  std::string list;
  Dims known;
  for (std::size_t i = 1; i < op.operands.size(); ++i) {
    known.push_back(size_of(op.operands[i]));
    if (!ranges_ || !ranges_->sized(op)) check_size(op, op.operands[i]);
    list += (list.empty() ? "" : ", ") + text(op.operands[i]);
    if (result->type.dims()[i - 1] == ir::dynamic || known.back() == result->type.dims()[i - 1]) continue;
    check_size_is(Expression(atom(op.operands[i])), result->type.dims()[i - 1], "fill", i - 1, op);
  }
  if (!uses_.elements_matter(result)) {  // a shape needs no memory
    define_statement(result, Expression("{0, {" + (list.empty() ? "1" : list) + "}}"));
    return set_dims(result, known);
  }
  const std::string number_filled = text(op.operands[0]);
  const std::string name = new_tensor(result, "new", list).text();
  set_dims(result, known);
  place_result(result, name);
  if (op.operands[0]->def && op.operands[0]->def->is(Opcode::undef_)) return;  // only memory
  if (const Op* user = uses_.only_reader(result))
    if (user->is(Opcode::add_einsum_, Opcode::add_matmul_, Opcode::gemm_) && user->operands[0] == result &&
        (adds_to_zeros(*user, uses_) || zeroed_by_library(*user)))
      return;
  if (sums_from_zeros(result)) return;
  const std::string stored = unit_.stored(result);
  const std::string filled = stored.empty() ? number_filled : unit_.prelude().kernel("stored", kind, stored) + "(" + number_filled + ")";
  line(filling(kind, stored) + name + ".data, " + elements(result).text() + ", " + filled + ");");
}

/// A product that is large enough for a call (passes/lower); others are loops by now.
void StatementPrinter::matrix_product(const Op& op) {
  const ir::Notation n = *ir::concrete_notation(op);
  const auto p = passes::matrix_product(n);
  if (!p || shares_out()) return contraction(op, n);
  const auto steps = [&](std::size_t operand, char second) {
    const bool turned = n.operands[operand].at[0].is(second);
    const std::string row = dim(op.operands[operand], 1).text();
    return turned ? ", 1, " + row : ", " + row + ", 1";
  };
  const auto size = [&](char letter) {
    const ir::SizeSource from = *ir::size_source(n, letter);
    return dim(op.operands[from.operand], static_cast<std::size_t>(from.dimension)).text();
  };
  const std::string sizes_of = size(p->i) + ", " + size(p->j) + ", " + size(p->k) + ", 1";
  const std::string fresh = adds_to_zeros(op, uses_) ? "1" : "0";
  const Expression to = updated(op);
  const Factors f = factors(op, on_gpu("gemm"), p->x, p->y);
  line(f.routine + "(" + ws() + ", " + fresh + ", " + sizes_of + ", " + f.x + steps(p->x, p->k) + ", " + f.y + steps(p->y, p->j) +
       ", " + member(to, "data").text() + ", " + dim(op.result(), 1).text() + ");");
  if (!f.mark.empty()) line("lt_device_leave(ws, " + f.mark + ");");
}

/// Where one of the three tensors is stored in 16 bits, so are both factors: those that are not are rounded before.
StatementPrinter::Factors StatementPrinter::factors(const Op& op, const std::string& routine, std::size_t x, std::size_t y) {
  const Kind kind = op.result()->type.element();
  const std::string result = unit_.stored(op.result());
  Factors f{{}, ir::kind_name(kind), atom(op.operands[x]) + ".data", atom(op.operands[y]) + ".data", {}};
  std::string narrow = result;
  for (const std::size_t i : {x, y})
    if (const std::string its = unit_.stored(op.operands[i]); !its.empty()) narrow = its;
  if (!narrow.empty()) {
    f.kind = result.empty() ? narrow + "_" + f.kind : narrow;
    for (const auto& [i, data] : {std::pair{x, &f.x}, {y, &f.y}}) {
      if (!unit_.stored(op.operands[i]).empty()) continue;
      if (f.mark.empty()) {
        f.mark = names_.unique("rounded_mark");
        unit_.prelude().need("device_mark");
        line("const lt_device_position " + f.mark + " = lt_device_mark(" + ws() + ");");
      }
      const std::string name = names_.unique("rounded");
      line("const lt_" + narrow + "* " + name + " = " + unit_.prelude().kernel("narrowed", kind, narrow) + "(ws, " + *data + ", " +
           elements(op.operands[i]).text() + ");");
      *data = name;
    }
  }
  f.routine = unit_.prelude().kernel(routine, kind, narrow.empty() ? "" : f.kind);
  return f;
}

/// A routine of the prelude, or the one for tensors in the GPU's memory.
std::string StatementPrinter::on_gpu(const std::string& routine) const {
  return place_ == Place::host ? "device_" + routine : routine;
}

/// Whether products are cut for threads: not where a thread runs the function already.
bool StatementPrinter::shares_out() const {
  return unit_.options().threads > 1 && unit_.target().has_threads() && !info_.forked;
}

/// A product over parts of tensors (passes/raise).
void StatementPrinter::product_of_parts(const Op& op) {
  const auto operand = [&](std::size_t i) { return text(op.operands[i]); };
  const auto part = [&](std::size_t tensor, std::size_t start) {
    return displaced(field(op.operands[tensor], "data"), value(op.operands[start])).text();
  };
  const std::string sizes_of = operand(12) + ", " + operand(13) + ", " + operand(14) + ", " + operand(3);
  const std::string a = part(1, 6) + ", " + operand(7) + ", " + operand(8);
  const std::string b = part(2, 9) + ", " + operand(10) + ", " + operand(11);
  const Expression start = value(op.operands[4]);
  const std::string row = operand(5);
  const std::string fresh = adds_to_zeros(op, uses_) ? "1" : "0";
  const Expression to = updated(op);
  const bool team = shares_out();
  if (team) unit_.note_fork();
  const Kind kind = op.result()->type.element();
  const bool keeps = op.operands.size() > 15;  // memory for panels
  const std::string routine = unit_.prelude().kernel(keeps  ? "gemm_packing_once"
                                                     : team ? "gemm_team"
                                                            : on_gpu("gemm"),
                                                     kind);
  const std::string memory = keeps ? ", " + atom(op.operands[15]) + ".data" : "";
  line(routine + "(" + ws() + ", " + (team ? std::to_string(unit_.options().threads) : fresh) + ", " +
       sizes_of + ", " + a + ", " + b + ", " + displaced(member(to, "data"), start).text() + ", " + row + memory + ");");
}

void StatementPrinter::argmax(const Op& op) {
  const Value* x = op.operands[0];
  const std::string at = where(op);
  const std::string call = unit_.prelude().kernel(on_gpu("argmax"), x->type.element()) + "(" + ws() + ", " +
                           atom(x) + ".data, " + elements(x).text() + ", " +
                           ir::c_string(std::string(op.text ? op.text : "argmax") + " of an empty tensor" +
                                        (at.empty() ? "" : " (" + at + ")")) +
                           ")";
  if (place_ != Place::host) return define_statement(op.result(), Expression(call));
  const std::string place = names_.unique("place_at");
  line("const int64_t* " + place + " = " + call + ";");
  ++allocations_;
  bind_device(op.result(), place);
}

void StatementPrinter::reshaping(const Op& op) {
  const Value *x = op.operands[0], *y = op.operands[1], *result = op.result();
  const std::string from = atom(x), second = atom(y);
  if (op.is(Opcode::reshape_)) {
    if (elements(x) != elements(y)) {
      unit_.prelude().need("fail_shapes");
      line("if (" + binary(elements(x), "!=", elements(y)).text() + ") lt_fail_shapes(" + ws() + ", \"reshape\", " +
           from + ".dim, " + number(dims(x).size()) + ", " + second + ".dim, " + number(dims(y).size()) +
           ", " + ir::c_string(where(op)) + ");");
    }
    const std::string shape = sizes(y);
    define_statement(result, Expression("{" + from + ".data, {" + (shape.empty() ? "1" : shape) + "}}"));
    return set_dims(result, dims(y));
  }
  check_dims(op, x, 1, y, 1, dims(x).size() - 1);
  const bool known = dims(x)[0] >= 0 && dims(y)[0] >= 0;
  Dims d = dims(x);
  d[0] = known ? d[0] + dims(y)[0] : --symbols_;
  const std::string list = known ? std::to_string(d[0]) : binary(dim(x, 0), "+", dim(y, 0)).text(), rest = sizes(x, 1);
  const Expression to = member(new_tensor(result, "new", list + (rest.empty() ? "" : ", " + rest)), "data");
  set_dims(result, d);
  const bool host = place_ == Place::host;
  unit_.prelude().need(host ? "gpu" : "memcpy");
  const std::string copy = host ? "lt_gpu_copy(" + ws() + ", " : "memcpy(";
  const Expression bytes("sizeof(" + unit_.target().element(x->type.element()) + ")");
  const auto size = [&](const Value* t) { return (cast_to("unsigned long", elements(t)) * bytes).text(); };
  line(copy + to.text() + ", " + from + ".data, " + size(x) + ");");
  line(copy + (to + elements(x)).text() + ", " + second + ".data, " + size(y) + ");");
}

/// Adds into a tensor (or stores, for `set`). The operation may be a ref_acc: its operands are the same.
void StatementPrinter::accumulate(Opcode code, const Expression& to, const Op& op) {
  const Value* t = op.operands[0];
  const ir::Type& type = t->type.is_ref() ? t->type.content() : t->type;
  const Kind kind = type.element();
  switch (code) {
    case Opcode::set_:
    case Opcode::add_at_: {
      const std::vector<const Value*> indices(op.operands.begin() + 1, op.operands.end() - 1);
      const Expression element = element_at(member(to, "data"), offset(t, indices));
      const Expression z = value(op.operands.back());
      if (place_ == Place::host) {
        unit_.prelude().kernel("device_set", kind);
        return line(std::string("lt_device_") + (code == Opcode::set_ ? "set_" : "add_") +
                    ir::kind_name(kind) + "(" + ws() + ", " + prefix("&", element).text() + ", " + z.text() + ");");
      }
      if (code == Opcode::set_) return line(assignment(element, z));
      if (!unit_.integers_wrap() && (kind == Kind::i64 || kind == Kind::i32)) {
        const std::string add = std::string("add_") + ir::kind_name(kind);
        unit_.prelude().need(add);
        return line(assignment(element, called("lt_" + add, {element, z})));
      }
      const bool negated = z.is(Expression::Form::prefix, "-");
      return line(element.text() + (negated ? " -= " + beside(z, 0) : " += " + z.text()) + ";");
    }
    case Opcode::add_take_:
    case Opcode::add_slice_: {
      const Value *first = op.operands[1], *z = op.operands[2];
      const bool slice = code == Opcode::add_slice_;
      const Expression row = value(first);
      check_dims(op, t, 1, z, slice ? 1 : 0, type.dims().size() - 1);
      if (!slice) {
        check_index(op, 1, t, 0);
      } else if (unit_.options().bounds_checks) {
        unit_.prelude().need("fail_slice");
        const Expression end = binary(row, "+", dim(z, 0)), size = dim(t, 0);
        const Expression outside = binary(binary(row, "<", integer_literal(0)), "||", binary(end, ">", size));
        line("if (" + outside.text() + ") lt_fail_slice(" + ws() + ", " + row.text() + ", " + end.text() + ", " + size.text() + ", " +
             ir::c_string(where(op)) + ");");
      }
      return line(unit_.prelude().kernel(on_gpu("accumulate"), kind) + "(" +
                  (place_ == Place::host ? ws() + ", " : "") + (member(to, "data") + row * elements(t, 1)).text() + ", " + atom(z) + ".data, " +
                  elements(z).text() + ");");
    }
    default:
      throw InternalError("no accumulation by " + std::string(ir::info(code).name));
  }
}

/// True where an enclosing branch on `tree_empty` of the same tree leaves only the node.
bool StatementPrinter::known_tree(const Op& op) const {
  for (const ir::Block* b = op.parent; b && b->parent; b = b->parent->parent) {
    if (!b->parent->is(Opcode::branch_)) continue;
    const Op* c = b->parent->operands[0]->def;
    bool when_true = false;
    for (; c && c->is(Opcode::lnot_); c = c->operands[0]->def) when_true = !when_true;
    if (c && c->is(Opcode::tree_empty_) && c->operands[0] == op.operands[0] &&
        (b == b->parent->blocks[0]) == when_true)
      return true;
  }
  return false;
}

void StatementPrinter::tree(const Op& op) {
  const std::string t = atom(op.operands[0]);
  const Expression node = member(Expression(t).varying_with(value(op.operands[0])), "node"), empty = binary(node, "<", integer_literal(0));
  if (op.is(Opcode::tree_empty_)) return define(op, empty);
  if (unit_.options().bounds_checks && !known_tree(op)) {
    const std::string at = where(op);
    line("if (" + empty.text() + ") " + ws() + "->fail(ws, " +
         ir::c_string("the empty tree has no node" + (at.empty() ? "" : " (" + at + ")")) + ");");
  }
  if (op.is(Opcode::tree_value_))
    return define(op, element_at(Expression(t + ".value" + std::to_string(op.integer)), node));
  define_statement(op.result(), Expression(t));
  const std::string child = text(op.result());
  line(child + ".node = " + t + (op.is(Opcode::tree_left_) ? ".left[" : ".right[") + t + ".node];");
}

}  // namespace lantern::codegen
