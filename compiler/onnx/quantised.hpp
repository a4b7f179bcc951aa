// Quantised numbers, as operators share them: integers q that represent (q - zero point) scale.
#pragma once

#include "lantern/compiler/onnx/operator.hpp"

namespace lantern::onnx::rules {

/// A scale or zero point beside a tensor: one number for all, a vector along an axis, or, with the attribute
/// block_size and `x`, one for so many elements along it.
Datum along(const Call& c, const Datum& v, int axis, int rank, const Datum& x = {});
/// Operand i less its zero point, as i32.
Datum centred(const Call& c, std::size_t i, std::size_t zero, int axis);
/// The nearest integers, halves to the even one, plus a zero point, within what the type holds; or the
/// nearest number of a format of few bits. `precision` is that of the quotient.
Datum quantised(const Call& c, const Datum& x, const Datum& scale, const Datum& zero, Element to,
                Element precision = Element::float32);

}  // namespace lantern::onnx::rules
