// Where something flows in a derivative that is an eager tensor, as a tensor of bools beside it (TensorBox::flow).
#pragma once

#include "lantern/compiler/ad/adjoint_cell.hpp"

namespace lantern::core::ad {

/// The answer that something flows everywhere, of an eager tensor; else empty.
Datum flow_everywhere(const Datum& d);
/// The derivative d with 0 where nothing flows.
Datum without_flow(Datum d, const Datum& flow, const Location& loc);

}  // namespace lantern::core::ad
