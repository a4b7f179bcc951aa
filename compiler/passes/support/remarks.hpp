// Optimisation remarks: what a pass says about a place in the user's program. `lanternc --explain` prints them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "lantern/ir/graph.hpp"

namespace lantern::passes {

struct Remark {
  std::string_view pass;
  ir::Location loc;
  std::string text;
};

/// Collects the remarks of all passes that run in this thread, for as long as it lives.
class Remarks {
 public:
  Remarks();
  Remarks(const Remarks&) = delete;
  Remarks& operator=(const Remarks&) = delete;
  ~Remarks();

  /// In order; what was said again of the same place is once.
  const std::vector<Remark>& all() const { return all_; }
  void add(Remark remark);

 private:
  std::vector<Remark> all_;
  Remarks* outer_;
};

/// Nothing where nothing collects. A remark is one clause in lower case: "runs in 8 lanes".
void remark(std::string_view pass, const ir::Location& loc, const std::string& text);

}  // namespace lantern::passes
