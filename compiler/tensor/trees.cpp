// The fold of a batch of trees.
#include "lantern/compiler/tensor/trees.hpp"

#include <algorithm>
#include <functional>
#include <optional>
#include <unordered_set>

#include "lantern/compiler/passes/support/remarks.hpp"
#include "lantern/compiler/staging/region.hpp"
#include "lantern/compiler/staging/staging.hpp"
#include "lantern/compiler/tensor/batch_rows.hpp"
#include "lantern/compiler/tensor/index.hpp"
#include "lantern/ir/error.hpp"

namespace lantern::core::detail {

namespace {

/// What the nodes' results are kept in: for each component a tensor with a row for each node, and row 0 for
/// the empty tree, which is init.
class FoldState {
 public:
  /// `by_elements`: rows are written element by element, so that in reverse mode their adjoints are tensors of their own. Else
  /// they are parts of the state's adjoint, which a loop that takes them as its state would copy as a whole.
  FoldState(Datum nodes, const Datums& start, const Location& loc, bool by_elements = false)
      : nodes_(std::move(nodes)), start_(start), b_{loc}, by_elements_(by_elements) {}

  Datums initial() const {
    const Datum rows = b_.add(nodes_, Build::integer(1));
    Datums all;
    for (const Datum& start : start_) {
      Indices sizes{rows};
      for (const Datum& size : b_.sizes(start)) sizes.push_back(size);
      all.push_back(
          with_row(b_.fill(Datum::zero(ir::Type(start.type().element())), sizes), Build::integer(0), start));
    }
    return all;
  }
  /// Of the same types, which results must have.
  void require_type(std::size_t i, const ir::Type& got, bool row) const {
    const ir::Type& want = start_[i].type();
    const int rank = got.rank() - (row ? 1 : 0);
    if (got.element() != want.element() || rank != want.rank())
      raise_at(b_.loc,
               "TREE: expected results of init's types, got another for component " + std::to_string(i + 1));
  }
  Datum with_row(const Datum& state, const Datum& row, const Datum& v) const {
    if (v.type().is_scalar()) return b_.set(state, {row}, v);
    if (v.type().is_float_element()) return perform({Opcode::add_take_, 0, b_.loc}, {state, row, v});
    return with_rows(state, row, v, false);
  }
  /// Rows from `first` on, which are zero so far.
  Datum with_rows(const Datum& state, const Datum& first, const Datum& v, bool several = true) const {
    if (several && !by_elements_ && v.type().is_float_element())
      return perform({Opcode::add_slice_, 0, b_.loc}, {state, first, v});
    return b_.points(b_.sizes(v), {state}, [&](const Indices& at, const Datums& now) {
      Indices to = at;
      if (several)
        to[0] = b_.add(to[0], first);
      else
        to.insert(to.begin(), first);
      return Datums{b_.set(now[0], to, b_.get(v, at))};
    })[0];
  }
  /// A copy: reverse mode keeps the row, not the state that it is a part of.
  Datum row(const Datum& state, const Datum& number) const {
    Indices sizes = b_.sizes(state);
    sizes.erase(sizes.begin());
    return b_.tabulate(state.type().element(), sizes, [&](Indices at) {
      at.insert(at.begin(), number);
      return b_.get(state, at);
    });
  }

 private:
  Datum nodes_;
  const Datums& start_;
  Build b_;
  bool by_elements_;
};

/// Node by node, in the order of the batch: children come before their parents.
Datums by_node(const TreeFold& fold, const Location& loc) {
  const Build b{loc};
  const FoldState state(b.size(fold.left, 0), fold.start, loc);
  return b.loop(
      Build::integer(0), b.size(fold.left, 0), state.initial(), [&](const Datum& i, const Datums& now) {
        const Datum left = b.get(fold.left, {i}), right = b.get(fold.right, {i}), none = Build::integer(0);
        NodeData node;
        node.index = i;
        node.no_left = b.binary(Opcode::eq_, left, none);
        node.no_right = b.binary(Opcode::eq_, right, none);
        node.is_leaf = b.binary(Opcode::land_, node.no_left, node.no_right);
        Datums of_left, of_right;
        for (const Datum& s : now) {
          of_left.push_back(state.row(s, left));
          of_right.push_back(state.row(s, right));
        }
        const Datums results = fold.combine(node, of_left, of_right);
        Datums next;
        for (std::size_t k = 0; k < now.size(); ++k) {
          state.require_type(k, results[k].type(), false);
          next.push_back(state.with_row(now[k], b.add(i, Build::integer(1)), results[k]));
        }
        return next;
      });
}

/// The same of graphs.
Datums by_node(const DagFold& fold, const Location& loc) {
  const Build b{loc};
  const Datum zero = Build::integer(0), one = Build::integer(1), nodes = b.sub(b.size(fold.first, 0), one);
  const FoldState state(nodes, fold.start, loc);
  return b.loop(zero, nodes, state.initial(), [&](const Datum& i, const Datums& now) {
    const Datum first = b.get(fold.first, {i}), count = b.sub(b.get(fold.first, {b.add(i, one)}), first);
    DagNodeData node{i, b.binary(Opcode::eq_, count, zero), count, {}};
    node.child = [&](const Datum& k, const Location& at) {
      const Build here{at};
      here.require(here.binary(Opcode::land_, here.binary(Opcode::le_, zero, k), here.less(k, count)),
                   "children: expected an index from 0 to below {}, got {}", {count, k});
      const Datum row = here.get(fold.children, {here.add(first, k)});
      Datums all;
      for (const Datum& s : now) all.push_back(state.row(s, row));
      return all;
    };
    const Datums results = fold.combine(node);
    Datums next;
    for (std::size_t k = 0; k < now.size(); ++k) {
      state.require_type(k, results[k].type(), false);
      next.push_back(state.with_row(now[k], b.add(i, one), results[k]));
    }
    return next;
  });
}

/// The body of a fold, staged once for one node, in a block that is removed again.
class StagedBody {
 public:
  StagedBody(Staging& s, const std::vector<ir::Type>& params, const std::function<Datums(const Datums&)>& body,
             const Location& loc)
      : staging_(s), around_(s.block()) {
    holder_ = s.builder(loc).op(Opcode::loop_, {});
    block_ = s.module().new_block(holder_, s.current()->function);
    holder_->blocks.push_back(block_);
    Datums given;
    for (const ir::Type& type : params) given.push_back(Datum::node(s.module().add_param(block_, type)));
    FunctionRegion region(s, loc);
    s.set_block(block_);
    try {
      const std::vector<ir::Value*> results = s.use(body(given), loc);
      s.builder(loc).yield(results);
    } catch (...) {
      s.set_block(around_);
      throw;
    }
    s.set_block(around_);
    region.leave();
    ir::walk(block_, [&](const ir::Op* op) { used_.insert(op->operands.begin(), op->operands.end()); });
  }
  StagedBody(const StagedBody&) = delete;
  StagedBody& operator=(const StagedBody&) = delete;
  ~StagedBody() {
    std::erase(around_->ops, holder_);
    std::unordered_set<const ir::Op*> gone;
    ir::walk(block_, [&](const ir::Op* op) { gone.insert(op); });
    for (const ir::Function* f : staging_.module().functions())
      if (StagedFunction* const staged = staging_.find(f))
        std::erase_if(staged->calls, [&](const StagedFunction::CallSite& c) { return gone.contains(c.op); });
  }

  /// The results of nodes lo to below hi at once; `given` makes the value of a parameter that is used.
  Datums run(const FoldState& state, const Datum& lo, const Datum& hi,
             const std::function<RowValue(std::size_t param)>& given, const Location& loc) const {
    const Build b{loc};
    BatchedRows rows(staging_, b.sub(hi, lo), loc);
    for (std::size_t i = 0; i < block_->params.size(); ++i)
      if (used_.contains(block_->params[i])) rows.bind(block_->params[i], given(i));
    Datums results;
    for (const RowValue& v : rows.run(block_)) results.push_back(rows.rows_of(v));
    for (std::size_t k = 0; k < results.size(); ++k) state.require_type(k, results[k].type(), true);
    return results;
  }

 private:
  Staging& staging_;
  ir::Block *around_, *block_ = nullptr;
  ir::Op* holder_ = nullptr;
  std::unordered_set<const ir::Value*> used_;
};

/// The leaves, then a loop over the heights above them; `run` makes the results of nodes lo to below hi.
Datums over_levels(const FoldState& state, const Datum& levels,
                   const std::function<Datums(const Datums& now, const Datum& lo, const Datum& hi, bool leaves)>& run,
                   const Location& loc) {
  const Build b{loc};
  const Datum zero = Build::integer(0), one = Build::integer(1);
  const auto with_nodes = [&](const Datums& now, const Datum& lo, const Datum& hi, bool leaves) {
    const Datums results = run(now, lo, hi, leaves);
    Datums next;
    for (std::size_t k = 0; k < now.size(); ++k)
      next.push_back(state.with_rows(now[k], b.add(lo, one), results[k]));
    return next;
  };
  return b.loop(one, b.sub(b.size(levels, 0), one), with_nodes(state.initial(), zero, b.get(levels, {one}), true),
                [&](const Datum& level, const Datums& now) {
                  return with_nodes(now, b.get(levels, {level}), b.get(levels, {b.add(level, one)}), false);
                });
}

/// A level of trees: the children's results are gathered before the body.
Datums by_level(Staging& s, const TreeFold& fold, const Location& loc) {
  const Build b{loc};
  const FoldState state(b.size(fold.left, 0), fold.start, loc);
  const std::size_t components = fold.start.size();
  std::vector<ir::Type> params{ir::I64, ir::Bool, ir::Bool, ir::Bool};
  for (int side = 0; side < 2; ++side)
    for (const Datum& d : fold.start) params.push_back(d.type());
  const StagedBody body(
      s, params,
      [&](const Datums& p) {
        const auto side = [&](std::size_t first) {
          return Datums(p.begin() + static_cast<std::ptrdiff_t>(first),
                        p.begin() + static_cast<std::ptrdiff_t>(first + components));
        };
        return fold.combine({p[0], p[1], p[2], p[3]}, side(4), side(4 + components));
      },
      loc);
  return over_levels(
      state, fold.levels,
      [&](const Datums& now, const Datum& lo, const Datum& hi, bool leaves) {
        const auto part = [&](const Datum& t) { return perform({Opcode::slice_, 0, loc}, {t, lo, hi}); };
        Datums children;
        if (!leaves) children = {part(fold.left), part(fold.right)};
        return body.run(
            state, lo, hi,
            [&](std::size_t param) {
              if (param == 0) return RowValue::numbers(lo);
              if (param == 1 || (leaves && param < 4)) return RowValue::same(Datum::integer(leaves ? 1 : 0, ir::Bool));
              if (param < 4) return RowValue::each(b.binary(Opcode::eq_, children[param - 2], Build::integer(0)));
              const std::size_t side = (param - 4) / components, k = (param - 4) % components;
              if (leaves) return RowValue::same(fold.start[k]);
              return RowValue::each(take_along(now[k], 0, children[side], loc));
            },
            loc);
      },
      loc);
}

/// A level of graphs: the results of all children of the level's nodes, which lie in one piece of the list of children, are
/// gathered before the body; it takes those of each node from there. Reverse mode then works on a level, not on all nodes.
Datums by_level(Staging& s, const DagFold& fold, const Location& loc) {
  const Build b{loc};
  const Datum zero = Build::integer(0), one = Build::integer(1);
  const FoldState state(b.sub(b.size(fold.first, 0), one), fold.start, loc, true);
  std::vector<ir::Type> params{ir::I64, ir::Bool, ir::I64, ir::I64};  // index, leaf, first child, count of children
  for (const Datum& d : fold.start) {
    std::vector<std::int64_t> dims{ir::dynamic};
    if (d.type().is_tensor()) dims.insert(dims.end(), d.type().dims().begin(), d.type().dims().end());
    params.push_back(ir::Type::tensor(d.type().element(), dims));
  }
  const StagedBody body(
      s, params,
      [&](const Datums& p) {
        DagNodeData node{p[0], p[1], p[3], {}};
        node.child = [&](const Datum& k, const Location& at) {
          const Build here{at};
          const Datum inside = here.binary(Opcode::land_, here.binary(Opcode::le_, zero, k), here.less(k, p[3]));
          // Of a child that is not there the row is outside of those that are, which is an error.
          const Datum row = here.select(inside, here.add(p[2], k), Build::integer(-1));
          Datums all;
          for (std::size_t i = 4; i < p.size(); ++i)
            all.push_back(fold.start[i - 4].type().is_scalar() ? here.get(p[i], {row})
                                                               : perform({Opcode::take_, 0, at}, {p[i], row}));
          return all;
        };
        return fold.combine(node);
      },
      loc);
  return over_levels(
      state, fold.levels,
      [&](const Datums& now, const Datum& lo, const Datum& hi, bool leaves) {
        const auto part = [&](const Datum& t, const Datum& from, const Datum& to) {
          return perform({Opcode::slice_, 0, loc}, {t, from, to});
        };
        const Datum first = b.get(fold.first, {lo}), end = b.get(fold.first, {hi});
        const Datum children = part(fold.children, first, end);
        return body.run(
            state, lo, hi,
            [&](std::size_t param) {
              if (param == 0) return RowValue::numbers(lo);
              if (param == 1) return RowValue::same(Datum::integer(leaves ? 1 : 0, ir::Bool));
              if (param > 3) return RowValue::same(take_along(now[param - 4], 0, children, loc));
              if (leaves) return RowValue::same(zero);
              const Datum begins = part(fold.first, lo, hi);
              if (param == 3) return RowValue::each(b.sub(part(fold.first, b.add(lo, one), b.add(hi, one)), begins));
              return RowValue::each(b.sub(begins, broadcast_like(first, begins, loc)));
            },
            loc);
      },
      loc);
}

/// Nothing where a level cannot do at once what the body does.
template <class Fold>
std::optional<Datums> try_by_level(Staging& s, const Fold& fold, const Location& loc) {
  Staging::Attempt attempt(s);
  try {
    Datums states = by_level(s, fold, loc);
    attempt.keep();
    passes::remark("batch_trees", loc, "runs level by level");
    return states;
  } catch (const NotBatched& e) {
    const std::string at = e.loc.known() ? " (" + e.loc.str() + ")" : "";
    passes::remark("batch_trees", loc, "runs node by node: the body " + e.reason + at);
    return {};
  }
}

template <class Fold>
Datums folded(const Fold& fold, const TreeOptions& options, const Location& loc) {
  std::optional<Datums> states;
  Staging* const s = context().staging;
  if (s && options.by_level) states = try_by_level(*s, fold, loc);
  if (!states) states = by_node(fold, loc);
  Datums all;
  for (const Datum& state : *states) all.push_back(take_along(state, 0, fold.roots, loc));
  return all;
}

}  // namespace

Datums fold_trees(const TreeFold& fold, const TreeOptions& options, const Location& loc) {
  return folded(fold, options, loc);
}
Datums fold_dags(const DagFold& fold, const TreeOptions& options, const Location& loc) {
  return folded(fold, options, loc);
}

}  // namespace lantern::core::detail
