// compile(): stage, pass pipeline, print, tool chain; and the tiers.
#include "lantern/compiler/driver/compile.hpp"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <exception>
#include <mutex>
#include <system_error>

#include "lantern/codegen/c/print_c.hpp"
#include "lantern/codegen/cpp/print_cpp.hpp"
#include "lantern/codegen/cuda/print_cuda.hpp"
#include "lantern/codegen/kernels.hpp"
#include "lantern/codegen/toolchain/clang.hpp"
#include "lantern/codegen/communication.hpp"
#include "lantern/codegen/toolchain/gpu_host.hpp"
#include "lantern/runtime/cuda/driver.hpp"
#include "lantern/codegen/toolchain/tcc.hpp"
#include "lantern/compiler/control/control.hpp"
#include "lantern/compiler/driver/background.hpp"
#include "lantern/compiler/driver/code_cache.hpp"
#include "lantern/compiler/driver/loops.hpp"
#include "lantern/compiler/passes/direct/close.hpp"
#include "lantern/compiler/passes/direct/unwind.hpp"
#include "lantern/compiler/passes/pipeline.hpp"
#include "lantern/compiler/staging/external.hpp"
#include "lantern/ir/clone.hpp"
#include "lantern/ir/form.hpp"
#include "lantern/ir/print.hpp"
#include "lantern/ir/recursion.hpp"
#include "lantern/ir/team.hpp"

namespace lantern::core::driver {

namespace {

/// The way in, whatever the function is called.
constexpr const char* entry_name = "lantern_entry";

class CompiledCode : public Code {
 public:
  CompiledCode(std::unique_ptr<ir::Module> module, const CompileOptions& options)
      : module_(std::move(module)), options_(options), results_(module_->entry->result_types) {
    options_.check = resolved(options.check);
    print_.entry = entry_name;
    print_.bounds_checks = options.bounds_checks;
    print_.strict_math = options.strict_math;
    print_.check_nan = options_.check == Check::nan;
    print_.mappings = options.mappings;
    print_.products = options.products;
    print_.storage = options.storage;
    print_.line_directives = print_.named_values = options.debug;
    print_.comments = false;  // in what compilers read
    print_.limited_stack = true;
    run_on_large_stack([&] { prepare(); });
  }
  lt_entry* entry() const override {
    lt_entry* e = entry_.load(std::memory_order_acquire);
    if (!e)
      throw Error("calling a CUDA function needs a GPU, and there is none: " + cuda_driver::missing() +
                  "; source(\"cuda\") gives its text");
    return e;
  }
  const std::vector<ir::Type>& results() const override { return results_; }
  CallFacts facts() const override { return staged_.facts; }
  void wait() const override {
    background_.wait();
    if (failure_) std::rethrow_exception(failure_);
  }

  void* device_entry() const override {
    if (options_.target != Target::cuda)
      throw Error("expected a function that is compiled for Target::cuda, got '" + module_->entry->name +
                  "', which runs on the processor");
    static_cast<void>(entry());
    return loaded_[0]->symbol(codegen::device_entry_name);
  }

  std::string source(const std::string& what) const override {
    std::string text;
    if (what == "cpp") background_.wait();
    run_on_large_stack([&] {
      if (kept_) std::call_once(made_after_all_, [&] { make_after_all(); });
      text = print(what);
    });
    return text;
  }

 private:
  void prepare() {
    pipeline_.opt_level = options_.opt;
    pipeline_.disabled = options_.disabled_passes;
    pipeline_.reassociate = options_.reassociate;
    pipeline_.device = options_.target == Target::cuda;
    pipeline_.check_values = options_.check == Check::nan;
    if (!options_.debug) pipeline_.threads = print_.threads = options_.threads;
    // A lane has no line, and a check would have to look into it.
    const bool vectors = options_.opt >= 2 && !options_.debug && options_.check == Check::none;
    vectors_ = vectors && options_.target != Target::c && options_.target != Target::cuda &&
               std::ranges::find(options_.disabled_passes, "vectorise") == options_.disabled_passes.end();
    if (load_kept()) return;
    std::unique_ptr<ir::Module> staged = run_passes();
    if (options_.target == Target::cuda) return prepare_for_gpu();
    close();
    staged_.facts = {ir::has_recursion(*module_), !options_.strict_math && has_loops(*module_)};
    const bool clang = options_.target == Target::cpp || options_.debug;
    find_externals();
    load(clang ? optimised(*module_, clang_options()) : codegen::compile_with_tcc(codegen::print_c(*module_, print_), externals_));
    if (options_.target == Target::automatic && !clang) start_second_tier(std::move(staged));
  }

  /// Kernels by NVRTC, the host's part by Clang. Where there is no GPU both are checked all the same.
  void prepare_for_gpu() {
    passes::unwind(*module_);
    codegen::require_met({module_.get()}, options_.mappings);
    codegen::PrintOptions print = print_;
    print.hosted = true;
    print.entry = {};
    print.limited_stack = false;
    codegen::CudaText text = codegen::print_cuda_text(*module_, print);
    text.host += codegen::hosted_entry(*module_, entry_name);
    const codegen::GpuOptions options{options_.strict_math};
    staged_.facts = {ir::has_recursion(*module_), false};
    find_externals();
    if (codegen::queues_exchanges(*module_))
      for (const char* name : codegen::queue_functions)
        if (const detail::ExternalFunction* f = detail::find_external(name))
          externals_.push_back({name, reinterpret_cast<void*>(f->address)});
    if (!cuda_driver::missing().empty()) return codegen::check_for_gpu(text, options, externals_);
    load(codegen::load_for_gpu(text, options, externals_));
  }

  /// Clang's code of an earlier run, which needs none of what follows: no pass, no text, no first tier.
  bool load_kept() {
    if (options_.target != Target::cpp && options_.target != Target::automatic) return false;
    staged_.key = staged_key(*module_, options_);
    if (staged_.key.empty()) return false;
    std::vector<codegen::HostSymbol> externals;
    for (const ir::Prototype& p : ir::external_functions(*module_))
      if (void* address = address_of(p)) externals.push_back({p.name, address});  // passes may drop the others
    std::optional<KeptProgram> kept;
    try {
      kept = kept_program(staged_.key, clang_options(), options_.cache, externals);
    } catch (const Error&) {  // a folder that is no cache: the second tier says so, and the first goes on
      if (options_.target != Target::automatic) throw;
    }
    if (!kept) return false;
    staged_.facts = kept->facts;
    load(std::move(kept->code));
    kept_ = true;
    return true;
  }

  /// The program as the passes leave it. What it was before is the result where the second tier begins with that: it
  /// has vectors and fused operations, the first has not.
  std::unique_ptr<ir::Module> run_passes() const {
    std::unique_ptr<ir::Module> staged;
    if (options_.opt >= 1 && !options_.debug && options_.target == Target::automatic)
      staged = ir::clone(*module_);
    passes::PipelineOptions pipeline = pipeline_;
    if (options_.target == Target::cpp) use_processor(pipeline);
    passes::run_pipeline(*module_, pipeline);
    return staged;
  }
  /// Continuations that are left become closures, so that C can be printed; C++ has lambdas.
  void close() const {
    lambdas_ = with_lambdas();
    close(*module_);
  }
  void close(ir::Module& module) const {
    passes::close(module);
    if (pipeline_.verify_each) ir::verify(module, ir::forms::printable);
  }
  std::unique_ptr<ir::Module> made_for_second_tier(std::unique_ptr<ir::Module> module) const {
    passes::PipelineOptions pipeline = pipeline_;
    use_processor(pipeline);
    passes::run_pipeline(*module, pipeline);
    close(*module);
    return module;
  }
  /// Somebody wants to see the text of code that was kept.
  void make_after_all() const {
    std::unique_ptr<ir::Module> staged = run_passes();
    close();
    if (staged) second_ = made_for_second_tier(std::move(staged));
  }

  /// What Clang's code takes from the processor. A debugger shows the operations that the user has written.
  void use_processor(passes::PipelineOptions& pipeline) const {
    static const codegen::Arithmetic host = codegen::arithmetic_of();
    if (options_.debug) return;
    pipeline.fused_multiply_add = host.fused_multiply_add && !options_.strict_math;
    if (options_.opt >= 2 && options_.check == Check::none)
      pipeline.vector_lanes = options_.lanes > 0 ? options_.lanes : host.lanes;
  }

  /// A failure there must not end the program: the first tier goes on answering. Nor does it pass unseen.
  void start_second_tier(std::unique_ptr<ir::Module> staged) {
    second_ = std::move(staged);
    const auto work = [this] {
      try {
        run_on_large_stack([&] {
          if (second_) second_ = made_for_second_tier(std::move(second_));
          codegen::ClangOptions clang = clang_options();
          // The next run of the program has use for code that is kept.
          if (!options_.cache.enabled) clang.abandoned = [this] { return background_.abandoned(); };
          load(optimised(second_ ? *second_ : *module_, clang));
        });
      } catch (const codegen::Abandoned&) {
      } catch (const std::exception& e) {
        failure_ = std::current_exception();
        tell_failure(e);
      }
    };
    try {
      background_.start(work);
    } catch (const std::system_error& e) {
      second_ = nullptr;
      const Error failure("compile: expected to be able to make a thread for Clang, got: " +
                          e.code().message() + "; allow the process more threads, or compile for Target::c");
      failure_ = std::make_exception_ptr(failure);
      tell_failure(failure);
    }
  }

  void tell_failure(const std::exception& e) const {
    std::fprintf(stderr, "lantern: '%s' goes on without optimised code: %s\n", module_->entry->name.c_str(), e.what());
  }

  /// The C++ text in continuation-passing style, as nested lambdas; empty where there are none, or too many.
  std::string with_lambdas() const {
    int depth = 0;
    for (const ir::Function* f : module_->functions())
      depth = std::max(depth, codegen::continuation_depth(*f));
    if (depth == 0 || depth >= codegen::deepest_nest) return {};
    return codegen::print_cpp(*module_, readable());
  }

  /// For Clang, and g++: text with vectors.
  codegen::PrintOptions with_vectors(codegen::PrintOptions print) const {
    print.vectors = vectors_;
    return print;
  }

  codegen::PrintOptions readable() const {
    codegen::PrintOptions print = print_;
    print.limited_stack = false;  // a stand-alone source does not know its caller's
    print.standalone = print.named_values = print.comments = true;
    print.vector_library = false;
    print.entry = {};
    return print;
  }

  codegen::ClangOptions clang_options() const {
    codegen::ClangOptions clang;
    clang.opt_level = options_.debug ? 0 : clang_level(options_.opt);
    clang.debug_info = options_.debug;
    clang.contract = !options_.strict_math;
    return clang;
  }
  std::unique_ptr<codegen::LoadedCode> optimised(const ir::Module& module, const codegen::ClangOptions& clang) const {
    return compile_cached(codegen::print_c_parts(module, with_vectors(print_)), clang, options_.cache, externals_, staged_);
  }

  /// Where the process has a function of its own that the program calls; null where it knows none like it.
  static void* address_of(const ir::Prototype& p) {
    const detail::ExternalFunction* f = detail::find_external(p.name);
    return f && f->prototype.text() == p.text() ? reinterpret_cast<void*>(f->address) : nullptr;
  }
  void find_externals() {
    for (const ir::Prototype& p : ir::external_functions(*module_)) {
      void* const address = address_of(p);
      if (!address)
        throw Error("compile: the program calls the external function " + p.text() + ", which this process does not "
                    "know: make it known with external(\"" + p.name + "\", function)");
      externals_.push_back({p.name, address});
    }
  }

  void load(std::unique_ptr<codegen::LoadedCode> code) {
    auto* e = reinterpret_cast<lt_entry*>(code->symbol(entry_name));
    // Earlier code stays: a call may be running in it.
    (loaded_[0] ? loaded_[1] : loaded_[0]) = std::move(code);
    entry_.store(e, std::memory_order_release);
  }

  std::string print(const std::string& what) const {
    if (what == "ir") return ir::print(*module_);
    if (what == "c") return codegen::print_c(*module_, readable());
    if (what == "cpp")
      return lambdas_.empty() ? codegen::print_cpp(second_ ? *second_ : *module_, with_vectors(readable()))
                              : lambdas_;
    if (what == "cuda") return codegen::print_cuda(*module_, readable());
    throw Error("source: expected \"ir\", \"c\", \"cpp\" or \"cuda\", got \"" + what + "\"");
  }

  std::unique_ptr<ir::Module> module_;  ///< as the passes leave it; of code that was kept, until somebody asks, as staged
  mutable std::unique_ptr<ir::Module>
      second_;  ///< of the second tier, where it differs; for the background thread until wait()
  CompileOptions options_;
  passes::PipelineOptions pipeline_;
  codegen::PrintOptions print_;
  std::vector<ir::Type> results_;
  mutable std::string lambdas_;
  StagedProgram staged_;
  bool kept_ = false;  ///< loaded by the staged program's key
  mutable std::once_flag made_after_all_;
  std::vector<codegen::HostSymbol> externals_;
  bool vectors_ = false;  ///< in what Clang compiles
  std::unique_ptr<codegen::LoadedCode> loaded_[2];
  std::atomic<lt_entry*> entry_{nullptr};
  std::exception_ptr failure_;     ///< of the second tier; for the background thread until wait()
  mutable Background background_;  ///< the last: its work uses all of the above
};

}  // namespace

std::shared_ptr<const Code> compile(const std::string& name, const std::vector<ir::Type>& params,
                                    ir::FunctionRef<Datums(const Datums&)> program,
                                    const CompileOptions& options) {
  if (options.opt < 0 || options.opt > 3)
    throw Error("compile: expected an optimisation level from 0 to 3, got " + std::to_string(options.opt));
  if (options.debug && options.target == Target::c)
    throw Error(
        "compile: expected Target::automatic or Target::cpp with debug, got Target::c: what tcc compiles "
        "cannot be debugged");
  if (options.threads < 1 || options.threads > ir::largest_team)
    throw Error("compile: expected from 1 to " + std::to_string(ir::largest_team) + " threads, got " +
                std::to_string(options.threads));
  if (options.lanes != 0 && options.lanes != 2 && options.lanes != 4 && options.lanes != 8)
    throw Error("compile: expected 2, 4 or 8 lanes, or 0 for this machine's, got " +
                std::to_string(options.lanes));
  if (!options.mappings.empty() && options.target != Target::cuda)
    throw Error("compile: mappings go with Target::cuda");
  codegen::f32_products(options.products);
  if (options.products != "f32" && (options.target != Target::cuda || options.strict_math))
    throw Error("compile: products of " + options.products + " go with Target::cuda, without strict_math");
  codegen::require_storage(options.storage);
  if (options.storage != "f32" && (options.target != Target::cuda || options.strict_math))
    throw Error("compile: storage in " + options.storage + " goes with Target::cuda, without strict_math");
  if (options.threads > 1 && options.target == Target::cuda)
    throw Error("compile: expected one thread with Target::cuda, got " + std::to_string(options.threads) +
                ": a kernel has a thread for every element");
  return std::make_shared<CompiledCode>(stage(name, params, program), options);
}

}  // namespace lantern::core::driver
