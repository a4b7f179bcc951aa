// Reading the command line, with CLI11, and refusing what makes no sense.
#include "options.hpp"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <iostream>
#include <regex>
#include <string_view>
#include <utility>

#include "module_name.hpp"
#include "similar_name.hpp"
#include "lantern/codegen/cuda/print_cuda.hpp"
#include "lantern/codegen/kernels.hpp"
#include "lantern/codegen/toolchain/clang.hpp"
#include "lantern/compiler/passes/pipeline.hpp"
#include "lantern/ir/error.hpp"
#include "lantern/ir/team.hpp"
#include "wheel.hpp"

namespace lantern::tool {

using namespace core;

namespace {

using Words = std::vector<std::string>;

constexpr std::array<std::pair<std::string_view, Emit>, 19> emit_names{{
    {"ir", Emit::ir},
    {"cps", Emit::cps},
    {"c", Emit::c},
    {"cpp", Emit::cpp},
    {"cuda", Emit::cuda},
    {"header", Emit::header},
    {"object", Emit::object},
    {"shared", Emit::shared},
    {"python", Emit::python},
    {"wheel", Emit::wheel},
    {"jax", Emit::jax},
    {"torch", Emit::torch},
    {"julia", Emit::julia},
    {"fortran", Emit::fortran},
    {"mex", Emit::mex},
    {"matlab", Emit::mex},
    {"svg", Emit::svg},
    {"rewritten", Emit::rewritten},
    {"html", Emit::html},
}};

/// "ir, cps, ... or html".
std::string listed_emits() {
  std::string text;
  for (const auto& [name, emit] : emit_names)
    text += (text.empty() ? "" : emit == emit_names.back().second ? " or " : ", ") + std::string(name);
  return text;
}

constexpr const char* footer =
    "Examples:\n"
    "  lanternc model.cpp -o model              a program\n"
    "  lanternc model.cpp --emit=shared -o model.so   its functions as a shared library\n"
    "  lanternc model.cpp --emit=c --function=df      one of them as stand-alone C\n"
    "  lanternc model.cpp --explain             what became of its loops and derivatives\n"
    "  lanternc model.cpp -g --check=nan        the first NaN, with its line\n\n"
    "What follows -- goes to the C++ compiler: lanternc model.cpp -o model -- -Wall -fopenmp\n"
    "The compiler is the environment's CXX, otherwise c++. Generated code is for this machine's\n"
    "processor unless --cpu says something else. Results and precompiled headers are kept in\n"
    "$XDG_CACHE_HOME/lantern or ~/.cache/lantern: 512 megabytes of the first and 2048 of the second,\n"
    "or as many of each as LANTERN_CACHE_MEGABYTES says.";

/// What the command line says, before it is checked.
struct Given {
  Options options;
  std::string emit, target = "cpu", level, standard, check, threads = "1", lanes, distributed;
  Words include, define, undefine, library_path, library;
};

/// Headings of --help, with the options below them; others are under the last.
void group_options(CLI::App& app) {
  struct OptionGroup {
    const char* heading;
    std::vector<std::string> options;
  };
  const std::vector<OptionGroup> groups{
      {"What is made", {"-o", "--emit", "--function", "--prefix", "--strided", "--depfile", "--with-jit", "--with-main"}},
      {"For which machine", {"--target", "--arch", "--mapping", "--products", "--storage", "--cpu", "--threads", "--lanes", "--distributed"}},
      {"How numbers are computed", {"-O", "--strict-math", "--no-reassociate", "--check"}},
      {"Understanding a program",
       {"--explain", "-g", "--all-messages", "--time-passes", "--dump-after", "--disable-pass", "--verify", "--explain-cache"}},
      {"For the C++ compiler", {"-I", "-D", "-U", "-L", "-l", "--std", "--no-rewrite", "--no-cache"}},
  };
  for (const OptionGroup& group : groups)
    for (const std::string& name : group.options) app.get_option(name)->group(group.heading);
}

void describe(CLI::App& app, Given& given) {
  const auto words = [&](const char* names, Words& to, const char* what, const char* type) {
    app.add_option(names, to, what)->allow_extra_args(false)->type_name(type);
  };
  const auto word = [&](const char* names, std::string& to, const char* what, const char* type) {
    app.add_option(names, to, what)->type_name(type)->take_last();
  };
  Options& o = given.options;
  app.add_option("sources", o.sources, "C++ files with LANTERN_FUNCTIONs")->type_name("FILE");
  word("-o", o.output, "write to FILE; default a.out, or standard output for text", "FILE");
  word("--depfile", o.depfile, "write what the result depends on to FILE, as make and ninja read it", "FILE");
  word("--emit", given.emit,
       "write something else than a program:\n"
       "ir (after the passes), svg (ir as a picture),\n"
       "cps (as staged, in continuation-passing style),\n"
       "c, cpp, cuda, header (sources that stand alone),\n"
       "object, shared (the generated code alone),\n"
       "python, jax, torch (a module that holds the generated code, for NumPy, JAX or PyTorch;\n"
       "jax and torch on GPUs too, with --target=cuda),\n"
       "wheel (the module for NumPy as a package that pip installs),\n"
       "julia (a module that holds the generated code),\n"
       "fortran (a module that calls what --emit=object makes),\n"
       "mex or matlab (a source for mkoctfile --mex or mex, for Octave and MATLAB),\n"
       "rewritten (the C++ file without native control flow over Rep),\n"
       "html (a page: source, graph and generated code side by side)",
       "KIND");
  word("--function", o.function, "of several functions only NAME, with --emit", "NAME");
  word("--prefix", o.prefix, "before the names of emitted functions, as a namespace: --prefix=model_", "TEXT");
  app.add_flag("--strided", o.strided,
               "beside each emitted function NAME_strided, which takes arrays and matrices with strides, and\n"
               "writes to such");
  word("-O", given.level,
       "optimise: 0 (as staged, no passes) to 3 (default; with -g the passes, but not the compiler)",
       "LEVEL");
  word("--target", given.target, "cpu (default) or cuda", "TARGET");
  word("--arch", o.arch,
       "with --target=cuda, the architecture: sm_90 (its machine code) or compute_80 (default;\n"
       "any GPU from there on, which compiles kernels when the program first starts)",
       "NAME");
  words("--mapping", o.mappings,
        "with --target=cuda, how the loops of a line run: model.cpp:12=rows (a block of threads takes an\n"
        "iteration), =element (a thread does) or =host",
        "LINE=HOW");
  word("--products", o.products,
       "with --target=cuda, what cuBLAS may round the factors of products of float to: f32 (default: nothing),\n"
       "tf32, bf16 or f16; sums stay float",
       "KIND");
  word("--storage", o.storage,
       "with --target=cuda, f16 or bf16: tensors of float that a function makes for itself lie in 16 bits in the GPU's\n"
       "memory; arithmetic and sums stay float",
       "KIND");
  word("--cpu", o.cpu, "generate code for this processor, by its LLVM name: x86-64-v3", "NAME");
  word("--threads", given.threads,
       "let loops whose iterations do not depend on each other use up to N threads\n"
       "where they have enough to do; default 1",
       "N");
  word("--lanes", given.lanes, "vectors of N f64: 2, 4 or 8; default what the processor's registers hold", "N");
  word("--distributed", given.distributed,
       "the engine between processes that the program starts with: mpi, also where another launcher than\n"
       "mpirun starts it; nccl, the same with NCCL between GPUs; or single; default what it finds when it\n"
       "runs, or what LANTERN_DISTRIBUTED says",
       "ENGINE");
  app.add_flag("--strict-math", o.strict_math,
               "round each operation by itself, keep subnormal numbers, and take\n"
               "libm's functions in vectors too");
  app.add_flag_callback(
      "--no-reassociate", [&o] { o.reassociate = false; },
      "add up in the order that the program says, but for sums of adjoints");
  app.add_flag("-g", o.debug, "debug information, by the user's lines and names");
  word("--check", given.check,
       "nan: the program fails at the first NaN or infinity and says where it arose; default none,\n"
       "or what LANTERN_CHECK says",
       "WHAT");
  app.add_flag("-c", o.object_only,
               "write one object with the program's own code and the generated code, for a linker; link it\n"
               "with liblantern_aot.a and liblantern_core.a (CMake: lantern_target_sources)");
  app.add_flag("--whole-program", o.whole_program,
               "with -c: no other file calls functions over Rep of these files, so that they are left out\n"
               "where the program does not call them");
  app.add_flag("--with-jit", o.with_jit, "keep compile() in the program: it then needs LLVM at run time");
  app.add_flag("--with-main", o.with_main,
               "with --emit=c or cpp: a main function in it that calls each function once,\n"
               "to see how that is done");
  app.add_flag_callback(
      "--no-rewrite", [&o] { o.rewrite = false; },
      "leave native if, while, ... over Rep as they are: they do not compile");
  app.add_flag_callback(
      "--no-cache", [&o] { o.cache = false; },
      "compile anew, whatever is kept of earlier runs; for models that\n"
      "read files while they are staged");
  app.add_flag("--explain-cache", o.explain_cache, "say why an earlier result is not used");
  app.add_flag("--all-messages", o.all_messages,
               "print what the C++ compiler says as it comes, with chains of templates\n"
               "and candidates in headers; otherwise errors are told at your lines");
  app.add_flag("--explain", o.explain,
               "tell what becomes of each function instead of making something:\n"
               "loops, what is kept for derivatives and why, memory, passes,\n"
               "vectors");
  app.add_flag("--time-passes", o.time_passes, "say how long each pass took");
  words("--dump-after", o.dump_after, "print the graph after a pass", "PASS");
  words("--disable-pass", o.disabled_passes, "leave out a pass", "PASS");
  app.add_flag("--verify", o.verify, "check the graph after each pass");
  words("-I", given.include, "passed to the C++ compiler, like the following", "DIR");
  words("-D", given.define, "", "MACRO");
  words("-U", given.undefine, "", "MACRO");
  words("-L", given.library_path, "", "DIR");
  words("-l", given.library, "", "LIBRARY");
  word("--std", given.standard, "also as -std; default c++20", "STANDARD");
  app.set_version_flag("--version", "lanternc " LANTERNC_VERSION);
  group_options(app);
  app.footer(footer);
}

/// The option that a word may have meant. One of the compiler's has a single dash, as -march: of such a word only a name
/// without changes.
std::string intended_option(const std::string& word, const CLI::App& app) {
  const std::string name = word.substr(0, word.find('='));
  Words known;
  for (const CLI::Option* option : app.get_options())
    for (const std::string& long_name : option->get_lnames()) known.push_back("--" + long_name);
  if (name.starts_with("--")) return did_you_mean(name, known);
  return std::ranges::find(known, "-" + name) == known.end() ? "" : ": did you mean -" + name + "?";
}

[[noreturn]] void refuse(const CLI::ParseError& e, const CLI::App& app) {
  const std::string hint = "; see lanternc --help";
  if (const Words extra = app.remaining(); dynamic_cast<const CLI::ExtrasError*>(&e) && !extra.empty()) {
    if (const std::string meant = intended_option(extra.front(), app); !meant.empty())
      throw Error("unknown option '" + extra.front() + "'" + meant + " Options for the C++ compiler go after --" + hint);
    throw Error("unknown option '" + extra.front() + "'; options for the C++ compiler go after --" + hint);
  }
  const std::string text = e.what();
  const std::string name = text.substr(0, text.find_first_of(": "));
  if (dynamic_cast<const CLI::ArgumentMismatch*>(&e) && name.starts_with("-"))
    throw Error("expected a value after '" + name + "'" + hint);
  if (name.starts_with("-")) throw Error("'" + name + "' does not take this value" + hint);
  throw Error("the command line cannot be read (" + text + ")" + hint);
}

/// Lanternc and Lantern's libraries call staged code, and it calls them, as the System V ABI says.
void refuse_other_calls(const std::string& flag) {
  if (flag == "-mabi=ms")
    throw Error("-mabi=ms changes how functions are called, and Lantern's libraries are compiled without it: leave it out, and "
                "write __attribute__((ms_abi)) at the functions that need it");
}

void refuse_old_standards(const std::string& flag) {
  for (const char* year : {"98", "03", "0x", "11", "1y", "14", "1z", "17"})
    if (flag == std::string("-std=c++") + year || flag == std::string("-std=gnu++") + year)
      throw Error(flag + ": Lantern is written in C++20: leave it out, or write -std=c++20 or later");
}

/// Flags after `--`: files and linker flags are for linking, all others for both steps.
void add_compiler_flags(const Words& flags, Options& o) {
  std::ranges::for_each(flags, refuse_other_calls);
  std::ranges::for_each(flags, refuse_old_standards);
  for (std::size_t i = 0; i < flags.size(); ++i) {
    const std::string& f = flags[i];
    const bool takes_next = f == "-l" || f == "-L" || f == "-Xlinker" || f == "-u" || f == "-T";
    const bool link_only = takes_next || !f.starts_with("-") || f.starts_with("-l") || f.starts_with("-L") ||
                           f.starts_with("-Wl,");
    // The word after "-I" or "-include" belongs to it.
    const bool compile_pair = f == "-I" || f == "-D" || f == "-U" || f == "-include" || f == "-isystem" ||
                              f == "-iquote" || f == "-idirafter" || f == "-imacros";
    if (!link_only) o.compile_flags.push_back(f);
    if (!compile_pair) o.link_flags.push_back(f);
    if ((takes_next || compile_pair) && i + 1 < flags.size())
      (link_only ? o.link_flags : o.compile_flags).push_back(flags[++i]);
  }
}

/// Objects and libraries among the inputs go to the linker.
void pass_objects_to_linker(Options& o) {
  const auto first = std::ranges::stable_partition(o.sources, [](const std::string& s) {
    const std::string kind = std::filesystem::path(s).extension().string();
    return kind != ".o" && kind != ".a" && kind != ".so" && s.find(".so.") == std::string::npos;
  });
  for (const std::string& object : first) {
    if (o.object_only || (o.emit != Emit::program && o.emit != Emit::shared))
      throw Error("'" + object + "' is for the linker, and nothing is linked here: leave it out");
    if (::access(object.c_str(), R_OK) != 0) throw Error("cannot read '" + object + "': " + std::strerror(errno));
    o.link_flags.push_back(object);
  }
  o.sources.erase(first.begin(), first.end());
}

void check_sources(const Options& o) {
  if (o.sources.empty()) throw Error("no input file; see lanternc --help");
  for (auto s = o.sources.begin(); s != o.sources.end(); ++s) {
    std::error_code ignored;
    if (std::filesystem::is_directory(*s, ignored))
      throw Error("cannot read '" + *s + "': it is a directory");
    if (::access(s->c_str(), R_OK) != 0) throw Error("cannot read '" + *s + "': " + std::strerror(errno));
    if (std::find(o.sources.begin(), s, *s) != s) throw Error("the input '" + *s + "' is given twice");
  }
}

void check_passes(const Options& o) {
  Words names;
  std::string known;
  for (const passes::Pass& p : passes::passes()) {
    names.emplace_back(p.name);
    known += (known.empty() ? "" : ", ") + names.back();
  }
  const auto check = [&](const char* option, const std::string& name) {
    if (std::ranges::any_of(passes::passes(), [&](const passes::Pass& p) { return p.name == name; })) return;
    const std::string meant = did_you_mean(name, names);
    throw Error(std::string(option) + ": expected the name of a pass" + (meant.empty() ? " (" + known + ")" : "") + ", got '" +
                name + "'" + meant);
  };
  for (const std::string& name : o.disabled_passes) check("--disable-pass", name);
  for (const std::string& name : o.dump_after) {
    check("--dump-after", name);
    if (o.opt == 0) throw Error("--dump-after: no pass runs at -O0");
    if (std::ranges::find(o.disabled_passes, name) != o.disabled_passes.end())
      throw Error("--dump-after: the pass '" + name + "' is disabled");
  }
}

void check_combination(const Options& o) {
  if (o.explain && o.emit != Emit::program) throw Error("--explain does not go with --emit");
  if (o.explain && o.opt == 0) throw Error("--explain: no pass runs at -O0");
  if (o.emit == Emit::program && !o.explain && !o.function.empty())
    throw Error("--function is for use with --emit");
  const bool functions = o.emit == Emit::c || o.emit == Emit::cpp || o.emit == Emit::header ||
                         o.emit == Emit::object || o.emit == Emit::shared;
  if (o.strided && (!functions || o.cuda))
    throw Error("--strided is for use with --emit=c, cpp, header, object or shared, for the CPU");
  if (!o.prefix.empty()) {
    if (!functions || o.cuda)
      throw Error("--prefix is for use with --emit=c, cpp, header, object or shared, for the CPU");
    static const std::regex identifier("[A-Za-z_][A-Za-z_0-9]*");
    if (!std::regex_match(o.prefix, identifier))
      throw Error("--prefix: expected the beginning of a C name, got '" + o.prefix + "'");
  }
  if (o.emit == Emit::rewritten && o.sources.size() > 1) throw Error("--emit=rewritten takes one file");
  if (o.emit == Emit::rewritten && !o.rewrite) throw Error("--emit=rewritten does not go with --no-rewrite");
  if (o.emit != Emit::program && o.with_jit) throw Error("--with-jit is for programs: leave out --emit");
  if (o.object_only && o.emit != Emit::program) throw Error("-c does not go with --emit; --emit=object is the generated code alone");
  if (o.object_only && o.explain) throw Error("-c does not go with --explain");
  if (o.whole_program && !o.object_only) throw Error("--whole-program is for use with -c");
  if (o.with_main && o.emit != Emit::c && o.emit != Emit::cpp)
    throw Error("--with-main is for use with --emit=c or --emit=cpp");
  if (o.cuda && o.threads > 1)
    throw Error("--threads does not go with --target=cuda: a kernel has a thread for every element");
  if (o.threads > 1 && o.debug)
    throw Error("--threads does not go with -g: a debugger would see iterations out of order");
  if (o.threads > 1 && o.opt == 0) throw Error("--threads: no pass runs at -O0");
  if (o.cuda && (o.emit == Emit::c || o.emit == Emit::cpp || o.emit == Emit::html))
    throw Error("--target=cuda does not go with --emit=c, cpp or html; use --emit=cuda");
  if (o.cuda && o.is_module() && !o.has_pullbacks())
    throw Error("--target=cuda does not go with --emit=" + name_of(o.emit) + "; " +
                (o.emit == Emit::python || o.emit == Emit::wheel ? "use --emit=torch or jax, or " : "") + "load a library of --emit=shared");
}

/// Objects and libraries are named after the first source where no output is given.
std::string default_output(const Options& o) {
  const std::string stem = std::filesystem::path(o.sources.front()).stem().string();
  switch (o.emit) {
    case Emit::program:
      return o.explain ? "" : o.object_only ? stem + ".o" : "a.out";
    case Emit::object:
      return stem + ".o";
    case Emit::shared:
      return stem + ".so";
    case Emit::python:
    case Emit::jax:
    case Emit::torch:
      return stem + ".py";
    case Emit::wheel:
      return default_wheel(stem);
    default:
      return {};
  }
}

int thread_count(const std::string& text) {
  int n = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), n);
  if (error != std::errc() || end != text.data() + text.size() || n < 1 || n > ir::largest_team)
    throw Error("--threads: expected a number from 1 to " + std::to_string(ir::largest_team) + ", got '" +
                text + "'");
  return n;
}

int lane_count(const std::string& text) {
  if (text.empty()) return 0;
  if (text != "2" && text != "4" && text != "8")
    throw Error("--lanes: expected 2, 4 or 8, got '" + text + "'");
  return text[0] - '0';
}

Options checked(Given given, const Words& after_dashes) {
  Options o = std::move(given.options);
  if (!given.emit.empty()) {
    const auto found = std::ranges::find(emit_names, std::string_view(given.emit),
                                         &std::pair<std::string_view, Emit>::first);
    if (found == emit_names.end()) {
      Words names;
      for (const auto& [name, emit] : emit_names) names.emplace_back(name);
      throw Error("--emit: expected " + listed_emits() + ", got '" + given.emit + "'" + did_you_mean(given.emit, names));
    }
    o.emit = found->second;
  }
  o.level_given = !given.level.empty();
  if (!o.level_given) given.level = "3";
  if (given.level.size() != 1 || given.level[0] < '0' || given.level[0] > '3')
    throw Error("-O: expected a level from 0 to 3, got '" + given.level + "'");
  o.opt = given.level[0] - '0';
  o.check = given.check.empty() ? check_from_environment() : check_named(given.check, "--check");
  o.threads = thread_count(given.threads);
  o.lanes = lane_count(given.lanes);
  if (given.target != "cpu" && given.target != "cuda")
    throw Error("--target: expected cpu or cuda, got '" + given.target + "'");
  if (!o.cpu.empty() && !codegen::is_processor(o.cpu))
    throw Error("--cpu: expected LLVM's name of a processor, such as x86-64-v3, got '" + o.cpu + "'");
  o.cuda = given.target == "cuda" || o.emit == Emit::cuda;
  o.limited_stack = o.is_module() && !o.cuda;
  if (o.arch != "compute_80" && !o.cuda) throw Error("--arch goes with --target=cuda; a processor is chosen by --cpu");
  if (!o.mappings.empty() && !o.cuda) throw Error("--mapping goes with --target=cuda");
  for (const std::string& text : o.mappings) codegen::asked_mapping(text);
  codegen::f32_products(o.products);
  if (o.products != "f32" && (!o.cuda || o.strict_math)) throw Error("--products goes with --target=cuda, without --strict-math");
  codegen::require_storage(o.storage);
  if (o.storage != "f32" && (!o.cuda || o.strict_math)) throw Error("--storage goes with --target=cuda, without --strict-math");
  static const std::regex architecture("(sm|compute)_[1-9][0-9]+[a-z]?");
  if (!std::regex_match(o.arch, architecture))
    throw Error("--arch: expected sm_75, sm_90, compute_80 or such, got '" + o.arch + "'");
  if (!given.distributed.empty() && given.distributed != "mpi" && given.distributed != "nccl" && given.distributed != "single")
    throw Error("--distributed: expected mpi, nccl or single, got '" + given.distributed + "'");
  check_combination(o);
  check_passes(o);
  pass_objects_to_linker(o);
  check_sources(o);

  if (!given.standard.empty()) {
    o.compile_flags.push_back("-std=" + given.standard);
    refuse_old_standards(o.compile_flags.back());
  }
  for (const std::string& s : given.include) o.compile_flags.push_back("-I" + s);
  for (const std::string& s : given.define) o.compile_flags.push_back("-D" + s);
  if (given.distributed == "nccl" && !o.cuda)
    throw Error("--distributed=nccl goes with --target=cuda: NCCL works on the memory of GPUs; use --distributed=mpi");
  if (!given.distributed.empty())
    o.compile_flags.push_back("-DLANTERN_DISTRIBUTED_ENGINE=\"" + given.distributed + "\"");
  for (const std::string& s : given.undefine) o.compile_flags.push_back("-U" + s);
  for (const std::string& s : given.library_path) o.link_flags.push_back("-L" + s);
  for (const std::string& s : given.library) o.link_flags.push_back("-l" + s);
  add_compiler_flags(after_dashes, o);
  if (o.output.empty()) o.output = default_output(o);
  if (o.output == "-") o.output.clear();
  if (o.emit == Emit::wheel) wheel_name(o.output);
  if (o.emit == Emit::fortran || o.emit == Emit::julia) module_name(o);
  if (o.is_python() && !o.output.empty()) module_name(o);
  return o;
}

}  // namespace

std::string name_of(Emit emit) {
  return std::string(std::ranges::find(emit_names, emit, &std::pair<std::string_view, Emit>::second)->first);
}

std::optional<Options> parse_options(int argc, char** argv) {
  Words words(argv + 1, argv + argc), after_dashes;
  if (const auto dashes = std::ranges::find(words, "--"); dashes != words.end()) {
    after_dashes.assign(dashes + 1, words.end());
    words.erase(dashes, words.end());
  }
  // The one long option that compilers write with a single dash.
  for (std::string& w : words)
    if (w.starts_with("-std=")) w.insert(0, "-");

  CLI::App app("Builds C++ programs that use Lantern, ahead of time.", "lanternc");
  Given given;
  given.options.words.assign(argv + 1, argv + argc);
  std::erase(given.options.words, "--explain-cache");  // it changes no result
  describe(app, given);
  std::ranges::reverse(words);  // as CLI11 wants them
  try {
    app.parse(words);
  } catch (const CLI::CallForHelp&) {
    std::cout << app.help();
    return std::nullopt;
  } catch (const CLI::CallForVersion& version) {
    std::cout << version.what() << "\n";
    return std::nullopt;
  } catch (const CLI::ParseError& e) {
    refuse(e, app);
  }
  return checked(std::move(given), after_dashes);
}

}  // namespace lantern::tool
