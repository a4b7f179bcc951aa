// Linear functions between ranks as functions with a rule.
#include "lantern/compiler/distributed/rules.hpp"

#include <memory>

#include "lantern/compiler/staging/control_flow.hpp"

namespace lantern::distributed::detail {

Datum integer(std::int64_t n) { return Datum::integer(n, ir::I64); }
Datum op(Opcode code, const Call& call, std::initializer_list<Datum> operands, std::int64_t attribute) {
  return perform({code, attribute, call.loc}, operands);
}
Datum filled(const Call& call, const Datum& value, const Datums& sizes) {
  Datums operands{value};
  operands.insert(operands.end(), sizes.begin(), sizes.end());
  return perform({Opcode::fill_, 0, call.loc}, operands);
}
Datums sizes_of(const Call& call, const Datum& x) {
  Datums sizes;
  for (int d = 0; d < x.type().rank(); ++d) sizes.push_back(core::dimension_of(x, d, call.loc));
  return sizes;
}
Datum on_tensors(const Call& call, const Datum& x, const std::function<Datum(const Datum&)>& body) {
  if (!x.type().is_scalar()) return body(x);
  return op(Opcode::get_, call, {body(filled(call, x, {integer(1)})), integer(0)});
}
Datum in_shape_of(const Call& call, const Datum& y, const Datum& like) {
  return op(Opcode::reshape_, call, {y, core::strip(like)});
}

Call in_derivative(const Call& call, const Datums& arguments, Role role) {
  const std::int32_t roles = call.roles * distributed_roles + static_cast<std::int32_t>(role);
  return {call.kernels, arguments[0], call.loc, roles % distributed_all_roles, {}};
}

// One half of a message takes part in each derivative in which the other does. Both ranks' values are differentiated
// together; what is derived from them, zeros for instance, need not be. So it is done beside the value.
Datum linear(const Linear& map, const Call& call, const Datum& a, const Datum& b, const Datum& x,
             const Body& again) {
  const auto plain = [call](const Datums& in) { return Call{call.kernels, in[0], call.loc, call.roles, {}}; };
  const auto at = [call](const Datums& in, Role role) {
    Call c = in_derivative(call, in, role);
    if (in.size() > 4) c.like = op(Opcode::add_, c, {in[3], in[4]});
    return c;
  };
  const auto with_zeros = [](const Call& c, Datum derivative, const Datum& like) {
    Datums all{std::move(derivative)};
    if (!like.empty()) all.push_back(filled(c, Datum::zero(ir::Type(like.type().element())), sizes_of(c, like)));
    return all;
  };
  const auto rule = std::make_shared<core::ad::Rule>();
  rule->name = map.name;
  rule->what = std::string("distributed::") + map.name;
  rule->ordered = true;
  rule->primal = [=](const Datums& in) { return Datums{map.value(plain(in), in[1], in[2], in[3])}; };
  rule->forward = [=](const Datums& in) -> core::ad::Rule::Split {
    const Call c = at(in, Role::value);
    Datums kept{in[0], in[1], in[2]};
    if (!c.like.empty()) kept.push_back(c.like);
    return {{again(c, in[1], in[2], in[3])}, kept};
  };
  rule->backward = [=](const Datums& kept, const Datums& g) {
    Call c = in_derivative(call, kept, Role::cotangent);
    if (kept.size() > 3) c.like = kept[3];
    return with_zeros(c, map.transpose(c, kept[1], kept[2], g[0]), c.like);
  };
  rule->tangent = [=](const Datums& in, const Datums& t) -> core::ad::Rule::Split {
    const Datum y = again(at(in, Role::primal), in[1], in[2], in[3]);
    return {{y}, {again(at(in, Role::tangent), in[1], in[2], t[0])}};
  };
  Datums arguments{call.comm, a, b, x};
  if (!call.like.empty()) arguments.push_back(call.like);
  return core::ad::call_with_rule(rule, arguments, call.loc)[0];
}

}  // namespace lantern::distributed::detail
