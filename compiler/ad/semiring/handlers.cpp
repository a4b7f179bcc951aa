// Reverse mode with effect handlers (de Vilhena and Pottier, Fig. 9).
//
// The paper's effects are declared afresh by each call of diff. Here they are the same types for all, which
// is right because handlers nest like the calls: what an expression performs goes to the innermost handler,
// its own; what a clause performs, working in the semiring outside, goes to the next one.
#include "lantern/compiler/ad/semiring/diff.hpp"
#include "lantern/compiler/ad/semiring/vertex.hpp"
#include "lantern/compiler/control/control.hpp"

namespace lantern::core::semiring {

namespace {

struct Add : Effect<Vertex(Vertex, Vertex)> {};
struct Mul : Effect<Vertex(Vertex, Vertex)> {};

}  // namespace

Expression diff_by_handlers(const Expression& e) {
  return Expression([e](const Dictionary<Number>& r, const Number& n) {
    const Vertices graph(r);
    const Dictionary<Vertex> vertices{
        .zero = Zero{},
        .one = One{},
        .add = [](const Vertex& a, const Vertex& b) { return perform<Add>(a, b); },
        .mul = [](const Vertex& a, const Vertex& b) { return perform<Mul>(a, b); },
    };
    const Vertex x = graph.make(n);

    // The forward and backward phases.
    handle([&] { return e.eval(vertices, x); }, on<Add>([&](const Vertex& a, const Vertex& b, auto k) {
             const Vertex u = graph.make(graph.value(a) + graph.value(b));
             k(u);
             graph.update(a, graph.derivative(u));
             graph.update(b, graph.derivative(u));
           }),
           on<Mul>([&](const Vertex& a, const Vertex& b, auto k) {
             const Vertex u = graph.make(graph.value(a) * graph.value(b));
             k(u);
             graph.update(a, graph.derivative(u) * graph.value(b));
             graph.update(b, graph.derivative(u) * graph.value(a));
           }),
           returning([&](const Vertex& y) { graph.update(y, r.one); }));
    return graph.derivative(x);
  });
}

}  // namespace lantern::core::semiring
