// dlopen, and the register that static initialisers write into.
#include "staging_image.hpp"

#include <cxxabi.h>
#include <dlfcn.h>

#include <algorithm>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "interruption.hpp"
#include "output_to_errors.hpp"
#include "report.hpp"
#include "similar_name.hpp"

namespace lantern::core::driver {

namespace {

std::vector<Registered>& registered() {
  static std::vector<Registered> all;
  return all;
}

}  // namespace

__attribute__((visibility("default"))) void register_function(Registered function) {
  registered().push_back(std::move(function));
}

}  // namespace lantern::core::driver

namespace lantern::tool {

namespace {

/// Removes what an ordinary way out removes.
std::function<void()> clean_up;

/// An exception of a static initialiser cannot pass through dlopen: it ends here.
[[noreturn]] void initialiser_threw() {
  std::string what = "an exception";
  try {
    std::rethrow_exception(std::current_exception());
  } catch (const std::exception& e) {
    what = e.what();
  } catch (...) {
  }
  tell("lanternc: error: a static initialiser threw: " + what + "\n");
  clean_up();
  std::_Exit(1);
}

/// The name in what dlerror says; empty where it is something else.
std::string undefined_symbol(const std::string& why) {
  constexpr std::string_view undefined = "undefined symbol: ";
  const std::size_t at = why.find(undefined);
  return at == std::string::npos ? "" : why.substr(at + undefined.size());
}

/// A function over Reps whose body is missing: to call it while staging would end the process.
void refuse_undefined(const std::string& why) {
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> name(abi::__cxa_demangle(undefined_symbol(why).c_str(), nullptr, nullptr, &status), std::free);
  std::string function = name ? name.get() : "";
  for (const std::string_view space : {"lantern::core::", "lantern::"})
    for (std::size_t at = function.find(space); at != std::string::npos; at = function.find(space, at)) function.erase(at, space.size());
  if (function.find("Rep<") == std::string::npos || function.find('(') == std::string::npos) return;
  throw Error(function + " is declared, and no file defines it: name the file that does behind lanternc, or write its body");
}

/// Functions and variables that others link to the program may be missing where nothing is called but what stages it:
/// an external function, for instance. They are then at address 0.
void load(UserCode& code, const Options& options) {
  const OutputToErrors redirected;
  std::vector<std::string> missing;
  while (true) {
    const std::filesystem::path image = code.staging_image(missing);
    const std::terminate_handler before = std::set_terminate(initialiser_threw);
    const auto open = [&](int binding) {
      const FaultsOfUser faults("static initialisers ran");
      return ::dlopen(image.c_str(), binding | RTLD_LOCAL);
    };
    // Of a whole program no other file can define what these lack.
    const bool whole = missing.empty() && options.emit == Emit::program && !options.object_only;
    const void* handle = whole ? open(RTLD_NOW) : nullptr;
    if (whole && handle == nullptr) refuse_undefined(::dlerror());
    if (handle == nullptr) handle = open(RTLD_LAZY);
    std::set_terminate(before);
    if (handle != nullptr) return;
    std::string why = ::dlerror();
    if (why.starts_with(image.string() + ": ")) why.erase(0, image.string().size() + 2);
    const std::string name = undefined_symbol(why);
    if (name.empty() || std::ranges::find(missing, name) != missing.end())
      throw Error("the staging image cannot be loaded: " + why);
    missing.push_back(name);
  }
}

/// Each function once. A header that several files include registers its functions from one place, once for
/// each: they must agree, since the program finds them by their names.
std::vector<core::driver::Registered> distinct(const std::vector<core::driver::Registered>& all) {
  std::vector<core::driver::Registered> functions;
  for (const core::driver::Registered& f : all) {
    const auto same_name = [&](const core::driver::Registered& g) { return g.name == f.name; };
    const auto first = std::ranges::find_if(functions, same_name);
    if (first == functions.end()) {
      functions.push_back(f);
      continue;
    }
    if (f.loc.str() != first->loc.str())
      throw PlacedError(f.loc.str() + ": error: there are two LANTERN_FUNCTIONs of the name '" + f.name +
                        "'; rename one\n" + first->loc.str() + ": note: the other one is here");
    first->again.push_back(f);
  }
  return functions;
}

std::string names(const std::vector<core::driver::Registered>& functions) {
  std::string list;
  for (const core::driver::Registered& f : functions) list += (list.empty() ? "" : ", ") + f.name;
  return list;
}

}  // namespace

StagingImage load_staging_image(UserCode& code, const Options& options) {
  clean_up = [&] {
    std::error_code ignored;
    std::filesystem::remove_all(code.directory(), ignored);
    if (std::filesystem::is_regular_file(options.output, ignored))
      std::filesystem::remove(options.output, ignored);
  };
  load(code, options);
  StagingImage image{distinct(core::driver::registered())};
  if (image.functions.empty() && options.with_jit) return image;  // all is compiled in process
  if (image.functions.empty()) refuse_without_functions(options);
  if (!options.function.empty()) {
    const std::string all = names(image.functions);
    std::vector<std::string> known;
    for (const core::driver::Registered& f : image.functions) known.emplace_back(f.name);
    std::erase_if(image.functions, [&](const core::driver::Registered& f) { return f.name != options.function; });
    if (image.functions.empty())
      throw Error("--function: expected one of " + all + ", got '" + options.function + "'" + did_you_mean(options.function, known));
  }
  if (image.functions.size() > 1 && (options.emit == Emit::cuda || options.emit == Emit::svg))
    throw Error(std::string("--emit=") + (options.emit == Emit::cuda ? "cuda" : "svg") +
                " takes one function; choose with --function=NAME among " + names(image.functions));
  return image;
}

}  // namespace lantern::tool
