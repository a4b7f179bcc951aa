// print and print_adjoint: looking at values and at adjoints while a program runs, compiled or eagerly.
#pragma once

#include "lantern/compiler/staging/rep.hpp"

namespace lantern::core {

/// Writes "label = value" to standard output whenever the value has been computed, in loops every time, and gives
/// the value. Prints keep their order, under derivatives too: there the value is printed where the forward part
/// computes it. Of an array or tensor the first and last elements are shown. Error: a tree, an empty value.
template <class T>
Rep<T> print(const Rep<T>& x, std::string_view label,
             std::source_location l = std::source_location::current()) {
  print(x.datum(), label_of(label), here(l));
  return x;
}

/// The value. Reverse mode (grad, value_and_grad, vjp, ...) prints "label = adjoint" in its backward part, when the
/// adjoint of the value is known. Where no adjoint arrives, compiled code may print a zero; otherwise nothing is
/// printed, nor in the other modes. In nested derivatives each of them prints its own.
template <class T>
  requires(FloatElement<typename detail::Traits<T>::element>)
Rep<T> print_adjoint(const Rep<T>& x, std::string_view label,
                     std::source_location l = std::source_location::current()) {
  return Rep<T>(perform({Opcode::print_adjoint_, 0, here(l), {}, label_of(label)}, {x.datum()}));
}

}  // namespace lantern::core
