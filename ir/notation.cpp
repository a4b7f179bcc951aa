// Parsing, printing and differentiating index notation.
#include "lantern/ir/notation.hpp"

#include <algorithm>
#include <map>
#include <memory>
#include <mutex>
#include <numeric>
#include <unordered_map>

#include "lantern/ir/error.hpp"
#include "lantern/ir/op.hpp"
#include "lantern/ir/text.hpp"

namespace lantern::ir {

namespace {

bool is_small(char c) { return c >= 'a' && c <= 'z'; }
bool is_capital(char c) { return c >= 'A' && c <= 'Z'; }

void include(std::string& letters, const Subscripts& at) {
  for (const Subscript& s : at)
    for (const Subscript::Term& t : s.terms)
      if (letters.find(t.letter) == std::string::npos) letters += t.letter;
}

class NotationParser {
 public:
  explicit NotationParser(std::string_view text) : text_(text) {}

  Notation run() {
    Notation n;
    n.operands = operands();
    if (eat("+=")) {
      if (n.operands.size() != 1 || n.operands[0].shape) fail("one operand before '+='");
      n.accumulates = true;
      n.result = n.operands[0].at;
      std::vector<Notation::Operand> products = operands();
      n.operands.insert(n.operands.end(), products.begin(), products.end());
    } else {
      if (!eat("->")) fail("'->' or '+='");
      n.result = subscripts();
    }
    if (eat(";"))
      while (at_ < text_.size() && is_small(text_[at_])) n.sizes += text_[at_++];
    if (at_ != text_.size()) fail("the end");
    check(n);
    return n;
  }

 private:
  [[noreturn]] void fail(const std::string& expected) const {
    throw Error("index notation \"" + std::string(text_) + "\": expected " + expected + " at position " +
                std::to_string(at_));
  }
  [[noreturn]] void wrong(const std::string& what) const {
    throw Error("index notation \"" + std::string(text_) + "\": " + what);
  }

  bool eat(std::string_view token) {
    if (text_.substr(at_, token.size()) != token) return false;
    at_ += token.size();
    return true;
  }
  std::vector<Notation::Operand> operands() {
    std::vector<Notation::Operand> all;
    do {
      Notation::Operand o;
      o.shape = eat("=");
      o.at = subscripts();
      all.push_back(std::move(o));
    } while (eat(","));
    return all;
  }
  Subscripts subscripts() {
    Subscripts all;
    for (; at_ < text_.size();) {
      const char c = text_[at_];
      if (is_small(c) || is_capital(c)) {
        all.push_back({{{c, 1}}, 0});
        ++at_;
      } else if (eat("[")) {
        all.push_back(sum());
      } else {
        break;
      }
    }
    return all;
  }
  Subscript sum() {
    Subscript s;
    while (!eat("]")) {
      std::int64_t factor = eat("-") ? -1 : (eat("+"), 1), number = 0;
      const std::size_t first = at_;
      for (; at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9' && at_ < first + 9; ++at_)
        number = number * 10 + (text_[at_] - '0');
      if (first != at_) factor *= number;
      if (at_ < text_.size() && is_small(text_[at_])) {
        s.terms.push_back({text_[at_++], factor});
      } else if (first != at_) {
        s.constant += factor;
      } else {
        fail("an index or a number");
      }
    }
    return s;
  }

  void check(const Notation& n) const {
    std::string known = n.sizes;
    for (const Notation::Operand& o : n.operands)
      for (const Subscript& s : o.at)
        if (s.is_letter()) known += s.letter();
    if (n.factors() == 0) wrong("there is nothing to multiply");
    const auto bound = [&](const Subscripts& at) {
      for (const Subscript& s : at)
        for (const Subscript::Term& t : s.terms)
          if (known.find(t.letter) == std::string::npos)
            wrong(std::string("the size of '") + t.letter + "' is not known: no operand has it as an index");
    };
    for (const char c : n.sizes)
      for (const Notation::Operand& o : n.operands)
        if (std::ranges::any_of(o.at, [&](const Subscript& s) { return s.is(c); }))
          wrong(std::string("'") + c + "' has its size from an operand already");
    bound(n.result);
    for (const Notation::Operand& o : n.operands) bound(o.at);
    if (n.accumulates) return;
    std::string seen;
    for (const Subscript& s : n.result) {
      if (!s.is_letter()) wrong("an index of the result is a letter");
      if (seen.find(s.letter()) != std::string::npos)
        wrong(std::string("the result has the index '") + s.letter() + "' twice");
      seen += s.letter();
    }
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

std::string text_of(const Subscripts& at) {
  std::string out;
  for (const Subscript& s : at) {
    if (s.is_letter()) {
      out += s.letter();
      continue;
    }
    out += '[';
    bool first = true;
    const auto put = [&](std::int64_t factor, const std::string& rest) {
      if (factor < 0)
        out += '-';
      else if (!first)
        out += '+';
      first = false;
      const std::int64_t size = factor < 0 ? -factor : factor;
      if (size != 1 || rest.empty()) out += std::to_string(size);
      out += rest;
    };
    for (const Subscript::Term& t : s.terms) put(t.factor, std::string(1, t.letter));
    if (s.constant != 0 || s.terms.empty()) put(s.constant, "");
    out += ']';
  }
  return out;
}

Subscripts renamed(const Subscripts& at, const std::map<char, char>& names) {
  Subscripts out = at;
  for (Subscript& s : out)
    for (Subscript::Term& t : s.terms) t.letter = names.at(t.letter);
  return out;
}

/// The letters by their first use in the operands.
Notation by_first_use(const Notation& n) {
  std::string old;
  for (const Notation::Operand& o : n.operands) include(old, o.at);
  include(old, n.result);
  std::map<char, char> names;
  std::size_t next = 0;
  for (const char c : old) names[c] = is_capital(c) ? c : index_letters.at(next++);
  Notation out = n;
  for (Notation::Operand& o : out.operands) o.at = renamed(o.at, names);
  out.result = renamed(out.result, names);
  for (char& c : out.sizes) c = names.at(c);
  return out;
}

/// One copy of each text, which lives for ever.
const char* kept(const std::string& text) {
  static std::mutex mutex;
  static std::unordered_map<std::string, std::unique_ptr<const std::string>> all;
  const std::lock_guard lock(mutex);
  auto& entry = all[text];
  if (!entry) entry = std::make_unique<const std::string>(text);
  return entry->c_str();
}

}  // namespace

std::string letters_of(const Subscripts& at) {
  std::string all;
  include(all, at);
  return all;
}

std::size_t Notation::factors() const {
  std::size_t n = 0;
  for (std::size_t i = 0; i < operands.size(); ++i) n += is_factor(i);
  return n;
}

std::string Notation::letters() const {
  std::string all;
  include(all, result);
  for (const Operand& o : operands) include(all, o.at);
  return all;
}

std::string Notation::text() const {
  std::string out;
  for (std::size_t i = 0; i < operands.size(); ++i)
    out += (i == 0                  ? ""
            : accumulates && i == 1 ? "+="
                                    : ",") +
           std::string(operands[i].shape ? "=" : "") + text_of(operands[i].at);
  if (!accumulates) out += "->" + text_of(result);
  return sizes.empty() ? out : out + ";" + sizes;
}

const Notation& notation(std::string_view text) {
  static std::mutex mutex;
  static std::unordered_map<std::string, std::unique_ptr<const Notation>> all;
  const std::lock_guard lock(mutex);
  auto& entry = all[std::string(text)];
  if (!entry) entry = std::make_unique<const Notation>(NotationParser(text).run());
  return *entry;
}

const char* canonical(const Notation& n) { return kept(by_first_use(n).text()); }

const Notation* notation_of(Opcode op, const char* text) {
  static const std::vector<const Notation*> rows = [] {
    std::vector<const Notation*> all;
    for (std::size_t i = 0; i < static_cast<std::size_t>(Opcode::count_); ++i) {
      const std::string_view row = info(static_cast<Opcode>(i)).notation;
      all.push_back(row.empty() || row == "text" ? nullptr : &notation(row));
    }
    return all;
  }();
  if (is_einsum(op)) return text ? &notation(text) : nullptr;
  return rows[static_cast<std::size_t>(op)];
}

// ---- capitals

Notation concrete(const Notation& n, std::span<const Type> operands) {
  const auto capitals = [](const Subscripts& at) {
    std::string all;
    for (const Subscript& s : at)
      if (s.is_letter() && is_capital(s.letter())) all += s.letter();
    return all;
  };
  std::map<char, int> lengths;
  const auto rank_of = [&](std::size_t i) { return operands[i].is_tensor() ? operands[i].rank() : 0; };
  for (bool found = true; found;) {
    found = false;
    for (std::size_t i = 0; i < n.operands.size(); ++i) {
      int rest = rank_of(i) - static_cast<int>(n.operands[i].at.size());
      char unknown = 0;
      int unknowns = 0;
      for (const char c : capitals(n.operands[i].at)) {
        rest += 1;
        if (const auto known = lengths.find(c); known != lengths.end())
          rest -= known->second;
        else
          unknown = c, ++unknowns;
      }
      if (unknowns != 1) continue;
      lengths[unknown] = rest;
      found = true;
    }
  }
  std::string used = n.letters();
  std::map<char, std::string> runs;
  for (const auto& [capital, length] : lengths)
    for (int k = 0; k < length; ++k) {
      char fresh = 0;
      for (const char c : index_letters)
        if (used.find(c) == std::string::npos) {
          fresh = c;
          break;
        }
      if (!fresh) throw Error("tensors of fewer dimensions");
      used += fresh;
      runs[capital] += fresh;
    }
  const auto written_out = [&](const Subscripts& at) {
    Subscripts out;
    for (const Subscript& s : at) {
      if (!s.is_letter() || !is_capital(s.letter())) {
        out.push_back(s);
        continue;
      }
      for (const char c : runs[s.letter()]) out.push_back({{{c, 1}}, 0});
    }
    return out;
  };
  Notation out = n;
  for (Notation::Operand& o : out.operands) o.at = written_out(o.at);
  out.result = written_out(out.result);
  for (std::size_t i = 0; i < out.operands.size(); ++i)
    if (static_cast<int>(out.operands[i].at.size()) != rank_of(i)) throw Error("");
  return out;
}

bool moves_elements(const Notation& n) {
  if (n.accumulates || n.factors() != 1 || n.result.empty()) return false;
  const std::string known = letters_of(n.result);
  for (std::size_t i = 0; i < n.operands.size(); ++i)
    if (n.is_factor(i))
      for (const char c : letters_of(n.operands[i].at))
        if (known.find(c) == std::string::npos) return false;
  return true;
}

// ---- derivatives

namespace {

bool simple(const Subscripts& at) {
  std::string seen;
  for (const Subscript& s : at) {
    if (!s.is_letter() || seen.find(s.letter()) != std::string::npos) return false;
    seen += s.letter();
  }
  return true;
}

bool covers(const std::string& known, const Subscripts& at) {
  return std::ranges::all_of(at, [&](const Subscript& s) {
    return std::ranges::all_of(s.terms,
                               [&](const auto& t) { return known.find(t.letter) != std::string::npos; });
  });
}

/// The named operations, their notation for operands of these ranks.
std::optional<Notation> row_for(Opcode op, const Notation& like) {
  const Notation* row = notation_of(op, nullptr);
  if (!row || row->operands.size() != like.operands.size() || row->accumulates != like.accumulates) return {};
  std::vector<Type> types;
  for (const Notation::Operand& o : like.operands)
    types.push_back(Type::tensor(Kind::f64, std::vector<std::int64_t>(o.at.size(), dynamic)));
  try {
    return concrete(*row, types);
  } catch (const Error&) {
    return {};
  }
}

}  // namespace

Call named(const Notation& n, std::vector<std::size_t> order) {
  const std::string text = canonical(n);
  const std::size_t first = n.accumulates ? 1 : 0;
  Notation turned = n;
  const bool two = n.operands.size() == first + 2 && n.is_factor(first) && n.is_factor(first + 1);
  if (two) std::swap(turned.operands[first], turned.operands[first + 1]);
  const std::string turned_text = two ? canonical(turned) : text;
  for (std::size_t i = 0; n.sizes.empty() && i < static_cast<std::size_t>(Opcode::count_); ++i) {
    const auto op = static_cast<Opcode>(i);
    const auto row = row_for(op, n);
    if (!row) continue;
    const std::string known = canonical(*row);
    if (known != text && known != turned_text) continue;
    if (known != text) std::swap(order[0], order[1]);
    return {op, nullptr, std::move(order)};
  }
  return {n.accumulates ? Opcode::add_einsum_ : Opcode::einsum_, kept(text), std::move(order)};
}

Call adjoint(const Notation& n, std::size_t i) {
  Notation out;
  std::vector<std::size_t> order;
  std::string known;
  for (std::size_t j = 0; j < n.operands.size(); ++j) {
    if (!n.is_factor(j)) continue;
    out.operands.push_back({j == i ? n.result : n.operands[j].at, false});
    order.push_back(j == i ? adjoint_of_result : j);
    for (const Subscript& s : out.operands.back().at)
      if (s.is_letter()) known += s.letter();
  }
  out.result = n.operands[i].at;
  // Several factors are added where the adjoint lies; a place that is no letter needs zeros to be added to.
  const bool zeros = !simple(out.result);
  const bool several = out.operands.size() > 1 && !out.result.empty() && covers(known, out.result);
  out.accumulates = zeros || several;
  if (out.accumulates) {
    out.operands.insert(out.operands.begin(), {out.result, false});
    if (zeros)
      for (const Subscript& s : out.result)
        if (s.is_letter()) known += s.letter();
  } else if (!covers(known, out.result)) {
    out.operands.push_back({out.result, true});
    order.push_back(i);
    include(known, out.result);
  }
  // Indices that only what is left out had a size for.
  const std::string all = out.letters();
  for (const char c : all) {
    if (known.find(c) != std::string::npos) continue;
    const std::size_t at = n.sizes.find(c);
    if (at != std::string::npos) {
      out.sizes += c;
      order.push_back(n.operands.size() + at);
      known += c;
      continue;
    }
    for (std::size_t j = 0; j < n.operands.size(); ++j)
      if (std::ranges::any_of(n.operands[j].at, [&](const Subscript& s) { return s.is(c); })) {
        out.operands.push_back({n.operands[j].at, true});
        order.insert(order.end() - static_cast<std::ptrdiff_t>(out.sizes.size()), j);
        for (const Subscript& s : n.operands[j].at)
          if (s.is_letter()) known += s.letter();
        break;
      }
  }
  Call call = named(out, std::move(order));
  call.into = zeros ? Call::Into::zeros : several ? Call::Into::adjoint : Call::Into::nothing;
  return call;
}

// ---- sizes

std::string shapes_differ(std::string_view operation, std::span<const std::int64_t> a,
                          std::span<const std::int64_t> b) {
  const auto text = [](std::span<const std::int64_t> shape) {
    std::string s = "[";
    for (std::size_t i = 0; i < shape.size(); ++i) s += (i ? ", " : "") + std::to_string(shape[i]);
    return s + "]";
  };
  return std::string(operation) + ": shapes " + text(a) + " and " + text(b) + " do not fit";
}

std::vector<std::size_t> without_base(Notation& n) {
  n.accumulates = false;
  n.operands.erase(n.operands.begin());
  std::vector<std::size_t> order(n.arity());
  std::iota(order.begin(), order.end(), std::size_t{1});
  return order;
}

std::vector<SameSize> same_sizes(const Notation& n) {
  std::map<char, std::pair<std::size_t, std::size_t>> first;
  std::vector<SameSize> all;
  for (std::size_t i = 0; i < n.operands.size(); ++i)
    for (std::size_t d = 0; d < n.operands[i].at.size(); ++d) {
      const Subscript& s = n.operands[i].at[d];
      if (!s.is_letter()) continue;
      const auto [it, added] = first.try_emplace(s.letter(), i, d);
      if (!added) all.push_back({it->second.first, it->second.second, i, d});
    }
  return all;
}

std::optional<SizeSource> size_source(const Notation& n, char letter) {
  for (std::size_t i = 0; i < n.operands.size(); ++i)
    for (std::size_t d = 0; d < n.operands[i].at.size(); ++d)
      if (n.operands[i].at[d].is(letter)) return SizeSource{i, static_cast<int>(d)};
  const std::size_t at = n.sizes.find(letter);
  if (at != std::string::npos) return SizeSource{n.operands.size() + at, -1};
  return {};
}

std::optional<SizeSource> result_size(const Notation& n, std::size_t d) {
  if (n.accumulates) return SizeSource{0, static_cast<int>(d)};
  return size_source(n, n.result[d].letter());
}

}  // namespace lantern::ir
