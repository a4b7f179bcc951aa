#include "lantern/compiler/tensor/scan.hpp"

namespace lantern::core::detail {

Datums rows_like(const Build& b, const Datum& n, const Datums& outputs) {
  Datums all;
  for (const Datum& y : outputs) {
    Indices sizes = {n};
    if (y.type().is_tensor())
      for (const Datum& size : b.sizes(y)) sizes.push_back(size);
    all.push_back(b.fill(Datum::zero(ir::Type(y.type().element())), sizes));
  }
  return all;
}

Datums with_rows(const Build& b, const Datums& rows, const Datum& i, const Datums& outputs) {
  Datums all;
  for (std::size_t k = 0; k < rows.size(); ++k) {
    const Datum& y = outputs[k];
    if (!y.type().is_tensor()) {
      all.push_back(b.set(rows[k], {i}, y));
      continue;
    }
    all.push_back(b.points(b.sizes(y), {rows[k]}, [&](const Indices& at, const Datums& now) {
      Indices to = at;
      to.insert(to.begin(), i);
      return Datums{b.set(now[0], to, b.get(y, at))};
    })[0]);
  }
  return all;
}

}  // namespace lantern::core::detail
