// Builds printed code with every tool chain at hand and runs it through the entry ABI.
#pragma once

#include <catch2/catch.hpp>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "lantern/codegen/c/print_c.hpp"
#include "lantern/codegen/cpp/print_cpp.hpp"
#include "lantern/codegen/toolchain/system_compiler.hpp"
#include "lantern/codegen/toolchain/tcc.hpp"
#include "lantern/compiler/passes/array/lower.hpp"
#include "lantern/compiler/passes/direct/close.hpp"
#include "lantern/ir/error.hpp"
#include "lantern/ir/graph.hpp"
#include "lantern/ir/parse.hpp"
#include "lantern/ir/verify.hpp"
#include "lantern/runtime/workspace.hpp"

namespace lantern::test {

using codegen::Language;
using codegen::LoadedCode;
using codegen::print_c;
using codegen::print_cpp;

using Module = std::unique_ptr<ir::Module>;

inline Module program(const std::string& text) {
  Module m = ir::parse(text);
  ir::verify(*m);
  return m;
}

struct Built {
  std::string how;
  std::unique_ptr<LoadedCode> code;
};

/// The program by tcc, by the system's compiler as C and as C++. C needs closed continuations; C++ is printed
/// before they are closed, and once more after.
inline std::vector<Built> build(ir::Module& m, codegen::PrintOptions options = {}) {
  passes::lower(m, {.fuse = false});
  std::vector<Built> all;
  codegen::ClangOptions flags;
  flags.opt_level = 1;
  const auto add_cpp = [&](const char* how) {
    all.push_back({how, codegen::compile_with_system_compiler(print_cpp(m, options), Language::cpp, flags)});
  };
  add_cpp("c++");
  int nested = 0;
  for (const ir::Function* f : m.functions()) nested += codegen::continuation_depth(*f);
  passes::close(m);
  ir::verify(m);
  if (nested > 0) add_cpp("c++, closed");
  const std::string c = print_c(m, options);
  all.push_back({"tcc", codegen::compile_with_tcc(c)});
  all.push_back({"c", codegen::compile_with_system_compiler(c, Language::c, flags)});
  return all;
}

inline void call(Workspace& ws, const Built& b, const std::string& name, std::vector<const void*> in,
                 std::vector<void*> out) {
  ws.call(b.code->function<lt_entry>(name + "_entry"), in.data(), out.data());
}

/// A scalar function of one double by the entry, from every tool chain.
inline void check_values(ir::Module& m, const std::vector<std::pair<double, double>>& points) {
  const std::string name = m.entry->name;
  for (const Built& b : build(m)) {
    Workspace ws;
    for (const auto& [x, expected] : points) {
      double y = 0;
      call(ws, b, name, {&x}, {&y});
      INFO(b.how << " at " << x);
      CHECK(y == Approx(expected));
    }
  }
}

inline std::string failure(const Built& b, const std::string& name, std::vector<const void*> in,
                           std::vector<void*> out) {
  Workspace ws;
  try {
    call(ws, b, name, std::move(in), std::move(out));
  } catch (const Error& e) {
    return e.what();
  }
  return "no failure";
}

LT_TENSOR(Vector, double, 1);
LT_TENSOR(Matrix, double, 2);

inline Vector view(std::vector<double>& v) { return {v.data(), {static_cast<std::int64_t>(v.size())}}; }
inline Matrix view(std::vector<double>& v, std::int64_t rows) {
  return {v.data(), {rows, static_cast<std::int64_t>(v.size()) / rows}};
}
inline std::vector<double> numbers(const Vector& v) { return {v.data, v.data + v.dim[0]}; }
inline std::vector<double> numbers(const Matrix& m) { return {m.data, m.data + m.dim[0] * m.dim[1]}; }

/// The part of a text from one line on, up to another.
inline std::string excerpt(const std::string& text, const std::string& from, const std::string& to) {
  const std::size_t first = text.find(from);
  if (first == std::string::npos) return text;
  return text.substr(first, text.find(to, first) - first);
}

}  // namespace lantern::test
