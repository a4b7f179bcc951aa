// For each function a line with its name and the length of its graph's text, then that text.
#include "kept_stages.hpp"

#include <algorithm>
#include <sstream>

#include "lantern/compiler/control/control.hpp"
#include "lantern/ir/parse.hpp"
#include "report.hpp"

namespace lantern::tool {

namespace {

bool may_keep(const Options& options) {
  const bool watched = options.time_passes || options.verify || options.explain || !options.dump_after.empty();
  return options.cache && options.emit == Emit::program && !options.cuda && !options.debug && !watched &&
         !options.with_jit;
}

}  // namespace

KeptStages::KeptStages(const Options& options, const UserCode& code)
    : options_(options), kept_("staged", 64, code.installation(), options, may_keep(options)) {
  for (const std::string& flag : options.compile_flags)
    if (flag.starts_with("-Werror")) return;  // a function that nothing uses any more is an error of the staging image
  if (may_keep(options)) name_ = code.staged_name();
}

std::optional<std::vector<StagedFunction>> KeptStages::find(UserCode& code) {
  auto kept = name_ ? kept_.find(*name_) : std::nullopt;
  if (!kept) return std::nullopt;
  std::vector<StagedFunction> functions;
  std::istringstream in(kept->text);
  std::size_t length = 0;
  for (std::string name; in >> name >> length && in.get() == '\n';) {
    StagedFunction f;
    f.name = name;
    f.staged.resize(length);
    in.read(f.staged.data(), static_cast<std::streamsize>(length));
    core::run_on_large_stack([&] { f.module = ir::parse(f.staged); });
    functions.push_back(std::move(f));
  }
  code.staging_read(std::move(kept->files));
  return functions;
}

void KeptStages::keep(const std::vector<StagedFunction>& functions, const std::vector<std::string>& files) {
  if (!name_ || functions.empty() || !told().empty()) return;
  std::string text;
  for (const StagedFunction& f : functions)
    text += f.name + " " + std::to_string(f.staged.size()) + "\n" + f.staged;
  std::vector<std::string> others = files;  // of the sources, the name knows the part that matters
  std::erase_if(others, [&](const std::string& f) { return std::ranges::find(options_.sources, f) != options_.sources.end(); });
  kept_.keep(*name_, text, others);
}

}  // namespace lantern::tool
