// The transformed terms of Figs. 4, 9, 10, 11 and 13, in the paper's notation, for the paper's running
// examples: 2 * x + x * x * x (Figs. 6 to 8), and the conditional, loop and tree of section 4.
#include "golden.hpp"
#include "lantern/compiler/calculus/calculus.hpp"

using namespace lantern::calculus;
using lantern::test::check_golden;

namespace {

const Term x = variable("x"), t = variable("t");

void check(const std::string& name, const Term& source) {
  std::string text = "source\n\n" + to_string(source) + "\n";
  const auto add = [&](const std::string& figure, const Term& derivative) {
    text += "\n" + figure + "\n\n" + to_string(derivative) + "\n";
  };
  add("Fig. 4: forward mode", forward(source));
  add("Fig. 9: reverse mode, shift and reset in the target language", reverse_by_control(source));
  add("Fig. 10: reverse mode, shift and reset in the meta-language", reverse_by_meta_control(source));
  add("Fig. 11: reverse mode in continuation-passing style", reverse_by_cps(source));
  check_golden("calculus/" + name + ".txt", text);
}

}  // namespace

TEST_CASE("the running example", "[golden]") { check("straight", lambda("x", 2 * x + x * x * x)); }

TEST_CASE("a product, twice", "[golden]") {
  const Term source = lambda("x", x * x), first = reverse_by_control(source);
  check_golden("calculus/second_order.txt",
               "source\n\n" + to_string(source) + "\n\nFig. 9\n\n" + to_string(first) +
                   "\n\nFig. 13: Fig. 9 of that, on the next level of control\n\n" +
                   to_string(reverse_by_control(first)) + "\n");
}

TEST_CASE("a conditional", "[golden]") {
  check("conditional", lambda("x", if_then_else(0 < x, -1 * x * x, x * x)));
}

TEST_CASE("a loop", "[golden]") { check("loop", lambda("x", while_loop("f", "t", 1 < t, t * 0.5, x))); }

TEST_CASE("a tree", "[golden]") {
  check("tree", lambda("x", fold_tree("f", "v", variable("v") * x, "l", "r", variable("l") * variable("r"),
                                      node(leaf(5), leaf(6)))));
}

TEST_CASE("references", "[golden]") {
  check("references",
        lambda("x", let("r", ref(x),
                        sequence(assign(variable("r"), read(variable("r")) * x), read(variable("r"))))));
}
