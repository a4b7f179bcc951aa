// The objective of ADBench's character model, written as a programmer would without thinking of speed.
//
// Frozen: these loops are the yardstick that derivatives are measured with. They must not be tuned.
#pragma once

#include "../adbench_input.hpp"

namespace lantern::bench::reference {

/// The mean loss over the sequence (ADBench, LSTM).
double lstm(const LstmInput& in);

}  // namespace lantern::bench::reference
