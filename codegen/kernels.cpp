// A loop is tried before those that it holds.
#include "lantern/codegen/kernels.hpp"

#include <algorithm>
#include <charconv>

#include "lantern/codegen/analysis.hpp"
#include "lantern/codegen/communication.hpp"
#include "lantern/compiler/passes/analysis/loops.hpp"
#include "lantern/ir/error.hpp"

namespace lantern::codegen {

using ir::Combine;

namespace {

/// Loops inside a kernel with fewer iterations than this, where that is known, are not worth a block of threads.
constexpr std::int64_t few_iterations = 16;
/// Bytes of arguments that every GPU passes to a kernel, less those that all kernels have.
constexpr std::size_t most_arguments = 4000;

/// An operation that makes no tensor: numbers, views, updates in place, constructs that hand tensors through.
bool makes_no_tensor(const Op& op, const LiveUses& uses) {
  switch (op.code) {
    case Opcode::branch_:
    case Opcode::loop_:
    case Opcode::call_:
    case Opcode::take_:
    case Opcode::slice_:
    case Opcode::reshape_:
    case Opcode::undef_:
      return true;
    case Opcode::fill_:
      return !uses.elements_matter(op.result());  // a shape
    case Opcode::select_:
      return op.operands[0]->type.is_scalar();
    default:
      return std::ranges::none_of(op.results, [](const Value* v) { return v->type.is_tensor(); }) ||
             op.in_place;
  }
}

/// Whether a thread of a GPU can do it: without memory of its own and tapes, printing in order, or the host's
/// functions.
bool runs_on_device(const Op& op, const LiveUses& uses) {
  const auto elsewhere = [](const Value* v) {
    return v->type.is_ref() || v->type.is_cont() || v->type.is_tree();
  };
  if (std::ranges::any_of(op.operands, elsewhere) || std::ranges::any_of(op.results, elsewhere)) return false;
  return !op.is(Opcode::push_, Opcode::pop_, Opcode::print_, Opcode::external_, Opcode::forget_,
                Opcode::closure_, Opcode::fun_, Opcode::jump_, Opcode::slot_, Opcode::ref_new_,
                Opcode::add_einsum_, Opcode::add_matmul_, Opcode::gemm_) &&
         makes_no_tensor(op, uses);
}

bool runs_on_device(ir::Block* block, const LiveUses& uses) {
  bool can = true;
  ir::walk(block, [&](const Op* op) { can &= runs_on_device(*op, uses); });
  return can;
}

/// A loop that does not keep a state in one memory would need another in every iteration.
bool keeps_states(ir::Block* block) {
  bool keeps = true;
  ir::walk(block, [&](const Op* op) {
    if (op->is(Opcode::loop_))
      for (std::size_t i = 0; i < op->results.size(); ++i)
        keeps &= !op->results[i]->type.is_tensor() || keeps_memory(*op, i);
  });
  return keeps;
}

/// The requests of a module, and what became of each.
struct Requests {
  struct One {
    AskedMapping asked;
    bool met = false, done = false;
    std::string why;  ///< it cannot be done for the first loop of its line
  };
  std::vector<One> all;
  One* about(const Op& loop) {
    const auto found = std::ranges::find_if(all, [&](const One& one) { return one.asked.is_about(loop.loc); });
    return found == all.end() ? nullptr : &*found;
  }
};

/// What decides whether a loop may be a kernel, and which.
class Choice {
 public:
  Choice(const ir::Function& f, std::unordered_map<const Op*, Kernel>& kernels, Requests& requests)
      : uses_(f), kernels_(kernels), requests_(requests) {
    ir::walk(f.body, [&](Op* op) { return !op->is(Opcode::loop_) || !choose(op); });
  }

 private:
  /// Whether the loops inside are done with, too.
  bool choose(Op* loop) {
    Requests::One* const request = requests_.about(*loop);
    if (request && request->asked.mapping == Mapping::host) return request->met = request->done = true;
    const bool taken = take(loop, request);
    if (request && !taken) note(*request, "its iterations are not independent, or do what a thread of a GPU cannot");
    if (taken)
      ir::walk(loop->blocks[1], [&](const Op* op) {
        Requests::One* const inner = op->is(Opcode::loop_) ? requests_.about(*op) : nullptr;
        if (inner && inner != request) note(*inner, "it is inside the kernel of line " + std::to_string(loop->loc.line));
      });
    return taken;
  }
  static void note(Requests::One& request, const std::string& why) {
    request.met = true;
    if (request.why.empty()) request.why = why;
  }

  bool take(Op* loop, Requests::One* request) {
    if (!independent(*loop)) return false;
    Kernel kernel;
    ir::Block* const body = loop->blocks[1];
    if (!runs_on_device(body, uses_) || !keeps_states(body)) return false;
    for (const ir::Function* f : ir::callees(body)) {
      const LiveUses uses(*f);
      if (!runs_on_device(f->body, uses) || !keeps_states(f->body)) return false;
    }
    kernel.nest = {loop};
    if (!kernel.reduces() && !kernel.sums_into_tensors())
      while (const Op* inner = passes::only_loop(kernel.nest.back()->blocks[1])) {
        Kernel one;
        one.nest = {inner};
        if (!independent(*inner) || one.reduces() || one.sums_into_tensors() || !same_bounds(*inner, *loop) ||
            !hands_through(*kernel.nest.back(), *inner))
          break;
        kernel.nest.push_back(inner);
      }
    find_shared(kernel.nest.back()->blocks[1], kernel, few_iterations);
    if (calls_with_tensors(body)) kernel.shared.clear();
    // Iterations that add to elements of a shared tensor: each block has a copy, to which its iterations add one by one.
    if (!kernel.shared.empty() || kernel.sums_into_tensors()) kernel.mapping = Mapping::rows;
    if (request) map_as_asked(kernel, *request, calls_with_tensors(body));
    capture(kernel);
    std::size_t bytes = 0;
    for (const Value* v : kernel.captured)
      bytes += v->type.is_tensor() ? 16 + 8 * static_cast<std::size_t>(std::max(1, v->type.rank())) : 8;
    if (bytes > most_arguments) return false;
    if (kernel.asked) request->met = request->done = true;
    kernels_.emplace(loop, std::move(kernel));
    return true;
  }

  void map_as_asked(Kernel& kernel, Requests::One& request, bool calls) const {
    if (request.asked.mapping == Mapping::element) {
      if (kernel.sums_into_tensors()) return note(request, "its iterations add to the same elements, in a tensor for each block");
      kernel.shared.clear();
    } else if (kernel.mapping != Mapping::rows) {
      // The innermost loop of a nest is shared, and so are loops of few iterations.
      const std::vector<const Op*> nest = kernel.nest;
      if (kernel.nest.size() > 1) kernel.nest.pop_back();
      if (!calls) find_shared(kernel.nest.back()->blocks[1], kernel, 0);
      if (kernel.shared.empty()) {
        kernel.nest = nest;
        return note(request, "it holds no loop whose iterations the threads of a block could share");
      }
    }
    kernel.mapping = request.asked.mapping;
    kernel.asked = true;
  }

  /// Iterations in any order. Each works on elements of its own, in one memory, or reduces to what all share.
  bool independent(const Op& loop) const {
    if (!ir::is_parallel(loop)) return false;
    bool computes = false;
    for (std::size_t i = 0; i < loop.results.size(); ++i) {
      const Combine combine = ir::combine(loop, i);
      if (ir::counts(combine)) {
        if (uses_.count(loop.results[i]) > 0) return false;
        continue;
      }
      computes = true;
      if (loop.results[i]->type.is_tensor() && !keeps_memory(loop, i)) return false;
    }
    return computes;
  }

  /// Loops that a block of threads shares: iterations independent, of elements of their own or reduced to numbers, and
  /// enough of them for a block. Those inside such a loop are the thread's; those around it all threads run.
  void find_shared(ir::Block* body, Kernel& kernel, std::int64_t least) const {
    ir::walk(body, [&](const Op* op) {
      if (!op->is(Opcode::loop_) || !independent(*op)) return true;
      Kernel one;
      one.nest = {op};
      const auto iterations = passes::constant_trip_count(op);
      if (one.sums_into_tensors() || (iterations && *iterations < least)) return true;
      kernel.shared.insert(op);
      return false;
    });
  }

  /// Functions that work on elements are for one thread: nothing says what they read and write.
  static bool calls_with_tensors(ir::Block* body) {
    bool found = false;
    ir::walk(body, [&](const Op* op) {
      found |= op->is(Opcode::call_) &&
               std::ranges::any_of(op->operands, [](const Value* v) { return v->type.is_tensor(); });
    });
    return found;
  }

  /// Whether the inner loop begins and ends at numbers that are known before the outermost one.
  static bool same_bounds(const Op& inner, const Op& outermost) {
    const auto known = [&](const Value* v) {
      return (v->def && v->def->is(Opcode::constant_)) || ir::visible_from(v, outermost.parent);
    };
    if (std::ranges::count(inner.blocks[1]->params, Combine::counter, &Value::combine) > 0) return false;
    const auto count = *passes::counted(&inner);
    return known(count.first) && known(count.bound);
  }

  /// Whether the inner loop's tensors are those of the outer one, handed on from iteration to iteration.
  static bool hands_through(const Op& outer, const Op& inner) {
    const ir::Block* const body = outer.blocks[1];
    const Op& yield = *body->ops.back();
    for (std::size_t i = 0; i < inner.results.size(); ++i) {
      if (!inner.results[i]->type.is_tensor()) continue;
      const Value* from = inner.operands[i];
      if (from->def || from->block != body || yield.operands[from->index] != inner.results[i]) return false;
    }
    return true;
  }

  static void capture(Kernel& kernel) {
    std::unordered_set<const Value*> own, seen;
    const Op& loop = *kernel.nest.front();
    const auto blocks = [&](const Op* op) {
      own.insert(op->results.begin(), op->results.end());
      for (const ir::Block* b : op->blocks) own.insert(b->params.begin(), b->params.end());
    };
    for (ir::Block* b : loop.blocks) {
      own.insert(b->params.begin(), b->params.end());
      ir::walk(b, [&](const Op* op) { blocks(op); });
    }
    const auto take = [&](const Value* v) {
      if ((v->def && v->def->is(Opcode::constant_)) || own.contains(v) || !seen.insert(v).second) return;
      kernel.captured.push_back(v);
    };
    // Where the loops of the nest begin and end is known from the number of the iteration.
    const auto operands = [&](const Op* op) {
      const auto level = std::ranges::find(kernel.nest, op);
      for (std::size_t i = 0; i < op->operands.size(); ++i)
        if (level == kernel.nest.end() || i != passes::counted(op)->index) take(op->operands[i]);
    };
    std::unordered_set<const ir::Block*> heads;
    for (const Op* o : kernel.nest) heads.insert(o->blocks[0]);
    operands(&loop);
    ir::walk(loop.blocks[1], [&](const Op* op) {
      if (!heads.contains(op->parent)) operands(op);
    });
  }

  LiveUses uses_;
  std::unordered_map<const Op*, Kernel>& kernels_;
  Requests& requests_;
};

/// An operation on whole tensors that the GPU is to do.
bool works_on_whole(const Op& op) { return op.is(Opcode::add_einsum_, Opcode::add_matmul_, Opcode::gemm_); }

}  // namespace

bool Kernel::reduces() const {
  return std::ranges::any_of(nest.front()->blocks[1]->params,
                             [](const Value* p) { return ir::is_reduction(p->combine) && p->type.is_scalar(); });
}

bool Kernel::sums_into_tensors() const {
  return std::ranges::any_of(nest.front()->blocks[1]->params,
                             [](const Value* p) { return ir::is_reduction(p->combine) && p->type.is_tensor(); });
}

std::string_view name(Mapping mapping) {
  return mapping == Mapping::element ? "element" : mapping == Mapping::rows ? "rows" : "host";
}

bool AskedMapping::is_about(const ir::Location& loc) const {
  if (!loc.known() || loc.line != line) return false;
  const std::string_view known = loc.file;
  return file.empty() || known == file || known.ends_with("/" + file);
}

AskedMapping asked_mapping(const std::string& text) {
  AskedMapping asked;
  const std::size_t equals = text.rfind('='), colon = text.rfind(':', equals);
  asked.place = text.substr(0, equals);
  if (colon != std::string::npos) asked.file = text.substr(0, colon);
  const std::string_view number = std::string_view(asked.place).substr(colon == std::string::npos ? 0 : colon + 1);
  const auto [end, failed] = std::from_chars(number.data(), number.data() + number.size(), asked.line);
  const std::string word = equals == std::string::npos ? "" : text.substr(equals + 1);
  for (const Mapping m : {Mapping::element, Mapping::rows, Mapping::host})
    if (word == name(m) && failed == std::errc() && end == number.data() + number.size()) {
      asked.mapping = m;
      return asked;
    }
  throw Error("mapping: expected a line and element, rows or host, such as model.cpp:12=rows, got '" + text + "'");
}

void require_met(const std::vector<const ir::Module*>& modules, const std::vector<std::string>& asked) {
  std::unordered_set<std::size_t> met;
  for (const ir::Module* module : modules) {
    const Kernels kernels(*module, asked);
    for (std::size_t i = 0; i < asked.size(); ++i)
      if (kernels.met(i)) met.insert(i);
  }
  for (std::size_t i = 0; i < asked.size(); ++i)
    if (!met.contains(i))
      throw Error("mapping: expected a line where a loop begins, got " + asked_mapping(asked[i]).place +
                  "; lanternc --explain lists kernels by their lines");
}

Kernels::Kernels(const ir::Module& module, const std::vector<std::string>& asked) {
  Requests requests;
  for (const std::string& text : asked) requests.all.push_back({asked_mapping(text), false, false, {}});
  std::vector<const ir::Function*> functions = reachable(module);
  std::ranges::reverse(functions);  // callers first: what a kernel calls holds none
  for (const ir::Function* f : functions) {
    if (on_device_.contains(f) || f->cps) continue;
    std::unordered_map<const Op*, Kernel> found;
    Choice(*f, found, requests);
    for (const auto& [loop, kernel] : found)
      for (const ir::Function* callee : ir::callees(loop->blocks[1])) on_device_.insert(callee);
    kernels_.merge(found);
  }
  for (std::size_t i = 0; i < requests.all.size(); ++i) {
    const Requests::One& one = requests.all[i];
    if (one.met) met_.insert(i);
    if (one.met && !one.done)
      throw Error("mapping: " + one.asked.place + " cannot be mapped to " + std::string(name(one.asked.mapping)) + ": " + one.why);
  }
  find_host_parts(functions);
}

/// Whether it saves a tensor on a tape, or takes one from it.
static bool saves_tensor(const Op& op) {
  return (op.is(Opcode::push_) && op.operands[0]->type.is_tensor()) || (op.is(Opcode::pop_) && op.result()->type.is_tensor());
}

/// A loop, or a function, without kernels that works on elements: each access would wait for the GPU.
void Kernels::find_host_parts(const std::vector<const ir::Function*>& functions) {
  struct Found {
    bool elements = false, device = false;
  };
  std::unordered_map<const ir::Function*, Found> of_function;
  const auto look = [&](ir::Block* block) {
    Found found;
    ir::walk(block, [&](const Op* op) {
      const bool kernel = kernels_.contains(op);
      found.device |= kernel || works_on_whole(*op);
      found.elements |= ir::is_access(*op);
      return !kernel;
    });
    return found;
  };
  for (const ir::Function* f : functions) of_function[f] = look(f->body);
  const auto with_callees = [&](Found found, ir::Block* block) {
    for (const ir::Function* f : ir::callees(block)) {
      found.elements |= of_function[f].elements;
      found.device |= of_function[f].device;
    }
    return found;
  };
  for (const ir::Function* f : functions) {
    if (on_device_.contains(f) || f == f->module->entry || f->cps) continue;
    const Found found = with_callees(of_function[f], f->body);
    if (found.elements && !found.device) host_functions_.insert(f);
  }
  // Tensors on a tape are where they were when they were saved: one side of it alone does not run on the host.
  std::unordered_set<std::int64_t> shared;
  const auto shares_tape = [&](ir::Block* block) {
    bool any = false;
    ir::walk(block, [&](const Op* op) { any |= saves_tensor(*op) && shared.contains(op->integer); });
    return any;
  };
  const auto find_loops = [&](const ir::Function& f) {
    ir::walk(f.body, [&](Op* op) {
      if (kernels_.contains(op)) return false;
      const auto tensors = [](const std::vector<Value*>& values) {
        return std::ranges::any_of(values, [](const Value* v) { return v->type.is_tensor(); });
      };
      if (needs_host_memory(*op) || (op->is(Opcode::print_) && tensors(op->operands))) on_host_.insert(op);
      if (op->is(Opcode::call_) &&
          (host_functions_.contains(op->callee) || (on_device_.contains(op->callee) && tensors(op->operands))))
        on_host_.insert(op);
      if (!op->is(Opcode::loop_)) return true;
      const Found found = with_callees(look(op->blocks[1]), op->blocks[1]);
      if (!found.elements || found.device || shares_tape(op->blocks[1])) return true;
      on_host_.insert(op);
      return false;
    });
  };
  for (std::size_t known = 1; known != shared.size();) {
    known = shared.size();
    on_host_.clear();
    for (const ir::Function* f : functions)
      if (!on_device_.contains(f) && !host_functions_.contains(f)) find_loops(*f);
    std::unordered_set<std::int64_t> there, elsewhere;
    for (const ir::Function* f : functions)
      ir::walk(f->body, [&](const Op* op) {
        if (saves_tensor(*op)) (host_functions_.contains(f) ? there : elsewhere).insert(op->integer);
        if (!on_host_.contains(op)) return true;
        for (ir::Block* b : op->blocks)
          ir::walk(b, [&](const Op* inner) {
            if (saves_tensor(*inner)) there.insert(inner->integer);
          });
        return false;
      });
    for (const std::int64_t tape : there)
      if (elsewhere.contains(tape)) shared.insert(tape);
  }
}

const Kernel* Kernels::of(const ir::Op* loop) const {
  const auto it = kernels_.find(loop);
  return it == kernels_.end() ? nullptr : &it->second;
}

}  // namespace lantern::codegen
