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

Datum linear(const Linear& map, const Call& call, const Datum& a, const Datum& b, const Datum& x,
             const Body& again) {
  const auto at = [kernels = call.kernels, loc = call.loc](const Datum& comm) { return Call{kernels, comm, loc}; };
  const auto rule = std::make_shared<core::ad::Rule>();
  rule->name = map.name;
  rule->what = std::string("distributed::") + map.name;
  rule->ordered = true;
  rule->primal = [=](const Datums& in) { return Datums{map.value(at(in[0]), in[1], in[2], in[3])}; };
  rule->forward = [=](const Datums& in) -> core::ad::Rule::Split {
    return {{again(at(in[0]), in[1], in[2], in[3])}, {in[0], in[1], in[2]}};
  };
  rule->backward = [=](const Datums& kept, const Datums& g) {
    return Datums{map.transpose(at(kept[0]), kept[1], kept[2], g[0])};
  };
  rule->tangent = [=](const Datums& in, const Datums& t) -> core::ad::Rule::Split {
    return {{again(at(in[0]), in[1], in[2], in[3])}, {again(at(in[0]), in[1], in[2], t[0])}};
  };
  return core::ad::call_with_rule(rule, {call.comm, a, b, x}, call.loc)[0];
}

}  // namespace lantern::distributed::detail
