// Random numbers inside programs: random::uniform<double>(key, 3, 4), random::normal, random::split, ...; and logarithms
// of densities: log_density::normal(x, mean, deviation), ...
#pragma once

#include "lantern/compiler/random/density.hpp"
#include "lantern/compiler/random/random.hpp"
#include "lantern/lantern.hpp"

namespace lantern {
namespace random = core::random;
namespace log_density = core::log_density;
}
