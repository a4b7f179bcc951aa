// Live variables. Sets only grow, so a loop is done when one more pass over its body adds nothing.
#include "lantern/compiler/frontend/clang/flow.hpp"

#include <algorithm>

namespace lantern::frontend {

namespace {

void add(Variables& to, const Variables& more) { to.insert(more.begin(), more.end()); }

}  // namespace

void walk(const Node* node, const std::function<void(const Node*)>& f) {
  if (node == nullptr) return;
  f(node);
  for (const Node* part : {node->init, node->condition, node->step, node->body, node->otherwise})
    walk(part, f);
  for (const Node* child : node->children) walk(child, f);
}

Flow::Flow(const Unit& unit, const Function& function) : unit_(unit) {
  for (const auto& [place, lambda] : unit.lambda_uses) uses_[place].push_back(lambda);
  walk(function.body, [&](const Node* n) {
    if (n->kind == NodeKind::lambda) lambdas_[n->range.begin] = n;
  });
  analyse(function);
  for (const auto& [begin, lambda] : lambdas_)
    if (lambda->function != nullptr) analyse(*lambda->function);
}

const Variables& Flow::at(const std::map<const Node*, Variables>& map, const Node* node) {
  static const Variables none;
  const auto found = map.find(node);
  return found == map.end() ? none : found->second;
}

void Flow::each_event(const Node* piece, const std::function<void(const Event&)>& f) const {
  std::set<std::uint32_t> open;
  const std::function<void(const Node*)> each = [&](const Node* root) {
    walk(root, [&](const Node* n) {
      for (const Event& e : n->events) {
        f(e);
        const auto used = uses_.find(e.at);
        if (used == uses_.end()) continue;
        for (const std::uint32_t begin : used->second)
          if (const auto lambda = lambdas_.find(begin); lambda != lambdas_.end() && open.insert(begin).second)
            each(lambda->second);
      }
    });
  };
  each(piece);
}

Variables Flow::assigned(const std::vector<const Node*>& piece) const {
  Variables written, declared;
  for (const Node* n : piece)
    each_event(n, [&](const Event& e) {
      if (e.effect == Effect::declare) declared.insert(e.variable);
      if (e.effect == Effect::write || e.effect == Effect::overwrite) written.insert(e.variable);
    });
  for (const VariableId v : declared) written.erase(v);
  // Parameters of lambdas in the piece belong to it.
  for (const Node* n : piece)
    walk(n, [&](const Node* inner) {
      if (inner->kind == NodeKind::lambda)
        std::erase_if(written,
                      [&](VariableId v) { return inner->range.contains(static_cast<std::uint32_t>(v)); });
    });
  return written;
}

std::uint32_t Flow::first_assignment(const std::vector<const Node*>& piece, VariableId variable) const {
  std::uint32_t first = ~0U;
  for (const Node* n : piece)
    each_event(n, [&](const Event& e) {
      if (e.variable == variable && (e.effect == Effect::write || e.effect == Effect::overwrite))
        first = std::min(first, e.at);
    });
  return first;
}

bool Flow::mentions(const Node* piece, VariableId variable) const {
  bool found = false;
  each_event(piece, [&](const Event& e) { found |= e.variable == variable; });
  return found;
}

Variables Flow::live_at_return(const Function& function) const {
  Variables live;
  Variables declared;
  each_event(function.body, [&](const Event& e) {
    if (e.effect == Effect::declare) declared.insert(e.variable);
  });
  for (const VariableId v : assigned({function.body})) {
    const auto known = unit_.variables.find(v);
    if (known != unit_.variables.end() && known->second.outlives) live.insert(v);
    // A lambda's parameters end with it; variables of the function around it do not.
    if (function.is_lambda && v < function.id) live.insert(v);
  }
  return live;
}

void Flow::analyse(const Function& function) {
  Exits exits;
  exits.on_return = live_at_return(function);
  before(function.body, exits.on_return, exits);
}

Variables Flow::before_expression(const Node* node, Variables after) {
  for (const Event& e : node->events)
    if (e.effect == Effect::overwrite || e.effect == Effect::declare) after.erase(e.variable);
  each_event(node, [&](const Event& e) {
    if (e.effect == Effect::read) after.insert(e.variable);
  });
  return after;
}

Variables Flow::before_list(const std::vector<Node*>& list, Variables after, const Exits& exits) {
  for (auto s = list.rbegin(); s != list.rend(); ++s) after = before(*s, after, exits);
  return after;
}

Variables Flow::before(const Node* node, const Variables& after, const Exits& exits) {
  if (node == nullptr) return after;
  add(after_[node], after);
  switch (node->kind) {
    case NodeKind::block:
      return before_list(node->children, after, exits);
    case NodeKind::branch: {
      Variables live = before(node->body, after, exits);
      add(live, node->otherwise != nullptr ? before(node->otherwise, after, exits) : after);
      return before(node->init, before(node->condition, live, exits), exits);
    }
    case NodeKind::while_loop:
    case NodeKind::do_loop:
    case NodeKind::for_loop:
    case NodeKind::range_loop:
      return before_loop(node, after, exits);
    case NodeKind::selection: {
      Exits inner = exits;
      inner.on_break = after;
      Variables live = after, next = after;
      for (auto g = node->groups.rbegin(); g != node->groups.rend(); ++g) {
        next = before_list(g->statements, next, inner);
        add(live, next);
      }
      return before(node->init, before(node->condition, live, exits), exits);
    }
    case NodeKind::break_exit:
      return exits.on_break;
    case NodeKind::continue_exit:
      return exits.on_continue;
    case NodeKind::return_exit:
      return before(node->condition, exits.on_return, exits);
    case NodeKind::obstacle: {
      // Nothing is known about its order: all that it may read is needed.
      Variables live = after;
      before(node->body, live, exits);
      for (const Node* child : node->children) add(live, before(child, after, exits));
      each_event(node, [&](const Event& e) {
        if (e.effect == Effect::read) live.insert(e.variable);
      });
      return live;
    }
    default: {
      // Nested choices: what is needed after them is needed after the whole.
      walk(node, [&](const Node* n) {
        if (n != node) add(after_[n], after);
      });
      return before_expression(node, after);
    }
  }
}

Variables Flow::before_loop(const Node* node, const Variables& after, const Exits& exits) {
  Exits inner = exits;
  inner.on_break = after;
  Variables head = at(head_, node);
  for (bool again = true; again;) {
    const std::size_t known = head.size();
    if (node->kind == NodeKind::do_loop) {
      // The head of this loop is its body.
      Variables next = head;
      if (!node->always || node->condition == nullptr) add(next, after);
      inner.on_continue = before(node->condition, next, exits);
      add(head, before(node->body, inner.on_continue, inner));
    } else {
      inner.on_continue = before(node->step, head, exits);
      Variables entered = before(node->body, inner.on_continue, inner);
      if (node->kind == NodeKind::range_loop)
        entered = before(node->init, entered, exits);
      else if (node->kind == NodeKind::while_loop)
        entered = before(node->condition, entered, exits);
      if (node->kind == NodeKind::for_loop) entered = before(node->condition, entered, exits);
      add(head, entered);
      if (!node->always) {
        // The condition's last evaluation.
        add(head, node->kind == NodeKind::range_loop ? after : before(node->condition, after, exits));
      }
    }
    add(continue_[node], inner.on_continue);
    again = head.size() != known;
  }
  add(head_[node], head);
  if (node->kind == NodeKind::range_loop) return before(node->condition, head, exits);
  return before(node->init, head, exits);
}

}  // namespace lantern::frontend
