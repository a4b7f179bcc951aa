// Products of tensors by a routine for groups of indices, convolutions among them.
#include <algorithm>
#include <array>
#include <cstdlib>

#include "lantern/codegen/statement_printer.hpp"
#include "lantern/compiler/passes/analysis/gemm.hpp"
#include "lantern/ir/error.hpp"
#include "lantern/ir/shape.hpp"

namespace lantern::codegen {

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

/// Two dimensions of a picture, read through a window: n, o and c, the places i and j, the window p and q.
struct Convolution {
  std::size_t x = 0, w = 0, y = 0;  ///< operands; 0 is the result
  char n = 0, o = 0, c = 0, place[2] = {}, window[2] = {};
  char g = 0;  ///< of groups of channels, in front of c in x and of o in w and y; 0: there is none
  std::int64_t stride[2] = {}, dilation[2] = {};
};

/// What of x, w and y a contraction computes from the other two. Nothing where it is no convolution of pictures.
std::optional<Convolution> convolution(const ir::Notation& n, const passes::Contraction& c) {
  const auto at = [&](std::size_t k) -> const ir::Subscripts& { return k == 0 ? n.result : n.operands[k].at; };
  const auto has = [&](std::size_t k, char letter) {
    return std::ranges::any_of(at(k), [&](const ir::Subscript& s) { return s.is(letter); });
  };
  const std::size_t all[] = {0, c.x, c.y};
  Convolution found;
  const std::size_t rank = n.result.size();
  for (const std::size_t k : all)
    if (at(k).size() != rank || rank < 4 || rank > 5) return {};
  if (rank == 5)
    for (const ir::Subscript& s : n.result)
      if (s.is_letter() && has(c.x, s.letter()) && has(c.y, s.letter())) found.g = s.letter();
  if ((rank == 5) != (found.g != 0)) return {};
  const auto in_front = [&](std::size_t k, char letter) {  // groups are parts of the channels
    if (!found.g) return true;
    const auto group = std::ranges::find_if(at(k), [&](const ir::Subscript& s) { return s.is(found.g); });
    return group != at(k).end() && group + 1 != at(k).end() && (group + 1)->is(letter);
  };
  for (std::size_t k = 0; k < 3; ++k) {
    const auto plain = [&](std::size_t m) { return std::ranges::all_of(at(m), [](const ir::Subscript& s) { return s.is_letter(); }); };
    found.x = all[k];
    if (!plain(all[(k + 1) % 3]) || !plain(all[(k + 2) % 3]) || plain(found.x)) continue;
    for (const std::size_t other : {1, 2}) {
      found.w = all[(k + other) % 3];
      found.y = all[(k + 3 - other) % 3];
      int sums = 0, singles = 0;
      bool fits = true;
      for (const ir::Subscript& s : at(found.x)) {
        if (found.g && s.is(found.g)) continue;
        if (s.is_letter()) {
          const bool in_w = has(found.w, s.letter()), in_y = has(found.y, s.letter());
          // y may be called w, n be called c, and the other way round; a batch comes before channels.
          fits = fits && in_w != in_y && in_y == (singles == 0) && ++singles <= 2;
          (in_w ? found.c : found.n) = s.letter();
        } else {
          fits = fits && s.terms.size() == 2 && s.constant == 0 && sums < 2;
          for (std::size_t t = 0; fits && t < 2; ++t) {
            const bool in_w = has(found.w, s.terms[t].letter);
            fits = s.terms[t].factor > 0 && in_w != has(found.y, s.terms[t].letter);
            (in_w ? found.window : found.place)[sums] = s.terms[t].letter;
            (in_w ? found.dilation : found.stride)[sums] = s.terms[t].factor;
          }
          ++sums;
        }
      }
      if (!fits || sums != 2 || !found.c || !found.n || !found.place[0] || !found.place[1] || !found.window[0] || !found.window[1])
        continue;
      for (const ir::Subscript& s : at(found.w))
        if (!s.is(found.g) && has(found.y, s.letter())) found.o = s.letter();
      const std::string of_w{found.o, found.c, found.window[0], found.window[1]}, of_y{found.n, found.o, found.place[0], found.place[1]};
      const auto has_all = [&](std::size_t m, const std::string& letters) {
        return std::ranges::all_of(letters, [&](char l) { return l != 0 && has(m, l); });
      };
      std::string letters = of_w + of_y;  // o is in both
      std::ranges::sort(letters);
      const bool differ = letters.size() - std::ranges::unique(letters).size() == 7;
      if (differ && has_all(found.w, of_w) && has_all(found.y, of_y) && in_front(found.x, found.c) && in_front(found.w, found.o) &&
          in_front(found.y, found.o))
        return found;
    }
  }
  return {};
}

/// The same of one that cuDNN may compute: of float or double.
std::optional<Convolution> of_library(const Op& op, const ir::Notation& n, const passes::Contraction& c) {
  const Kind kind = op.result()->type.element();
  if (kind != Kind::f32 && kind != Kind::f64) return {};
  return convolution(n, c);
}

}  // namespace

/// True where the host calls cuDNN for a product, which needs no zeros; where it computes nothing, our own
/// loops begin with them.
bool StatementPrinter::zeroed_by_library(const Op& op) const {
  if (place_ != Place::host || !op.is(Opcode::add_einsum_) || !begins_with_zeros(op, uses_)) return false;
  const ir::Notation n = *ir::concrete_notation(op);
  const auto c = passes::contraction(n);
  return c && !passes::matrix_product(n) && of_library(op, n, *c).has_value();
}

/// Prints what a convolution is for cuDNN. The expression that says whether cuDNN has computed it; empty where it is none.
std::string StatementPrinter::by_library(const Op& op, const ir::Notation& n, const passes::Contraction& contraction,
                                         const Expression& to) {
  const auto c = of_library(op, n, contraction);
  if (!c) return {};
  const Kind kind = op.result()->type.element();
  const auto tensor = [&](std::size_t k) { return k == 0 ? op.result() : op.operands[k]; };
  const auto data = [&](std::size_t k) { return member(k == 0 ? to : Expression(atom(op.operands[k])), "data").text(); };
  // Sizes and steps of the dimensions with these indices. Groups are part of the channels behind them.
  const auto facts = [&](std::size_t k, char channels, const std::array<std::string, 4>& letters) {
    const ir::Subscripts& at = k == 0 ? n.result : n.operands[k].at;
    std::string sizes, steps;
    Expression groups = integer_literal(1);
    for (std::size_t d = 0; c->g && d < at.size(); ++d)
      if (at[d].is(c->g)) groups = dim(tensor(k), d);
    for (const std::string& letter : letters)
      for (std::size_t d = 0; d < at.size(); ++d) {
        if (at[d].terms.size() != letter.size() || letter.find(at[d].terms[0].letter) == std::string::npos) continue;
        Expression size = dim(tensor(k), d), step = integer_literal(1);
        for (std::size_t e = d + 1; e < at.size(); ++e) step = step * dim(tensor(k), e);
        if (at[d].is(channels)) size = groups * size;
        sizes += (sizes.empty() ? "{" : ", ") + size.text();
        steps += (steps.empty() ? "{" : ", ") + step.text();
      }
    return std::pair(sizes + "}", steps + "}");
  };
  const auto one = [](char letter) { return std::string(1, letter); };
  const auto two = [&](std::size_t d) { return std::string{c->place[d], c->window[d]}; };
  const auto [x_sizes, x_steps] = facts(c->x, c->c, {one(c->n), one(c->c), two(0), two(1)});
  const auto [w_sizes, w_steps] = facts(c->w, c->o, {one(c->o), one(c->c), one(c->window[0]), one(c->window[1])});
  const auto [y_sizes, y_steps] = facts(c->y, c->o, {one(c->n), one(c->o), one(c->place[0]), one(c->place[1])});
  const auto pair = [](const std::int64_t* p) { return "{" + std::to_string(p[0]) + ", " + std::to_string(p[1]) + "}"; };
  const std::string name = names_.unique("convolution");
  unit_.prelude().need("convolved");
  line("const lt_convolution " + name + " = {" + (kind == Kind::f32 ? "4" : "8") + ", " +
       (c->y == 0   ? "0"
        : c->w == 0 ? "1"
                    : "2") +
       ", " + (begins_with_zeros(op, uses_) ? "1" : "0") + ", " + data(c->x) + ", " + data(c->w) + ", " +
       data(c->y) + ", " + x_sizes + ", " + w_sizes + ", " + y_sizes + ", " + x_steps + ", " + w_steps +
       ", " + y_steps + ", " + pair(c->stride) + ", " + pair(c->dilation) + "};");
  return "lt_convolved(" + ws() + ", &" + name + ")";
}

/// A sum over a window of each channel: what the tensors' dimensions are to the routine.
void StatementPrinter::windows(const Op& op, const ir::Notation& n, const passes::ChannelWindow& w) {
  const std::size_t x = w.of.x, y = w.of.y;
  const std::string kind(ir::kind_name(op.result()->type.element()));
  const std::string routine = unit_.prelude().kernel("windows", op.result()->type.element());
  const std::string fresh = adds_to_zeros(op, uses_) ? "1" : "0";
  const Expression to = updated(op);
  const auto tensor = [&](std::size_t operand) { return operand == 0 ? op.result() : op.operands[operand]; };
  const auto size = [&](char letter) {
    if (!letter) return std::string("1");
    const ir::SizeSource from = *ir::size_source(n, letter);
    return dim(tensor(from.operand), static_cast<std::size_t>(from.dimension)).text();
  };
  const auto step = [&](std::size_t operand, const ir::Subscripts& at, char letter) {
    Expression product = integer_literal(0);
    for (std::size_t d = 0; d < at.size(); ++d) {
      if (!letter || !at[d].is(letter)) continue;
      product = integer_literal(1);
      for (std::size_t e = d + 1; e < at.size(); ++e) product = product * dim(tensor(operand), e);
    }
    return product.text();
  };
  const ir::Subscripts &from = n.operands[x].at, &by = n.operands[y].at;
  const std::string name = names_.unique("windows");
  std::string fields = atom(op.operands[x]) + ".data, " + atom(op.operands[y]) + ".data, " + member(to, "data").text() + ", " + fresh;
  for (const char letter : {w.other, w.channel})
    fields += ", " + size(letter) + ", " + step(x, from, letter) + ", " + step(y, by, letter) + ", " + step(0, n.result, letter);
  for (std::size_t k = 0; k < 2; ++k) {
    const auto& p = w.place[k];
    fields += ", {" + dim(tensor(x), from.size() - 2 + k).text() + ", " + size(p.row) + ", " + size(p.window) + ", " +
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
  const std::string on_one = place_ != Place::host && has_window_of_three(op, n, *c) ? "convolve" : on_gpu("contract");
  const bool begins = adds_to_zeros(op, uses_);
  const std::string fresh = begins ? "1" : "0";
  const Expression to = updated(op);
  const auto sizes_behind = [&](std::size_t operand, std::size_t dimension) {
    const Value* t = operand == 0 ? op.result() : op.operands[operand];
    std::vector<Expression> sizes;
    for (std::size_t d = dimension + 1; d < dims(t).size(); ++d) sizes.push_back(dim(t, d));
    return sizes;
  };
  // "[2i+k-1]" of dimension d: steps 2 and 1, times the sizes of the dimensions behind it; the start is 1 before.
  const auto step = [&](std::size_t operand, const ir::Subscripts& at, char letter) {
    Expression sum = integer_literal(0);
    for (std::size_t d = 0; d < at.size(); ++d)
      for (const auto& t : at[d].terms)
        if (t.letter == letter) sum = plus_product(sum, t.factor, sizes_behind(operand, d));
    return sum;
  };
  const std::string library = place_ == Place::host ? by_library(op, n, *c, to) : std::string();
  if (!library.empty()) open("if (!" + library + ") {");
  if (!begins && zeroed_by_library(op)) {
    const Kind kind = op.result()->type.element();
    line(filling(kind) + member(to, "data").text() + ", " + elements(op.result()).text() + ", " + zero(ir::Type(kind)) + ");");
  }
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
    return dim(from.operand == 0 ? op.result() : op.operands[from.operand], static_cast<std::size_t>(from.dimension)).text();
  };
  const auto steps = [&](std::size_t operand, const ir::Subscripts& at) {
    return list([&](char letter) { return step(operand, at, letter).text(); });
  };
  const Factors f = factors(op, shares_out() ? "contract_team" : on_one, c->x, c->y);
  std::vector<std::string> turns;
  for (const char letter : in_turn) {
    turns.push_back(names_.unique("turn"));
    open("for (int64_t " + turns.back() + " = 0; " + turns.back() + " < " + size(letter) + "; ++" + turns.back() + ") {");
  }
  const auto data = [&](Expression start, std::size_t operand, const ir::Subscripts& at) {
    for (std::size_t d = 0; d < at.size(); ++d)
      if (at[d].constant != 0) start = plus_product(start, at[d].constant, sizes_behind(operand, d));
    for (std::size_t i = 0; i < in_turn.size(); ++i)
      start = start + step(operand, at, in_turn[i]) * Expression(turns[i]);
    return start.text();
  };
  const ir::Subscripts &x = n.operands[c->x].at, &y = n.operands[c->y].at;
  const std::string name = names_.unique("contraction");
  const auto rank = [&](const std::string& letters) { return std::to_string(kept(letters).size()); };
  line("const lt_contraction_" + f.kind + " " + name + " = {" + data(Expression(f.x), c->x, x) + ", " + data(Expression(f.y), c->y, y) + ", " +
       data(member(to, "data"), 0, n.result) + ", " + fresh + ", {" + rank(c->batch) + ", " + rank(c->rows) + ", " + rank(c->columns) + ", " +
       rank(c->sums) + "}, " + list(size) + ", " + steps(c->x, x) + ", " + steps(c->y, y) + ", " +
       steps(0, n.result) + "};");
  if (!shares_out()) {
    line(f.routine + "(" + ws() + ", &" + name + ");");
    for (std::size_t i = 0; i < turns.size(); ++i) close();
    if (!f.mark.empty()) line("lt_device_leave(ws, " + f.mark + ");");
    if (!library.empty()) close();
    return;
  }
  // Where the first index of a group is a place of the result's, its parts are not adjacent.
  const auto splits = [&](const std::string& group) {
    return !group.empty() && std::ranges::any_of(n.result, [&](const auto& s) { return s.is(group[0]); });
  };
  unit_.note_fork();
  line(f.routine + "(" + ws() + ", " + std::to_string(unit_.options().threads) + ", " +
       std::to_string((splits(c->batch) ? 1 : 0) + (splits(c->rows) ? 2 : 0) + (splits(c->columns) ? 4 : 0)) + ", &" + name +
       ");");
}

}  // namespace lantern::codegen
