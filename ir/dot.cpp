// Writes clusters in the order of the text and collects the edges, which follow them.
#include "lantern/ir/dot.hpp"

#include <algorithm>
#include <unordered_map>

#include "lantern/ir/print.hpp"

namespace lantern::ir {

namespace {

/// What the cluster of a block is called.
std::string title(const Op& owner, std::size_t which, const Names& names) {
  switch (owner.code) {
    case Opcode::branch_:
      return which == 0 ? "then" : "else";
    case Opcode::loop_:
      return which == 0 ? "while" : "do";
    case Opcode::fun_:
      return "fun " + names(owner.result());
    default:
      return "";
  }
}

class Drawer {
 public:
  explicit Drawer(const ClassOf& class_of) : class_of_(class_of) {}

  void draw(const Function& function) {
    const Names names(function);
    names_ = &names;
    open_cluster("fun " + function_text(function.name) + (function.cps ? " cps" : ""), "#f4f4f4");
    enter(function.body, nullptr, 0);
    while (!stack_.empty()) step();
  }

  std::string finish() const {
    return "digraph lantern {\n"
           "  compound=true; newrank=true; nodesep=0.25; ranksep=0.35;\n"
           "  node [fontname=\"Helvetica\", fontsize=11, shape=box, style=\"rounded,filled\", "
           "fillcolor=white,"
           " margin=\"0.12,0.05\", height=0.3];\n"
           "  edge [fontname=\"Helvetica\", fontsize=9, arrowsize=0.6];\n"
           "  graph [fontname=\"Helvetica\", fontsize=12, labeljust=l];\n" +
           out_ + edges_ + "}\n";
  }

 private:
  struct Position {
    const Block* block;
    const Op* owner;
    std::size_t which;
    std::size_t next;
    std::string last_effect;  ///< node of the latest operation with an effect
  };

  void step() {
    Position& top = stack_.back();
    if (top.next < top.block->ops.size()) {
      const Op& op = *top.block->ops[top.next++];
      add_operation(op, top);
      if (!op.blocks.empty()) begin_block(op, 0);
      return;
    }
    const Position done = std::move(top);
    stack_.pop_back();
    close_cluster();
    if (!done.owner) return;
    if (done.which + 1 < done.owner->blocks.size()) {
      begin_block(*done.owner, done.which + 1);
    } else if (!done.owner->is(Opcode::fun_) && !done.owner->results.empty()) {
      add_merge(*done.owner);
    }
  }

  void add_operation(const Op& op, Position& block) {
    const bool merges = !op.blocks.empty() && !op.is(Opcode::fun_);
    std::string label(info(op.code).name);
    if (op.is(Opcode::constant_)) label = constant_text(op);
    if (op.is(Opcode::dim_) || op.is(Opcode::tree_value_) || op.is(Opcode::push_) || op.is(Opcode::pop_))
      label += "[" + std::to_string(op.integer) + "]";
    if (op.is(Opcode::ref_acc_)) label += " " + std::string(info(static_cast<Opcode>(op.integer)).name);
    if (has_text(op.code) && op.text) label += " " + quoted(op.text);
    if (op.callee) label += " " + function_text(op.callee->name);
    if (!merges) label += results_text(op);
    const bool effect = info(op.code).effect != Effect::none;
    const std::string style = class_of_ ? class_of_(op.loc) : "";
    const std::string node =
        add_node(label, fill(op, effect), style.empty() ? "" : ", class=" + quoted(style));
    for (std::size_t i = 0; i < op.operands.size(); ++i)
      add_data_edge(op.operands[i], node, operand_label(op, i));
    if (!merges)
      for (const Value* v : op.results) nodes_[v] = node;
    if (effect || op.is(Opcode::yield_)) {
      if (!block.last_effect.empty()) add_edge(block.last_effect, node, "style=dotted, color=gray50");
      block.last_effect = node;
    }
    heads_[&op] = node;
  }

  /// The node where the results of a branch or loop come out, below its blocks.
  void add_merge(const Op& op) {
    const std::string node = add_node("results" + results_text(op), "#fff2cc");
    for (const Value* v : op.results) nodes_[v] = node;
    stack_.back().last_effect = node;
    for (const Block* b : op.blocks)
      if (b->terminated()) add_edge(heads_.at(b->ops.back()), node, "style=dashed");
  }

  void begin_block(const Op& op, std::size_t which) {
    const Block* block = op.blocks[which];
    const std::string cluster =
        open_cluster(title(op, which, *names_), op.is(Opcode::fun_) ? "#e8f0fb" : "#fbf7ec");
    const std::string first = "n" + std::to_string(count_);
    enter(block, &op, which);
    // An edge to a cluster needs a node to aim at: the first to be drawn in it.
    if (!block->params.empty() || !block->ops.empty())
      add_edge(heads_.at(&op), first, "style=dashed, color=gray50, lhead=" + cluster);
    // Keeps the parameters side by side, below the operation.
    for (std::size_t i = 1; i < block->params.size(); ++i)
      add_edge(heads_.at(&op), nodes_.at(block->params[i]), "style=invis");
  }

  void enter(const Block* block, const Op* owner, std::size_t which) {
    stack_.push_back({block, owner, which, 0, {}});
    for (const Value* p : block->params)
      nodes_[p] = add_node((*names_)(p) + ": " + p->type.str(), "#d9ead3", ", shape=ellipse");
  }

  static const char* fill(const Op& op, bool effect) {
    if (op.is(Opcode::constant_)) return "#eeeeee";
    if (op.is(Opcode::jump_) || op.is(Opcode::call_) || op.is(Opcode::fun_)) return "#cfe2f3";
    if (!op.blocks.empty()) return "#fff2cc";
    return effect ? "#f4cccc" : "white";
  }

  std::string results_text(const Op& op) const {
    std::string s;
    for (const Value* v : op.results) s += "\n" + (*names_)(v) + ": " + v->type.str();
    return s;
  }

  /// Where operands cannot be exchanged they are numbered.
  static std::string operand_label(const Op& op, std::size_t i) {
    const bool symmetric = op.is(Opcode::add_) || op.is(Opcode::mul_);
    return op.operands.size() > 1 && !symmetric ? std::to_string(i) : "";
  }

  void add_data_edge(const Value* from, const std::string& to, const std::string& label) {
    const auto it = nodes_.find(from);
    if (it == nodes_.end()) return;
    const std::string& text = from->def && from->def->results.size() > 1 ? (*names_)(from) : label;
    add_edge(it->second, to, text.empty() ? "" : "label=" + quoted(text) + ", fontcolor=gray40");
  }

  std::string add_node(const std::string& label, const char* color, const std::string& more = "") {
    const std::string node = "n" + std::to_string(count_++);
    line(node + " [label=" + quoted(label) + ", fillcolor=\"" + color + "\"" + more + "];");
    return node;
  }

  void add_edge(const std::string& from, const std::string& to, const std::string& attributes) {
    edges_ += "  " + from + " -> " + to + (attributes.empty() ? "" : " [" + attributes + "]") + ";\n";
  }

  std::string open_cluster(const std::string& label, const char* color) {
    const std::string cluster = "cluster" + std::to_string(clusters_++);
    line("subgraph " + cluster + " {");
    ++depth_;
    line("label=" + quoted(label) + "; style=filled; color=gray70; fillcolor=\"" + color + "\";");
    return cluster;
  }

  void close_cluster() {
    --depth_;
    line("}");
  }

  void line(const std::string& text) {
    out_.append(2 * std::min<std::size_t>(depth_, 40), ' ');
    out_ += text + "\n";
  }

  const ClassOf& class_of_;
  const Names* names_ = nullptr;
  std::string out_, edges_;
  std::vector<Position> stack_;
  std::unordered_map<const Value*, std::string> nodes_;  ///< where a value comes from
  std::unordered_map<const Op*, std::string> heads_;
  std::size_t count_ = 0;
  std::size_t clusters_ = 0;
  std::size_t depth_ = 1;
};

}  // namespace

std::string dot(const Module& module, const ClassOf& class_of) {
  Drawer drawer(class_of);
  for (const Function* f : module.functions()) drawer.draw(*f);
  return drawer.finish();
}

}  // namespace lantern::ir
