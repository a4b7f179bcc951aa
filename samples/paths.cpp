// One program, many semirings: paths through a network, and what each link has to do with them.
//
// `routes` adds over all paths the product of the weights of their links, with + and * only. What that means
// is for the semiring to say: how many paths there are, the shortest, the longest, all of them by name. Its
// derivative by a link, by the same reverse mode as ever, is the sum over the paths through that link,
// without its weight.
#include <fmt/core.h>

#include <algorithm>
#include <lantern/compiler/ad/semiring/over.hpp>
#include <lantern/compiler/ad/semiring/semirings.hpp>
#include <lantern/lantern.hpp>
#include <string>
#include <vector>

using namespace lantern;
using namespace lantern::semiring;

namespace {

struct Link {
  std::size_t from, to;
  double length;
};
/// From node 0 to node 5; a link leads to a node of a higher number.
const std::vector<Link> links{{0, 1, 7},  {0, 2, 9}, {0, 4, 14}, {1, 2, 10}, {1, 3, 15},
                              {2, 3, 11}, {2, 4, 2}, {3, 5, 6},  {4, 5, 9}};

Rep<double> routes(const std::vector<Rep<double>>& weights) {
  std::vector<Rep<double>> to(6, 0.0);
  to[0] = 1.0;
  for (std::size_t i = 0; i < links.size(); ++i) to[links[i].to] += to[links[i].from] * weights[i];
  return to[5];
}

/// The paths from a node on, one by one, as lists of links.
void collect(std::size_t node, std::vector<std::size_t>& path, std::vector<std::vector<std::size_t>>& all) {
  if (node == 5) all.push_back(path);
  for (std::size_t i = 0; i < links.size(); ++i) {
    if (links[i].from != node) continue;
    path.push_back(i);
    collect(links[i].to, path, all);
    path.pop_back();
  }
}

}  // namespace

int main() {
  // Every weight is 1: a path counts as one, and a derivative counts those through the link.
  const std::vector<std::uint64_t> ones(links.size(), 1);
  const std::uint64_t count = over(naturals(), &routes)(ones);
  const auto through = over(naturals(), grad(&routes))(ones);

  // Where + is min and * is +, a derivative is the length of the shortest path through the link, without the
  // link's.
  std::vector<double> lengths;
  for (const Link& l : links) lengths.push_back(l.length);
  const double shortest = over(min_plus(), &routes)(lengths), longest = over(max_plus(), &routes)(lengths);
  const auto beside = over(min_plus(), grad(&routes))(lengths);

  // Where nothing is computed: every path by the names of its links.
  std::vector<Polynomial> names;
  for (std::size_t i = 0; i < links.size(); ++i) names.push_back(Polynomial::variable(i));
  const Polynomial by_name = over(polynomials(), &routes)(names);
  const auto by_name_without = over(polynomials(), grad<mode::taped>(&routes))(names);

  fmt::print("{} paths, the shortest of length {}, the longest of {}:\n  {}\n\n", count, shortest, longest,
             by_name.str());
  fmt::print("{:<6} {:>8} {:>14} {:>24}\n", "link", "length", "paths through", "shortest path through it");
  for (std::size_t i = 0; i < links.size(); ++i)
    fmt::print("{} -> {} {:>8} {:>14} {:>24}\n", links[i].from, links[i].to, lengths[i], through[i],
               lengths[i] + beside[i]);

  // The same by looking at each path.
  std::vector<std::vector<std::size_t>> all;
  std::vector<std::size_t> path;
  collect(0, path, all);
  std::vector<std::uint64_t> uses(links.size(), 0);
  std::vector<double> best(links.size(), min_plus().zero);
  double least = min_plus().zero, most = max_plus().zero;
  for (const auto& p : all) {
    double length = 0;
    for (const std::size_t i : p) length += lengths[i];
    least = std::min(least, length);
    most = std::max(most, length);
    for (const std::size_t i : p) {
      ++uses[i];
      best[i] = std::min(best[i], length);
    }
  }
  bool right = count == all.size() && shortest == least && longest == most && through == uses;
  for (std::size_t i = 0; i < links.size(); ++i)
    right &= lengths[i] + beside[i] == best[i] && by_name_without[i] == by_name.derivative(i);
  return right ? 0 : 1;
}
