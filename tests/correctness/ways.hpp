// The ways of differentiating a function of one scalar once: every mode, and the operators beside grad.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "lantern/lantern.hpp"

namespace lantern::test {

using Function = std::function<Rep<double>(Rep<double>)>;

/// A derivative operator and its name.
struct Way {
  std::string name;
  std::function<Function(Function)> grad;
};

template <auto... O>
Way by(const char* name) {
  return {name, [](const Function& f) { return Function(lantern::grad<O...>(f)); }};
}

/// The modes that run staged as well as eagerly; Taylor mode of order 1 among them.
inline const std::vector<Way>& ways_of_modes() {
  static const std::vector<Way> all{
      by<mode::reverse>("reverse"),
      by<mode::forward>("forward"),
      by<mode::cps>("cps"),
      by<mode::global_tape>("global tape"),
      by<mode::functional>("functional"),
      by<mode::continuation>("continuation"),
      by<mode::taped>("taped"),
      by<mode::checkpointed>("checkpointed"),
      by<mode::divide_and_conquer>("divide and conquer"),
      {"taylor",
       [](const Function& f) {
         return Function([t = taylor<1>(f)](Rep<double> x) { return t(x, 1.0)[1]; });
       }},
  };
  return all;
}

/// Modes that run eagerly alone, and the other form of a mode, which staged is no other.
inline const std::vector<Way>& eager_only_ways() {
  static const std::vector<Way> all{
      by<mode::reverse, form::literal>("reverse by shift"),
      by<mode::forward, form::literal>("forward by a handler"),
      by<mode::continuation, form::literal>("continuation for every use"),
      by<mode::taped, form::fast>("fast taped"),
      by<mode::closures>("closures"),
      by<mode::checkpointed_closures>("checkpointed closures"),
  };
  return all;
}

/// Functions as values have no staged form.
inline bool runs_staged(const Way& way) { return !way.name.ends_with("closures"); }

/// All modes.
inline std::vector<Way> eager_ways() {
  std::vector<Way> all = ways_of_modes();
  all.insert(all.end(), eager_only_ways().begin(), eager_only_ways().end());
  return all;
}

/// jvp and vjp, as derivatives.
inline const std::vector<Way>& ways_of_products() {
  static const std::vector<Way> all{
      {"jvp",
       [](const Function& f) {
         return Function([g = jvp(f)](Rep<double> x) { return std::get<1>(g(x, 1.0)); });
       }},
      {"vjp",
       [](const Function& f) {
         return Function([g = vjp(f)](Rep<double> x) { return std::get<1>(g(x, 1.0)); });
       }},
  };
  return all;
}

inline std::vector<Way> with_products(std::vector<Way> ways) {
  ways.insert(ways.end(), ways_of_products().begin(), ways_of_products().end());
  return ways;
}

}  // namespace lantern::test
