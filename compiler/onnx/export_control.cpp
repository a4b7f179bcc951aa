// Branches and loops whose iterations depend on each other, and the tape of a derivative.
//
// What an iteration pushes is a collected output of Loop; the loop that pops reads it from the end, an iteration's part
// at the start of an iteration. Loops within loops do so level by level.
#include <algorithm>
#include <set>

#include "lantern/compiler/onnx/exporter.hpp"

namespace lantern::onnx::exporting {

using ir::Opcode;

namespace {

ValueInfo info(const std::string& name, const ir::Type& type) {
  ValueInfo v;
  v.name = name;
  v.element = element_of(type.element());
  v.shape.emplace();
  for (int d = 0; d < (type.is_tensor() ? type.rank() : 0); ++d) {
    const std::int64_t n = type.dims()[static_cast<std::size_t>(d)];
    v.shape->push_back(n == ir::dynamic ? Dimension(std::string{}) : Dimension(n));
  }
  return v;
}

ValueInfo collected(const std::string& name, ir::Kind kind) {
  ValueInfo v;
  v.name = name;
  v.element = element_of(kind);
  return v;
}

/// A value as an output of the innermost graph, where each has to be made once.
std::string output(Exporter& e, const std::string& name, std::set<std::string>& taken) {
  if (e.w.made_here(name) && taken.insert(name).second) return name;
  std::string copy = e.w.nodes("Identity", {name}, 1, {})[0];
  taken.insert(copy);
  return copy;
}

/// Tapes that are pushed to, or popped from, below a block.
std::set<std::int64_t> tapes_below(ir::Block* block, Opcode what) {
  std::set<std::int64_t> all;
  ir::walk(block, [&](const ir::Op* op) {
    if (op->is(what)) all.insert(op->integer);
  });
  return all;
}
std::set<std::int64_t> only(const std::set<std::int64_t>& a, const std::set<std::int64_t>& b) {
  std::set<std::int64_t> rest;
  std::ranges::set_difference(a, b, std::inserter(rest, rest.end()));
  return rest;
}

GraphPointer graph(const std::string& name, std::vector<Node> nodes, std::vector<ValueInfo> inputs,
                   std::vector<ValueInfo> outputs) {
  Graph g;
  g.name = name;
  g.nodes = std::move(nodes);
  g.inputs = std::move(inputs);
  g.outputs = std::move(outputs);
  return std::make_shared<const Graph>(std::move(g));
}

bool defined_in(const ir::Value* v, const ir::Block* block) {
  for (const ir::Block* b = v->block; b != nullptr; b = b->parent ? b->parent->parent : nullptr)
    if (b == block) return true;
  return false;
}

/// x + c or x - c.
bool moves_by_one(const ir::Value* v, const ir::Value* x, bool down) {
  const ir::Op* op = v->def;
  if (op == nullptr || !op->is(down ? Opcode::sub_ : Opcode::add_)) return false;
  if (op->operands[0] == x && literal_integer(op->operands[1]) == 1) return true;
  return !down && op->operands[1] == x && literal_integer(op->operands[0]) == 1;
}

}  // namespace

std::optional<Counting> counting(const ir::Op& loop) {
  ir::Block* condition = loop.blocks[0];
  const ir::Op* test = condition->yields()[0]->def;
  if (test == nullptr || !test->is(Opcode::lt_) || test->parent != condition) return std::nullopt;
  for (std::size_t k = 0; k < condition->params.size(); ++k) {
    const bool up = test->operands[0] == condition->params[k],
               down = test->operands[1] == condition->params[k];
    if (up == down || !condition->params[k]->type.is_integer()) continue;
    const ir::Value* bound = test->operands[up ? 1 : 0];
    if (defined_in(bound, condition) && !literal_integer(bound)) continue;
    if (moves_by_one(loop.blocks[1]->yields()[k], loop.blocks[1]->params[k], down))
      return Counting{k, loop.operands[k], bound, down};
  }
  return std::nullopt;
}

void write_branch(Exporter& e, const ir::Op& op) {
  const std::string condition = e.form(op.operands[0]).name;
  std::set<std::int64_t> pushes[2];
  for (const std::size_t side : {0, 1})
    pushes[side] =
        only(tapes_below(op.blocks[side], Opcode::push_), tapes_below(op.blocks[side], Opcode::pop_));
  std::set<std::int64_t> pushed = pushes[0];
  pushed.insert(pushes[1].begin(), pushes[1].end());
  const auto before = e.tapes;
  std::map<std::int64_t, Form> values[2];
  std::vector<Node> nodes[2];
  std::vector<ValueInfo> outputs[2];
  std::set<std::string> taken[2];
  // Each side twice: what one pushes, the other has to have in the same shape.
  for (const std::size_t side : {0, 1}) {
    e.w.open();
    e.tapes = before;
    e.run(*op.blocks[side]);
    for (std::size_t i = 0; i < op.results.size(); ++i)
      outputs[side].push_back(
          info(output(e, e.whole(op.blocks[side]->yields()[i]), taken[side]), op.results[i]->type));
    for (const std::int64_t t : pushes[side]) {
      values[side][t] = e.tapes.at(t);
      values[side][t].name = output(e, e.whole(e.tapes.at(t)), taken[side]);
    }
    nodes[side] = e.w.close();
  }
  for (const std::size_t side : {0, 1})
    for (const std::int64_t t : pushed) {
      if (!values[side].contains(t)) {
        const Form& other = values[1 - side].at(t);
        Value zeros(element_of(other.kind), {});
        Ints sizes;
        for (const Size& s : other.sizes) sizes.push_back(s.known);
        if (std::ranges::any_of(sizes, [](std::int64_t n) { return n < 0; }))
          e.refuse(op, "a derivative keeps a tensor of an open size in one branch of an IF alone",
                   "declare the sizes of the arguments, or export the function itself");
        const std::string name = e.w.fresh("kept");
        nodes[side].push_back(
            {name, "Constant", "", {}, {name}, {attribute("value", Value(element_of(other.kind), sizes))}});
        outputs[side].push_back(collected(name, other.kind));
      } else {
        outputs[side].push_back(collected(values[side].at(t).name, values[side].at(t).kind));
      }
    }
  if (outputs[0].empty()) return;
  const Names results =
      e.w.nodes("If", {condition}, outputs[0].size(),
                {attribute("then_branch", graph("then", std::move(nodes[0]), {}, outputs[0])),
                 attribute("else_branch", graph("else", std::move(nodes[1]), {}, outputs[1]))});
  for (std::size_t i = 0; i < op.results.size(); ++i)
    e.forms[op.results[i]] = e.named(results[i], op.results[i]->type);
  e.tapes = before;
  std::size_t next = op.results.size();
  for (const std::int64_t t : pushed) {
    Form f = values[values[0].contains(t) ? 0 : 1].at(t);
    f.name = results[next++];
    f.whole = true;
    f.number.reset();
    for (std::size_t d = 0; d < f.rank(); ++d)
      if (f.sizes[d].known < 0) f.sizes[d] = {-1, f.name, static_cast<int>(d)};
    e.tapes[t] = f;
  }
}

namespace {

/// A loop on its way into a Loop.
struct LoopWriter {
  Exporter& e;
  const ir::Op& op;
  std::optional<Counting> index = counting(op);
  ir::Block* body = op.blocks[1];

  /// A state that no iteration changes is no state, and an index counts itself.
  bool is_carried(std::size_t k) const {
    return body->yields()[k] != body->params[k] && !(index && index->state == k);
  }

  std::string iterations() {
    const std::string from = e.form(index->from).name, to = e.form(index->to).name;
    const std::string hi = index->down ? from : to, lo = index->down ? to : from;
    std::string n =
        literal_integer(index->down ? index->to : index->from) == 0 ? hi : e.w.node("Sub", {hi, lo});
    return index->from->type == ir::I64 ? n : e.w.cast(n, ir::Kind::i64);
  }

  /// Whether the states let the loop go on.
  std::string condition(const std::vector<Form>& states) {
    for (std::size_t k = 0; k < states.size(); ++k) e.forms[op.blocks[0]->params[k]] = states[k];
    e.run(*op.blocks[0]);
    return e.form(op.blocks[0]->yields()[0]).name;
  }

  void write() {
    const std::size_t n = op.operands.size();
    if (index && !e.forms.contains(index->to)) e.run(*index->to->def);  // a constant in the condition's block
    std::vector<Form> start;
    for (const ir::Value* v : op.operands) start.push_back(e.form(v));
    const auto pushed = tapes_below(body, Opcode::push_), popped = tapes_below(body, Opcode::pop_);
    const auto collects = only(pushed, popped), reads = only(popped, pushed);
    if (!tapes_below(op.blocks[0], Opcode::push_).empty())
      e.refuse(op, "a derivative keeps something in a loop's condition", "export the function itself");

    Names inputs = {index ? iterations() : "", index ? "" : condition(start)};
    for (std::size_t k = 0; k < n; ++k)
      if (is_carried(k)) inputs.push_back(e.whole(start[k]));
    for (const std::int64_t t : reads)
      if (!e.tapes.contains(t))
        e.refuse(op, "what a derivative keeps here does not come from a loop", "export the function itself");

    const auto before = e.tapes;
    // States mostly keep their sizes: for those that do not, the body is written again with sizes of their
    // own.
    std::vector<bool> keeps(n, true);
    while (!written(start, inputs, collects, reads, before, keeps)) e.tapes = before;
  }

  using Tapes = std::set<std::int64_t>;
  /// False, and nothing is written, where a state that is thought to keep its sizes does not.
  bool written(const std::vector<Form>& start, const Names& inputs, const Tapes& collects, const Tapes& reads,
               const std::unordered_map<std::int64_t, Form>& before, std::vector<bool>& keeps) {
    const std::size_t n = start.size();
    e.w.open();
    const std::string iteration = e.w.fresh("iteration"), going = e.w.fresh("going");
    std::vector<ValueInfo> in = {info(iteration, ir::I64), info(going, ir::Bool)}, out;
    for (std::size_t k = 0; k < n; ++k) {
      const ir::Value* p = body->params[k];
      if (is_carried(k)) {
        const std::string name = e.w.fresh(p->name ? p->name : "state");
        e.forms[p] = keeps[k] ? e.sized(name, p->type, start[k].sizes) : e.named(name, p->type);
        in.push_back(info(name, p->type));
      } else if (index && index->state == k) {
        e.forms[p] = e.named(place(iteration), p->type);
      } else {
        e.forms[p] = start[k];
      }
    }
    for (const std::int64_t t : reads) e.tapes[t] = part_of(before.at(t), iteration);
    e.run(*body);
    std::vector<Form> next;
    bool kept_sizes = true;
    for (std::size_t k = 0; k < n; ++k) {
      next.push_back(e.form(body->yields()[k]));
      if (is_carried(k) && keeps[k] && next[k].sizes != e.form(body->params[k]).sizes)
        kept_sizes = keeps[k] = false;
    }
    if (!kept_sizes) {
      e.w.close();
      return false;
    }
    std::set<std::string> taken;
    if (index) {
      const std::string still = e.w.nodes("Identity", {going}, 1, {})[0];
      taken.insert(still);
      out.push_back(info(still, ir::Bool));
    } else {
      out.push_back(info(output(e, condition(next), taken), ir::Bool));
    }
    for (std::size_t k = 0; k < n; ++k)
      if (is_carried(k)) out.push_back(info(output(e, e.whole(next[k]), taken), body->params[k]->type));
    std::vector<Form> kept;
    for (const std::int64_t t : collects) {
      kept.push_back(e.tapes.at(t));
      out.push_back(collected(output(e, e.whole(kept.back()), taken), kept.back().kind));
    }
    const std::size_t results = out.size() - 1;
    const GraphPointer inner = graph("body", e.w.close(), in, out);
    if (results == 0) {
      invariant(start);
      return true;
    }
    const Names names = e.w.nodes("Loop", inputs, results, {attribute("body", inner)});
    std::size_t i = 0;
    for (std::size_t k = 0; k < n; ++k) {
      if (is_carried(k) && keeps[k])
        e.forms[op.results[k]] = e.sized(names[i++], op.results[k]->type, start[k].sizes);
      else if (is_carried(k))
        e.forms[op.results[k]] = e.named(names[i++], op.results[k]->type);
      else if (index && index->state == k)
        e.forms[op.results[k]] = last_index();
      else
        e.forms[op.results[k]] = start[k];
    }
    e.tapes = before;
    for (std::size_t k = 0; const std::int64_t t : collects) {
      Form f = kept[k++];
      f.name = names[i++];
      f.whole = true;
      f.number.reset();
      f.sizes.insert(f.sizes.begin(), Size{});
      for (std::size_t d = 0; d < f.rank(); ++d)
        if (f.sizes[d].known < 0) f.sizes[d] = {-1, f.name, static_cast<int>(d)};
      e.tapes[t] = f;
    }
    return true;
  }

  void invariant(const std::vector<Form>& start) {
    for (std::size_t k = 0; k < start.size(); ++k)
      e.forms[op.results[k]] = index && index->state == k ? last_index() : start[k];
  }

  /// The index of an iteration.
  std::string place(const std::string& iteration) {
    const ir::Kind kind = index->from->type.element();
    const std::string i = kind == ir::Kind::i64 ? iteration : e.w.cast(iteration, kind);
    const std::string from = e.form(index->from).name;
    if (index->down) return e.w.node("Sub", {from, i});
    return literal_integer(index->from) == 0 ? i : e.w.node("Add", {from, i});
  }
  Form last_index() {
    const std::string from = e.form(index->from).name, to = e.form(index->to).name;
    return e.named(e.w.node(index->down ? "Min" : "Max", {from, to}), index->from->type);
  }

  /// What the iteration pops: the last first.
  Form part_of(const Form& tape, const std::string& iteration) {
    const std::string last =
        e.w.node("Sub", {e.w.gather(e.w.node("Shape", {tape.name}), e.w.integer(0), 0), e.w.integer(1)});
    Form f = tape;
    f.name = e.w.gather(tape.name, e.w.node("Sub", {last, iteration}), 0);
    f.sizes.erase(f.sizes.begin());
    for (std::size_t d = 0; d < f.rank(); ++d)
      if (f.sizes[d].known < 0) f.sizes[d] = {-1, f.name, static_cast<int>(d)};
    return f;
  }
};

}  // namespace

void write_loop(Exporter& e, const ir::Op& op) { LoopWriter{e, op}.write(); }

}  // namespace lantern::onnx::exporting
