// Operators of ai.onnx.ml: scalers, encoders, linear models and support vectors.
#include <algorithm>
#include <cmath>
#include <limits>

#include "lantern/compiler/onnx/classic.hpp"
#include "lantern/compiler/onnx/rules.hpp"
#include "lantern/compiler/staging/functions.hpp"

namespace lantern::onnx::rules {

Term list(const Call& c, const std::string& name) {
  const Attribute* const a = c.node.find(name);
  if (!a) return {};
  if (const auto* v = std::get_if<Value>(&a->content)) return c.execution.weight(*v, true);
  const auto vector = [](auto& all, Element e, auto put) {
    Value v(e, {static_cast<std::int64_t>(all.size())});
    for (std::size_t i = 0; i < all.size(); ++i) put(v, i);
    return onnx::constant(v);
  };
  if (const auto* all = std::get_if<std::vector<double>>(&a->content))
    return vector(*all, Element::float32, [&](Value& v, std::size_t i) {
      v.mutable_elements<float>()[i] = static_cast<float>((*all)[i]);
    });
  if (const auto* all = std::get_if<Sizes>(&a->content))
    return vector(*all, Element::int64,
                  [&](Value& v, std::size_t i) { v.mutable_elements<std::int64_t>()[i] = (*all)[i]; });
  if (const auto* all = std::get_if<std::vector<std::string>>(&a->content))
    return onnx::constant(Value::of_texts(*all, {static_cast<std::int64_t>(all->size())}));
  c.fail("attribute '" + name + "': expected a list of numbers or strings");
}
std::int64_t length_of(const Term& t) {
  if (!t.present()) return 0;
  if (t.rank() != 1)
    throw Error("expected a list, got a tensor of " + std::to_string(t.rank()) + " dimensions");
  return t.dims()[0];
}

Datum examples(const Call& c) {
  const Datum x = is_float(c.element()) ? c[0] : c.cast(c[0], ir::Kind::f32);
  if (c.rank() == 1) return c.b.reshape(x, {c.integer(1), c.b.size(x, 0)});
  if (c.rank() != 2) c.fail("expected examples [n, features], got " + x.type().str());
  return x;
}
Element real_element(const Call& c) {
  return c.element() == Element::float64 ? Element::float64 : Element::float32;
}

namespace {

/// A list as a matrix of so many rows.
Datum rows_of(const Call& c, const Term& t, std::int64_t rows, const char* what, const Datum& like) {
  const std::int64_t n = length_of(t);
  if (rows < 1 || n % rows != 0)
    c.fail(std::string("attribute '") + what + "': expected a number of entries that " +
           std::to_string(rows) + " divides, got " + std::to_string(n));
  return c.b.reshape(c.cast(c.datum(t), like.type().element()), {c.integer(rows), c.integer(n / rows)});
}

}  // namespace

Datum constant_like(double v, const Datum& like) { return Build::number(v, like); }

namespace {

/// sqrt(2) erf^-1(2 p - 1), by the approximation of Winitzki, 2008, that the operators are defined with.
Datum probit(const Call& c, const Datum& p) {
  const auto k = [&](double v) { return constant_like(v, p); };
  const Datum x = c.b.sub(c.b.mul(p, k(2)), k(1));
  const Datum log = c.op(Opcode::log_, c.b.mul(c.b.sub(k(1), x), c.b.add(k(1), x)));
  const Datum v = c.b.add(k(2 / (3.14159265358979323846 * 0.147)), c.b.mul(k(0.5), log));
  const Datum root = c.op(Opcode::sqrt_, c.b.sub(c.b.mul(v, v), c.b.mul(k(1 / 0.147), log)));
  const Datum size = c.op(Opcode::sqrt_, c.b.sub(root, v));
  return c.b.mul(c.b.mul(k(1.41421356), size), c.op(Opcode::sign_, x));
}

}  // namespace

Datum transformed(const Call& c, const Datum& scores, const std::string& how) {
  if (how == "NONE" || how.empty()) return scores;
  if (how == "LOGISTIC") return core::detail::sigmoid(scores, c.b.loc);
  if (how == "SOFTMAX") return core::detail::softmax(scores, 1, false, c.b.loc);
  if (how == "PROBIT") return probit(c, scores);
  if (how == "SOFTMAX_ZERO") {  // a score of 0 has no probability
    const Datum none = constant_like(0, scores), p = core::detail::softmax(scores, 1, false, c.b.loc);
    const Datum open = c.b.less(constant_like(1e-7, scores), c.op(Opcode::abs_, c.b.primal(scores)));
    const int last = 1;
    const Datum kept = c.where(open, p, c.b.mul(scores, p));
    const Datum sum = core::detail::sum_along(kept, {{&last, 1}, true}, c.b.loc);
    return c.where(c.op(Opcode::eq_, c.b.primal(sum), none), constant_like(0.5, scores), c.b.div(kept, sum));
  }
  c.fail("attribute 'post_transform': expected NONE, SOFTMAX, LOGISTIC, SOFTMAX_ZERO or PROBIT, got '" + how +
         "'");
}
std::string post_transform(const Call& c) { return c.attribute("post_transform", std::string("NONE")); }

Term labels_of(const Call& c, const char* integers) {
  Term t = list(c, "classlabels_strings");
  if (!t.present() || length_of(t) == 0) t = list(c, integers);
  if (!t.present() || length_of(t) == 0)
    c.fail(std::string("expected an attribute '") + integers + "' or 'classlabels_strings', got neither");
  return t;
}
Term chosen(const Call& c, const Term& labels, const Datum& numbers) {
  return c.result(core::detail::take_along(c.datum(labels), 0, numbers, c.b.loc), labels.element);
}
Datum best(const Call& c, const Datum& scores) {
  const int last = 1;
  return core::detail::place_of_extremum(scores, {{&last, 1}, false}, true, c.b.loc);
}
Datum pair_of(const Call& c, const Datum& first, const Datum& second) {
  const Datum both[] = {first, second};
  return core::detail::concat(both, 1, c.b.loc);
}
Datum above(const Call& c, const Datum& score, double bound) {
  return c.b.tabulate(ir::Kind::i64, {c.b.size(score, 0)}, [&](const Indices& at) {
    return c.cast(c.b.less(constant_like(bound, score), c.b.get(score, {at[0], c.integer(0)})),
                  ir::Kind::i64);
  });
}

// ---- features

Terms scaler(const Call& c) {
  Datum x = is_float(c.element()) ? c[0] : c.cast(c[0], ir::Kind::f32);
  const Element e = is_float(c.element()) ? c.element() : Element::float32;
  const auto each = [&](const char* name) {
    const Term t = list(c, name);
    const Datum v = c.cast(c.datum(t), e);
    return length_of(t) == 1 ? c.b.get(v, {c.integer(0)}) : v;
  };
  if (c.has_attribute("offset")) x = c.b.sub(x, each("offset"));
  if (c.has_attribute("scale")) x = c.b.mul(x, each("scale"));
  return {c.result(x, e)};
}

Terms normalizer(const Call& c) {
  const Datum x = is_float(c.element()) ? c[0] : c.cast(c[0], ir::Kind::f32);
  const Element e = is_float(c.element()) ? c.element() : Element::float32;
  const std::string norm = c.attribute("norm", std::string("MAX"));
  if (!x.type().is_tensor()) c.fail("expected a tensor, got a number");
  const int last = x.type().rank() - 1;
  const core::detail::Over over{{&last, 1}, true};
  Datum size;
  if (norm == "MAX")
    size = core::detail::extremum_along(x, over, true, c.b.loc);
  else if (norm == "L1")
    size = core::detail::sum_along(c.op(Opcode::abs_, x), over, c.b.loc);
  else if (norm == "L2")
    size = core::detail::norm(x, over, c.b.loc);
  else
    c.fail("attribute 'norm': expected MAX, L1 or L2, got '" + norm + "'");
  const Datum none = c.op(Opcode::eq_, c.b.primal(size), constant_like(0, size));
  return {c.result(c.b.div(x, c.where(none, constant_like(1, size), size)), e)};
}

Terms binarizer(const Call& c) {
  const Datum x = c[0];
  const Datum above = c.b.less(c.number(c.attribute("threshold", 0.0), x), x);
  return {c.result(c.cast(above, c.element()))};
}

Terms imputer(const Call& c) {
  const Datum x = c[0];
  const bool real = is_float(c.element());
  const Term t = list(c, real ? "imputed_value_floats" : "imputed_value_int64s");
  if (!t.present())
    c.fail("expected an attribute 'imputed_value_floats' or 'imputed_value_int64s', got none that fits");
  Datum values = c.cast(c.datum(t), c.element());
  if (length_of(t) == 1) values = c.b.get(values, {c.integer(0)});
  const double replaced = real ? c.attribute("replaced_value_float", 0.0)
                               : static_cast<double>(c.attribute("replaced_value_int64", std::int64_t{0}));
  const Datum primal = c.b.primal(x);
  const Datum gone = std::isnan(replaced) ? c.op(Opcode::ne_, primal, primal)
                                          : c.op(Opcode::eq_, primal, c.number(replaced, x));
  return {c.result(c.where(gone, values, x))};
}

Terms array_feature_extractor(const Call& c) {
  c.require_operands(2, 2);
  Datum x = c[0];
  const Datum places = c.reshape(c.cast(c[1], ir::Kind::i64), {c.product(c.sizes(c[1]))});
  if (!x.type().is_tensor()) c.fail("expected a tensor, got a number");
  const int front = 0;
  if (c.rank() == 1) x = c.b.with_ones(x, {&front, 1});
  return {c.result(core::detail::take_along(x, x.type().rank() - 1, places, c.b.loc))};
}

Terms feature_vectorizer(const Call& c) {
  Datums all;
  for (std::size_t i = 0; i < c.in.size(); ++i) {
    const Datum x = c.cast(c[i], ir::Kind::f32);
    all.push_back(c.rank(i) == 1 ? c.b.reshape(x, {c.integer(1), c.b.size(x, 0)}) : x);
  }
  if (all.empty()) c.fail("expected operands, got none");
  return {c.result(all.size() == 1 ? all[0] : core::detail::concat(all, 1, c.b.loc), Element::float32)};
}

Terms one_hot_encoder(const Call& c) {
  const bool text = c.element() == Element::string;
  const Term categories = list(c, text ? "cats_strings" : "cats_int64s");
  if (!categories.present()) c.fail("expected an attribute of categories of the operand's type, got none");
  const Datum x = c.cast(c[0], ir::Kind::i64), all = c.datum(categories),
              n = c.integer(length_of(categories));
  Indices sizes = c.sizes(x);
  if (c.attribute("zeros", std::int64_t{1}) == 0)
    c.b.points(sizes.empty() ? Indices{c.integer(1)} : sizes, {c.integer(0)},
               [&](const Indices& at, const Datums& s) {
                 const Datum v = sizes.empty() ? x : c.b.get(x, at);
                 const Datum found = c.b.loop(
                     c.integer(0), n, {Datum::integer(0, ir::Bool)}, [&](const Datum& i, const Datums& b) {
                       return Datums{c.op(Opcode::lor_, b[0], c.op(Opcode::eq_, c.b.get(all, {i}), v))};
                     })[0];
                 c.b.require(found, "attribute 'zeros' of 0: expected one of the categories, got another");
                 return s;
               });
  sizes.push_back(n);
  return {c.result(c.b.tabulate(ir::Kind::f32, sizes,
                                [&](Indices at) {
                                  const Datum k = at.back();
                                  at.pop_back();
                                  return c.cast(c.op(Opcode::eq_, c.get(x, at), c.b.get(all, {k})),
                                                ir::Kind::f32);
                                }),
                   Element::float32)};
}

namespace {

/// For each element the value beside the last key that it is, or another.
Terms mapped(const Call& c, const Term& keys, const Term& values, const Term& otherwise) {
  if (length_of(keys) != length_of(values))
    c.fail("expected as many keys as values, got " + std::to_string(length_of(keys)) + " and " +
           std::to_string(length_of(values)));
  if (kind_of(keys.element) != kind_of(c.element()) ||
      (keys.element == Element::string) != (c.element() == Element::string))
    c.fail(std::string("expected keys of the operand's type ") + name(c.element()) + ", got " +
           name(keys.element));
  const Datum x = c[0], all = c.datum(keys), to = c.datum(values), rest = c.reshape(c.datum(otherwise), {});
  const Datum n = c.integer(length_of(keys));
  return {c.result(
      c.tabulate(kind_of(values.element), c.sizes(x),
                 [&](const Indices& at) {
                   const Datum v = c.get(x, at);
                   return c.b.loop(c.integer(0), n, {rest}, [&](const Datum& i, const Datums& s) {
                     const Datum key = c.b.get(all, {i});
                     Datum same = c.op(Opcode::eq_, key, v);
                     if (is_float(keys.element))
                       same = c.op(Opcode::lor_, same,
                                   c.op(Opcode::land_, c.op(Opcode::ne_, key, key), c.op(Opcode::ne_, v, v)));
                     return Datums{c.b.select(same, c.b.get(to, {i}), s[0])};
                   })[0];
                 }),
      values.element)};
}

/// The list of keys or values that a node has, whatever its type.
Term some_list(const Call& c, const std::string& what) {
  for (const char* type : {"_strings", "_int64s", "_floats", "_tensor"})
    if (Term t = list(c, what + type); t.present()) return t;
  c.fail("expected an attribute '" + what + "_strings', '" + what + "_int64s', '" + what + "_floats' or '" +
         what + "_tensor', got none");
}

}  // namespace

Terms label_encoder(const Call& c) {
  c.require_operands(1, 1);
  const auto text = [&](const std::string& v) { return onnx::constant(Value::of_texts({v}, {})); };
  if (c.has_attribute("classes_strings")) {  // of version 1: names and their places
    const Term names = list(c, "classes_strings");
    Sizes places;
    for (std::int64_t i = 0; i < length_of(names); ++i) places.push_back(i);
    const Term numbers = literal_term(places, Element::int64);
    if (c.element() == Element::string)
      return mapped(c, names, numbers, onnx::constant(Value(c.attribute("default_int64", std::int64_t{-1}))));
    return mapped(c, numbers, names, text(c.attribute("default_string", std::string("_Unused"))));
  }
  const Term keys = some_list(c, "keys"), values = some_list(c, "values");
  Term otherwise = list(c, "default_tensor");
  if (!otherwise.present()) {
    if (values.element == Element::string)
      otherwise = text(c.attribute("default_string", std::string("_Unused")));
    else if (is_float(values.element))
      otherwise =
          c.result(Datum::number(c.attribute("default_float", -0.0), ir::Type(kind_of(values.element))),
                   values.element);
    else
      otherwise = c.result(
          Datum::integer(c.attribute("default_int64", std::int64_t{-1}), ir::Type(kind_of(values.element))),
          values.element);
  }
  if (otherwise.element != values.element)
    c.fail(std::string("expected a default of type ") + name(values.element) + ", got " +
           name(otherwise.element));
  return mapped(c, keys, values, otherwise);
}

Terms category_mapper(const Call& c) {
  c.require_operands(1, 1);
  const Term names = list(c, "cats_strings"), numbers = list(c, "cats_int64s");
  if (c.element() == Element::string)
    return mapped(c, names, numbers, onnx::constant(Value(c.attribute("default_int64", std::int64_t{-1}))));
  return mapped(c, numbers, names,
                onnx::constant(Value::of_texts({c.attribute("default_string", std::string("_Unused"))}, {})));
}

// A map for each example is a row whose columns are the keys.
Terms zip_map(const Call& c) {
  labels_of(c, "classlabels_int64s");
  return {c.term(0)};
}

// ---- linear models

namespace {

/// Products with the rows of 'coefficients', plus 'intercepts': [n, rows].
Datum linear_scores(const Call& c, const Datum& x, std::int64_t rows) {
  const Term coefficients = list(c, "coefficients");
  const Datum w = rows_of(c, coefficients, rows, "coefficients", x);
  const Datum y = c.b.einsum("ik,jk->ij", {x, w});
  const Term intercepts = list(c, "intercepts");
  if (length_of(intercepts) == 0) return y;
  if (length_of(intercepts) != rows && length_of(intercepts) != 1)
    c.fail("attribute 'intercepts': expected " + std::to_string(rows) + " numbers, got " +
           std::to_string(length_of(intercepts)));
  const Datum b = c.cast(c.datum(intercepts), x.type().element());
  return c.b.add(y, length_of(intercepts) == 1 ? c.b.get(b, {c.integer(0)}) : b);
}

}  // namespace

Terms linear_regressor(const Call& c) {
  const Datum x = examples(c);
  const Datum y =
      transformed(c, linear_scores(c, x, c.attribute("targets", std::int64_t{1})), post_transform(c));
  return {c.result(c.cast(y, ir::Kind::f32), Element::float32)};
}

Terms linear_classifier(const Call& c) {
  const Datum x = examples(c);
  const Term labels = labels_of(c, "classlabels_ints");
  const std::int64_t classes = length_of(labels), features = c.known_size(x, 1);
  const std::int64_t rows = features > 0 ? length_of(list(c, "coefficients")) / features : classes;
  const Datum scores = linear_scores(c, x, rows);
  const auto result = [&](const Datum& z) { return c.result(c.cast(z, ir::Kind::f32), Element::float32); };
  if (rows == 1 && classes == 2) {
    const Term label = chosen(c, labels, above(c, scores, 0));
    if (post_transform(c) == "LOGISTIC")
      return {label, result(transformed(c, pair_of(c, c.op(Opcode::neg_, scores), scores), "LOGISTIC"))};
    return {label, result(pair_of(c, c.b.sub(constant_like(1, scores), scores), scores))};
  }
  if (rows != classes)
    c.fail("expected a row of coefficients for each of " + std::to_string(classes) + " classes, got " +
           std::to_string(rows));
  return {chosen(c, labels, best(c, scores)), result(transformed(c, scores, post_transform(c)))};
}

// ---- support vectors

namespace {

/// The kernel of each example and each of these vectors: [n, vectors].
Datum kernels(const Call& c, const Datum& x, const Datum& vectors, const std::string& how) {
  std::vector<double> p = {0, 0, 0};
  if (const Term t = list(c, "kernel_params"); length_of(t) > 0) {
    if (length_of(t) != 3) c.fail("attribute 'kernel_params': expected gamma, coef0 and degree");
    const Value v = c.value(t, "parameters of a kernel");
    for (std::size_t i = 0; i < 3; ++i) p[i] = v.at(i);
  }
  if (how == "RBF")
    return c.b.tabulate(x.type().element(), {c.b.size(x, 0), c.b.size(vectors, 0)}, [&](const Indices& at) {
      const Datum sum =
          c.b.loop(c.integer(0), c.b.size(x, 1), {constant_like(0, x)}, [&](const Datum& k, const Datums& s) {
            const Datum d = c.b.sub(c.b.get(x, {at[0], k}), c.b.get(vectors, {at[1], k}));
            return Datums{c.b.add(s[0], c.b.mul(d, d))};
          })[0];
      return c.op(Opcode::exp_, c.b.mul(sum, constant_like(-p[0], x)));
    });
  const Datum products = c.b.einsum("ik,jk->ij", {x, vectors});
  if (how == "LINEAR") return products;
  const Datum inner = c.b.add(c.b.mul(products, constant_like(p[0], x)), constant_like(p[1], x));
  if (how == "SIGMOID") return c.op(Opcode::tanh_, inner);
  if (how == "POLY") return c.op(Opcode::pow_, inner, constant_like(p[2], x));
  c.fail("attribute 'kernel_type': expected LINEAR, POLY, RBF or SIGMOID, got '" + how + "'");
}

/// Probabilities of k classes from those of each pair, r [n, k, k], by the iteration of Wu, Lin and Weng,
/// "Probability Estimates for Multi-class Classification by Pairwise Coupling", 2004.
Datum coupled(const Call& c, const Datum& r, std::int64_t k) {
  const ir::Kind kind = r.type().element();
  const Datum n = c.b.size(r, 0), size = c.integer(k), zero = c.integer(0);
  const auto number = [&](double v) { return constant_like(v, r); };
  const auto sum = [&](const std::function<Datum(const Datum&)>& f) {
    return c.b.loop(zero, size, {number(0)},
                    [&](const Datum& j, const Datums& s) { return Datums{c.b.add(s[0], f(j))}; })[0];
  };
  const Datum q = c.b.tabulate(kind, {n, size, size}, [&](const Indices& at) {
    const Datum off =
        c.op(Opcode::neg_, c.b.mul(c.b.get(r, {at[0], at[2], at[1]}), c.b.get(r, {at[0], at[1], at[2]})));
    const Datum diagonal = sum([&](const Datum& j) {
      const Datum v = c.b.get(r, {at[0], j, at[1]});
      return c.b.select(c.op(Opcode::eq_, j, at[1]), number(0), c.b.mul(v, v));
    });
    return c.b.select(c.op(Opcode::eq_, at[1], at[2]), diagonal, off);
  });
  return c.b.points(
      {n}, {c.b.fill(number(1.0 / static_cast<double>(k)), {n, size})},
      [&](const Indices& row, const Datums& s) {
        const Datum i = row[0];
        const auto q_at = [&](const Datum& a, const Datum& b) { return c.b.get(q, {i, a, b}); };
        const auto products = [&](const Datum& p) {
          return c.b.tabulate(kind, {size}, [&](const Indices& t) {
            return sum([&](const Datum& j) { return c.b.mul(q_at(t[0], j), c.b.get(p, {i, j})); });
          });
        };
        // As long as a product is further from their mean than this.
        const Datum enough = number(0.005 / static_cast<double>(k));
        const std::int64_t most = std::max<std::int64_t>(100, k);
        return Datums{core::detail::loop(
            {zero, s[0], Datum::integer(1, ir::Bool)},
            [&](const Datums& now) { return c.op(Opcode::land_, now[2], c.b.less(now[0], c.integer(most))); },
            [&](const Datums& now) {
              const Datum start = products(now[1]);
              const Datum mean = sum([&](const Datum& j) {
                return c.b.mul(c.b.get(now[1], {i, j}), c.b.get(start, {j}));
              });
              const Datum error = c.b.loop(zero, size, {number(0)}, [&](const Datum& j, const Datums& e) {
                return Datums{
                    c.op(Opcode::max_, e[0], c.op(Opcode::abs_, c.b.sub(c.b.get(start, {j}), mean)))};
              })[0];
              const Datum more = c.op(Opcode::le_, enough, error);
              const Datums step =
                  c.b.loop(zero, size, {now[1], start, mean}, [&](const Datum& t, const Datums& w) {
                    const Datum own = q_at(t, t), d = c.b.div(c.b.sub(w[2], c.b.get(w[1], {t})), own);
                    const Datum scale = c.b.add(number(1), d);
                    const Datum next_mean = c.b.div(
                        c.b.add(w[2],
                                c.b.mul(d, c.b.add(c.b.mul(d, own), c.b.mul(number(2), c.b.get(w[1], {t}))))),
                        c.b.mul(scale, scale));
                    const Datum grown = c.b.set(w[0], {i, t}, c.b.add(c.b.get(w[0], {i, t}), d));
                    const Datums both =
                        c.b.loop(zero, size, {grown, w[1]}, [&](const Datum& j, const Datums& v) {
                          return Datums{
                              c.b.set(v[0], {i, j}, c.b.div(c.b.get(v[0], {i, j}), scale)),
                              c.b.set(v[1], {j},
                                      c.b.div(c.b.add(c.b.get(v[1], {j}), c.b.mul(d, q_at(t, j))), scale))};
                        });
                    return Datums{both[0], both[1], next_mean};
                  });
              const Datum next = c.b.loop(zero, size, {now[1]}, [&](const Datum& j, const Datums& v) {
                return Datums{c.b.set(v[0], {i, j},
                                      c.b.select(more, c.b.get(step[0], {i, j}), c.b.get(now[1], {i, j})))};
              })[0];
              return Datums{c.b.add(now[0], c.integer(1)), next, more};
            },
            c.b.loc)[1]};
      })[0];
}

}  // namespace

Terms svm_regressor(const Call& c) {
  const Datum x = examples(c);
  const std::int64_t vectors = c.attribute("n_supports", std::int64_t{0});
  const Term coefficients = list(c, "coefficients"), rho = list(c, "rho");
  if (length_of(rho) < 1) c.fail("attribute 'rho': expected a number, got none");
  const Datum w = c.cast(c.datum(coefficients), x.type().element());
  Datum y;
  if (vectors > 0) {
    const Datum all = kernels(c, x, rows_of(c, list(c, "support_vectors"), vectors, "support_vectors", x),
                              c.attribute("kernel_type", std::string("LINEAR")));
    y = c.b.einsum("ij,j->i", {all, w});
  } else {
    y = c.b.einsum("ij,j->i", {x, w});
  }
  y = c.b.add(y, c.b.get(c.cast(c.datum(rho), x.type().element()), {c.integer(0)}));
  if (c.attribute("one_class", std::int64_t{0}) != 0)
    y = c.where(c.b.less(constant_like(0, y), y), constant_like(1, y), constant_like(-1, y));
  const int last = 1;
  y = transformed(c, c.b.with_ones(y, {&last, 1}), post_transform(c));
  return {c.result(c.cast(y, ir::Kind::f32), Element::float32)};
}

Terms svm_classifier(const Call& c) {
  const Datum x = examples(c);
  const Term labels = labels_of(c, "classlabels_ints");
  const std::int64_t classes = length_of(labels);
  const Sizes each = [&] {
    const Term t = list(c, "vectors_per_class");
    return t.present() ? c.integers(t, "numbers of vectors") : Sizes();
  }();
  const Value rho = c.value(list(c, "rho"), "offsets");
  const auto result = [&](const Datum& z) { return c.result(c.cast(z, ir::Kind::f32), Element::float32); };
  std::int64_t vectors = 0;
  for (const std::int64_t n : each) vectors += n;
  if (vectors == 0) {  // a row of coefficients for each class
    if (rho.size() < 1) c.fail("attribute 'rho': expected a number, got none");
    const std::int64_t features = c.known_size(x, 1);
    const std::int64_t rows = features > 0 ? length_of(list(c, "coefficients")) / features : classes;
    const Datum w = rows_of(c, list(c, "coefficients"), rows, "coefficients", x);
    Datum scores = c.b.add(c.b.einsum("ik,jk->ij", {x, w}), constant_like(rho.at(0), x));
    if (rows == 1 && classes == 2)
      return {chosen(c, labels, above(c, scores, 0)),
              result(transformed(c, pair_of(c, c.op(Opcode::neg_, scores), scores), post_transform(c)))};
    return {chosen(c, labels, best(c, scores)), result(transformed(c, scores, post_transform(c)))};
  }
  const std::int64_t pairs = classes * (classes - 1) / 2;
  if (static_cast<std::int64_t>(each.size()) != classes || classes < 2 || rho.size() != pairs)
    c.fail("expected numbers of vectors for each of 2 or more classes, and an offset for each pair of them");
  const Datum all = kernels(c, x, rows_of(c, list(c, "support_vectors"), vectors, "support_vectors", x),
                            c.attribute("kernel_type", std::string("LINEAR")));
  const Datum w = rows_of(c, list(c, "coefficients"), classes - 1, "coefficients", x);
  Datums scores;
  Sizes starts = {0};
  for (const std::int64_t n : each) starts.push_back(starts.back() + n);
  const int last = 1;
  for (std::int64_t i = 0; i < classes; ++i)
    for (std::int64_t j = i + 1; j < classes; ++j) {
      const auto part = [&](std::int64_t row, std::int64_t of) {  // of one of both classes
        const auto k = static_cast<std::size_t>(of);
        const Datum lo = c.integer(starts[k]), hi = c.integer(starts[k + 1]);
        const Datum factors =
            part_of(c, core::perform({Opcode::take_, 0, c.b.loc}, {w, c.integer(row)}), 0, lo, hi);
        return c.b.einsum("ij,j->i", {part_of(c, all, 1, lo, hi), factors});
      };
      const Datum s = c.b.add(part(j - 1, i), part(i, j));
      scores.push_back(c.b.with_ones(c.b.add(s, constant_like(rho.at(scores.size()), x)), {&last, 1}));
    }
  const Datum pairwise = scores.size() == 1 ? scores[0] : core::detail::concat(scores, 1, c.b.loc);
  const Datum n = c.b.size(x, 0), zero = c.integer(0);
  const Datum votes = [&] {
    Datum v = c.b.fill(constant_like(0, x), {n, c.integer(classes)});
    return c.b.loop(zero, n, {v}, [&](const Datum& row, const Datums& s) {
      Datum now = s[0];
      std::int64_t k = 0;
      for (std::int64_t i = 0; i < classes; ++i)
        for (std::int64_t j = i + 1; j < classes; ++j, ++k) {
          const Datum won = c.b.less(constant_like(0, x), c.b.get(c.b.primal(pairwise), {row, c.integer(k)}));
          const Datum to = c.b.select(won, c.integer(i), c.integer(j));
          now = c.b.set(now, {row, to}, c.b.add(c.b.get(now, {row, to}), constant_like(1, x)));
        }
      return Datums{now};
    })[0];
  }();
  const Term a = list(c, "prob_a"), b = list(c, "prob_b");
  if (length_of(a) > 0) {
    const Value slope = c.value(a, "parameters of probabilities"),
                offset = c.value(b, "parameters of probabilities");
    if (slope.size() != pairs || offset.size() != pairs)
      c.fail("attributes 'prob_a' and 'prob_b': expected a number for each of " + std::to_string(pairs) +
             " pairs");
    Datum r = c.b.fill(constant_like(0, x), {n, c.integer(classes), c.integer(classes)});
    r = c.b.loop(zero, n, {r}, [&](const Datum& row, const Datums& s) {
      Datum now = s[0];
      std::size_t k = 0;
      for (std::int64_t i = 0; i < classes; ++i)
        for (std::int64_t j = i + 1; j < classes; ++j, ++k) {
          const Datum score = c.b.get(pairwise, {row, c.integer(static_cast<std::int64_t>(k))});
          const Datum v =
              c.b.add(c.b.mul(score, constant_like(slope.at(k), x)), constant_like(offset.at(k), x));
          Datum p = core::detail::sigmoid(c.op(Opcode::neg_, v), c.b.loc);
          p = c.op(Opcode::min_, c.op(Opcode::max_, p, constant_like(1e-7, x)), constant_like(1 - 1e-7, x));
          now = c.b.set(now, {row, c.integer(i), c.integer(j)}, p);
          now = c.b.set(now, {row, c.integer(j), c.integer(i)}, c.b.sub(constant_like(1, x), p));
        }
      return Datums{now};
    })[0];
    const Datum p = coupled(c, r, classes);
    return {chosen(c, labels, best(c, votes)), result(transformed(c, p, post_transform(c)))};
  }
  if (classes == 2) {
    const Datum both = pair_of(c, c.op(Opcode::neg_, pairwise), pairwise);
    return {chosen(c, labels, best(c, votes)), result(transformed(c, both, post_transform(c)))};
  }
  return {chosen(c, labels, best(c, votes)), result(transformed(c, pairwise, post_transform(c)))};
}

}  // namespace lantern::onnx::rules
