// From a staged program to a model: the passes that bring it into direct style, its inputs and weights, its
// operations one by one, and its results.
#include "lantern/compiler/onnx/export.hpp"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <functional>
#include <limits>

#include "lantern/compiler/driver/export_staging.hpp"
#include "lantern/compiler/onnx/exporter.hpp"
#include "lantern/compiler/onnx/rules.hpp"
#include "lantern/compiler/passes/canonical/canonical_loops.hpp"
#include "lantern/compiler/passes/canonical/simplify.hpp"
#include "lantern/compiler/passes/direct/contify.hpp"
#include "lantern/compiler/passes/direct/unwind.hpp"
#include "lantern/compiler/staging/operation.hpp"
#include "lantern/ir/op.hpp"

namespace lantern::onnx {

namespace exporting {

using ir::Opcode;

std::optional<std::int64_t> literal_integer(const ir::Value* v) {
  if (v->def == nullptr || !v->def->is(Opcode::constant_) || !v->type.is_scalar() ||
      v->type.is_float_element())
    return std::nullopt;
  return v->def->integer;
}

const Form& Exporter::form(const ir::Value* v) const {
  const auto at = forms.find(v);
  if (at == forms.end()) throw InternalError("export_onnx: a value is used before it is made");
  return at->second;
}

Form Exporter::sized(const std::string& name, const ir::Type& type, const Sizes& sizes, bool whole) const {
  Form f;
  f.name = name;
  f.kind = type.element();
  f.whole = whole;
  if (!type.is_tensor()) return f;
  f.sizes = sizes;
  for (std::size_t d = 0; d < f.sizes.size(); ++d)
    if (type.dims()[d] != ir::dynamic) f.sizes[d] = Size::number(type.dims()[d]);
  return f;
}

Form Exporter::named(const std::string& name, const ir::Type& type) const {
  Sizes own;
  for (int d = 0; d < (type.is_tensor() ? type.rank() : 0); ++d) own.push_back({-1, name, d});
  return sized(name, type, own);
}

Form Exporter::literal(double v, ir::Kind kind) {
  Form f;
  f.name = w.number(v, kind);
  f.kind = kind;
  f.number = v;
  return f;
}

Form Exporter::integer(const Size& size) {
  Form f;
  f.kind = ir::Kind::i64;
  f.name = scalar(size);
  f.size = size;
  if (size.known >= 0) f.number = static_cast<double>(size.known);
  return f;
}

Size Exporter::size_of(const ir::Value* v) const {
  if (const auto n = literal_integer(v)) return Size::number(*n);
  const Form& f = form(v);
  return f.size ? *f.size : Size{-1, f.name, -1};
}

std::string Exporter::scalar(const Size& s) {
  if (s.known >= 0) return w.integer(s.known);
  if (s.axis < 0) return s.of;
  return w.gather(w.node("Shape", {s.of}), w.integer(s.axis), 0);
}

std::string Exporter::vector(const Sizes& all) {
  Ints known;
  for (const Size& s : all) known.push_back(s.known);
  if (std::ranges::all_of(known, [](std::int64_t n) { return n >= 0; })) return w.ints(known);
  bool one = true;  // all the sizes of one tensor, in order, as far as they are not known
  std::string of;
  for (const Size& s : all)
    if (s.known < 0) of = s.of;
  for (std::size_t d = 0; d < all.size(); ++d)
    one = one && all[d].known < 0 && all[d].of == of && all[d].axis == static_cast<int>(d);
  if (one)
    return w.node(
        "Shape", {of},
        {attribute("start", std::int64_t{0}), attribute("end", static_cast<std::int64_t>(all.size()))});
  Names parts;
  for (const Size& s : all) {
    if (s.known >= 0)
      parts.push_back(w.ints({s.known}));
    else if (s.axis >= 0)
      parts.push_back(
          w.node("Shape", {s.of},
                 {attribute("start", std::int64_t{s.axis}), attribute("end", std::int64_t{s.axis} + 1)}));
    else
      parts.push_back(w.unsqueeze(s.of, {0}));
  }
  return parts.size() == 1 ? parts[0] : w.node("Concat", parts, {attribute("axis", std::int64_t{0})});
}

std::string Exporter::reshape(const std::string& x, const Sizes& to) {
  const auto open = std::ranges::count_if(to, [](const Size& s) { return s.known < 0; });
  const bool empty = std::ranges::any_of(to, [](const Size& s) { return s.known == 0; });
  if (open > 1 || empty)
    return w.node("Reshape", {x, vector(to)},
                  empty ? std::vector{attribute("allowzero", std::int64_t{1})} : std::vector<Attribute>{});
  Ints sizes;
  for (const Size& s : to) sizes.push_back(s.known);
  return w.node("Reshape", {x, w.ints(sizes)});
}

std::string Exporter::whole(const Form& f) {
  if (f.whole || f.rank() == 0) return f.name;
  std::int64_t count = 1;
  for (const Size& s : f.sizes) count = s.known < 0 || count < 0 || count > 4096 ? -1 : count * s.known;
  if (f.number && f.kind != ir::Kind::boolean && count != 0) {
    Value v(element_of(f.kind), {1});
    if (f.kind == ir::Kind::f32) v.mutable_elements<float>()[0] = static_cast<float>(*f.number);
    if (f.kind == ir::Kind::f64) v.mutable_elements<double>()[0] = *f.number;
    if (f.kind == ir::Kind::i32) v.mutable_elements<std::int32_t>()[0] = static_cast<std::int32_t>(*f.number);
    if (f.kind == ir::Kind::i64) v.mutable_elements<std::int64_t>()[0] = static_cast<std::int64_t>(*f.number);
    const std::string sizes = vector(f.sizes);
    // An attribute that is a tensor keeps nodes from being one: the name says which they are.
    auto& known = filled_[f.name + "/" + sizes];
    if (known.first.empty() || known.second > w.depth()) {
      known = {w.node("ConstantOfShape", {sizes}, {attribute("value", v)}), w.depth()};
      if (w.depth() > 1) {
        const std::string made = known.first;
        filled_.erase(f.name + "/" + sizes);
        return made;
      }
    }
    return known.first;
  }
  return w.node("Expand", {f.name, vector(f.sizes)});
}

Size Exporter::add(const Size& a, std::int64_t factor, const Size& b) {
  if (a.known >= 0 && b.known >= 0 && a.known + factor * b.known >= 0)
    return Size::number(a.known + factor * b.known);
  if (b.is(0)) return a;
  if (a.is(0) && factor == 1) return b;
  const std::string scaled =
      factor == 1 || factor == -1 ? scalar(b) : w.node("Mul", {scalar(b), w.integer(factor)});
  return {-1, w.node(factor == -1 ? "Sub" : "Add", {scalar(a), scaled}), -1};
}

void Exporter::refuse(const ir::Op& op, const std::string& what, const std::string& remedy) const {
  ir::Location at = op.loc;
  if (!at.known() && op.callee != nullptr) at = op.callee->loc;
  for (const ir::Block* b = op.parent; !at.known() && b != nullptr;
       b = b->parent ? b->parent->parent : nullptr)
    at = b->parent ? b->parent->loc : b->function->loc;
  core::raise_at(at, "export_onnx: " + what + "; " + remedy);
}

void Exporter::run(const ir::Block& block) {
  for (const ir::Op* op : block.ops)
    if (!op->is(Opcode::yield_)) run(*op);
}

namespace {

/// select(x <= 0, 0, x).
bool is_relu(const Exporter& e, const ir::Op& op) {
  if (!op.is(Opcode::select_)) return false;
  const ir::Op* condition = op.operands[0]->def;
  if (condition == nullptr || !condition->is(Opcode::le_) || condition->operands[0] != op.operands[2])
    return false;
  const auto zero = [&](const ir::Value* v) { return e.form(v).number == 0.0; };
  return zero(condition->operands[1]) && zero(op.operands[1]) && op.operands[2]->type.is_float_element();
}

/// Shifts as products and quotients of powers of two, which ONNX has for signed numbers.
Form shifted(Exporter& e, const ir::Op& op) {
  const Form& x = e.form(op.operands[0]);
  const Form& y = e.form(op.operands[1]);
  const double least = x.kind == ir::Kind::i32 ? 30 : 52;
  if (!y.number || *y.number > least || *y.number < 0)
    e.refuse(op, "a shift by a number that is not known while the program is staged", "shift by a constant");
  Form power = e.literal(std::exp2(*y.number), x.kind);
  power.sizes = y.sizes;
  power.whole = y.rank() == 0;
  if (op.is(Opcode::shift_left_)) return e.elementwise(Opcode::mul_, {x, power}, op.results[0]->type);
  Form rest = e.elementwise(Opcode::sub_, {x, x}, op.results[0]->type);
  rest.name = e.w.node("Mod", {x.name, power.name});  // of the divisor's sign: never below zero
  return e.elementwise(Opcode::div_, {e.elementwise(Opcode::sub_, {x, rest}, op.results[0]->type), power},
                       op.results[0]->type);
}

/// The operation in words, and what to do where ONNX has nothing for it.
std::pair<std::string, std::string> why_not(const ir::Op& op) {
  const std::string name(ir::info(op.code).name);
  switch (op.code) {
    case Opcode::tree_empty_:
    case Opcode::tree_left_:
    case Opcode::tree_right_:
    case Opcode::tree_value_:
      return {"ONNX has no trees", "export the function of numbers and tensors that is applied at the nodes"};
    case Opcode::call_:
      return {"ONNX has no recursion, and '" + op.callee->name + "' calls itself", "write a WHILE or FOR"};
    case Opcode::external_:
      return {"ONNX cannot call the external function '" + std::string(op.text) + "'",
              "export the parts before and after it, or write it with operations of Lantern"};
    case Opcode::print_:
      return {"ONNX cannot print", "leave the print out"};
    case Opcode::print_adjoint_:
      return {"ONNX cannot print", "leave the print_adjoint out"};
    case Opcode::lgamma_:
    case Opcode::polygamma_:
      return {"ONNX has no operator for " + name, "replace it by an approximation of elementary functions"};
    default:
      return {"ONNX has no operator for " + name, "express it by other operations"};
  }
}

}  // namespace

void Exporter::run(const ir::Op& op) {
  if (op.is(Opcode::check_)) return;
  if (op.is(Opcode::constant_)) {
    const ir::Type& type = op.results[0]->type;
    Form f = literal(type.is_float_element() ? op.number : static_cast<double>(op.integer), type.element());
    if (!type.is_float_element()) f.name = w.integer(op.integer, type.element());
    if (type == ir::I64 && op.integer >= 0) f.size = Size::number(op.integer);
    return give(op, f);
  }
  if (op.is(Opcode::undef_)) {
    const ir::Type& type = op.results[0]->type;
    if (!type.is_scalar()) refuse(op, "a tensor without values", "give it some");
    return give(op, literal(0, type.element()));
  }
  if (op.is(Opcode::branch_)) return write_branch(*this, op);
  if (op.is(Opcode::loop_)) {
    if (!write_as_tensors(*this, op)) write_loop(*this, op);
    return;
  }
  if (op.is(Opcode::push_)) {
    tapes[op.integer] = form(op.operands[0]);
    return;
  }
  if (op.is(Opcode::pop_)) {
    const auto at = tapes.find(op.integer);
    if (at == tapes.end())
      refuse(op, "what a derivative keeps here does not come from a loop", "export the function itself");
    return give(
        op, sized(at->second.name, op.results[0]->type, named(at->second.name, op.results[0]->type).sizes));
  }
  if (ir::info(op.code).in_notation()) return write_notation(*this, op);
  if (op.is(Opcode::shift_left_) || op.is(Opcode::shift_right_)) return give(op, shifted(*this, op));
  if ((op.is(Opcode::bit_and_) || op.is(Opcode::bit_or_) || op.is(Opcode::bit_xor_)) && w.opset() < 18)
    refuse(op, "operations on bits need version 18 of ONNX's operators, got " + std::to_string(w.opset()),
           "export with {.opset = 18}");
  if (has_formula(op.code)) {
    if (is_relu(*this, op)) {
      Form f = form(op.operands[2]);
      f.name = w.node("Relu", {f.name}, {}, op.results[0]->name ? op.results[0]->name : "");
      return give(op, f);
    }
    std::vector<Form> operands;
    for (const ir::Value* v : op.operands) operands.push_back(form(v));
    return give(op, elementwise(op.code, operands, op.results[0]->type));
  }
  if (write_tensor(*this, op)) return;
  const auto [what, remedy] = why_not(op);
  refuse(op, what, remedy);
}

}  // namespace exporting

namespace detail {

namespace {

using exporting::Exporter;
using exporting::Form;

Value value_of(const core::Datum& d) {
  const Element element = exporting::element_of(d.type().element());
  if (d.type().is_scalar()) {
    Value v(element, {});
    switch (d.type().element()) {
      case ir::Kind::boolean:
        v.mutable_elements<bool>()[0] = d.i() != 0;
        break;
      case ir::Kind::i32:
        v.mutable_elements<std::int32_t>()[0] = static_cast<std::int32_t>(d.i());
        break;
      case ir::Kind::i64:
        v.mutable_elements<std::int64_t>()[0] = d.i();
        break;
      case ir::Kind::f32:
        v.mutable_elements<float>()[0] = static_cast<float>(d.f());
        break;
      default:
        v.mutable_elements<double>()[0] = d.f();
        break;
    }
    return v;
  }
  if (!d.is_boxed(core::Boxed::Kind::tensor))
    throw Error("export_onnx: expected numbers and tensors for the arguments that are bound, got a " +
                d.type().str());
  const auto& box = *static_cast<const core::TensorBox*>(d.box());
  Value v(element, box.shape);
  const auto copy = [&]<class T>(T) {
    std::copy_n(box.as<T>(), box.count(), v.mutable_elements<T>().data());
  };
  switch (d.type().element()) {
    case ir::Kind::boolean:
      copy(bool());
      break;
    case ir::Kind::i32:
      copy(std::int32_t());
      break;
    case ir::Kind::i64:
      copy(std::int64_t());
      break;
    case ir::Kind::f32:
      copy(float());
      break;
    default:
      copy(double());
      break;
  }
  return v;
}

/// The passes that leave a program in direct style, its tensor operations as they are written. Long loops of
/// derivatives are not cut into segments: ONNX has nothing that keeps several lengths of tape.
void bring_into_direct_style(ir::Module& module) {
  passes::canonical_loops(module);
  passes::contify(module);
  const std::vector<ir::Function*> functions = module.functions();
  for (ir::Function* f : functions)
    if (std::ranges::find(module.functions(), f) != module.functions().end()) passes::unwind(*f);
  passes::simplify(module);
}

std::string wanted_name(const std::vector<std::string>& given, std::size_t i, const std::string& otherwise) {
  return i < given.size() && !given[i].empty() ? given[i] : otherwise;
}

void require_count(const char* what, std::size_t names, std::size_t count) {
  if (names > count)
    throw Error("export_onnx: expected names for at most " + std::to_string(count) + " " + what + ", got " +
                std::to_string(names));
}

/// Leaves out what no result needs.
using Used = std::unordered_set<std::string>;
void keep_used(std::vector<Node>& nodes, Used& used) {
  std::vector<Node> kept;
  for (std::size_t i = nodes.size(); i-- > 0;) {
    Node& n = nodes[i];
    if (std::ranges::none_of(n.outputs, [&](const std::string& o) { return used.contains(o); })) continue;
    for (const std::string& o : n.inputs) used.insert(o);
    for (Attribute& a : n.attributes)
      if (auto* graph = std::get_if<GraphPointer>(&a.content)) {
        Graph inner = **graph;
        for (const ValueInfo& v : inner.outputs) used.insert(v.name);
        keep_used(inner.nodes, used);
        *graph = std::make_shared<const Graph>(std::move(inner));
      }
    kept.push_back(std::move(n));
  }
  std::ranges::reverse(kept);
  nodes = std::move(kept);
}

ValueInfo info(const std::string& name, const ir::Type& type, const std::vector<Dimension>& shape) {
  ValueInfo v;
  v.name = name;
  v.element = exporting::element_of(type.element());
  v.shape = shape;
  return v;
}

void require_expressible(const ir::Type& type, const char* what) {
  if (!type.is_scalar() && !type.is_tensor())
    throw Error("export_onnx: expected numbers and tensors as " + std::string(what) + ", got a " +
                type.str() + ": ONNX has no trees; export the function that is applied at the nodes");
}

}  // namespace

ir::Type type_of(const core::Datum& d) {
  if (d.type().is_scalar()) return ir::Type(d.type().element());
  if (!d.is_boxed(core::Boxed::Kind::tensor)) return d.type();
  return ir::Type::tensor(d.type().element(), static_cast<const core::TensorBox*>(d.box())->shape);
}

namespace {

/// The version of the file format that a version of the operators came with.
std::int64_t format_of_opset(std::int64_t opset) {
  static constexpr std::pair<std::int64_t, std::int64_t> last[] = {{18, 8},  {20, 9},  {22, 10}, {23, 11},
                                                                   {24, 12}, {27, 13}, {28, 14}};
  return std::ranges::find_if(last, [&](const auto& entry) { return opset <= entry.first; })->second;
}

}  // namespace

Model exported(const std::string& name, const std::vector<ir::Type>& types,
               const std::function<core::Datums(const core::Datums&)>& program,
               const std::vector<Bound>& bound, const ExportOptions& options) {
  if (options.opset < 16 || options.opset > newest)
    throw Error("export_onnx: expected a version of the operators from 16 to " + std::to_string(newest) +
                ", got " + std::to_string(options.opset));
  for (const ir::Type& t : types) require_expressible(t, "arguments");
  const std::unique_ptr<ir::Module> module = core::driver::stage_for_export(name, types, program);
  bring_into_direct_style(*module);
  const ir::Function& f = *module->entry;
  for (const ir::Type& t : f.result_types) require_expressible(t, "results");
  require_count("arguments", options.arguments.size(), types.size() - bound.size());
  require_count("weights", options.weights.size(), bound.size());
  require_count("results", options.results.size(), f.result_types.size());

  Model model;
  model.producer = "lantern";
  model.documentation = options.documentation;
  model.opsets[""] = options.opset;
  model.ir_version = format_of_opset(options.opset);
  model.graph.name = options.name.empty() ? name : options.name;
  Exporter e(options);
  for (const std::string& n : options.results) e.w.reserve(n);
  core::run_on_large_stack([&] {
    std::vector<std::string> result_names;
    for (std::size_t i = 0; i < types.size(); ++i) {
      const ir::Value* parameter = f.body->params[i];
      const bool weight = i < bound.size();
      const std::string own = parameter->name ? parameter->name : (weight ? "w" : "x") + std::to_string(i);
      const std::string label =
          weight ? wanted_name(options.weights, i, bound[i].name.empty() ? own : bound[i].name)
                 : wanted_name(options.arguments, i - bound.size(), own);
      const std::string called = e.w.fresh(label);
      e.forms[parameter] = e.named(called, parameter->type);
      if (weight) {
        e.w.initialiser(called, value_of(bound[i].value));
        continue;
      }
      std::vector<Dimension> shape;
      const auto symbols = options.sizes.find(label);
      for (std::size_t d = 0; d < e.forms[parameter].rank(); ++d) {
        const std::int64_t n = parameter->type.dims()[d];
        if (n != ir::dynamic)
          shape.emplace_back(n);
        else if (symbols != options.sizes.end() && d < symbols->second.size() && !symbols->second[d].empty())
          shape.emplace_back(symbols->second[d]);
        else
          shape.emplace_back(called + "_" + std::to_string(d));
      }
      model.graph.inputs.push_back(info(called, parameter->type, shape));
    }
    e.run(*f.body);
    for (std::size_t i = 0; i < f.result_types.size(); ++i) {
      ir::Value* result = f.body->yields()[i];
      const std::string label =
          wanted_name(options.results, i, result->name ? result->name : "result" + std::to_string(i));
      const std::string made = e.whole(result);
      const std::string called =
          i < options.results.size() && !options.results[i].empty() ? label : e.w.fresh(label);
      e.w.nodes_as("Identity", {made}, called);
      std::vector<Dimension> shape;
      const Form& form = e.form(result);
      for (const exporting::Size& s : form.sizes) {
        if (s.known >= 0)
          shape.emplace_back(s.known);
        else {
          Dimension open(std::string{});
          for (const ValueInfo& input : model.graph.inputs)
            if (input.name == s.of && s.axis >= 0) open = (*input.shape)[static_cast<std::size_t>(s.axis)];
          shape.push_back(open);
        }
      }
      model.graph.outputs.push_back(info(called, result->type, shape));
    }
  });
  model.graph.nodes = e.w.close();
  Used used;
  for (const ValueInfo& v : model.graph.outputs) used.insert(v.name);
  keep_used(model.graph.nodes, used);
  for (const Initialiser& i : e.w.initialisers())
    if (used.contains(i.name)) model.graph.initialisers.push_back(i);
  exporting::name_results(model.graph);
  return model;
}

void write_file(const std::filesystem::path& path, const std::string& bytes) {
  std::ofstream out(path, std::ios::binary);
  out << bytes;
  out.close();
  if (!out) throw Error("export_onnx: cannot write '" + path.string() + "'");
}

}  // namespace detail

}  // namespace lantern::onnx
