// A launch of a kernel while it is printed.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "lantern/codegen/statement_printer.hpp"

namespace lantern::codegen {

/// The two sides of a launch.
struct StatementPrinter::Launch {
  struct Level {
    Expression first, count;  ///< of one loop of the nest, in the kernel
    std::string index;
  };
  struct Reduction {
    std::size_t state;
    std::string start, first;  ///< its first value, on the host and in the kernel
    std::string name, parts, result;
  };
  struct Sum {
    std::size_t state;
    std::string tensor, parts;  ///< names on the host
    bool from_zeros;            ///< which nothing has written
    std::string finite;         ///< on the host, whether what is added to is; where that is looked at
  };
  /// What is passed to the kernel.
  struct Parameter {
    std::string type, name, argument;
    std::string captured;  ///< the name that it belongs to, of a value from around
    Statements first;      ///< at the start of the kernel
  };
  std::string name;
  std::vector<Parameter> parameters;
  std::vector<Parameter> tables;    ///< of what members differ in (member_statements.cpp)
  bool checked = false;             ///< the host has checked all indices of what is printed
  std::size_t checked_members = 0;  ///< the same of the first loops that were joined
  std::string all;                  ///< how many iterations the nest has, on the host
  std::string count, shares;        ///< their number, and of blocks, in the kernel and on the host
  std::string iteration;            ///< which one, in the kernel
  std::vector<Level> levels;
  std::vector<Reduction> reductions;
  std::vector<Sum> sums;
  const Value* key = nullptr;  ///< where all sums of an iteration go to
  std::string by_key;          ///< whether blocks own keys, in the kernel and on the host
  std::unordered_map<const Value*, Binding> bindings;  ///< of what is captured
  std::size_t start = 0;  ///< where an iteration begins in the text of the kernel

  void pass(const std::string& type, const std::string& parameter, const std::string& argument,
            Statements first = {}, const std::string& captured = {}) {
    parameters.push_back({type, parameter, argument, captured, std::move(first)});
  }
  /// The parameter that a value from around is, by the name that it has in the kernel; null for other names.
  const Parameter* captured(std::string_view known) const {
    const auto found = std::ranges::find_if(
        parameters, [&](const Parameter& p) { return p.name == known && p.captured == known; });
    return found == parameters.end() ? nullptr : &*found;
  }
};

}  // namespace lantern::codegen
