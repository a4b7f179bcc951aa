// Forward mode (de Vilhena and Pottier, Fig. 4).
#include "lantern/compiler/ad/semiring/diff.hpp"

namespace lantern::core::semiring {

Expression diff_by_dual_numbers(const Expression& e) {
  return Expression([e](const Dictionary<Number>& r, const Number& n) {
    struct Dual {
      Number v, d;
    };
    const Dictionary<Dual> duals{
        .zero = {r.zero, r.zero},
        .one = {r.one, r.zero},
        .add =
            [](const Dual& a, const Dual& b) {
              return Dual{a.v + b.v, a.d + b.d};
            },
        .mul =
            [](const Dual& a, const Dual& b) {
              return Dual{a.v * b.v, a.d * b.v + a.v * b.d};
            },
    };
    return e.eval(duals, {n, r.one}).d;
  });
}

}  // namespace lantern::core::semiring
