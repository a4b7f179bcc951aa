// Memory traffic: the bytes that a function has to move, and those that it moves, by a model of one cache.
//
//   FOR i below m: FOR j below n: s += a(i, j) * x[j]      has to move 8 m n + 8 n bytes, and moves as many
//   WHILE ...: FOR i below n: u[i] = f(u[i])               moves 16 n bytes in each iteration of the WHILE
//
// An access moves its footprint: the elements that it reaches in the loops on which its index depends. A loop around on
// which it does not depend moves the footprint again where that is as large as the largest of the nest, and so has left
// the cache. Accesses of one innermost loop to one tensor move it together.
// (Reuse by loops that an index lacks: Wolf and Lam, "A data locality optimizing algorithm", PLDI 1991.)
#pragma once

#include <vector>

#include "lantern/compiler/passes/analysis/index_form.hpp"

namespace lantern::tool {

/// So many times a polynomial of numbers and sizes. A value that is no integer counts the iterations of the loop whose
/// body has it as its first parameter.
struct Amount {
  passes::IndexForm form;
  double factor = 1;
};

/// In bytes.
struct Traffic {
  std::vector<Amount> least;  ///< tensors that the entry reads among its arguments, and its results, each once
  std::vector<Amount> moved;  ///< by tensor operations, loops and tapes
  bool complete = true;       ///< without functions that call themselves, and sizes that loops compute
};

/// Of a program in direct style, before its loops have lanes.
Traffic traffic(const ir::Module& module);

/// A size with every unknown number taken for 1000, to compare two.
double magnitude(const Amount& a);

}  // namespace lantern::tool
