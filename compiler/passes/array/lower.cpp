// Which tensor operations share a nest of loops, and where it is.
//
// A block is walked in order. Tensor operations wait: an operation joins a nest that waits already if it has
// the same index space and reads what the nest makes at the current point alone. What runs in between and
// needs nothing of a waiting nest stays where it is; what does need something, and may not wait itself, has
// it written in front of it.
//
// Nests have levels: a nest reads whole results only of nests of lower levels. So no two ever wait for each
// other.
#include "lantern/compiler/passes/array/lower.hpp"

#include <algorithm>
#include <memory>
#include <optional>
#include <unordered_map>
#include <unordered_set>

#include "lantern/compiler/passes/analysis/shapes.hpp"
#include "lantern/compiler/passes/array/accumulate.hpp"
#include "lantern/compiler/passes/array/expand.hpp"
#include "lantern/compiler/passes/array/lower_nest.hpp"
#include "lantern/compiler/passes/array/lower_product.hpp"
#include "lantern/compiler/passes/array/merge_indices.hpp"
#include "lantern/compiler/passes/array/product_order.hpp"
#include "lantern/compiler/passes/canonical/shape_checks.hpp"
#include "lantern/ir/error.hpp"
#include "lantern/ir/shape.hpp"

namespace lantern::passes {

namespace {

using ir::Builder;
using ir::Notation;

/// Nests of more operations would not keep their numbers in registers.
constexpr std::size_t most_members = 48;
/// How many waiting nests an operation is offered.
constexpr std::size_t most_offers = 12;
/// How far into its blocks an operation is searched for what it needs.
constexpr std::size_t most_searched = 4000;
constexpr int longest_way = 64;  ///< of elements to where they come from

bool is_lowered(const Op& op) {
  return ir::is_pointwise(op) || (ir::info(op.code).in_notation() && !op.results.empty());
}

/// A size: a number, or dimension `dimension` of a tensor, or an integer (dimension -1).
struct SizeKey {
  const Value* value = nullptr;
  std::int64_t dimension = 0;
  bool operator==(const SizeKey&) const = default;
};
struct SizeHash {
  std::size_t operator()(const SizeKey& k) const {
    return std::hash<const void*>()(k.value) * 31 + static_cast<std::size_t>(k.dimension);
  }
};

/// Operations that wait to become one nest.
struct Group {
  std::vector<SizeKey> space;
  std::vector<ir::Size> sizes;  ///< where they are found
  std::vector<NestMember> members;
  std::unordered_set<const Value*> roots;  ///< the tensors that it reads
  int level = 1;
  bool written = false;
  bool product = false;  ///< of matrices, which may be large: alone
};

class Lowering {
 public:
  Lowering(ir::Function& function, const LowerOptions& options)
      : function_(function),
        module_(*function.module),
        fuse_(options.fuse),
        packed_(options.packed),
        windows_(options.windows),
        keep_sums_(options.keep_sums),
        merge_(options.merge),
        reassociate_(options.reassociate),
        shapes_(function) {}

  bool run() {
    std::vector<Op*> all;
    std::vector<Block*> blocks;
    std::unordered_set<const Block*> seen;
    ir::walk(function_.body, [&](Op* op) {
      const bool accumulation = op->is(Opcode::ref_acc_) && ir::concrete_notation(*op);
      if (!is_lowered(*op) && !accumulation) return;
      if (keep_sums_ && adds_to_loop(*op)) kept_.insert(op);
      if (kept_.contains(op)) return;
      all.push_back(op);
      if (seen.insert(op->parent).second) blocks.push_back(op->parent);
    });
    if (all.empty()) return false;
    keep_written_shape_checks(function_, all);
    ir::walk(function_.body, [&](Op* op) {
      if (op->is(Opcode::dim_)) follow(op);
      for (Value* v : op->operands) uses_[v].push_back(op);
      shapes_.note(op);
    });
    follow_shapes();
    for (Block* block : blocks) lower(block);
    ir::walk(function_.body, [&](Op* op) {
      for (Value*& v : op->operands) v = now(v);
    });
    return true;
  }

 private:
  /// What is made element by element is made where it is added.
  static bool adds_to_loop(const Op& op) {
    return op.is(Opcode::add_) && op.result()->type.is_tensor() &&
           std::ranges::any_of(op.operands,
                               [](const Value* v) { return v->def && v->def->is(Opcode::loop_); }) &&
           std::ranges::none_of(op.operands, [](const Value* v) {
             return v->def && ir::is_pointwise(*v->def) && !adds_to_loop(*v->def);
           });
  }

  Value* now(Value* v) const {
    for (auto it = replaced_.find(v); it != replaced_.end(); it = replaced_.find(v)) v = it->second;
    return v;
  }
  void replace(Value* from, Value* to) {
    if (!to->name) to->name = from->name;
    replaced_[from] = to;
    stands_for_.emplace(to, from);
  }

  // ---- sizes

  /// A size of what an operation makes is one of its operands': the tensor itself may not be kept.
  void follow(Op* dim) {
    const ir::Size s = source(dim->operands[0], static_cast<std::size_t>(dim->integer));
    if (s.dimension < 0) {
      replaced_[dim->result()] = s.value;
      return;
    }
    dim->operands[0] = s.value;
    dim->integer = s.dimension;
  }

  ir::Size source(Value* t, std::size_t d) const { return shapes_.source(t, d); }

  /// Zeros with the shape of what is popped have sizes that are available: nothing is pushed for their sake.
  void follow_shapes() {
    std::vector<Op*> zeros;
    ir::walk(function_.body, [&](Op* op) {
      if (op->is(Opcode::zeros_like_) && op->operands[0]->def && op->operands[0]->def->is(Opcode::pop_))
        zeros.push_back(op);
    });
    for (Op* op : zeros) {
      const ir::Type type = op->result()->type;
      std::vector<ir::Size> sizes;
      for (std::size_t d = 0; d < type.dims().size(); ++d) sizes.push_back(source(op->operands[0], d));
      if (std::ranges::any_of(sizes, [&](const ir::Size& s) { return s.value == op->operands[0]; })) continue;
      Builder b = Builder::before(op);
      std::vector<Value*> operands{zero(b, type.element())};
      for (const ir::Size& s : sizes) operands.push_back(size_value(b, s));
      op->code = Opcode::fill_;
      op->operands = std::move(operands);
    }
  }

  SizeKey key(const ir::Size& s) {
    if (s.dimension >= 0) {
      const std::int64_t known = s.value->type.dims()[static_cast<std::size_t>(s.dimension)];
      if (known != ir::dynamic) return {nullptr, known};
    } else if (const Op* c = constant(s.value)) {
      return {nullptr, c->integer};
    }
    return found({s.value, s.dimension});
  }
  SizeKey found(SizeKey k) {
    for (auto it = same_.find(k); it != same_.end(); it = same_.find(k)) k = it->second;
    return k;
  }
  /// Operands whose shapes the operation asks to be the same, which is checked by now.
  void note_same_sizes(const Op& op) {
    for (const EqualSizes& e : equal_sizes(op)) {
      const SizeKey a = key(source(e.a.value, static_cast<std::size_t>(e.a.dimension))),
                    b = key(source(e.b.value, static_cast<std::size_t>(e.b.dimension)));
      if (a == b) continue;
      if (a.value)
        same_[a] = b;
      else if (b.value)
        same_[b] = a;
    }
  }

  Value* size_value(Builder& b, const ir::Size& s) {
    if (s.dimension < 0) return constant(s.value) ? b.again(*s.value->def) : now(s.value);
    const std::int64_t known = s.value->type.dims()[static_cast<std::size_t>(s.dimension)];
    return known != ir::dynamic ? b.integer(known) : b.emit(Opcode::dim_, {now(s.value)}, s.dimension);
  }

  // ---- what an operation reads

  static bool may_lie_outside(const NestIndices& at) {
    return std::ranges::any_of(at, [](const NestIndex& i) { return i.may_lie_outside(); });
  }
  /// Where the operand of a move has the element that lies at `at` of its result. Nothing where that may lie outside
  /// the result, which counts as zero, and the operand does not have that dimension as it is.
  static std::optional<NestIndices> moved(const Notation& n, const ir::Subscripts& places, const NestIndices& at) {
    const auto of = [&](char letter) {
      std::size_t d = 0;
      while (!n.result[d].is(letter)) ++d;
      return d;
    };
    std::vector<bool> kept(at.size(), false);
    NestIndices from;
    for (const ir::Subscript& s : places) {
      if (s.is_letter()) {
        kept[of(s.letter())] = true;
        from.push_back(at[of(s.letter())]);
        continue;
      }
      NestIndex sum{{}, s.constant, true};
      for (const ir::Subscript::Term& t : s.terms) {
        const NestIndex& i = at[of(t.letter)];
        sum.constant += t.factor * i.constant;
        for (const auto& [k, factor] : i.terms) {
          const auto same = std::ranges::find(sum.terms, k, &std::pair<int, std::int64_t>::first);
          if (same == sum.terms.end()) sum.terms.emplace_back(k, t.factor * factor);
          else same->second += t.factor * factor;
        }
      }
      std::erase_if(sum.terms, [](const auto& t) { return t.second == 0; });
      from.push_back(std::move(sum));
    }
    for (std::size_t d = 0; d < at.size(); ++d)
      if (!kept[d] && at[d].may_lie_outside()) return {};
    return from;
  }

  /// An element of a value, of what makes its elements from others of those.
  Element resolved(Value* v, NestIndices at) {
    for (int steps = 0; steps < longest_way; ++steps) {
      v = now(v);
      const Op* def = v->def;
      if (!v->type.is_tensor()) return {v, {}};
      if (!def) break;
      if (def->is(Opcode::fill_) && holds_number(*def) && !may_lie_outside(at)) return {now(def->operands[0]), {}};
      if (def->is(Opcode::zeros_like_)) return {zero(v->type.element()), {}};
      if (def->is(Opcode::stop_gradient_)) {
        v = def->operands[0];
        continue;
      }
      if (!fuse_ || !ir::info(def->code).in_notation()) break;
      const Notation n = *ir::concrete_notation(*def);
      const auto factor = moved_operand(*def);
      if (!factor) break;
      auto from = moved(n, n.operands[*factor].at, at);
      if (!from) break;
      at = std::move(*from);
      v = def->operands[*factor];
    }
    return {v, std::move(at)};
  }

  /// A number throughout, in memory that there is: a size may be negative or too large, which making it
  /// tells.
  bool holds_number(const Op& fill) const {
    constexpr std::int64_t large = std::int64_t{1} << 40;
    if (const Op* v = fill.operands[0]->def; v && v->is(Opcode::undef_)) return false;
    std::int64_t product = 1;
    for (std::size_t d = 0; d + 1 < fill.operands.size(); ++d) {
      const ir::Size s = source(fill.result(), d);
      if (s.dimension >= 0 && s.value != fill.result()) continue;
      const Op* c = s.dimension < 0 ? constant(s.value) : nullptr;
      const std::int64_t size = c ? c->integer : fill.result()->type.dims()[d];
      if (size < 0 || (size > 0 && product > large / size)) return false;
      product *= size;
    }
    return true;
  }

  Value* zero(ir::Kind kind) {
    Builder b(module_, block_);
    return zero(b, kind);
  }
  static Value* zero(Builder& b, ir::Kind kind) {
    const ir::Type type(kind);
    return type.is_float_element() ? b.number(0, type) : b.integer(0, type);
  }

  NestIndices places(const Op& op, const ir::Subscripts& at, const std::string& letters) const {
    NestIndices out;
    for (const ir::Subscript& s : at) {
      NestIndex i{{}, s.constant, !s.is_letter() && op.integer == ir::inside && ir::is_einsum(op.code)};
      for (const auto& t : s.terms) {
        const int k = static_cast<int>(letters.find(t.letter));
        // "[2k-k]" is k, where the places are known to lie inside.
        const auto same = std::ranges::find(i.terms, k, &std::pair<int, std::int64_t>::first);
        if (i.inside && same != i.terms.end())
          same->second += t.factor;
        else
          i.terms.emplace_back(k, t.factor);
      }
      if (i.inside) std::erase_if(i.terms, [](const auto& t) { return t.second == 0; });
      out.push_back(std::move(i));
    }
    return out;
  }

  /// The operation as a member of a nest of its own.
  struct Described {
    NestMember member;
    std::vector<ir::Size> sizes;
    std::vector<ir::Size> result_sizes;
  };
  Described described(Op* op) {
    Described d;
    d.member.op = op;
    d.member.in_order = !reassociate_ && op->loc.part != ir::Part::backward;
    const ir::Type& type = op->result()->type;
    if (ir::is_pointwise(*op)) {
      const auto rank = static_cast<std::size_t>(type.rank());
      d.member.result = every_index(rank);
      const std::size_t operands = op->is(Opcode::cast_like_) ? 1 : op->operands.size();
      for (std::size_t i = 0; i < operands; ++i)
        d.member.reads.push_back(resolved(op->operands[i], d.member.result));
      for (std::size_t k = 0; k < rank; ++k) d.sizes.push_back(source(op->result(), k));
      d.result_sizes = d.sizes;
      return d;
    }
    d.member.sums = true;
    const Notation n = *ir::concrete_notation(*op);
    const std::string order = loop_order(n);
    d.member.result = places(*op, n.result, order);
    for (std::size_t i = 0; i < n.operands.size(); ++i)
      if (n.is_factor(i))
        d.member.reads.push_back(resolved(op->operands[i], places(*op, n.operands[i].at, order)));
    if (n.accumulates) d.member.base = op->operands[0];
    const auto size_of = [&](const ir::SizeSource& s) {
      if (s.dimension < 0) return ir::Size{op->operands[s.operand], -1};
      return source(op->operands[s.operand], static_cast<std::size_t>(s.dimension));
    };
    for (const char c : order) d.sizes.push_back(size_of(*ir::size_source(n, c)));
    if (!n.accumulates)
      for (std::size_t k = 0; k < n.result.size(); ++k)
        d.result_sizes.push_back(size_of(*ir::result_size(n, k)));
    return d;
  }

  // ---- waiting operations

  Op* waiting(const Value* v) const { return v->def && waits_.contains(v->def) ? v->def : nullptr; }
  int level_of(Value* v) const {
    const auto it = levels_.find(now(v));
    return it == levels_.end() || !waiting(now(v)) ? 0 : it->second;
  }

  /// The level of what is read, but for what `group` makes at the current point; nothing where it reads other
  /// elements of that.
  std::optional<int> level_in(const Described& d, const Group* group) const {
    int level = 0;
    const auto needs = [&](Value* v) { level = std::max(level, level_of(v)); };
    for (const Element& e : d.member.reads) {
      const auto it = group_of_.find(e.of->def);
      const bool own = group && it != group_of_.end() && it->second == group && waiting(e.of);
      if (!own) {
        needs(e.of);
        continue;
      }
      const NestMember& made = member_of(*group, e.of->def);
      if (made.sums || e.at != every_index(group->space.size())) return {};
    }
    if (d.member.base && !continues(d, group)) needs(d.member.base);
    for (const auto& list : {d.sizes, d.result_sizes})
      for (const ir::Size& s : list) needs(s.value);
    return level;
  }

  /// What is added to is what `group` adds to: one tensor, of which nothing uses what it is in between.
  bool continues(const Described& d, const Group* group) const {
    const Op* const before = group ? waiting(d.member.base) : nullptr;
    if (!before) return false;
    const auto it = group_of_.find(before);
    if (it == group_of_.end() || it->second != group || uses_.at(before->result()).size() != 1) return false;
    const NestMember& made = member_of(*group, before);
    const auto at_each_point = [&](const NestMember& m) {
      std::vector<bool> found(group->space.size(), false);
      for (const NestIndex& i : m.result)
        for (const auto& [k, factor] : i.terms) found[static_cast<std::size_t>(k)] = true;
      return m.sums && m.base && !m.in_order && std::ranges::count(found, false) == 0;
    };
    return at_each_point(made) && at_each_point(d.member);
  }

  static const NestMember& member_of(const Group& g, const Op* op) {
    return *std::ranges::find_if(g.members, [&](const NestMember& m) { return m.op == op; });
  }

  bool shares(const Described& d, const Group& g) const {
    return std::ranges::any_of(d.member.reads, [&](const Element& e) {
      if (e.at.empty()) return false;
      const auto it = group_of_.find(e.of->def);
      return g.roots.contains(e.of) || (it != group_of_.end() && it->second == &g);
    });
  }

  void join(Op* op) {
    Described d = described(op);
    note_same_sizes(*op);
    std::vector<SizeKey> space;
    for (const ir::Size& s : d.sizes) space.push_back(key(s));
    const bool product = packed_ && may_be_large(d);
    Group* into = nullptr;
    std::size_t offers = 0;
    for (std::size_t i = open_.size(); fuse_ && !product && i-- > 0 && offers < most_offers;) {
      Group& g = *open_[i];
      if (g.written || g.product || g.space.size() != space.size() || space.empty()) continue;
      ++offers;
      for (SizeKey& k : g.space) k = found(k);
      if (g.space != space || g.members.size() >= most_members || !shares(d, g)) continue;
      const auto level = level_in(d, &g);
      if (!level || *level >= g.level) continue;
      into = &g;
      break;
    }
    if (!into) {
      groups_.push_back(std::make_unique<Group>());
      into = groups_.back().get();
      into->level = 1 + *level_in(d, nullptr);
      into->space = std::move(space);
      into->sizes = d.sizes;
      into->product = product;
      open_.push_back(into);
    }
    for (const Element& e : d.member.reads)
      if (!e.at.empty()) into->roots.insert(e.of);
    result_sizes_[op] = std::move(d.result_sizes);
    into->members.push_back(std::move(d.member));
    group_of_[op] = into;
    waits_.insert(op);
    order_.push_back(op);
    levels_[op->result()] = into->level;
  }

  // ---- the walk through a block

  void lower(Block* block) {
    block_ = block;
    const std::vector<Op*> ops = std::move(block->ops);
    block->ops.clear();
    open_.clear();
    same_.clear();
    for (Op* op : ops) {
      if (op->is(Opcode::ref_acc_) && ir::concrete_notation(*op)) {
        add_to_cell(op);
        continue;
      }
      if (is_lowered(*op) && !kept_.contains(op)) {
        if (fuse_ && !ir::is_pointwise(*op) && moved_operand(*op)) {
          note_same_sizes(*op);
          wait(op);
        } else {
          join(op);
        }
        if (!fuse_) write(op);
        continue;
      }
      const std::vector<Op*> needed = needs(op);
      const bool may_wait = is_pure(*op) &&
                            !op->is(Opcode::yield_) && !ir::updates_first(*op) && op->results.size() == 1;
      if (!needed.empty() && may_wait) {
        wait(op);
        continue;
      }
      for (Op* n : needed) write(n);
      write_readers(op);
      block_->ops.push_back(op);
    }
    waits_.clear();
    order_.clear();
  }

  void wait(Op* op) {
    int level = 0;
    for (Value* v : op->operands) level = std::max(level, level_of(v));
    waits_.insert(op);
    order_.push_back(op);
    levels_[op->result()] = level;
  }

  /// ref_acc[add_matmul] cell, a, b: the cell has a matmul b added.
  void add_to_cell(Op* op) {
    Notation n = *ir::concrete_notation(*op);
    const ir::Call call = ir::named(n, ir::without_base(n));
    Op* const sum = module_.new_op(call.code, block_);
    sum->loc = op->loc;
    if (call.text) sum->text = module_.intern(call.text);
    std::vector<ir::Type> types;
    for (const std::size_t i : call.order) {
      sum->operands.push_back(op->operands[i]);
      types.push_back(op->operands[i]->type);
      uses_[op->operands[i]].push_back(sum);
    }
    module_.add_result(sum, ir::infer_type(call.code, types, 0, {}, call.text));
    op->code = Opcode::ref_add_;
    op->integer = 0;
    op->text = nullptr;
    op->operands = {op->operands[0], sum->result()};
    uses_[sum->result()].push_back(op);
    join(sum);
    write(sum);
    block_->ops.push_back(op);
  }

  /// What an operation and its blocks use of what waits.
  std::vector<Op*> needs(const Op* op) const {
    std::vector<Op*> found;
    if (waits_.empty()) return found;
    const auto look = [&](const Op* user) {
      for (Value* v : user->operands)
        if (Op* const w = waiting(now(v))) found.push_back(w);
    };
    look(op);
    std::size_t searched = 0;
    for (Block* b : op->blocks)
      ir::walk(b, [&](const Op* inner) {
        if (++searched <= most_searched) look(inner);
        return searched <= most_searched;
      });
    if (searched > most_searched) {
      found.clear();
      std::ranges::copy_if(order_, std::back_inserter(found), [&](Op* w) { return waits_.contains(w); });
    }
    return found;
  }

  /// Nests that read a tensor which the operation may want to work in come first.
  void write_readers(const Op* op) {
    const bool works_in = ir::updates_first(*op) || !op->blocks.empty() || op->is(Opcode::call_);
    if (!works_in || open_.empty()) return;
    for (Value* v : op->operands) {
      if (!v->type.is_tensor()) continue;
      for (std::size_t i = 0; i < open_.size(); ++i)
        if (!open_[i]->written && open_[i]->roots.contains(now(v)) && needed_at_all(*open_[i]))
          write(open_[i]->members.back().op);
    }
  }
  bool needed_at_all(const Group& g) const {
    return std::ranges::any_of(g.members,
                               [&](const NestMember& m) { return uses_.contains(m.op->result()); });
  }

  // ---- writing what waits

  /// Writes an operation and all that it waits for.
  void write(Op* last) {
    std::vector<std::pair<Op*, bool>> stack{{last, false}};
    while (!stack.empty()) {
      auto [op, ready] = stack.back();
      stack.pop_back();
      if (!waits_.contains(op)) continue;
      const auto it = group_of_.find(op);
      Group* const group = it == group_of_.end() ? nullptr : it->second;
      if (ready) {
        if (group)
          write_nest(*group);
        else
          write_alone(op);
        continue;
      }
      stack.emplace_back(op, true);
      const auto also = [&](Value* v) {
        if (Op* const w = waiting(now(v))) {
          const auto other = group_of_.find(w);
          if (!group || other == group_of_.end() || other->second != group) stack.emplace_back(w, false);
        }
      };
      if (!group) {
        if (!ir::info(op->code).in_notation()) {
          for (Value* v : op->operands) also(v);
          continue;
        }
        const Described d = described(op);
        for (const Element& e : d.member.reads) also(e.of);
        for (const auto& list : {d.sizes, d.result_sizes})
          for (const ir::Size& s : list) also(s.value);
        continue;
      }
      for (const NestMember& m : group->members) {
        for (const Element& e : m.reads) also(e.of);
        if (m.base) also(m.base);
        for (const ir::Size& s : result_sizes_.at(m.op)) also(s.value);
      }
      for (const ir::Size& s : group->sizes) also(s.value);
    }
  }

  void write_alone(Op* op) {
    waits_.erase(op);
    if (!ir::info(op->code).in_notation()) {
      block_->ops.push_back(op);
      return;
    }
    Described d = described(op);
    if (all_one_number(d)) {
      Builder b(module_, block_, op->loc);
      std::vector<Value*> operands{d.member.reads[0].of};
      for (const ir::Size& s : d.result_sizes) operands.push_back(size_value(b, s));
      return replace(op->result(), b.emit(Opcode::fill_, operands, 0, op->result()->type.dims()));
    }
    Group g;
    g.sizes = d.sizes;
    result_sizes_[op] = d.result_sizes;
    g.members.push_back(std::move(d.member));
    write_nest(g);
  }
  static bool all_one_number(const Described& d) {
    return d.member.reads.size() == 1 && d.member.reads[0].at.empty() && !d.result_sizes.empty();
  }

  void write_nest(Group& g) {
    if (g.written) return;
    g.written = true;
    std::unordered_set<const Op*> members;
    for (const NestMember& m : g.members) {
      members.insert(m.op);
      waits_.erase(m.op);
    }
    Builder b(module_, block_, g.members.back().op->loc);
    LoweredNest nest;
    for (const ir::Size& s : g.sizes) nest.sizes.push_back(size_value(b, s));
    for (NestMember& m : g.members) {
      m.stored = needed_outside(m.op, members);
      for (Element& e : m.reads) e.of = now(e.of);
      if (m.base) m.base = now(m.base);
      if (!m.stored) continue;
      for (const ir::Size& s : result_sizes_.at(m.op)) m.sizes.push_back(size_value(b, s));
    }
    if (fuse_) take_over_memory(g, members);
    nest.members = g.members;
    std::vector<Value*> shapes(g.members.size(), nullptr);
    if (fuse_ && !g.product) shapes = merge_indices(b, nest, !merge_);
    const bool windows = fuse_ && merge_ && nest.members.size() == 1 && nest.members[0].stored && sums_windows(nest.members[0]);
    std::vector<Value*> results = g.product ? std::vector{emit_product(b, nest)}
                                  : windows ? std::vector{emit_windows(b, nest)}
                                            : emit_nest(b, nest);
    for (std::size_t i = 0; i < results.size(); ++i)
      if (results[i] && shapes[i]) results[i] = b.emit(Opcode::reshape_, {results[i], shapes[i]});
    for (std::size_t i = 0; i < results.size(); ++i)
      if (results[i]) replace(g.members[i].op->result(), results[i]);
    std::erase(open_, &g);
  }

  /// A product that a routine is to compute.
  bool may_be_large(const Described& d) const {
    std::vector<std::int64_t> sizes;
    for (const ir::Size& s : d.sizes) {
      const Op* c = s.dimension < 0 ? constant(s.value) : nullptr;
      sizes.push_back(s.dimension >= 0 ? s.value->type.dims()[static_cast<std::size_t>(s.dimension)]
                      : c              ? c->integer
                                       : ir::dynamic);
    }
    return calls_routine(d.member, sizes) || (windows_ && sums_windows(d.member));
  }

  bool needed_outside(const Op* op, const std::unordered_set<const Op*>& members) const {
    const auto uses = uses_.find(op->result());
    if (uses == uses_.end()) return false;
    return std::ranges::any_of(uses->second, [&](const Op* user) {
      if (members.contains(user)) return false;
      for (std::size_t i = 0; i < user->operands.size(); ++i)
        if (user->operands[i] == op->result() &&
            !(ir::only_shape(*user, i) && (is_lowered(*user) || user->is(Opcode::dim_))))
          return true;
      return false;
    });
  }

  /// A tensor that nothing else reads, and that this nest reads where it writes: results go where it lies.
  void take_over_memory(Group& g, const std::unordered_set<const Op*>& members) {
    const NestIndices point = every_index(g.sizes.size());
    std::vector<Value*> free;
    for (const NestMember& m : g.members)
      for (const Element& e : m.reads) {
        if (e.at != point || std::ranges::count(free, e.of) || members.contains(e.of->def)) continue;
        if (!is_own(*e.of) || !only_used_by(e.of, members)) continue;
        const bool alone = std::ranges::all_of(g.members, [&](const NestMember& other) {
          return other.base != e.of && std::ranges::all_of(other.reads, [&](const Element& o) {
                   return o.of != e.of || o.at == point;
                 });
        });
        if (alone) free.push_back(e.of);
      }
    for (NestMember& m : g.members) {
      if (!m.stored || m.sums || m.result != point) continue;
      const auto fits =
          std::ranges::find_if(free, [&](const Value* v) { return v->type == m.op->result()->type; });
      if (fits == free.end()) continue;
      m.memory = *fits;
      free.erase(fits);
    }
  }
  /// Made in this block, or handed to an iteration of the loop around it.
  bool is_own(const Value& v) const {
    if (v.block != block_) return false;
    if (!v.def) return block_->parent && block_->parent->is(Opcode::loop_);
    if (v.def->is(Opcode::reshape_)) return is_own(*now(v.def->operands[0]));
    return v.def->is(Opcode::loop_, Opcode::call_, Opcode::fill_, Opcode::zeros_like_) ||
           ir::updates_first(*v.def);
  }
  /// Whether only these read the elements, or those of the tensor that this one is with another shape.
  bool only_used_by(const Value* v, const std::unordered_set<const Op*>& members) const {
    const auto uses = uses_.find(original(v));
    if (uses == uses_.end()) return false;
    const bool only = std::ranges::all_of(uses->second, [&](const Op* user) {
      if (members.contains(user)) return true;
      for (std::size_t i = 0; i < user->operands.size(); ++i)
        if (user->operands[i] == original(v) && !ir::only_shape(*user, i)) return false;
      return true;
    });
    return only && (!v->def || !v->def->is(Opcode::reshape_) || only_used_by(v->def->operands[0], {original(v)->def}));
  }
  /// The value of the program that this one represents.
  const Value* original(const Value* v) const {
    const auto it = stands_for_.find(v);
    return it == stands_for_.end() ? v : it->second;
  }

  ir::Function& function_;
  ir::Module& module_;
  bool fuse_, packed_, windows_, keep_sums_, merge_, reassociate_;
  Shapes shapes_;
  Block* block_ = nullptr;
  std::unordered_map<const Value*, std::vector<const Op*>> uses_;
  std::unordered_map<Value*, Value*> replaced_;
  std::unordered_map<const Value*, const Value*> stands_for_;
  std::unordered_map<SizeKey, SizeKey, SizeHash> same_;
  std::vector<std::unique_ptr<Group>> groups_;
  std::vector<Group*> open_;
  std::unordered_map<const Op*, Group*> group_of_;
  std::unordered_map<const Op*, std::vector<ir::Size>> result_sizes_;
  std::unordered_set<const Op*> kept_;
  std::unordered_set<Op*> waits_;
  std::vector<Op*> order_;  ///< in which they began to wait
  std::unordered_map<const Value*, int> levels_;
};

}  // namespace

bool lower(ir::Module& module, const LowerOptions& options) {
  bool any = expand(module);
  if (options.fuse) {
    any |= order_products(module);
    any |= accumulate(module);
  }
  for (ir::Function* f : module.functions()) any |= Lowering(*f, options).run();
  return any;
}

}  // namespace lantern::passes
