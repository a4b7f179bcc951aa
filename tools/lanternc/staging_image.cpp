// dlopen, and the register that static initialisers write into.
#include "staging_image.hpp"

#include <dlfcn.h>

#include <algorithm>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <functional>
#include <memory>
#include <utility>

#include "interruption.hpp"
#include "output_to_errors.hpp"
#include "report.hpp"

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

/// Functions and variables that others link to the program may be missing where nothing is called but what stages it:
/// an external function, for instance. They are then at address 0.
void load(UserCode& code) {
  const OutputToErrors redirected;
  std::vector<std::string> missing;
  while (true) {
    const std::filesystem::path image = code.staging_image(missing);
    const std::terminate_handler before = std::set_terminate(initialiser_threw);
    const void* handle = [&] {
      const FaultsOfUser faults("static initialisers ran");
      return ::dlopen(image.c_str(), RTLD_LAZY | RTLD_LOCAL);
    }();
    std::set_terminate(before);
    if (handle != nullptr) return;
    std::string why = ::dlerror();
    if (why.starts_with(image.string() + ": ")) why.erase(0, image.string().size() + 2);
    constexpr std::string_view undefined = "undefined symbol: ";
    const std::string name = why.starts_with(undefined) ? why.substr(undefined.size()) : "";
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
  load(code);
  StagingImage image{distinct(core::driver::registered())};
  if (image.functions.empty() && options.with_jit) return image;  // all is compiled in process
  if (image.functions.empty()) refuse_without_functions(options);
  if (!options.function.empty()) {
    const std::string all = names(image.functions);
    std::erase_if(image.functions, [&](const core::driver::Registered& f) { return f.name != options.function; });
    if (image.functions.empty())
      throw Error("--function: expected one of " + all + ", got '" + options.function + "'");
  }
  if (image.functions.size() > 1 && (options.emit == Emit::cuda || options.emit == Emit::svg))
    throw Error(std::string("--emit=") + (options.emit == Emit::cuda ? "cuda" : "svg") +
                " takes one function; choose with --function=NAME among " + names(image.functions));
  return image;
}

}  // namespace lantern::tool
