// A scanner and a parser of one token of look-ahead; nested blocks live on an explicit stack.
#include "lantern/ir/parse.hpp"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <limits>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>

#include "lantern/ir/checkpoint.hpp"
#include "lantern/ir/error.hpp"
#include "lantern/ir/external.hpp"
#include "lantern/ir/notation.hpp"
#include "lantern/ir/team.hpp"
#include "lantern/ir/text.hpp"

namespace lantern::ir {

namespace {

enum class TokenKind { end, word, value, function, number, string, arrow, symbol };

struct Token {
  TokenKind kind = TokenKind::end;
  std::string_view text;  ///< as written
  std::string content;    ///< of a string or a function name, without quotes and escapes
  std::uint32_t line = 1;
  std::uint32_t column = 1;
};

[[noreturn]] void fail_at(const Token& at, const std::string& message) {
  throw Error(std::to_string(at.line) + ":" + std::to_string(at.column) + ": " + message);
}

class Scanner {
 public:
  explicit Scanner(std::string_view text) : text_(text) {}

  Token next() {
    skip();
    Token t;
    t.line = line_;
    t.column = static_cast<std::uint32_t>(at_ - line_start_ + 1);
    const std::size_t start = at_;
    if (at_ == text_.size()) return t;
    const char c = text_[at_++];
    if (c == '%') {
      t.kind = TokenKind::value;
      while (is_word(peek()) || peek() == '.') ++at_;
    } else if (c == '@' && (is_word(peek()) || peek() == '"')) {
      t.kind = TokenKind::function;
      if (peek() == '"') {
        ++at_;
        t.content = string(t);
      } else {
        while (is_word(peek())) t.content += text_[at_++];
      }
    } else if (c == '"') {
      t.kind = TokenKind::string;
      t.content = string(t);
    } else if (c == '-' && peek() == '>') {
      t.kind = TokenKind::arrow;
      ++at_;
    } else if (is_digit(c) || c == '-') {
      t.kind = TokenKind::number;
      while (is_word(peek()) || peek() == '.' || (is_sign(peek()) && is_exponent(text_[at_ - 1]))) ++at_;
    } else if (is_word(c)) {
      t.kind = TokenKind::word;
      while (is_word(peek())) ++at_;
    } else {
      t.kind = TokenKind::symbol;
    }
    t.text = text_.substr(start, at_ - start);
    return t;
  }

 private:
  char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  static bool is_sign(char c) { return c == '-' || c == '+'; }
  static bool is_exponent(char c) { return c == 'e' || c == 'E'; }

  void skip() {
    for (; at_ < text_.size(); ++at_) {
      const char c = text_[at_];
      if (c == ';') {
        while (at_ + 1 < text_.size() && text_[at_ + 1] != '\n') ++at_;
      } else if (c == '\n') {
        ++line_;
        line_start_ = at_ + 1;
      } else if (c != ' ' && c != '\t' && c != '\r') {
        return;
      }
    }
  }

  /// The rest of a string whose first quote has been read.
  std::string string(const Token& start) {
    std::string s;
    for (;;) {
      const char c = peek();
      if (at_ == text_.size() || c == '\n')
        fail_at(start, "expected a string that ends on its line, got none");
      ++at_;
      if (c == '"') return s;
      s += c == '\\' ? escape(start) : c;
    }
  }

  char escape(const Token& start) {
    const char c = peek();
    ++at_;
    switch (c) {
      case 'n':
        return '\n';
      case 't':
        return '\t';
      case '"':
      case '\\':
        return c;
      case 'x': {
        int code = 0;
        const std::string_view digits = text_.substr(std::min(at_, text_.size()), 2);
        const auto r = std::from_chars(digits.data(), digits.data() + digits.size(), code, 16);
        if (digits.size() == 2 && r.ptr == digits.data() + 2) {
          at_ += 2;
          return static_cast<char>(code);
        }
      }
    }
    fail_at(start, "expected \\n, \\t, \\\", \\\\ or \\x and two digits in a string, got another escape");
  }

  std::string_view text_;
  std::size_t at_ = 0;
  std::size_t line_start_ = 0;
  std::uint32_t line_ = 1;
};

bool is_core(Opcode op) { return op >= Opcode::constant_; }

class ModuleParser {
 public:
  explicit ModuleParser(std::string_view text) : scanner_(text), module_(std::make_unique<Module>()) { advance(); }

  std::unique_ptr<Module> run() {
    Token entry;
    if (is_word("entry")) {
      advance();
      entry = take(TokenKind::function, "a function name");
    }
    while (token_.kind != TokenKind::end) function();
    for (const auto& [op, name] : calls_) op->callee = find(name);
    if (entry.kind == TokenKind::function) module_->entry = find(entry);
    return std::move(module_);
  }

 private:
  struct Open {
    Block* block;
    Op* owner;                            ///< null for a function's body
    std::size_t which;                    ///< index of the block in its owner
    std::vector<Token> results;           ///< the owner's, to be defined when its last block has ended
    std::vector<std::string_view> names;  ///< defined in the block
  };

  // ---- tokens

  void advance() { token_ = scanner_.next(); }
  bool is_word(std::string_view w) const { return token_.kind == TokenKind::word && token_.text == w; }
  bool is_symbol(char c) const { return token_.kind == TokenKind::symbol && token_.text[0] == c; }

  [[noreturn]] void fail(const std::string& expected) const {
    const bool end = token_.kind == TokenKind::end;
    fail_at(token_,
            "expected " + expected + ", got " + (end ? "the end" : "'" + std::string(token_.text) + "'"));
  }
  Token take(TokenKind kind, const char* expected) {
    if (token_.kind != kind) fail(expected);
    Token t = std::move(token_);
    advance();
    return t;
  }
  bool eat(char c) {
    if (!is_symbol(c)) return false;
    advance();
    return true;
  }
  void expect(char c) {
    if (!eat(c)) fail(std::string("'") + c + "'");
  }
  void expect(const char* word) {
    if (!is_word(word)) fail(std::string("'") + word + "'");
    advance();
  }

  std::int64_t integer(const char* expected, std::int64_t least = std::numeric_limits<std::int64_t>::min(),
                       std::int64_t most = std::numeric_limits<std::int64_t>::max()) {
    std::int64_t n = 0;
    const char* last = token_.text.data() + token_.text.size();
    if (token_.kind != TokenKind::number) fail(expected);
    const auto r = std::from_chars(token_.text.data(), last, n);
    if (r.ec != std::errc{} || r.ptr != last || n < least || n > most) fail(expected);
    advance();
    return n;
  }

  // ---- types

  /// Types are the one place that recurses; nothing needs more than a few levels.
  Type type(int depth = 0) {
    if (depth > 64) fail("a type nested at most 64 deep");
    if (is_word("ref")) {
      advance();
      return Type::ref(type(depth + 1));
    }
    if (is_word("cont")) {
      advance();
      return Type::cont(type_list('(', ')', depth + 1));
    }
    if (is_word("tree")) {
      advance();
      return Type::tree(type_list('<', '>', depth + 1));
    }
    if (const std::optional<Type> vector = vector_type()) return *vector;
    const Kind element = scalar_kind();
    return eat('[') ? Type::tensor(element, dimensions()) : Type(element);
  }

  /// f64x8: one word.
  std::optional<Type> vector_type() {
    if (token_.kind != TokenKind::word) return {};
    const std::size_t x = token_.text.rfind('x');
    if (x == std::string_view::npos || x + 1 == token_.text.size() || token_.text.size() - x > 4) return {};
    int lanes = 0;
    for (const char c : token_.text.substr(x + 1)) {
      if (c < '0' || c > '9') return {};
      lanes = 10 * lanes + (c - '0');
    }
    for (const Kind k : {Kind::boolean, Kind::i32, Kind::i64, Kind::f32, Kind::f64})
      if (token_.text.substr(0, x) == kind_name(k) && lanes > 1) {
        advance();
        return Type::vector(k, lanes);
      }
    return {};
  }

  Kind scalar_kind() {
    for (const Kind k : {Kind::boolean, Kind::i32, Kind::i64, Kind::f32, Kind::f64})
      if (is_word(kind_name(k))) {
        advance();
        return k;
      }
    fail("a type");
  }

  std::vector<std::int64_t> dimensions() {
    std::vector<std::int64_t> dims;
    if (eat(']')) return dims;
    do dims.push_back(eat('?') ? dynamic : integer("a dimension", 0));
    while (eat(','));
    expect(']');
    return dims;
  }

  std::vector<Type> type_list(char open, char close, int depth) {
    std::vector<Type> types;
    expect(open);
    if (eat(close)) return types;
    do types.push_back(type(depth));
    while (eat(','));
    expect(close);
    return types;
  }

  std::vector<Type> types() {
    std::vector<Type> list;
    do list.push_back(type());
    while (eat(','));
    return list;
  }

  // ---- names

  const char* intern(const std::string& text) {
    const char*& stored = interned_[text];
    if (!stored) stored = module_->intern(text);
    return stored;
  }

  /// Makes `token` the name of a value within the innermost block.
  void define(const Token& token, Value* value) {
    const std::string_view text = token.text.substr(1);
    if (text.empty() || text[0] == '.') fail_at(token, "expected a name after '%', got none");
    if (!values_.emplace(text, value).second)
      fail_at(token, "expected a new name, got '" + std::string(token.text) + "', which is taken");
    open_.back().names.push_back(text);
    // The suffix that made a name unique, or a mere number, is not the user's.
    const std::string_view name = text.substr(0, text.find('.'));
    if (!std::all_of(name.begin(), name.end(), is_digit)) value->name = intern(std::string(name));
  }

  Value* use() {
    const Token t = take(TokenKind::value, "a value");
    const auto it = values_.find(t.text.substr(1));
    if (it == values_.end()) fail_at(t, "expected a value defined here, got '" + std::string(t.text) + "'");
    return it->second;
  }

  std::vector<Value*> uses() {
    std::vector<Value*> values;
    if (token_.kind != TokenKind::value) return values;
    do values.push_back(use());
    while (eat(','));
    return values;
  }

  Function* find(const Token& name) const {
    const auto it = functions_.find(name.content);
    if (it == functions_.end())
      fail_at(name, "expected a function of the module, got '" + std::string(name.text) + "'");
    return it->second;
  }

  // ---- functions and blocks

  void function() {
    expect("fun");
    const Token name = take(TokenKind::function, "a function name");
    if (functions_.contains(name.content))
      fail_at(name, "expected a new function name, got '" + std::string(name.text) + "', which is taken");
    Function* f = module_->add_function(name.content, {}, {});
    functions_.emplace(name.content, f);
    open_.push_back({f->body, nullptr, 0, {}, {}});
    params();
    if (token_.kind == TokenKind::arrow) {
      advance();
      f->result_types = types();
    }
    if (is_word("cps")) {
      advance();
      f->cps = true;
    }
    f->loc = location();
    expect('{');
    while (!open_.empty()) {
      if (eat('}')) {
        close();
      } else {
        operation();
      }
    }
  }

  void params() {
    expect('(');
    if (eat(')')) return;
    do {
      const Token name = take(TokenKind::value, "a parameter");
      expect(':');
      Value* const param = module_->add_param(open_.back().block, type());
      define(name, param);
      if (token_.kind != TokenKind::word) continue;
      param->combine = combine_named(token_.text);
      if (param->combine == Combine::none) fail("how iterations come together, such as 'sum'");
      advance();
    } while (eat(','));
    expect(')');
  }

  /// The block with this index in its operation, up to its brace.
  void open(Op* op, std::size_t which, std::vector<Token> results) {
    if (op->is(Opcode::loop_)) expect(which == 0 ? "while" : "do");
    if (op->is(Opcode::branch_) && which == 1) expect("else");
    Block* block = module_->new_block(op, op->parent->function);
    op->blocks.push_back(block);
    open_.push_back({block, op, which, std::move(results), {}});
    if (!op->is(Opcode::branch_)) params();
    if (op->is(Opcode::loop_) && which == 1 && is_parallel(*op) != parallel_.contains(op))
      fail(parallel_.contains(op) ? "for each piece of a parallel loop's state how iterations come together"
                                  : "a loop whose iterations come together to be 'parallel'");
    if (op->is(Opcode::fun_)) op->result()->type = Type::cont(types_of(block->params));
    expect('{');
  }

  void close() {
    const Open done = std::move(open_.back());
    open_.pop_back();
    for (const std::string_view name : done.names) values_.erase(name);
    if (!done.owner) return;
    if (done.which == 0 && !done.owner->is(Opcode::fun_)) {
      open(done.owner, 1, done.results);
    } else {
      define_results(*done.owner, done.results);
    }
  }

  // ---- operations

  void operation() {
    std::vector<Token> results;
    if (token_.kind == TokenKind::value) {
      do results.push_back(take(TokenKind::value, "a name"));
      while (eat(','));
      expect('=');
    }
    const Token start = token_;
    // A parallel loop says at its body's parameters what it is.
    const Opcode code = token_.kind != TokenKind::word ? Opcode::count_
                        : is_word("parallel")          ? Opcode::loop_
                                                       : opcode_named(token_.text);
    if (code == Opcode::count_) fail(results.empty() ? "an operation or '}'" : "an operation");
    advance();
    Block* block = open_.back().block;
    Op* op = module_->new_op(code, block);
    block->ops.push_back(op);
    if (start.text == "parallel") parallel_.insert(op);
    attribute(*op);
    const Token literal = payload(*op);
    result_types(*op, results, start, literal);
    op->loc = location();
    if (code == Opcode::branch_ || code == Opcode::loop_) return open(op, 0, std::move(results));
    define_results(*op, results);
    if (code == Opcode::fun_) open(op, 0, {});
  }

  void define_results(const Op& op, const std::vector<Token>& names) {
    for (std::size_t i = 0; i < names.size(); ++i) define(names[i], op.results[i]);
  }

  /// What is in brackets behind the name: the operation's attribute, and whether it works in place.
  void attribute(Op& op) {
    const Attribute kind = info(op.code).attribute;
    const bool needed = kind == Attribute::dimension || kind == Attribute::component ||
                        kind == Attribute::lanes || kind == Attribute::tape || kind == Attribute::kind ||
                        kind == Attribute::operation;
    if (!is_symbol('[') && !needed) return;
    expect('[');
    if (needed || !is_word("in")) {
      attribute(op, kind);
      if (!eat(',')) return expect(']');
    }
    if (!is_word("in")) fail("'in place'");
    advance();
    if (!is_word("place")) fail("'place'");
    advance();
    op.in_place = true;
    expect(']');
  }

  void attribute(Op& op, Attribute kind) {
    const auto flag = [&](std::string_view word, std::int64_t value) {
      if (!is_word(word)) fail("'" + std::string(word) + "'");
      advance();
      op.integer = value;
    };
    switch (kind) {
      case Attribute::none:
      case Attribute::value:
        return fail("'in place'");
      case Attribute::dimension:
      case Attribute::component:
      case Attribute::lanes:
        op.integer = integer("a number", 0, std::numeric_limits<std::int32_t>::max());
        return;
      case Attribute::tape:
        op.integer = integer("a number", 0, std::numeric_limits<std::int32_t>::max());
        module_->reserve_tapes(op.integer + 1);
        if (!eat(',')) return;
        if (!is_word("copy")) fail("'copy'");
        advance();
        return own_elements(op);
      case Attribute::kind:
        op.integer = static_cast<std::int64_t>(scalar_kind());
        return;
      case Attribute::operation: {
        const Opcode code = token_.kind == TokenKind::word ? opcode_named(token_.text) : Opcode::count_;
        if (code == Opcode::count_) fail("an operation");
        op.integer = static_cast<std::int64_t>(code);
        return advance();
      }
      case Attribute::bounds:
        return flag("inside", ir::inside);
      case Attribute::threads:
        if (is_word("ordered")) return flag("ordered", in_order);
        return flag("threads", in_threads);
      case Attribute::sizes:
        op.integer = integer("a number of sizes", 0, 64);
        return;
      case Attribute::zeros:
        return flag("minus", as_minus_zero);
      case Attribute::runs:
      case Attribute::memory:
        return memory(op);
    }
  }

  /// What the reverse keeps; of a call, also the team that it leads.
  void memory(Op& op) {
    constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
    const bool call = op.is(Opcode::call_);
    const std::string_view word = token_.kind == TokenKind::word ? token_.text : "";
    if (call ? word != "checkpoint" && word != "fork" : word != "memory" && word != "checkpoints")
      fail(call ? "'checkpoint' or 'fork'" : "'memory' or 'checkpoints'");
    advance();
    if (word == "fork") {
      const std::int64_t calls = integer("a number of calls", 2, largest_team);
      lead_team(op, calls, integer("a number of threads, at most one for each call", 2, calls));
    } else if (call) {
      op.integer = checkpointed;
    } else if (word == "memory") {
      op.integer = integer("a number of bytes", 2, most);
    } else {
      op.integer = -integer("a number of checkpoints", 1, most);
    }
  }

  /// Operands and what else is before the types; returns the literal of a constant, whose type comes
  /// after.
  Token payload(Op& op) {
    if (op.is(Opcode::constant_)) return literal();
    if (op.is(Opcode::call_, Opcode::closure_)) {
      calls_.emplace_back(&op, take(TokenKind::function, "a function name"));
      expect('(');
      op.operands = uses();
      expect(')');
    } else if (op.is(Opcode::external_)) {
      while (token_.kind != TokenKind::string) {
        op.operands.push_back(use());
        expect(',');
      }
      op.text = intern(take(TokenKind::string, "a string").content);
    } else if (may_have_text(op.code)) {
      op.operands = {use()};
      const bool several = is_einsum(op.code) || op.is(Opcode::ref_acc_);
      while (eat(',')) {
        const bool more = several || (op.is(Opcode::check_) && token_.kind == TokenKind::value);
        if (!more || token_.kind == TokenKind::string) {
          op.text = intern(take(TokenKind::string, "a string").content);
          return {};
        }
        op.operands.push_back(use());
      }
      if (has_text(op.code)) fail("',' and a string");
    } else if (!op.is(Opcode::halt_)) {  // which has no operands: what follows is the next operation
      op.operands = uses();
    }
    return {};
  }

  /// A number or a word as one token; `nan(0x...)` leaves the bits in `content`.
  Token literal() {
    if (token_.kind != TokenKind::number && token_.kind != TokenKind::word) fail("a constant");
    Token t = std::move(token_);
    advance();
    if ((t.text == "nan" || t.text == "-nan") && eat('(')) {
      t.content = take(TokenKind::number, "the bits of a NaN").text;
      expect(')');
    }
    return t;
  }

  void result_types(Op& op, const std::vector<Token>& results, const Token& start, const Token& literal) {
    if (op.is(Opcode::fun_)) {
      if (results.size() != 1)
        fail_at(start, "expected one name for fun, got " + std::to_string(results.size()));
      module_->add_result(&op, Type());
      return;
    }
    std::vector<Type> list;
    if (results.empty()) {
      if (is_symbol(':')) fail("no types, there being no results");
    } else if (eat(':')) {
      list = types();
    } else if (!is_core(op.code) && !op.operands.empty()) {
      list = {inferred(op, start)};
    } else {
      fail("':' and a type");
    }
    if (list.size() != results.size())
      fail_at(start, "expected as many types as results, got " + std::to_string(list.size()) + " for " +
                         std::to_string(results.size()));
    for (const Type& t : list) module_->add_result(&op, t);
    if (op.is(Opcode::constant_) && !list.empty()) set_constant(op, list[0], literal);
  }

  static Type inferred(const Op& op, const Token& start) {
    try {
      return infer_type(op.code, types_of(op.operands), op.integer, {}, op.text);
    } catch (const Error& e) {
      fail_at(start, e.what());
    }
  }

  static void set_constant(Op& op, const Type& type, const Token& literal) {
    const char* first = literal.text.data();
    const char* last = first + literal.text.size();
    const auto reads = [&](auto& number) {
      const auto r = std::from_chars(first, last, number);
      return r.ec == std::errc{} && r.ptr == last;
    };
    bool ok = false;
    float single = 0;
    switch (type.element()) {
      case Kind::boolean:
        op.integer = literal.text == "true";
        ok = op.integer || literal.text == "false";
        break;
      case Kind::f32:
      case Kind::f64:
        if (literal.text == "nan" || literal.text == "-nan") {
          ok = set_nan(op, literal);
        } else if (type.element() == Kind::f64) {
          ok = reads(op.number);
        } else {
          ok = reads(single);
          op.number = single;
        }
        break;
      default:
        ok = reads(op.integer);
    }
    if (!ok)
      fail_at(literal,
              "expected a constant of type " + type.str() + ", got '" + std::string(literal.text) + "'");
  }

  static bool set_nan(Op& op, const Token& literal) {
    std::uint64_t bits = std::bit_cast<std::uint64_t>(std::numeric_limits<double>::quiet_NaN());
    if (!literal.content.empty()) {
      const std::string& hex = literal.content;
      const char* last = hex.data() + hex.size();
      if (!hex.starts_with("0x")) return false;
      const auto r = std::from_chars(hex.data() + 2, last, bits, 16);
      if (r.ec != std::errc{} || r.ptr != last || !std::isnan(std::bit_cast<double>(bits))) return false;
    }
    if (literal.text[0] == '-') bits |= std::uint64_t{1} << 63;
    op.number = std::bit_cast<double>(bits);
    return true;
  }

  Location location() {
    Location loc;
    if (!eat('@')) return loc;
    constexpr std::int64_t most = std::numeric_limits<std::uint32_t>::max();
    loc.file = intern(take(TokenKind::string, "a file name in quotes").content);
    expect(':');
    loc.line = static_cast<std::uint32_t>(integer("a line number", 1, most));
    if (eat(':')) loc.column = static_cast<std::uint32_t>(integer("a column number", 1, most));
    if (token_.kind == TokenKind::word && (token_.text == "forward" || token_.text == "backward")) {
      loc.part = token_.text == "forward" ? Part::forward : Part::backward;
      advance();
    }
    return loc;
  }

  Scanner scanner_;
  Token token_;
  std::unique_ptr<Module> module_;
  std::unordered_set<const Op*> parallel_;  ///< the loops that are named so
  std::vector<Open> open_;
  std::unordered_map<std::string_view, Value*> values_;  ///< visible here
  std::unordered_map<std::string, const char*> interned_;
  std::unordered_map<std::string, Function*> functions_;
  std::vector<std::pair<Op*, Token>> calls_;  ///< resolved at the end: functions may follow their callers
};

}  // namespace

std::unique_ptr<Module> parse(std::string_view text) { return ModuleParser(text).run(); }

}  // namespace lantern::ir
