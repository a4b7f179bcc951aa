// Loops as kernels (codegen/kernels.hpp). What an iteration asks for from around comes by value: numbers, tensors as
// pointers with sizes, and numbers that only the GPU knows yet as pointers.
//
//   if (const int64_t rows = lt_iterations(0, v3)) {
//     f_kernel1<<<lt_blocks(ws, rows), 256, 0, ws->device->stream>>>(x, result, rows);
//     lt_launched(ws);
//   }
//
// With Mapping::element the threads of the whole grid share the iterations of the nest, its two innermost loops along
// the two directions of the grid. With Mapping::rows a block takes an iteration: every thread of it runs the same
// statements, shares the iterations of the loops marked `shared`, and thread 0 alone writes elements beside them.
//
// Numbers that iterations reduce: a block reduces what its threads have, the block that ends last reduces what blocks
// have, always in the same order; the result stays on the GPU. Tensors that iterations add to: a block adds to a tensor
// of its own, and a second kernel adds these up, in order. Where those tensors would be large, and each iteration adds to
// one row, whose number it knows at once (its key), a block takes the iterations whose key it owns, in order.
//
// An iteration that fails says so where the host looks when it next waits: of several the first.
#include <algorithm>
#include <cmath>

#include "lantern/codegen/launch.hpp"
#include "lantern/compiler/passes/analysis/loops.hpp"
#include "lantern/ir/text.hpp"

namespace lantern::codegen {

using ir::Combine;

namespace {

Expression iterations_between(const Expression& first, const Expression& bound) { return called("lt_iterations", {first, bound}); }

}  // namespace

void StatementPrinter::kernel(const Op& loop, const Kernel& kernel) {
  for (const char* part : {"gpu", "iterations"}) unit_.prelude().need(part);
  checks_before(loop);
  ws();
  const std::size_t names = names_.mark();
  Launch launch;
  checks_on_host(kernel, launch);
  const std::string of = info_.exported ? info_.name : unit_.public_name() + "_" + info_.name;
  launch.name = names_.unique(of + "_kernel" + std::to_string(++kernel_count_));
  const bool rows = kernel.mapping == Mapping::rows;
  launch.count = names_.unique(rows ? "rows" : "iterations");
  launch.iteration = names_.unique(rows ? "row" : "iteration");
  capture(kernel, launch);

  // How many iterations, and where each loop begins.
  std::vector<Expression> counts;
  for (const Op* o : kernel.nest) {
    const auto count = *passes::counted(o);
    const Expression first = value(count.first), number = iterations_between(first, value(count.bound));
    const auto passed = [&](const char* wanted, const Expression& e) {
      const std::string name = names_.unique(wanted);
      launch.pass("int64_t", name, e.text());
      return Expression(name);
    };
    Launch::Level level{first, number, {}};
    if (first.integer() != 0) level.first = passed("first", first);
    if (o != &loop) level.count = passed("inner", number);
    counts.push_back(number);
    launch.levels.push_back(level);
  }
  Expression all = counts[0];
  for (std::size_t d = 1; d < counts.size(); ++d) all = all * counts[d];
  launch.all = all.text();
  launch.pass("int64_t", launch.count, launch.count);
  const bool shares = kernel.reduces() || kernel.sums_into_tensors();
  if (shares)
    line("const int64_t " + launch.count + " = " + launch.all + ";");
  else
    open("if (const int64_t " + launch.count + " = " + launch.all + ") {");
  if (shares) share(kernel, launch);
  kernel_text(kernel, launch);

  std::string grid, block = "256";
  if (rows) {
    unit_.prelude().need("row_threads");
    grid = shares ? "(unsigned)" + launch.shares : "lt_row_blocks(" + launch.count + ")";
    block = "lt_row_threads(" + row_length(kernel) + ")";
  } else if (shares) {
    grid = "(unsigned)" + launch.shares;
  } else if (kernel.nest.size() > 1) {
    unit_.prelude().need("grid");
    const std::string& columns = counts.back().text();
    grid = "lt_grid_of(ws, " + binary(Expression(launch.count), "/", counts.back()).text() + ", " + columns + ")";
    block = "lt_block_of(" + columns + ")";
  } else {
    unit_.prelude().need("blocks");
    grid = "lt_blocks(ws, " + launch.count + ")";
  }
  for (Launch::Sum& s : launch.sums) {
    if (!checks_sum(loop, s.state)) continue;
    s.finite = names_.unique(s.parts + "_finite");
    line("const int " + s.finite + " = " + (s.from_zeros ? "1" : finite(loop.operands[s.state])) + ";");
  }
  std::string arguments;
  for (const Launch::Parameter& p : launch.parameters) arguments += (arguments.empty() ? "" : ", ") + p.argument;
  line(launch.name + "<<<" + grid + ", " + block + ", 0, ws->device->stream>>>(" + arguments + ");");
  line("lt_launched(ws);");
  if (!shares) close();
  for (const Launch::Sum& s : launch.sums) {
    const Value* result = loop.results[s.state];
    const std::string elements_of = elements(loop.operands[s.state]).text();
    line("if (" + launch.shares + " > 1" + (launch.key ? " && !" + launch.by_key : "") + ") " +
         unit_.prelude().kernel("sum_parts", result->type.element()) + "(ws, " +
         s.tensor + ".data, " + s.parts + ", " + elements_of + ", " + launch.shares + ", " + (s.from_zeros ? "1" : "0") + ");");
    if (s.finite.empty()) continue;
    const ir::Kind kind = result->type.element();
    const std::string sum = s.tensor + ".data, " + elements_of + ")";
    line("if (" + launch.shares + " > 1 && !" + looking("finite_all", kind) + sum + ") " +
         unit_.prelude().kernel("fail_value", kind) + "(ws, " + looking("not_finite_in", kind) + sum + ", " + s.finite + " && " +
         looking("finite_all", kind) + s.parts + ", " + launch.shares + " * (" + elements_of + ")), " + sum_failure(loop, s.state) + ");");
  }
  for (std::size_t i = 0; i < loop.results.size(); ++i)
    if (loop.results[i]->type.is_tensor() && uses_.live_state(&loop, i))
      bind_same(loop.results[i], loop.operands[i]);
  for (const Launch::Reduction& r : launch.reductions) bind_device(loop.results[r.state], r.result);
  if (!shares) names_.release(names);
}

/// Blocks that reduce, or add up, by themselves: how many, and where they put what they have.
void StatementPrinter::share(const Kernel& kernel, Launch& launch) {
  const Op& loop = *kernel.nest.front();
  launch.shares = names_.unique("shares");
  std::optional<Expression> parts;
  for (std::size_t i = 0; i < loop.results.size(); ++i)
    if (loop.results[i]->type.is_tensor() && ir::is_reduction(kernel.combine(i)) && uses_.live_state(&loop, i))
      parts = parts ? binary(*parts, "+", elements(loop.operands[i])) : elements(loop.operands[i]);
  if (parts) {
    const std::string& elements_of = parts->text();
    unit_.prelude().need("part_shares");
    launch.key = key_of(kernel);
    if (launch.key) {
      unit_.prelude().need("owned_row");
      launch.by_key = names_.unique("by_key");
      line("const int " + launch.by_key + " = lt_by_key(" + launch.count + ", " + elements_of + ");");
      launch.pass("int", launch.by_key, launch.by_key);
    }
    line("const int64_t " + launch.shares + " = " + (launch.key ? launch.by_key + " ? lt_most_shares(" + launch.count + ") : " : "") +
         "lt_part_shares(" + launch.count + ", " + elements_of + ");");
  } else {
    unit_.prelude().need("shares");
    const char* each = kernel.mapping == Mapping::rows ? ", 1" : ", 1024";
    line("const int64_t " + launch.shares + " = lt_shares(" + launch.count + each + ", 1024);");
  }
  unit_.prelude().need("device_allocate");
  const auto allocate = [&](const std::string& type, const std::string& name, const std::string& count) {
    line(type + "* " + name + " = (" + type + "*)lt_device_allocate(ws, " + count + " * (int64_t)sizeof(" + type + "));");
    ++allocations_;
  };
  for (std::size_t i = 0; i < loop.results.size(); ++i) {
    if (!ir::is_reduction(kernel.combine(i)) || !uses_.live_state(&loop, i)) continue;
    if (loop.results[i]->type.is_tensor()) {
      const std::string element = unit_.target().element(loop.results[i]->type.element());
      Launch::Sum s{i, atom(loop.operands[i]), {}, sums_from_zeros(loop.operands[i]), {}};
      s.parts = names_.unique((ir::is_identifier(s.tensor) ? s.tensor : "sum") + "_parts");
      line(element + "* " + s.parts + " = " + s.tensor + ".data;");
      if (launch.key && s.from_zeros)
        line("if (" + launch.by_key + ") " + filling(loop.results[i]->type.element()) + s.tensor + ".data, " +
             elements(loop.operands[i]).text() + ", " + zero(ir::Type(loop.results[i]->type.element())) + ");");
      line("if (" + launch.shares + " > 1" + (launch.key ? " && !" + launch.by_key : "") + ") " + s.parts + " = (" + element +
           "*)lt_device_allocate(ws, " + launch.shares +
           " * (" + elements(loop.operands[i]).text() + ") * (int64_t)sizeof(" + element + "));");
      ++allocations_;
      launch.pass(element + "*", s.parts, s.parts);
      launch.sums.push_back(s);
      continue;
    }
    const std::string type = unit_.type(loop.results[i]->type);
    Launch::Reduction r{i, {}, {}, {}, {}, {}};
    r.name = fresh_name(loop.blocks[1]->params[i]->name ? loop.blocks[1]->params[i] : loop.results[i], "s");
    r.parts = names_.unique(r.name + "_parts");
    r.first = names_.unique(r.name + "_start");
    r.result = names_.unique(r.name + "_at");
    allocate(type, r.parts, launch.shares);
    allocate(type, r.result, "1");
    const auto known = bindings_.find(loop.operands[i]);
    if (known != bindings_.end() && known->second.device) {
      launch.pass("const " + type + "*", r.first + "_at", known->second.expression.operands()[0].text(),
                  {"const " + type + " " + r.first + " = *" + r.first + "_at;"});
    } else {
      launch.pass(type, r.first, text(loop.operands[i]));
    }
    launch.pass(type + "*", r.parts, r.parts);
    launch.pass(type + "*", r.result, r.result);
    launch.reductions.push_back(r);
  }
  if (!launch.reductions.empty()) launch.pass("unsigned*", "ended", "&ws->device->control->ended");
}

/// Whether nothing but a kernel that adds to a tensor sees the zeros that it begins with: its blocks begin with zeros of
/// their own.
bool StatementPrinter::sums_from_zeros(const Value* base) const {
  const Op* const loop = uses_.only_reader(base);
  if (!loop || !unit_.kernel(loop) || !base->def || !base->def->is(Opcode::fill_) || base->block != loop->parent) return false;
  const Op* const value = base->def->operands[0]->def;
  if (!value || !value->is(Opcode::constant_) || value->number != 0 || value->integer != 0 || std::signbit(value->number))
    return false;
  const auto state = std::ranges::find(loop->operands, base);
  return state != loop->operands.end() &&
         ir::is_reduction(ir::combine(*loop, static_cast<std::size_t>(state - loop->operands.begin()))) &&
         uses_.live_state(loop, static_cast<std::size_t>(state - loop->operands.begin()));
}

/// How many iterations the loops that a block shares have: the most of those whose number is known before the kernel.
std::string StatementPrinter::row_length(const Kernel& kernel) {
  constexpr std::size_t most = 6;
  std::vector<std::string> lengths;
  ir::walk(kernel.nest.back()->blocks[1], [&](const Op* op) {
    if (lengths.size() == most || !kernel.shared.contains(op)) return;
    const auto count = *passes::counted(op);
    const auto known = [&](const Value* v) {
      return (v->def && v->def->is(Opcode::constant_)) || bindings_.contains(v);
    };
    if (!known(count.first) || !known(count.bound)) return;
    if (!ir::visible_from(count.bound, kernel.nest.front()->parent) && !count.bound->def->is(Opcode::constant_)) return;
    const std::string length = iterations_between(value(count.first), value(count.bound)).text();
    if (std::ranges::find(lengths, length) == lengths.end()) lengths.push_back(length);
  });
  if (kernel.shared.empty()) return "1";
  if (lengths.empty()) return "1024";
  std::string longest = lengths.front();
  for (std::size_t i = 1; i < lengths.size(); ++i) longest = "lt_longer(" + longest + ", " + lengths[i] + ")";
  return longest;
}

/// The values from around, each a parameter; by the name that it has on the host where that is one.
void StatementPrinter::capture(const Kernel& kernel, Launch& launch) {
  std::unordered_map<std::string, std::string> passed;
  std::unordered_set<const Value*> written;
  for (const Op* o : kernel.nest)
    for (std::size_t i = 0; i < o->operands.size(); ++i)
      if (o->operands[i]->type.is_tensor()) written.insert(storage_root(o->operands[i]));
  for (const Value* v : kernel.captured) {
    const auto known = bindings_.find(v);
    if (known == bindings_.end()) continue;  // the first value of a state that is not read
    if (known->second.device) {
      const std::string from = known->second.expression.operands()[0].text(), type = unit_.type(v->type);
      const auto [it, added] = passed.try_emplace(from, from.ends_with("_at") ? from.substr(0, from.size() - 3) : from + "_is");
      if (added) {
        it->second = names_.unique(it->second);
        launch.pass("const " + type + "*", from, from, {"const " + type + " " + it->second + " = *" + from + ";"});
      }
      launch.bindings[v].expression = Expression(it->second);
      continue;
    }
    const std::string here = atom(v);
    const auto [it, added] = passed.try_emplace(here, ir::is_identifier(here) ? here : "");
    if (added) {
      if (it->second.empty()) it->second = fresh_name(v);
      launch.pass(unit_.type(v), it->second, here, {}, it->second);
      // What nothing in the kernel writes is read by the way for such memory.
      if (v->type.is_tensor() && uses_.elements_matter(v) && !written.contains(storage_root(v))) {
        const std::string element = unit_.element(v), data = names_.unique(it->second + "_data");
        launch.pass("const " + element + "* __restrict__", data, here + ".data",
                    {it->second + ".data = (" + element + "*)" + data + ";"}, it->second);
      }
    }
    launch.bindings[v].expression = Expression(it->second);
  }
}

/// The definition of the kernel. The statements of the host that are being built stay as they are.
void StatementPrinter::kernel_text(const Kernel& kernel, Launch& launch) {
  Statements host = std::exchange(statements_, {});
  std::vector<Open> around = std::exchange(open_, {});
  auto host_bindings = std::exchange(bindings_, launch.bindings);
  auto host_numbers = std::exchange(device_numbers_, {});
  auto host_read = std::exchange(read_, {});
  const int allocations = allocations_;
  const Op* const self = current_;
  const Place host_place = std::exchange(place_, kernel.mapping == Mapping::rows ? Place::block : Place::thread);
  kernel_ = &kernel;
  launch_ = &launch;
  touched_ = {};
  used_workspace_ = false;
  unit_.print_for_device(true);
  unit_.prelude().need("kernel");
  const Op& loop = *kernel.nest.front();
  const bool rows = kernel.mapping == Mapping::rows;

  open(Statement{});
  for (const Launch::Reduction& r : launch.reductions) {
    const ir::Type& type = loop.results[r.state]->type;
    const bool sum = kernel.combine(r.state) == Combine::sum;
    line(unit_.declaration(type, r.name) + " = " + (sum ? zero(type) : r.first) + ";");
  }
  for (const Launch::Sum& s : launch.sums) {
    const Value* tensor = loop.operands[s.state];
    const std::string part = names_.unique(s.parts.substr(0, s.parts.size() - 1)), count = elements(tensor).text();
    line(unit_.declaration(tensor->type, part) + " = " + launch.bindings.at(tensor).expression.text() + ";");
    const std::string own = part + ".data = " + s.parts + " + blockIdx.x * (" + count + ");";
    if (launch.key && s.from_zeros) open("if (!" + launch.by_key + ") {");
    if (s.from_zeros) {
      line("if (gridDim.x > 1) " + own);
    } else {
      open("if (gridDim.x > 1" + (launch.key ? " && !" + launch.by_key : "") + ") {");
      line(own);
    }
    line("for (int64_t i = threadIdx.x; i < " + count + "; i += blockDim.x) " + part + ".data[i] = 0;");
    line("__syncthreads();");
    if (!s.from_zeros || launch.key) close();
    bind(tensor, part);
  }
  const std::size_t levels = kernel.nest.size();
  std::size_t closes = 1;
  if (rows) {
    std::string first = "blockIdx.x", step = launch.iteration + " += gridDim.x";
    if (launch.key) {
      const std::string owned = ", " + launch.count + ", " + key_function(kernel, launch.key, launch.levels.front().first) + ")", &row = launch.iteration;
      first = launch.by_key + " ? lt_owned_row(0" + owned + " : " + first;
      step = row + " = " + launch.by_key + " ? lt_owned_row(" + row + " + 1" + owned + " : " + row + " + gridDim.x";
    }
    open("for (int64_t " + launch.iteration + " = " + first + "; " + launch.iteration + " < " + launch.count + "; " + step + ") {");
  } else if (levels == 1) {
    open("for (int64_t " + launch.iteration + " = LT_THREAD; " + launch.iteration + " < " + launch.count + "; " +
         launch.iteration + " += LT_THREADS) {");
  } else {
    const std::string outer = names_.unique("outer"), inner = names_.unique("column"), &width = launch.levels.back().count.text();
    const Expression rows_of = binary(Expression(launch.count), "/", launch.levels.back().count);
    open("for (int64_t " + outer + " = LT_ROW; " + binary(Expression(outer), "<", rows_of).text() + "; " + outer + " += LT_ROWS) {");
    open("for (int64_t " + inner + " = LT_THREAD; " + inner + " < " + width + "; " + inner + " += LT_THREADS) {");
    launch.levels.back().index = inner;
    launch.levels.front().index = outer;  // of all loops but the innermost
    closes = 2;
  }
  iteration(kernel, launch);
  const bool checks_sums = std::ranges::any_of(launch.reductions, [&](const auto& r) { return checks_sum(loop, r.state); });
  const bool fails = std::exchange(used_workspace_, true) || checks_sums;
  Statements number;
  if (levels > 1 && !rows && fails)
    number.push_back("const int64_t " + launch.iteration + " = " +
                     (Expression(launch.levels.front().index) * launch.levels.back().count + Expression(launch.levels.back().index)).text() + ";");
  if (fails) number.push_back("ws->iteration = order + (unsigned long long)" + launch.iteration + ";");
  statements_.insert(statements_.begin() + static_cast<std::ptrdiff_t>(launch.start), number.begin(), number.end());
  if (place_ == Place::block) barrier();
  for (; closes > 0; --closes) close();
  if (checks_sums) line("ws->iteration = order + (unsigned long long)" + launch.count + ";");  // behind all of them
  finish_reductions(kernel, launch);
  unit_.print_for_device(false);
  if (fails) {
    unit_.prelude().need("failure");
    launch.pass("lt_failure*", "failure", "lt_failure_of(ws)");
    launch.pass("unsigned long long", "order", "lt_order_of(ws)",
                {Statement("lt_workspace thread;"), Statement("lt_workspace* ws = &thread;"), Statement("ws->failure = failure;")});
  }
  pass_tables(launch);
  Statements before;
  std::string parameters;
  for (const Launch::Parameter& p : launch.parameters) {
    parameters += (parameters.empty() ? "" : ", ") + p.type + " " + p.name;
    before.insert(before.end(), p.first.begin(), p.first.end());
  }
  statements_.insert(statements_.begin(), before.begin(), before.end());
  const char* bounds = rows ? "__launch_bounds__(512) " : "";
  open_.back().head.text = "extern \"C\" __global__ void " + std::string(bounds) + launch.name + "(" + parameters + ") {";
  close();
  kernels_.push_back({launch.name, text_of(statements_) + "\n"});

  kernel_ = nullptr;
  launch_ = nullptr;
  place_ = host_place;
  statements_ = std::move(host);
  open_ = std::move(around);
  bindings_ = std::move(host_bindings);
  device_numbers_ = std::move(host_numbers);
  read_ = std::move(host_read);
  allocations_ = allocations;
  current_ = self;
}

/// One iteration. Its number is told to the workspace, should it fail.
void StatementPrinter::iteration(const Kernel& kernel, Launch& launch) {
  const Op& loop = *kernel.nest.front();
  const std::size_t levels = kernel.nest.size();
  const bool grid = kernel.mapping == Mapping::element && levels > 1;
  launch.start = statements_.size();
  // The number of an iteration of the nest: those of the inner loops run fastest. With a grid of two directions the
  // innermost one has a number of its own.
  const std::size_t numbered = grid ? levels - 1 : levels;
  const Expression number_of_all(grid ? launch.levels.front().index : launch.iteration);
  for (std::size_t d = 0; d < levels; ++d) {
    const Op& o = *kernel.nest[d];
    const Value* param = passes::counted(&o)->number;
    Expression number(launch.levels[d].index);
    if (d != numbered) {
      Expression behind = integer_literal(1);
      for (std::size_t e = d + 1; e < numbered; ++e) behind = behind * launch.levels[e].count;
      number = behind.integer() == 1 ? number_of_all : binary(number_of_all, "/", behind);
      if (d > 0) number = binary(number, "%", launch.levels[d].count);
    }
    const std::string name = fresh_name(param, "n");
    line("const int64_t " + name + " = " + (launch.levels[d].first + number).text() + ";");
    bind(param, name);
    for (std::size_t i = 0; i < o.results.size(); ++i) {
      if (!o.results[i]->type.is_tensor() || !uses_.live_state(&o, i)) continue;
      for (const Value* v : {o.blocks[0]->params[i], o.blocks[1]->params[i]}) bind_same(v, o.operands[i]);
      bind_same(o.results[i], o.operands[i]);
    }
    if (d == 0) {
      for (std::size_t i = 0; i < o.results.size(); ++i) {
        if (kernel.combine(i) != Combine::counter || !uses_.live_state(&o, i)) continue;
        const std::string counter = fresh_name(o.blocks[1]->params[i], "n");
        const Expression step = integer_literal(*passes::step_of(&o, i));
        line("const int64_t " + counter + " = " + (value(o.operands[i]) + step * number).text() + ";");
        bind(o.blocks[1]->params[i], counter);
      }
      for (const Launch::Reduction& r : launch.reductions) bind(o.blocks[1]->params[r.state], Expression::variable(r.name));
    }
    if (d > 0) checks_before(o);
    if (d + 1 == levels) break;
    const auto& next = o.blocks[1]->ops.back()->operands;  // iterations of their own count for themselves
    for (const Op* inner : o.blocks[1]->ops) {
      if (inner == kernel.nest[d + 1] || inner->is(Opcode::yield_) || !uses_.live(inner)) continue;
      if (!inner->results.empty() && std::ranges::find(next, inner->result()) != next.end() &&
          uses_.count(inner->result()) == 1)
        continue;
      current_ = inner;
      operation(*inner);
    }
  }
  Sink sink;
  const Op& last = *kernel.nest.back();
  for (const Value* v : last.results) {
    sink.targets.emplace_back();
    sink.types.push_back(v->type);
  }
  if (&last == &loop)
    for (const Launch::Reduction& r : launch.reductions) sink.targets[r.state] = r.name;
  block(last.blocks[1], sink);
}

/// f(x, y) of a reduction, as a function of the language.
Expression StatementPrinter::combining(Combine combine, const ir::Type& type, const Expression& x, const Expression& y) {
  const Opcode code = ir::reduction(combine, type);
  const Kind kind = type.kind();
  const std::vector<Expression> both{x, y};
  if (code == Opcode::add_ && type.is_integer()) {
    const std::string sum = std::string("add_") + ir::kind_name(kind);
    unit_.prelude().need(sum);
    return called("lt_" + sum, both);
  }
  std::vector<std::string> functions;
  const Expression e = substitute(ir::info(code).expression, both, unit_.target(), kind, functions);
  for (const std::string& f : functions) unit_.prelude().math(f, kind);
  return e;
}

Expression StatementPrinter::reduced(Combine combine, const ir::Type& type, const Expression& x) {
  unit_.prelude().need("reduce");
  const std::string t = unit_.type(type), both = combining(combine, type, Expression("x"), Expression("y")).text();
  return called("lt_reduce", {x, Expression("[](" + t + " x, " + t + " y) -> " + t + " { return " + both + "; }")});
}

/// What threads have becomes what the block has; the last block makes the result of what blocks have.
void StatementPrinter::finish_reductions(const Kernel& kernel, const Launch& launch) {
  if (launch.reductions.empty()) return;
  const Op& loop = *kernel.nest.front();
  unit_.prelude().need("last_block");
  const auto finite = [&](const Launch::Reduction& r) {
    if (!checks_sum(loop, r.state)) return std::string();
    return unit_.prelude().kernel("finite", loop.results[r.state]->type.kind()) + "(";
  };
  for (const Launch::Reduction& r : launch.reductions) {
    const ir::Type& type = loop.results[r.state]->type;
    const std::string is_finite = finite(r);
    if (kernel.mapping == Mapping::element) {
      const std::string before = is_finite.empty() ? "" : names_.unique(r.name + "_finite");
      if (!before.empty()) line("const int " + before + " = " + is_finite + r.name + ");");
      line(r.name + " = " + reduced(kernel.combine(r.state), type, Expression(r.name)).text() + ";");
      if (!before.empty()) check_sum(loop, r.state, r.name, before);
    }
    line("if (threadIdx.x == 0) " + r.parts + "[blockIdx.x] = " + r.name + ";");
  }
  open("if (lt_last_block(ended)) {");
  for (const Launch::Reduction& r : launch.reductions) {
    const ir::Type& type = loop.results[r.state]->type;
    const Combine combine = kernel.combine(r.state);
    const Expression name(r.name), first(r.first);
    const std::string is_finite = finite(r), part = combining(combine, type, name, Expression(r.parts + "[i]")).text();
    const std::string each = "for (unsigned i = threadIdx.x; i < gridDim.x; i += blockDim.x) ";
    line(r.name + " = " + (combine == Combine::sum ? zero(type) : r.first) + ";");
    line(each + r.name + " = " + part + ";");
    line(r.name + " = " + reduced(combine, type, name).text() + ";");
    std::string total = (combine == Combine::sum ? combining(combine, type, first, name) : name).text();
    if (!is_finite.empty()) {
      const std::string all = names_.unique(r.name + "_finite");
      line("int " + all + " = " + is_finite + r.first + ");");
      line(each + all + " &= " + is_finite + r.parts + "[i]);");
      line(r.name + " = " + total + ";");
      check_sum(loop, r.state, total = r.name, all);
    }
    line("if (threadIdx.x == 0) *" + r.result + " = " + total + ";");
  }
  close();
}

// ---- inside a block that shares a row

/// A loop whose iterations the threads of a block share. All of them have what it reduces.
void StatementPrinter::shared_loop(const Op& loop) {
  checks_before(loop);
  barrier();
  const auto count = *passes::counted(&loop);
  Sink sink;
  std::vector<std::pair<std::size_t, std::string>> reductions;  // states, and the variables of a thread
  const Expression first = value(count.first);
  const std::string index = fresh_name(count.number, "n");
  std::vector<std::pair<std::size_t, std::string>> counters;
  for (std::size_t i = 0; i < loop.results.size(); ++i) {
    sink.targets.emplace_back();
    sink.types.push_back(loop.results[i]->type);
    if (i == count.index || !uses_.live_state(&loop, i)) continue;
    const Combine combine = ir::combine(loop, i);
    const Value* param = loop.blocks[1]->params[i];
    if (loop.results[i]->type.is_tensor()) {
      for (const Value* v : {static_cast<const Value*>(loop.blocks[0]->params[i]), param, static_cast<const Value*>(loop.results[i])})
        bind_same(v, loop.operands[i]);
    } else if (combine == Combine::counter) {
      counters.emplace_back(i, fresh_name(param, "n"));
      bind(param, counters.back().second);
    } else {
      const ir::Type& type = loop.results[i]->type;
      const std::string name = fresh_name(param->name ? param : loop.results[i], "s");
      line(unit_.declaration(type, name) + " = " + (combine == Combine::sum ? zero(type) : text(loop.operands[i])) + ";");
      bind(param, Expression::variable(name));
      sink.targets.back() = name;
      reductions.emplace_back(i, name);
    }
  }
  bind(count.number, index);
  const Expression i(index);
  open("for (int64_t " + index + " = " + (first + Expression("threadIdx.x")).text() + "; " + binary(i, "<", value(count.bound)).text() +
       "; " + index + " += blockDim.x) {");
  for (const auto& [state, name] : counters) {
    const Expression step = integer_literal(*passes::step_of(&loop, state));
    line("const int64_t " + name + " = " + (value(loop.operands[state]) + step * (i - first)).text() + ";");
  }
  const Place outside = std::exchange(place_, Place::thread);
  block(loop.blocks[1], sink);
  place_ = outside;
  close();
  for (const auto& [state, name] : reductions) {
    const ir::Type& type = loop.results[state]->type;
    const Combine combine = ir::combine(loop, state);
    const Expression total = reduced(combine, type, Expression(name)), start = value(loop.operands[state]);
    const bool plain = combine != Combine::sum || start.text() == zero(type), checked = checks_sum(loop, state);
    const std::string before = checked ? names_.unique(name + "_finite") : "";
    const std::string is_finite = checked ? unit_.prelude().kernel("finite", type.kind()) + "(" : "";
    if (checked) line("const int " + before + " = " + is_finite + name + ")" + (plain ? "" : " & " + is_finite + start.text() + ")") + ";");
    line(name + " = " + (plain ? total : combining(combine, type, start, total)).text() + ";");
    if (checked) check_sum(loop, state, name, before);
    bind(loop.results[state], name);
  }
  // A reduction has waited for all threads.
  if (reductions.empty()) line("__syncthreads();");
  touched_ = {};
}

/// Before what follows: threads wait for each other where one has written what others read, or reads what one writes.
void StatementPrinter::barrier() {
  if (touched_.read || touched_.written) line("__syncthreads();");
  touched_ = {};
}

/// An operation that every thread of a block comes to: one of them writes, all compute.
bool StatementPrinter::in_block(const Op& op) {
  const bool changes = std::ranges::any_of(op.results, [](const Value* v) { return v->type.is_tensor(); }) && op.in_place;
  const bool loop = op.is(Opcode::loop_);
  const bool looks = op.is(Opcode::finite_) && std::ranges::any_of(op.operands, [](const Value* v) { return v->type.is_tensor(); });
  if (op.is(Opcode::get_, Opcode::argmax_) || looks) {
    if (touched_.written) barrier();
    touched_.read = true;
    return false;
  }
  if (loop && kernel_->shared.contains(&op)) {
    shared_loop(op);
    return true;
  }
  bool writes = changes, numbers = false;
  if (loop) {
    bool shares = false;
    ir::walk(op.blocks[1], [&](const Op* inner) {
      shares |= kernel_->shared.contains(inner);
      writes |= inner->in_place;
    });
    for (std::size_t i = 0; i < op.results.size(); ++i)
      numbers |= !op.results[i]->type.is_tensor() && uses_.count(op.results[i]) > 0;
    if (shares || numbers || !writes) return false;  // all threads run it
  } else if (!changes) {
    return false;
  }
  if (touched_.read) barrier();
  open("if (threadIdx.x == 0) {");
  const Place outside = std::exchange(place_, Place::thread);
  statement(op);
  place_ = outside;
  close();
  touched_.written = true;
  return true;
}

// ---- the host's side

/// The elements of arguments, where kernels see them.
void StatementPrinter::show_arguments() {
  unit_.prelude().need("gpu_start");
  line("lt_gpu_start(" + ws() + ");");
  for (const Value* p : function_.body->params) {
    const bool checked = unit_.options().check_nan && p->type.is_differentiable();
    if (!p->type.is_tensor() || (!uses_.elements_matter(p) && !checked)) continue;
    unit_.prelude().need("visible");
    const std::string element = unit_.target().element(p->type.element());
    line(atom(p) + ".data = (" + element + "*)lt_visible(" + ws() + ", " + atom(p) + ".data, " + bytes(p, element).text() + ");");
    ++allocations_;
  }
}

/// A number that lies on the GPU, at `pointer`.
void StatementPrinter::bind_device(const Value* v, const std::string& pointer) {
  bind(v, prefix("*", Expression(pointer)));
  bindings_[v].device = true;
  device_numbers_.push_back({v, pointer, open_.size()});
}

/// The host needs a number of the GPU: it waits, and takes all others with it that it will ask for.
void StatementPrinter::read_numbers(const Value* wanted) {
  std::vector<std::pair<const Value*, std::string>> fetched;
  for (const Known& k : device_numbers_) {
    const Value* v = k.value;
    const auto known = bindings_.find(v);
    if (known == bindings_.end() || !known->second.device || (v != wanted && !asked_on_host(v))) continue;
    unit_.prelude().need("fetch");
    const std::string type = unit_.target().element(v->type.kind()), name = names_.unique("fetched");
    line("const " + type + "* " + name + " = (const " + type + "*)lt_fetch(" + ws() + ", " +
         known->second.expression.operands()[0].text() + ", sizeof(" + type + "));");
    fetched.emplace_back(v, name);
  }
  line("lt_await(ws);");
  for (const auto& [v, name] : fetched) {
    const std::string pointer = bindings_[v].expression.operands()[0].text(), number = fresh_name(v);
    line(unit_.declaration(v->type, number) + " = *" + name + ";");
    bind(v, number);
    read_.push_back({v, pointer, open_.size()});
  }
}

/// Whether an operation of the host, outside of kernels, takes the number.
bool StatementPrinter::asked_on_host(const Value* v) const {
  bool asked = false;
  ir::walk(function_.body, [&](const Op* op) {
    if (unit_.kernel(op)) return false;
    if (uses_.live(op)) asked |= std::ranges::find(op->operands, v) != op->operands.end();
    return true;
  });
  return asked;
}

/// A loop or a call that works on elements one by one runs on the host, on copies of the tensors that it uses.
void StatementPrinter::on_host(const Op& op) {
  std::vector<const Value*> tensors;
  const auto take = [&](const Value* v) {
    if (v->type.is_tensor() && bindings_.contains(v) && uses_.elements_matter(v) &&
        std::ranges::find(tensors, v) == tensors.end())
      tensors.push_back(v);
  };
  for (const Value* v : op.operands) take(v);
  for (ir::Block* b : op.blocks)
    ir::walk(b, [&](const Op* inner) {
      for (const Value* v : inner->operands) take(v);
    });
  const bool escapes = op.blocks.empty() ? unit_.escapes().from(op.callee) : unit_.escapes().from(op.blocks[1]);
  const auto device_bindings = bindings_;
  const std::string mark = names_.unique("host_mark");
  unit_.prelude().need("mark");
  line("const lt_position " + mark + " = lt_mark(" + ws() + ");");
  for (const Value* v : tensors) {
    const std::string from = atom(v), name = names_.unique(ir::is_identifier(from) ? from + "_host" : "host");
    const std::string copy = unit_.prelude().tensor_function("to_host", v->type.element(), v->type.rank());
    line(unit_.declaration(v->type, name) + " = " + copy + "(ws, " + from + ");");
    const Dims known = dims(v);
    bind(v, name);
    set_dims(v, known);
  }
  unit_.prelude().need("await");
  if (!tensors.empty()) line("lt_await(ws);");
  const int allocations = allocations_;
  place_ = Place::plain;
  statement(op);
  place_ = Place::host;
  allocations_ = allocations;
  std::vector<std::pair<const Value*, Binding>> results;
  for (const Value* v : op.results) {
    if (uses_.count(v) == 0) continue;
    if (!v->type.is_tensor()) {
      atom(v);
      results.emplace_back(v, bindings_.at(v));
      continue;
    }
    const std::string from = atom(v), element = unit_.target().element(v->type.element());
    // What works in the memory of another tensor changes that one.
    if (const auto root = device_bindings.find(memory_root(v)); root != device_bindings.end()) {
      const Dims known = dims(root->first);
      line("lt_gpu_copy(ws, " + root->second.expression.text() + ".data, " + from + ".data, " + bytes(v, element).text() + ");");
      set_dims(v, known);
      results.emplace_back(v, root->second);
      continue;
    }
    const std::string name = fresh_name(v);
    const std::string copy = unit_.prelude().tensor_function("to_device", v->type.element(), v->type.rank());
    line(unit_.declaration(v->type, name) + " = " + copy + "(ws, " + from + ");");
    ++allocations_;
    const Dims known = dims(v);
    bind(v, name);
    set_dims(v, known);
    results.emplace_back(v, bindings_.at(v));
  }
  if (!escapes) line("lt_leave(ws, " + mark + ");");
  bindings_ = device_bindings;
  for (auto& [v, binding] : results) bindings_[v] = std::move(binding);
}

}  // namespace lantern::codegen
