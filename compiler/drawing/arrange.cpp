// A layered drawing (Sugiyama, Tagawa, Toda 1981): levels from the last use upwards, then an order within
// each row that keeps edges short.
#include "lantern/compiler/drawing/arrange.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace lantern::ir {

namespace {

/// More statements than this are folded into groups of at most `group`.
constexpr std::ptrdiff_t most_statements = 90;
constexpr std::size_t group = 50, least_group = 8;
/// A value that more items use goes without edges: they name it.
constexpr std::size_t most_uses = 3;
/// No edge crosses more rows.
constexpr std::size_t longest_edge = 6;

using ItemKind = DrawnItem::Kind;

bool in_the_middle(const DrawnItem& item) { return item.kind != ItemKind::parameter && item.kind != ItemKind::result; }

/// Which statements belong together: those of one part of the derivative, and not too many.
std::vector<std::size_t> group_starts(const std::vector<DrawnStatement>& all) {
  std::vector<std::size_t> starts;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const bool first = starts.empty() || !in_the_middle(all[i].item) || !in_the_middle(all[i - 1].item);
    if (first || i - starts.back() >= group ||
        (i - starts.back() >= least_group && all[i].item.loc.part != all[i - 1].item.loc.part))
      starts.push_back(i);
  }
  return starts;
}

std::string lines(const std::vector<DrawnStatement>& all, std::size_t begin, std::size_t end) {
  std::uint32_t first = std::numeric_limits<std::uint32_t>::max(), last = 0;
  for (std::size_t i = begin; i < end; ++i) {
    const Location& loc = all[i].item.loc;
    if (!loc.known() || loc.file != all[begin].item.loc.file) continue;
    first = std::min(first, loc.line);
    last = std::max(last, loc.line);
  }
  if (last == 0) return std::to_string(end - begin) + " statements";
  return first == last ? "line " + std::to_string(first)
                       : "lines " + std::to_string(first) + " to " + std::to_string(last);
}

/// Runs of statements become items with a block.
std::vector<DrawnStatement> grouped(std::vector<DrawnStatement> all, std::size_t row) {
  std::vector<std::size_t> starts = group_starts(all);
  std::vector<std::size_t> group_of(all.size());
  std::vector<DrawnStatement> outer;
  for (std::size_t g = 0; g < starts.size(); ++g) {
    const std::size_t begin = starts[g], end = g + 1 < starts.size() ? starts[g + 1] : all.size();
    DrawnStatement one;
    one.item.kind = ItemKind::group;
    one.item.text = lines(all, begin, end);
    one.item.loc = all[begin].item.loc;
    std::vector<DrawnStatement> inner;
    for (std::size_t i = begin; i < end; ++i) {
      group_of[i] = g;
      if (all[i].item.loc.part != one.item.loc.part) one.item.loc.part = Part::plain;
      one.item.operations += all[i].item.operations;
      DrawnStatement& s = inner.emplace_back();
      for (const std::size_t n : all[i].needs) {
        if (n >= begin)
          s.needs.push_back(n - begin);
        else
          one.needs.push_back(group_of[n]);
      }
      s.item = std::move(all[i].item);
    }
    std::ranges::sort(one.needs);
    one.needs.erase(std::ranges::unique(one.needs).begin(), one.needs.end());
    if (inner.size() == 1)
      one.item = std::move(inner.front().item);
    else
      one.item.blocks.push_back(arranged("", std::move(inner), row));
    outer.push_back(std::move(one));
  }
  return outer;
}

class Rows {
 public:
  Rows(DrawnBlock& block, const std::vector<std::vector<std::size_t>>& needs, std::size_t width)
      : block_(block),
        needs_(needs),
        width_(width),
        users_(needs.size()),
        row_of_(needs.size()),
        x_(needs.size()) {
    for (std::size_t i = 0; i < needs.size(); ++i)
      for (const std::size_t n : needs[i]) users_[n].push_back(i);
  }

  void run() {
    line_up(ItemKind::parameter);
    place_middle();
    line_up(ItemKind::result);
    for (std::size_t r = 0; r < block_.rows.size(); ++r)
      for (const std::size_t i : block_.rows[r]) row_of_[i] = r;
    draw_edges();
    for (int sweep = 0; sweep < 2; ++sweep) {
      for (std::size_t r = 1; r < block_.rows.size(); ++r) order(r, true);
      for (std::size_t r = block_.rows.size(); r-- > 0;) order(r, false);
    }
    for (int sweep = 0; sweep < 4; ++sweep) {
      for (std::size_t r = 0; r < block_.rows.size(); ++r) straighten(block_.rows[r]);
      for (std::size_t r = block_.rows.size(); r-- > 0;) straighten(block_.rows[r]);
    }
    write_places();
  }

 private:
  void line_up(ItemKind kind) {
    std::size_t used = width_;
    for (std::size_t i = 0; i < block_.items.size(); ++i) {
      if (block_.items[i].kind != kind) continue;
      if (used + room(i) > width_) {
        block_.rows.emplace_back();
        used = 0;
      }
      used += room(i);
      block_.rows.back().push_back(i);
    }
  }

  /// From the last item to the first, directly above the items that use it; a box has a row for itself, and
  /// so keeps the order of the text with what comes after it.
  void place_middle() {
    std::vector<std::vector<std::size_t>> rows;  // from below
    std::vector<std::size_t> used, level(block_.items.size(), 0);
    std::size_t effects = 0;
    for (std::size_t i = block_.items.size(); i-- > 0;) {
      const DrawnItem& item = block_.items[i];
      if (!in_the_middle(item)) continue;
      std::size_t at = item.is_box() ? rows.size() : 0;
      for (const std::size_t u : users_[i])
        if (in_the_middle(block_.items[u])) at = std::max(at, level[u] + 1);
      const bool ordered = item.kind == ItemKind::effect || item.kind == ItemKind::call;
      if (ordered) at = std::max(at, effects);
      while (at < rows.size() && used[at] + room(i) > width_) ++at;
      if (at >= rows.size()) {
        rows.resize(at + 1);
        used.resize(at + 1, 0);
      }
      rows[at].push_back(i);
      used[at] += item.is_box() ? width_ : room(i);
      level[i] = at;
      if (ordered || item.is_box()) effects = at;
    }
    for (std::size_t r = rows.size(); r-- > 0;) {
      if (rows[r].empty()) continue;
      std::ranges::reverse(rows[r]);
      block_.rows.push_back(std::move(rows[r]));
    }
  }

  void draw_edges() {
    for (std::size_t i = 0; i < users_.size(); ++i) {
      if (users_[i].size() > most_uses) continue;
      for (const std::size_t u : users_[i])
        if (row_of_[u] > row_of_[i] && row_of_[u] - row_of_[i] <= longest_edge)
          block_.edges.emplace_back(i, u);
    }
    above_.resize(users_.size());
    below_.resize(users_.size());
    for (const auto& [from, to] : block_.edges) {
      above_[to].push_back(from);
      below_[from].push_back(to);
    }
  }

  /// The row by where the neighbours of its items are.
  void order(std::size_t r, bool from_above) {
    std::vector<std::size_t>& row = block_.rows[r];
    place(row);
    if (row.size() < 2) return;
    std::vector<std::pair<double, std::size_t>> by;
    for (const std::size_t i : row) {
      const auto& neighbours = from_above ? above_[i] : below_[i];
      double sum = 0;
      for (const std::size_t n : neighbours) sum += x_[n];
      by.emplace_back(neighbours.empty() ? x_[i] : sum / static_cast<double>(neighbours.size()), i);
    }
    std::ranges::stable_sort(by, {}, &std::pair<double, std::size_t>::first);
    for (std::size_t k = 0; k < row.size(); ++k) row[k] = by[k].second;
    place(row);
  }

  /// Rows are centred.
  void place(const std::vector<std::size_t>& row) {
    double all = 0;
    for (const std::size_t i : row) all += static_cast<double>(room(i));
    double x = -all / 2;
    for (const std::size_t i : row) {
      const auto w = static_cast<double>(room(i));
      x_[i] = x + w / 2;
      x += w;
    }
  }

  /// Every item as near to its neighbours as the others of its row allow: the least squares in a given order,
  /// by pooling those that would overlap (pool adjacent violators).
  void straighten(const std::vector<std::size_t>& row) {
    struct Pool {
      double sum, weight;
      std::size_t items;
    };
    std::vector<Pool> pools;
    std::vector<double> offset(row.size(), 0);  // of an item's middle where the row begins at 0
    double x = 0;
    for (std::size_t k = 0; k < row.size(); ++k) {
      const std::size_t i = row[k];
      const auto w = static_cast<double>(room(i));
      offset[k] = x + w / 2;
      x += w;
      double sum = x_[i] * 0.1, weight = 0.1;
      for (const auto* neighbours : {&above_[i], &below_[i]})
        for (const std::size_t n : *neighbours) {
          sum += x_[n];
          weight += 1;
        }
      pools.push_back({sum - weight * offset[k], weight, 1});
      while (pools.size() > 1) {
        const Pool last = pools.back();
        Pool& before = pools[pools.size() - 2];
        if (before.sum / before.weight <= last.sum / last.weight) break;
        before = {before.sum + last.sum, before.weight + last.weight, before.items + last.items};
        pools.pop_back();
      }
    }
    std::size_t k = 0;
    for (const Pool& pool : pools)
      for (std::size_t n = 0; n < pool.items; ++n, ++k) x_[row[k]] = pool.sum / pool.weight + offset[k];
  }

  void write_places() {
    const auto left = [&](std::size_t i) { return x_[i] - static_cast<double>(room(i)) / 2; };
    double least = std::numeric_limits<double>::max();
    for (std::size_t i = 0; i < x_.size(); ++i)
      if (!block_.items[i].is_box()) least = std::min(least, left(i));
    for (std::size_t i = 0; i < x_.size(); ++i)
      block_.items[i].left = block_.items[i].is_box() ? 0 : std::round(2 * (left(i) - least)) / 2;
  }

  /// With a gap to the next item.
  std::size_t room(std::size_t i) const { return block_.items[i].width() + 2; }

  DrawnBlock& block_;
  const std::vector<std::vector<std::size_t>>& needs_;
  std::size_t width_;
  std::vector<std::vector<std::size_t>> users_, above_, below_;
  std::vector<std::size_t> row_of_;
  std::vector<double> x_;  ///< the middle of each item
};

}  // namespace

std::size_t DrawnItem::width() const {
  const auto continues = [](char c) { return (static_cast<unsigned char>(c) & 0xc0) == 0x80; };
  const auto characters = text.size() - static_cast<std::size_t>(std::ranges::count_if(text, continues));
  return characters + 3 + (loc.known() && !is_box() ? std::to_string(loc.line).size() + 1 : 0);
}

DrawnBlock arranged(std::string title, std::vector<DrawnStatement> statements, std::size_t row) {
  const auto middle = [&] {
    return std::ranges::count_if(statements, [](const DrawnStatement& s) { return in_the_middle(s.item); });
  };
  while (middle() > most_statements) statements = grouped(std::move(statements), row);
  DrawnBlock block;
  block.title = std::move(title);
  std::vector<std::vector<std::size_t>> needs;
  for (DrawnStatement& s : statements) {
    block.items.push_back(std::move(s.item));
    needs.push_back(std::move(s.needs));
  }
  Rows(block, needs, row).run();
  return block;
}

}  // namespace lantern::ir
