// One paragraph after the other, each from one look at the graph.
#include "explain.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "lantern/codegen/communication.hpp"
#include "lantern/codegen/kernels.hpp"
#include "lantern/codegen/narrow_tensors.hpp"
#include "lantern/compiler/passes/analysis/loops.hpp"
#include "lantern/compiler/passes/pipeline.hpp"
#include "lantern/compiler/passes/support/memory.hpp"
#include "lantern/ir/op.hpp"
#include "arena.hpp"
#include "message_times.hpp"
#include "traffic.hpp"

namespace lantern::tool {

namespace {

using ir::Op;
using ir::Opcode;
using ir::Value;

/// "model.cpp:12": columns of rewritten text would mislead.
std::string place(const ir::Location& loc) {
  return loc.known() ? std::string(loc.file) + ":" + std::to_string(loc.line) : "(no place)";
}
std::string line(const ir::Location& loc) {
  return loc.known() ? " at line " + std::to_string(loc.line) : "";
}

std::string name_of(Opcode code) { return "'" + std::string(ir::info(code).name) + "'"; }

std::string joined(const std::vector<std::string>& parts, const std::string& between = ", ") {
  std::string all;
  for (const std::string& p : parts) all += (all.empty() ? "" : between) + p;
  return all;
}

/// Bytes, or nothing where a size is known only at run time.
std::optional<std::int64_t> bytes_of(const ir::Type& t) {
  using passes::element_bytes;
  if (t.is_vector() && t.kind() == ir::Kind::boolean) return std::max(t.lanes() / 8, 1);  // a bit for each
  if (t.is_scalar() || t.is_vector()) return element_bytes(t.element()) * t.lanes();
  if (!t.is_tensor()) return std::nullopt;
  std::int64_t n = element_bytes(t.element());
  for (const std::int64_t d : t.dims()) {
    if (d == ir::dynamic) return std::nullopt;
    n *= d;
  }
  return n;
}

/// So many bytes, and the sizes of tensors that are not known.
struct Size {
  std::int64_t bytes = 0;
  std::vector<std::string> unknown;
  void add(const ir::Type& t) {
    if (const auto b = bytes_of(t))
      bytes += *b;
    else
      unknown.push_back(t.str());
  }
  std::string str() const {
    std::vector<std::string> parts;
    if (bytes > 0 || unknown.empty())
      parts.push_back(std::to_string(bytes) + (bytes == 1 ? " byte" : " bytes"));
    for (const std::string& t : unknown) parts.push_back("a " + t);
    return joined(parts, " and ");
  }
};

const Op* loop_around(const Op* op) {
  for (const ir::Block* b = op->parent; b != nullptr && b->parent != nullptr; b = b->parent->parent)
    if (b->parent->is(Opcode::loop_)) return b->parent;
  return nullptr;
}

constexpr std::string_view no_lanes = "does not run in lanes: ", no_fork = "does not fork: ",
                           in_order = "is not parallel: ";

struct Loop {
  const Op* op = nullptr;
  bool pushes = false, pops = false;
};

class Explanation {
 public:
  Explanation(const std::string& name, const ir::Module& module, const Progress& progress, const std::vector<std::string>& mappings,
              const std::string& storage)
      : name_(name), module_(module), progress_(progress), mappings_(mappings), storage_(storage) {
    for (const ir::Function* f : module.functions())
      ir::walk(f->body, [&](const Op* op) { ops_.push_back(op); });
    for (const Op* op : ops_) {
      if (op->is(Opcode::loop_)) loops_.push_back({op});
      if (op->is(Opcode::pop_)) pops_[op->integer].push_back(op);
      for (const Value* v : op->operands) users_[v].push_back(op);
    }
    for (Loop& l : loops_)
      for (const ir::Block* b : l.op->blocks)
        ir::walk(const_cast<ir::Block*>(b), [&](const Op* op) {
          l.pushes |= op->is(Opcode::push_);
          l.pops |= op->is(Opcode::pop_);
        });
  }

  std::string text() {
    out_ = name_ + "\n";
    interface();
    loops();
    recursion();
    batches();
    communication();
    tape();
    passes();
    // Lanes say by themselves what is against them.
    const auto has = [&](std::string_view name) {
      return std::ranges::any_of(progress_.passes, [&](const auto& pass) { return pass.first == name; });
    };
    if (runs_on_gpu()) kernels();
    if (storage_ != "f32") stored_tensors();
    if (has("threads") || !has("vectorise")) what_loops_do("parallel", in_order, "iterations", "no loop");
    if (has("vectorise")) what_loops_do("vectorise", no_lanes, "vectors", "no loop to run in lanes");
    if (has("threads")) what_loops_do("threads", no_fork, "threads", "no loop to share out");
    return out_;
  }

 private:
  void heading(const std::string& title) { out_ += "  " + title + "\n"; }
  void item(const std::string& text) { out_ += "    " + text + "\n"; }

  void interface() {
    const ir::Function& f = *module_.entry;
    std::vector<std::string> parameters, results;
    for (const Value* p : f.body->params)
      parameters.push_back((p->name != nullptr ? std::string(p->name) + ": " : "") + p->type.str());
    for (const ir::Type& t : f.result_types) results.push_back(t.str());
    heading("takes " + (parameters.empty() ? "nothing" : joined(parameters)) + "; gives " + joined(results));
  }

  /// Loops by the user's place: one may have become several.
  void loops() {
    std::map<std::pair<std::string, std::uint32_t>, std::vector<const Loop*>> by_place;
    for (const Loop& l : loops_)
      by_place[{l.op->loc.known() ? l.op->loc.file : "", l.op->loc.line}].push_back(&l);
    heading(by_place.empty() ? "loops: none" : "loops");
    for (const auto& [where, all] : by_place) {
      bool forward = false, backward = false;
      std::optional<std::int64_t> count;
      bool counts = false;
      for (const Loop* l : all) {
        forward |= l->pushes || !l->pops;
        backward |= l->pops;
        if (!count) count = passes::known_trip_counts(l->op);
        counts |= passes::counted(l->op).has_value();
      }
      counts |= in_lanes(place(all.front()->op->loc));
      if (counts) counting_.insert(place(all.front()->op->loc));
      std::string text = place(all.front()->op->loc) + ": ";
      text += count    ? std::to_string(*count) + " iterations"
              : counts ? "counts to a bound"
                       : "runs until its condition fails";
      if (forward && backward) text += "; once forward, and backward for the derivative";
      if (!forward) text += "; backward for the derivative only";
      item(text);
    }
  }

  /// What of the program is a kernel of a GPU, and how its threads share the work.
  void kernels() {
    const codegen::Kernels chosen(module_, mappings_);
    std::vector<std::string> all;
    const auto take = [&](const Op* op) {
      const codegen::Kernel* const kernel = chosen.of(op);
      std::string text;
      if (kernel) {
        text = std::string(codegen::name(kernel->mapping)) + ": " +
               (kernel->mapping == codegen::Mapping::rows ? "a block of threads takes an iteration" : "a thread takes an iteration");
        if (kernel->nest.size() > 1) text += " of " + std::to_string(kernel->nest.size()) + " loops";
        if (kernel->asked) text += ", as asked for";
        if (kernel->reduces()) text += "; total: blocks add up what they have, the last one what all have";
        if (kernel->sums_into_tensors()) text += "; columns: each block adds to a tensor of its own, a second kernel adds these up";
      } else if (op->is(Opcode::add_einsum_) || op->is(Opcode::add_matmul_) || op->is(Opcode::gemm_)) {
        text = "product: cuBLAS where it is a product of matrices, cuDNN for a convolution of pictures, else a kernel with tiles";
      } else if (op->is(Opcode::argmax_)) {
        text = "total: one block finds the place";
      } else if (chosen.on_host(op) && op->is(Opcode::external_)) {
        text = "host: a function of the host, on copies; waits for the GPU";
      } else if (op->is(Opcode::print_)) {
        text = chosen.on_host(op) ? "host: prints a copy; waits for the GPU" : "";
      } else if (chosen.on_host(op)) {
        text = "host: one element after the other, on copies; waits for the GPU";
      }
      if (!text.empty()) all.push_back(place(op->loc) + ": " + text);
      return !kernel && !chosen.on_host(op);
    };
    for (const ir::Function* f : module_.functions())
      if (!chosen.on_device(f) && !chosen.host_function(f)) ir::walk(f->body, take);
    heading(all.empty() ? "kernels: none" : "kernels");
    for (const std::string& one : all) item(one);
  }

  /// Which tensors of the function's own lie in 16 bits of the GPU's memory, and why others do not. What is said of several tensors is
  /// said once.
  void stored_tensors() {
    const codegen::Kernels kernels(module_, mappings_);
    std::vector<std::string> all;
    const codegen::NarrowTensors tensors(codegen::reachable(module_), kernels);
    for (const codegen::NarrowTensors::Choice& c : tensors.choices()) {
      std::string text = place(c.tensor->def->loc) + ": " + (c.name.empty() ? "" : "'" + c.name + "', ") + c.tensor->type.str() + ": ";
      const bool returned = c.use != nullptr && c.use->is(Opcode::yield_);
      text += c.use == nullptr ? storage_ : "float: " + c.why_float + (returned ? "" : line(c.use->loc));
      if (std::ranges::find(all, text) == all.end()) all.push_back(text);
    }
    heading(all.empty() ? "storage in " + storage_ + ": no tensor of the function's own could be" : "storage in " + storage_);
    for (const std::string& one : all) item(one);
  }

  bool in_lanes(const std::string& where) const {
    return std::ranges::any_of(progress_.remarks, [&](const passes::Remark& r) {
      return r.pass == "vectorise" && place(r.loc) == where && !r.text.starts_with(no_lanes);
    });
  }

  void recursion() {
    std::vector<std::string> found;
    for (const ir::Function* f : module_.functions()) {
      if (!reaches(f, f)) continue;
      found.push_back("'" + f->name + "' calls itself" + (f->loc.known() ? ": " + place(f->loc) : ""));
    }
    heading(found.empty() ? "recursion: none" : "recursion");
    for (const std::string& f : found) item(f);
  }
  /// What goes between processes, by its place in the program, and what runs meanwhile.
  void communication() {
    constexpr const char* names[] = {"all_reduce", "reduce", "broadcast", "gather", "all_gather", "scatter", "reduce_scatter",
                                     "all_to_all", "scan", "scan", "scan", "scan", "send_receive"};
    bool first = true;
    std::vector<Message> messages;
    std::optional<codegen::Kernels> kernels;
    if (runs_on_gpu()) kernels.emplace(module_, mappings_);
    for (const Op* op : ops_) {
      if (!op->is(Opcode::external_)) continue;
      const std::string_view text = op->text;
      const bool whole = text.starts_with("void distributed_exchange_"), half = text.starts_with("int64_t distributed_start_"),
                 ragged = text.starts_with("void distributed_ragged_"), exact = text.starts_with("void distributed_exact_sum_");
      if (!whole && !half && !ragged && !exact) continue;
      if (std::exchange(first, false)) heading("communication");
      const Op* const operation = whole || half ? op->operands[1]->def : nullptr;
      const bool known = operation != nullptr && operation->is(Opcode::constant_);
      const ir::Type& sent = op->operands[whole || half ? 6 : ragged ? 4 : 3]->type;
      Size size;
      size.add(sent);
      std::string times;
      const Times done = times_done(op);
      if (!done.known) times = "in each iteration of a loop; ";
      if (done.known && done.count > 1) times = std::to_string(static_cast<std::int64_t>(done.count)) + " times; ";
      const std::string name = ragged ? "all_to_all, ragged" : exact ? "deterministic sum" : known ? names[operation->integer] : "an operation";
      std::string way = half ? "goes on beside computation" : "the program waits for it";
      if (kernels) way = codegen::is_queued(*op) && !inside_host_part(*kernels, op) ? "in the GPU's stream, by NCCL" : "through the host by MPI; waits for the GPU";
      item(place(op->loc) + ": " + name + " of " + size.str() + " from each rank; " + times + way);
      const std::int64_t which = ragged ? 7 : exact ? 0 : known ? operation->integer : 0;
      messages.push_back({name + " at " + place(op->loc), which, estimated_bytes(sent, which), done.count});
    }
    if (messages.empty()) return;
    heading("time of communication");
    for (const std::string& l : shares_of_time(messages, arithmetic())) item(l);
  }

  /// Whether the pipeline was that of a GPU.
  bool runs_on_gpu() const {
    return std::ranges::any_of(progress_.passes, [](const auto& pass) { return pass.first == "device_scalars"; });
  }
  static bool inside_host_part(const codegen::Kernels& kernels, const Op* op) {
    for (const Op* at = op; at != nullptr; at = at->parent->parent)
      if (kernels.on_host(at)) return true;
    return kernels.host_function(op->parent->function);
  }

  struct Times {
    double count = 1;
    bool known = true;
  };
  /// How often an operation is done in a call of its function.
  static Times times_done(const Op* op) {
    Times t;
    for (const Op* loop = loop_around(op); loop != nullptr; loop = loop_around(loop)) {
      const auto n = passes::known_trip_counts(loop);
      t.known &= n.has_value();
      t.count *= n ? static_cast<double>(*n) : unknown_count;
    }
    return t;
  }
  /// Of a part for one rank: tensors whose size is not known hold so many elements.
  static double estimated_bytes(const ir::Type& sent, std::int64_t which) {
    const bool parts = sent.is_tensor() && (which == 5 || which == 6 || which == 7);  // along its first dimension
    double n = 1;
    bool unknown = false;
    for (std::size_t d = parts ? 1 : 0; sent.is_tensor() && d < sent.dims().size(); ++d) {
      unknown |= sent.dims()[d] == ir::dynamic;
      if (sent.dims()[d] != ir::dynamic) n *= static_cast<double>(sent.dims()[d]);
    }
    return n * (unknown ? unknown_count : 1) * static_cast<double>(bytes_of(ir::Type(sent.element())).value_or(8));
  }
  /// How many operations on numbers and vectors a call does, as far as loops say so.
  double arithmetic() const {
    double all = 0;
    for (const Op* op : ops_)
      if (ir::info(op->code).elementwise && !op->results.empty() && !op->result()->type.is_tensor() && !op->result()->type.is_integer())
        all += times_done(op).count;
    return all;
  }

  /// How each TREE over a batch runs.
  void batches() {
    bool first = true;
    for (const passes::Remark& r : progress_.remarks) {
      if (r.pass != "batch_trees") continue;
      if (std::exchange(first, false)) heading("batches of trees");
      item(place(r.loc) + ": " + r.text);
    }
  }
  bool reaches(const ir::Function* from, const ir::Function* to) const {
    std::set<const ir::Function*> seen;
    std::vector<const ir::Function*> open{from};
    while (!open.empty()) {
      const ir::Function* f = open.back();
      open.pop_back();
      bool found = false;
      ir::walk(f->body, [&](const Op* op) {
        if (!op->is(Opcode::call_)) return;
        found |= op->callee == to;
        if (seen.insert(op->callee).second) open.push_back(op->callee);
      });
      if (found) return true;
    }
    return false;
  }

  /// Where a push belongs: an iteration of a loop, a call of a function that recurses, or the call of the whole.
  struct Owner {
    std::string text;
    const Op* loop = nullptr;
    bool recursive = false;
    auto operator<=>(const Owner&) const = default;
  };
  Owner owner(const Op* push) const {
    if (const Op* l = loop_around(push)) {
      // The user's loop within: what is kept of it once in a while.
      bool segments = false;
      for (const ir::Block* b : l->blocks)
        ir::walk(const_cast<ir::Block*>(b),
                 [&](const Op* op) { segments |= op->is(Opcode::loop_) && place(op->loc) == place(l->loc); });
      return {(segments ? "each segment of the loop at " : "each iteration of the loop at ") + place(l->loc), l,
              false};
    }
    const ir::Function* f = push->parent->function;
    if (reaches(f, f)) return {"each call of '" + f->name + "'", nullptr, true};
    return {"once", nullptr, false};
  }

  void tape() {
    std::vector<std::pair<Owner, std::vector<const Op*>>> by_owner;
    for (const Op* op : ops_) {
      if (!op->is(Opcode::push_)) continue;
      const Owner o = owner(op);
      auto at = std::ranges::find_if(by_owner, [&](const auto& e) { return e.first.text == o.text; });
      if (at == by_owner.end()) at = by_owner.insert(by_owner.end(), {o, {}});
      // A loop that was written twice (segments) puts the same things on the same tapes.
      if (std::ranges::none_of(at->second, [&](const Op* p) { return p->integer == op->integer; }))
        at->second.push_back(op);
    }
    heading(by_owner.empty() ? "tape: nothing is kept for a backward pass"
                             : "tape: kept for the backward pass");
    std::vector<std::string> memory;
    for (const auto& [o, pushes] : by_owner) {
      Size size;
      for (const Op* push : pushes)
        for (const Value* v : push->operands) size.add(v->type);
      item((o.text == "once" ? "for the whole call" : o.text) + ", " + size.str());
      for (const Op* push : pushes) item("  " + what(push) + why(push));
      memory.push_back(total(o, size));
    }
    for (const passes::Remark& r : progress_.remarks)
      if (r.pass == "unwind") item(place(r.loc) + ": " + r.text);
    heading("memory for one call: " + (memory.empty() ? "none" : joined(memory, ", ")));
    arena();
    if (!progress_.traffic.empty()) heading(progress_.traffic);
  }

  /// What the memory plan comes to.
  void arena() {
    const ArenaUse use = arena_use(module_);
    if (use.peak.magnitude() <= 0 && !use.products && use.results.magnitude() <= 0) return;
    std::string text = "memory of tensors at one time: " + use.peak.str();
    if (use.products) text += ", and up to 3 MB where matrices are multiplied";
    if (use.recursive) text += ", more where calls nest";
    if (use.results.magnitude() > 0) text += "; results " + use.results.str();
    heading(text);
  }

  std::string total(const Owner& o, const Size& size) const {
    if (o.recursive) return size.str() + " for " + o.text;
    if (o.loop == nullptr) return size.str();
    const auto n = passes::known_trip_counts(o.loop);
    const bool nested = loop_around(o.loop) != nullptr;
    if (n && !nested && size.unknown.empty())
      return std::to_string(*n * size.bytes) + " bytes (" + std::to_string(*n) + " iterations)";
    return size.str() + " for " + o.text;
  }

  static std::string what(const Op* push) {
    std::vector<std::string> parts;
    for (const Value* v : push->operands) {
      std::string text = v->type.str();
      if (v->name != nullptr) text += " '" + std::string(v->name) + "'";
      if (v->def != nullptr)
        text += ", the result of " + name_of(v->def->code) + line(v->def->loc);
      else if (v->block->parent == nullptr)
        text += ", an argument";
      else
        text += ", the loop's state at the start of the iteration";
      parts.push_back(text);
    }
    return joined(parts);
  }

  /// What the backward pass does with it.
  std::string why(const Op* push) const {
    std::vector<std::string> uses, operations;
    const auto add = [](std::vector<std::string>& to, const std::string& use) {
      if (std::ranges::find(to, use) == to.end()) to.push_back(use);
    };
    const auto found = pops_.find(push->integer);
    if (found == pops_.end()) return "";
    for (const Op* pop : found->second)
      for (const Value* v : pop->results) {
        const auto users = users_.find(v);
        if (users == users_.end()) continue;
        for (const Op* user : users->second) {
          const std::string use = purpose(user, v);
          use.empty() ? add(operations, name_of(user->code) + line(user->loc)) : add(uses, use);
        }
      }
    if (!operations.empty())
      uses.insert(uses.begin(), "the backward pass needs it for " + joined(operations));
    return uses.empty() ? "" : ": " + joined(uses);
  }
  /// Empty where it is an operand like others.
  static std::string purpose(const Op* user, const Value* v) {
    switch (user->code) {
      case Opcode::branch_:
        if (user->operands[0] == v) return "says which way the branch" + line(user->loc) + " went";
        break;
      case Opcode::loop_:
        if (v->type.kind() == ir::Kind::i64) return "says how often the loop" + line(user->loc) + " runs";
        return "the loop" + line(user->loc) + " starts from it";
      case Opcode::call_:
        return "handed to '" + user->callee->name + "'";
      case Opcode::yield_:
      case Opcode::push_:
        return "handed on";
      default:
        break;
    }
    return "";
  }

  void passes() {
    heading("passes: " + std::to_string(progress_.staged) + " operations as staged");
    std::size_t before = progress_.staged;
    for (const auto& [name, after] : progress_.passes) {
      if (after != before || ran(name)) {
        std::string about;
        for (const passes::Pass& p : passes::passes())
          if (p.name == name) about = p.what;
        item(name + ": " + std::to_string(after) + " (" + about + ")");
      }
      before = after;
    }
    std::vector<std::string> idle;
    before = progress_.staged;
    for (const auto& [name, after] : progress_.passes) {
      if (after == before && !ran(name)) idle.push_back(name);
      before = after;
    }
    if (!idle.empty()) item("without effect on their number: " + joined(idle));
  }
  bool ran(const std::string& name) const {
    return std::ranges::any_of(progress_.remarks, [&](const passes::Remark& r) {
      return r.pass == name && r.text.find("not") == std::string::npos;
    });
  }

  /// What a pass said of the user's loops; what begins with `refusal` speaks against them.
  void what_loops_do(std::string_view pass, std::string_view refusal, const std::string& title,
                     const std::string& nothing) {
    // The loops that one of the user's has become were looked at one by one.
    std::map<std::string, std::pair<std::vector<std::string>, std::vector<std::string>>> by_place;
    for (const passes::Remark& r : progress_.remarks) {
      if (r.pass != pass) continue;
      auto& [good, bad] = by_place[place(r.loc)];
      if (r.text.starts_with(refusal))
        bad.push_back(r.text.substr(refusal.size()));
      else
        good.push_back(r.text);
    }
    heading(by_place.empty() ? title + ": " + nothing : title);
    for (const auto& [where, why] : by_place) {
      auto [good, bad] = why;
      // Of a loop that counts, what is said of the loops around its segments tells nothing; of others only
      // this does.
      const bool counts = counting_.count(where) != 0;
      const auto idle = [&](const std::string& reason) {
        return (reason.starts_with("it does not count") == counts) ||
               reason.starts_with("there is no arithmetic");
      };
      if (!std::ranges::all_of(bad, idle)) std::erase_if(bad, idle);
      item(where + ": " + (good.empty() ? std::string(refusal) + joined(bad, "; ") : joined(good, "; ")));
    }
  }

  const std::string& name_;
  const ir::Module& module_;
  const Progress& progress_;
  const std::vector<std::string>& mappings_;
  const std::string& storage_;
  std::vector<const Op*> ops_;
  std::vector<Loop> loops_;
  std::set<std::string> counting_;  ///< places of loops that count
  std::map<std::int64_t, std::vector<const Op*>> pops_;
  std::map<const Value*, std::vector<const Op*>> users_;
  std::string out_;
};

}  // namespace

std::string traffic_text(const ir::Module& module) {
  const Traffic traffic = tool::traffic(module);
  bool known = traffic.complete;
  const auto name = [&](const passes::Unknown& u) {
    const Value& v = *u.value;
    const ir::Block* body = v.def ? nullptr : v.block;
    if (!u.is_size() && body && body->parent) return "iterations of line " + std::to_string(body->parent->loc.line);
    const std::string text = v.name ? v.name : !body ? "?" : "x" + std::to_string(v.index + (body->params.size() > 1));
    known &= text != "?";
    if (!u.is_size() || text == "?") return text;
    return text + (v.type.rank() == 1 ? ".size()" : ".dim(" + std::to_string(u.dimension) + ")");
  };
  const auto sum = [&](const std::vector<Amount>& all) {
    ByteCount bytes;
    for (const Amount& a : all)
      for (const auto& [product, n] : a.form.terms()) {
        ByteCount term(static_cast<double>(n) * a.factor);
        for (const passes::Unknown& u : product) term = term * ByteCount::named(name(u));
        bytes += term;
      }
    return bytes;
  };
  if (traffic.moved.empty()) return "";
  const ByteCount least = sum(traffic.least), moved = sum(traffic.moved);
  return "bytes moved: " + (known ? moved.str() : "as data decide") + "; arguments and results alone " + least.str();
}

std::string explained(const std::string& name, const ir::Module& module, const Progress& progress,
                      const std::vector<std::string>& mappings, const std::string& storage) {
  return Explanation(name, module, progress, mappings, storage).text();
}

}  // namespace lantern::tool
