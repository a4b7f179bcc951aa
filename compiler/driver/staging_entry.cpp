// Staging a program as a module, and running entry points: what every driver shares.
#include <sys/mman.h>

#include <cstdint>
#include <unordered_map>

#include "lantern/compiler/control/control.hpp"
#include "lantern/compiler/driver/compile.hpp"
#include "lantern/compiler/driver/export_staging.hpp"
#include "lantern/compiler/driver/gpu.hpp"
#include "lantern/compiler/passes/array/circular_buffers.hpp"
#include "lantern/compiler/passes/array/double_buffering.hpp"
#include "lantern/compiler/passes/array/full_unrolling.hpp"
#include "lantern/compiler/passes/array/in_place_stencils.hpp"
#include "lantern/compiler/passes/array/index_set_splitting.hpp"
#include "lantern/compiler/passes/array/loop_versioning.hpp"
#include "lantern/compiler/passes/array/node_splitting.hpp"
#include "lantern/compiler/passes/array/reads_first.hpp"
#include "lantern/compiler/passes/array/register_promotion.hpp"
#include "lantern/compiler/passes/array/store_forwarding.hpp"
#include "lantern/compiler/passes/canonical/canonical_loops.hpp"
#include "lantern/compiler/passes/canonical/periodic_variables.hpp"
#include "lantern/compiler/staging/staging.hpp"
#include "lantern/ir/uses.hpp"

namespace lantern::core {

namespace detail {

/// Before the memory itself. As aligned as what operator new gives.
struct alignas(std::max_align_t) CallMemory::Block {
  Block* before;
};

std::byte* CallMemory::take(std::size_t bytes) {
  auto* const memory = static_cast<std::byte*>(::operator new(sizeof(Block) + bytes));
  last_ = new (memory) Block{last_};
  return memory + sizeof(Block);
}

void CallMemory::release() noexcept {
  while (last_ != nullptr) ::operator delete(std::exchange(last_, last_->before));
}

void fail_shape(const std::vector<std::int64_t>& shape, const ir::Type& declared, std::size_t argument) {
  throw Error("argument " + std::to_string(argument + 1) + ": expected a tensor " + declared.str() +
              ", got " + ir::Type::tensor(declared.element(), shape).str());
}

void fail_sizes(const std::vector<std::int64_t>& shape, std::size_t argument) {
  std::string got;
  for (const std::int64_t d : shape) got += (got.empty() ? "" : ", ") + std::to_string(d);
  throw Error("argument " + std::to_string(argument + 1) +
              ": expected sizes of which those that are not 0 multiply to at most 2^50, got [" + got + "]");
}

}  // namespace detail

namespace driver {

namespace {

/// An entry that only passes its arguments on to another function gives way to it.
void forward_entry(ir::Module& module) {
  ir::Function* entry = module.entry;
  const auto& ops = entry->body->ops;
  if (ops.size() != 2 || !ops[0]->is(ir::Opcode::call_) || ops[0]->operands != entry->body->params ||
      ops[1]->operands != ops[0]->results)
    return;
  ir::Function* callee = ops[0]->callee;
  for (const ir::Function* f : module.functions()) {
    bool called_elsewhere = false;
    ir::walk(f->body, [&](const ir::Op* op) { called_elsewhere |= op->callee == callee && op != ops[0]; });
    if (called_elsewhere) return;
  }
  module.remove_function(entry);
  module.rename(callee, entry->name);
  module.entry = callee;
}

bool is_for_derivatives(const ir::Op* op) {
  return op->is(ir::Opcode::stop_gradient_) || op->is(ir::Opcode::print_adjoint_);
}

/// All derivatives are built: what kept them out of a value, or asked for their adjoints, has done its work.
void drop_identities(ir::Module& module) {
  std::unordered_map<ir::Value*, ir::Value*> same;
  for (ir::Function* f : module.functions()) {
    ir::walk(f->body, [&](ir::Op* op) {
      for (ir::Value*& v : op->operands)
        if (const auto it = same.find(v); it != same.end()) v = it->second;
      if (is_for_derivatives(op)) same[op->result()] = op->operands[0];
    });
    if (same.empty()) continue;
    for (ir::Block* b : ir::blocks_below(f->body)) std::erase_if(b->ops, is_for_derivatives);
    same.clear();
  }
}

/// A loop without circular buffers in the form that is best to differentiate.
std::vector<ir::Value*> canonicalise_loop(ir::Module& module, ir::Op* loop) {
  const auto equal = passes::double_buffering(loop);
  passes::in_place_stencils(loop);
  passes::reads_first(loop->blocks[1]);
  std::vector<ir::Value*> results = passes::register_promotion(module, loop);
  passes::index_set_splitting(module, loop);
  results = passes::loop_versioning(module, loop, std::move(results));
  passes::node_splitting(loop);
  for (const auto& [from, to] : equal) {
    ir::replace_uses(results[to]->block, results[from], results[to]);
    results[from] = results[to];
  }
  return results;
}

/// A loop, whose short loops have been written out or not, and those that its buffers become.
std::vector<ir::Value*> canonicalise_buffers(ir::Module& module, ir::Op* loop) {
  std::vector<ir::Value*> results = passes::periodic_variables(loop);
  const auto follow = [&](const std::vector<ir::Value*>& before, const std::vector<ir::Value*>& now) {
    for (ir::Value*& v : results)
      if (const auto at = std::ranges::find(before, v); at != before.end())
        v = now[static_cast<std::size_t>(at - before.begin())];
  };
  passes::forward_stored(loop);
  std::vector<ir::Value*> before = loop->results;
  const passes::SplitBuffers split = passes::circular_buffers(module, loop);
  follow(before, split.results);
  for (ir::Op* other : split.alternatives) canonicalise_loop(module, other);
  before = loop->results;
  follow(before, canonicalise_loop(module, loop));
  return results;
}

/// A loop in the form that is best to differentiate.
std::vector<ir::Value*> canonicalise_before_ad(ir::Module& module, ir::Op* loop) {
  passes::canonical_loops(module, loop);
  passes::unroll_recurrences(loop);
  return canonicalise_buffers(module, loop);
}

/// The same with short loops kept.
std::vector<ir::Value*> canonicalise_for_export(ir::Module& module, ir::Op* loop) {
  passes::canonical_loops(module, loop);
  return canonicalise_buffers(module, loop);
}

}  // namespace

namespace {

/// A recursion without end, of the user's functions, leaves the stack after 512 MB, and not when no memory is left. No other
/// staging needs so much: Staging::emit tells one that computes something after half of it.
class StackLimit {
 public:
  StackLimit() {
    const bool reserved = control::stack_end() != nullptr && control::spacious();
    if (!reserved || control::stack_used() > distance) return;
    const auto here = reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0));
    void* const end = reinterpret_cast<void*>((here - distance) & ~(size - 1));
    if (::mprotect(end, size, PROT_NONE) == 0) end_ = end;
  }
  ~StackLimit() {
    if (end_ != nullptr) ::mprotect(end_, size, PROT_READ | PROT_WRITE);
  }
  StackLimit(const StackLimit&) = delete;
  StackLimit& operator=(const StackLimit&) = delete;

 private:
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  static constexpr std::uintptr_t distance = std::uintptr_t{96} << 20;  // their stacks are smaller
#else
  static constexpr std::uintptr_t distance = std::uintptr_t{512} << 20;
#endif
  static constexpr std::uintptr_t size = std::uintptr_t{1} << 20;  // no frame steps over it
  void* end_ = nullptr;
};

}  // namespace

namespace {
std::unique_ptr<ir::Module> staged_entry(const std::string& name, const std::vector<ir::Type>& params,
                                         ir::FunctionRef<Datums(const Datums&)> program,
                                         const FinishLoop& finish) {
  auto module = std::make_unique<ir::Module>();
  run_on_large_stack([&] {
    const StackLimit limit;
    Staging staging(*module, finish);
    const StagingScope scope(&staging);
    module->entry = staging.stage(name, params, nullptr, program, {}).function;
    drop_identities(*module);
    forward_entry(*module);
  });
  return module;
}
}  // namespace

std::unique_ptr<ir::Module> stage(const std::string& name, const std::vector<ir::Type>& params,
                                  ir::FunctionRef<Datums(const Datums&)> program) {
  return staged_entry(name, params, program, canonicalise_before_ad);
}

std::unique_ptr<ir::Module> stage_for_export(const std::string& name, const std::vector<ir::Type>& params,
                                             ir::FunctionRef<Datums(const Datums&)> program) {
  return staged_entry(name, params, program, canonicalise_for_export);
}

namespace {
Workspace& workspace() {
  thread_local Workspace instance;
  return instance;
}
}  // namespace

void run(lt_entry* entry, CallFacts facts, const void* const* in, void* const* out, lt_target* targets,
         lt_panels* panels) {
  Workspace& ws = workspace();
  struct With {
    With(lt_workspace* memory, lt_panels* given) : memory_(memory), before_(std::exchange(memory->panels, given)) {}
    ~With() { memory_->panels = before_; }
    lt_workspace* memory_;
    lt_panels* before_;
  } const with(ws.get(), panels);
  if (facts.recursive)
    run_on_large_stack([&] {
      ws.get()->stack_end = control::stack_end();
      ws.call(entry, in, out, targets, facts.flush);
    });
  else
    ws.call(entry, in, out, targets, facts.flush);
}

void run_on_gpu(void* entry, CallFacts facts, const void* const* in, void* const* out, lt_target* targets, void* stream,
                std::vector<std::int64_t> key) {
  struct Call {
    void (*entry)(lt_workspace*, const void* const*, void* const*, lt_target*, void*);
    const void* const* in;
    void* const* out;
    lt_target* targets;
    void* stream;
  } call{reinterpret_cast<decltype(Call::entry)>(entry), in, out, targets, stream};
  const auto enter = [](lt_workspace* ws, void* data) {
    const Call* c = static_cast<Call*>(data);
    c->entry(ws, c->in, c->out, c->targets, c->stream);
  };
  Workspace& ws = workspace();
  cuda_driver::RepeatedCall repeated(entry, std::move(key), stream);
  if (facts.recursive)
    run_on_large_stack([&] { ws.call(enter, &call); });
  else
    ws.call(enter, &call);
  repeated.done();
}

std::int64_t workspace_bytes() { return workspace().peak_bytes(); }

}  // namespace driver

}  // namespace lantern::core
