// dlopen, and the register that static initialisers write into.
#include "staging_image.hpp"

#include <dlfcn.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <utility>

#include "report.hpp"

namespace lantern {

namespace {

std::vector<driver::Registered>& registered() {
  static std::vector<driver::Registered> all;
  return all;
}

}  // namespace

namespace driver {

__attribute__((visibility("default"))) void register_function(Registered function) {
  registered().push_back(std::move(function));
}

}  // namespace driver

namespace tool {

namespace {

/// What the user's code prints while it is staged is no part of the output.
class OutputToErrors {
 public:
  OutputToErrors() {
    std::fflush(stdout);
    saved_ = ::dup(STDOUT_FILENO);
    ::dup2(STDERR_FILENO, STDOUT_FILENO);
  }
  OutputToErrors(const OutputToErrors&) = delete;
  OutputToErrors& operator=(const OutputToErrors&) = delete;
  ~OutputToErrors() {
    std::fflush(stdout);
    ::dup2(saved_, STDOUT_FILENO);
    ::close(saved_);
  }

 private:
  int saved_;
};

void load(const std::filesystem::path& image) {
  const OutputToErrors redirected;
  try {
    if (::dlopen(image.c_str(), RTLD_LAZY | RTLD_LOCAL) == nullptr) {
      std::string why = ::dlerror();
      if (why.starts_with(image.string() + ": ")) why.erase(0, image.string().size() + 2);
      throw Error("the staging image cannot be loaded: " + why);
    }
  } catch (const Error& e) {
    if (std::strstr(e.what(), ": error: ") != nullptr) throw PlacedError(e.what());
    throw;
  }
}

/// Each function once. A header that several files include registers its functions from one place.
std::vector<driver::Registered> distinct(const std::vector<driver::Registered>& all) {
  std::vector<driver::Registered> functions;
  for (const driver::Registered& f : all) {
    bool known = false;
    for (const driver::Registered& g : functions) {
      if (g.name != f.name) continue;
      if (f.loc.str() != g.loc.str())
        throw PlacedError(f.loc.str() + ": error: there are two LANTERN_FUNCTIONs of the name '" + f.name +
                          "'; rename one\n" + g.loc.str() + ": note: the other one is here");
      known = true;
    }
    if (!known) functions.push_back(f);
  }
  return functions;
}

std::string names(const std::vector<driver::Registered>& functions) {
  std::string list;
  for (const driver::Registered& f : functions) list += (list.empty() ? "" : ", ") + f.name;
  return list;
}

std::string listed(const std::vector<std::string>& files) {
  std::string list;
  for (const std::string& f : files) list += (list.empty() ? "" : ", ") + f;
  return list;
}

}  // namespace

StagingImage load_staging_image(UserCode& code, const Options& options) {
  load(code.staging_image());
  StagingImage image{distinct(registered())};
  if (image.functions.empty())
    throw Error("no LANTERN_FUNCTION in " + listed(options.sources) +
                "; write LANTERN_FUNCTION(name, program) at namespace scope");
  if (!options.function.empty()) {
    const std::string all = names(image.functions);
    std::erase_if(image.functions, [&](const driver::Registered& f) { return f.name != options.function; });
    if (image.functions.empty())
      throw Error("--function: expected one of " + all + ", got '" + options.function + "'");
  }
  if (image.functions.size() > 1 && (options.emit == Emit::cuda || options.emit == Emit::svg))
    throw Error(std::string("--emit=") + (options.emit == Emit::cuda ? "cuda" : "svg") +
                " takes one function; choose with --function=NAME among " + names(image.functions));
  return image;
}

}  // namespace tool

}  // namespace lantern
