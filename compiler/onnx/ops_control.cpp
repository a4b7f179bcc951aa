// Control flow: If, Loop and Scan as staged branches and loops.
#include <algorithm>

#include "lantern/compiler/onnx/rules.hpp"
#include "lantern/compiler/staging/containers.hpp"
#include "lantern/compiler/staging/staging.hpp"

namespace lantern::onnx::rules {

namespace {

/// What a term is, without its tensors.
struct Shape {
  Term::Structure structure;
  Element element;
  int rank;
  std::vector<Shape> items;
  bool operator==(const Shape&) const = default;
};

Shape flatten(const Call& c, const Term& t, Datums& data) {
  Shape s{t.structure, t.element, t.is_tensor() ? t.rank() : 0, {}};
  for (const Term& i : t.items) s.items.push_back(flatten(c, i, data));
  if (t.is_tensor()) data.push_back(c.datum(t));
  return s;
}

Term rebuilt(const Shape& s, const Datums& data, std::size_t& next, Origins from) {
  Term t;
  t.structure = s.structure;
  t.element = s.element;
  if (s.structure == Term::Structure::tensor) t = Term::tensor(data[next++], s.element);
  for (const Shape& i : s.items) t.items.push_back(rebuilt(i, data, next, from));
  t.origins = from;
  return t;
}

Datum truth(const Call& c, const Term& t) {
  if (!t.is_tensor() || t.element != Element::boolean) c.fail("expected a condition of type bool");
  if (t.elements && t.elements->size() == 1) return (*t.elements)[0];
  return c.reshape(c.datum(t), {});
}

Origins origins_of(const Terms& all) {
  Origins from = 0;
  for (const Term& t : all) from |= t.origins;
  return from;
}

/// Row i of a tensor along an axis.
Datum row(const Call& c, const Datum& x, int axis, const Datum& i) {
  if (x.type().rank() == 1) return c.b.get(x, {i});
  if (axis == 0) return core::perform({Opcode::take_, 0, c.b.loc}, {x, i});
  std::vector<core::Part> parts(static_cast<std::size_t>(x.type().rank()), core::Part(core::named::all));
  parts[static_cast<std::size_t>(axis)].lo = i;
  parts[static_cast<std::size_t>(axis)].step = 0;
  return core::detail::part(x, parts, c.b.loc);
}

/// A tensor as the one row of another.
Datum as_row(const Call& c, const Datum& y) {
  const int first = 0;
  return y.type().is_tensor() ? c.b.with_ones(y, {&first, 1}) : c.b.fill(y, {c.integer(1)});
}
Datum with_row(const Call& c, const Datum& t, const Datum& i, const Datum& y) {
  if (!y.type().is_tensor()) return c.b.set(t, {i}, y);
  if (y.type().is_float_element())
    return core::perform({Opcode::add_take_, 0, c.b.loc}, {t, i, y});  // to a row of zeros
  return c.b.points(c.sizes(y), {t}, [&](const Indices& at, const Datums& now) {
    Indices to = at;
    to.insert(to.begin(), i);
    return Datums{c.b.set(now[0], to, c.b.get(y, at))};
  })[0];
}

/// A loop over graphs: how often at most, its state, and what it keeps of every iteration.
struct Repetition {
  const Call& c;
  std::optional<Datum> iterations;  ///< none: until the condition fails
  std::function<Terms(const Datum& i, const Term& condition, const Terms& state)>
      body;  ///< condition, state, kept
  Terms state;
  Term condition;
  std::size_t kept;
  bool conditional;  ///< the body computes a condition

  struct End {
    Terms state;
    std::vector<Datum> kept;
    std::vector<Element> kept_elements;
  };

  bool sequences() const { return !std::ranges::all_of(state, &Term::is_tensor); }

  void require_results(const Terms& results) const {
    if (results.size() != 1 + state.size() + kept)
      c.fail("expected a body of " + std::to_string(1 + state.size() + kept) + " outputs, got " +
             std::to_string(results.size()));
  }

  /// Iteration by iteration, where all that decides is known.
  End unrolled() const {
    End end{state, {}, {}};
    std::vector<Datums> rows(kept);
    end.kept_elements.assign(kept, Element::float32);
    Term now = condition;
    for (std::int64_t i = 0;; ++i) {
      if (iterations) {
        const Datum& n = core::strip(*iterations);
        if (!n.is_literal()) c.integers(c.term(0), "a number of iterations");
        if (i >= n.i()) break;
      }
      const Datum go = core::strip(truth(c, now));
      if (!go.is_literal())
        throw Unknown(
            "expected a condition that is known while the program is made: a loop over sequences is written "
            "out",
            origins_of(c.in) | now.origins, false);
      if (!go.b()) break;
      Terms results = body(c.integer(i), now, end.state);
      require_results(results);
      if (conditional) now = results[0];
      for (std::size_t k = 0; k < state.size(); ++k) end.state[k] = results[1 + k];
      for (std::size_t k = 0; k < kept; ++k) {
        const Term& y = results[1 + state.size() + k];
        if (!y.is_tensor()) c.fail("expected tensors as outputs of every iteration, got a sequence");
        end.kept_elements[k] = y.element;
        rows[k].push_back(as_row(c, c.datum(y)));
      }
    }
    for (std::size_t k = 0; k < kept; ++k)
      end.kept.push_back(rows[k].empty() ? c.b.fill(Datum::number(0, ir::F32), {c.integer(0)})
                                         : core::detail::concat(rows[k], 0, c.b.loc));
    return end;
  }

  struct Facts {
    std::vector<ir::Type> kept;  ///< of one iteration
    std::vector<Element> elements;
    bool always = false;  ///< the condition that the body computes is true, or the one it was given
  };

  /// Stages the loop; `accumulate` says how a row is kept.
  Datums staged(const Datums& rows,
                const std::function<Datum(const Datum& rows, const Datum& i, const Datum& y)>& accumulate,
                Facts* facts) const {
    Datums start = {c.integer(0), truth(c, condition)};
    for (const Term& t : state) start.push_back(c.datum(t));
    start.insert(start.end(), rows.begin(), rows.end());
    const Origins from = origins_of(c.in);
    return core::detail::loop(
        std::move(start),
        [&](const Datums& s) {
          if (!iterations) return s[1];
          const Datum more = c.b.less(s[0], *iterations);
          return conditional || !condition.literal() ? c.op(Opcode::land_, more, s[1]) : more;
        },
        [&](const Datums& s) {
          Terms now;
          for (std::size_t k = 0; k < state.size(); ++k) {
            now.push_back(Term::tensor(s[2 + k], state[k].element));
            now.back().origins = from;
          }
          Term given = Term::tensor(s[1], Element::boolean);
          given.origins = from;
          const Terms results = body(s[0], given, now);
          require_results(results);
          for (const Term& t : results)
            if (!t.is_tensor()) c.fail("expected tensors as outputs of a loop's body, got a sequence");
          const Datum go = conditional ? truth(c, results[0]) : s[1];
          Datums next = {c.b.add(s[0], c.integer(1)), go};
          for (std::size_t k = 0; k < state.size(); ++k) {
            if (results[1 + k].element != state[k].element)
              c.fail("expected a state of one element type, got " + std::string(name(state[k].element)) +
                     " and " + name(results[1 + k].element));
            next.push_back(c.datum(results[1 + k]));
          }
          if (facts)
            *facts = {
                {},
                {},
                (go.is_literal() && go.b()) || (go.is_node() && s[1].is_node() && go.node() == s[1].node())};
          for (std::size_t k = 0; k < kept; ++k) {
            const Datum y = c.datum(results[1 + state.size() + k]);
            if (facts) {
              facts->kept.push_back(y.type());
              facts->elements.push_back(results[1 + state.size() + k].element);
            }
            if (!rows.empty()) next.push_back(accumulate(s[2 + state.size() + k], s[0], y));
          }
          return next;
        },
        c.b.loc);
  }

  End run() const {
    core::Staging* const staging = core::context().staging;
    if (!staging || sequences()) return unrolled();
    Facts facts;
    if (kept > 0) {  // what the body gives is seen by staging it once, for nothing
      const core::Staging::Attempt attempt(*staging);
      staged({}, {}, &facts);
    }
    // Rows whose sizes is not known: the iterations are written out, each with its own.
    for (const ir::Type& t : facts.kept)
      if (t.is_tensor() && std::ranges::count(t.dims(), ir::dynamic) > 0) return unrolled();
    const bool counted =
        iterations &&
        (!conditional || (facts.always && condition.literal() && core::strip(truth(c, condition)).b()));
    Datums rows;
    for (const ir::Type& t : facts.kept) {
      Indices sizes = {counted ? c.op(Opcode::imax_, *iterations, c.integer(0)) : c.integer(0)};
      if (t.is_tensor())
        for (const std::int64_t d : t.dims()) sizes.push_back(c.integer(d));
      rows.push_back(c.b.fill(Datum::zero(ir::Type(t.element())), sizes));
    }
    const Datums end = staged(
        rows,
        [&](const Datum& all, const Datum& i, const Datum& y) {
          if (counted) return with_row(c, all, i, y);
          return core::perform({Opcode::concat_, 0, c.b.loc}, {all, as_row(c, y)});
        },
        nullptr);
    End out;
    for (std::size_t k = 0; k < state.size(); ++k)
      out.state.push_back(Term::tensor(end[2 + k], state[k].element));
    for (std::size_t k = 0; k < kept; ++k) out.kept.push_back(end[2 + state.size() + k]);
    out.kept_elements = facts.elements;
    return out;
  }
};

}  // namespace

Terms if_else(const Call& c) {
  c.require_operands(1, 1);
  const Datum condition = truth(c, c.term(0));
  const Graph &then = c.graph_attribute("then_branch"), &otherwise = c.graph_attribute("else_branch");
  if (core::strip(condition).is_literal())
    return c.execution.run(core::strip(condition).b() ? then : otherwise, {}, c.frame);
  std::vector<Shape> shapes[2];
  Origins from = c.in[0].origins;
  const auto side = [&](int k, const Graph& g) {
    Datums data;
    shapes[k].clear();
    for (const Term& t : c.execution.run(g, {}, c.frame)) {
      shapes[k].push_back(flatten(c, t, data));
      from |= t.origins;
    }
    if (k == 1 && shapes[0] != shapes[1])
      throw Unknown(
          "expected branches whose outputs have one structure, element type and number of dimensions, or a "
          "condition "
          "that is known while the program is made",
          c.in[0].origins, false);
    return data;
  };
  const Datums data = core::detail::branch(
      condition, [&] { return side(0, then); }, [&] { return side(1, otherwise); }, c.b.loc);
  Terms out;
  std::size_t next = 0;
  for (const Shape& s : shapes[1]) out.push_back(rebuilt(s, data, next, from));
  return out;
}

Terms loop(const Call& c) {
  const Graph& body = c.graph_attribute("body");
  if (c.in.size() < 2)
    c.fail("expected a number of iterations and a condition, either of which may be empty, got " +
           std::to_string(c.in.size()) + " operands");
  Repetition r{c, {}, {}, {}, {}, 0, true};
  if (c.has(0)) r.iterations = c.reshape(c.cast(c[0], ir::Kind::i64), {});
  const Datum yes = Datum::integer(1, ir::Bool);
  r.condition = c.has(1) ? c.in[1] : Term::tensor(yes, Element::boolean);
  r.state.assign(c.in.begin() + 2, c.in.end());
  if (body.outputs.size() < 1 + r.state.size())
    c.fail("expected a body of at least " + std::to_string(1 + r.state.size()) + " outputs, got " +
           std::to_string(body.outputs.size()));
  r.kept = body.outputs.size() - 1 - r.state.size();
  r.body = [&](const Datum& i, const Term& condition, const Terms& state) {
    Terms in = {Term::tensor(i, Element::int64), condition};
    in.insert(in.end(), state.begin(), state.end());
    return c.execution.run(body, in, c.frame);
  };
  const Repetition::End end = r.run();
  Terms out = end.state;
  for (std::size_t k = 0; k < r.kept; ++k) out.push_back(c.result(end.kept[k], end.kept_elements[k]));
  return out;
}

namespace {

Terms scanned(const Call& c, const Graph& body, const Terms& state, const std::vector<Datum>& scanned_inputs,
              const std::vector<Element>& elements, const Sizes& directions, const Sizes& out_directions,
              const std::vector<int>& axes) {
  const Datum n = c.b.size(scanned_inputs.at(0), axes[0]);
  for (std::size_t k = 1; k < scanned_inputs.size(); ++k)
    c.b.require_equal(n, c.b.size(scanned_inputs[k], axes[k]), "expected inputs of one length");
  const auto number = [&](const Datum& i, const Sizes& turned, std::size_t k) {
    return k < turned.size() && turned[k] != 0 ? c.b.sub(c.b.sub(n, c.integer(1)), i) : i;
  };
  Repetition r{c, n, {}, state, Term::tensor(Datum::integer(1, ir::Bool), Element::boolean), 0, false};
  if (body.outputs.size() < state.size())
    c.fail("expected a body of at least " + std::to_string(state.size()) + " outputs");
  r.kept = body.outputs.size() - state.size();
  r.body = [&](const Datum& i, const Term& condition, const Terms& now) {
    Terms in = now;
    for (std::size_t k = 0; k < scanned_inputs.size(); ++k)
      in.push_back(Term::tensor(row(c, scanned_inputs[k], axes[k], number(i, directions, k)), elements[k]));
    Terms results = c.execution.run(body, in, c.frame);
    results.insert(results.begin(), condition);
    return results;
  };
  const Repetition::End end = r.run();
  Terms out = end.state;
  for (std::size_t k = 0; k < r.kept; ++k) {
    const int first = 0;
    Datum rows = end.kept[k];
    if (k < out_directions.size() && out_directions[k] != 0)
      rows = core::detail::flip(rows, {&first, 1}, c.b.loc);
    out.push_back(c.result(rows, end.kept_elements[k]));
  }
  return out;
}

}  // namespace

Terms scan(const Call& c) {
  const Graph& body = c.graph_attribute("body");
  const std::int64_t scans = c.attribute("num_scan_inputs");
  const std::size_t first = c.opset < 9 ? 1 : 0;  // version 8 begins with the lengths of sequences
  if (scans < 1 || static_cast<std::size_t>(scans) + first > c.in.size())
    c.fail("attribute 'num_scan_inputs': expected a number of operands from 1 on, got " +
           std::to_string(scans));
  const std::size_t states = c.in.size() - first - static_cast<std::size_t>(scans);
  std::vector<Element> elements;
  for (std::size_t k = 0; k < static_cast<std::size_t>(scans); ++k)
    elements.push_back(c.element(first + states + k));
  if (c.opset < 9) {  // a scan for each example of a batch
    if (c.has(0)) c.unsupported("lengths of sequences in Scan of version 8");
    const std::int64_t batch = c.known_size(c[first], 0);
    std::vector<Datums> rows;
    std::vector<Element> out_elements;
    for (std::int64_t n = 0; n < batch; ++n) {
      Terms state;
      for (std::size_t k = 0; k < states; ++k)
        state.push_back(Term::tensor(row(c, c[first + k], 0, c.integer(n)), c.element(first + k)));
      std::vector<Datum> inputs;
      for (std::size_t k = 0; k < static_cast<std::size_t>(scans); ++k)
        inputs.push_back(row(c, c[first + states + k], 0, c.integer(n)));
      const Terms results = scanned(c, body, state, inputs, elements, c.attributes("directions"), {},
                                    std::vector<int>(inputs.size(), 0));
      rows.resize(results.size());
      out_elements.resize(results.size());
      for (std::size_t k = 0; k < results.size(); ++k) {
        rows[k].push_back(as_row(c, c.datum(results[k])));
        out_elements[k] = results[k].element;
      }
    }
    Terms out;
    for (std::size_t k = 0; k < rows.size(); ++k)
      out.push_back(c.result(core::detail::concat(rows[k], 0, c.b.loc), out_elements[k]));
    return out;
  }
  Terms state(c.in.begin(), c.in.begin() + static_cast<std::ptrdiff_t>(states));
  std::vector<Datum> inputs;
  std::vector<int> axes;
  const Sizes given = c.attributes("scan_input_axes"), out_axes = c.attributes("scan_output_axes");
  for (std::size_t k = 0; k < static_cast<std::size_t>(scans); ++k) {
    inputs.push_back(c[states + k]);
    axes.push_back(c.axis(k < given.size() ? given[k] : 0, c.rank(states + k)));
  }
  Terms out = scanned(c, body, state, inputs, elements, c.attributes("scan_input_directions"),
                      c.attributes("scan_output_directions"), axes);
  for (std::size_t k = 0; k < out_axes.size() && states + k < out.size(); ++k) {
    Term& t = out[states + k];
    const int rank = t.rank(), to = c.axis(out_axes[k], rank);
    std::vector<int> order;
    for (int d = 1; d < rank; ++d) order.push_back(d);
    order.insert(order.begin() + to, 0);
    t = c.result(c.permute(t.datum, order), t.element);
  }
  return out;
}

}  // namespace lantern::onnx::rules
