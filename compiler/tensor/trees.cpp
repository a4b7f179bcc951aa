// The fold of a batch of trees.
#include "lantern/compiler/tensor/trees.hpp"

#include <algorithm>
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
  FoldState(const TreeFold& fold, const Location& loc) : fold_(fold), b_{loc} {}

  Datums initial() const {
    const Datum rows = b_.add(b_.size(fold_.left, 0), Build::integer(1));
    Datums all;
    for (const Datum& start : fold_.start) {
      Indices sizes{rows};
      for (const Datum& size : b_.sizes(start)) sizes.push_back(size);
      all.push_back(
          with_row(b_.fill(Datum::zero(ir::Type(start.type().element())), sizes), Build::integer(0), start));
    }
    return all;
  }
  /// Of the same types, which results must have.
  void require_type(std::size_t i, const ir::Type& got, bool row) const {
    const ir::Type& want = fold_.start[i].type();
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
    if (several && v.type().is_float_element())
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
  Datums rows(const Datums& states, const Datum& numbers) const {
    Datums all;
    for (const Datum& s : states) all.push_back(take_along(s, 0, numbers, b_.loc));
    return all;
  }

 private:
  const TreeFold& fold_;
  Build b_;
};

/// Node by node, in the order of the batch: children come before their parents.
Datums by_node(const TreeFold& fold, const Location& loc) {
  const Build b{loc};
  const FoldState state(fold, loc);
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

/// The body of a fold, staged once for one node, in a block that is removed again.
class StagedBody {
 public:
  StagedBody(Staging& s, const TreeFold& fold, const Location& loc) : staging_(s), around_(s.block()) {
    holder_ = s.builder(loc).op(Opcode::loop_, {});
    block_ = s.module().new_block(holder_, s.current()->function);
    holder_->blocks.push_back(block_);
    const auto add = [&](const ir::Type& type) { return Datum::node(s.module().add_param(block_, type)); };
    NodeData node;
    node.index = add(ir::I64);
    node.is_leaf = add(ir::Bool);
    node.no_left = add(ir::Bool);
    node.no_right = add(ir::Bool);
    Datums left, right;
    for (const Datum& d : fold.start) left.push_back(add(d.type()));
    for (const Datum& d : fold.start) right.push_back(add(d.type()));
    FunctionRegion region(s, loc);
    s.set_block(block_);
    try {
      const std::vector<ir::Value*> results = s.use(fold.combine(node, left, right), loc);
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

  /// The results of all nodes of a phase: of leaves, or of others, by the rows of their children.
  template <class Children>
  Datums run(const FoldState& state, std::size_t components, const Datum& lo, const Datum& hi, bool leaves,
             const Datum& no_left, const Datum& no_right, const Children& children,
             const Location& loc) const {
    const Build b{loc};
    BatchedRows rows(staging_, b.sub(hi, lo), loc);
    const auto flag = [&](const Datum& d) {
      return leaves ? RowValue::same(Datum::integer(1, ir::Bool)) : RowValue::each(d);
    };
    rows.bind(block_->params[0], RowValue::numbers(lo));
    rows.bind(block_->params[1], RowValue::same(Datum::integer(leaves ? 1 : 0, ir::Bool)));
    rows.bind(block_->params[2], flag(no_left));
    rows.bind(block_->params[3], flag(no_right));
    for (std::size_t side = 0; side < 2; ++side)
      for (std::size_t k = 0; k < components; ++k) {
        const ir::Value* const param = block_->params[4 + side * components + k];
        if (used_.contains(param)) rows.bind(param, children(side, k));
      }
    Datums results;
    for (const RowValue& v : rows.run(block_)) results.push_back(rows.rows_of(v));
    for (std::size_t k = 0; k < components; ++k) state.require_type(k, results[k].type(), true);
    return results;
  }

 private:
  Staging& staging_;
  ir::Block *around_, *block_ = nullptr;
  ir::Op* holder_ = nullptr;
  std::unordered_set<const ir::Value*> used_;
};

/// Level by level: the leaves, then a loop over the heights above them.
Datums by_level(Staging& s, const TreeFold& fold, const Location& loc) {
  const Build b{loc};
  const FoldState state(fold, loc);
  const std::size_t components = fold.start.size();
  const StagedBody body(s, fold, loc);
  const auto add_rows = [&](const Datums& now, const Datum& lo, const Datums& results) {
    Datums next;
    for (std::size_t k = 0; k < components; ++k)
      next.push_back(state.with_rows(now[k], b.add(lo, Build::integer(1)), results[k]));
    return next;
  };
  const Datum zero = Build::integer(0), one = Build::integer(1), end = b.get(fold.levels, {one});
  const Datums leaves = body.run(
      state, components, zero, end, true, {}, {},
      [&](std::size_t, std::size_t k) { return RowValue::same(fold.start[k]); }, loc);
  return b.loop(one, b.sub(b.size(fold.levels, 0), one), add_rows(state.initial(), zero, leaves),
                [&](const Datum& level, const Datums& now) {
                  const Datum lo = b.get(fold.levels, {level}), hi = b.get(fold.levels, {b.add(level, one)});
                  const auto part = [&](const Datum& t) {
                    return perform({Opcode::slice_, 0, loc}, {t, lo, hi});
                  };
                  const Datum children[] = {part(fold.left), part(fold.right)};
                  const auto none = [&](const Datum& t) { return b.binary(Opcode::eq_, t, zero); };
                  return add_rows(now, lo,
                                  body.run(
                                      state, components, lo, hi, false, none(children[0]), none(children[1]),
                                      [&](std::size_t side, std::size_t k) {
                                        return RowValue::each(take_along(now[k], 0, children[side], loc));
                                      },
                                      loc));
                });
}

/// Nothing where a level cannot do at once what the body does.
std::optional<Datums> try_by_level(Staging& s, const TreeFold& fold, const Location& loc) {
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

}  // namespace

Datums fold_trees(const TreeFold& fold, const TreeOptions& options, const Location& loc) {
  const FoldState state(fold, loc);
  std::optional<Datums> states;
  Staging* const s = context().staging;
  if (s && options.by_level) states = try_by_level(*s, fold, loc);
  if (!states) states = by_node(fold, loc);
  return state.rows(*states, fold.roots);
}

}  // namespace lantern::core::detail
