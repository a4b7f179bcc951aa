// Structural recursion over statements.
#include "lantern/compiler/frontend/clang/ways.hpp"

#include <algorithm>

namespace lantern::frontend {

void walk(const Node* node, const std::function<void(const Node*)>& f) {
  if (node == nullptr) return;
  f(node);
  for (const Node* part : {node->init, node->condition, node->step, node->body, node->otherwise})
    walk(part, f);
  for (const Node* child : node->children) walk(child, f);
}

unsigned exits(const Node* n) {
  if (n == nullptr) return 0;
  switch (n->kind) {
    case NodeKind::break_exit:
      return breaks;
    case NodeKind::continue_exit:
      return continues;
    case NodeKind::return_exit:
      return returns;
    case NodeKind::branch:
      return exits(n->body) | exits(n->otherwise);
    case NodeKind::while_loop:
    case NodeKind::do_loop:
    case NodeKind::for_loop:
    case NodeKind::range_loop:
      return exits(n->body) & returns;
    case NodeKind::block:
    case NodeKind::selection:
    case NodeKind::obstacle: {
      unsigned all = n->kind == NodeKind::obstacle ? exits(n->body) : 0;
      for (const Node* child : n->children) all |= exits(child);
      return n->kind == NodeKind::selection ? all & (continues | returns) : all;
    }
    default:
      return 0;
  }
}

bool is_loop(const Node* n) {
  return n->kind == NodeKind::while_loop || n->kind == NodeKind::do_loop || n->kind == NodeKind::for_loop ||
         n->kind == NodeKind::range_loop;
}

bool converted(const Node* n) {
  if (n->kind == NodeKind::branch)
    return n->staged || leaves(n->body) != 0 || (n->otherwise != nullptr && leaves(n->otherwise) != 0);
  if (is_loop(n)) return n->staged || leaves(n->body) != 0;
  if (n->kind == NodeKind::selection)
    return n->staged ||
           std::any_of(n->children.begin(), n->children.end(), [](const Node* c) { return leaves(c) != 0; });
  return false;
}

unsigned leaves(const Node* n) {
  if (n == nullptr) return 0;
  if (n->kind == NodeKind::block || n->kind == NodeKind::obstacle) {
    unsigned all = leaves(n->body);
    for (const Node* child : n->children) all |= leaves(child);
    return all;
  }
  return converted(n) ? exits(n) : 0;
}

bool falls(const Node* n) {
  if (n == nullptr) return true;
  switch (n->kind) {
    case NodeKind::break_exit:
    case NodeKind::continue_exit:
    case NodeKind::return_exit:
      return false;
    case NodeKind::block:
      return std::all_of(n->children.begin(), n->children.end(), falls);
    case NodeKind::branch:
      return n->otherwise == nullptr || falls(n->body) || falls(n->otherwise);
    case NodeKind::while_loop:
    case NodeKind::for_loop:
    case NodeKind::do_loop:
      return !n->always || (exits(n->body) & breaks) != 0;
    default:
      return true;
  }
}

bool any_leaves(const Statements& list) {
  return std::any_of(list.begin(), list.end(), [](const Node* n) { return leaves(n) != 0; });
}

bool all_fall(const Statements& list) { return std::all_of(list.begin(), list.end(), falls); }

bool loop_returns(const Node* n) {
  bool found = false;
  walk(n, [&](const Node* inner) { found |= is_loop(inner) && (exits(inner) & returns) != 0; });
  return found;
}

Statements statements(const Node* n) {
  if (n == nullptr) return {};
  if (n->kind == NodeKind::block) return {n->children.begin(), n->children.end()};
  return {n};
}

}  // namespace lantern::frontend
