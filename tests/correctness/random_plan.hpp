// Random programs over arrays of double and float, integers that index, and matrices: as trees, made from a
// seed. random_plan_run.hpp runs them over Rep, random_plan_text.hpp prints them as C++.
#pragma once

#include <cstdint>
#include <random>
#include <vector>

namespace lantern::test {

/// A part of a program. Numbers: up to `tree_fold`. Indices of rows, then of columns. Then what is added to
/// the scope.
enum class Part {
  // numbers
  constant,
  number,
  element,   // of an array at a row
  single,    // of an array of float
  entry,     // of a matrix
  position,  // an index as a number
  unary,
  binary,
  choose,    // select
  branch,    // IF
  guarded,   // a branch that is not taken where it is not finite
  by_index,  // IF that asks for indices
  total_rows,
  total_columns,
  total_below,
  total_above,
  products,
  largest,
  steps,       // FOR with one number
  pair_steps,  // FOR with two numbers
  halving,     // WHILE whose end depends on numbers
  bounded_steps,
  variable,  // Var
  call,      // FUN
  recursion,
  checkpointed,
  ruled,    // custom_vjp
  tangent,  // jvp inside
  slope,    // grad inside
  whole,    // of whole tensors
  tree_fold,
  // rows
  row,
  mirrored,
  shifted,
  gathered,
  multiplied,
  measured,  // made of a number
  before,
  after,
  chosen_row,
  outside,  // where an iteration goes too far
  // columns
  column,
  mirrored_column,
  shifted_column,
  // what is added to the scope
  let,
  tabulate,
  downwards,
  own,
  previous,
  next,
  scatter,
  scatter_two,
  swap,
  repeat,
  march,     // time steps of a stencil
  leapfrog,  // two arrays that depend on each other
  with_number,
  conditional,
  until,  // WHILE over an array
  choice,
  whole_array,
  singles,
  single_own,
  single_scatter,
  indices,
  counts,
  matrix,
  by_columns,
  matrix_own,
  triangular,
  march_matrix,
  whole_matrix,
};

struct Node {
  Part part = Part::constant;
  double value = 0;
  int k = 0, l = 0;
  std::vector<Node> parts = {};
};

struct RandomPlan {
  std::vector<Node> stages;
  Node result;
  std::vector<Node> functions;  ///< of two numbers
  bool uses_tree = false;
};

/// The same seed gives the same program.
class PlanSource {
 public:
  /// `outside`: some indices are outside an array in some iteration.
  explicit PlanSource(unsigned seed, bool outside = false) : random_(seed), outside_(outside) {}

  RandomPlan plan() {
    RandomPlan p;
    p.functions = {number({.numbers = 2, .depth = 2}, 3), number({.numbers = 2, .depth = 2}, 3)};
    Scope s{.numbers = 1, .arrays = 2, .singles = 1, .indices = 1, .matrices = 1, .functions = true};
    const int stages = 1 + below(4);
    for (int i = 0; i < stages; ++i) p.stages.push_back(stage(s));
    Scope in = s;
    ++in.rows, ++in.depth;
    Node seen = make(Part::binary, 2);
    seen.parts = {make(Part::element, s.arrays - 1), number(in, 2)};
    seen.parts[0].parts = {make(Part::row, 0)};
    Node all = make(Part::total_rows);
    all.parts = {std::move(seen)};
    p.result = make(Part::binary, 0);
    p.result.parts = {std::move(all), number(s, 3)};
    return p;
  }

 private:
  struct Scope {
    int numbers = 0, arrays = 0, singles = 0, indices = 0, matrices = 0;
    int rows = 0, columns = 0;  ///< of loops around
    int depth = 0;              ///< of loops
    bool functions = false;
    bool derivative = false;  ///< inside one
  };

  int below(int n) { return std::uniform_int_distribution<int>(0, n - 1)(random_); }
  bool chance(int percent) { return below(100) < percent; }
  static Node make(Part part, int k = 0, int l = 0) { return {.part = part, .k = k, .l = l}; }
  template <class... N>
  static Node with(Node n, N&&... parts) {
    (n.parts.push_back(std::forward<N>(parts)), ...);
    return n;
  }

  Node row(const Scope& s, int depth) {
    Node i = make(Part::row, below(s.rows));
    if (outside_ && chance(10)) return with(make(Part::outside, below(3)), i);
    switch (below(14)) {
      case 0:
        return with(make(Part::mirrored), i);
      case 1:
      case 2:
        return with(make(Part::shifted, 1 + below(3)), i);
      case 3:
        if (s.indices) return with(make(Part::gathered, below(s.indices)), i);
        return i;
      case 4:
        return with(make(Part::multiplied), i, make(Part::row, below(s.rows)));
      case 5:
        if (depth > 0 && chance(50)) return with(make(Part::measured), number(s, depth - 1));
        return i;
      case 6:
        return with(make(Part::before), i);
      case 7:
        return with(make(Part::after), i);
      case 8:
        if (depth > 0)
          return with(make(Part::chosen_row, below(2)), leaf(s), leaf(s), i, make(Part::row, below(s.rows)));
        return i;
      default:
        return i;
    }
  }

  Node column(const Scope& s) {
    Node j = make(Part::column, below(s.columns));
    switch (below(6)) {
      case 0:
        return with(make(Part::mirrored_column), j);
      case 1:
        if (s.rows) return with(make(Part::shifted_column), j, make(Part::row, below(s.rows)));
        return j;
      default:
        return j;
    }
  }

  Node leaf(const Scope& s) {
    for (int tries = 0; tries < 8; ++tries) switch (below(9)) {
        case 0: {
          Node n = make(Part::constant);
          n.value = 0.25 * (below(9) - 4);
          return n;
        }
        case 1:
        case 2:
          if (s.numbers) return make(Part::number, below(s.numbers));
          break;
        case 3:
        case 4:
        case 5:
          if (s.rows && s.arrays) return with(make(Part::element, below(s.arrays)), row(s, 0));
          break;
        case 6:
          if (s.rows && s.singles) return with(make(Part::single, below(s.singles)), row(s, 0));
          break;
        case 7:
          if (s.rows && chance(40)) return with(make(Part::position), row(s, 0));
          break;
        default:
          if (s.rows && s.columns && s.matrices)
            return with(make(Part::entry, below(s.matrices)), row(s, 0), column(s));
      }
    Node n = make(Part::constant);
    n.value = 0.7;
    return n;
  }

  Node number(const Scope& s, int depth) {
    if (depth <= 0) return leaf(s);
    const auto part = [&] { return number(s, depth - 1); };
    Scope in = s;
    ++in.depth;
    const bool loops = s.depth < 3;
    switch (below(44)) {
      case 0:
      case 1:
      case 2:
      case 3:
      case 4:
      case 5:
        return with(make(Part::unary, below(9)), part());
      case 6:
      case 7:
      case 8:
      case 9:
      case 10:
      case 11:
      case 12:
      case 13:
        return with(make(Part::binary, below(8)), part(), part());
      case 14:
        return with(make(Part::choose), part(), leaf(s), part(), leaf(s));
      case 15:
      case 16:
        return with(make(Part::branch), part(), leaf(s), part(), part());
      case 17:
        return with(make(Part::guarded, below(4)), part());
      case 18:
        if (!s.rows) return leaf(s);
        return with(make(Part::by_index, below(4)), row(s, 0), row(s, 0), part(), part());
      case 19:
      case 20:
        if (!loops || s.rows >= 2) return leaf(s);
        ++in.rows;
        return with(make(Part::total_rows), number(in, depth - 1));
      case 21:
        if (!loops) return leaf(s);
        ++in.columns;
        return with(make(Part::total_columns), number(in, depth - 1));
      case 22:
      case 23:
        if (!s.rows || !loops) return leaf(s);
        ++in.rows;
        return with(make(chance(50) ? Part::total_below : Part::total_above, below(s.rows), below(2)),
                    number(in, depth - 1));
      case 24:
        if (!loops || s.rows >= 2) return leaf(s);
        ++in.rows;
        return with(make(Part::products), number(in, depth - 1));
      case 25:
        if (!loops || s.rows >= 2) return leaf(s);
        ++in.rows;
        return with(make(Part::largest, below(2)), number(in, depth - 1));
      case 26:
      case 27:
        if (!loops) return leaf(s);
        ++in.columns, ++in.numbers;
        return with(make(Part::steps, below(2)), leaf(s), number(in, depth - 1));
      case 28:
        if (!loops) return leaf(s);
        ++in.columns, in.numbers += 2;
        return with(make(Part::pair_steps), leaf(s), leaf(s), number(in, depth - 1), number(in, depth - 2));
      case 29:
      case 30:
        if (!loops) return leaf(s);
        ++in.numbers;
        return with(make(Part::halving), part(), number(in, depth - 1));
      case 31:
        if (!loops) return leaf(s);
        ++in.numbers;
        return with(make(Part::bounded_steps, below(2)), leaf(s), number(in, depth - 1));
      case 32:
        if (!loops) return leaf(s);
        ++in.columns, ++in.numbers;
        return with(make(Part::variable), leaf(s), number(in, depth - 1), number(in, 1));
      case 33:
      case 34:
        if (!s.functions) return leaf(s);
        return with(make(Part::call, below(2)), part(), leaf(s));
      case 35:
        return with(make(Part::recursion, below(2)), part());
      case 36:
        if (s.derivative) return leaf(s);  // it may not capture what is varied inside
        in.derivative = true;
        ++in.numbers;
        return with(make(Part::checkpointed), part(), number(in, depth - 1));
      case 37:
        return with(make(Part::ruled, below(2)), part());
      case 38:
        ++in.numbers, in.derivative = true;
        return with(make(Part::tangent), part(), number(in, depth - 1));
      case 39:
        ++in.numbers, in.derivative = true;
        return with(make(Part::slope), part(), number(in, depth - 1));
      case 40:
      case 41:
        if (!s.arrays || !s.matrices) return leaf(s);
        return with(make(Part::whole, below(7), below(s.arrays)), make(Part::number, below(s.arrays)),
                    make(Part::number, below(s.matrices)));
      case 42:
        if (s.depth > 1) return leaf(s);
        in.numbers += 2;
        return with(make(Part::tree_fold), leaf(s), number(in, depth - 1));
      default:
        return leaf(s);
    }
  }

  Node stage(Scope& s) {
    static constexpr Part kinds[] = {Part::let,          Part::tabulate,    Part::tabulate,
                                     Part::downwards,    Part::own,         Part::previous,
                                     Part::next,         Part::scatter,     Part::scatter_two,
                                     Part::swap,         Part::repeat,      Part::march,
                                     Part::leapfrog,     Part::with_number, Part::conditional,
                                     Part::until,        Part::choice,      Part::whole_array,
                                     Part::singles,      Part::single_own,  Part::single_scatter,
                                     Part::indices,      Part::counts,      Part::matrix,
                                     Part::by_columns,   Part::matrix_own,  Part::triangular,
                                     Part::march_matrix, Part::whole_matrix};
    const Part kind = kinds[below(static_cast<int>(std::size(kinds)))];
    Scope in = s;
    ++in.rows, ++in.depth;
    Node n = make(kind, below(s.arrays), below(s.arrays));
    switch (kind) {
      case Part::let:
        n = with(n, number(s, 3));
        ++s.numbers;
        return n;
      case Part::own:
      case Part::previous:
      case Part::next:
        ++in.numbers;
        break;
      case Part::scatter_two:
        n = with(n, row(in, 2), row(in, 1), number(in, 3), number(in, 2));
        ++s.arrays;
        return n;
      case Part::scatter:
      case Part::conditional:
        n = with(n, row(in, 2), number(in, 3), leaf(in));
        ++s.arrays;
        return n;
      case Part::swap:
        n = with(n, row(in, 2));
        ++s.arrays;
        return n;
      case Part::repeat:
      case Part::march:
      case Part::until:
        ++in.arrays, ++in.depth;
        break;
      case Part::leapfrog:
        in.arrays += 2, ++in.depth;
        n = with(n, number(in, 2), number(in, 2));
        s.arrays += 2;
        return n;
      case Part::with_number:
        ++in.numbers;
        n = with(n, number(in, 3), number(in, 2));
        ++s.arrays, ++s.numbers;
        return n;
      case Part::choice:
        n = with(n, number(s, 2), leaf(s));
        ++s.arrays;
        return n;
      case Part::whole_array:
        n.part = kind;
        n = with(n, make(Part::number, below(8)), number(s, 1), make(Part::number, below(s.matrices)));
        ++s.arrays;
        return n;
      case Part::single_own:
        ++in.numbers;
        [[fallthrough]];
      case Part::singles:
      case Part::single_scatter:
        n.k = below(s.singles);
        n = with(n, number(in, 3), row(in, 2));
        ++s.singles;
        return n;
      case Part::indices:
      case Part::counts:
        n = with(n, row(in, 2));
        ++s.indices;
        return n;
      case Part::matrix:
      case Part::by_columns:
      case Part::matrix_own:
      case Part::march_matrix:
        ++in.columns, ++in.depth;
        if (kind != Part::matrix && kind != Part::by_columns) ++in.numbers;
        n.k = below(s.matrices);
        n = with(n, number(in, 3));
        ++s.matrices;
        return n;
      case Part::triangular:
        ++in.rows, ++in.depth;
        n = with(n, number(in, 2));
        ++s.arrays;
        return n;
      case Part::whole_matrix:
        n = with(n, make(Part::number, below(6)), make(Part::number, below(s.matrices)),
                 make(Part::number, below(s.matrices)));
        ++s.matrices;
        return n;
      default:
        break;
    }
    n = with(n, number(in, 3));
    ++s.arrays;
    return n;
  }

  std::mt19937 random_;
  bool outside_;
};

}  // namespace lantern::test
