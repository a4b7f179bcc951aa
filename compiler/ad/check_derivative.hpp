// Comparing derivatives with differences.
#pragma once

#include <functional>
#include <string>

#include "lantern/compiler/ad/program.hpp"

namespace lantern::core {

/// How closely check_derivative looks.
struct DerivativeCheckOptions {
  double tolerance = 0;  ///< relative difference that passes; 0: 1e-5, or 1e-2 where something is float
  std::int64_t elements =
      100;  ///< how many numbers among the arguments are looked at, one by one; of more, so many
  std::function<void(const std::string&)> kink = {};  ///< is told of kinks; without it the standard error stream is
};

namespace ad {

/// Compares the derivatives of a program at some arguments, by forward and by reverse mode, with differences
/// of its values, by one number of the arguments after the other. The largest relative difference. `names`:
/// of the arguments, for messages. Error naming argument, element, result and both numbers where a derivative
/// is another, or where one is not finite; where there is nothing to differentiate. A mode for which an
/// external function has no derivative is left out, if the other has one.
///
/// Differences are central, of fourth order (Abramowitz and Stegun, "Handbook of Mathematical
/// Functions", 25.3.21), with several widths, of which the one that comes closest counts: too wide a one
/// meets another branch, too narrow a one rounding.
///
/// At a kink, where the slopes to the two sides differ or only one of them exists, a derivative that lies between them is
/// right, and `kink` is told.
double check_derivative(const Program& program, const Datums& arguments,
                        const std::vector<std::string>& names, const DerivativeCheckOptions& options,
                        const Location& loc);

}  // namespace ad
}  // namespace lantern::core
