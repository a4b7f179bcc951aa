// Random numbers inside programs: random::uniform<double>(key, 3, 4), random::normal, random::split, ...
#pragma once

#include "lantern/compiler/random/random.hpp"
#include "lantern/lantern.hpp"

namespace lantern {
namespace random = core::random;
}
