// Every list is preceded by its length and every text by its size, so that no two graphs run into the same bytes.
// With an explicit stack: continuation-passing style nests as deep as the program is long.
#include "lantern/ir/encode.hpp"

#include <bit>
#include <string_view>

#include "lantern/ir/pointer_map.hpp"

namespace lantern::ir {

namespace {

class Encoder {
 public:
  Encoder(std::string& out, const FunctionNumber& number) : out_(out), number_(number) {}

  void run(const Function& f) {
    values_.reserve(size(f));
    word(f.cps);
    word(f.result_types.size());
    for (const Type& t : f.result_types) type(t);
    place(f.loc);
    stack_.push_back({f.body, 0});
    while (!stack_.empty()) {
      auto& [block, next] = stack_.back();
      if (next == 0) {
        define(block->params);
        word(block->ops.size());
      }
      if (next == block->ops.size()) {
        stack_.pop_back();
        continue;
      }
      const Op* op = block->ops[next++];
      operation(*op);
      for (std::size_t i = op->blocks.size(); i-- > 0;) stack_.push_back({op->blocks[i], 0});
    }
  }

 private:
  struct Position {
    const Block* block;
    std::size_t next;
  };

  void operation(const Op& op) {
    word(static_cast<std::uint64_t>(op.code));
    word(std::bit_cast<std::uint64_t>(op.number));
    word(static_cast<std::uint64_t>(op.integer));
    word(op.in_place);
    word(op.callee ? number_(op.callee) + 1 : 0);
    text(op.text);
    place(op.loc);
    word(op.operands.size());
    for (const Value* v : op.operands) {
      const std::uint64_t* known = values_.find(v);
      word(known ? *known : 0);
    }
    define(op.results);
    word(op.blocks.size());
  }

  void define(const std::vector<Value*>& values) {
    word(values.size());
    for (const Value* v : values) {
      const std::uint64_t next = values_.size() + 1;
      values_[v] = next;
      type(v->type);
      word(static_cast<std::uint64_t>(v->combine));
      text(v->name);
    }
  }

  void type(const Type& t) {
    word(static_cast<std::uint64_t>(t.kind()));
    if (t.is_scalar()) return word(static_cast<std::uint64_t>(t.lanes()));
    if (t.is_tensor()) {
      word(static_cast<std::uint64_t>(t.element()));
      word(t.dims().size());
      for (const std::int64_t d : t.dims()) word(static_cast<std::uint64_t>(d));
      return;
    }
    word(t.parts().size());
    for (const Type& part : t.parts()) type(part);
  }

  void place(const Location& loc) {
    text(loc.file);
    word(loc.line);
    word(loc.column);
    word(static_cast<std::uint64_t>(loc.part));
  }

  /// A text that is missing is none of length zero.
  void text(const char* t) {
    if (!t) return word(0);
    const std::string_view view = t;
    word(view.size() + 1);
    out_ += view;
  }

  /// Small numbers, which most are, take one byte.
  void word(std::uint64_t w) {
    for (; w >= 128; w >>= 7) out_ += static_cast<char>(w | 128);
    out_ += static_cast<char>(w);
  }

  std::string& out_;
  const FunctionNumber& number_;
  PointerMap<const Value, std::uint64_t> values_;
  std::vector<Position> stack_;
};

}  // namespace

std::string encoded(const Function& function, const FunctionNumber& number) {
  std::string out;
  Encoder(out, number).run(function);
  return out;
}

std::string encoded(const Module& module) {
  PointerMap<const Function, std::uint64_t> numbers;
  for (const Function* f : module.functions()) {
    const std::uint64_t next = numbers.size() + 1;
    numbers[f] = next;
  }
  const FunctionNumber number = [&](const Function* f) {
    const std::uint64_t* known = numbers.find(f);
    return known ? *known : 0;
  };
  std::string out = std::to_string(module.functions().size()) + " functions, entry " +
                    std::to_string(module.entry ? number(module.entry) : 0) + ", tapes " +
                    std::to_string(module.tapes()) + "\n";
  for (const Function* f : module.functions()) {
    out += std::to_string(f->name.size()) + " " + f->name;
    Encoder(out, number).run(*f);
  }
  return out;
}

}  // namespace lantern::ir
