// Reverse mode with a stack (de Vilhena and Pottier, Fig. 5).
#include <vector>

#include "lantern/compiler/ad/semiring/diff.hpp"
#include "lantern/compiler/ad/semiring/vertex.hpp"

namespace lantern::core::semiring {

Expression diff_by_stack(const Expression& e) {
  return Expression([e](const Dictionary<Number>& r, const Number& n) {
    const Vertices graph(r);
    // let u = a op b
    struct Binding {
      Vertex u, a;
      enum { add, mul } op;
      Vertex b;
    };
    std::vector<Binding> stack;

    // The forward phase.
    const Dictionary<Vertex> vertices{
        .zero = Zero{},
        .one = One{},
        .add =
            [&](const Vertex& a, const Vertex& b) {
              Vertex u = graph.make(graph.value(a) + graph.value(b));
              stack.push_back({u, a, Binding::add, b});
              return u;
            },
        .mul =
            [&](const Vertex& a, const Vertex& b) {
              Vertex u = graph.make(graph.value(a) * graph.value(b));
              stack.push_back({u, a, Binding::mul, b});
              return u;
            },
    };
    const Vertex x = graph.make(n);
    const Vertex y = e.eval(vertices, x);

    // The backward phase.
    graph.update(y, r.one);
    for (; !stack.empty(); stack.pop_back()) {
      const auto& [u, a, op, b] = stack.back();
      const Number d = graph.derivative(u);
      if (op == Binding::add) {
        graph.update(a, d);
        graph.update(b, d);
      } else {
        graph.update(a, d * graph.value(b));
        graph.update(b, d * graph.value(a));
      }
    }
    return graph.derivative(x);
  });
}

}  // namespace lantern::core::semiring
