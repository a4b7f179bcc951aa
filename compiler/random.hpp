// Random numbers inside programs: random::uniform<double>(key, 3, 4), random::normal, random::split, ...; and logarithms
// of densities: log_density::normal(x, mean, deviation), ...; and numbers of these distributions, differentiated by their
// parameters: sample::normal(key, mean, deviation), sample::gamma(key, {m, n}, shape, rate), ...
#pragma once

#include "lantern/compiler/random/density.hpp"
#include "lantern/compiler/random/random.hpp"
#include "lantern/compiler/random/sample.hpp"
#include "lantern/lantern.hpp"

namespace lantern {
namespace random = core::random;
namespace log_density = core::log_density;
namespace sample = core::sample;
}
