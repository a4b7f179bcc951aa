// The order of Cuthill and McKee.
#include "lantern/compiler/solvers/band_order.hpp"

#include <algorithm>

namespace lantern::solvers::detail {

KktSparsity in_band_order(core::Sparsity s) {
  const auto n = static_cast<std::size_t>(s.rows);
  const auto neighbours = [&](std::size_t i) {
    const auto at = [&](std::size_t k) { return s.column.begin() + s.row_start[k]; };
    return std::vector<std::int64_t>(at(i), at(i + 1));
  };
  const auto degree = [&](std::size_t i) { return s.row_start[i + 1] - s.row_start[i]; };
  std::vector<bool> met(n);
  std::vector<std::size_t> order;
  /// Appends all that are connected with `start`, level by level.
  const auto search = [&](std::size_t start, std::vector<bool>& seen, std::vector<std::size_t>& found) {
    std::size_t next = found.size();
    seen[start] = true, found.push_back(start);
    for (; next < found.size(); ++next) {
      std::vector<std::size_t> level;
      for (const std::int64_t j : neighbours(found[next]))
        if (!seen[static_cast<std::size_t>(j)])
          seen[static_cast<std::size_t>(j)] = true, level.push_back(static_cast<std::size_t>(j));
      std::stable_sort(level.begin(), level.end(),
                       [&](std::size_t a, std::size_t b) { return degree(a) < degree(b); });
      found.insert(found.end(), level.begin(), level.end());
    }
  };
  for (std::size_t i = 0; i < n; ++i) {
    if (met[i]) continue;
    std::size_t end = i;
    for (int sweep = 0; sweep < 3; ++sweep) {  // the unknown met last lies at an end
      std::vector<bool> seen = met;
      std::vector<std::size_t> found;
      search(end, seen, found);
      end = found.back();
    }
    search(end, met, order);
  }
  KktSparsity out{std::move(s), std::vector<std::int64_t>(n), 0};
  for (std::size_t k = 0; k < n; ++k) out.place[order[n - 1 - k]] = static_cast<std::int64_t>(k);
  for (std::size_t i = 0; i < n; ++i)
    for (std::int64_t e = out.hessian.row_start[i]; e < out.hessian.row_start[i + 1]; ++e)
      out.band = std::max(
          out.band,
          std::abs(out.place[i] -
                   out.place[static_cast<std::size_t>(out.hessian.column[static_cast<std::size_t>(e)])]));
  return out;
}

}  // namespace lantern::solvers::detail
