// Which neighbours merge, then the same nest over fewer indices.
#include "lantern/compiler/passes/array/merge_indices.hpp"

#include <algorithm>
#include <map>
#include <ranges>

namespace lantern::passes {

namespace {

bool has(const NestIndex& i, int k) {
  return std::ranges::any_of(i.terms, [&](const auto& term) { return term.first == k; });
}

/// Neither index is in the list, or the two stand side by side in it, go through all of their dimensions, and stand
/// nowhere else.
bool side_by_side(const NestIndices& at, int k) {
  std::size_t places = 0;
  for (const NestIndex& i : at) places += has(i, k) || has(i, k + 1);
  if (places == 0) return true;
  if (places != 2) return false;
  for (std::size_t d = 0; d + 1 < at.size(); ++d)
    if (at[d].is_whole_dimension() && at[d + 1].is_whole_dimension() && at[d].terms[0].first == k && at[d + 1].terms[0].first == k + 1)
      return true;
  return false;
}

class Merging {
 public:
  Merging(ir::Builder& b, LoweredNest& nest, bool rows) : b_(b), nest_(nest), first_(rows ? 1 : 0) {
    for (std::size_t k = 0; k < nest.sizes.size(); ++k) {
      if (k > 0 && merges(static_cast<int>(k) - 1))
        number_.push_back(number_.back());
      else
        number_.push_back(k == 0 ? 0 : number_.back() + 1);
    }
  }

  bool any() const { return !number_.empty() && number_.back() + 1 < static_cast<int>(number_.size()); }

  std::vector<Value*> run() {
    for (Value* size : nest_.sizes) old_sizes_.push_back(size);
    std::vector<Value*> sizes;
    for (std::size_t k = 0; k < number_.size(); ++k) {
      if (k == 0 || number_[k] != number_[k - 1])
        sizes.push_back(nest_.sizes[k]);
      else
        sizes.back() = product(sizes.back(), nest_.sizes[k]);
    }
    nest_.sizes = sizes;
    std::vector<Value*> shapes;
    for (const NestMember& m : nest_.members) shapes.push_back(shape_behind(m));
    for (NestMember& m : nest_.members) {
      for (Element& e : m.reads) {
        if (!made_inside(e.of)) e.of = view(e.of, e.at);
        e.at = merged(e.at);
      }
      if (m.memory) m.memory = view(m.memory, m.result);
      if (m.base && !made_inside(m.base)) m.base = view(m.base, m.result);
      std::vector<Value*> result_sizes;
      for (std::size_t d = 0; d < m.sizes.size(); ++d) {
        if (continues(m.result, d))
          result_sizes.back() = product(result_sizes.back(), m.sizes[d]);
        else
          result_sizes.push_back(m.sizes[d]);
      }
      m.sizes = result_sizes;
      m.result = merged(m.result);
    }
    return shapes;
  }

 private:
  bool merges(int k) const {
    return k >= first_ && std::ranges::all_of(nest_.members, [&](const NestMember& m) {
      return side_by_side(m.result, k) &&
             std::ranges::all_of(m.reads, [&](const Element& e) { return side_by_side(e.at, k); });
    });
  }

  bool made_inside(const Value* v) const {
    return std::ranges::any_of(nest_.members, [&](const NestMember& m) { return v->def && m.op == v->def; });
  }

  /// True where dimension d joins the one before it.
  bool continues(const NestIndices& at, std::size_t d) const {
    if (d == 0 || !at[d].is_whole_dimension() || !at[d - 1].is_whole_dimension()) return false;
    const int k = at[d].terms[0].first, before = at[d - 1].terms[0].first;
    return k == before + 1 && number_[static_cast<std::size_t>(k)] == number_[static_cast<std::size_t>(before)];
  }
  bool changes(const NestIndices& at) const {
    for (std::size_t d = 1; d < at.size(); ++d)
      if (continues(at, d)) return true;
    return false;
  }

  NestIndices merged(const NestIndices& at) const {
    NestIndices out;
    for (std::size_t d = 0; d < at.size(); ++d) {
      if (continues(at, d)) continue;
      out.push_back(at[d]);
      for (auto& term : out.back().terms) term.first = number_[static_cast<std::size_t>(term.first)];
    }
    return out;
  }

  Value* product(Value* x, Value* y) {
    const Op *const a = constant(x), *const c = constant(y);
    if (a && c) return b_.integer(a->integer * c->integer);
    return b_.mul({x, y});
  }

  /// A tensor that has a shape and nothing else.
  Value* shape(const ir::Type& element, const std::vector<Value*>& sizes) {
    std::vector<std::int64_t> dims;
    for (const Value* s : sizes) dims.push_back(constant(s) ? constant(s)->integer : ir::dynamic);
    return b_.uninitialised(ir::Type::tensor(element.element(), dims), sizes);
  }

  Value* view(Value* t, const NestIndices& at) {
    if (!changes(at)) return t;
    const auto [it, added] = views_.try_emplace(std::pair(t, at), nullptr);
    if (added) {
      std::vector<Value*> sizes;
      for (std::size_t d = 0; d < at.size(); ++d) {
        if (continues(at, d))
          sizes.back() = product(sizes.back(), old_size(at[d]));
        else
          sizes.push_back(at[d].is_whole_dimension() ? old_size(at[d]) : b_.size(t, d));
      }
      Value*& like = shapes_[{t->type.element(), sizes}];
      if (!like) like = shape(ir::Type(t->type.element()), sizes);
      it->second = b_.emit(Opcode::reshape_, {t, like});
    }
    return it->second;
  }
  Value* old_size(const NestIndex& i) const { return old_sizes_[static_cast<std::size_t>(i.terms[0].first)]; }

  bool is_overwritten(const Value* v) const {
    return std::ranges::any_of(nest_.members, [&](const NestMember& m) { return m.memory == v || m.base == v; });
  }

  /// What has the shape of a result before its indices merge.
  Value* shape_behind(const NestMember& m) {
    if (!m.stored || !changes(m.result)) return nullptr;
    if (m.base) return m.base;
    for (const NestMember& other : nest_.members)
      for (const Element& e : other.reads)
        if (e.at == m.result && !made_inside(e.of) && !is_overwritten(e.of) &&
            e.of->type.dims() == m.op->result()->type.dims())
          return e.of;
    const ir::Type element(m.op->result()->type.element());
    if (!m.base) return shape(element, m.sizes);
    Value* first = m.base;  // of those that are added to in turn
    for (const NestMember& before : nest_.members | std::views::reverse)
      if (before.op->result() == first) first = before.base;
    return shape(element, b_.sizes(first));
  }

  ir::Builder& b_;
  LoweredNest& nest_;
  int first_;  ///< of those that may merge
  std::vector<int> number_;  ///< of an index, after merging
  std::vector<Value*> old_sizes_;
  std::map<std::pair<Value*, NestIndices>, Value*> views_;
  std::map<std::pair<ir::Kind, std::vector<Value*>>, Value*> shapes_;
};

}  // namespace

std::vector<Value*> merge_indices(ir::Builder& b, LoweredNest& nest, bool rows) {
  Merging merging(b, nest, rows);
  if (!merging.any()) return std::vector<Value*>(nest.members.size(), nullptr);
  return merging.run();
}

}  // namespace lantern::passes
