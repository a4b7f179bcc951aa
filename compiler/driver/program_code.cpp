// The code of a program, by the ranks of its arguments.
#include "lantern/compiler/driver/compile.hpp"

namespace lantern::core::driver {

ProgramCode::ProgramCode(const ad::OwnedProgram& program, const CompileOptions& options, bool ranked,
                         const std::vector<ir::Type>& types)
    : program_(program), options_(options) {
  if (ranked) only_ = compiled(types);
}

std::shared_ptr<const Code> ProgramCode::compiled(const std::vector<ir::Type>& types) const {
  return compile(options_.name.empty() ? program_.name() : options_.name, types, program_,
                 options_);
}

const Code& ProgramCode::of(const std::vector<ir::Type>& types) {
  std::string key;
  for (const ir::Type& t : types) key += t.str() + ",";
  const std::lock_guard lock(mutex_);
  auto code = by_rank_.find(key);
  if (code == by_rank_.end()) code = by_rank_.emplace(key, compiled(types)).first;  // which may raise
  return *code->second;
}

const Code& ProgramCode::known() {
  if (only_) return *only_;
  const std::lock_guard lock(mutex_);
  if (by_rank_.empty())
    throw Error(
        "a tensor parameter has no declared rank: call the function first, or declare Tensor<double, dyn, dyn>");
  return *by_rank_.begin()->second;
}

}  // namespace lantern::core::driver
