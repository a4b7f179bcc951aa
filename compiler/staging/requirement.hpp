// Conditions that a program needs to go on.
#pragma once

#include <string>

#include "lantern/compiler/staging/operation.hpp"

namespace lantern::core::detail {

/// Raises Error with the place and the message unless `condition`, a boolean, holds: at once where its value
/// is known, else when the compiled program gets there. Whole numbers stand in the message in the places of {}.
void require(const Datum& condition, const std::string& message, const Location& loc,
             std::span<const Datum> numbers = {});

/// The same for two tensors of one rank: their sizes are equal, from dimension `from` on.
void require_same_sizes(const Datum& a, const Datum& b, int from, const std::string& message,
                        const Location& loc);

/// A staged tensor of which less is known than what is declared, as one of the declared type: the compiled program
/// raises with both shapes where it is none.
Datum narrowed(const Datum& t, const ir::Type& declared, const Location& loc);

}  // namespace lantern::core::detail
