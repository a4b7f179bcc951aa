// Programs of bench kernels that are written once, in C++'s own statements. As plain C++ they are the
// yardstick (reference/programs.cpp); lanternc makes the staged program of the same text
// (kernels_native.cpp). `T` names the types of either. Matrices are row-major.
//
// Frozen: these loops are the yardstick that derivatives are measured with. They must not be tuned.
#pragma once

#include <algorithm>
#include <cmath>

namespace lantern::bench::programs {

template <class T>
using Number = typename T::Number;
template <class T>
using Index = typename T::Index;
template <class T>
using Input = typename T::Input;
template <class T>
using Indices = typename T::Indices;
template <class T>
using Array = typename T::Array;

template <class T>
Number<T> sum_of_squares(const Array<T>& a, Index<T> n) {
  Number<T> sum = 0.0;
  for (Index<T> i = 0; i < n; ++i) sum += a[i] * a[i];
  return sum;
}

}  // namespace lantern::bench::programs
