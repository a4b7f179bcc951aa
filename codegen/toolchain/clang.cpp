// Clang and LLVM in process: text -> IR -> our optimisation pipeline -> object -> ORC.
// The only file that includes LLVM or Clang headers: they cost half a minute of compile time.
#include "lantern/codegen/toolchain/clang.hpp"

#include <clang/Basic/DiagnosticOptions.h>
#include <clang/Basic/TargetInfo.h>
#include <clang/Basic/Version.h>
#include <clang/CodeGen/CodeGenAction.h>
#include <clang/Frontend/CompilerInstance.h>
#include <clang/Frontend/CompilerInvocation.h>
#include <clang/Frontend/TextDiagnosticPrinter.h>
#include <dlfcn.h>
#include <link.h>
#include <llvm/Analysis/TargetLibraryInfo.h>
#include <llvm/ExecutionEngine/JITEventListener.h>
#include <llvm/ExecutionEngine/Orc/Core.h>
#include <llvm/ExecutionEngine/Orc/ExecutionUtils.h>
#include <llvm/ExecutionEngine/Orc/MapperJITLinkMemoryManager.h>
#include <llvm/ExecutionEngine/Orc/ObjectLinkingLayer.h>
#include <llvm/ExecutionEngine/Orc/RTDyldObjectLinkingLayer.h>
#include <llvm/ExecutionEngine/SectionMemoryManager.h>
#include <llvm/IR/DiagnosticInfo.h>
#include <llvm/IR/DiagnosticPrinter.h>
#include <llvm/IR/LegacyPassManager.h>
#include <llvm/IR/Mangler.h>
#include <llvm/IR/Module.h>
#include <llvm/MC/MCSubtargetInfo.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/Passes/PassBuilder.h>
#include <llvm/Support/CommandLine.h>
#include <llvm/Support/SmallVectorMemoryBuffer.h>
#include <llvm/Support/TargetSelect.h>
#include <llvm/Support/VirtualFileSystem.h>
#include <llvm/Target/TargetMachine.h>
#include <llvm/TargetParser/Host.h>
#include <llvm/Transforms/IPO/AlwaysInliner.h>
#include <llvm/Transforms/Scalar/EarlyCSE.h>
#include <llvm/Transforms/Scalar/SROA.h>
#include <llvm/Transforms/Utils/Mem2Reg.h>
#include <llvm/Transforms/Vectorize/SLPVectorizer.h>
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <exception>
#include <filesystem>
#include <functional>
#include <thread>
#include <unordered_map>
#include <utility>

#include "lantern/ir/error.hpp"

namespace lantern::codegen {

namespace {

// ---- The machine generated for ---------------------------------------------------------------------------

struct Processor {
  std::string triple;
  std::string cpu;
  std::vector<std::string> features;  // "+avx2", "-sse4a", ...
};

// Finds the host once; the first caller also initialises LLVM's only target we use.
const Processor& host_processor() {
  static const Processor host = [] {
    llvm::InitializeNativeTarget();
    llvm::InitializeNativeTargetAsmPrinter();
    llvm::InitializeNativeTargetAsmParser();
    const auto set = [](const char* name, bool value) {
      if (const auto option = llvm::cl::getRegisteredOptions().find(name);
          option != llvm::cl::getRegisteredOptions().end())
        static_cast<llvm::cl::opt<bool>*>(option->second)->setValue(value);
    };
    // A second scheduling, after registers are chosen, takes a third of the time in which machine code is made;
    // programs are as fast without it.
    set("disable-post-ra", true);
    // What chooses between numbers that are known stays a choice (cmov): a search by halves has branches that no
    // processor predicts.
    set("x86-cmov-converter", false);
    Processor found{llvm::sys::getProcessTriple(), llvm::sys::getHostCPUName().str(), {}};
    for (const auto& feature : llvm::sys::getHostCPUFeatures())
      found.features.push_back((feature.second ? "+" : "-") + feature.first().str());
    return found;
  }();
  return host;
}

Processor processor_for(const ClangOptions& options) {
  const Processor& host = host_processor();
  if (options.target_cpu.empty()) return host;
  return {host.triple, options.target_cpu, {}};
}

llvm::OptimizationLevel optimization_level(int level) {
  switch (level) {
    case 0:
      return llvm::OptimizationLevel::O0;
    case 1:
      return llvm::OptimizationLevel::O1;
    case 2:
      return llvm::OptimizationLevel::O2;
    case 3:
      return llvm::OptimizationLevel::O3;
    default:
      throw Error("expected an optimisation level from 0 to 3, got " + std::to_string(level));
  }
}

std::unique_ptr<llvm::TargetMachine> make_target_machine(const Processor& processor, int opt_level) {
  std::string message;
  const llvm::Target* target = llvm::TargetRegistry::lookupTarget(processor.triple, message);
  if (target == nullptr) throw InternalError("LLVM has no target for this machine: " + message);
  std::string features;
  for (const std::string& feature : processor.features) features += (features.empty() ? "" : ",") + feature;
  llvm::TargetOptions target_options;
  // Standard: fuse what Clang marked as fusable (`contract`), nothing else.
  target_options.AllowFPOpFusion = llvm::FPOpFusion::Standard;
  return std::unique_ptr<llvm::TargetMachine>(target->createTargetMachine(
      processor.triple, processor.cpu, features, target_options, llvm::Reloc::PIC_, llvm::CodeModel::Small,
      static_cast<llvm::CodeGenOptLevel>(opt_level), /*JIT=*/false));
}

// ---- Text to IR ------------------------------------------------------------------------------------------

// What the Clang driver would pass to its front end, as far as header-free code can tell the difference.
std::vector<std::string> front_end_arguments(Language language, PartKind kind, const ClangOptions& options,
                                             const Processor& processor) {
  std::vector<std::string> arguments = {
      "-triple", processor.triple, "-target-cpu", processor.cpu, "-O" + std::to_string(options.opt_level),
      // Optimisation is ours (see `optimise`); O0 functions would otherwise be marked never to be optimised.
      "-disable-llvm-passes", "-disable-llvm-verifier",
      // Position-independent, and a definition here is the definition: no detour for calls within the module.
      "-mrelocation-model", "pic", "-pic-level", "2", "-nostdsysteminc", "-nobuiltininc", "-fwrapv",
      options.contract ? "-ffp-contract=on" : "-ffp-contract=off",
      // Nothing reads the IR.
      "-discard-value-names",
      // Generated expressions nest deeply; Clang gives up at 256 by default.
      "-fbracket-depth", "4096",
      // Warnings that mean the generator is wrong, and only those.
      "-Wno-everything", "-Werror=implicit-function-declaration", "-Werror=return-type",
      "-Werror=int-conversion", "-Werror=incompatible-pointer-types",
      "-Werror=incompatible-function-pointer-types", "-x"};
  const auto add = [&](std::initializer_list<const char*> more) {
    arguments.insert(arguments.end(), more.begin(), more.end());
  };
  if (language == Language::c) {
    add({"c", "-std=c11"});
  } else {
    add({"c++", "-std=c++20", "-fno-rtti", "-fno-threadsafe-statics"});
  }
  if (!options.pic) add({"-pic-is-pie"});
  if (options.opt_level >= 2) add({"-vectorize-loops", "-vectorize-slp"});
  // The program's vectors are as wide as the registers. LLVM would split those of 512 bits for some processors, and the
  // tile of a product would not stay in registers.
  add({"-mprefer-vector-width=512"});
  // Of no use for variables that are registers, and of these there are very many.
  if (kind != PartKind::general) add({"-disable-lifetime-markers", "-relaxed-aliasing"});
  if (options.debug_info) {
    add({"-debug-info-kind=standalone", "-dwarf-version=4", "-debugger-tuning=gdb", "-mframe-pointer=all"});
    // The user's files may be named from here.
    std::error_code ignored;
    arguments.push_back("-fdebug-compilation-dir=" + std::filesystem::current_path(ignored).string());
  }
  for (const std::string& feature : processor.features) {
    arguments.push_back("-target-feature");
    arguments.push_back(feature);
  }
  arguments.push_back(options.file_name);
  return arguments;
}

[[noreturn]] void fail(const std::string& diagnostics) {
  throw InternalError("clang does not accept the generated code:\n" + diagnostics);
}

std::unique_ptr<llvm::Module> compile_to_ir(const SourcePart& source, Language language,
                                            const ClangOptions& options, const Processor& processor,
                                            llvm::LLVMContext& context) {
  const std::vector<std::string> arguments = front_end_arguments(language, source.kind, options, processor);
  std::vector<const char*> argument_pointers;
  for (const std::string& argument : arguments) argument_pointers.push_back(argument.c_str());

  std::string diagnostics;
  llvm::raw_string_ostream diagnostics_stream(diagnostics);
  const llvm::IntrusiveRefCntPtr<clang::DiagnosticOptions> diagnostic_options(new clang::DiagnosticOptions);
  clang::TextDiagnosticPrinter printer(diagnostics_stream, diagnostic_options.get());

  clang::CompilerInstance compiler;
  const auto argument_diagnostics = clang::CompilerInstance::createDiagnostics(
      diagnostic_options.get(), &printer, /*ShouldOwnClient=*/false);
  if (!clang::CompilerInvocation::CreateFromArgs(compiler.getInvocation(), argument_pointers,
                                                 *argument_diagnostics)) {
    fail(diagnostics);
  }
  // Only now: the engine takes its warning options from the parsed arguments when it is created.
  compiler.createDiagnostics(&printer, /*ShouldOwnClient=*/false);
  compiler.setVerboseOutputStream(llvm::nulls());  // "1 error generated."

  const llvm::IntrusiveRefCntPtr<llvm::vfs::InMemoryFileSystem> files(new llvm::vfs::InMemoryFileSystem);
  files->addFile(options.file_name, 0, llvm::MemoryBuffer::getMemBuffer(source.text, options.file_name));
  compiler.createFileManager(files);

  clang::EmitLLVMOnlyAction action(&context);
  const bool succeeded = compiler.ExecuteAction(action);
  std::unique_ptr<llvm::Module> module = action.takeModule();
  if (!succeeded || !module) fail(diagnostics);
  return module;
}

// ---- IR to an object -------------------------------------------------------------------------------------

// What is left to do for long functions without loops: variables become registers, common subexpressions
// (loads, above all) are found, and independent operations side by side become vectors. The usual pipelines
// take five times as long for the same code.
llvm::ModulePassManager straight_line_pipeline(PartKind kind, const ClangOptions& options) {
  llvm::FunctionPassManager functions;
  functions.addPass(llvm::PromotePass());  // takes what SROA would take much longer for
  functions.addPass(llvm::SROAPass(llvm::SROAOptions::PreserveCFG));
  functions.addPass(llvm::EarlyCSEPass());
  if (options.opt_level >= 2 && kind == PartKind::straight_line) functions.addPass(llvm::SLPVectorizerPass());
  llvm::ModulePassManager pipeline;
  pipeline.addPass(llvm::AlwaysInlinerPass());
  pipeline.addPass(llvm::createModuleToFunctionPassAdaptor(std::move(functions)));
  return pipeline;
}

void optimise(llvm::Module& module, llvm::TargetMachine& machine, PartKind kind,
              const ClangOptions& options) {
  llvm::PipelineTuningOptions tuning;
  tuning.LoopVectorization = tuning.SLPVectorization = options.opt_level >= 2;
  tuning.LoopInterleaving = options.opt_level >= 2;

  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager call_graph;
  llvm::ModuleAnalysisManager modules;
  llvm::PassInstrumentationCallbacks callbacks;
  callbacks.registerShouldRunOptionalPassCallback([&](llvm::StringRef, llvm::Any) { return !options.abandoned(); });
  llvm::PassBuilder builder(&machine, tuning, std::nullopt, &callbacks);
  const llvm::TargetLibraryInfoImpl library(machine.getTargetTriple());
  functions.registerPass([&] { return llvm::TargetLibraryAnalysis(library); });
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(call_graph);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, call_graph, modules);

  const llvm::OptimizationLevel level = optimization_level(options.opt_level);
  llvm::ModulePassManager pipeline = options.opt_level == 0 ? builder.buildO0DefaultPipeline(level)
                                     : kind != PartKind::general
                                         ? straight_line_pipeline(kind, options)
                                         : builder.buildPerModuleDefaultPipeline(level);
  pipeline.run(module, modules);
}

std::vector<char> emit_object(llvm::Module& module, llvm::TargetMachine& machine) {
  llvm::SmallVector<char, 0> bytes;
  llvm::raw_svector_ostream stream(bytes);
  llvm::legacy::PassManager passes;
  passes.add(new llvm::TargetLibraryInfoWrapperPass(machine.getTargetTriple()));
  if (machine.addPassesToEmitFile(passes, stream, nullptr, llvm::CodeGenFileType::ObjectFile,
                                  /*DisableVerify=*/true)) {
    throw InternalError("LLVM cannot emit object code for this machine");
  }
  passes.run(module);
  return {bytes.begin(), bytes.end()};
}

// Without a handler LLVM prints warnings (a loop it was told to vectorise and could not) and exits on errors.
void collect_backend_error(const llvm::DiagnosticInfo* info, void* text) {
  if (info->getSeverity() != llvm::DS_Error) return;
  llvm::raw_string_ostream stream(*static_cast<std::string*>(text));
  llvm::DiagnosticPrinterRawOStream printer(stream);
  info->print(printer);
  stream << '\n';
}

std::vector<std::string> exported_names(const llvm::Module& module) {
  llvm::Mangler mangler;
  std::vector<std::string> names;
  for (const llvm::GlobalValue& value : module.global_values()) {
    if (value.isDeclarationForLinker() || value.hasLocalLinkage() || value.hasAppendingLinkage() ||
        value.hasHiddenVisibility())
      continue;
    llvm::SmallString<64> name;
    mangler.getNameWithPrefix(name, &value, false);
    names.push_back(name.str().str());
  }
  return names;
}

// How hard to try when instructions are chosen and registers given out. Without trying, LLVM is three times
// as fast; where values wait in memory for calls, the code is 6 % slower.
int code_level(PartKind kind, const ClangOptions& options) {
  switch (kind) {
    case PartKind::general:
      return options.opt_level;
    case PartKind::straight_line:
      return std::min(options.opt_level, 1);
    case PartKind::calls:
      return 0;
  }
  return options.opt_level;
}

enum class Use { load, link };

CompiledPart compile_to_object(const SourcePart& source, Language language, const ClangOptions& options,
                               Use use) {
  const Processor processor = processor_for(options);
  llvm::LLVMContext context;
  const auto require_wanted = [&] {
    if (options.abandoned()) throw Abandoned();
  };
  require_wanted();
  const std::unique_ptr<llvm::Module> module = compile_to_ir(source, language, options, processor, context);

  std::string backend_errors;
  context.setDiagnosticHandlerCallBack(&collect_backend_error, &backend_errors);
  const std::unique_ptr<llvm::TargetMachine> machine =
      make_target_machine(processor, code_level(source.kind, options));
  optimise(*module, *machine, source.kind, options);
  require_wanted();
  if (use == Use::load && module->getNamedGlobal("llvm.global_ctors"))
    throw InternalError(options.file_name + ": generated code must not need code to run when it is loaded");
  CompiledPart object{{}, exported_names(*module)};
  object.bytes = emit_object(*module, *machine);
  if (!backend_errors.empty()) fail(backend_errors);
  return object;
}

// Threads with stacks of a size of their own, which std::thread does not give, all for the same work. Where
// the system refuses one it says so, while LLVM's threads would end the program.
class Threads {
 public:
  explicit Threads(std::function<void()> work) : work_(std::move(work)) {}
  ~Threads() {
    for (const pthread_t thread : running_) pthread_join(thread, nullptr);
  }
  Threads(const Threads&) = delete;
  Threads& operator=(const Threads&) = delete;

  /// Up to n of them: as many as there can be. Error where that is none.
  void start(std::size_t n, std::size_t stack_bytes) {
    running_.reserve(n);
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    int failure = pthread_attr_setstacksize(&attributes, stack_bytes);
    while (failure == 0 && running_.size() < n) {
      pthread_t thread;
      failure = pthread_create(&thread, &attributes, run, this);
      if (failure == 0) running_.push_back(thread);
    }
    pthread_attr_destroy(&attributes);
    if (running_.empty() && n > 0)
      throw Error(std::string("compile: expected to be able to make a thread for Clang, got: ") +
                  std::strerror(failure) +
                  "; allow the process more threads or memory, or compile for Target::c");
  }

 private:
  static void* run(void* self) {
    static_cast<Threads*>(self)->work_();
    return nullptr;
  }

  std::function<void()> work_;
  std::vector<pthread_t> running_;
};

// Clang's parser takes 13 kB of stack per level of nesting: 600 nested parentheses overflow a usual stack,
// and the caller's may be smaller still. Pages of this one that are not touched cost nothing.
std::vector<CompiledPart> compile_on_large_stacks(std::span<const SourcePart> parts, Language language,
                                                  const ClangOptions& options, Use use) {
  constexpr std::size_t stack_bytes = 256U << 20;
  optimization_level(options.opt_level);  // refuses a level out of range before it reaches Clang
  std::vector<CompiledPart> objects(parts.size());
  std::vector<std::exception_ptr> failures(parts.size());
  std::atomic<std::size_t> next = 0;
  const auto work = [&] {
    for (std::size_t i = next++; i < parts.size(); i = next++) {
      try {
        objects[i] = compile_to_object(parts[i], language, options, use);
      } catch (...) {
        failures[i] = std::current_exception();
      }
    }
  };
  const std::size_t processors = std::max(1U, std::thread::hardware_concurrency());
  {
    Threads threads(work);
    threads.start(std::min(parts.size(), processors), stack_bytes);
  }
  for (const std::exception_ptr& failure : failures)
    if (failure) std::rethrow_exception(failure);
  return objects;
}

// ---- Loading ---------------------------------------------------------------------------------------------

template <class T>
T value_or_throw(llvm::Expected<T> value) {
  if (!value) throw InternalError("cannot load generated code: " + llvm::toString(value.takeError()));
  return std::move(*value);
}

void throw_if(llvm::Error error) {
  if (error) throw InternalError("cannot load generated code: " + llvm::toString(std::move(error)));
}

// One ORC session per compilation: it costs a fraction of a millisecond, threads share nothing, and all
// memory goes back when it ends.
class OrcCode final : public LoadedCode {
 public:
  OrcCode(std::span<const CompiledPart> objects, bool debug_info, std::span<const HostSymbol> host_symbols)
      : session_(value_or_throw(llvm::orc::SelfExecutorProcessControl::Create(
            nullptr, std::make_unique<llvm::orc::InPlaceTaskDispatcher>()))) {
    try {
      load(objects, debug_info, host_symbols);
    } catch (...) {
      end_session();
      throw;
    }
  }

  ~OrcCode() override { end_session(); }

  void* symbol(const std::string& name) const override {
    const auto found = symbols_.find(name);
    if (found == symbols_.end()) throw Error("compiled code has no symbol named '" + name + "'");
    return found->second;
  }

 private:
  void load(std::span<const CompiledPart> objects, bool debug_info,
            std::span<const HostSymbol> host_symbols) {
    // The reason for a failed lookup arrives here; the lookup's own error only lists what it affects.
    std::string reported;
    session_.setErrorReporter(
        [&](llvm::Error error) { reported += llvm::toString(std::move(error)) + "\n"; });
    layer_ = make_layer(debug_info, objects);
    llvm::orc::JITDylib& code = session_.createBareJITDylib("generated");

    llvm::orc::SymbolMap host;
    for (const HostSymbol& symbol : host_symbols) {
      host[session_.intern(symbol.name)] = {llvm::orc::ExecutorAddr::fromPtr(symbol.address),
                                            llvm::JITSymbolFlags::Exported};
    }
    throw_if(code.define(llvm::orc::absoluteSymbols(std::move(host))));
    // Vectorised code calls glibc's vector functions, which are a library of their own.
    static void* const vector_math = dlopen("libmvec.so.1", RTLD_NOW | RTLD_GLOBAL);
    (void)vector_math;
    code.addGenerator(value_or_throw(llvm::orc::DynamicLibrarySearchGenerator::GetForCurrentProcess('\0')));
    llvm::orc::SymbolLookupSet wanted;
    for (const CompiledPart& object : objects) {
      llvm::SmallVector<char, 0> bytes(object.bytes.begin(), object.bytes.end());
      throw_if(layer_->add(code, std::make_unique<llvm::SmallVectorMemoryBuffer>(
                                     std::move(bytes), /*RequiresNullTerminator=*/false)));
      for (const std::string& name : object.names) wanted.add(session_.intern(name));
    }
    auto found = session_.lookup({{&code, llvm::orc::JITDylibLookupFlags::MatchExportedSymbolsOnly}}, wanted);
    if (!found) {
      throw InternalError("cannot load generated code: " + reported + llvm::toString(found.takeError()));
    }
    if (!reported.empty()) throw InternalError("cannot load generated code: " + reported);
    for (const auto& [name, definition] : *found)
      symbols_.emplace((*name).str(), definition.getAddress().toPtr<void*>());
    session_.setErrorReporter([](llvm::Error error) { llvm::consumeError(std::move(error)); });
  }

  std::unique_ptr<llvm::orc::ObjectLayer> make_layer(bool debug_info, std::span<const CompiledPart> objects) {
    if (!debug_info) {
      // Parts reach each other within 2 GB, while the system has room for a few pages here and there, between
      // stacks that are larger than that: all of them lie in one reservation.
      constexpr std::size_t unit = std::size_t{1} << 16;
      std::size_t bytes = unit;
      for (const CompiledPart& object : objects) bytes += (2 * object.bytes.size() / unit + 1) * unit;
      return std::make_unique<llvm::orc::ObjectLinkingLayer>(
          session_,
          value_or_throw(
              llvm::orc::MapperJITLinkMemoryManager::CreateWithMapper<llvm::orc::InProcessMemoryMapper>(
                  bytes)));
    }
    // JITLink's debugger plug-in never withdraws an object from gdb, this older linker's listener does.
    auto layer = std::make_unique<llvm::orc::RTDyldObjectLinkingLayer>(
        session_, [] { return std::make_unique<llvm::SectionMemoryManager>(); });
    layer->registerJITEventListener(*llvm::JITEventListener::createGDBRegistrationListener());
    return layer;
  }

  // The code goes first, then the layer that holds its memory.
  void end_session() noexcept { llvm::consumeError(session_.endSession()); }

  llvm::orc::ExecutionSession session_;
  std::unique_ptr<llvm::orc::ObjectLayer> layer_;
  std::unordered_map<std::string, void*> symbols_;
};

}  // namespace

std::unique_ptr<LoadedCode> compile_with_clang(const std::string& source, Language language,
                                               const ClangOptions& options,
                                               std::span<const HostSymbol> symbols) {
  const SourcePart whole{source};
  return load_parts(compile_parts(std::span(&whole, 1), language, options), options, symbols);
}

std::vector<CompiledPart> compile_parts(std::span<const SourcePart> parts, Language language,
                                        const ClangOptions& options) {
  return compile_on_large_stacks(parts, language, options, Use::load);
}

std::unique_ptr<LoadedCode> load_parts(std::span<const CompiledPart> parts, const ClangOptions& options,
                                       std::span<const HostSymbol> symbols) {
  host_processor();  // initialises the target
  return std::make_unique<OrcCode>(parts, options.debug_info, symbols);
}

std::vector<char> object_with_clang(const std::string& source, Language language,
                                    const ClangOptions& options) {
  const SourcePart whole{source};
  return std::move(compile_on_large_stacks(std::span(&whole, 1), language, options, Use::link).front().bytes);
}

Arithmetic arithmetic_of(const std::string& target_cpu) {
  ClangOptions options;
  options.target_cpu = target_cpu;
  // Asked of a machine that any processor is: of an unknown one LLVM would complain on standard error.
  Processor processor = processor_for(options);
  const auto general = make_target_machine({processor.triple, "", {}}, 0);
  if (!general->getMCSubtargetInfo()->isCPUStringValid(processor.cpu)) return {};
  const auto machine = make_target_machine(processor, 0);
  const auto has = [&](const char* feature) { return machine->getMCSubtargetInfo()->checkFeatures(feature); };
  if (machine->getTargetTriple().isAArch64()) return {2, true};
  if (!machine->getTargetTriple().isX86()) return {};
  return {has("+avx512f") ? 8 : has("+avx2") ? 4 : 2, has("+fma")};
}

bool is_processor(const std::string& name) {
  const llvm::IntrusiveRefCntPtr<clang::DiagnosticOptions> diagnostic_options(new clang::DiagnosticOptions());
  clang::IgnoringDiagConsumer silent;
  clang::DiagnosticsEngine diagnostics(new clang::DiagnosticIDs(), diagnostic_options, &silent, /*ShouldOwnClient=*/false);
  const auto target_options = std::make_shared<clang::TargetOptions>();
  target_options->Triple = host_processor().triple;
  const llvm::IntrusiveRefCntPtr<clang::TargetInfo> target(clang::TargetInfo::CreateTargetInfo(diagnostics, target_options));
  return target && target->isValidCPUName(name);
}

void release_clang() {
  const auto release = [](dl_phdr_info* library, std::size_t, void*) {
    const auto begin = [&](int i) { return library->dlpi_addr + library->dlpi_phdr[i].p_vaddr; };
    const auto inside = [&](auto* function) {
      for (int i = 0; i < library->dlpi_phnum; ++i)
        if (library->dlpi_phdr[i].p_type == PT_LOAD &&
            reinterpret_cast<std::uintptr_t>(function) - begin(i) < library->dlpi_phdr[i].p_memsz)
          return true;
      return false;
    };
    if (!inside(&llvm::sys::getHostCPUFeatures) && !inside(&clang::getClangFullVersion)) return 0;
    const std::uintptr_t page = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
    for (int i = 0; i < library->dlpi_phnum; ++i) {
      const auto& segment = library->dlpi_phdr[i];
      // Pages that may be written hold what the file does not.
      if (segment.p_type != PT_LOAD || (segment.p_flags & PF_W) != 0) continue;
      const std::uintptr_t from = (begin(i) + page - 1) / page * page, to = (begin(i) + segment.p_filesz) / page * page;
      // NOLINTNEXTLINE(performance-no-int-to-ptr): where the loader has put the segment
      if (from < to) static_cast<void>(madvise(reinterpret_cast<void*>(from), to - from, MADV_DONTNEED));
    }
    return 0;
  };
  dl_iterate_phdr(release, nullptr);
}

std::string clang_version() { return CLANG_VERSION_STRING; }

}  // namespace lantern::codegen
