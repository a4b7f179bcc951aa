// Greedy colourings of sparse matrices.
#include "lantern/compiler/ad/pattern.hpp"

#include <algorithm>
#include <numeric>
#include <span>

namespace lantern::core::ad {

namespace {

using Indices = std::vector<std::int64_t>;

std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }
std::span<const std::int64_t> row(const Pattern& p, std::int64_t i) {
  return std::span(p.column).subspan(at(p.row_start[at(i)]), at(p.row_start[at(i + 1)] - p.row_start[at(i)]));
}

/// The rows by falling number of entries.
Indices by_degree(const Pattern& p) {
  Indices order(at(p.rows));
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(
      order, [&](std::int64_t a, std::int64_t b) { return row(p, a).size() > row(p, b).size(); });
  return order;
}

/// The colours seen around the current vertex.
class Forbidden {
 public:
  explicit Forbidden(std::size_t n) : by_(n + 1, -1) {}
  void add(std::int64_t colour, std::int64_t vertex) {
    if (colour >= 0) by_[at(colour)] = vertex;
  }
  std::int64_t least_free(std::int64_t vertex) const {
    std::int64_t c = 0;
    while (by_[at(c)] == vertex) ++c;
    return c;
  }

 private:
  Indices by_;
};

std::int64_t count(const Indices& colour) {
  return colour.empty() ? 0 : 1 + *std::ranges::max_element(colour);
}

/// Colours for the rows of `p` such that no column has entries in two rows of a colour; `q` is p transposed.
/// Columns that are left out do not count, and rows without an entry in another column have no colour.
Indices colour_rows(const Pattern& p, const Pattern& q, const std::vector<bool>& left_out) {
  Indices colour(at(p.rows), -1);
  Forbidden forbidden(colour.size());
  for (std::int64_t r : by_degree(p)) {
    bool needed = false;
    for (std::int64_t c : row(p, r)) {
      if (left_out[at(c)]) continue;
      needed = true;
      for (std::int64_t other : row(q, c)) forbidden.add(colour[at(other)], r);
    }
    if (needed) colour[at(r)] = forbidden.least_free(r);
  }
  return colour;
}

/// The entries of one matrix by pass: which pass says entry k, and by which element of its product.
struct Recovery {
  Indices pass, element;
  explicit Recovery(std::size_t entries) : pass(entries, 0), element(entries, 0) {}

  void write(Colouring& c) const {
    c.pass_start.assign(at(c.forward + c.reverse + 1), 0);
    for (std::int64_t p : pass) ++c.pass_start[at(p + 1)];
    std::partial_sum(c.pass_start.begin(), c.pass_start.end(), c.pass_start.begin());
    c.entry.resize(pass.size());
    c.element.resize(pass.size());
    Indices next = c.pass_start;
    for (std::size_t k = 0; k < pass.size(); ++k) {
      const std::size_t to = at(next[at(pass[k])]++);
      c.entry[to] = static_cast<std::int64_t>(k);
      c.element[to] = element[k];
    }
  }
};

}  // namespace

Pattern Pattern::transposed() const {
  Pattern t{columns, rows, Indices(at(columns + 1), 0), Indices(column.size())};
  for (std::int64_t c : column) ++t.row_start[at(c + 1)];
  std::partial_sum(t.row_start.begin(), t.row_start.end(), t.row_start.begin());
  Indices next = t.row_start;
  for (std::int64_t r = 0; r < rows; ++r)
    for (std::int64_t c : row(*this, r)) t.column[at(next[at(c)]++)] = r;
  return t;
}

Pattern Pattern::merged(const Pattern& other) const {
  Pattern both{rows, columns, {0}, {}};
  for (std::int64_t r = 0; r < rows; ++r) {
    const auto a = row(*this, r), b = row(other, r);
    std::ranges::set_union(a, b, std::back_inserter(both.column));
    both.row_start.push_back(static_cast<std::int64_t>(both.column.size()));
  }
  return both;
}

namespace {

/// The first k rows of `order` by reverse passes, the others by forward ones.
Colouring with_dense_rows(const Pattern& pattern, const Pattern& by_column, const Indices& order, std::size_t k) {
  std::vector<bool> reverse(at(pattern.rows), false);
  Pattern dense{static_cast<std::int64_t>(k), pattern.columns, {0}, {}};
  for (std::size_t i = 0; i < k; ++i) {
    reverse[at(order[i])] = true;
    std::ranges::copy(row(pattern, order[i]), std::back_inserter(dense.column));
    dense.row_start.push_back(static_cast<std::int64_t>(dense.column.size()));
  }
  Colouring c;
  c.column_colour = colour_rows(by_column, pattern, reverse);
  c.row_colour.assign(at(pattern.rows), -1);
  const Indices of_dense =
      colour_rows(dense, dense.transposed(), std::vector<bool>(at(pattern.columns), false));
  for (std::size_t i = 0; i < k; ++i) c.row_colour[at(order[i])] = of_dense[i];
  c.forward = count(c.column_colour);
  c.reverse = count(c.row_colour);
  return c;
}

// A reverse pass costs half as much again as a forward one.
std::size_t cost(const Colouring& c) { return static_cast<std::size_t>(2 * c.forward + 3 * c.reverse); }

/// How many of the longest rows reverse passes take: none, one, two, four, ..., all. As many forward passes as the
/// longest row that is left has entries are needed at least.
Colouring cheapest(const Pattern& pattern) {
  const Pattern by_column = pattern.transposed();
  const Indices order = by_degree(pattern);
  std::vector<std::size_t> candidates{0};
  for (std::size_t k = 1; k < order.size(); k *= 2) candidates.push_back(k);
  if (!order.empty()) candidates.push_back(order.size());
  const auto least = [&](std::size_t k) {
    return 2 * (k == order.size() ? 0 : row(pattern, order[k]).size()) + (k > 0 ? 3 : 0);
  };
  std::ranges::stable_sort(candidates, {}, least);
  Colouring best = with_dense_rows(pattern, by_column, order, candidates[0]);
  for (std::size_t k : std::span(candidates).subspan(1)) {
    if (least(k) >= cost(best)) continue;
    Colouring c = with_dense_rows(pattern, by_column, order, k);
    if (cost(c) < cost(best)) best = std::move(c);
  }
  return best;
}

}  // namespace

Colouring colour_jacobian(const Pattern& pattern) {
  Colouring best = cheapest(pattern);
  Recovery recovery(pattern.column.size());
  std::size_t k = 0;
  for (std::int64_t r = 0; r < pattern.rows; ++r)
    for (std::int64_t c : row(pattern, r)) {
      const std::int64_t colour = best.row_colour[at(r)];
      recovery.pass[k] = colour >= 0 ? best.forward + colour : best.column_colour[at(c)];
      recovery.element[k++] = colour >= 0 ? c : r;
    }
  recovery.write(best);
  return best;
}

Colouring colour_hessian(const Pattern& pattern) {
  Colouring result;
  Indices& colour = result.column_colour;
  colour.assign(at(pattern.rows), -1);
  result.row_colour.assign(at(pattern.rows), -1);
  Forbidden forbidden(colour.size());
  Indices neighbours(colour.size() + 1, 0);  // of the current vertex, by colour
  for (std::int64_t v : by_degree(pattern)) {
    if (row(pattern, v).empty()) continue;
    const auto add_neighbours = [&](std::int64_t by) {
      for (std::int64_t w : row(pattern, v))
        if (w != v && colour[at(w)] >= 0) neighbours[at(colour[at(w)])] += by;
    };
    add_neighbours(1);
    for (std::int64_t w : row(pattern, v)) {
      if (w == v) continue;
      const std::int64_t middle = colour[at(w)];
      forbidden.add(middle, v);
      for (std::int64_t x : row(pattern, w)) {
        if (x == w || x == v || colour[at(x)] < 0) continue;
        // v - w - x may have one colour at its ends only where no neighbour of v or of x but w has w's
        // colour.
        const bool longer = middle < 0 || neighbours[at(middle)] > 1 ||
                            std::ranges::any_of(row(pattern, x), [&](std::int64_t y) {
                              return y != w && y != x && colour[at(y)] == middle;
                            });
        if (longer) forbidden.add(colour[at(x)], v);
      }
    }
    add_neighbours(-1);
    colour[at(v)] = forbidden.least_free(v);
  }
  result.forward = count(colour);

  // Entry (i, j) is element i of the product of j's colour where no other column of row i has that colour;
  // else it is element j of the product of i's colour.
  Recovery recovery(pattern.column.size());
  Indices seen(at(result.forward), 0);
  std::size_t k = 0;
  for (std::int64_t i = 0; i < pattern.rows; ++i) {
    for (std::int64_t j : row(pattern, i)) ++seen[at(colour[at(j)])];
    for (std::int64_t j : row(pattern, i)) {
      const bool alone = seen[at(colour[at(j)])] == 1;
      recovery.pass[k] = colour[at(alone ? j : i)];
      recovery.element[k++] = alone ? i : j;
    }
    for (std::int64_t j : row(pattern, i)) --seen[at(colour[at(j)])];
  }
  recovery.write(result);
  return result;
}

}  // namespace lantern::core::ad
