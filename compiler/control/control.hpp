// Delimited control: reset, shift, handle, perform.
#pragma once

#include "lantern/compiler/control/effect.hpp"
#include "lantern/compiler/control/shift.hpp"
