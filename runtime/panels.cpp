#include "lantern/runtime/panels.hpp"

#include <algorithm>
#include <cstdlib>

namespace lantern {

Panels::Panels(std::vector<std::span<const std::byte>> constants) : panels_{} {
  std::ranges::sort(constants, {}, [](const auto& piece) { return piece.data(); });
  for (const auto& piece : constants) {
    begin_.push_back(reinterpret_cast<const char*>(piece.data()));
    end_.push_back(begin_.back() + piece.size());
  }
  panels_.ranges = static_cast<std::int64_t>(begin_.size());
  panels_.begin = begin_.data();
  panels_.end = end_.data();
}

Panels::~Panels() {
  for (std::int64_t i = 0; i < panels_.count; ++i) std::free(panels_.packed[i].memory);
  std::free(panels_.packed);
}

}  // namespace lantern
