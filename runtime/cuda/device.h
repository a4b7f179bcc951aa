/* The GPU's side of a workspace, as plain C: the layout that programs for a GPU and their host agree on.
 *
 * The files of structures are printed into generated text as they are (codegen/cuda/layouts.hpp.in).
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "lantern/runtime/workspace.h"

struct CUstream_st; /* a cudaStream_t points to it */

#ifdef __cplusplus
extern "C" {
#endif

#include "lantern/runtime/cuda/control.inc"

#include "lantern/runtime/cuda/device.inc"

#include "lantern/runtime/cuda/blas.inc"
#include "lantern/runtime/cuda/dnn.inc"

#ifdef __cplusplus
}
#endif
