// The lambda calculus of the Lantern paper: terms, evaluation, and the transformations that differentiate
// them.
#pragma once

#include "lantern/compiler/calculus/derived.hpp"
#include "lantern/compiler/calculus/evaluate.hpp"
#include "lantern/compiler/calculus/program.hpp"
#include "lantern/compiler/calculus/term.hpp"
#include "lantern/compiler/calculus/transform.hpp"
