// The innermost collector gets them.
#include "lantern/compiler/passes/support/remarks.hpp"

#include <algorithm>
#include <utility>

namespace lantern::passes {

namespace {
thread_local Remarks* collecting = nullptr;
}

Remarks::Remarks() : outer_(std::exchange(collecting, this)) {}
Remarks::~Remarks() { collecting = outer_; }

void Remarks::add(Remark remark) {
  const bool known = std::ranges::any_of(all_, [&](const Remark& r) {
    return r.pass == remark.pass && r.text == remark.text && r.loc.str() == remark.loc.str();
  });
  if (!known) all_.push_back(std::move(remark));
}

void remark(std::string_view pass, const ir::Location& loc, const std::string& text) {
  if (collecting != nullptr) collecting->add({pass, loc, text});
}

}  // namespace lantern::passes
