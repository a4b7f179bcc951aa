#include "lantern/compiler/passes/array/lower_nest.hpp"

#include <algorithm>
#include <map>
#include <unordered_map>
#include <unordered_set>

#include "lantern/compiler/passes/support/build_loop.hpp"
#include "lantern/ir/shape.hpp"

namespace lantern::passes {

namespace {

/// A member and its results on their way through the loops.
///
///     for i < m:            indices up to `depth` number the sums;
///       sum = 0             those after it are summed over
///       for j < n: sum += a[i,j] * x[j]
///       tensor[i] = sum
struct Output {
  const NestMember* member;
  std::size_t depth = 0;    ///< how many loops are around the place where the result is stored
  bool sum_of_all = false;  ///< a number
  bool adds = false;        ///< several points store at one place
  std::size_t owner = 0;    ///< the output that has the tensor: this one, or one that adds to it as well
  Value* tensor = nullptr;
  Value* sum = nullptr;

  bool in_loops(std::size_t rank) const { return member->sums && depth < rank; }
};

class Writer {
 public:
  Writer(ir::Builder& b, const LoweredNest& nest) : nest_(nest), rank_(nest.sizes.size()), builders_{b} {}

  std::vector<Value*> run() {
    const std::unordered_set<const Value*> continued = added_to_again();
    for (const NestMember& m : nest_.members)
      if (m.stored || continued.contains(m.op->result())) outputs_.push_back(begin(m));
    level(0);
    std::vector<Value*> results;
    std::size_t next = 0;
    for (const NestMember& m : nest_.members) {
      Value* result = nullptr;
      if (next < outputs_.size() && outputs_[next].member == &m) {
        if (m.stored) result = finished(outputs_[next]);
        ++next;
      }
      results.push_back(result);
    }
    return results;
  }

 private:
  ir::Builder& here() { return builders_.back(); }

  // ---- results

  /// Results of members that others add to in their turn, at the same point.
  std::unordered_set<const Value*> added_to_again() const {
    std::unordered_set<const Value*> found;
    for (auto m = nest_.members.rbegin(); m != nest_.members.rend(); ++m)
      if (m->base && (m->stored || found.contains(m->op->result())) && made_by(m->base))
        found.insert(m->base);
    return found;
  }
  const NestMember* made_by(const Value* v) const {
    const auto it =
        std::ranges::find_if(nest_.members, [&](const NestMember& m) { return m.op->result() == v; });
    return it == nest_.members.end() ? nullptr : &*it;
  }
  Value*& tensor_of(const Output& out) { return outputs_[out.owner].tensor; }

  Output begin(const NestMember& m) {
    Output out{&m};
    ir::Type type = m.op->result()->type;
    if (m.base) {
      type = m.base->type;
    } else if (type.is_tensor() && type.dims().size() != m.result.size()) {  // of merged indices
      std::vector<std::int64_t> dims;
      for (const Value* size : m.sizes)
        dims.push_back(constant(size) ? constant(size)->integer : ir::dynamic);
      type = ir::Type::tensor(type.element(), dims);
    }
    here().loc = m.op->loc;
    out.depth = rank_;
    std::vector<bool> in_result(rank_, false);
    for (const NestIndex& i : m.result)
      for (const auto& [k, factor] : i.terms) in_result[static_cast<std::size_t>(k)] = true;
    if (m.sums)
      while (out.depth > 0 && !in_result[out.depth - 1]) --out.depth;
    out.sum_of_all = !type.is_tensor();
    if (out.sum_of_all) return out;
    out.owner = outputs_.size();
    out.adds = m.base || static_cast<std::size_t>(std::ranges::count(in_result, true)) < out.depth;
    if (const NestMember* const before = m.base ? made_by(m.base) : nullptr)
      out.owner = std::ranges::find(outputs_, before, &Output::member)->owner;
    else if (m.base)
      out.tensor = m.base;
    else if (m.memory)
      out.tensor = m.memory;
    else
      out.tensor = memory(m, type, out.adds);
    return out;
  }

  Value* memory(const NestMember& m, const ir::Type& type, bool zeros) {
    ir::Builder& b = here();
    const ir::Type element(type.element());
    std::vector<Value*> operands{zeros ? b.zero(element) : b.undef(element)};
    operands.insert(operands.end(), m.sizes.begin(), m.sizes.end());
    return b.emit(Opcode::fill_, operands, 0, type.dims());
  }

  Value* finished(const Output& out) {
    if (!out.sum_of_all) return tensor_of(out);
    if (!out.member->base) return out.sum;
    return here().add({out.member->base, out.sum});
  }

  // ---- loops

  void level(std::size_t depth) {
    compute(depth);
    for (Output& out : outputs_)
      if (out.depth == depth && out.in_loops(rank_)) out.sum = zero(out);
    if (depth == rank_)
      at_point();
    else
      loop(depth);
    for (Output& out : outputs_)
      if (out.depth == depth && out.in_loops(rank_) && !out.sum_of_all) store(out, out.sum);
  }

  Value* zero(const Output& out) {
    here().loc = out.member->op->loc;
    const ir::Type element(out.member->op->result()->type.element());
    return element.is_float_element() ? here().number(0, element) : here().integer(0, element);
  }

  void loop(std::size_t depth) {
    std::vector<Value**> carried;
    for (Output& out : outputs_) {
      if (out.depth > depth && out.tensor) carried.push_back(&out.tensor);
      if (out.depth <= depth && out.in_loops(rank_)) carried.push_back(&out.sum);
    }
    std::vector<Value*> initial;
    for (Value** v : carried) initial.push_back(*v);
    ir::Builder b = here();
    const std::vector<Value*> after = build_for(
        b, b.integer(0), nest_.sizes[depth], initial,
        [&](ir::Builder& inside, Value* index, const std::vector<Value*>& state) {
          for (std::size_t k = 0; k < carried.size(); ++k) *carried[k] = state[k];
          indices_.push_back(index);
          builders_.push_back(inside);
          level(depth + 1);
          inside = here();
          builders_.pop_back();
          indices_.pop_back();
          std::vector<Value*> next;
          for (Value** v : carried) next.push_back(*v);
          return next;
        });
    for (std::size_t k = 0; k < carried.size(); ++k) {
      *carried[k] = after[k];
      after[k]->name = nullptr;  // what the nest computes has a name of its own
    }
  }

  void at_point() {
    for (Output& out : outputs_) {
      const NestMember& m = *out.member;
      here().loc = m.op->loc;
      if (!m.sums) {
        store(out, values_.at(&m));
      } else if (out.depth < rank_) {
        Value* const x = product(out);
        out.sum = here().add({out.sum, x});
      } else if (out.sum_of_all) {
        out.sum = product(out);
      } else {
        store(out, product(out));
      }
    }
  }

  // ---- elements

  /// How many loops have to be around.
  std::size_t depth_of(const Element& e) const {
    if (const auto made = nested_.find(e.of); made != nested_.end()) return made->second.depth;
    std::size_t depth = 0;
    for (const NestIndex& i : e.at) {
      if (i.may_lie_outside()) return rank_;
      for (const auto& [k, factor] : i.terms) depth = std::max(depth, static_cast<std::size_t>(k) + 1);
    }
    // What a result takes the memory of is read where that is written.
    if (taken(e)) return rank_;
    return depth;
  }

  const Output* taken(const Element& e) const {
    for (const Output& out : outputs_)
      if (e.of && out.member->memory == e.of) return &out;
    return nullptr;
  }

  /// Everything that is the same in the loops further in, and at last the rest.
  void compute(std::size_t depth) {
    for (const NestMember& m : nest_.members) {
      here().loc = m.op->loc;
      std::size_t needed = 0;
      for (const Element& e : m.reads) {
        const std::size_t d = depth_of(e);
        needed = std::max(needed, d);
        if (d == depth && !guarded(e)) element(e);
      }
      if (m.sums) continue;
      if (m.op->is(Opcode::div_, Opcode::rem_))
        if (!m.op->result()->type.is_float_element()) needed = rank_;  // which may raise
      nested_[m.op->result()].depth = needed;
      if (needed == depth) values_[&m] = nested_[m.op->result()].value = value(m);
    }
  }

  Value* value(const NestMember& m) {
    std::vector<Value*> operands;
    for (const Element& e : m.reads) operands.push_back(element(e));
    if (m.op->is(Opcode::cast_like_))
      return here().emit(Opcode::cast_, {operands[0]},
                         static_cast<std::int64_t>(m.op->result()->type.element()));
    return here().emit(m.op->code, operands, m.op->integer);
  }

  Value* element(const Element& e) {
    if (const auto known = elements_.find(e); known != elements_.end()) return known->second;
    ir::Builder& b = here();
    Value* v = e.of;
    if (const auto made = nested_.find(e.of); made != nested_.end()) return made->second.value;
    if (!e.at.empty()) {
      const Output* const out = taken(e);
      std::vector<Value*> operands{out ? out->tensor : e.of};
      for (const NestIndex& i : e.at) operands.push_back(index(i));
      v = b.emit(Opcode::get_, operands);
    }
    return elements_[e] = v;
  }

  Value* index(const NestIndex& i) {
    if (i.is_plain()) return indices_[static_cast<std::size_t>(i.terms[0].first)];
    ir::Builder& b = here();
    Value* sum = nullptr;
    for (const auto& [k, factor] : i.terms) {
      Value* term = indices_[static_cast<std::size_t>(k)];
      if (factor != 1) term = b.mul({term, b.integer(factor)});
      sum = sum ? b.add({sum, term}) : term;
    }
    if (!sum) return b.integer(i.constant);
    return i.constant == 0 ? sum : b.add({sum, b.integer(i.constant)});
  }

  // ---- places that may lie outside

  static bool guarded(const Element& e) {
    return std::ranges::any_of(e.at, [](const NestIndex& i) { return i.may_lie_outside(); });
  }

  /// That the place lies inside, or null where it is known to.
  Value* inside(Value* tensor, const NestIndices& at, Value* also) {
    ir::Builder& b = here();
    for (std::size_t d = 0; d < at.size(); ++d) {
      if (!at[d].may_lie_outside()) continue;
      Value* const i = index(at[d]);
      Value* const size = b.size(tensor, d);
      for (Value* const holds : {b.le({b.integer(0), i}), b.lt({i, size})})
        also = also ? b.land({also, holds}) : holds;
    }
    return also;
  }

  /// What the point adds: 0 where a factor lies outside.
  Value* product(const Output& out) {
    Value* holds = nullptr;
    for (const Element& e : out.member->reads)
      if (guarded(e)) holds = inside(e.of, e.at, holds);
    const auto multiplied = [&] {
      Value* p = nullptr;
      for (const Element& e : out.member->reads) {
        Value* const x = element(e);
        p = p ? here().mul({p, x}) : x;
      }
      return p;
    };
    if (!holds) return multiplied();
    const auto known = elements_;
    Value* const sum = choose(holds, ir::Type(out.member->op->result()->type.element()), multiplied, [&] { return zero(out); });
    elements_ = known;
    return sum;
  }

  /// `holds ? yes() : no()`.
  Value* choose(Value* holds, const ir::Type& type, ir::FunctionRef<Value*()> yes, ir::FunctionRef<Value*()> no) {
    const ir::Location loc = here().loc;
    Op* const branch = here().branch(holds, {type});
    for (Block* side : branch->blocks) {
      builders_.emplace_back(here().module(), side).loc = loc;
      Value* const v = side == branch->blocks[0] ? yes() : no();
      here().yield({v});
      builders_.pop_back();
    }
    return branch->result();
  }

  void store(Output& out, Value* v) {
    const NestMember& m = *out.member;
    Value*& tensor = tensor_of(out);
    here().loc = m.op->loc;
    Value* const holds = inside(tensor, m.result, nullptr);
    const auto stored = [&] {
      std::vector<Value*> operands{tensor};
      for (const NestIndex& i : m.result) operands.push_back(index(i));
      // An accumulation commutes with itself; a sum that is to keep its order is read and stored.
      const bool reads = out.adds && m.in_order;
      operands.push_back(reads ? here().add({here().emit(Opcode::get_, operands), v}) : v);
      return here().emit(out.adds && !reads ? Opcode::add_at_ : Opcode::set_, operands);
    };
    tensor = holds ? choose(holds, tensor->type, stored, [&] { return tensor; }) : stored();
  }

  struct Made {
    std::size_t depth = 0;
    Value* value = nullptr;
  };

  const LoweredNest& nest_;
  std::size_t rank_;
  std::vector<ir::Builder> builders_;  ///< of the blocks around, innermost last
  std::vector<Value*> indices_;
  std::vector<Output> outputs_;
  std::map<Element, Value*> elements_;
  std::unordered_map<const Value*, Made> nested_;  ///< results of element-wise members at the point
  std::unordered_map<const NestMember*, Value*> values_;
};

}  // namespace

std::vector<Value*> emit_nest(ir::Builder& b, const LoweredNest& nest) {
  std::vector<Value*> results = Writer(b, nest).run();
  return results;
}

NestIndices every_index(std::size_t rank) {
  NestIndices all;
  for (std::size_t k = 0; k < rank; ++k) all.push_back({{{static_cast<int>(k), 1}}, 0});
  return all;
}

std::optional<std::size_t> moved_operand(const ir::Op& op) {
  const ir::Notation n = *ir::concrete_notation(op);
  if (!ir::moves_elements(n)) return {};
  std::size_t factor = 0;
  while (!n.is_factor(factor)) ++factor;
  const ir::Type& type = op.operands[factor]->type;
  for (std::size_t d = 0; d < n.operands[factor].at.size(); ++d) {
    const ir::Subscript& s = n.operands[factor].at[d];
    const bool there = s.terms.empty() && s.constant >= 0 && s.constant < type.dims()[d];
    if (!s.is_letter() && !there && op.integer != ir::inside) return {};
  }
  return factor;
}

std::string loop_order(const ir::Notation& n) {
  const std::string letters = n.letters(), result = ir::letters_of(n.result);
  const auto score = [&](char c) {
    int s = 0;
    const auto rate = [&](const ir::Subscripts& at) {
      for (std::size_t d = 0; d < at.size(); ++d)
        for (const auto& t : at[d].terms)
          if (t.letter == c) s += d + 1 == at.size() ? 1 : -1;
    };
    rate(n.result);
    for (std::size_t i = 0; i < n.operands.size(); ++i)
      if (n.is_factor(i)) rate(n.operands[i].at);
    return s;
  };
  char inner = 0;
  for (const char c : letters)
    if (!inner || score(c) >= score(inner)) inner = c;
  std::string order;
  for (const bool of_result : {true, false})
    for (const char c : letters)
      if (c != inner && (result.find(c) != std::string::npos) == of_result) order += c;
  if (inner) order += inner;
  return order;
}

ir::Notation as_accumulation(const NestMember& m) {
  const auto subscripts = [](const NestIndices& at) {
    ir::Subscripts out;
    for (const NestIndex& i : at) {
      ir::Subscript s{{}, i.constant};
      for (const auto& [k, factor] : i.terms) s.terms.push_back({static_cast<char>('a' + k), factor});
      out.push_back(std::move(s));
    }
    return out;
  };
  ir::Notation n;
  n.accumulates = true;
  n.result = subscripts(m.result);
  n.operands.push_back({n.result, false});
  for (const Element& e : m.reads) n.operands.push_back({subscripts(e.at), false});
  return n;
}

}  // namespace lantern::passes
