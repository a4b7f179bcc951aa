// What a program's functions were staged to, for the next build of the same ones.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "file_state.hpp"
#include "options.hpp"
#include "stage.hpp"
#include "user_code.hpp"

namespace lantern::tool {

/// The graphs of a program's functions, by what they were staged from (UserCode::staged_name). Where a comment or main
/// changes, nothing is staged. Not for -g, whose graphs know the user's names, nor where the run itself is watched.
class KeptStages {
 public:
  KeptStages(const Options& options, const UserCode& code);

  std::optional<std::vector<StagedFunction>> find(UserCode& code);
  /// Not where the compiler or the program said something: that would not be said again. `files`: read until now.
  void keep(const std::vector<StagedFunction>& functions, const std::vector<std::string>& files);

 private:
  const Options& options_;
  std::optional<std::string> name_;
  KeptTexts kept_;
};

}  // namespace lantern::tool
