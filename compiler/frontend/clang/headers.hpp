// Headers with staged functions, in place of the directives that include them.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "lantern/compiler/frontend/clang/lines.hpp"
#include "lantern/compiler/frontend/clang/parse.hpp"

namespace lantern::frontend {

class HeaderTexts {
 public:
  /// `main`: the file parsed. Complains where a header that must be rewritten is read more than once.
  HeaderTexts(Unit& main, Inclusions& inclusions);

  /// The file with its staged functions rewritten, and the headers that have some in place of their
  /// directives; lines are marked by #line.
  std::string text();
  const std::vector<Copied>& copies() const { return copies_.at(0); }
  /// Of the headers that were put in.
  std::map<std::string, std::vector<Copied>> header_copies() const;

 private:
  Unit& unit(std::size_t file) { return file == 0 ? main_ : inclusions_.files[file - 1]; }
  std::string expanded(std::size_t file);
  void need(std::size_t file);

  Unit& main_;
  Inclusions& inclusions_;
  std::set<std::size_t> needed_;  ///< files that are put in, numbered as in Inclusion::in
  std::set<std::string> needed_paths_;
  std::vector<std::vector<Copied>> copies_;
};

}  // namespace lantern::frontend
