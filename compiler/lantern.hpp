// Lantern: staged automatic differentiation. The one header a user includes.
#pragma once

#include "lantern/compiler/ad/checkpoint.hpp"
#include "lantern/compiler/ad/closure.hpp"
#include "lantern/compiler/ad/custom_derivative.hpp"
#include "lantern/compiler/ad/derivative.hpp"
#include "lantern/compiler/ad/fixpoint.hpp"
#include "lantern/compiler/ad/jacobian.hpp"
#include "lantern/compiler/ad/sparse.hpp"
#include "lantern/compiler/ad/vmap.hpp"
#include "lantern/compiler/control/control.hpp"
#include "lantern/compiler/driver/compile.hpp"
#include "lantern/compiler/driver/function.hpp"
#include "lantern/compiler/driver/sparsity.hpp"
#include "lantern/compiler/staging/control_flow.hpp"
#include "lantern/compiler/staging/print.hpp"
#include "lantern/compiler/staging/rep.hpp"
