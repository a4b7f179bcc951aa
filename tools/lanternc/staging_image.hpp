// The user's file, loaded: static initialisers have run and told of every LANTERN_FUNCTION; main has not run.
#pragma once

#include <vector>

#include "lantern/compiler/driver/function.hpp"
#include "options.hpp"
#include "user_code.hpp"

namespace lantern::tool {

/// Stays loaded to the end: graphs refer to texts in it.
struct StagingImage {
  std::vector<core::driver::Registered> functions;  ///< in the order of the files
};

/// Errors: the image cannot be loaded; it has no function, none of the name that --function gives, or two of
/// the same name.
StagingImage load_staging_image(UserCode& code, const Options& options);

}  // namespace lantern::tool
