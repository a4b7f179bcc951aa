// Loops as kernels (codegen/kernels.hpp). What a trip asks for from around comes by value: numbers, and
// tensors as pointers with sizes, whose elements lie where both sides see them.
//
//   if (const int64_t trips = lt_trips(0, v3)) {
//     f_kernel1<<<lt_blocks(trips), 256>>>(x, result, trips);     a trip a thread, or several
//     lt_await(ws);
//   }
//
// Where trips are added up, threads take ranges of them, so many as the number of trips alone says; the host
// adds up what they give, in order. A trip that fails says so to the host, which fails in its place: of
// several the first.
#include <algorithm>
#include <cctype>

#include "lantern/codegen/statement_printer.hpp"
#include "lantern/compiler/passes/analysis/loops.hpp"

namespace lantern::codegen {

using ir::Kind;
using ir::Op;
using ir::Opcode;
using ir::Value;

namespace {

bool is_identifier(const std::string& text) {
  return !text.empty() && std::isdigit(static_cast<unsigned char>(text[0])) == 0 &&
         std::ranges::all_of(text, [](unsigned char c) { return std::isalnum(c) != 0 || c == '_'; });
}

}  // namespace

/// What stands on either side of a launch.
struct StatementPrinter::Launch {
  struct Level {
    std::string first, trips;  ///< of one loop of the nest, in the kernel
    std::string index;
  };
  struct Partial {
    std::size_t state;
    std::string start, first, name,
        parts;  ///< where it begins, on either side; its variable; what ranges give
  };
  std::string name, parameters, arguments;
  std::string trips, shares;  ///< their numbers, in the kernel and on the host
  std::string trip, share;    ///< which one, in the kernel
  std::vector<Level> levels;
  std::vector<Partial> partials;
  std::unordered_map<const Value*, Binding> bindings;  ///< of what is captured
  bool counters = false;                               ///< the number of a trip is asked for
  std::size_t trip_start = 0;                          ///< where a trip begins in the text of the kernel

  void pass(const std::string& type, const std::string& parameter, const std::string& argument) {
    parameters += (parameters.empty() ? "" : ", ") + type + " " + parameter;
    arguments += (arguments.empty() ? "" : ", ") + argument;
  }
};

void StatementPrinter::kernel(const Op& loop, const Kernel& kernel) {
  unit_.prelude().need("launch");
  checks_before(loop);
  ws();
  const std::size_t names = names_.mark();
  Launch launch;
  const std::string of = info_.exported ? info_.name : unit_.public_name() + "_" + info_.name;
  launch.name = names_.unique(of + "_kernel" + std::to_string(++kernel_count_));
  launch.trips = names_.unique("trips");
  launch.trip = names_.unique("trip");
  capture(kernel, launch);

  // How many trips, and where each loop begins.
  std::string all;
  std::vector<const Op*> loops = kernel.nest;
  if (!kernel.columns.empty()) loops.push_back(kernel.columns.front());
  for (const Op* o : loops) {
    const auto count = *passes::counted(o);
    const std::string first = text(o->operands[count.index]), last = text(count.bound);
    const bool columns = !kernel.columns.empty() && o == kernel.columns.front();
    if (columns) unit_.prelude().need("columns");
    const std::string number = (columns ? "lt_columns(" : "lt_trips(") + first + ", " + last + ")";
    Launch::Level level{first, number, {}};
    if (first != "0") launch.pass("int64_t", level.first = names_.unique("first"), first);
    if (o != &loop) launch.pass("int64_t", level.trips = names_.unique("inner_trips"), number);
    all += (all.empty() ? "" : " * ") + number;
    launch.levels.push_back(level);
  }
  launch.pass("int64_t", launch.trips, launch.trips);
  if (kernel.in_ranges()) {
    line("const int64_t " + launch.trips + " = " + all + ";");
    unit_.prelude().need("shares");
    launch.shares = names_.unique("shares");
    launch.share = names_.unique("share");
    line("const int64_t " + launch.shares + " = lt_shares(" + launch.trips + ");");
    launch.pass("int64_t", launch.shares, launch.shares);
  }
  for (std::size_t i = 0; i < loop.results.size(); ++i) {
    if (!ir::is_reduction(kernel.combine(i)) || !uses_.live_state(&loop, i)) continue;
    const std::string type = unit_.type(loop.results[i]->type);
    Launch::Partial p{i, text(loop.operands[i]), {}, {}, {}};
    p.name = fresh_name(loop.blocks[1]->params[i]->name ? loop.blocks[1]->params[i] : loop.results[i], "s");
    p.parts = names_.unique(p.name + "_parts");
    p.first = names_.unique(p.name + "_start");
    unit_.prelude().need("allocate");
    line(type + "* " + p.parts + " = (" + type + "*)lt_allocate(ws, " + launch.shares +
         " * (int64_t)sizeof(" + type + "));");
    ++allocations_;
    launch.pass(type, p.first, p.start);
    launch.pass(type + "*", p.parts, p.parts);
    launch.partials.push_back(p);
  }
  kernel_text(kernel, launch);

  const std::string count = launch.shares.empty() ? launch.trips : launch.shares;
  open(launch.shares.empty() ? "if (const int64_t " + launch.trips + " = " + all + ") {"
                             : "if (" + count + " > 0) {");
  line(launch.name + "<<<lt_blocks(" + count + "), 256>>>(" + launch.arguments + ");");
  line("lt_await(ws);");
  close();
  totals(kernel, launch);
  for (std::size_t i = 0; i < loop.results.size(); ++i)
    if (loop.results[i]->type.is_tensor() && uses_.live_state(&loop, i))
      bind_same(loop.results[i], loop.operands[i]);
  if (launch.partials.empty()) names_.release(names);
}

/// The values from around, each a parameter; by the name that it has on the host where that is one.
void StatementPrinter::capture(const Kernel& kernel, Launch& launch) {
  std::unordered_map<std::string, std::string> passed;
  for (const Value* v : kernel.captured) {
    const auto known = bindings_.find(v);
    if (known == bindings_.end()) continue;  // the start of a state that nobody reads
    const std::string here = atom(v);
    const auto [it, added] = passed.try_emplace(here, is_identifier(here) ? here : "");
    if (added) {
      if (it->second.empty()) it->second = fresh_name(v);
      launch.pass(unit_.type(v->type), it->second, here);
    }
    launch.bindings[v].expression.text = it->second;
  }
}

/// The definition of the kernel; nothing is left behind in the statements at hand.
void StatementPrinter::kernel_text(const Kernel& kernel, Launch& launch) {
  Statements host = std::exchange(statements_, {});
  std::vector<Open> around = std::exchange(open_, {});
  auto host_bindings = std::exchange(bindings_, launch.bindings);
  const int allocations = allocations_;
  const Op* const self = current_;
  used_workspace_ = false;
  unit_.print_for_device(true);
  unit_.prelude().need("kernel");

  bool fails = false;
  // Before the trip: its number, where somebody asks for it.
  const auto finish_trip = [&] {
    fails = std::exchange(used_workspace_, true);
    Statements number;
    if (!launch.shares.empty() && (fails || launch.counters))
      number.push_back("const int64_t " + launch.trip + " = " + launch.levels[0].index +
                       (launch.levels[0].first == "0" ? "" : " - " + launch.levels[0].first) + ";");
    if (fails) number.push_back("ws->trip = " + launch.trip + ";");
    statements_.insert(statements_.begin() + static_cast<std::ptrdiff_t>(launch.trip_start), number.begin(),
                       number.end());
  };
  const std::string one = launch.shares.empty() ? launch.trip : launch.share;
  const std::string count = launch.shares.empty() ? launch.trips : launch.shares;
  open(Statement{});
  open(Statement("for (int64_t " + one + " = LT_THREAD; " + one + " < " + count + "; " + one +
                 " += LT_THREADS) {"));
  if (launch.shares.empty()) {
    trip(kernel, launch);
    finish_trip();
  } else {
    const Op& loop = *kernel.nest.front();
    unit_.prelude().need("before");
    const std::string index = fresh_name(loop.blocks[1]->params[passes::counted(&loop)->index], "n");
    launch.levels[0].index = index;
    for (const Launch::Partial& p : launch.partials) {
      const ir::Type& type = loop.results[p.state]->type;
      const bool sum = kernel.combine(p.state) == ir::Combine::sum;
      line(unit_.declaration(type, p.name) + " = " +
           (sum ? launch.share + " == 0 ? " + p.first + " : " + zero(type) : p.first) + ";");
    }
    const auto before = [&](const std::string& share) {
      return (launch.levels[0].first == "0" ? "" : launch.levels[0].first + " + ") + "lt_before(" +
             launch.trips + ", " + launch.shares + ", " + share + ")";
    };
    const std::string end = names_.unique("end");
    line("const int64_t " + end + " = " + before(launch.share + " + 1") + ";");
    open("for (int64_t " + index + " = " + before(launch.share) + "; " + index + " < " + end + "; ++" +
         index + ") {");
    trip(kernel, launch);
    finish_trip();
    close();
    for (const Launch::Partial& p : launch.partials)
      line(p.parts + "[" + launch.share + "] = " + p.name + ";");
  }
  close();
  unit_.print_for_device(false);
  if (fails) {
    unit_.prelude().need("failure");
    launch.pass("lt_failure*", "failure", "lt_failure_of(ws)");
    const Statements thread{Statement("lt_workspace thread;"), Statement("lt_workspace* ws = &thread;"),
                            Statement("ws->failure = failure;")};
    statements_.insert(statements_.begin(), thread.begin(), thread.end());
  }
  open_.back().head.text = "extern \"C\" __global__ void " + launch.name + "(" + launch.parameters + ") {";
  close();
  kernels_ += written(statements_) + "\n";

  statements_ = std::move(host);
  open_ = std::move(around);
  bindings_ = std::move(host_bindings);
  allocations_ = allocations;
  current_ = self;
}

/// One trip. Its number is told to the workspace, should it fail.
void StatementPrinter::trip(const Kernel& kernel, Launch& launch) {
  const Op& loop = *kernel.nest.front();
  const bool ranges = !launch.shares.empty();
  launch.trip_start = statements_.size();
  // The number of a trip of the nest: those of the inner loops run fastest.
  std::string rest = launch.trip;
  for (std::size_t d = 0; d < kernel.nest.size(); ++d) {
    const Op& o = *kernel.nest[d];
    const Value* param = o.blocks[1]->params[passes::counted(&o)->index];
    std::string behind;
    for (std::size_t e = d + 1; e < launch.levels.size(); ++e)
      behind += (e == d + 1 ? "" : " * ") + launch.levels[e].trips;
    if (behind.find('*') != std::string::npos) behind = "(" + behind + ")";
    std::string number = behind.empty() ? launch.trip : launch.trip + " / " + behind;
    if (d > 0)
      number = behind.empty() ? launch.trip + " % " + launch.levels[d].trips
                              : number + " % " + launch.levels[d].trips;
    if (ranges) {
      bind(param, launch.levels[0].index);
    } else {
      const std::string name = fresh_name(param, "n");
      line("const int64_t " + name + " = " +
           (launch.levels[d].first == "0" ? "" : launch.levels[d].first + " + ") + number + ";");
      bind(param, name);
    }
    for (std::size_t i = 0; i < o.results.size(); ++i) {
      if (!o.results[i]->type.is_tensor() || !uses_.live_state(&o, i)) continue;
      for (const Value* v : {o.blocks[0]->params[i], o.blocks[1]->params[i]}) bind_same(v, o.operands[i]);
      bind_same(o.results[i], o.operands[i]);
    }
    if (d == 0) {
      for (std::size_t i = 0; i < o.results.size(); ++i) {
        if (kernel.combine(i) != ir::Combine::counter || !uses_.live_state(&o, i)) continue;
        launch.counters = true;
        const std::string name = fresh_name(o.blocks[1]->params[i], "n");
        const std::int64_t step = *passes::step_of(&o, i);
        line("const int64_t " + name + " = " + text(o.operands[i]) + " + " + std::to_string(step) + " * " +
             launch.trip + ";");
        bind(o.blocks[1]->params[i], name);
      }
      for (const Launch::Partial& p : launch.partials) bind(o.blocks[1]->params[p.state], p.name, true);
    }
    if (d > 0) checks_before(o);
    if (d + 1 == kernel.nest.size()) break;
    const auto& next = o.blocks[1]->ops.back()->operands;  // trips of their own count for themselves
    for (const Op* inner : o.blocks[1]->ops) {
      if (inner == kernel.nest[d + 1] || inner->is(Opcode::yield_) || !uses_.live(inner)) continue;
      if (!inner->results.empty() && std::ranges::find(next, inner->result()) != next.end() &&
          uses_.count(inner->result()) == 1)
        continue;
      current_ = inner;
      operation(*inner);
    }
  }
  if (!kernel.columns.empty()) {
    const Launch::Level& level = launch.levels.back();
    const std::string name = names_.unique("column");
    line("const int64_t " + name + " = " + (level.first == "0" ? "" : level.first + " + ") + launch.trip +
         " % " + level.trips + ";");
    for (const Op* o : kernel.columns) columns_[o] = name;
  }
  Sink sink;
  const Op& last = *kernel.nest.back();
  for (const Value* v : last.results) {
    sink.targets.emplace_back();
    sink.types.push_back(v->type);
  }
  if (&last == &loop)
    for (const Launch::Partial& p : launch.partials) sink.targets[p.state] = p.name;
  block(last.blocks[1], sink);
}

/// One trip of a loop, which has others for other threads; none where the loop has none.
void StatementPrinter::column(const Op& loop) {
  checks_before(loop);
  const auto count = *passes::counted(&loop);
  Sink sink;
  for (std::size_t i = 0; i < loop.results.size(); ++i) {
    sink.targets.emplace_back();
    sink.types.push_back(loop.results[i]->type);
    if (!loop.results[i]->type.is_tensor() || !uses_.live_state(&loop, i)) continue;
    for (const Value* v : {loop.blocks[0]->params[i], loop.blocks[1]->params[i], loop.results[i]})
      bind_same(v, loop.operands[i]);
  }
  bind(loop.blocks[1]->params[count.index], columns_.at(&loop));
  open("if (" + columns_.at(&loop) + " < " + text(count.bound) + ") {");
  block(loop.blocks[1], sink);
  close();
}

/// What the ranges give becomes one number, in their order.
void StatementPrinter::totals(const Kernel& kernel, const Launch& launch) {
  const Op& loop = *kernel.nest.front();
  for (const Launch::Partial& p : launch.partials) {
    const Value* result = loop.results[p.state];
    const Kind kind = result->type.kind();
    line(unit_.declaration(result->type, p.name) + " = " + launch.shares + " > 0 ? " + p.parts +
         "[0] : " + p.start + ";");
    const Opcode code = ir::reduction(kernel.combine(p.state), result->type);
    const std::vector<Expression> both{{p.name, Precedence::primary, false, {}},
                                       {p.parts + "[" + launch.share + "]", Precedence::primary, false, {}}};
    const bool wraps = code == Opcode::add_ && result->type.is_integer();
    const std::string sum = std::string("add_") + ir::kind_name(kind);
    if (wraps) unit_.prelude().need(sum);
    std::vector<std::string> functions;
    Expression next =
        substitute(wraps ? "f(x, y)" : ir::info(code).expression, both, unit_.target(), kind, functions);
    if (wraps)
      next.text.replace(0, next.text.find('('), "lt_" + sum);
    else
      for (const std::string& f : functions) unit_.prelude().math(f, kind);
    line("for (int64_t " + launch.share + " = 1; " + launch.share + " < " + launch.shares + "; ++" +
         launch.share + ") " + assignment(p.name, next));
    bind(result, p.name);
  }
}

/// The elements of arguments lie in the caller's memory; kernels get copies that they see, unless they see
/// those.
void StatementPrinter::show_arguments() {
  for (const Value* p : function_.body->params) {
    if (!p->type.is_tensor() || !uses_.elements_matter(p)) continue;
    unit_.prelude().need("visible");
    const std::string element = unit_.target().element(p->type.element());
    line(atom(p) + ".data = (" + element + "*)lt_visible(" + ws() + ", " + atom(p) + ".data, " + elements(p) +
         " * (int64_t)sizeof(" + element + "));");
  }
}

}  // namespace lantern::codegen
