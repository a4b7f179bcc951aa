// Loops as operators on whole tensors: a number of an iteration becomes a tensor with a dimension for each index
// that it depends on, and a nest of loops that sets an element in each iteration, or adds up, takes the largest,
// finds its place, becomes operators on those.
//
// A nest is tried as a whole. What does not fit (iterations that depend on each other in another way) leaves it as
// it is, and what was written is forgotten; loops in it are then tried by themselves.
#include <algorithm>
#include <map>
#include <memory>
#include <set>

#include "lantern/compiler/onnx/export_iterations.hpp"
#include "lantern/compiler/onnx/exporter.hpp"
#include "lantern/ir/op.hpp"

namespace lantern::onnx::exporting {

using ir::Opcode;

namespace {

bool folds(Opcode op) {
  switch (op) {
    case Opcode::add_:
    case Opcode::mul_:
    case Opcode::max_:
    case Opcode::min_:
    case Opcode::imax_:
    case Opcode::imin_:
    case Opcode::land_:
    case Opcode::lor_:
      return true;
    default:
      return false;
  }
}

bool is_identity(Opcode op, ir::Kind kind, double v) {
  const bool real = kind == ir::Kind::f32 || kind == ir::Kind::f64;
  switch (op) {
    case Opcode::add_:
      return v == 0;
    case Opcode::mul_:
      return v == 1;
    case Opcode::max_:
      return real && v == -std::numeric_limits<double>::infinity();
    case Opcode::min_:
      return real && v == std::numeric_limits<double>::infinity();
    case Opcode::land_:
      return v == 1;
    case Opcode::lor_:
      return v == 0;
    default:
      return false;
  }
}

class Nest {
 public:
  explicit Nest(Exporter& exporter) : e(exporter), iterations(exporter) {}

  void run(const ir::Op& loop) {
    enter(loop);
    for (std::size_t k = 0; k < loop.results.size(); ++k) {
      const T result = made_.at(loop.results[k]);
      if (result->what == Iteration::What::store) {
        e.forms[loop.results[k]] = stored(*result->store, loop.results[k]->type);
      } else {
        const Form f = iterations.form(result);
        e.forms[loop.results[k]] = f;
      }
    }
  }

 private:
  using T = std::shared_ptr<const Iteration>;

  Exporter& e;
  Iterations iterations;
  std::map<const ir::Value*, T> made_;
  std::map<const Store*, std::size_t> version_;
  std::set<const ir::Value*> states_;
  int guarded_ = 0;

  [[noreturn]] static void no() { throw NotTensors(); }

  T value(const ir::Value* v) {
    if (const auto at = made_.find(v); at != made_.end()) return at->second;
    return iterations.plain(e.form(v));
  }
  bool depends(const ir::Value* v) const { return made_.contains(v); }

  void block(const ir::Block& b) {
    for (const ir::Op* op : b.ops)
      if (!op->is(Opcode::yield_)) one(*op);
  }

  void one(const ir::Op& op) {
    if (op.is(Opcode::check_)) return;
    if (op.is(Opcode::loop_)) return enter(op);
    if (op.is(Opcode::branch_)) return choose(op);
    if (op.results.size() != 1 || ir::info(op.code).effect == ir::Effect::tape ||
        ir::info(op.code).effect == ir::Effect::effect)
      no();
    if (std::ranges::none_of(op.operands, [&](const ir::Value* v) { return depends(v); })) return e.run(op);
    made_[op.results[0]] = computed(op);
  }

  T computed(const ir::Op& op) {
    const ir::Kind kind = op.results[0]->type.element();
    switch (op.code) {
      case Opcode::get_:
        return element(op);
      case Opcode::set_:
      case Opcode::add_at_:
        return updated(op);
      case Opcode::dim_: {
        const T t = value(op.operands[0]);
        if (t->what != Iteration::What::store) no();
        return iterations.plain(e.integer(t->store->root.sizes[static_cast<std::size_t>(op.integer)]));
      }
      case Opcode::stop_gradient_:
        return value(op.operands[0]);
      case Opcode::with_value_:
        return value(op.operands[1]);
      case Opcode::cast_: {
        if (!op.results[0]->type.is_scalar()) no();
        return iterations.cast(value(op.operands[0]), kind);
      }
      default:
        break;
    }
    if (!op.results[0]->type.is_scalar() || !has_formula(op.code)) no();
    if ((op.is(Opcode::bit_and_) || op.is(Opcode::bit_or_) || op.is(Opcode::bit_xor_)) && e.w.opset() < 18)
      no();
    std::vector<T> operands;
    for (const ir::Value* v : op.operands) operands.push_back(value(v));
    if (const T special = of_states(op, operands)) return special;
    return iterations.elementwise(op.code, kind, operands);
  }

  // ---- states: what a loop keeps from iteration to iteration

  static bool is_state(const T& t) { return t->what == Iteration::What::state; }

  /// What is computed of a state: a fold, a comparison with the best so far, or the choice between them.
  T of_states(const ir::Op& op, const std::vector<T>& x) {
    using What = Iteration::What;
    const auto named = [&](What what) {
      auto t = std::make_shared<Iteration>();
      t->what = what;
      t->kind = op.results[0]->type.element();
      return t;
    };
    if (op.operands.size() == 2 && folds(op.code) && (is_state(x[0]) != is_state(x[1]))) {
      const std::size_t s = is_state(x[0]) ? 0 : 1;
      const T& other = x[1 - s];
      if (other->what != What::unordered && other->what != What::better) {
        auto fold = named(What::fold);
        fold->state = x[s]->state;
        fold->op = op.code;
        fold->of = other;
        return fold;
      }
    }
    if (op.is(Opcode::lt_) && is_state(x[0]) != is_state(x[1])) {
      auto better = named(What::better);
      better->op = is_state(x[0]) ? Opcode::max_ : Opcode::min_;
      better->state = (is_state(x[0]) ? x[0] : x[1])->state;
      better->of = is_state(x[0]) ? x[1] : x[0];
      return better;
    }
    if (op.is(Opcode::ne_) && is_state(x[0]) && x[0] == x[1]) {
      auto t = named(What::unordered);
      t->state = x[0]->state;
      return t;
    }
    if ((op.is(Opcode::land_) || op.is(Opcode::lor_)) && x.size() == 2)
      for (const std::size_t i : {0U, 1U}) {
        if (op.is(Opcode::land_) && x[i]->what == What::unordered) return x[i];
        if (op.is(Opcode::lor_) && x[i]->what == What::better && x[1 - i]->what == What::unordered)
          return x[i];
      }
    if (op.is(Opcode::select_) && x[0]->what == What::better && is_state(x[2])) {
      auto t = named(x[2]->state == x[0]->state ? What::fold : What::place);
      if (t->what == What::fold && x[1] != x[0]->of) no();
      t->op = x[0]->op;
      t->state = x[2]->state;
      t->best = x[0]->state;
      t->of = x[0]->of;
      t->which = x[1];
      return t;
    }
    for (const T& t : x)
      if (t->what == What::state || t->what == What::fold || t->what == What::better ||
          t->what == What::unordered)
        no();
    if (std::ranges::any_of(op.operands, [&](const ir::Value* v) { return !v->type.is_scalar(); })) no();
    return nullptr;
  }

  // ---- elements

  std::vector<T> place(const ir::Op& op, std::size_t end) {
    std::vector<T> at;
    for (std::size_t i = 1; i < end; ++i) at.push_back(value(op.operands[i]));
    return at;
  }

  T element(const ir::Op& op) {
    const std::vector<T> at = place(op, op.operands.size());
    if (!depends(op.operands[0])) return iterations.element(e.form(op.operands[0]), at, guarded_ > 0);
    const T t = value(op.operands[0]);
    if (t->what != Iteration::What::store || version_[t->store.get()] != 0) no();
    t->store->reads.push_back(at);
    return iterations.element(t->store->root, at, guarded_ > 0);
  }

  T updated(const ir::Op& op) {
    const T t = value(op.operands[0]);
    if (t->what != Iteration::What::store || guarded_ > 0) no();
    std::size_t& version = version_[t->store.get()];
    if (t->version != version) no();
    t->store->updates.push_back({op.is(Opcode::add_at_), place(op, op.operands.size() - 1),
                                 value(op.operands.back()), iterations.active()});
    return store(t->store, ++version);
  }

  static T store(const std::shared_ptr<Store>& s, std::size_t version) {
    auto t = std::make_shared<Iteration>();
    t->what = Iteration::What::store;
    t->store = s;
    t->version = version;
    return t;
  }

  /// Both sides are computed; indices in them may lie outside.
  void choose(const ir::Op& op) {
    const T condition = value(op.operands[0]);
    ++guarded_;
    for (const ir::Block* b : op.blocks) block(*b);
    --guarded_;
    for (std::size_t i = 0; i < op.results.size(); ++i) {
      if (!op.results[i]->type.is_scalar()) no();
      const std::vector<T> all = {condition, value(op.blocks[0]->yields()[i]),
                                  value(op.blocks[1]->yields()[i])};
      for (const T& t : all)
        if (t->what > Iteration::What::reduced && t->what != Iteration::What::found) no();
      made_[op.results[i]] = iterations.elementwise(Opcode::select_, op.results[i]->type.element(), all);
    }
  }

  // ---- loops

  /// By how much a state grows in each iteration: it is only added to.
  std::optional<std::int64_t> step(const ir::Op& loop, std::size_t k) {
    const ir::Value* p = loop.blocks[1]->params[k];
    const ir::Op* op = loop.blocks[1]->yields()[k]->def;
    if (!p->type.is_scalar() || !p->type.is_integer() || op == nullptr) return std::nullopt;
    if (op->is(Opcode::add_)) {
      if (op->operands[0] == p) return literal_integer(op->operands[1]);
      if (op->operands[1] == p) return literal_integer(op->operands[0]);
    }
    if (!op->is(Opcode::loop_)) return std::nullopt;
    const auto index = counting(*op);
    const std::size_t j = loop.blocks[1]->yields()[k]->index;
    if (!index || op->operands[j] != p) return std::nullopt;
    const auto each = step(*op, j), from = literal_integer(index->from);
    const auto to = known_size(index->to);
    if (!each || from != 0 || !to) return std::nullopt;
    return *each * *to;
  }
  std::optional<std::int64_t> known_size(const ir::Value* v) {
    if (const auto n = literal_integer(v)) return n;
    if (!depends(v) && e.forms.contains(v))
      if (const Size s = e.size_of(v); s.known >= 0) return s.known;
    if (v->def != nullptr && v->def->is(Opcode::dim_) &&
        v->def->operands[0]->type.dims()[static_cast<std::size_t>(v->def->integer)] != ir::dynamic)
      return v->def->operands[0]->type.dims()[static_cast<std::size_t>(v->def->integer)];
    return std::nullopt;
  }

  void enter(const ir::Op& op) {
    const auto index = counting(op);
    if (!index || op.operands.size() != op.results.size()) no();
    if (!e.forms.contains(index->to) && !depends(index->to)) e.run(*index->to->def);
    const auto least = literal_integer(index->down ? index->to : index->from);
    if (!least) no();
    const int letter =
        index->down ? iterations.begin_down(*least, value(index->from)) : iterations.begin(*least, value(index->to));
    const ir::Block& body = *op.blocks[1];
    const std::size_t n = body.params.size();
    std::vector<T> start;
    std::vector<std::optional<std::int64_t>> grows(n);
    for (std::size_t k = 0; k < n; ++k) {
      const ir::Value* p = body.params[k];
      start.push_back(value(op.operands[k]));
      grows[k] = index->state == k ? 1 : step(op, k);
      if (index->down && index->state != k && grows[k]) no();
      if (index->state == k)
        made_[p] = iterations.index(letter);
      else if (const_cast<ir::Block&>(body).yields()[k] == p)
        made_[p] = start[k];
      else if (grows[k] && iterations.is_affine(start[k]))
        made_[p] = iterations.grown(start[k], letter, *grows[k]);
      else if (p->type.is_tensor())
        made_[p] = start[k]->what == Iteration::What::store ? start[k] : first_store(start[k]);
      else {
        auto t = std::make_shared<Iteration>();
        t->what = Iteration::What::state;
        t->state = p;
        t->kind = p->type.element();
        made_[p] = t;
      }
    }
    block(body);
    std::vector<T> ends;
    for (std::size_t k = 0; k < n; ++k) ends.push_back(value(const_cast<ir::Block&>(body).yields()[k]));
    std::map<const ir::Value*, T> folded;  // what the best of all iterations is, by the state that has it
    std::map<const ir::Value*, T> sources;
    for (std::size_t k = 0; k < n; ++k) sources[body.params[k]] = start[k];
    for (std::size_t k = 0; k < n; ++k)
      if (ends[k]->what == Iteration::What::fold) {
        if (ends[k]->state != body.params[k]) no();
        folded[body.params[k]] = iterations.reduced(ends[k]->op, ends[k]->of, letter);
      }
    for (std::size_t k = 0; k < n; ++k) {
      const ir::Value* p = body.params[k];
      const T& end = ends[k];
      T& result = made_[op.results[k]];
      if (index->state == k) {
        const auto end_of_index = iterations.end(letter);
        result = end_of_index ? iterations.plain(e.integer(*end_of_index)) : Iterations::unknown();
      } else if (const_cast<ir::Block&>(body).yields()[k] == p) {
        result = start[k];
      } else if (grows[k] && iterations.is_affine(start[k])) {
        result = iterations.grown_to_end(start[k], letter, *grows[k]);
      } else if (end->what == Iteration::What::store) {
        if (end->version != version_[end->store.get()] || end->store != made_[p]->store) no();
        result = end;
        if (end->store->depth + 1 == iterations.depth() && iterations.depth() > 1) no();  // an array of an iteration
      } else if (end->what == Iteration::What::fold) {
        result = joined(start[k], *end, folded[p]);
      } else if (end->what == Iteration::What::place) {
        if (end->state != p || !folded.contains(end->best) || index->down) no();
        auto t = std::make_shared<Iteration>(*end);
        t->of = folded[end->best];
        if (is_state(start[k])) {
          if (!is_state(sources[end->best])) no();
          t->state = start[k]->state;
          t->best = sources[end->best]->state;
        } else {
          t->what = Iteration::What::found;
          if (is_state(sources[end->best])) no();
        }
        result = t;
      } else {
        no();
      }
    }
    iterations.finish();
  }

  T first_store(const T& start) {
    if (start->what != Iteration::What::plain) no();
    auto s = std::make_shared<Store>();
    s->root = start->form;
    s->depth = iterations.depth() - 1;
    version_[s.get()] = 0;
    return store(s, 0);
  }

  /// A fold over all iterations, and what it starts with.
  T joined(const T& start, const Iteration& fold, const T& all) {
    if (is_state(start)) {
      auto t = std::make_shared<Iteration>(fold);
      t->state = start->state;
      t->of = all;
      return t;
    }
    if (start->what == Iteration::What::fold) {  // of an outer state, after others
      no();
    }
    if (start->what == Iteration::What::plain && start->form.number &&
        is_identity(fold.op, all->kind, *start->form.number))
      return all;
    if ((fold.op == Opcode::max_ || fold.op == Opcode::min_ || fold.op == Opcode::imax_ ||
         fold.op == Opcode::imin_) &&
        iterations.is_first(start, all))
      return all;
    return iterations.elementwise(fold.op, all->kind, {start, all});
  }

  // ---- tensors that iterations set elements of

  Form stored(Store& s, const ir::Type& type) {
    for (const auto& read : s.reads)
      for (const Update& u : s.updates)
        if (!iterations.same(read, u.at) || !iterations.injective(u)) no();
    if (s.updates.size() > 1 && !std::ranges::all_of(s.updates, &Update::adds)) no();
    Form f = s.root;
    for (const Update& u : s.updates) {
      if (!u.adds && !iterations.injective(u)) no();
      f = iterations.with(f, u, type);
    }
    return f;
  }
};

}  // namespace

bool write_as_tensors(Exporter& e, const ir::Op& loop) {
  const Writer::Mark mark = e.w.mark();
  const auto tapes = e.tapes;
  try {
    Nest(e).run(loop);
    return true;
  } catch (const NotTensors&) {
    e.w.forget_since(mark);
    e.tapes = tapes;
    return false;
  }
}

}  // namespace lantern::onnx::exporting
