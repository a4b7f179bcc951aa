// Calls of the entries, with a variable for each argument and result.
#include "lantern/codegen/example_main.hpp"

#include <algorithm>

#include "lantern/ir/escape.hpp"

namespace lantern::codegen {

namespace {

constexpr std::int64_t usual_size = 4;

std::string number(Kind kind, std::size_t i) {
  switch (kind) {
    case Kind::boolean:
      return "1";
    case Kind::i32:
    case Kind::i64:
      return "2";
    case Kind::f32:
      return "0." + std::to_string(i % 9 + 1) + "f";
    default:
      return "0." + std::to_string(i % 9 + 1);
  }
}

/// One call: declarations, the call, what is printed.
class Example {
 public:
  Example(Unit& unit, const Target& target) : unit_(unit), target_(target) {}

  std::string text() {
    const ir::Function& f = *unit_.module().entry;
    if (unit_.info(&f).workspace && !unit_.scalar_entry()) argument(unit_.workspace_name() + "()");
    for (std::size_t i = 0; i < f.body->params.size(); ++i)
      declare(f.body->params[i], "x" + std::to_string(i + 1));
    const auto& results = f.result_types;
    if (results.size() == 1) {
      line(type(results[0]) + " y = " + call() + ";");
      show(results[0], "y", unit_.public_name());
    } else {
      for (std::size_t i = 0; i < results.size(); ++i) {
        line(type(results[i]) + " " + result(i) + ";");
        argument("&" + result(i));
      }
      line(call() + ";");
      for (std::size_t i = 0; i < results.size(); ++i)
        show(results[i], result(i), unit_.public_name() + ", " + std::to_string(i + 1));
    }
    return "  {\n" + text_ + "  }\n";
  }

 private:
  static std::string result(std::size_t i) { return "y" + std::to_string(i + 1); }
  std::string call() const { return unit_.public_name() + "(" + arguments_ + ")"; }
  std::string type(const ir::Type& t) { return unit_.number_type(unit_.module().entry, t); }
  void line(const std::string& s) { text_ += "    " + s + "\n"; }
  void argument(const std::string& s) { arguments_ += (arguments_.empty() ? "" : ", ") + s; }

  void elements(const std::string& name, Kind kind, std::int64_t count) {
    std::string list;
    for (std::int64_t i = 0; i < std::max<std::int64_t>(count, 1); ++i)
      list += (i ? ", " : "") + number(kind, static_cast<std::size_t>(i));
    line(target_.element(kind) + " " + name + "[] = {" + list + "};");
  }

  void declare(const ir::Value* p, const std::string& plain) {
    const std::string name = p->name ? identifier(p->name) + "_" : plain;
    const ir::Type& t = p->type;
    argument(name);
    if (t.is_scalar()) return line("const " + type(t) + " " + name + " = " + number(t.kind(), 4) + ";");
    if (t.is_tree()) {
      line("const int64_t " + name + "leaf[] = {-1};  /* no child */");
      std::string values;
      for (std::size_t i = 0; i < t.parts().size(); ++i) {
        elements(name + "value" + std::to_string(i), t.parts()[i].kind(), 1);
        values += name + "value" + std::to_string(i) + ", ";
      }
      return line("const " + unit_.type(t) + " " + name + " = {" + name + "leaf, " + name + "leaf, " +
                  values + "0};");
    }
    std::int64_t count = 1;
    std::string sizes;
    for (const std::int64_t d : t.dims()) {
      const std::int64_t size = d == ir::dynamic ? usual_size : d;
      count *= size;
      sizes += (sizes.empty() ? "" : ", ") + std::to_string(size);
    }
    elements(name + "data", t.element(), count);
    line("const " + unit_.type(t) + " " + name + " = {" + name + "data, {" + (sizes.empty() ? "1" : sizes) +
         "}};");
  }

  void print(Kind kind, const std::string& value) {
    const bool integer = kind == Kind::boolean || kind == Kind::i32 || kind == Kind::i64;
    line(std::string("printf(\" ") + (integer ? "%lld" : "%.12g") + "\", (" +
         (integer ? "long long" : "double") + ")" + value + ");");
  }

  void show(const ir::Type& t, const std::string& name, const std::string& label) {
    line("printf(" + ir::c_string(label + ":") + ");");
    if (t.is_scalar()) {
      print(t.kind(), name);
    } else {
      std::string count = "1";
      for (int d = 0; d < t.rank(); ++d) count += " * " + name + ".dim[" + std::to_string(d) + "]";
      line("for (int64_t i = 0; i < " + count + "; ++i)");
      text_ += "  ";
      print(t.element(), name + ".data[i]");
    }
    line("printf(\"\\n\");");
  }

  Unit& unit_;
  const Target& target_;
  std::string text_, arguments_;
};

}  // namespace

std::string example_main(const std::vector<std::unique_ptr<Unit>>& units, const Target& target) {
  std::string body;
  for (const auto& unit : units) body += Example(*unit, target).text();
  return std::string("\n/* How the functions are called. */\n") + (target.is_cpp() ? "extern \"C\" " : "") +
         "int printf(const char* format, ...);\n\nint main(" + (target.is_cpp() ? "" : "void") + ") {\n" +
         body + "  return 0;\n}\n";
}

}  // namespace lantern::codegen
