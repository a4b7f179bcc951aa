// Generated code is compiled in this process while the system's compiler works on the user's files.
#include "build_program.hpp"

#include <atomic>
#include <future>
#include <optional>
#include <span>
#include <string>
#include <thread>

#include "cuda_code.hpp"
#include "facts.hpp"
#include "lantern/codegen/library.hpp"
#include "lantern/codegen/toolchain/clang.hpp"
#include "lantern/codegen/toolchain/content_hash.hpp"
#include "lantern/codegen/toolchain/disk_cache.hpp"
#include "lantern/codegen/toolchain/host.hpp"
#include "lantern/codegen/toolchain/process.hpp"
#include "lantern/compiler/control/control.hpp"
#include "lantern/compiler/passes/direct/close.hpp"
#include "lantern/ir/prototype.hpp"
#include "result_cache.hpp"

namespace lantern::tool {

using namespace core;

namespace {

/// A function's object: passes, text, machine code.
std::string cpu_object(StagedFunction& function, const Options& options) {
  optimise(function, options);
  passes::close(*function.module);
  codegen::PrintOptions print;
  print.comments = false;  // nothing reads it
  print.line_directives = print.named_values = options.debug;
  print.check_nan = options.check == Check::nan;
  print.vectors = vector_lanes(options) > 0;
  print.threads = options.threads;
  print.limited_stack = true;
  print.strict_math = options.strict_math;
  const ir::Module* const module = function.module.get();
  const std::string text =
      codegen::print_library(std::span(&module, 1), print, codegen::CTarget(), linked_suffix) +
      facts(function, options.strict_math) + "\n";

  codegen::ClangOptions clang;
  clang.opt_level = options.code_level();
  clang.debug_info = options.debug;
  clang.pic = true;  // programs are position-independent by default
  clang.target_cpu = options.cpu;
  clang.contract = !options.strict_math;
  const std::vector<char> object = codegen::object_with_clang(text, codegen::Language::c, clang);
  return {object.begin(), object.end()};
}

/// The objects of the functions, each by itself, on all processors; of those that are staged to what they
/// were staged to before, the ones that are kept.
std::vector<std::string> cpu_objects(std::vector<StagedFunction>& functions, const UserCode& code,
                                     const Options& options) {
  constexpr std::uintmax_t most_bytes = 256U << 20U;
  // What is told of the passes is told of every run, in order.
  const bool tells = options.time_passes || options.verify || !options.dump_after.empty();
  const auto directory =
      options.cache && !tells ? codegen::private_cache_directory("functions") : std::nullopt;
  codegen::ContentHash common;
  common.add(identity(code.installation())).add(codegen::host_processor());
  common.add(options.check == Check::nan ? "nan" : "");  // the environment may ask for it
  for (const std::string& word : options.words) common.add(word);
  const std::string shared = common.text();

  std::vector<std::string> objects(functions.size());
  std::atomic<std::size_t> next = 0;
  const auto work = [&] {
    for (std::size_t i; (i = next++) < functions.size();) {
      std::optional<codegen::DiskCache> cache;
      if (directory) cache.emplace(*directory, most_bytes);
      const std::string key =
          codegen::ContentHash().add(shared).add(functions[i].name).add(functions[i].staged).text();
      if (auto kept = cache ? cache->load(key) : std::nullopt) {
        objects[i] = std::move(*kept);
        continue;
      }
      run_on_large_stack([&] { objects[i] = cpu_object(functions[i], options); });
      if (cache) cache->store(key, objects[i]);
    }
  };
  const std::size_t processors = tells ? 1 : std::max(1U, std::thread::hardware_concurrency());
  std::vector<std::future<void>> others;
  for (std::size_t i = 1; i < std::min(processors, functions.size()); ++i)
    others.push_back(std::async(std::launch::async, work));
  work();
  for (auto& other : others) other.get();
  return objects;
}

std::vector<std::string> gpu_objects(const std::vector<StagedFunction>& functions, const UserCode& code,
                                     const Options& options) {
  std::vector<std::string> objects;
  for (const StagedFunction& f : functions)
    for (std::string& object : cuda_entry_objects(f, options, code.installation().include))
      objects.push_back(std::move(object));
  return objects;
}

}  // namespace

void build_program(std::vector<StagedFunction>& functions, UserCode& code, const Options& options,
                   Output& output) {
  const std::vector<std::string> objects = functions.empty() ? std::vector<std::string>{}
                                           : options.cuda    ? gpu_objects(functions, code, options)
                                                             : cpu_objects(functions, code, options);
  std::vector<std::filesystem::path> generated;
  for (const std::string& contents : objects) {
    generated.push_back(code.directory() / ("generated" + std::to_string(generated.size()) + ".o"));
    codegen::write_file(generated.back(), contents);
  }
  std::vector<std::string> external;
  for (const StagedFunction& f : functions)
    for (const ir::Prototype& p : ir::external_functions(*f.module)) external.push_back(p.name);
  if (options.object_only) return output.take(code.merged_object(generated));
  output.take(code.link_program(generated, options.cuda ? cuda_link_arguments() : std::vector<std::string>{},
                                external));
}

}  // namespace lantern::tool
