// The table of operations is complete and its formulas make sense; type rules refuse what does not fit.
#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <set>

#include "../golden/golden.hpp"

#include "lantern/ir/error.hpp"
#include "lantern/ir/formula.hpp"
#include "lantern/ir/op.hpp"

using namespace lantern;
using namespace lantern::ir;

namespace {

std::vector<Opcode> all_opcodes() {
  std::vector<Opcode> codes;
  for (int i = 0; i < static_cast<int>(Opcode::count_); ++i) codes.push_back(static_cast<Opcode>(i));
  return codes;
}

/// Calls `visit` for a formula and everything below it.
template <class Visit>
void for_each_node(const Formula& f, Visit&& visit) {
  visit(f);
  for (const Formula& a : f.arguments) for_each_node(a, visit);
}

/// The operand counts to try an operation with: its own, or a few where it takes any number.
std::vector<std::size_t> operand_counts(const OpInfo& row) {
  if (row.arity >= 0) return {static_cast<std::size_t>(row.arity)};
  return {1, 2, 3, 4};
}

std::string type_error(Opcode op, const std::vector<Type>& operands, std::int64_t attribute = 0) {
  try {
    return "accepted: " + infer_type(op, operands, attribute).str();
  } catch (const Error& e) {
    return e.what();
  }
}

std::string formula_error(std::string_view text) {
  try {
    parse_formula(text);
    return "accepted";
  } catch (const InternalError& e) {
    return e.what();
  }
}

const Type V = Type::tensor(Kind::f64, {3});
const Type M = Type::tensor(Kind::f64, {2, 3});
const Type D = Type::tensor(Kind::f64, {dynamic});

}  // namespace

TEST_CASE("every operation is found by its name, and names are unique", "[op_table]") {
  std::set<std::string_view> names;
  for (const Opcode op : all_opcodes()) {
    INFO(info(op).name);
    CHECK(opcode_named(info(op).name) == op);
    CHECK(names.insert(info(op).name).second);
  }
  CHECK(opcode_named("adds") == Opcode::count_);
  CHECK(opcode_named("") == Opcode::count_);
}

TEST_CASE("every scalar operation has an expression and one partial derivative per operand", "[op_table]") {
  for (const Opcode op : all_opcodes()) {
    const OpInfo& row = info(op);
    if (!row.elementwise) continue;
    INFO(row.name);
    CHECK(row.arity >= 1);
    CHECK(row.arity <= 3);
    CHECK(row.formulas.size() == static_cast<std::size_t>(row.arity));
    CHECK(!row.expression.empty());
    CHECK(row.effect == ir::Effect::none);
  }
}

TEST_CASE("every tensor operation of fixed arity has one formula per operand", "[op_table]") {
  for (const Opcode op : all_opcodes()) {
    const OpInfo& row = info(op);
    if (row.elementwise || row.in_notation() || op >= Opcode::constant_) continue;
    INFO(row.name);
    if (row.arity >= 0) {
      CHECK(row.formulas.size() == static_cast<std::size_t>(row.arity));
    } else {
      // The first operand, and the last where it carries a derivative; indices between them never do.
      CHECK(row.formulas.size() >= 1);
      CHECK(row.formulas.size() <= 2);
    }
  }
}

TEST_CASE("formulas call operations with the number of operands they take", "[op_table]") {
  for (const Opcode op : all_opcodes()) {
    for (const std::size_t n : operand_counts(info(op))) {
      for (std::size_t i = 0; i < n; ++i) {
        INFO(info(op).name << ", derivative " << i << " of " << n << ": " << derivative_formula(op, i, n));
        const Formula* formula = derivative(op, i, n);
        if (!formula) continue;
        for_each_node(*formula, [](const Formula& f) {
          if (f.kind != Formula::Kind::call) return;
          INFO("in a call of " << info(f.op).name);
          CHECK(f.op < Opcode::constant_);
          if (info(f.op).arity >= 0) CHECK(f.arguments.size() == static_cast<std::size_t>(info(f.op).arity));
        });
      }
    }
  }
}

TEST_CASE("formulas use only variables that exist, and accumulate only at their root", "[op_table]") {
  for (const Opcode op : all_opcodes()) {
    const OpInfo& row = info(op);
    for (const std::size_t n : operand_counts(row)) {
      for (std::size_t i = 0; i < n; ++i) {
        const Formula* formula = derivative(op, i, n);
        if (!formula) continue;
        INFO(row.name << ": " << derivative_formula(op, i, n));
        int accumulators = 0;
        for_each_node(*formula, [&](const Formula& f) {
          if (f.kind == Formula::Kind::index) CHECK(row.arity < 0);
          if (f.kind != Formula::Kind::variable) return;
          const std::size_t operand = std::string_view("xyz").find(f.variable);
          if (operand != std::string_view::npos) CHECK(operand < n);
          if (f.variable == 'g') CHECK(!row.elementwise);
          if (f.variable == 'a') ++accumulators;
        });
        CHECK(accumulators == (formula->accumulates() ? 1 : 0));
        if (formula->accumulates()) CHECK(info(formula->op).name.starts_with("add_"));
      }
    }
  }
}

TEST_CASE("operations of any arity give the formulas of their first and last operand", "[op_table]") {
  CHECK(derivative_formula(Opcode::get_, 0, 3) == "add_at(acc, index..., g)");
  CHECK(derivative_formula(Opcode::get_, 1, 3) == "-");
  CHECK(derivative_formula(Opcode::get_, 2, 3) == "-");
  CHECK(derivative_formula(Opcode::set_, 1, 3) == "-");
  CHECK(derivative_formula(Opcode::set_, 2, 3) == "get(g, index...)");
  CHECK(derivative_formula(Opcode::fill_, 0, 3) == "sum(g)");
  CHECK(derivative_formula(Opcode::fill_, 2, 3) == "-");
  CHECK(derivative_formula(Opcode::jump_, 0, 2) == "-");
  CHECK(derivative(Opcode::jump_, 0, 2) == nullptr);
}

TEST_CASE("formulas parse with the usual precedence", "[op_table]") {
  const Formula f = parse_formula("-x * y + 2 / (z - 1)");
  REQUIRE(f.op == Opcode::add_);
  CHECK(f.arguments[0].op == Opcode::mul_);
  CHECK(f.arguments[0].arguments[0].op == Opcode::neg_);
  CHECK(f.arguments[1].op == Opcode::div_);
  CHECK(f.arguments[1].arguments[0].is_number(2));
  CHECK(f.arguments[1].arguments[1].op == Opcode::sub_);
  CHECK(parse_formula("-1").is_number(-1));

  const Formula ge = parse_formula("x >= y");  // there is no ge: operands change places
  CHECK(ge.op == Opcode::le_);
  CHECK(ge.arguments[0].variable == 'y');
  CHECK(ge.arguments[1].variable == 'x');
}

TEST_CASE("a mistake in a formula is named", "[op_table]") {
  CHECK(formula_error("x +") == "derivative formula 'x +': expected a name");
  CHECK(formula_error("x y") == "derivative formula 'x y': trailing text");
  CHECK(formula_error("sinus(x)") == "derivative formula 'sinus(x)': unknown operation sinus");
  CHECK(formula_error("w * x") == "derivative formula 'w * x': unknown variable w");
  CHECK(formula_error("sin(x") == "derivative formula 'sin(x': expected )");
  CHECK(formula_error("index") == "derivative formula 'index': expected ...");
}

TEST_CASE("type rules infer shapes, known dimensions winning over symbolic ones", "[op_table]") {
  CHECK(infer_type(Opcode::add_, std::vector{D, V}, 0) == V);
  CHECK(infer_type(Opcode::lt_, std::vector{V, V}, 0) == Type::tensor(Kind::boolean, {3}));
  CHECK(infer_type(Opcode::matvec_, std::vector{M, D}, 0) == Type::tensor(Kind::f64, {2}));
  CHECK(infer_type(Opcode::concat_, std::vector{V, V}, 0) == Type::tensor(Kind::f64, {6}));
  CHECK(infer_type(Opcode::concat_, std::vector{V, D}, 0) == D);
  CHECK(infer_type(Opcode::take_, std::vector{M, I64}, 0) == V);
  CHECK(infer_type(Opcode::cast_, std::vector{V}, static_cast<int>(Kind::f32)) == V.with_element(Kind::f32));
  CHECK(infer_type(Opcode::fill_, std::vector{F64, I64, I64}, 0, std::vector<std::int64_t>{2, 3}) == M);
  CHECK(infer_type(Opcode::tree_value_, std::vector{Type::tree({I64, F32})}, 1) == F32);
}

TEST_CASE("type rules refuse operands that do not fit", "[op_table]") {
  CHECK(type_error(Opcode::add_, {F64, I64}) == "add: expected operands of one type and shape, got f64, i64");
  CHECK(type_error(Opcode::add_, {F64}) == "add: expected 2 operands, got f64");
  CHECK(type_error(Opcode::mul_, {V, Type::tensor(Kind::f64, {4})}) ==
        "mul: expected operands of one type and shape, got f64[3], f64[4]");
  CHECK(type_error(Opcode::add_, {Bool, Bool}) == "add: expected numbers, got bool, bool");
  CHECK(type_error(Opcode::neg_, {Type::ref(F64)}) == "neg: expected numbers, got ref f64");
  CHECK(type_error(Opcode::sin_, {I64}) ==
        "sin: expected floating-point operands (cast integers first), got i64");
  CHECK(type_error(Opcode::rem_, {F64, F64}) == "rem: expected integers, got f64, f64");
  CHECK(type_error(Opcode::land_, {Bool, I64}) ==
        "land: expected operands of one type and shape, got bool, i64");
  CHECK(type_error(Opcode::lnot_, {F64}) == "lnot: expected bools, got f64");
  CHECK(type_error(Opcode::select_, {F64, F64, F64}) == "select: expected a bool first, got f64, f64, f64");
  CHECK(type_error(Opcode::dim_, {V}, 1) == "dim: expected a tensor with that dimension, got f64[3]");
  CHECK(type_error(Opcode::get_, {M, I64}) ==
        "get: expected a tensor and one index per dimension, got f64[2,3], i64");
  CHECK(type_error(Opcode::get_, {}) == "get: expected operands, got ");
  CHECK(type_error(Opcode::get_, {V, I32}) == "get: expected i64 indices, got f64[3], i32");
  CHECK(type_error(Opcode::set_, {V, I64, F32}) ==
        "set: expected a value of the element type, got f64[3], i64, f32");
  CHECK(type_error(Opcode::take_, {V, I64}) ==
        "take: expected a tensor of rank 2 or more and an i64, got f64[3], i64");
  CHECK(type_error(Opcode::dot_, {V, M}) == "dot: expected shapes that fit \"i,i->\", got f64[3], f64[2,3]");
  CHECK(type_error(Opcode::matmul_, {M, M}) ==
        "matmul: expected shapes that fit \"ij,jk->ik\", got f64[2,3], f64[2,3]");
  CHECK(type_error(Opcode::matvec_, {M, Type::tensor(Kind::f32, {3})}) ==
        "matvec: expected operands of one element type, got f64[2,3], f32[3]");
  CHECK(type_error(Opcode::broadcast_, {V, Type::tensor(Kind::f64, {3, 2})}) ==
        "broadcast: expected shapes that fit \"T,=LT->LT\", got f64[3], f64[3,2]");
  CHECK(type_error(Opcode::tree_left_, {F64}) == "tree_left: expected a tree, got f64");
  CHECK_THROWS_AS(infer_type(Opcode::branch_, std::vector{Bool}, 0), InternalError);
}

TEST_CASE("the files that name each operation, beside its row", "[op_table]") {
  // An operation that is added needs none of them: what all ask of it stands in its row. What does name one treats it
  // in a way of its own.
  const std::filesystem::path root = std::filesystem::path(LANTERN_TEST_DIR).parent_path();
  std::map<std::string, std::set<std::string>> files;
  for (const char* folder : {"codegen", "compiler", "ir", "runtime"})
    for (const auto& entry : std::filesystem::recursive_directory_iterator(root / folder)) {
      const std::string extension = entry.path().extension().string();
      if (extension != ".cpp" && extension != ".hpp") continue;
      std::ifstream in(entry.path());
      const std::string text(std::istreambuf_iterator<char>(in), {});
      constexpr std::string_view prefix = "Opcode::";
      for (std::size_t at = text.find(prefix); at != std::string::npos; at = text.find(prefix, at + 1)) {
        const std::size_t from = at + prefix.size();
        const std::size_t end = text.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_", from);
        const std::string name = text.substr(from, end - from);
        if (name.size() > 1 && name.back() == '_')
          files[name.substr(0, name.size() - 1)].insert(entry.path().lexically_relative(root).string());
      }
    }
  std::string list;
  for (const Opcode op : all_opcodes()) {
    if (op >= Opcode::constant_) continue;
    list += std::string(info(op).name) + ":";
    for (const std::string& file : files[std::string(info(op).name)]) list += " " + file;
    list += "\n";
  }
  lantern::test::check_golden("operations.txt", list);
}
