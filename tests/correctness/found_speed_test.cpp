// Programs that once ran several times slower than another spelling of the same: what the compiler decides
// for each. Others of this kind stand with the pass that decides: conditional sums, guards, 32-bit and flat
// indices (vectorise_test), indices that wrap around (cut_test), elements that stay final and shapes
// (tape_test), reads between updates (reads_first_test), compilers' options (the goldens of generated
// sources).
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "../occurrences.hpp"
#include "lantern/ir/graph.hpp"
#include "lantern/ir/parse.hpp"
#include "lantern/lantern.hpp"

using namespace lantern;

namespace {

using D = Rep<double>;
using I = Rep<std::int64_t>;
using A = Rep<Array<double>>;
using M = Rep<Tensor<double, dyn, dyn>>;
using V = Rep<Tensor<double, dyn>>;
using V3 = Rep<Tensor<double, 3>>;

using lantern::test::count;

/// What is seen of the compiler's decisions.
struct Decided {
  std::size_t loops = 0;     ///< that work on numbers, not on vectors
  std::size_t in_lanes = 0;  ///< loops with a vector
  int widest = 0;            ///< the most lanes of a vector of f64
  std::size_t copies = 0;    ///< whole tensors that a loop copies or fills in its iterations
  std::size_t arrays = 0;    ///< pushes of arrays to a tape
  std::size_t numbers = 0;   ///< pushes of numbers
  std::size_t apart = 0;     ///< accesses of vectors to elements that do not lie side by side
  std::size_t products = 0;  ///< of matrices, as calls
  std::size_t branches = 0;  ///< in loops
  std::size_t zeros = 0;     ///< that loops add to elements
};

void note(const ir::Block* block, int depth, Decided& d) {
  for (const ir::Op* op : block->ops) {
    const auto is_vector = [](const ir::Value* v) { return v->type.is_vector(); };
    for (const ir::Value* v : op->results)
      if (is_vector(v) && v->type.element() == ir::Kind::f64) d.widest = std::max(d.widest, v->type.lanes());
    const bool whole =
        op->is(ir::Opcode::copy_) || op->is(ir::Opcode::fill_) || op->is(ir::Opcode::zeros_like_);
    const bool memory =
        op->is(ir::Opcode::fill_) && op->operands[0]->def && op->operands[0]->def->is(ir::Opcode::undef_);
    if (depth > 0 && whole && !memory && op->result()->type.is_tensor()) ++d.copies;
    if (op->is(ir::Opcode::push_))
      for (const ir::Value* v : op->operands) ++(v->type.is_tensor() ? d.arrays : d.numbers);
    d.products += op->is(ir::Opcode::matmul_) || op->is(ir::Opcode::add_matmul_) ||
                  op->is(ir::Opcode::gemm_) || ir::is_einsum(op->code);
    d.branches += depth > 0 && op->is(ir::Opcode::branch_);
    const ir::Op* const added = op->is(ir::Opcode::add_at_) ? op->operands.back()->def : nullptr;
    d.zeros += depth > 0 && added && added->is(ir::Opcode::constant_) && added->number == 0;
    const bool loop = op->is(ir::Opcode::loop_);
    if (loop) {
      bool vectors = false;
      for (const ir::Op* inner : op->blocks[1]->ops)
        vectors |= std::ranges::any_of(inner->results, is_vector);
      ++(vectors ? d.in_lanes : d.loops);
    }
    for (const ir::Block* b : op->blocks) note(b, depth + loop, d);
  }
}

template <class F>
Decided decided(F f, CompileOptions options = {}) {
  options.target = Target::cpp;
  if (options.lanes == 0) options.lanes = 4;
  const auto compiled = compile(f, options);
  Decided d;
  const auto module = ir::parse(compiled.source("ir"));
  for (const ir::Function* function : module->functions()) note(function->body, 0, d);
  const std::string text = compiled.source("cpp");
  const std::string code = text.substr(text.rfind("#pragma"));  // the functions stand below it
  for (const char* name : {"strided_f64x", "gather_f64x", "scatter_f64x"}) d.apart += count(code, name);
  return d;
}
/// Without lanes, where a loop stands once.
template <class F>
Decided of_numbers(F f) {
  return decided(f, {.disabled_passes = {"vectorise"}});
}

// ---- the programs

V momentum(V w, V m, V g, D rate) { return w - rate * (0.9 * m + g); }
D rectified(V x) { return sum(max(x, 0.0) * x); }

/// A plate whose edge stays as it is; `f` of an element and of what its neighbours have more than it.
template <class F>
auto plate(F f) {
  return [f](M u, I steps) {
    return FOR(0, steps, u, [&](I, M s) {
      return FOR(1, s.dim(0) - 1, s, [&](I i, M rows) {
        return FOR(1, s.dim(1) - 1, rows, [&](I j, M w) {
          return w.set(i, j,
                       f(s(i, j), s(i - 1, j) + s(i + 1, j) + s(i, j - 1) + s(i, j + 1) - 4.0 * s(i, j)));
        });
      });
    });
  };
}
template <class F>
auto squares_of(F f) {
  return [f](M u, I steps) {
    const M v = f(u, steps);
    return 0.5 * sum(v * v);
  };
}

/// A plate that loses no heat at its edges, its rows one behind the other.
D clamped(A start, I n, I steps) {
  const A last = FOR(0, steps, start, [&](I, A u) {
    A next = fill(D(0.0), n * n);
    FOR(0, n, [&](I i) {
      FOR(0, n, [&](I j) {
        const I above = max(i - 1, 0), below = min(i + 1, n - 1), left = max(j - 1, 0),
                right = min(j + 1, n - 1);
        const D v = u[i * n + j];
        const D spread = u[above * n + j] + u[below * n + j] + u[i * n + left] + u[i * n + right] - 4.0 * v;
        next = next.set(i * n + j, v + 0.1 * spread);
      });
    });
    return next;
  });
  return sum(last * last);
}

/// Two fields in one array. One loop sets the first elements of both; each step divides one field by the other.
D fields(A start, A rate, I n, I steps) {
  A now = fill(D(0.0), 2 * n), next = fill(D(0.0), 2 * n);
  FOR(0, n, [&](I i) {
    now = now.set(i, start[i]);
    now = now.set(n + i, 0.5 + start[i] * start[i]);
  });
  FOR(0, steps, [&](I) {
    FOR(0, n - 1, [&](I i) {
      next = next.set(i, now[i] + rate[i] / now[n + i + 1]);
      next = next.set(n + i, now[n + i] - rate[i] * now[i] / now[n + i]);
    });
    const A last = now;
    now = next;
    next = last;
  });
  return FOR(0, 2 * n, D(0.0), [&](I i, D sum) { return sum + now[i] * now[i]; });
}

/// A chain of states, each a sum over those before.
D chain(A start, M next, I steps) {
  const I n = start.size();
  const A last = FOR(0, steps, start, [&](I, A now) {
    return FOR(0, n, fill(D(0.0), n), [&](I j, A v) {
      const D s = FOR(0, n, D(0.0), [&](I i, D sum) { return sum + now[i] * next(i, j); });
      return v.set(j, sin(s));
    });
  });
  return sum(last * last);
}

D waves(M u, M speed, I steps) {
  const I n = u.dim(0);
  const auto [earlier, last] = FOR(0, steps, std::tuple(u, u), [&](I, M before, M now) {
    const M next = FOR(1, n - 1, fill(D(0.0), n, n), [&](I i, M rows) {
      return FOR(1, n - 1, rows, [&](I j, M w) {
        const D spread = now(i + 1, j) + now(i - 1, j) + now(i, j + 1) + now(i, j - 1) - 4.0 * now(i, j);
        return w.set(i, j, 2.0 * now(i, j) - before(i, j) + speed(i, j) * spread);
      });
    });
    return std::tuple(now, next);
  });
  return sum(last * last);
}

/// Each row by a function of that row.
D rows_of_their_own(M start, M c) {
  const I n = start.dim(0), m = start.dim(1);
  const M last = FOR(0, n, start, [&](I i, M a) {
    const A row = FOR(0, m, fill(D(0.0), m), [&](I p, A r) {
      return r.set(p, FOR(0, m, 0.0, [&](I s, D sum) { return sum + a(i, s) * c(s, p); }));
    });
    return FOR(0, m, a, [&](I p, M b) { return b.set(i, p, row[p]); });
  });
  return sum(last * last);
}

A product_in_memory(M a, A y) {
  return FOR(0, a.dim(0), fill(D(0.0), a.dim(0)), [&](I i, A x) {
    return FOR(0, a.dim(1), x, [&](I j, A z) { return z.set(i, z[i] + a(i, j) * y[j]); });
  });
}

D by_row_and_column(M a, A p, A r) {
  const I n = a.dim(0), m = a.dim(1);
  const auto [s, q] =
      FOR(0, n, std::tuple(fill(D(0.0), m), fill(D(0.0), n)), [&](I i, A by_column, A by_row) {
        return FOR(0, m, std::tuple(by_column, by_row), [&](I j, A t, A u) {
          return std::tuple(t.set(j, t[j] + r[i] * a(i, j)), u.set(i, u[i] + a(i, j) * p[j]));
        });
      });
  return dot(s, s) + dot(q, q);
}

/// Bodies that attract each other, step by step.
D kicks(A x, A v, A mass, I steps) {
  return FOR(0, steps, D(0.0), [&](I t, D sum) {
    const A after = FOR(0, mass.size(), v, [&](I i, A w) {
      const D pull = FOR(0, mass.size(), D(0.0), [&](I j, D a) {
        const D d = x[j] - x[i], r = d * d + 0.01;
        return a + (mass[j] + 0.001 * cast<double>(t)) * d / (r * sqrt(r));
      });
      return w.set(i, w[i] + 0.01 * pull);
    });
    return sum + dot(after, after);
  });
}

M around(M u) {
  const I n = u.dim(0), m = u.dim(1);
  return FOR(0, n, zeros_like(u), [&](I i, M rows) {
    return FOR(0, m, rows, [&](I j, M v) {
      return v.set(
          i, j,
          0.25 * (u((i + 1) % n, j) + u((i + n - 1) % n, j) + u(i, (j + 1) % m) + u(i, (j + m - 1) % m)));
    });
  });
}

V3 turned(D angle, V3 p) {
  const D c = cos(angle), s = sin(angle);
  return V3(zeros<double>({3})).set(0, c * p(0) - s * p(1)).set(1, s * p(0) + c * p(1)).set(2, p(2) * p(2));
}

/// Derivatives of a recurrence by each direction, whose sizes jvp checks in each iteration.
M by_directions(A theta, M places) {
  const auto f = [](A t, M p) {
    return FOR(1, p.dim(0), fill(D(1.0), p.dim(0)),
               [&](I i, A e) { return e.set(i, e[i - 1] * sin(t[0] * p(i, 0)) + t[1] * p(i, 1)); });
  };
  const I n = places.dim(0), all = 2 + theta.size();
  return FOR(0, all, fill(D(0.0), n, all), [&](I d, M slopes) {
    const A turn = FOR(0, theta.size(), fill(D(0.0), theta.size()),
                       [&](I j, A a) { return a.set(j, select(j + 2 == d, D(1.0), 0.0)); });
    const M own = FOR(0, n, fill(D(0.0), n, 2), [&](I i, M m) {
      return m.set(i, 0, select(d == 0, D(1.0), 0.0)).set(i, 1, select(d == 1, D(1.0), 0.0));
    });
    const A along = std::get<1>(jvp(f)(theta, places, turn, own));
    return FOR(0, n, slopes, [&](I i, M next) { return next.set(i, d, along[i]); });
  });
}

D nonlinear(D own, D more) { return own + 0.2 * more * (1.0 + 0.01 * own); }
D linear(D own, D more) { return own + 0.2 * more; }

struct Expected {
  const char* what;
  std::function<Decided()> of;
  std::function<bool(const Decided&)> holds;
};

std::ostream& operator<<(std::ostream& out, const Decided& d) {
  return out << d.loops << " loops, " << d.in_lanes << " in lanes of at most " << d.widest << ", " << d.copies
             << " copies in loops, " << d.arrays << " arrays and " << d.numbers << " numbers on tapes, "
             << d.apart << " accesses apart, " << d.products << " products, " << d.branches << " branches, "
             << d.zeros << " zeros added in loops";
}

}  // namespace

TEST_CASE("programs that were slow: what is decided", "[speed]") {
  const Expected all[] = {
      {"a step of whole tensors is one loop, scalars in a register", [] { return of_numbers(momentum); },
       [](const Decided& d) { return d.loops == 1 && d.copies == 0; }},
      {"and so is the gradient of a rectifier", [] { return of_numbers(grad(rectified)); },
       [](const Decided& d) { return d.loops == 1 && d.copies == 0; }},
      {"a product of matrices is a call", [] { return decided([](M a, M b) { return M(matmul(a, b)); }); },
       [](const Decided& d) { return d.products == 1 && d.loops + d.in_lanes == 0; }},
      {"a step of a plate copies it once, for its edge", [] { return decided(plate(linear)); },
       [](const Decided& d) { return d.copies <= 1 && d.in_lanes > 0; }},
      {"elements of a plate's gradient take what neighbours give, and nothing is kept but the plate of a "
       "step",
       [] { return of_numbers(grad<0>(squares_of(plate(nonlinear)))); },
       [](const Decided& d) { return d.arrays == 1 && d.numbers == 0; }},
      {"a plate's gradient keeps nothing of a linear step, and copies once",
       [] { return of_numbers(grad<0>(squares_of(plate(linear)))); },
       [](const Decided& d) { return d.arrays == 0 && d.numbers == 0 && d.copies <= 1; }},
      {"of waves states are kept, but nothing of each element", [] { return of_numbers(grad<0, 1>(waves)); },
       [](const Decided& d) { return d.arrays <= 2 && d.numbers == 0; }},
      {"rows that each iteration replaces do not keep the matrix",
       [] { return of_numbers(grad<0, 1>(rows_of_their_own)); },
       [](const Decided& d) { return d.arrays == 0; }},
      {"a sum in an element runs along the row", [] { return decided(product_in_memory); },
       [](const Decided& d) { return d.in_lanes > 0 && d.apart == 0; }},
      {"sums by row and column run in lanes together", [] { return decided(by_row_and_column); },
       [](const Decided& d) { return d.in_lanes > 0 && d.apart == 0; }},
      {"so do those of their gradient", [] { return decided(grad<0, 1, 2>(by_row_and_column)); },
       [](const Decided& d) { return d.in_lanes > 0 && d.apart == 0; }},
      {"pulls between bodies run in lanes, backward", [] { return decided(grad<0>(kicks)); },
       [](const Decided& d) { return d.in_lanes > 0 && d.apart == 0; }},
      {"a torus runs in lanes", [] { return decided(around); },
       [](const Decided& d) { return d.in_lanes > 0 && d.apart == 0; }},
      {"threads have no tensor of their own for each row, backward",
       [] { return decided(grad<0>(squares_of(plate(nonlinear))), {.threads = 2}); },
       [](const Decided& d) { return d.copies <= 2; }},
      {"nor forward", [] { return decided(squares_of(plate(nonlinear)), {.threads = 2}); },
       [](const Decided& d) { return d.copies <= 1; }},
      {"rows that lie in one array are shared out, and copied by no thread",
       [] { return decided(grad<0>(clamped), {.threads = 2}); },
       [](const Decided& d) { return d.copies <= decided(grad<0>(clamped)).copies && d.in_lanes > 0; }},
      {"what runs in lanes and keeps values runs in as many with threads",
       [] { return decided(grad<0>(chain), {.threads = 2}); },
       [](const Decided& d) { return d.widest == decided(grad<0>(chain)).widest; }},
      {"arrays in which an iteration begins several elements are not gone through in each, backward",
       [] { return of_numbers(grad<0, 1>(fields)); }, [](const Decided& d) { return d.zeros == 0; }},
      {"a batch of small tensors runs in lanes", [] { return decided(vmap(turned)); },
       [](const Decided& d) { return d.in_lanes > 0 && d.copies == 0; }},
      {"and its derivative",
       [] {
         return decided(grad<0, 1>([](A angle, Rep<Tensor<double, dyn, 3>> p) {
           const auto q = vmap(turned)(angle, p);
           return sum(q * q);
         }));
       },
       [](const Decided& d) { return d.in_lanes > 0 && d.copies == 0 && d.arrays == 0; }},
      {"and that of each example",
       [] {
         return decided(vmap(grad<1>([](D angle, V3 p) {
           const V3 q = turned(angle, p);
           return sum(q * q) * p(1);
         })));
       },
       [](const Decided& d) { return d.in_lanes > 0 && d.copies == 0; }},
      {"directions of forward mode run in lanes, whatever is checked of them",
       [] { return decided(by_directions); },
       [](const Decided& d) { return d.in_lanes >= 6 && d.apart == 0; }},
      {"a sum that goes down columns goes along rows",
       [] {
         return decided([](M a, A x, A y) {
           FOR(0, a.dim(1),
               [&](I k) { FOR(0, a.dim(0), [&](I j) { y = y.set(j, y[j] + a(j, k) * x[k]); }); });
           return y;
         });
       },
       [](const Decided& d) { return d.in_lanes > 0; }},
  };
  for (const Expected& e : all) {
    const Decided d = e.of();
    INFO(e.what << ": " << d);
    CHECK(e.holds(d));
  }
}

TEST_CASE("two fields in one array, with poles: as eager evaluation", "[speed]") {
  std::vector<double> start, rate;
  for (int i = 0; i < 21; ++i) {
    start.push_back(0.3 + 0.05 * i);
    rate.push_back(i == 4 ? 0.0 : 0.01 * i - 0.1);
  }
  // A number, or that there is none: behind a pole, where 0 meets an infinite slope.
  const auto agree = [](const std::vector<double>& got, const std::vector<double>& expected) {
    REQUIRE(got.size() == expected.size());
    for (std::size_t i = 0; i < got.size(); ++i) {
      INFO("element " << i);
      if (std::isnan(expected[i]))
        CHECK(std::isnan(got[i]));
      else
        CHECK(got[i] == Approx(expected[i]).epsilon(1e-10));
    }
  };
  const auto slopes = eager(grad<0, 1>(fields));
  for (const bool pole : {false, true}) {
    if (pole) start[20] = INFINITY, start[7] = -INFINITY;
    for (const Target target : {Target::c, Target::cpp}) {
      const auto g = compile(grad<0, 1>(fields), {.target = target});
      for (const std::int64_t steps : {0, 1, 2, 5}) {
        INFO(steps << " steps, a pole: " << pole);
        const auto [by_start, by_rate] = g(start, rate, 21, steps);
        const auto [start_expected, rate_expected] = slopes(start, rate, 21, steps);
        agree(by_start, start_expected);
        agree(by_rate, rate_expected);
      }
    }
  }
}
