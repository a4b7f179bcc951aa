// Operations on tensors: elements and rows read and replaced, new tensors, shapes and types.
#include "lantern/compiler/onnx/exporter.hpp"

namespace lantern::onnx::exporting {

using ir::Opcode;

namespace {

std::vector<const ir::Value*> indices(const ir::Op& op, std::size_t end) {
  return {op.operands.begin() + 1, op.operands.begin() + static_cast<std::ptrdiff_t>(end)};
}

std::string as_i64(Exporter& e, const ir::Value* v) {
  const Form& f = e.form(v);
  return f.kind == ir::Kind::i64 ? f.name : e.w.cast(f.name, ir::Kind::i64);
}

/// Indices as a vector.
std::string index_vector(Exporter& e, const std::vector<const ir::Value*>& at) {
  Ints known;
  for (const ir::Value* v : at)
    if (const auto n = literal_integer(v)) known.push_back(*n);
  if (known.size() == at.size()) return e.w.ints(known);
  Names parts;
  for (const ir::Value* v : at)
    parts.push_back(literal_integer(v) ? e.w.ints({*literal_integer(v)}) : e.w.unsqueeze(as_i64(e, v), {0}));
  return parts.size() == 1 ? parts[0] : e.w.node("Concat", parts, {attribute("axis", std::int64_t{0})});
}

Form element(Exporter& e, const ir::Op& op) {
  const auto at = indices(op, op.operands.size());
  const std::string x = e.whole(op.operands[0]);
  if (at.size() == 1) return e.named(e.w.gather(x, as_i64(e, at[0]), 0), op.results[0]->type);
  return e.named(e.w.node("GatherND", {x, index_vector(e, at)}), op.results[0]->type);
}

/// The tensor with something replaced, or added, at places.
Form updated(Exporter& e, const ir::Op& op, const std::string& at, const std::string& values, bool adds) {
  const std::string name =
      e.w.node("ScatterND", {e.whole(op.operands[0]), at, values},
               adds ? std::vector{attribute("reduction", std::string("add"))} : std::vector<Attribute>{});
  return e.sized(name, op.results[0]->type, e.form(op.operands[0]).sizes);
}

Form with_element(Exporter& e, const ir::Op& op, bool adds) {
  const std::string at = e.w.unsqueeze(index_vector(e, indices(op, op.operands.size() - 1)), {0});
  return updated(e, op, at, e.w.unsqueeze(e.whole(op.operands.back()), {0}), adds);
}

Form filled(Exporter& e, const ir::Op& op, const Form& value, const Sizes& sizes) {
  Form f = e.sized(value.name, op.results[0]->type, sizes, sizes.empty());
  f.number = value.number;
  return f;
}

Form part(Exporter& e, const ir::Op& op) {
  const ir::Value* x = op.operands[0];
  const std::string from = e.w.unsqueeze(as_i64(e, op.operands[1]), {0}),
                    to = e.w.unsqueeze(as_i64(e, op.operands[2]), {0});
  const auto lo = literal_integer(op.operands[1]), hi = literal_integer(op.operands[2]);
  const std::string name =
      e.w.node("Slice", {e.whole(x), lo ? e.w.ints({*lo}) : from, hi ? e.w.ints({*hi}) : to, e.w.ints({0})});
  Form f = e.named(name, op.results[0]->type);
  for (std::size_t d = 1; d < f.rank(); ++d)
    if (f.sizes[d].known < 0) f.sizes[d] = e.form(x).sizes[d];
  return f;
}

Form with_rows_added(Exporter& e, const ir::Op& op) {
  const Form& rows = e.form(op.operands[2]);
  const std::string count = e.scalar(rows.sizes[0]);
  const std::string at = e.w.node("Add", {e.w.range(count), as_i64(e, op.operands[1])});
  return updated(e, op, e.w.unsqueeze(at, {1}), e.whole(rows), true);
}

Form joined(Exporter& e, const ir::Op& op) {
  const Form& a = e.form(op.operands[0]);
  const Form& b = e.form(op.operands[1]);
  const std::string name = e.w.node("Concat", {e.whole(a), e.whole(b)}, {attribute("axis", std::int64_t{0})});
  Form f = e.named(name, op.results[0]->type);
  for (std::size_t d = 1; d < f.rank(); ++d)
    if (f.sizes[d].known < 0) f.sizes[d] = a.sizes[d].known >= 0 ? a.sizes[d] : b.sizes[d];
  return f;
}

Form reshaped(Exporter& e, const ir::Op& op) {
  const Form& x = e.form(op.operands[0]);
  const Form& like = e.form(op.operands[1]);
  const Form to = e.sized("", op.results[0]->type, like.sizes);
  if (x.number) return filled(e, op, x, to.sizes);
  if (x.sizes == to.sizes) return x;
  return e.sized(e.reshape(e.whole(x), to.sizes), op.results[0]->type, to.sizes);
}

Form converted(Exporter& e, const ir::Op& op) {
  Form f = e.form(op.operands[0]);
  const ir::Kind to = op.results[0]->type.element();
  if (f.kind == to) return f;
  if (f.number && to != ir::Kind::boolean && f.kind != ir::Kind::boolean && f.kind != ir::Kind::f64 &&
      f.kind != ir::Kind::f32)
    f.name = e.w.number(*f.number, to);
  else
    f.name = e.w.cast(f.name, to), f.number.reset();
  f.kind = to;
  f.size.reset();
  return f;
}

}  // namespace

bool write_tensor(Exporter& e, const ir::Op& op) {
  const auto form = [&](std::size_t i) -> const Form& { return e.form(op.operands[i]); };
  switch (op.code) {
    case Opcode::cast_:
    case Opcode::cast_like_:
      e.give(op, converted(e, op));
      return true;
    case Opcode::stop_gradient_:
    case Opcode::copy_:
      e.give(op, Form(form(0)));
      return true;
    case Opcode::dim_:
      e.give(op, e.integer(form(0).sizes[static_cast<std::size_t>(op.integer)]));
      return true;
    case Opcode::get_:
      e.give(op, element(e, op));
      return true;
    case Opcode::set_:
    case Opcode::add_at_:
      e.give(op, with_element(e, op, op.is(Opcode::add_at_)));
      return true;
    case Opcode::take_: {
      const std::string name = e.w.gather(e.whole(op.operands[0]), as_i64(e, op.operands[1]), 0);
      e.give(op, e.sized(name, op.results[0]->type, {form(0).sizes.begin() + 1, form(0).sizes.end()}));
      return true;
    }
    case Opcode::add_take_: {
      const std::string at = e.w.unsqueeze(as_i64(e, op.operands[1]), {0, 1});
      e.give(op, updated(e, op, at, e.w.unsqueeze(e.whole(op.operands[2]), {0}), true));
      return true;
    }
    case Opcode::slice_:
      e.give(op, part(e, op));
      return true;
    case Opcode::add_slice_:
      e.give(op, with_rows_added(e, op));
      return true;
    case Opcode::fill_: {
      Sizes sizes;
      for (std::size_t i = 1; i < op.operands.size(); ++i) sizes.push_back(e.size_of(op.operands[i]));
      e.give(op, filled(e, op, form(0), sizes));
      return true;
    }
    case Opcode::zeros_like_:
      e.give(op, filled(e, op, e.literal(0, form(0).kind), form(0).sizes));
      return true;
    case Opcode::argmax_: {
      const std::string flat =
          form(0).rank() == 1 ? e.whole(form(0)) : e.w.node("Reshape", {e.whole(form(0)), e.w.ints({-1})});
      e.give(op,
             e.named(e.w.node("ArgMax", {flat},
                              {attribute("axis", std::int64_t{0}), attribute("keepdims", std::int64_t{0})}),
                     op.results[0]->type));
      return true;
    }
    case Opcode::reshape_:
      e.give(op, reshaped(e, op));
      return true;
    case Opcode::concat_:
      e.give(op, joined(e, op));
      return true;
    default:
      return false;
  }
}

}  // namespace lantern::onnx::exporting
