// Reads statements off the graph.
#include "lantern/compiler/drawing/drawing.hpp"

#include <algorithm>
#include <deque>
#include <unordered_map>

#include "lantern/compiler/drawing/arrange.hpp"
#include "lantern/ir/infix.hpp"
#include "lantern/ir/print.hpp"

namespace lantern::ir {

namespace {

using ItemKind = DrawnItem::Kind;
using Binds = Infix::Binds;

/// Longer texts become statements of their own.
constexpr std::size_t longest_inside = 44;
/// Boxes in boxes, as far as they are drawn.
constexpr std::size_t deepest = 48;
/// So many names are listed.
constexpr std::size_t most_names = 4;


/// Needs no statement, wherever it is used.
bool is_mentioned(const Op& op) {
  return op.is(Opcode::constant_, Opcode::undef_, Opcode::dim_, Opcode::lane_index_, Opcode::lane_splat_);
}

class Drawer {
 public:
  Drawer(const Function& function, const DrawingOptions& options, std::size_t& items_left)
      : function_(function), options_(options), names_(function), items_left_(items_left) {
    look_around();
  }

  DrawnItem draw() {
    DrawnItem item;
    item.kind = ItemKind::function;
    item.text = function_text(function_.name).substr(1);
    item.loc = function_.loc;
    item.operations = operations_[nullptr];
    std::vector<DrawnStatement> first;
    for (const Value* p : function_.body->params)
      first.push_back(parameter(p, name(p) + ": " + p->type.str()));
    item.blocks.push_back(block(*function_.body, "", std::move(first), {"return"}, " ", 0));
    return item;
  }

 private:
  // ---- what is known before

  struct Parts {
    bool forward = false, backward = false;
  };

  void look_around() {
    std::vector<const Op*> order;
    std::unordered_map<const Block*, std::size_t> depth{{function_.body, 0}};
    walk(function_.body, [&](const Op* op) {
      order.push_back(op);
      const std::size_t here = depth[op->parent];
      for (const Block* b : op->blocks) depth[b] = here + 1;
      for (const Value* v : op->operands) {
        ++uses_[v];
        user_[v] = op;
        // The boxes that it comes into on the way to its user.
        if (here - depth[v->block] > deepest) continue;
        for (const Block* b = op->parent; b != v->block && b->parent; b = b->parent->parent)
          used_in_[b->parent].push_back(v);
      }
    });
    for (std::size_t i = order.size(); i-- > 0;) {
      const Op* op = order[i];
      const Op* around = op->parent->parent;
      operations_[around] += operations_[op] + 1;
      Parts& parts = parts_[around];
      const Parts own = parts_[op];
      const bool counts = !op->is(Opcode::yield_) && op->blocks.empty();
      parts.forward |= own.forward || (counts && op->loc.part == Part::forward);
      parts.backward |= own.backward || (counts && op->loc.part == Part::backward);
    }
  }

  std::string name(const Value* v) const {
    if (const auto it = renamed_.find(v); it != renamed_.end()) return name(it->second);
    const std::string& text = names_(v);
    return text.size() > 1 && (text[1] < '0' || text[1] > '9') ? text.substr(1) : text;
  }

  template <class Values>
  std::string names(const Values& values) const {
    std::string text;
    std::size_t n = 0;
    for (const Value* v : values) {
      if (n++ == most_names) break;
      text += (text.empty() ? "" : ", ") + name(v);
    }
    return n > most_names ? text + ", ... (" + std::to_string(values.size()) + ")" : text;
  }

  // ---- texts of values

  Infix text(const Value* v) {
    if (const auto it = inside_.find(v); it != inside_.end()) return it->second.text;
    if (v->def && is_mentioned(*v->def)) {
      std::vector<Infix> operands;
      for (const Value* o : v->def->operands) operands.push_back(text(o));
      return infix(*v->def, operands);
    }
    return {name(v)};
  }

  std::vector<Infix> texts(const std::vector<Value*>& values) {
    std::vector<Infix> all;
    for (const Value* v : values) all.push_back(text(v));
    return all;
  }

  /// Statements of the block that a value comes from.
  void add_needs(const Value* v, std::vector<std::size_t>& needs) const {
    if (const auto it = inside_.find(v); it != inside_.end())
      needs.insert(needs.end(), it->second.needs.begin(), it->second.needs.end());
    else if (const auto made = statement_.find(v); made != statement_.end())
      needs.push_back(made->second);
    else if (v->def && v->def->is(Opcode::lane_splat_) && v->def->operands[0]->block == v->block)
      add_needs(v->def->operands[0], needs);
  }

  std::vector<std::size_t> needs(const std::vector<const Value*>& values, const Block& in) const {
    std::vector<std::size_t> all;
    for (const Value* v : values)
      if (v->block == &in) add_needs(v, all);
    std::ranges::sort(all);
    all.erase(std::ranges::unique(all).begin(), all.end());
    return all;
  }

  /// True where the operation can be inside the one that uses it.
  bool stands_inside(const Op& op, const Infix& as_text) const {
    if (!is_pure(op) || op.results.size() != 1) return false;
    const Value* v = op.result();
    const auto used = uses_.find(v);
    if (used == uses_.end() || used->second != 1 || user_.at(v)->parent != op.parent) return false;
    // The user's names are landmarks, except on the way out of the block.
    if (v->name && !user_.at(v)->is(Opcode::yield_)) return false;
    return as_text.text.size() <= longest_inside;
  }

  // ---- blocks

  DrawnStatement parameter(const Value* p, std::string as_text) const {
    DrawnStatement s;
    s.item.kind = ItemKind::parameter;
    s.item.text = std::move(as_text);
    s.item.types = p->type.str();
    return s;
  }

  /// `first`: the statements of its parameters. Its results are written as "TARGET[i] SIGN value"; the last
  /// target represents all that follow, and an empty one leaves its result out.
  DrawnBlock block(const Block& b, std::string title, std::vector<DrawnStatement> first,
                   const std::vector<std::string>& targets, const std::string& sign, std::size_t depth) {
    std::vector<DrawnStatement> all = std::move(first);
    for (std::size_t i = 0; i < all.size() && i < b.params.size(); ++i)
      if (!all[i].item.text.empty()) statement_[b.params[i]] = i;
    std::size_t left_out = 0;
    for (const Op* op : b.ops) {
      if (is_pure(*op) && is_mentioned(*op)) continue;
      if (op->is(Opcode::yield_)) {
        add_results(*op, b, targets, sign, all);
        continue;
      }
      if (items_left_ == 0) {
        left_out += 1 + operations_[op];
        continue;
      }
      DrawnStatement s = op->blocks.empty() ? statement(*op, b) : box(*op, b, depth);
      if (s.item.text.empty()) continue;
      --items_left_;
      for (const Value* v : op->results) statement_[v] = all.size();
      all.push_back(std::move(s));
    }
    // Without a text: a parameter that the title tells of.
    DrawnBlock drawn = arranged(std::move(title), without_silent(std::move(all)), options_.row);
    drawn.left_out = left_out;
    return drawn;
  }

  static std::vector<DrawnStatement> without_silent(std::vector<DrawnStatement> all) {
    std::vector<std::size_t> place(all.size());
    std::vector<DrawnStatement> rest;
    for (std::size_t i = 0; i < all.size(); ++i) {
      place[i] = rest.size();
      if (all[i].item.text.empty()) continue;
      for (std::size_t& n : all[i].needs) n = place[n];
      rest.push_back(std::move(all[i]));
    }
    return rest;
  }

  void add_results(const Op& op, const Block& b, const std::vector<std::string>& targets,
                   const std::string& sign, std::vector<DrawnStatement>& all) {
    for (std::size_t i = 0; i < op.operands.size() && !targets.empty(); ++i) {
      const std::string& target = targets[std::min(i, targets.size() - 1)];
      if (target.empty()) continue;
      DrawnStatement s;
      s.item.kind = ItemKind::result;
      s.item.text = target + sign + text(op.operands[i]).text;
      s.item.types = op.operands[i]->type.str();
      s.item.loc = op.operands[i]->def ? op.operands[i]->def->loc : op.loc;
      s.item.operations = i == 0 ? 1 : 0;
      s.needs = needs({op.operands[i]}, b);
      all.push_back(std::move(s));
    }
  }

  /// Without a text where the operation goes into the one that uses it.
  DrawnStatement statement(const Op& op, const Block& b) {
    DrawnStatement s;
    const std::vector<const Value*> used(op.operands.begin(), op.operands.end());
    s.needs = needs(used, b);
    Infix as_text = infix(op, texts(op.operands));
    if (stands_inside(op, as_text)) {
      inside_[op.result()] = {std::move(as_text), std::move(s.needs)};
      return s;
    }
    s.item.kind = is_pure(op) ? ItemKind::statement : op.callee || op.is(Opcode::jump_) ? ItemKind::call : ItemKind::effect;
    s.item.text = (op.results.empty() ? "" : names(op.results) + " = ") + as_text.text;
    s.item.types = types(op);
    s.item.loc = op.loc;
    s.item.operations = 1;
    return s;
  }

  static std::string types(const Op& op) {
    std::string all;
    for (const Value* v : op.results) {
      if (all.size() > 60) return all + ", ...";
      all += (all.empty() ? "" : ", ") + v->type.str();
    }
    return all;
  }

  DrawnStatement box(const Op& op, const Block& b, std::size_t depth) {
    DrawnStatement s;
    s.item.loc = op.loc;
    s.item.operations = 1 + operations_[&op];
    s.item.types = op.is(Opcode::fun_) ? "" : types(op);
    const Parts parts = parts_[&op];
    s.item.loc.part = parts.forward == parts.backward ? (parts.forward ? Part::plain : op.loc.part)
                      : parts.forward                 ? Part::forward
                                                      : Part::backward;
    std::vector<const Value*> used = used_in_[&op];
    used.insert(used.end(), op.operands.begin(), op.operands.end());
    s.needs = needs(used, b);
    const std::string gives = op.is(Opcode::fun_) || op.results.empty() ? "" : names(op.results) + " = ";
    if (op.is(Opcode::fun_)) {
      s.item.kind = ItemKind::function;
      s.item.text = "continuation " + name(op.result()) + "(" + names(op.blocks[0]->params) + ")";
      add_block(s.item, *op.blocks[0], "", {}, {}, "", depth);
    } else if (op.is(Opcode::branch_)) {
      s.item.kind = ItemKind::branch;
      s.item.text = gives + "if " + text(op.operands[0]).text;
      std::vector<std::string> targets;
      for (const Value* v : op.results) targets.push_back(name(v));
      add_block(s.item, *op.blocks[0], "then", {}, targets, " = ", depth);
      if (op.blocks[1]->ops.size() > 1 || !op.results.empty())
        add_block(s.item, *op.blocks[1], "else", {}, targets, " = ", depth);
    } else {
      add_loop(op, gives, s.item, depth);
    }
    return s;
  }

  void add_block(DrawnItem& item, const Block& b, std::string title, std::vector<DrawnStatement> first,
                 const std::vector<std::string>& targets, const std::string& sign, std::size_t depth) {
    if (depth + 1 < deepest)
      item.blocks.push_back(block(b, std::move(title), std::move(first), targets, sign, depth + 1));
    else
      item.blocks.emplace_back().left_out = item.operations;
  }

  // ---- loops

  /// The state that counts: tested by the condition alone, one more after each iteration.
  struct Count {
    std::size_t state;
    const Value *bound = nullptr, *step = nullptr;
  };
  static bool counts(const Op& loop, Count& count) {
    const Value* condition = loop.blocks[0]->yields()[0];
    if (!condition->def || !condition->def->is(Opcode::lt_)) return false;
    const Value* tested = condition->def->operands[0];
    if (tested->def || tested->block != loop.blocks[0]) return false;
    count.state = tested->index;
    count.bound = condition->def->operands[1];
    const Value* next = loop.blocks[1]->yields()[count.state];
    if (!next->def || !next->def->is(Opcode::add_)) return false;
    const Value* index = loop.blocks[1]->params[count.state];
    if (next->def->operands[0] != index && next->def->operands[1] != index) return false;
    count.step = next->def->operands[next->def->operands[0] == index ? 1 : 0];
    return count.step->def && count.step->def->is(Opcode::constant_);
  }

  void add_loop(const Op& op, const std::string& gives, DrawnItem& item, std::size_t depth) {
    item.kind = ItemKind::loop;
    const Block &test = *op.blocks[0], &body = *op.blocks[1];
    for (std::size_t i = 0; i < test.params.size(); ++i) renamed_[test.params[i]] = body.params[i];
    // A condition of one expression goes into the title.
    DrawnBlock condition = block(test, "while", {}, {"go on if"}, " ", depth + 1);
    const bool simple = condition.items.size() == 1;
    Count count{body.params.size()};
    if (simple && counts(op, count)) {
      const std::string step = text(count.step).text;
      item.text = gives + "for " + name(body.params[count.state]) + " from " +
                  text(op.operands[count.state]).text + " to " + text(count.bound).text +
                  (step == "1" ? "" : " by " + step);
    } else {
      count.state = body.params.size();
      item.text = gives + (simple ? "while " + condition.items[0].text.substr(std::string("go on if ").size())
                                  : std::string("loop"));
      if (!simple) item.blocks.push_back(std::move(condition));
    }
    // What no iteration changes goes by the name that it has outside; the index is in the title.
    std::vector<DrawnStatement> first;
    std::vector<std::string> targets;
    for (std::size_t i = 0; i < body.params.size(); ++i) {
      const Value* p = body.params[i];
      const bool told = i == count.state || const_cast<Block&>(body).yields()[i] == p;
      targets.push_back(told ? "" : name(p));
      first.push_back(
          parameter(p, told && i == count.state ? "" : name(p) + " = " + text(op.operands[i]).text));
    }
    add_block(item, body, item.blocks.empty() ? "" : "do", std::move(first), targets, " \xe2\x86\x90 ",
              depth);
  }

  struct Inside {
    Infix text;
    std::vector<std::size_t> needs;
  };

  const Function& function_;
  const DrawingOptions& options_;
  Names names_;
  std::size_t& items_left_;
  std::unordered_map<const Value*, std::size_t> uses_, statement_;
  std::unordered_map<const Value*, const Op*> user_;
  std::unordered_map<const Value*, const Value*> renamed_;
  std::unordered_map<const Value*, Inside> inside_;
  std::unordered_map<const Op*, std::vector<const Value*>> used_in_;
  std::unordered_map<const Op*, std::size_t> operations_;  ///< inside; of the function under null
  std::unordered_map<const Op*, Parts> parts_;
};

/// Outermost boxes first, as far as there is room for what is in them.
void open_boxes(std::vector<DrawnItem>& functions, std::size_t room) {
  std::deque<DrawnItem*> boxes;
  for (DrawnItem& f : functions) boxes.push_back(&f);
  bool first = true;
  for (; !boxes.empty(); boxes.pop_front()) {
    DrawnItem& box = *boxes.front();
    std::size_t items = 0;
    for (const DrawnBlock& b : box.blocks) items += b.items.size();
    if (items > room && !first) continue;
    first = false;
    room -= std::min(items, room);
    box.open = true;
    for (DrawnBlock& b : box.blocks)
      for (DrawnItem& i : b.items)
        if (i.is_box()) boxes.push_back(&i);
  }
}

}  // namespace

std::vector<DrawnItem> drawing(const Module& module, const DrawingOptions& options) {
  std::vector<const Function*> order(module.functions().begin(), module.functions().end());
  std::ranges::stable_partition(order, [&](const Function* f) { return f == module.entry; });
  std::vector<DrawnItem> all;
  std::size_t items_left = options.items;
  for (const Function* f : order) all.push_back(Drawer(*f, options, items_left).draw());
  open_boxes(all, options.shown);
  return all;
}

}  // namespace lantern::ir
