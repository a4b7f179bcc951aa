// Reverse mode with shift and reset (Lantern paper, Fig. 8), over any semiring.
#include "lantern/compiler/ad/semiring/diff.hpp"
#include "lantern/compiler/ad/semiring/vertex.hpp"
#include "lantern/compiler/control/control.hpp"

namespace lantern::core::semiring {

Expression diff_by_shift(const Expression& e) {
  return Expression([e](const Dictionary<Number>& r, const Number& n) {
    const Vertices graph(r);
    Prompt<void> prompt;
    const Dictionary<Vertex> vertices{
        .zero = Zero{},
        .one = One{},
        .add =
            [&](const Vertex& a, const Vertex& b) {
              return shift<Vertex>(prompt, [&graph, a, b](auto k) {
                const Vertex y = graph.make(graph.value(a) + graph.value(b));
                k(y);
                graph.update(a, graph.derivative(y));
                graph.update(b, graph.derivative(y));
              });
            },
        .mul =
            [&](const Vertex& a, const Vertex& b) {
              return shift<Vertex>(prompt, [&graph, a, b](auto k) {
                const Vertex y = graph.make(graph.value(a) * graph.value(b));
                k(y);
                graph.update(a, graph.derivative(y) * graph.value(b));
                graph.update(b, graph.derivative(y) * graph.value(a));
              });
            },
    };
    const Vertex z = graph.make(n);
    reset(prompt, [&] { graph.update(e.eval(vertices, z), r.one); });
    return graph.derivative(z);
  });
}

}  // namespace lantern::core::semiring
