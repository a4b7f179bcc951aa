// Runs a random plan over Rep: eagerly or staged, whoever is in charge.
#pragma once

#include <algorithm>
#include <array>

#include "lantern/lantern.hpp"
#include "random_plan.hpp"

namespace lantern::test {

/// While a program runs eagerly: every number is off by so much of itself, at random. What that makes of the
/// results is what rounding may make of them.
struct Noise {
  double relative = 0;
  std::mt19937 random{1};
  Rep<double> on(const Rep<double>& x) {
    if (relative == 0) return x;
    return x * (1 + relative * std::uniform_real_distribution<double>(-1, 1)(random));
  }
  Rep<float> on(const Rep<float>& x) {
    if (relative == 0) return x;
    return x * (1 + 1e8 * relative * std::uniform_real_distribution<double>(-1, 1)(random));
  }
};
inline Noise noise;

class PlanRunner {
 public:
  using D = Rep<double>;
  using S = Rep<float>;
  using I = Rep<std::int64_t>;
  using A = Rep<Array<double>>;
  using Singles = Rep<Array<float>>;
  using Ints = Rep<Array<std::int64_t>>;
  using M = Rep<Tensor<double, dyn, dyn>>;
  using T = Rep<Tree<double>>;

  /// What a program may name. Arrays have n elements, matrices n rows of m.
  struct Scope {
    I n, m;
    T tree;
    std::vector<D> numbers;
    std::vector<A> arrays;
    std::vector<Singles> singles;
    std::vector<Ints> indices;
    std::vector<M> matrices;
    std::vector<I> rows, columns;
  };

  explicit PlanRunner(const RandomPlan& plan) : plan_(plan) {
    for (const Node& body : plan.functions)
      functions_.push_back(FUN<double(double, double)>("f", [this, &body](auto, D x, D y) {
        Scope in;
        in.n = I(3), in.m = I(2);
        in.numbers = {x, y};
        return number(in, body);
      }));
  }
  PlanRunner(const PlanRunner&) = delete;

  /// With all that the program makes before its result.
  Scope made(Scope s) const {
    for (const Node& stage : plan_.stages) add(s, stage);
    return s;
  }
  D result(const Scope& s) const { return number(s, plan_.result); }
  D operator()(const Scope& s) const { return result(made(s)); }

 private:
  I row(const Scope& s, const Node& n) const {
    const auto at = [&](std::size_t k = 0) { return row(s, n.parts[k]); };
    const auto size = static_cast<std::size_t>(n.k);
    switch (n.part) {
      case Part::row:
        return s.rows[size];
      case Part::mirrored:
        return s.n - 1 - at();
      case Part::shifted:
        return (at() + n.k) % s.n;
      case Part::gathered:
        return s.indices[size][at()];
      case Part::multiplied:
        return (at(0) * at(1) + 1) % s.n;
      case Part::measured: {
        const D x = abs(number(s, n.parts[0]));
        return cast<std::int64_t>(select(x < 100.0, x * 5.0, D(1.0))) % s.n;
      }
      case Part::before:
        return max(at() - 1, 0);
      case Part::outside:
        if (n.k == 0) return at() + 1;
        if (n.k == 1) return at() - 1;
        return select(at() == s.n / 2, s.n + 5, at());
      case Part::after:
        return min(at() + 1, s.n - 1);
      default: {
        const Rep<bool> c = number(s, n.parts[0]) < number(s, n.parts[1]) + 0.017;
        if (n.k == 0) return select(c, at(2), at(3));
        return IF(
            c, [&] { return at(2); }, [&] { return at(3); });
      }
    }
  }

  I column(const Scope& s, const Node& n) const {
    switch (n.part) {
      case Part::column:
        return s.columns[static_cast<std::size_t>(n.k)];
      case Part::mirrored_column:
        return s.m - 1 - column(s, n.parts[0]);
      default:
        return (column(s, n.parts[0]) + row(s, n.parts[1])) % s.m;
    }
  }

  D number(const Scope& s, const Node& n) const { return noise.on(exact(s, n)); }

  static Scope in_row(Scope s, const I& i) { return s.rows.push_back(i), s; }
  static Scope in_column(Scope s, const I& j) { return s.columns.push_back(j), s; }
  static Scope having(Scope s, const D& x) { return s.numbers.push_back(x), s; }
  static D bounded(const D& x) { return x / (1.0 + 0.1 * x * x); }
  D small(const Scope& s, const Node& n) const { return bounded(number(s, n)); }

  static D unary(int k, const D& x) {
    switch (k) {
      case 0:
        return -x;
      case 1:
        return sin(x);
      case 2:
        return tanh(x);
      case 3:
        return exp(sin(x));
      case 4:
        return log(1.5 + x * x);
      case 5:
        return sqrt(0.1 + x * x);
      case 6:
        return 1.0 / (1.0 + x * x);
      case 7:
        return abs(x);
      default:
        return atan(x) - cos(x);
    }
  }

  static D binary(int k, const D& x, const D& y) {
    switch (k) {
      case 0:
        return x + y;
      case 1:
        return x - y;
      case 2:
        return x * tanh(y);
      case 3:
        return x / (1.0 + y * y);
      case 4:
        return max(x, y + 0.03);
      case 5:
        return min(x, y - 0.03);
      case 6:
        return pow(1.0 + abs(x), tanh(y));
      default:
        return sin(x) * y;
    }
  }

  D exact(const Scope& s, const Node& n) const {
    const auto k = static_cast<std::size_t>(n.k);
    const auto part = [&](std::size_t p) { return number(s, n.parts[p]); };
    switch (n.part) {
      case Part::constant:
        return n.value;
      case Part::number:
        return s.numbers[k];
      case Part::element:
        return s.arrays[k][row(s, n.parts[0])];
      case Part::single:
        return cast<double>(noise.on(s.singles[k][row(s, n.parts[0])]));
      case Part::entry:
        return s.matrices[k](row(s, n.parts[0]), column(s, n.parts[1]));
      case Part::position:
        return 0.1 * cast<double>(row(s, n.parts[0]));
      case Part::unary:
        return unary(n.k, part(0));
      case Part::binary:
        return binary(n.k, part(0), part(1));
      case Part::choose:
        return select(part(0) < part(1) + 0.017, part(2), part(3));
      case Part::branch:
        return IF(
            part(0) < part(1) + 0.017, [&] { return part(2); }, [&] { return part(3); });
      case Part::guarded: {
        const D x = part(0);
        if (n.k == 0)
          return IF(
              x > 0.013, [&] { return log(x); }, [&] { return D(-4.0); });
        if (n.k == 1)
          return IF(
              x > 0.013, [&] { return sqrt(x); }, [&] { return 0.1 * x; });
        if (n.k == 2)
          return IF(
              abs(x) > 0.013, [&] { return sin(x) / x; }, [&] { return D(1.0); });
        return select(x > 0.013, log(x), 0.5 * x);
      }
      case Part::by_index: {
        const I i = row(s, n.parts[0]), j = row(s, n.parts[1]);
        const Rep<bool> c = n.k == 0 ? i < j : n.k == 1 ? i % 2 == 0 : n.k == 2 ? i == 0 : i + 1 < s.n;
        return IF(
            c, [&] { return part(2); }, [&] { return part(3); });
      }
      case Part::whole:
        return whole(s, n);
      case Part::call:
        return functions_[k](part(0), part(1));
      case Part::recursion: {
        const auto self = FUN<double(double, std::int64_t)>("r", [kind = n.k](auto again, D x, I depth) {
          return IF(
              depth == 0, [&] { return x; },
              [&] {
                if (kind == 0) return sin(again(0.7 * x + 0.1, depth - 1)) + 0.3 * x;
                return again(0.5 * x, depth - 1) * tanh(again(x + 0.1, depth - 1));
              });
        });
        return self(part(0), n.k == 0 ? s.m : I(2));
      }
      case Part::checkpointed:
        return checkpoint([this, s, &n](D x) { return number(having(s, x), n.parts[1]); })(part(0));
      case Part::ruled: {
        if (n.k == 0)
          return custom_vjp([](D x) { return sin(x); }, [](D x) { return std::tuple(sin(x), x); },
                            [](D x, D g) { return g * cos(x); })(part(0));
        return custom_jvp(
            [](D x) { return tanh(x); },
            [](D x, D dx) { return std::tuple(tanh(x), dx * (1.0 - tanh(x) * tanh(x))); })(part(0));
      }
      case Part::tangent:
        return std::get<1>(
            jvp([this, &s, &n](D x) { return number(having(s, x), n.parts[1]); })(part(0), D(0.5)));
      case Part::slope:
        return grad([this, &s, &n](D x) { return number(having(s, x), n.parts[1]); })(part(0));
      case Part::tree_fold:
        return TREE(part(0), s.tree, [&](D l, D r, T node) {
          return bounded(number(having(having(s, l), r), n.parts[1])) + 0.3 * l * node.value();
        });
      default:
        return loop(s, n);
    }
  }

  D loop(const Scope& s, const Node& n) const {
    const auto part = [&](const Scope& in, std::size_t p) { return number(in, n.parts[p]); };
    const auto add_up = [&](const I& lo, const I& hi) {
      return FOR(lo, hi, 0.0, [&](I i, D sum) { return sum + part(in_row(s, i), 0); });
    };
    const auto k = static_cast<std::size_t>(n.k);
    switch (n.part) {
      case Part::total_rows:
        return add_up(0, s.n);
      case Part::total_below:
        return add_up(0, s.rows[k] + n.l);
      case Part::total_above:
        return add_up(s.rows[k] + n.l, s.n);
      case Part::total_columns:
        return FOR(0, s.m, 0.0, [&](I j, D sum) { return sum + part(in_column(s, j), 0); });
      case Part::products:
        return FOR(0, s.n, 1.0, [&](I i, D all) { return all * (1.0 + 0.1 * sin(part(in_row(s, i), 0))); });
      case Part::largest:
        return FOR(0, s.n, -0.3, [&](I i, D most) {
          const D x = part(in_row(s, i), 0);
          return n.k == 0 ? max(most, x) : select(most < x, x, most);
        });
      case Part::steps:
        return FOR(0, n.k == 0 ? s.m : I(3), part(s, 0), [&](I j, D x) {
          Scope in = having(s, x);
          in.columns.push_back(n.k == 0 ? j : j % s.m);
          return sin(number(in, n.parts[1])) + 0.5 * x;
        });
      case Part::pair_steps: {
        const auto [x, y] = FOR(0, s.m, std::tuple(part(s, 0), part(s, 1)), [&](I j, D a, D b) {
          const Scope in = having(having(in_column(s, j), a), b);
          return std::tuple(0.5 * b + sin(part(in, 2)), tanh(part(in, 3)) - 0.3 * a);
        });
        return x * y;
      }
      case Part::halving:
        return std::get<0>(WHILE(
            std::tuple(part(s, 0), I(0)),
            [](D x, I iterations) { return AND(abs(x) > 0.3, [&] { return iterations < 7; }); },
            [&](D x, I iterations) { return std::tuple(0.6 * x + 0.1 * sin(part(having(s, x), 1)), iterations + 1); }));
      case Part::bounded_steps:
        return FOR(
            0, 9, part(s, 0), [&](I, D x) { return sin(part(having(s, x), 1)) + 0.4 * x; },
            n.k == 0 ? LoopOptions{.checkpoints = 3} : LoopOptions{.memory = 1 << 16});
      default: {
        Var<double> x = part(s, 0);
        FOR(0, s.m, [&](I j) {
          const Scope in = having(in_column(s, j), x);
          IF(
              part(in, 2) < 0.21, [&] { x += sin(part(in, 1)); }, [&] { x = 0.5 * x - 0.1; });
        });
        return x;
      }
    }
  }

  static A numbers_of(const Rep<Tensor<double>>& t) { return as_array(t); }

  D whole(const Scope& s, const Node& n) const {
    const A& a = s.arrays[static_cast<std::size_t>(n.l)];
    const A& b = s.arrays[static_cast<std::size_t>(n.parts[0].k)];
    const M& w = s.matrices[static_cast<std::size_t>(n.parts[1].k)];
    switch (n.k) {
      case 0:
        return 0.1 * sum(a * tanh(b));
      case 1:
        return tanh(dot(a, b));
      case 2:
        return 0.1 * sum(sin(w) * w);
      case 3:
        return sum(tanh(matmul(as_tensor(a), w)));
      case 4:
        return tanh(dot(matmul(transpose(w), as_tensor(a)), matmul(as_tensor(b), w)));
      case 5:
        return sum(outer(as_tensor(a), as_tensor(b))) * 0.05;
      default:
        return sum(exp(-a * a) / (1.0 + b * b));
    }
  }

  A each(const Scope& s, const A& start, const std::function<A(const I&, const A&)>& iteration) const {
    return FOR(0, s.n, start, [&](I i, A a) { return iteration(i, a); });
  }

  void add(Scope& s, const Node& n) const {
    const auto k = static_cast<std::size_t>(n.k), l = static_cast<std::size_t>(n.l);
    const Node* first = n.parts.empty() ? nullptr : &n.parts[0];
    const A start = s.arrays[std::min(k, s.arrays.size() - 1)], none = fill(D(0.0), s.n);
    const auto tabulated = [&](const Scope& in, const Node& body) {
      return each(in, none, [&](const I& i, const A& a) { return a.set(i, small(in_row(in, i), body)); });
    };
    switch (n.part) {
      case Part::let:
        s.numbers.push_back(small(s, *first));
        return;
      case Part::tabulate:
        s.arrays.push_back(tabulated(s, *first));
        return;
      case Part::downwards:
        s.arrays.push_back(each(s, none, [&](const I& i, const A& a) {
          const I at = s.n - 1 - i;
          return a.set(at, small(in_row(s, at), *first));
        }));
        return;
      case Part::own:
      case Part::previous:
      case Part::next:
        s.arrays.push_back(each(s, start, [&](const I& i, const A& a) {
          const I from = n.part == Part::own ? i : n.part == Part::previous ? max(i - 1, 0) : (i + 1) % s.n;
          return a.set(i, small(having(in_row(s, i), a[from]), *first));
        }));
        return;
      case Part::scatter:
        s.arrays.push_back(each(s, none, [&](const I& i, const A& a) {
          const Scope in = in_row(s, i);
          const I to = row(in, *first);
          return a.set(to, a[to] + small(in, n.parts[1]));
        }));
        return;
      case Part::scatter_two:
        s.arrays.push_back(each(s, start, [&](const I& i, const A& a) {
          const Scope in = in_row(s, i);
          const I to = row(in, *first), other = row(in, n.parts[1]);
          const A b = a.set(to, a[to] + small(in, n.parts[2]));
          return b.set(other, b[other] - small(in, n.parts[3]));
        }));
        return;
      case Part::conditional:
        s.arrays.push_back(each(s, start, [&](const I& i, const A& a) {
          const Scope in = in_row(s, i);
          const D x = small(in, n.parts[1]);
          return IF(
              x < number(in, n.parts[2]) + 0.017, [&] { return a.set(row(in, *first), x); },
              [&] { return a; });
        }));
        return;
      case Part::swap:
        s.arrays.push_back(each(s, start, [&](const I& i, const A& a) {
          const I to = row(in_row(s, i), *first);
          return a.set(i, a[to]).set(to, a[i]);
        }));
        return;
      case Part::repeat:
        s.arrays.push_back(FOR(0, 3, start, [&](I, A a) {
          Scope in = s;
          in.arrays.push_back(a);
          return tabulated(in, *first);
        }));
        return;
      case Part::march:
        s.arrays.push_back(FOR(0, 4, start, [&](I, A a) {
          Scope in = s;
          in.arrays.push_back(a);
          return each(in, none, [&](const I& i, const A& b) {
            const D between = a[(i + 1) % s.n] - 2.0 * a[i] + a[(i + s.n - 1) % s.n];
            return b.set(i, a[i] + 0.2 * between + 0.1 * small(in_row(in, i), *first));
          });
        }));
        return;
      case Part::leapfrog: {
        const auto [x, v] = FOR(0, 3, std::tuple(start, s.arrays[l]), [&](I, A a, A b) {
          Scope in = s;
          in.arrays.push_back(a), in.arrays.push_back(b);
          return FOR(0, s.n, std::tuple(a, b), [&](I i, A p, A q) {
            const D faster = q[i] - 0.1 * small(in_row(in, i), *first);
            return std::tuple(p.set(i, p[i] + 0.1 * faster + 0.1 * small(in_row(in, i), n.parts[1])),
                              q.set(i, faster));
          });
        });
        s.arrays.push_back(x), s.arrays.push_back(v);
        return;
      }
      case Part::with_number: {
        const auto [a, x] = FOR(0, s.n, std::tuple(none, D(0.3)), [&](I i, A b, D y) {
          const Scope in = having(in_row(s, i), y);
          return std::tuple(b.set(i, small(in, *first)), 0.5 * y + small(in, n.parts[1]));
        });
        s.arrays.push_back(a), s.numbers.push_back(x);
        return;
      }
      case Part::until:
        s.arrays.push_back(std::get<0>(WHILE(
            std::tuple(start, I(0)),
            [&](A a, I iterations) { return AND(sum(a * a) > 0.5, [&] { return iterations < 5; }); },
            [&](A a, I iterations) {
              Scope in = s;
              in.arrays.push_back(a);
              return std::tuple(each(in, a,
                                     [&](const I& i, const A& b) {
                                       return b.set(i, 0.7 * b[i] + 0.2 * small(in_row(in, i), *first));
                                     }),
                                iterations + 1);
            })));
        return;
      case Part::choice:
        s.arrays.push_back(IF(
            number(s, *first) < number(s, n.parts[1]) + 0.017, [&] { return start; },
            [&] { return s.arrays[l]; }));
        return;
      case Part::whole_array:
        s.arrays.push_back(whole_array(s, n, start, s.arrays[l]));
        return;
      case Part::triangular:
        s.arrays.push_back(each(s, start, [&](const I& i, const A& a) {
          const D part =
              FOR(0, i, 0.0, [&](I j, D sum) { return sum + a[j] * small(in_row(in_row(s, i), j), *first); });
          return a.set(i, bounded(a[i] - 0.3 * part));
        }));
        return;
      default:
        others(s, n);
    }
  }

  A whole_array(const Scope& s, const Node& n, const A& a, const A& b) const {
    const D x = small(s, n.parts[1]);
    const M& w = s.matrices[static_cast<std::size_t>(n.parts[2].k)];
    const I half = s.n / 2;
    switch (n.parts[0].k) {
      case 0:
        return a + x * b;
      case 1:
        return tanh(a) * exp(-b * b) + x;
      case 2:
        return concat(a.slice(half, s.n), b.slice(0, half));
      case 3:
        return tanh(numbers_of(matmul(w, matmul(transpose(w), as_tensor(a)))));
      case 4:
        return concat(b.slice(s.n - half, s.n), a.slice(0, s.n - half)) - a / (2.0 + b * b);
      case 5:
        return a + fill(x, s.n);
      case 6:
        return sin(a) + numbers_of(matmul(w, fill(x, s.m)));
      default:
        return zeros_like(a) - b * x;
    }
  }

  void others(Scope& s, const Node& n) const {
    const auto k = static_cast<std::size_t>(n.k);
    const Node& first = n.parts[0];
    const Singles no_singles = fill(S(0.0), s.n);
    const auto single = [&](const Scope& in) { return noise.on(cast<float>(small(in, first))); };
    const auto matrix = [&](const M& from, auto iteration, bool by_columns = false) {
      return FOR(0, by_columns ? s.m : s.n, from, [&](I i, M all) {
        return FOR(0, by_columns ? s.n : s.m, all,
                   [&](I j, M w) { return by_columns ? iteration(j, i, w) : iteration(i, j, w); });
      });
    };
    const auto at = [&](const I& i, const I& j) { return in_column(in_row(s, i), j); };
    switch (n.part) {
      case Part::singles:
        s.singles.push_back(
            FOR(0, s.n, no_singles, [&](I i, Singles a) { return a.set(i, single(in_row(s, i))); }));
        return;
      case Part::single_own:
        s.singles.push_back(FOR(0, s.n, s.singles[k], [&](I i, Singles a) {
          return a.set(i, 0.5 * a[i] + single(having(in_row(s, i), cast<double>(a[i]))));
        }));
        return;
      case Part::single_scatter:
        s.singles.push_back(FOR(0, s.n, no_singles, [&](I i, Singles a) {
          const Scope in = in_row(s, i);
          const I to = row(in, n.parts[1]);
          return a.set(to, a[to] + single(in));
        }));
        return;
      case Part::indices:
        s.indices.push_back(
            FOR(0, s.n, fill(I(0), s.n), [&](I i, Ints a) { return a.set(i, row(in_row(s, i), first)); }));
        return;
      case Part::counts: {
        const Ints counted = FOR(0, s.n, fill(I(0), s.n), [&](I i, Ints a) {
          const I to = row(in_row(s, i), first);
          return a.set(to, a[to] + 1);
        });
        s.indices.push_back(FOR(0, s.n, counted, [&](I i, Ints a) { return a.set(i, (a[i] * 3) % s.n); }));
        return;
      }
      case Part::matrix:
      case Part::by_columns:
        s.matrices.push_back(matrix(
            fill(D(0.0), s.n, s.m),
            [&](const I& i, const I& j, const M& w) { return w.set(i, j, small(at(i, j), first)); },
            n.part == Part::by_columns));
        return;
      case Part::matrix_own:
        s.matrices.push_back(matrix(s.matrices[k], [&](const I& i, const I& j, const M& w) {
          return w.set(i, j, small(having(at(i, j), w(i, j)), first));
        }));
        return;
      case Part::march_matrix:
        s.matrices.push_back(FOR(0, 3, s.matrices[k], [&](I, M w) {
          return matrix(fill(D(0.0), s.n, s.m), [&](const I& i, const I& j, const M& to) {
            const D around = w((i + 1) % s.n, j) + w((i + s.n - 1) % s.n, j) + w(i, (j + 1) % s.m) +
                             w(i, (j + s.m - 1) % s.m) - 4.0 * w(i, j);
            return to.set(i, j, w(i, j) + 0.1 * around + 0.1 * small(having(at(i, j), w(i, j)), first));
          });
        }));
        return;
      default: {
        const M &a = s.matrices[static_cast<std::size_t>(n.parts[1].k)],
                &b = s.matrices[static_cast<std::size_t>(n.parts[2].k)];
        const A& v = s.arrays[k];
        switch (first.k) {
          case 0:
            s.matrices.push_back(M(a + 0.5 * tanh(b)));
            return;
          case 1:
            s.matrices.push_back(M(matmul(tanh(matmul(a, transpose(b))), tanh(b))));
            return;
          case 2:
            s.matrices.push_back(sin(a) + M(outer(as_tensor(v), as_tensor(fill(D(0.3), s.m)))));
            return;
          case 3:
            s.matrices.push_back(M(concat(a.slice(s.n / 2, s.n), b.slice(0, s.n / 2))));
            return;
          case 4:
            s.matrices.push_back(a * fill(sum(v) * 0.05, s.n, s.m));
            return;
          default:
            s.matrices.push_back(M(concat(b.slice(1 % max(s.n, 1), s.n), b.slice(0, 1 % max(s.n, 1)))));
        }
      }
    }
  }

  const RandomPlan& plan_;
  std::vector<Fun<double(double, double)>> functions_;
};

}  // namespace lantern::test
