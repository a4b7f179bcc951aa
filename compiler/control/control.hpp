// Delimited control: reset, shift, handle, perform, Barrier.
#pragma once

#include "lantern/compiler/control/barrier.hpp"
#include "lantern/compiler/control/effect.hpp"
#include "lantern/compiler/control/shift.hpp"
