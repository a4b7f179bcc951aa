// Printing at once. Generated code prints the same text (codegen/c/report_text.cpp).
#include "lantern/compiler/staging/print.hpp"

#include <cstdio>
#include <mutex>
#include <string>
#include <unordered_set>

#include "lantern/compiler/staging/staging.hpp"
#include "lantern/compiler/staging/unset_variable.hpp"
#include "lantern/ir/error.hpp"

namespace lantern::core {

namespace {

using ir::Kind;

/// Along a dimension longer than this only the first and the last elements are shown.
constexpr std::int64_t shown = 8, shown_at_an_end = 3;

std::string number_text(Kind kind, double f, std::int64_t i) {
  if (kind == Kind::boolean) return i != 0 ? "true" : "false";
  if (kind == Kind::i32 || kind == Kind::i64) return std::to_string(i);
  if (f != f) return "nan";
  char text[40];
  std::snprintf(text, sizeof text, kind == Kind::f32 ? "%.7g" : "%.15g", f);
  return text;
}

std::string element_text(Kind kind, const TensorBox& t, std::size_t i) {
  switch (kind) {
    case Kind::boolean:
      return number_text(kind, 0, t.as<bool>()[i]);
    case Kind::i32:
      return number_text(kind, 0, t.as<std::int32_t>()[i]);
    case Kind::i64:
      return number_text(kind, 0, t.as<std::int64_t>()[i]);
    case Kind::f32:
      return number_text(kind, static_cast<double>(t.as<float>()[i]), 0);
    default:
      return number_text(kind, t.as<double>()[i], 0);
  }
}

void append_rows(std::string& text, Kind kind, const TensorBox& t, std::size_t dimension, std::size_t at) {
  if (dimension == t.shape.size()) {
    text += element_text(kind, t, at);
    return;
  }
  std::size_t stride = 1;
  for (std::size_t d = dimension + 1; d < t.shape.size(); ++d) stride *= static_cast<std::size_t>(t.shape[d]);
  const std::int64_t n = t.shape[dimension];
  text += '[';
  for (std::int64_t i = 0; i < n; ++i) {
    if (i > 0) text += ", ";
    if (n > shown && i == shown_at_an_end) {
      text += "..., ";
      i = n - shown_at_an_end;
    }
    append_rows(text, kind, t, dimension + 1, at + static_cast<std::size_t>(i) * stride);
  }
  text += ']';
}

std::string tensor_text(Kind kind, const TensorBox& t) {
  std::string text, shape;
  append_rows(text, kind, t, 0, 0);
  bool cut = false;
  for (const std::int64_t n : t.shape) {
    cut |= n > shown;
    shape += (shape.empty() ? "" : "x") + std::to_string(n);
  }
  return cut ? text + " (" + shape + ")" : text;
}

}  // namespace

const char* label_of(std::string_view text) {
  static std::mutex mutex;
  static std::unordered_set<std::string> labels;
  const std::lock_guard lock(mutex);
  return labels.emplace(text).first->c_str();
}

void print(const Datum& d, const char* label, const Location& loc) {
  const Datum& x = strip(d);
  if (x.empty()) refuse_empty(loc);
  if (x.is_tagged()) raise_at(loc, "print: expected a number, got an element of a semiring");
  if (x.type().is_tree())
    raise_at(loc, "print: expected a number, an array or a tensor, got " + x.type().str());
  Staging* const staging = context().staging;
  if (staging && staging->current()) {
    ir::Value* const value = staging->use(x, loc);
    staging->builder(loc).op(Opcode::print_, {value})->text = staging->module().intern(label);
    return;
  }
  if (x.is_node()) raise_at(loc, "a staged value is used while nothing is being staged");
  const std::string text = x.type().is_tensor()
                               ? tensor_text(x.type().element(), *static_cast<const TensorBox*>(x.box()))
                               : number_text(x.type().kind(), x.f(), x.i());
  std::printf("%s = %s\n", label, text.c_str());
}

}  // namespace lantern::core
