// What the operations between ranks are made of: linear functions with a rule, and a few calls.
#pragma once

#include <functional>

#include "lantern/compiler/ad/custom_rule.hpp"
#include "lantern/compiler/distributed/exchange.hpp"

namespace lantern::distributed::detail {

using core::Opcode;
using core::perform;

Datum integer(std::int64_t n);
Datum op(Opcode code, const Call& call, std::initializer_list<Datum> operands, std::int64_t attribute = 0);
/// A tensor of equal elements.
Datum filled(const Call& call, const Datum& value, const Datums& sizes);
Datums sizes_of(const Call& call, const Datum& x);
/// body(x), where numbers go as tensors of one element.
Datum on_tensors(const Call& call, const Datum& x, const std::function<Datum(const Datum&)>& body);
Datum in_shape_of(const Call& call, const Datum& y, const Datum& like);

using Body = std::function<Datum(const Call&, const Datum& a, const Datum& b, const Datum& x)>;

/// The call as part of a derivative. `arguments`: the communicator first.
Call in_derivative(const Call& call, const Datums& arguments, Role role);

/// A function of x with a derivative, between ranks. The communicator, a and b, which are not differentiated, are
/// arguments: parts of rules may be where nothing else can be seen.
struct Linear {
  const char* name;
  Body value;      ///< for the primal, and the tangent
  Body transpose;  ///< of cotangents
};
/// `again`: the same function, one level down.
Datum linear(const Linear& map, const Call& call, const Datum& a, const Datum& b, const Datum& x, const Body& again);

}  // namespace lantern::distributed::detail
