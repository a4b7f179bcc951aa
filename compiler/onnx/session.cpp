#include "lantern/compiler/onnx/session.hpp"

#if __has_include(<malloc.h>)
#include <malloc.h>
#endif

#include <algorithm>
#include <mutex>
#include <new>
#include <span>
#include <stdexcept>
#include <unordered_map>

#include "lantern/codegen/toolchain/clang.hpp"
#include "lantern/compiler/ad/program.hpp"
#include "lantern/compiler/onnx/operator.hpp"
#include "lantern/compiler/onnx/prepare.hpp"
#include "lantern/ir/graph.hpp"
#include "lantern/runtime/panels.hpp"

namespace lantern::onnx {

namespace {

/// What is staged for: of each argument its type, or, where it must be known, its value.
struct Policy {
  Origins values = 0;   ///< arguments whose elements are known while staging
  bool shapes = false;  ///< all sizes are

  bool known(std::size_t i) const { return (values >> std::min<std::size_t>(i, 63) & 1) != 0; }
};

/// Code is kept for so many types and values of the arguments.
constexpr std::size_t most_codes = 256;

Origins origin(std::size_t i) { return Origins{1} << std::min<std::size_t>(i, 63); }

/// The types that a value is passed as: one for a tensor, one each for the items of a sequence.
void add_types(const Value& v, const ValueInfo& info, bool exact, std::vector<ir::Type>& types) {
  if (v.is_sequence()) {
    for (const Value& item : v.items()) add_types(item, ValueInfo(), true, types);
    return;
  }
  if (v.element() == Element::undefined) return;
  const ir::Kind kind = kind_of(v.element());
  if (v.shape().empty()) {
    types.emplace_back(kind);
    return;
  }
  Sizes dims = v.shape();
  for (std::size_t d = 0; d < dims.size(); ++d)
    if (!exact && !(info.shape && (*info.shape)[d].size)) dims[d] = ir::dynamic;
  types.push_back(ir::Type::tensor(kind, std::move(dims)));
}

/// The term of a value whose elements are data[next], data[next + 1], ...
Term take(const Value& v, const Datums& data, std::size_t& next) {
  if (v.is_sequence()) {
    std::vector<Term> items;
    for (const Value& item : v.items()) items.push_back(take(item, data, next));
    return Term::sequence(std::move(items), v.element());
  }
  if (v.element() == Element::undefined) return {};
  return Term::tensor(data[next++], v.element());
}

Term known_term(const Value& v) {
  if (!v.is_sequence()) return v.element() == Element::undefined ? Term() : constant(v);
  std::vector<Term> items;
  for (const Value& item : v.items()) items.push_back(known_term(item));
  return Term::sequence(std::move(items), v.element());
}

/// What a result is, without the values: its tensors, in order, are the program's results.
struct Skeleton {
  Term::Structure structure;
  Element element;
  std::vector<Skeleton> items;
};

Skeleton flatten(const Term& t, Datums& data) {
  Skeleton s{t.structure, t.element, {}};
  for (const Term& i : t.items) s.items.push_back(flatten(i, data));
  if (t.is_tensor())
    data.push_back(t.datum.empty() ? assembled({}, *t.elements, t.shape, kind_of(t.element)) : t.datum);
  return s;
}

template <class Take>
Value unflatten(const Skeleton& s, Take& take_tensor) {
  if (s.structure == Term::Structure::none) return {};
  if (s.structure == Term::Structure::tensor) return take_tensor(s.element);
  std::vector<Value> items;
  for (const Skeleton& i : s.items) items.push_back(unflatten(i, take_tensor));
  return Value::sequence(std::move(items), s.element);
}

/// A result of half precision, each of its elements a number of the type.
Value rounded(Value v) {
  if (v.element() == Element::float16)
    for (float& x : v.mutable_elements<float>()) x = from_half_bits(half_bits(x));
  if (v.element() == Element::bfloat16)
    for (float& x : v.mutable_elements<float>()) x = from_bfloat_bits(bfloat_bits(x));
  return v;
}

void require_supported(const Model& model, const std::vector<Node>& nodes,
                       const std::map<std::string, std::int64_t>& opsets) {
  for (const Node& n : nodes) {
    const bool own = model.function(n) != nullptr;
    const auto version = opsets.find(n.domain);
    std::string why;
    if (!own && !find_operator(n.domain, n.op, version == opsets.end() ? 1 : version->second, why))
      throw Unsupported((model.file.empty() ? "model" : model.file) + ": " + n.label() + ": " + why);
    for (const Attribute& a : n.attributes)
      if (const auto* g = std::get_if<GraphPointer>(&a.content))
        require_supported(model, (*g)->nodes, opsets);
  }
}

/// Code for some types and values of the arguments.
struct Code {
  std::shared_ptr<const core::driver::Code> code;
  std::vector<Skeleton> results;
  std::vector<std::string> labels;
  std::string place;
  Policy policy;
  bool consulted_weights = false;
};

/// The message with the node in place of its number. Generated code says "... (model.onnx:3)", and of a requirement
/// "model.onnx:3: error: ...".
std::string with_label(const std::string& message, const std::string& file, const std::string& place,
                       const std::vector<std::string>& labels) {
  const auto labelled = [&](std::size_t from, std::size_t to, const std::string& rest) -> std::optional<std::string> {
    std::size_t number = 0;
    for (std::size_t i = from; i < to; ++i) {
      if (std::isdigit(static_cast<unsigned char>(message[i])) == 0 || number >= labels.size()) return std::nullopt;
      number = 10 * number + static_cast<std::size_t>(message[i] - '0');
    }
    if (number == 0 || number >= labels.size()) return std::nullopt;
    return file + ": " + labels[number] + ": " + rest;
  };
  const std::string before = " (" + place + ":", first = place + ":", error = ": error: ";
  std::optional<std::string> found;
  if (const std::size_t at = message.rfind(before); at != std::string::npos && message.back() == ')')
    found = labelled(at + before.size(), message.size() - 1, message.substr(0, at));
  if (const std::size_t at = message.find(error); !found && message.starts_with(first) && at != std::string::npos)
    found = labelled(first.size(), at, message.substr(at + error.size()));
  return found ? *found : file + ": " + message;
}

}  // namespace

struct Session::State {
  Model model;
  core::CompileOptions options;
  bool eager = false;
  Half half = Half::wide;
  std::vector<ValueInfo> arguments;
  std::unordered_map<std::string, Value*> parameters;

  std::mutex mutex;
  std::vector<std::unique_ptr<Panels>> panels;  ///< of the weights, as many as there were calls at a time
  std::size_t changes = 0;                      ///< of weights
  Policy policy;
  std::map<std::string, std::shared_ptr<const Code>> codes;
  std::shared_ptr<const Code> last;
  std::size_t compilations = 0;

  std::string file() const { return model.file.empty() ? "model" : model.file; }

  void require_fitting(const std::vector<Value>& given) const {
    const auto fail = [&](const std::string& what) { throw Error(file() + ": " + what); };
    if (given.size() != arguments.size())
      fail("expected " + std::to_string(arguments.size()) + " arguments, got " +
           std::to_string(given.size()));
    for (std::size_t i = 0; i < given.size(); ++i) {
      const ValueInfo& want = arguments[i];
      const Value& have = given[i];
      const std::string label = "argument '" + want.name + "': ";
      using Structure = ValueInfo::Structure;
      if (want.structure == Structure::map || want.structure == Structure::sparse_tensor)
        fail(label + "expected by the model is a map or a sparse tensor, which are not supported");
      if (want.structure == Structure::optional && !have.is_sequence() &&
          have.element() == Element::undefined)
        continue;
      const bool sequence = want.structure == Structure::sequence || want.holds_sequence;
      if (have.is_sequence() != sequence && want.structure != Structure::unknown)
        fail(label + "expected a " + (sequence ? "sequence" : "tensor") + ", got " + have.describe());
      if (sequence) continue;
      std::string wanted = name(want.element);
      bool fits = want.element == have.element() || want.element == Element::undefined;
      if (want.shape) {
        wanted += "[";
        fits = fits && want.shape->size() == have.shape().size();
        for (std::size_t d = 0; d < want.shape->size(); ++d) {
          const Dimension& n = (*want.shape)[d];
          wanted += (d > 0 ? "," : "") + (n.size             ? std::to_string(*n.size)
                                          : n.symbol.empty() ? "?"
                                                             : n.symbol);
          fits = fits && (!n.size || *n.size == have.shape()[d]);
        }
        wanted += "]";
      }
      if (!fits) fail(label + "expected " + wanted + ", got " + have.describe());
    }
  }

  std::string key_of(const std::vector<Value>& given, const Policy& p) const {
    std::string key = p.shapes ? "exact;" : "";
    const auto add = [&](const auto& self, const Value& v, const ValueInfo& info, bool value) -> void {
      if (v.is_sequence()) {
        key += "(";
        for (const Value& i : v.items()) self(self, i, ValueInfo(), value);
        key += ")";
        return;
      }
      std::vector<ir::Type> types;
      add_types(v, info, p.shapes || value, types);
      key += std::string(name(v.element())) + (types.empty() ? "" : types[0].str()) + ";";
      if (value) key.append(reinterpret_cast<const char*>(v.bytes().data()), v.bytes().size());
    };
    for (std::size_t i = 0; i < given.size(); ++i) add(add, given[i], arguments[i], p.known(i));
    return key;
  }

  std::shared_ptr<const Code> made(const std::vector<Value>& given, const Policy& p) const {
    std::vector<ir::Type> types;
    for (std::size_t i = 0; i < given.size(); ++i)
      if (!p.known(i)) add_types(given[i], arguments[i], p.shapes, types);
    const std::vector<Leaf> leaves = leaves_of(model);
    for (const Leaf& l : leaves)
      types.push_back(ir::Type::tensor(kind_of(l.value->element()), l.value->shape()));
    auto out = std::make_shared<Code>();
    out->policy = p;
    const auto program = [&](const Datums& data) {
      Execution execution(model);
      execution.half = half;
      std::size_t next = 0;
      Terms terms;
      for (std::size_t i = 0; i < given.size(); ++i) {
        terms.push_back(p.known(i) ? known_term(given[i]) : take(given[i], data, next));
        terms.back().origins = origin(i);
      }
      for (const Leaf& l : leaves) execution.leaves[l.value] = data[next++];
      Datums results;
      out->results.clear();
      for (const Term& t : execution.run(terms)) out->results.push_back(flatten(t, results));
      out->consulted_weights = !execution.consulted.empty();
      out->labels = execution.labels;
      out->place = execution.place;
      return results;
    };
    core::CompileOptions with_name = options;
    if (with_name.name.empty()) with_name.name = "model";
    out->code = core::driver::compile(with_name.name, types, program, with_name);
    // What the compiler took goes back to the system before weights are packed.
    codegen::release_clang();
#ifdef __GLIBC__
    malloc_trim(0);
#endif
    return out;
  }

  /// The code for these arguments; what has to be known about them is found out on the way.
  std::shared_ptr<const Code> code_for(const std::vector<Value>& given, bool exact) {
    const std::lock_guard lock(mutex);
    for (;;) {
      Policy p = policy;
      p.shapes = p.shapes || exact;
      if (codes.size() >= most_codes) codes.clear();
      auto& code = codes[key_of(given, p)];
      if (code) return last = code;
      try {
        code = made(given, p);
        ++compilations;
        return last = code;
      } catch (const Unknown& e) {
        codes.erase(key_of(given, p));
        if (e.shapes && !p.shapes)
          policy.shapes = true;
        else if ((e.origins & ~policy.values) != 0)
          policy.values |= e.origins;
        else
          throw Unsupported(e.what());
      } catch (...) {
        codes.erase(key_of(given, p));
        throw;
      }
    }
  }

  /// Panels of the weights, for one call; they go back when it ends, unless the weights were changed meanwhile.
  class PanelsInUse {
   public:
    explicit PanelsInUse(State& state) : state_(state) {
      const std::lock_guard lock(state.mutex);
      changes_ = state.changes;
      if (!state.panels.empty()) {
        panels_ = std::move(state.panels.back());
        state.panels.pop_back();
        return;
      }
      std::vector<std::span<const std::byte>> weights;
      for (const Leaf& l : leaves_of(state.model)) weights.push_back(l.value->bytes());
      panels_ = std::make_unique<Panels>(std::move(weights));
    }
    ~PanelsInUse() {
      const std::lock_guard lock(state_.mutex);
      if (changes_ == state_.changes) state_.panels.push_back(std::move(panels_));
    }
    PanelsInUse(const PanelsInUse&) = delete;
    PanelsInUse& operator=(const PanelsInUse&) = delete;
    lt_panels* get() const { return panels_->get(); }

   private:
    State& state_;
    std::size_t changes_;
    std::unique_ptr<Panels> panels_;
  };

  std::vector<Value> called(const Code& code, const std::vector<Value>& given) {
    std::vector<const void*> in;
    std::vector<std::vector<std::int64_t>> words;
    const auto pass = [&](const auto& self, const Value& v) -> void {
      if (v.is_sequence()) {
        for (const Value& i : v.items()) self(self, i);
        return;
      }
      if (v.element() == Element::undefined) return;
      if (v.shape().empty()) {
        in.push_back(v.bytes().data());
        return;
      }
      auto& w = words.emplace_back();
      w.push_back(reinterpret_cast<std::int64_t>(v.bytes().data()));
      w.insert(w.end(), v.shape().begin(), v.shape().end());
      in.push_back(w.data());
    };
    for (std::size_t i = 0; i < given.size(); ++i)
      if (!code.policy.known(i)) pass(pass, given[i]);
    for (const Leaf& l : leaves_of(model)) pass(pass, *l.value);
    const std::vector<ir::Type>& types = code.code->results();
    std::vector<std::vector<std::int64_t>> results;
    std::vector<void*> out;
    for (const ir::Type& t : types)
      out.push_back(results.emplace_back(t.is_tensor() ? static_cast<std::size_t>(t.rank()) + 1 : 1).data());
    const PanelsInUse packed(*this);
    core::driver::run(code.code->entry(), code.code->facts(), in.data(), out.data(), nullptr, packed.get());
    std::size_t next = 0;
    const auto take_tensor = [&](Element e) {
      const std::vector<std::int64_t>& w = results[next];
      const bool tensor = types[next++].is_tensor();
      Value v(e, tensor ? Sizes(w.begin() + 1, w.end()) : Sizes());
      const auto* from =
          tensor ? reinterpret_cast<const std::byte*>(w[0]) : reinterpret_cast<const std::byte*>(w.data());
      std::copy_n(from, v.bytes().size(), v.mutable_bytes().begin());
      return rounded(std::move(v));
    };
    std::vector<Value> values;
    for (const Skeleton& s : code.results) values.push_back(unflatten(s, take_tensor));
    return values;
  }

  std::vector<Value> run_compiled(const std::vector<Value>& given) {
    bool exact = false;
    for (;;) {
      const auto code = code_for(given, exact);
      try {
        return called(*code, given);
      } catch (const Error& e) {
        // Sizes that are open and turn out to be 1 are repeated where they are known to be 1.
        const bool open = std::ranges::any_of(given, [&](const Value& v) {
          std::vector<ir::Type> types;
          add_types(v, arguments[static_cast<std::size_t>(&v - given.data())], code->policy.shapes, types);
          return std::ranges::any_of(types, [](const ir::Type& t) {
            return t.is_tensor() && std::ranges::count(t.dims(), ir::dynamic) > 0;
          });
        });
        if (exact || !open) throw Error(with_label(e.what(), file(), code->place, code->labels));
        exact = true;
      }
    }
  }

  std::vector<Value> run_eagerly(const std::vector<Value>& given) const {
    Execution execution(model);
    execution.half = half;
    std::vector<Skeleton> skeletons;
    Datums data;
    try {
      data = core::ad::run_eagerly({"model",
                                    [&](const Datums&) {
                                      Terms terms;
                                      for (const Value& v : given) {
                                        Datums all;
                                        const auto add = [&](const auto& self, const Value& one) -> void {
                                          for (const Value& i : one.items()) self(self, i);
                                          if (!one.is_sequence() && one.element() != Element::undefined)
                                            all.push_back(boxed(one));
                                        };
                                        add(add, v);
                                        std::size_t next = 0;
                                        terms.push_back(take(v, all, next));
                                      }
                                      Datums results;
                                      for (const Term& t : execution.run(terms))
                                        skeletons.push_back(flatten(t, results));
                                      return results;
                                    }},
                                   {});
    } catch (const Unknown& e) {
      throw Unsupported(e.what());
    }
    std::size_t next = 0;
    const auto take_tensor = [&](Element e) { return rounded(unboxed(data[next++], e)); };
    std::vector<Value> values;
    for (const Skeleton& s : skeletons) values.push_back(unflatten(s, take_tensor));
    return values;
  }
};

std::vector<Value> Session::run(const std::vector<Value>& arguments) const {
  state_->require_fitting(arguments);
  try {
    return state_->eager ? state_->run_eagerly(arguments) : state_->run_compiled(arguments);
  } catch (const std::bad_alloc&) {
    throw Error(state_->file() + ": expected tensors that fit into memory, got larger ones");
  } catch (const std::length_error&) {
    throw Error(state_->file() + ": expected tensors that fit into memory, got larger ones");
  }
}

void Session::prepare(const std::vector<Value>& arguments) const {
  state_->require_fitting(arguments);
  if (!state_->eager) state_->code_for(arguments, false);
}

std::map<std::string, Value> Session::run_named(const std::map<std::string, Value>& given) const {
  std::vector<Value> ordered;
  for (const ValueInfo& v : arguments()) {
    const auto at = given.find(v.name);
    if (at == given.end() && v.structure != ValueInfo::Structure::optional)
      throw Error(state_->file() + ": expected an argument '" + v.name + "', got none of that name");
    ordered.push_back(at == given.end() ? Value() : at->second);
  }
  for (const auto& [name, value] : given)
    if (std::ranges::find(arguments(), name, &ValueInfo::name) == arguments().end())
      throw Error(state_->file() + ": expected arguments that the model has, got '" + name + "'");
  std::vector<Value> out = run(ordered);
  std::map<std::string, Value> named;
  for (std::size_t i = 0; i < out.size(); ++i) named[results()[i].name] = std::move(out[i]);
  return named;
}

const std::vector<ValueInfo>& Session::arguments() const { return state_->arguments; }
const std::vector<ValueInfo>& Session::results() const { return state_->model.graph.outputs; }

std::vector<std::string> Session::parameter_names() const {
  std::vector<std::string> names;
  for (const Initialiser& i : state_->model.graph.initialisers) names.push_back(i.name);
  for (const Node& n : state_->model.graph.nodes)
    if (n.op == "Constant" && !n.outputs.empty() && state_->parameters.contains(n.outputs[0]))
      names.push_back(n.outputs[0]);
  return names;
}

const Value& Session::parameter(const std::string& name) const {
  const auto at = state_->parameters.find(name);
  if (at == state_->parameters.end())
    throw Error(state_->file() + ": expected the name of a weight or constant of the graph, got '" + name +
                "'");
  return *at->second;
}

void Session::set_parameter(const std::string& name, Value value) {
  const Value& before = parameter(name);
  if (value.element() != before.element() || value.shape() != before.shape())
    throw Error(state_->file() + ": parameter '" + name + "': expected " + before.describe() + ", got " +
                value.describe());
  const std::lock_guard lock(state_->mutex);
  // Where it is no argument of the code, or was looked at while that was made, the code is made again.
  std::erase_if(state_->codes,
                [&](const auto& code) { return code.second->consulted_weights || !is_leaf(before); });
  state_->panels.clear();
  ++state_->changes;
  *state_->parameters.at(name) = std::move(value);
}

std::string Session::source(const std::string& what) const {
  const std::lock_guard lock(state_->mutex);
  if (!state_->last)
    throw Error(state_->file() + ": expected a session that compiles, after a call, got one without code");
  return state_->last->code->source(what);
}

std::size_t Session::compilations() const {
  const std::lock_guard lock(state_->mutex);
  return state_->compilations;
}

void Session::wait() const {
  std::vector<std::shared_ptr<const Code>> all;
  {
    const std::lock_guard lock(state_->mutex);
    for (const auto& [key, code] : state_->codes) all.push_back(code);
  }
  for (const auto& code : all) code->code->wait();
}

namespace {

template <class State>
std::shared_ptr<State> state_of(Model model) {
  auto state = std::make_shared<State>();
  check(model);
  require_supported(model, model.graph.nodes, model.opsets);
  prepare(model);
  state->model = std::move(model);
  state->arguments = state->model.graph.arguments();
  for (Initialiser& i : state->model.graph.initialisers) state->parameters[i.name] = &i.value;
  for (Node& n : state->model.graph.nodes)
    if (n.op == "Constant" && n.domain.empty() && !n.outputs.empty())
      for (Attribute& a : n.attributes)
        if (auto* v = std::get_if<Value>(&a.content)) state->parameters[n.outputs[0]] = v;
  return state;
}

}  // namespace

Session compile(Model model, core::CompileOptions options, Half half) {
  auto state = state_of<Session::State>(std::move(model));
  state->half = half;
  state->options = std::move(options);
  return Session(std::move(state));
}

std::optional<std::string> obstacle(const Model& given) {
  try {
    const auto state = state_of<Session::State>(given);
    std::vector<ir::Type> types;
    for (const ValueInfo& v : state->arguments) {
      if (v.structure != ValueInfo::Structure::tensor || !v.shape || v.element == Element::undefined)
        return {};
      Sizes dims;
      for (const Dimension& d : *v.shape) dims.push_back(d.size.value_or(ir::dynamic));
      types.push_back(dims.empty() ? ir::Type(kind_of(v.element))
                                   : ir::Type::tensor(kind_of(v.element), dims));
    }
    const std::vector<Leaf> leaves = leaves_of(state->model);
    for (const Leaf& l : leaves)
      types.push_back(ir::Type::tensor(kind_of(l.value->element()), l.value->shape()));
    core::driver::stage("model", types, [&](const Datums& data) {
      Execution execution(state->model);
      std::size_t next = 0;
      Terms terms;
      for (std::size_t i = 0; i < state->arguments.size(); ++i) {
        terms.push_back(Term::tensor(data[next++], state->arguments[i].element));
        terms.back().origins = origin(i);
      }
      for (const Leaf& l : leaves) execution.leaves[l.value] = data[next++];
      Datums results;
      for (const Term& t : execution.run(terms)) flatten(t, results);
      return results;
    });
  } catch (const Unknown&) {
    return {};
  } catch (const Error& e) {
    return e.what();
  }
  return {};
}

Session eager(Model model, Half half) {
  auto state = state_of<Session::State>(std::move(model));
  state->half = half;
  state->eager = true;
  return Session(std::move(state));
}

}  // namespace lantern::onnx
