// Programs over a Rep<Array<double>> with native control flow, each with what it must compute.
#pragma once

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "lantern/lantern.hpp"

namespace staged_cases {

struct Case {
  std::string name;
  std::function<lantern::Rep<double>(lantern::Rep<lantern::Array<double>>)> program;
  std::function<double(const std::vector<double>&)> expected;
};
std::vector<Case>& cases();

template <class F, class E>
void add(const char* name, F program, E expected) {
  cases().push_back({name, program, expected});
}

void add_array_cases();
/// A tree folded by a function that calls itself: 2 + 5 / 2 + 2 (1 + 2 * 4).
double tree_by_recursion();

}  // namespace staged_cases
