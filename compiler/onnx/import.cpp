#include "lantern/compiler/onnx/import.hpp"

#include <algorithm>
#include <set>

#include "lantern/compiler/onnx/operator.hpp"
#include "lantern/compiler/onnx/prepare.hpp"

namespace lantern::onnx {

namespace {

/// What batch normalisation keeps of earlier batches.
std::set<std::string> statistics(const std::vector<Node>& nodes) {
  std::set<std::string> names;
  for (const Node& n : nodes)
    if (n.op == "BatchNormalization" && n.domain.empty())
      for (std::size_t i = 3; i < n.inputs.size(); ++i) names.insert(n.inputs[i]);
  return names;
}

}  // namespace

ImportedModel::ImportedModel(Model model, ir::Kind kind, const ImportOptions& options)
    : model_(std::move(model)), kind_(kind) {
  check(model_);
  prepare(model_);
  std::set<std::string> frozen = statistics(model_.graph.nodes);
  frozen.insert(options.frozen.begin(), options.frozen.end());
  for (const Leaf& l : leaves_of(model_)) {
    if (kind_of(l.value->element()) != kind) continue;
    layout_.push_back({l.name, l.value->shape(), size_, l.value->size(),
                       frozen.contains(l.name) || (l.constant && !options.train_constants)});
    values_.push_back(l.value);
    size_ += l.value->size();
  }
  for (const std::string& name : options.frozen)
    if (std::ranges::find(layout_, name, &Parameter::name) == layout_.end())
      throw Error(model_.file + ": frozen: expected the name of a weight, got '" + name + "'");
}

Datums ImportedModel::run(const Datums& weights, const Datums& arguments,
                          const std::vector<ir::Type>& results, const core::Location& loc) const {
  const std::string file = model_.file.empty() ? "model" : model_.file;
  const auto fail = [&](const std::string& what) { core::raise_at(loc, file + ": " + what); };
  const Build b{loc};
  const std::vector<ValueInfo> wanted = model_.graph.arguments();
  if (arguments.size() != wanted.size())
    fail("expected a signature of " + std::to_string(wanted.size()) + " arguments, got " +
         std::to_string(arguments.size()));

  Execution execution(model_);
  const bool joined = weights.size() == 1;
  if (joined) {
    b.require_equal(b.size(weights[0], 0), Build::integer(size_),
                    file + ": expected a vector of all weights of the model");
  } else if (layout_.size() > 1 || weights.empty()) {
    if (weights.size() != layout_.size())
      fail("expected " + std::to_string(layout_.size()) + " weights, got " + std::to_string(weights.size()));
  }
  for (std::size_t i = 0; i < layout_.size(); ++i) {
    const Parameter& p = layout_[i];
    Indices sizes;
    for (const std::int64_t d : p.shape) sizes.push_back(Build::integer(d));
    Datum w;
    if (joined)
      w = core::perform({Opcode::slice_, 0, loc},
                        {weights[0], Build::integer(p.offset), Build::integer(p.offset + p.size)});
    else
      w = weights[i];
    w = b.reshape(w, sizes);  // its sizes are known from here on
    execution.leaves[values_[i]] = p.frozen ? b.primal(w) : w;
  }

  Terms terms;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    const ValueInfo& v = wanted[i];
    Datum x = arguments[i];
    const std::string label = "argument '" + v.name + "': ";
    if (v.structure != ValueInfo::Structure::tensor)
      fail(label + "expected a model whose arguments are tensors");
    if (v.element == Element::string)
      fail(label + "expected numbers or bools, got strings: run the model in a session");
    if (!x.type().is_scalar() && !x.type().is_tensor())
      fail(label + "expected a tensor or a number, got " + x.type().str());
    if (kind_of(v.element) != x.type().element())
      fail(label + "expected elements that compute as " + ir::kind_name(kind_of(v.element)) + ", for " +
           name(v.element) + ", got " + x.type().str());
    if (v.shape) {
      const int rank = x.type().is_tensor() ? x.type().rank() : 0;
      if (static_cast<int>(v.shape->size()) != rank)
        fail(label + "expected a tensor of " + std::to_string(v.shape->size()) + " dimensions, got " +
             x.type().str());
      Indices sizes;
      bool more = false;  // is known of the model than of the argument
      for (int d = 0; d < rank; ++d) {
        const auto& declared = (*v.shape)[static_cast<std::size_t>(d)].size;
        sizes.push_back(b.size(x, d));
        if (!declared) continue;
        b.require_equal(sizes.back(), Build::integer(*declared),
                        file + ": " + label + "expected the sizes that the model declares");
        more = more || !sizes.back().is_literal();
        sizes.back() = Build::integer(*declared);
      }
      if (more) x = b.reshape(x, sizes);
    }
    terms.push_back(Term::tensor(x, v.element));
    terms.back().origins = Origins{1} << std::min<std::size_t>(i, 63);
  }

  Datums out;
  const Terms computed = execution.run(terms);
  if (computed.size() != results.size())
    fail("expected a signature of " + std::to_string(computed.size()) + " results, got " +
         std::to_string(results.size()));
  for (std::size_t i = 0; i < computed.size(); ++i) {
    const Term& t = computed[i];
    const std::string label = "result '" + model_.graph.outputs[i].name + "': ";
    if (!t.is_tensor()) fail(label + "expected a model whose results are tensors");
    if (t.element == Element::string)
      fail(label + "expected numbers or bools, got strings: run the model in a session");
    Datum d = t.datum.empty() ? assembled(b, *t.elements, t.shape, kind_of(t.element)) : t.datum;
    const ir::Type& want = results[i];
    const bool number = want.is_scalar(), have_number = d.type().is_scalar();
    if (d.type().element() != want.element() || number != have_number)
      fail(label + "expected a signature with " + (have_number ? "a number" : "a tensor") + " of " +
           ir::kind_name(d.type().element()) + ", got " + want.str());
    out.push_back(std::move(d));
  }
  return out;
}

}  // namespace lantern::onnx
