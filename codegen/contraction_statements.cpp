// Products of tensors by a routine for groups of indices, convolutions among them.
#include <algorithm>

#include "lantern/codegen/statement_printer.hpp"
#include "lantern/compiler/passes/analysis/gemm.hpp"
#include "lantern/ir/error.hpp"
#include "lantern/ir/shape.hpp"

namespace lantern::codegen {

using ir::Kind;
using ir::Op;
using ir::Value;

namespace {

/// Two places of the first factor are sums of a row and one of three points of a window: the routine for convolutions may
/// take fewer products.
bool has_window_of_three(const Op& op, const ir::Notation& n, const passes::Contraction& c) {
  const auto in = [](const std::string& letters, char letter) { return letters.find(letter) != std::string::npos; };
  int windows = 0;
  for (const ir::Subscript& s : n.operands[c.x].at) {
    if (s.terms.size() != 2 || s.terms[0].factor != 1 || s.terms[1].factor != 1) continue;
    const bool first = in(c.sums, s.terms[0].letter);
    const char window = s.terms[first ? 0 : 1].letter, row = s.terms[first ? 1 : 0].letter;
    const ir::Subscripts& y = n.operands[c.y].at;
    const auto at = std::ranges::find_if(y, [&](const ir::Subscript& t) { return t.is(window); });
    if (in(c.sums, window) && in(c.rows, row) && at != y.end() &&
        op.operands[c.y]->type.dims()[static_cast<std::size_t>(at - y.begin())] == 3)
      ++windows;
  }
  return windows == 2;
}

}  // namespace

/// A sum over a window of each channel: what the tensors' dimensions are to the routine.
void StatementPrinter::windows(const Op& op, const ir::Notation& n, const passes::ChannelWindow& w) {
  const std::size_t x = w.of.x, y = w.of.y;
  const std::string kind(ir::kind_name(op.result()->type.element()));
  const std::string routine = unit_.prelude().kernel("windows", op.result()->type.element());
  const std::string fresh = adds_to_zeros(op) ? "1" : "0";
  const std::string to = updated(op);
  const auto tensor = [&](std::size_t operand) { return operand == 0 ? op.result() : op.operands[operand]; };
  const auto size = [&](char letter) {
    if (!letter) return std::string("1");
    const ir::SizeSource from = *ir::size_source(n, letter);
    return dim(tensor(from.operand), static_cast<std::size_t>(from.dimension));
  };
  const auto step = [&](std::size_t operand, const ir::Subscripts& at, char letter) {
    std::string product;
    for (std::size_t d = 0; d < at.size(); ++d) {
      if (!letter || !at[d].is(letter)) continue;
      product = "1";
      for (std::size_t e = d + 1; e < at.size(); ++e) product += " * " + dim(tensor(operand), e);
    }
    return product.empty() ? std::string("0") : product;
  };
  const ir::Subscripts &from = n.operands[x].at, &by = n.operands[y].at;
  const std::string name = names_.unique("windows");
  std::string fields = atom(op.operands[x]) + ".data, " + atom(op.operands[y]) + ".data, " + to + ".data, " + fresh;
  for (const char letter : {w.other, w.channel})
    fields += ", " + size(letter) + ", " + step(x, from, letter) + ", " + step(y, by, letter) + ", " + step(0, n.result, letter);
  for (std::size_t k = 0; k < 2; ++k) {
    const auto& p = w.place[k];
    fields += ", {" + dim(tensor(x), from.size() - 2 + k) + ", " + size(p.row) + ", " + size(p.window) + ", " +
              std::to_string(p.stride) + ", " + std::to_string(p.dilation) + ", " + std::to_string(p.before) + "}";
  }
  line("const lt_window_sum_" + kind + " " + name + " = {" + fields + "};");
  line(routine + "(" + ws() + ", &" + name + ");");
}

/// A product of groups of indices: the size of each index, and its step in each tensor.
void StatementPrinter::contraction(const Op& op, const ir::Notation& n) {
  const auto c = passes::contraction(n);
  const auto w = c ? passes::channel_window(n, op.operands[c->x]->type, op.operands[c->y]->type) : std::nullopt;
  if (w && place_ != Place::host && !shares_out()) return windows(op, n, *w);
  if (w && op.integer != ir::inside)
    raise("source: a convolution of code compiled for the processor reads beyond its picture, which the routine of a GPU does not; "
          "compile the program with Target::cuda");
  if (!c) throw InternalError("no way to print " + std::string(ir::info(op.code).name));
  const Kind kind = op.result()->type.element();
  const std::string on_one = place_ != Place::host && has_window_of_three(op, n, *c) ? "convolve" : on_gpu("contract");
  const std::string routine = unit_.prelude().kernel(shares_out() ? "contract_team" : on_one, kind);
  const std::string fresh = adds_to_zeros(op) ? "1" : "0";
  const std::string to = updated(op);
  // A number times the sizes of the dimensions behind one.
  const auto times = [&](std::int64_t factor, std::size_t operand, std::size_t from) {
    const Value* t = operand == 0 ? op.result() : op.operands[operand];
    std::string product;
    for (std::size_t d = from; d < dims(t).size(); ++d) product += (product.empty() ? "" : " * ") + dim(t, d);
    if (factor == 1 && !product.empty()) return product;
    return std::to_string(factor) + (product.empty() ? "" : " * ") + product;
  };
  const auto sum = [](const std::vector<std::string>& terms) {
    std::string s;
    for (const std::string& t : terms) s += (s.empty() || t[0] == '-' ? "" : " + ") + t;
    return s.empty() ? "0" : s;
  };
  // "[2i+k-1]" of dimension d: steps 2 and 1, times the sizes of the dimensions behind it; the start is 1 before.
  const auto step = [&](std::size_t operand, const ir::Subscripts& at, char letter) {
    std::vector<std::string> terms;
    for (std::size_t d = 0; d < at.size(); ++d)
      for (const auto& t : at[d].terms)
        if (t.letter == letter) terms.push_back(times(t.factor, operand, d + 1));
    return sum(terms);
  };
  const auto start = [&](std::size_t operand, const ir::Subscripts& at) {
    std::vector<std::string> terms;
    for (std::size_t d = 0; d < at.size(); ++d)
      if (at[d].constant != 0) terms.push_back(times(at[d].constant, operand, d + 1));
    return sum(terms);
  };
  // Where a place of the result is a sum of indices, as of a convolution's data gradient, several iterations add to one
  // element. The threads of a GPU would do so at once: there the host goes through all indices of the place but one.
  std::string in_turn;
  if (place_ == Place::host)
    for (const ir::Subscript& s : n.result)
      for (std::size_t t = 1; t < s.terms.size(); ++t)
        if (in_turn.find(s.terms[t].letter) == std::string::npos) in_turn += s.terms[t].letter;
  const auto kept = [&](std::string letters) {
    std::erase_if(letters, [&](char l) { return in_turn.find(l) != std::string::npos; });
    return letters;
  };
  const auto list = [&](auto&& text) {
    std::string s;
    for (const char letter : kept(c->letters())) s += (s.empty() ? "{" : ", ") + text(letter);
    return s.empty() ? std::string("{1}") : s + "}";
  };
  const auto size = [&](char letter) {
    const ir::SizeSource from = *ir::size_source(n, letter);
    return dim(from.operand == 0 ? op.result() : op.operands[from.operand], static_cast<std::size_t>(from.dimension));
  };
  const auto steps = [&](std::size_t operand, const ir::Subscripts& at) {
    return list([&](char letter) { return step(operand, at, letter); });
  };
  std::vector<std::string> turns;
  for (const char letter : in_turn) {
    turns.push_back(names_.unique("turn"));
    open("for (int64_t " + turns.back() + " = 0; " + turns.back() + " < " + size(letter) + "; ++" + turns.back() + ") {");
  }
  const auto data = [&](const std::string& tensor, std::size_t operand, const ir::Subscripts& at) {
    std::string from = start(operand, at);
    for (std::size_t i = 0; i < in_turn.size(); ++i) {
      const std::string by = step(operand, at, in_turn[i]);
      if (by != "0") from += " + " + turns[i] + " * (" + by + ")";
    }
    if (from.starts_with("0 + ")) from.erase(0, 4);
    return tensor + ".data" + (from == "0" ? "" : from[0] == '-' ? " - " + from.substr(1) : " + " + from);
  };
  const ir::Subscripts &x = n.operands[c->x].at, &y = n.operands[c->y].at;
  const std::string name = names_.unique("contraction");
  const auto rank = [&](const std::string& letters) { return std::to_string(kept(letters).size()); };
  line("const lt_contraction_" + std::string(ir::kind_name(kind)) + " " + name + " = {" +
       data(atom(op.operands[c->x]), c->x, x) + ", " + data(atom(op.operands[c->y]), c->y, y) + ", " +
       data(to, 0, n.result) + ", " + fresh + ", {" + rank(c->batch) + ", " + rank(c->rows) + ", " + rank(c->columns) + ", " +
       rank(c->sums) + "}, " + list(size) + ", " + steps(c->x, x) + ", " + steps(c->y, y) + ", " +
       steps(0, n.result) + "};");
  if (!shares_out()) {
    line(routine + "(" + ws() + ", &" + name + ");");
    for (std::size_t i = 0; i < turns.size(); ++i) close();
    return;
  }
  // Where the first index of a group is a place of the result's, its parts are not adjacent.
  const auto splits = [&](const std::string& group) {
    return !group.empty() && std::ranges::any_of(n.result, [&](const auto& s) { return s.is(group[0]); });
  };
  unit_.note_fork();
  line(routine + "(" + ws() + ", " + std::to_string(unit_.options().threads) + ", " +
       std::to_string((splits(c->batch) ? 1 : 0) + (splits(c->rows) ? 2 : 0) + (splits(c->columns) ? 4 : 0)) + ", &" + name +
       ");");
}

}  // namespace lantern::codegen
