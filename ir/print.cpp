// Writes modules and functions as text, with an explicit stack: CPS nests as deep as the program is long.
#include "lantern/ir/print.hpp"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <limits>
#include <unordered_set>

#include "lantern/ir/checkpoint.hpp"
#include "lantern/ir/external.hpp"
#include "lantern/ir/notation.hpp"
#include "lantern/ir/team.hpp"
#include "lantern/ir/text.hpp"

namespace lantern::ir {

namespace {

/// Beyond this depth lines are indented no further, so that the text of a deep nest stays linear in its size.
constexpr std::size_t deepest_indent = 40;

template <class Range, class Text>
void append_list(std::string& out, const Range& range, Text&& text) {
  bool first = true;
  for (const auto& item : range) {
    if (!first) out += ", ";
    first = false;
    out += text(item);
  }
}

void append_params(std::string& out, const Block& block, const Names& names) {
  out += '(';
  append_list(out, block.params, [&](const Value* p) {
    const std::string_view combine = name(p->combine);
    return names(p) + ": " + p->type.str() + (combine.empty() ? "" : " " + std::string(combine));
  });
  out += ')';
}

std::string attribute_text(const Op& op) {
  const std::string number = std::to_string(op.integer);
  switch (info(op.code).attribute) {
    case Attribute::none:
    case Attribute::value:
      return "";
    case Attribute::dimension:
    case Attribute::component:
    case Attribute::lanes:
      return number;
    case Attribute::sizes:
      return op.operands.size() > 1 ? number : "";
    case Attribute::bounds:
      return op.integer == ir::inside ? "inside" : "";
    case Attribute::threads:
      return op.integer == in_threads ? "threads" : op.integer == in_order ? "ordered" : "";
    case Attribute::tape:
      return number + (owns_elements(op) ? ", copy" : "");
    case Attribute::kind: {
      const bool scalar = op.integer >= 0 && op.integer <= static_cast<std::int64_t>(Kind::f64);
      return scalar ? kind_name(static_cast<Kind>(op.integer)) : "?";
    }
    case Attribute::operation: {
      const bool known = op.integer >= 0 && op.integer < static_cast<std::int64_t>(Opcode::count_);
      return known ? std::string(info(accumulated_by(op)).name) : "?";
    }
    case Attribute::zeros:
      return op.integer == as_minus_zero ? "minus" : "";
    case Attribute::runs:
      if (team_size(op) > 0)
        return "fork " + std::to_string(team_size(op)) + " " + std::to_string(team_threads(op));
      return is_checkpointed(op) ? "checkpoint" : "";
    case Attribute::memory: {
      const LoopMemory memory = LoopMemory::of(op);
      if (!memory.bounded()) return "";
      return memory.bytes > 0 ? "memory " + std::to_string(memory.bytes)
                              : "checkpoints " + std::to_string(memory.checkpoints);
    }
  }
  return "";
}

/// All that is in brackets behind an operation's name.
std::string in_brackets(const Op& op) {
  std::string text = attribute_text(op);
  if (op.in_place) text += text.empty() ? "in place" : ", in place";
  return text.empty() ? text : "[" + text + "]";
}

std::string float_text(double v, bool single) {
  if (std::isnan(v)) {
    const auto bits = std::bit_cast<std::uint64_t>(v);
    const auto quiet = std::bit_cast<std::uint64_t>(std::numeric_limits<double>::quiet_NaN());
    const std::string sign = std::signbit(v) ? "-" : "";
    const std::uint64_t unsigned_bits = bits & ~(std::uint64_t{1} << 63);
    if (unsigned_bits == quiet) return sign + "nan";
    char hex[16];
    const auto end = std::to_chars(hex, hex + sizeof hex, unsigned_bits, 16).ptr;
    return sign + "nan(0x" + std::string(hex, end) + ")";
  }
  char text[64];
  const auto end = single ? std::to_chars(text, text + sizeof text, static_cast<float>(v)).ptr
                          : std::to_chars(text, text + sizeof text, v).ptr;
  return std::string(text, end);
}

std::string location_text(const Location& loc) {
  if (!loc.known()) return "";
  std::string s = " @ " + quoted(loc.file) + ":" + std::to_string(loc.line);
  if (loc.column) s += ":" + std::to_string(loc.column);
  if (loc.part == Part::plain) return s;
  return s + (loc.part == Part::forward ? " forward" : " backward");
}

class Printer {
 public:
  Printer(std::string& out, const Function& function, PrintOptions options)
      : out_(out), function_(function), options_(options), names_(function, options.names) {}

  void run() {
    out_ += "fun " + function_text(function_.name);
    append_params(out_, *function_.body, names_);
    if (!function_.result_types.empty()) {
      out_ += " -> ";
      append_list(out_, function_.result_types, [](const Type& t) { return t.str(); });
    }
    if (function_.cps) out_ += " cps";
    if (options_.locations) out_ += location_text(function_.loc);
    out_ += " {\n";
    stack_.push_back({function_.body, nullptr, 0, 0});
    while (!stack_.empty()) step();
  }

 private:
  struct Position {
    const Block* block;
    const Op* owner;    ///< null for the body
    std::size_t which;  ///< index of the block in its owner
    std::size_t next;
  };

  void step() {
    Position& top = stack_.back();
    if (top.next < top.block->ops.size()) {
      const Op* op = top.block->ops[top.next++];
      indent(stack_.size());
      out_ += print(*op, names_);
      if (options_.locations) out_ += location_text(op->loc);
      if (op->blocks.empty()) {
        out_ += '\n';
      } else {
        open(op, 0);
      }
      return;
    }
    const Op* owner = top.owner;
    const std::size_t following = top.which + 1;
    stack_.pop_back();
    indent(stack_.size());
    out_ += '}';
    if (owner && following < owner->blocks.size()) {
      open(owner, following);
    } else {
      out_ += '\n';
    }
  }

  void open(const Op* op, std::size_t which) {
    const Block* block = op->blocks[which];
    out_ += ' ';
    if (op->is(Opcode::loop_)) out_ += which == 0 ? "while " : "do ";
    if (op->is(Opcode::branch_) && which > 0) out_ += "else ";
    if (op->is(Opcode::loop_, Opcode::fun_) || !block->params.empty()) {
      append_params(out_, *block, names_);
      out_ += ' ';
    }
    out_ += "{\n";
    stack_.push_back({block, op, which, 0});
  }

  void indent(std::size_t depth) { out_.append(2 * std::min(depth, deepest_indent), ' '); }

  std::string& out_;
  const Function& function_;
  PrintOptions options_;
  Names names_;
  std::vector<Position> stack_;
};

}  // namespace

std::string quoted(std::string_view text) {
  std::string s = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      s += '\\';
      s += c;
    } else if (c == '\n') {
      s += "\\n";
    } else if (c == '\t') {
      s += "\\t";
    } else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) {
      constexpr std::string_view digits = "0123456789abcdef";
      s +=
          {'\\', 'x', digits[static_cast<unsigned char>(c) >> 4], digits[static_cast<unsigned char>(c) & 15]};
    } else {
      s += c;
    }
  }
  return s + '"';
}

std::string function_text(std::string_view name) {
  const bool plain = !name.empty() && std::all_of(name.begin(), name.end(), is_word);
  return "@" + (plain ? std::string(name) : quoted(name));
}

std::string constant_text(const Op& constant) {
  const Kind kind =
      constant.results.empty() || !constant.results[0] ? Kind::f64 : constant.results[0]->type.element();
  if (kind == Kind::f64 || kind == Kind::f32) return float_text(constant.number, kind == Kind::f32);
  if (kind == Kind::boolean && (constant.integer == 0 || constant.integer == 1))
    return constant.integer ? "true" : "false";
  return std::to_string(constant.integer);
}

Names::Names(const Function& function, bool user_names) {
  const auto define_all = [&](const std::vector<Value*>& values) {
    for (const Value* v : values) define(v, user_names);
  };
  // In the order of the text: results of an operation, then each of its blocks, parameters first.
  struct Position {
    const Block* block;
    std::size_t next;
  };
  std::vector<Position> stack{{function.body, 0}};
  std::unordered_set<const Block*> met;
  while (!stack.empty()) {
    auto& [block, next] = stack.back();
    const bool again = next == 0 && (!block || !met.insert(block).second);  // only in graphs that are wrong
    if (again || next == block->ops.size()) {
      if (!again && next == 0) define_all(block->params);
      stack.pop_back();
      continue;
    }
    if (next == 0) define_all(block->params);
    const Op* op = block->ops[next++];
    if (!op) continue;
    define_all(op->results);
    for (std::size_t i = op->blocks.size(); i-- > 0;) stack.push_back({op->blocks[i], 0});
  }
}

void Names::define(const Value* value, bool user_names) {
  std::string& name = names_[value];
  if (!name.empty()) return;
  name = "%";
  if (user_names && value->name && *value->name) {
    if (is_digit(*value->name)) name += '_';
    for (const char* c = value->name; *c; ++c) name += is_word(*c) ? *c : '_';
    const int use = ++uses_[name];
    if (use > 1) name += "." + std::to_string(use);
  } else {
    name += std::to_string(++numbered_);
  }
}

const std::string& Names::operator()(const Value* value) const {
  static const std::string unknown = "%?";
  const auto it = names_.find(value);
  return it == names_.end() ? unknown : it->second;
}

std::string print(const Op& op, const Names& names) {
  std::string out;
  const auto name = [&](const Value* v) { return names(v); };
  if (!op.results.empty()) {
    append_list(out, op.results, name);
    out += " = ";
  }
  out += is_parallel(op) ? "parallel" : op.code < Opcode::count_ ? info(op.code).name : "?";
  out += in_brackets(op);
  if (op.is(Opcode::constant_)) {
    out += " " + constant_text(op);
  } else if (op.is(Opcode::call_, Opcode::closure_)) {
    out += " " + (op.callee ? function_text(op.callee->name) : "@?") + "(";
    append_list(out, op.operands, name);
    out += ')';
  } else if (!op.operands.empty()) {
    out += ' ';
    append_list(out, op.operands, name);
  }
  if (has_text(op.code) || (may_have_text(op.code) && op.text))
    out += (op.operands.empty() ? " " : ", ") + quoted(op.text ? op.text : "");
  if (!op.results.empty() && !op.is(Opcode::fun_)) {
    out += " : ";
    append_list(out, op.results, [](const Value* v) { return v ? v->type.str() : "?"; });
  }
  return out;
}

std::string print(const Function& function, PrintOptions options) {
  std::string out;
  Printer(out, function, options).run();
  return out;
}

std::string print(const Module& module, PrintOptions options) {
  std::string out;
  if (module.entry) out += "entry " + function_text(module.entry->name) + "\n";
  for (const Function* f : module.functions()) {
    if (!out.empty()) out += '\n';
    Printer(out, *f, options).run();
  }
  return out;
}

}  // namespace lantern::ir
