// Convolutions, their transposes and sums over windows, as operators of their own.
//
// "nc[2i+p-1][2j+q-1],ocpq->noij" is a convolution, and so is the derivative by its weights, with other
// indices in the roles of channels and windows; "nc[2i+p-1][2j+q-1]+=noij,ocpq", the derivative by its
// argument, is a transposed one.
#include <algorithm>
#include <map>

#include "lantern/compiler/onnx/exporter.hpp"

namespace lantern::onnx::exporting {

namespace {

/// The indices of an operand whose places are one each; nothing where some are not.
std::optional<std::string> plain(const ir::Subscripts& at) {
  std::string all;
  for (const ir::Subscript& s : at) {
    if (!s.is_letter() || has(all, s.letter())) return std::nullopt;
    all += s.letter();
  }
  return all;
}

/// A dimension along which a window moves: read at stride * place + dilation * window + constant.
struct Move {
  std::size_t axis;
  char place, window;
  std::int64_t stride, dilation, constant;
};

/// Operands and result of a product over windows: `wide` has the places of the moves.
struct Window {
  Exporter& e;
  const ir::Op& op;
  const ir::Notation& n;
  ir::Kind kind = op.results[0]->type.element();
  std::map<char, Size> sizes = {};
  std::vector<Move> moves = {};
  std::string bare = {};  ///< of the wide operand, its indices but for the moves

  bool find(const ir::Subscripts& wide, const std::string& places, const std::string& windows) {
    for (std::size_t d = 0; d < wide.size(); ++d) {
      const ir::Subscript& s = wide[d];
      if (s.is_letter()) {
        if (has(bare, s.letter())) return false;
        bare += s.letter();
        continue;
      }
      if (s.terms.size() != 2) return false;
      auto place = s.terms[0], window = s.terms[1];
      if (!has(places, place.letter)) std::swap(place, window);
      if (!has(places, place.letter) || !has(windows, window.letter) || place.factor < 1 || window.factor < 1)
        return false;
      if (has(windows, place.letter) || has(places, window.letter)) return false;
      moves.push_back({d, place.letter, window.letter, place.factor, window.factor, s.constant});
    }
    for (const Move& m : moves)
      if (has(bare, m.place) || has(bare, m.window)) return false;
    return !moves.empty() && moves.size() <= 3;
  }

  void find_sizes() {
    for (std::size_t i = 0; i < n.operands.size(); ++i)
      for (std::size_t d = 0; d < n.operands[i].at.size(); ++d)
        if (const ir::Subscript& s = n.operands[i].at[d]; s.is_letter()) {
          Size& size = sizes[s.letter()];
          if (size.known < 0) size = e.form(op.operands[i]).sizes[d];
        }
    for (std::size_t i = 0; i < n.sizes.size(); ++i) {
      Size& size = sizes[n.sizes[i]];
      if (size.known < 0) size = e.size_of(op.operands[n.operands.size() + i]);
    }
    for (std::size_t d = 0; d < n.result.size(); ++d)
      if (op.results[0]->type.is_tensor() && n.result[d].is_letter() &&
          op.results[0]->type.dims()[d] != ir::dynamic)
        sizes[n.result[d].letter()] = Size::number(op.results[0]->type.dims()[d]);
  }
  Size product(const std::string& letters) {
    Size all = Size::number(1);
    for (const char c : letters) {
      const Size& s = sizes.at(c);
      if (all.is(1))
        all = s;
      else if (all.known >= 0 && s.known >= 0)
        all = Size::number(all.known * s.known);
      else
        all = {-1, e.w.node("Mul", {e.scalar(all), e.scalar(s)}), -1};
    }
    return all;
  }

  /// A tensor of indices `from` as one of the groups of indices `to`, a dimension each.
  std::string arranged(const std::string& name, const std::string& from, const std::vector<std::string>& to) {
    Ints order;
    std::string all;
    bool single = true;
    for (const std::string& group : to) {
      all += group;
      single = single && group.size() == 1;
    }
    for (const char c : all) order.push_back(static_cast<std::int64_t>(from.find(c)));
    const std::string x = e.w.transpose(name, order);
    if (single) return x;
    Sizes groups;
    for (const std::string& group : to) groups.push_back(product(group));
    return e.reshape(x, groups);
  }
  /// And back.
  std::string split(const std::string& name, const std::vector<std::string>& groups, const std::string& to) {
    std::string all;
    Sizes each;
    bool single = true;
    for (const std::string& group : groups) {
      all += group;
      single = single && group.size() == 1;
    }
    for (const char c : all) each.push_back(sizes.at(c));
    Ints order;
    for (const char c : to) order.push_back(static_cast<std::int64_t>(all.find(c)));
    return e.w.transpose(single ? name : e.reshape(name, each), order);
  }

  std::vector<Attribute> attributes(const Ints& begin, const Ints& end) const {
    Ints strides, dilations, pads = begin;
    pads.insert(pads.end(), end.begin(), end.end());
    for (const Move& m : moves) {
      strides.push_back(m.stride);
      dilations.push_back(m.dilation);
    }
    std::vector<Attribute> all = {attribute("strides", strides)};
    if (std::ranges::any_of(pads, [](std::int64_t p) { return p != 0; }))
      all.push_back(attribute("pads", pads));
    if (std::ranges::any_of(dilations, [](std::int64_t d) { return d != 1; }))
      all.push_back(attribute("dilations", dilations));
    return all;
  }

  /// What a convolution has to pad at the ends for its result to be of the sizes that are wanted, and `x`, of
  /// `rank` dimensions of which the last are moved along, with what it cannot pad. False where a size is not
  /// known.
  bool pads(std::string& x, std::size_t rank, const Sizes& own, Ints& begin, Ints& end) {
    Ints from, to, axes, steps;
    for (std::size_t i = 0; i < moves.size(); ++i) {
      const Move& m = moves[i];
      const std::int64_t places = sizes.at(m.place).known, window = sizes.at(m.window).known,
                         size = own[i].known;
      if (places < 1 || window < 1 || size < 1) return false;
      const std::int64_t front = -m.constant;
      const std::int64_t back = m.stride * (places - 1) + m.dilation * (window - 1) + 1 - size - front;
      if (front < 0 || back <= -m.stride) {
        axes.push_back(static_cast<std::int64_t>(rank - moves.size() + i));
        from.push_back(std::max<std::int64_t>(0, -front));
        to.push_back(size + std::min<std::int64_t>(0, back));
        steps.push_back(1);
      }
      begin.push_back(std::max<std::int64_t>(0, front));
      end.push_back(std::max<std::int64_t>(0, back));
    }
    x = e.w.slice(x, from, to, axes, steps);
    return true;
  }

  /// Pads that are computed.
  std::string padded(const std::string& x, std::size_t rank, const Sizes& own) {
    Names parts;
    for (std::size_t i = 0; i < moves.size(); ++i) {
      const Move& m = moves[i];
      const Size& places = sizes.at(m.place);
      const Size& window = sizes.at(m.window);
      // stride (places - 1) + dilation (window - 1) + 1 - size - front
      std::string sum = e.w.node("Mul", {e.scalar(places), e.w.integer(m.stride)});
      sum = e.w.node("Add", {sum, e.w.node("Mul", {e.scalar(window), e.w.integer(m.dilation)})});
      sum = e.w.node("Sub", {sum, e.scalar(own[i])});
      sum = e.w.node("Add", {sum, e.w.integer(1 - m.stride - m.dilation + m.constant)});
      parts.push_back(e.w.unsqueeze(sum, {0}));
    }
    Names all = {e.w.ints(Ints(rank - moves.size(), 0))};
    Ints front;
    for (const Move& m : moves) front.push_back(-m.constant);
    all.push_back(e.w.ints(front));
    all.push_back(all[0]);
    all.insert(all.end(), parts.begin(), parts.end());
    return e.w.node("Pad",
                    {x, e.w.node("Concat", all, {attribute("axis", std::int64_t{0})}), e.w.number(0, kind)});
  }

  std::string places() const {
    std::string all;
    for (const Move& m : moves) all += m.place;
    return all;
  }
  std::string windows() const {
    std::string all;
    for (const Move& m : moves) all += m.window;
    return all;
  }
  std::vector<std::string> each(std::vector<std::string> groups, const std::string& letters) const {
    for (const char c : letters) groups.emplace_back(1, c);
    return groups;
  }
  Sizes moved_sizes(const Form& f) const {
    Sizes all;
    for (const Move& m : moves) all.push_back(f.sizes[m.axis]);
    return all;
  }
  /// The wide operand's indices with the place's in place of a move's.
  std::string wide_letters(const ir::Subscripts& wide) const {
    std::string all;
    for (std::size_t d = 0; d < wide.size(); ++d) {
      const auto move = std::ranges::find(moves, d, &Move::axis);
      all += move == moves.end() ? wide[d].letter() : move->place;
    }
    return all;
  }

  bool convolution(std::size_t x, std::size_t w) {
    const auto result = plain(n.result), weights = plain(n.operands[w].at);
    if (!result || !weights) return false;
    // Windows are indices of the weights alone, places of the result alone.
    std::string places_of_result, windows_of_weights;
    for (const char c : *result)
      if (!has(*weights, c)) places_of_result += c;
    for (const char c : *weights)
      if (!has(*result, c)) windows_of_weights += c;
    if (!find(n.operands[x].at, places_of_result, windows_of_weights)) return false;
    find_sizes();
    std::string batch, channels, groups, outputs;
    for (const char c : bare) {
      const bool in_weights = has(*weights, c), in_result = has(*result, c);
      if (in_weights && in_result)
        groups += c;
      else if (in_weights)
        channels += c;
      else if (in_result)
        batch += c;
      else
        return false;
    }
    for (const char c : *weights) {
      if (has(bare, c) || has(windows(), c)) continue;
      if (!has(*result, c)) return false;
      outputs += c;
    }
    if (result->size() != batch.size() + groups.size() + outputs.size() + moves.size()) return false;
    const Form& wide = e.form(op.operands[x]);
    const std::size_t rank = 2 + moves.size();
    const std::map<char, Size> own = sizes;
    for (const Move& m : moves) sizes[m.place] = wide.sizes[m.axis];  // while the operand is arranged
    std::string from =
        arranged(e.whole(wide), wide_letters(n.operands[x].at), each({batch, groups + channels}, places()));
    sizes = own;
    const std::string kernel =
        arranged(e.whole(op.operands[w]), *weights, each({groups + outputs, channels}, windows()));
    Ints begin, end;
    if (!pads(from, rank, moved_sizes(wide), begin, end)) {
      from = padded(from, rank, moved_sizes(wide));
      begin.assign(moves.size(), 0);
      end.assign(moves.size(), 0);
    }
    std::vector<Attribute> all = attributes(begin, end);
    Ints kernel_shape;
    for (const Move& m : moves) kernel_shape.push_back(sizes.at(m.window).known);
    if (std::ranges::all_of(kernel_shape, [](std::int64_t k) { return k > 0; }))
      all.push_back(attribute("kernel_shape", kernel_shape));
    if (!groups.empty()) {
      const Size g = product(groups);
      if (g.known < 0) return false;
      all.push_back(attribute("group", g.known));
    }
    const std::string y = e.w.node("Conv", {from, kernel}, all);
    return finish(split(y, each({batch, groups + outputs}, places()), *result), *result);
  }
  bool finish(const std::string& name, const std::string& letters) {
    Sizes to;
    for (const char c : letters) to.push_back(sizes.at(c));
    e.give(op, e.sized(name, op.results[0]->type, to));
    return true;
  }

  /// The result has the moves: each element of x is multiplied with the weights and added where they lie.
  bool transposed(std::size_t x, std::size_t w) {
    const auto from = plain(n.operands[x].at), weights = plain(n.operands[w].at);
    if (!from || !weights) return false;
    std::string places_of_x, windows_of_weights;
    for (const char c : *from)
      if (!has(*weights, c)) places_of_x += c;
    for (const char c : *weights)
      if (!has(*from, c)) windows_of_weights += c;
    if (!find(n.result, places_of_x, windows_of_weights)) return false;
    find_sizes();
    std::string batch, channels, groups, outputs;
    for (const char c : *from) {
      if (has(places(), c)) continue;
      const bool in_weights = has(*weights, c), in_result = has(bare, c);
      if (in_weights && in_result)
        groups += c;
      else if (in_weights)
        channels += c;
      else if (in_result)
        batch += c;
      else
        return false;
    }
    for (const char c : *weights) {
      if (has(*from, c) || has(windows(), c)) continue;
      if (!has(bare, c)) return false;
      outputs += c;
    }
    if (bare.size() != batch.size() + groups.size() + outputs.size()) return false;
    const Form& base = e.form(op.operands[0]);
    Ints begin, end, more;
    for (const Move& m : moves) {
      const std::int64_t count = sizes.at(m.place).known, window = sizes.at(m.window).known,
                         size = base.sizes[m.axis].known;
      if (count < 1 || window < 1 || size < 1) return false;
      const std::int64_t front = -m.constant;
      const std::int64_t back = m.stride * (count - 1) + m.dilation * (window - 1) + 1 - front - size;
      if (front < 0 || -back >= std::max(m.stride, m.dilation)) return false;
      begin.push_back(front);
      end.push_back(std::max<std::int64_t>(0, back));
      more.push_back(std::max<std::int64_t>(0, -back));
    }
    std::vector<Attribute> all = attributes(begin, end);
    if (std::ranges::any_of(more, [](std::int64_t m) { return m != 0; }))
      all.push_back(attribute("output_padding", more));
    if (!groups.empty()) {
      const Size g = product(groups);
      if (g.known < 0) return false;
      all.push_back(attribute("group", g.known));
    }
    const std::string input =
        arranged(e.whole(op.operands[x]), *from, each({batch, groups + channels}, places()));
    const std::string kernel =
        arranged(e.whole(op.operands[w]), *weights, each({groups + channels, outputs}, windows()));
    const std::string y = e.w.node("ConvTranspose", {input, kernel}, all);
    for (const Move& m : moves) sizes[m.place] = base.sizes[m.axis];
    const std::string letters = wide_letters(n.result);
    return finish(split(y, each({batch, groups + outputs}, places()), letters), letters);
  }

  /// A sum over windows: the mean times the number of elements.
  bool pool() {
    const auto result = plain(n.result);
    if (!result || n.operands.size() != 1 || n.accumulates) return false;
    std::string others;
    for (const char c : n.letters())
      if (!has(*result, c)) others += c;
    if (!find(n.operands[0].at, *result, others) || bare.size() != 2 || others.size() != moves.size())
      return false;
    for (const char c : bare)
      if (!has(*result, c)) return false;
    find_sizes();
    const Form& wide = e.form(op.operands[0]);
    std::int64_t count = 1;
    Ints kernel_shape;
    for (const Move& m : moves) {
      if (m.dilation != 1 || sizes.at(m.window).known < 1) return false;
      kernel_shape.push_back(sizes.at(m.window).known);
      count *= kernel_shape.back();
    }
    Ints begin, end;
    const std::map<char, Size> own = sizes;
    for (const Move& m : moves) sizes[m.place] = wide.sizes[m.axis];
    std::string from = arranged(e.whole(wide), wide_letters(n.operands[0].at),
                                each({bare.substr(0, 1), bare.substr(1)}, places()));
    sizes = own;
    if (!pads(from, 2 + moves.size(), moved_sizes(wide), begin, end)) return false;
    for (std::size_t i = 0; i < moves.size(); ++i)
      if (begin[i] >= kernel_shape[i] || end[i] >= kernel_shape[i]) return false;
    std::vector<Attribute> all = attributes(begin, end);
    all.push_back(attribute("kernel_shape", kernel_shape));
    all.push_back(attribute("count_include_pad", std::int64_t{1}));
    const std::string mean = e.w.node("AveragePool", {from}, all);
    const std::string sum = e.scaled(mean, static_cast<double>(count), kind);
    return finish(split(sum, each({bare.substr(0, 1), bare.substr(1)}, places()), *result), *result);
  }
};

}  // namespace

bool write_window(Exporter& e, const ir::Op& op, const ir::Notation& n) {
  std::vector<std::size_t> factors;
  for (std::size_t i = 0; i < n.operands.size(); ++i) {
    if (n.operands[i].shape) return false;
    if (n.is_factor(i)) factors.push_back(i);
  }
  const ir::Kind kind = op.results[0]->type.element();
  if (kind != ir::Kind::f32 && kind != ir::Kind::f64) return false;
  const auto moves = [](const ir::Subscripts& at) {
    return std::ranges::any_of(at, [](const ir::Subscript& s) { return s.terms.size() > 1; });
  };
  if (factors.size() == 1) return moves(n.operands[factors[0]].at) && Window{e, op, n}.pool();
  if (factors.size() != 2) return false;
  for (const auto& [x, w] : {std::pair(factors[0], factors[1]), std::pair(factors[1], factors[0])}) {
    if (moves(n.operands[x].at) && !moves(n.operands[w].at) && !moves(n.result) &&
        Window{e, op, n}.convolution(x, w))
      return true;
    if (moves(n.result) && n.accumulates && !moves(n.operands[x].at) && !moves(n.operands[w].at) &&
        Window{e, op, n}.transposed(x, w))
      return true;
  }
  return false;
}

}  // namespace lantern::onnx::exporting
