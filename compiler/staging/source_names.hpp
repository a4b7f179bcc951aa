// The user's names for values, read from the source: C++ does not tell a program what its variables are
// called.
#pragma once

#include <cstddef>

#include "lantern/ir/graph.hpp"

namespace lantern::core {

/// Names the values of a staged function after the user's variables, where the file they were written in can
/// be read: `Rep<double> next = x * x;` gives `next` to the product, a function's or a lambda's parameter
/// list names parameters and the state of loops. A value that has a name keeps it. Nothing depends on a name:
/// where the source cannot be made sense of, or has changed since, values go without or are misnamed.
///
/// `own`: how many of the parameters are the function's own; those after them are captured.
void name_values(ir::Function& function, std::size_t own);

}  // namespace lantern::core
