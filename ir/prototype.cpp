// Prototypes of external functions: reading, printing, what fits them.
#include "lantern/ir/prototype.hpp"

#include <algorithm>
#include <array>
#include <map>

#include "lantern/ir/error.hpp"
#include "lantern/ir/graph.hpp"
#include "lantern/ir/text.hpp"

namespace lantern::ir {

namespace {

constexpr std::array<std::pair<std::string_view, Kind>, 5> c_names{{{"bool", Kind::boolean},
                                                                    {"int32_t", Kind::i32},
                                                                    {"int64_t", Kind::i64},
                                                                    {"float", Kind::f32},
                                                                    {"double", Kind::f64}}};

std::string_view c_name(Kind kind) {
  for (const auto& [name, k] : c_names)
    if (k == kind) return name;
  throw InternalError("a prototype with a type that C has not");
}

/// Words and punctuation of a prototype, one after the other.
class Words {
 public:
  explicit Words(std::string_view text) : text_(text) {}

  std::string_view next() {
    while (at_ < text_.size() && is_space(text_[at_])) ++at_;
    const std::size_t first = at_;
    at_ = end_of_word(text_, at_);
    if (at_ == first && at_ < text_.size()) ++at_;
    return text_.substr(first, at_ - first);
  }
  bool take(std::string_view word) {
    const std::size_t before = at_;
    if (next() == word) return true;
    at_ = before;
    return false;
  }

 private:
  std::string_view text_;
  std::size_t at_ = 0;
};

[[noreturn]] void refuse(std::string_view text, const std::string& what) {
  throw Error(
      "expected the prototype of a C function of bool, int32_t, int64_t, float, double and pointers to them, "
      "got \"" +
      std::string(text) + "\": " + what);
}

Kind kind_of(std::string_view text, std::string_view name) {
  for (const auto& [c, kind] : c_names)
    if (c == name) return kind;
  refuse(text, "'" + std::string(name) + "' is none of these types");
}

}  // namespace

void Prototype::check() const {
  if (!is_identifier(name))
    throw Error("expected the name of a C function, got '" + name +
                "': generated code calls it by that name; give a "
                "function of C++ one that is declared extern \"C\" and calls it");
  if (name.starts_with("lt_") || name.starts_with("lantern_"))
    throw Error("'" + name + "': names that begin with lt_ or lantern_ belong to generated code");
}

std::string Prototype::text() const {
  std::string list;
  for (const Parameter& p : parameters) {
    if (!list.empty()) list += ", ";
    if (p.place) {
      list += "const char *";
      continue;
    }
    if (p.pointer && !p.changed) list += "const ";
    list += c_name(p.kind);
    if (p.pointer) list += " *";
  }
  return (returned ? std::string(c_name(*returned)) : "void") + " " + name + "(" +
         (list.empty() ? "void" : list) + ")";
}

std::vector<Type> Prototype::results(std::span<const Type> operands) const {
  const std::string what = "external function '" + name + "': expected ";
  const auto taken = static_cast<std::size_t>(std::ranges::count(parameters, false, &Parameter::place));
  if (operands.size() != taken)
    throw Error(what + std::to_string(taken) + " arguments, got " +
                std::to_string(operands.size()));
  std::vector<Type> out;
  if (returned) out.emplace_back(*returned);
  std::size_t i = 0;
  for (const Parameter& p : parameters) {
    if (p.place) continue;
    const Type& t = operands[i++];
    const bool shape_fits = p.pointer ? t.is_tensor() : t.is_scalar() && !t.is_vector();
    if (!shape_fits || t.element() != p.kind)
      throw Error(what + (p.pointer ? "an array or tensor of " : "a ") + kind_name(p.kind) + " as argument " +
                  std::to_string(i) + ", got " + t.str());
    if (p.changed) out.push_back(t);
  }
  return out;
}

std::vector<std::size_t> Prototype::changed_operands() const {
  std::vector<std::size_t> all;
  std::size_t operand = 0;
  for (const Parameter& p : parameters) {
    if (p.place) continue;
    if (p.changed) all.push_back(operand);
    ++operand;
  }
  return all;
}

Prototype parse_prototype(std::string_view text) {
  Prototype p;
  Words words(text);
  const std::string_view returned = words.next();
  if (returned != "void") p.returned = kind_of(text, returned);
  p.name = words.next();
  try {
    p.check();
  } catch (const Error& e) {
    refuse(text, e.what());
  }
  if (!words.take("(")) refuse(text, "'(' is missing");
  if (words.take("void")) {
    if (!words.take(")")) refuse(text, "')' is missing");
  } else if (!words.take(")")) {
    do {
      Prototype::Parameter parameter;
      const bool constant = words.take("const");
      parameter.place = constant && words.take("char");
      if (parameter.place) {
        if (!words.take("*")) refuse(text, "'*' is missing");
        p.parameters.push_back(parameter);
        continue;
      }
      parameter.kind = kind_of(text, words.next());
      parameter.pointer = words.take("*");
      if (constant && !parameter.pointer) refuse(text, "a const that is no pointer");
      parameter.changed = parameter.pointer && !constant;
      p.parameters.push_back(parameter);
    } while (words.take(","));
    if (!words.take(")")) refuse(text, "')' is missing");
  }
  if (!words.next().empty()) refuse(text, "there is more behind it");
  return p;
}

std::vector<Prototype> external_functions(const Module& module) {
  std::map<std::string, Prototype> found;
  for (const Function* f : module.functions())
    walk(f->body, [&](const Op* op) {
      if (!op->is(Opcode::external_)) return;
      const Prototype p = parse_prototype(op->text);
      const auto [it, fresh] = found.emplace(p.name, p);
      if (!fresh && it->second.text() != p.text())
        throw Error((op->loc.known() ? op->loc.str() + ": " : "") + "two external functions are called '" +
                    p.name + "': " + it->second.text() + " and " + p.text());
    });
  std::vector<Prototype> all;
  for (auto& [name, p] : found) all.push_back(std::move(p));
  return all;
}

}  // namespace lantern::ir
