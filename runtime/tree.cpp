// One element of a column is as many bytes as the column holds for each node.
#include "lantern/runtime/tree.hpp"

namespace lantern::core {

std::shared_ptr<TreeColumns> TreeColumns::with(std::size_t components) {
  auto columns = std::make_shared<TreeColumns>();
  columns->values.resize(components);
  return columns;
}

std::int64_t TreeColumns::append(std::span<const std::span<const std::byte>> components, std::int64_t l, std::int64_t r) {
  left.push_back(l);
  right.push_back(r);
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i].insert(values[i].end(), components[i].begin(), components[i].end());
  return static_cast<std::int64_t>(left.size()) - 1;
}

/// With a stack of its own: a tree may be as deep as it has nodes.
std::int64_t TreeColumns::append(const TreeColumns& from, std::int64_t root) {
  struct Open {
    std::int64_t node;
    std::int64_t done[2];  ///< the copies of its children
    int next;              ///< the child whose turn it is
  };
  std::vector<Open> open{{root, {}, 0}};
  std::vector<std::span<const std::byte>> components(values.size());
  std::int64_t copied = -1;
  while (!open.empty()) {
    const Open at = open.back();
    const auto n = static_cast<std::size_t>(at.node);
    if (at.node >= 0 && at.next < 2) {
      open.push_back({at.next == 0 ? from.left[n] : from.right[n], {}, 0});
      continue;
    }
    copied = -1;
    if (at.node >= 0) {
      for (std::size_t i = 0; i < values.size(); ++i) {
        const std::size_t size = from.values[i].size() / from.left.size();
        components[i] = {from.values[i].data() + n * size, size};
      }
      copied = append(components, at.done[0], at.done[1]);
    }
    open.pop_back();
    if (!open.empty()) open.back().done[open.back().next++] = copied;
  }
  return copied;
}

}  // namespace lantern::core
