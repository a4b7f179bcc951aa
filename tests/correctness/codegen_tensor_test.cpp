// Tensors in printed code: values, memory, failures.
#include <algorithm>

#include "printed_code.hpp"

using namespace lantern;
using namespace lantern::core;
using namespace lantern::test;

TEST_CASE("linear algebra") {
  Module m = program(R"(
entry @f
fun @f(%w: f64[?,?], %x: f64[?], %b: f64[2]) -> f64[2], f64[?,?], f64[?], f64[?,2], f64, i64 {
  %h = matvec %w, %x
  %t = add %h, %b
  %o = outer %t, %x
  %s = add_outer %o, %b, %x
  %tr = transpose %o
  %mm = matmul %tr, %w
  %am = add_matmul %mm, %tr, %s
  %v = vecmat %x, %am
  %red = reduce_to %am, %v
  %wide = broadcast %b, %tr
  %d = dot %v, %red
  %best = argmax %v
  yield %t, %am, %v, %wide, %d, %best
})");
  std::vector<double> w{1, -2, 3, 0.5, 4, -1}, x{2, 1, -1}, b{0.25, 3};
  const Matrix mw = view(w, 2);
  const Vector vx = view(x), vb = view(b);
  std::vector<double> t(2), am(9, 0.0), v(3, 0.0), red(3, 0.0);
  double d = 0;
  for (std::size_t i = 0; i < 2; ++i) {
    for (std::size_t j = 0; j < 3; ++j) t[i] += w[3 * i + j] * x[j];
    t[i] += b[i];
  }
  for (std::size_t i = 0; i < 3; ++i)
    for (std::size_t j = 0; j < 3; ++j)
      for (std::size_t k = 0; k < 2; ++k)
        am[3 * i + j] += t[k] * x[i] * (w[3 * k + j] + t[k] * x[j] + b[k] * x[j]);
  for (std::size_t i = 0; i < 3; ++i)
    for (std::size_t j = 0; j < 3; ++j) {
      v[j] += x[i] * am[3 * i + j];
      red[j] += am[3 * i + j];
    }
  for (std::size_t j = 0; j < 3; ++j) d += v[j] * red[j];
  for (const Built& built : build(*m)) {
    INFO(built.how);
    Workspace ws;
    Vector rt, rv;
    Matrix ram, rwide;
    double rd = 0;
    std::int64_t best = -1;
    call(ws, built, "f", {&mw, &vx, &vb}, {&rt, &ram, &rv, &rwide, &rd, &best});
    CHECK(numbers(rt) == t);
    REQUIRE(numbers(ram).size() == 9);
    for (std::size_t i = 0; i < 9; ++i) CHECK(numbers(ram)[i] == Approx(am[i]));
    for (std::size_t i = 0; i < 3; ++i) CHECK(numbers(rv)[i] == Approx(v[i]));
    CHECK(numbers(rwide) == std::vector<double>{0.25, 3, 0.25, 3, 0.25, 3});
    CHECK(rd == Approx(d));
    CHECK(best == std::max_element(v.begin(), v.end()) - v.begin());

    std::vector<double> four{1, 2, 3, 4};
    const Vector bad = view(four);
    CHECK(failure(built, "f", {&mw, &bad, &vb}, {&rt, &ram, &rv, &rwide, &rd, &best}) ==
          "matvec: shapes [2, 3] and [4] do not fit");
    CHECK(failure(built, "f", {&mw, &vx, &bad}, {&rt, &ram, &rv, &rwide, &rd, &best}) ==
          "argument b: expected size 2 in dimension 0, got 4");
  }
}

TEST_CASE("rows, elements, and updates that leave their operand alone") {
  Module m = program(R"(
entry @f
fun @f(%a: f64[?,?], %i: i64) -> f64[?], f64[?,?], f64[?,?], f64[?,?], f64[?], f64[?,?], f64[?], bool {
  %zero = constant 0 : i64
  %one = constant 1 : i64
  %two = constant 2 : i64
  %ten = constant 10 : f64
  %row = take %a, %i
  %top = slice %a, %zero, %two
  %cat = concat %top, %a
  %set = set %a, %i, %one, %ten
  %add = add_at %set, %i, %one, %ten
  %at = add_take %add, %zero, %row
  %as = add_slice %at, %one, %top
  %n = dim[0] %a
  %fill = fill %ten, %n
  %z = zeros_like %fill
  %less = lt %z, %fill
  %pick = select %less, %fill, %z
  %e = get %as, %i, %zero
  %positive = lt %ten, %e
  %all = select %positive, %as, %a
  yield %row, %cat, %set, %as, %pick, %all, %fill, %positive
})");
  std::vector<double> a{1, 2, 3, 4, 5, 6};
  const Matrix ma = view(a, 3);
  const std::int64_t i = 1;
  for (const Built& built : build(*m)) {
    INFO(built.how);
    Workspace ws;
    Vector row, pick, fill;
    Matrix cat, set, as, all;
    bool positive = true;
    call(ws, built, "f", {&ma, &i}, {&row, &cat, &set, &as, &pick, &all, &fill, &positive});
    CHECK(numbers(row) == std::vector<double>{3, 4});
    CHECK(numbers(cat) == std::vector<double>{1, 2, 3, 4, 1, 2, 3, 4, 5, 6});
    CHECK(numbers(set) == std::vector<double>{1, 2, 3, 10, 5, 6});
    CHECK(numbers(as) == std::vector<double>{4, 6, 4, 22, 8, 10});
    CHECK(numbers(pick) == std::vector<double>{10, 10, 10});
    CHECK(numbers(all) == a);
    CHECK_FALSE(positive);
    CHECK(a == std::vector<double>{1, 2, 3, 4, 5, 6});
    const std::int64_t bad = 3;
    CHECK(failure(built, "f", {&ma, &bad}, {&row, &cat, &set, &as, &pick, &all, &fill, &positive}) ==
          "index 3 is outside 0..2");
  }
}

TEST_CASE("an update marked as in place uses its operand's memory") {
  Module m = program(R"(
entry @f
fun @f(%n: i64) -> f64[?] {
  %one = constant 1 : f64
  %v = fill %one, %n
  %i = constant 2 : i64
  %s = set %v, %i, %one
  %w = add_at %s, %i, %one
  yield %w
})");
  for (ir::Op* op : m->entry->body->ops)
    if (op->is(ir::Opcode::set_) || op->is(ir::Opcode::add_at_)) op->in_place = true;
  CHECK(excerpt(print_c(*m), "lt_f64_1d f(", "\nvoid") == R"(lt_f64_1d f(lt_workspace* ws, int64_t n) {
  lt_f64_1d v = lt_new_f64_1d(ws, n);
  v.data = (double*)lt_place(ws, 0, v.data, v.dim[0] * (int64_t)sizeof(double));
  lt_fill_f64(v.data, v.dim[0], 1.0);
  if (v.dim[0] <= 2) lt_fail_index(ws, 2, v.dim[0], "");
  v.data[2] = 1.0;
  v.data[2] += 1.0;
  return v;
}
)");
}

TEST_CASE("cells of tensors, and tapes") {
  // Pushes every row's index and the row, then takes them back: the sum of i * row in a cell.
  Module m = program(R"(
entry @f
fun @f(%a: f64[?,2]) -> f64[2], i32 {
  %zero = constant 0 : i64
  %one = constant 1 : i64
  %n = dim[0] %a
  %first = take %a, %zero
  %cell = ref_new %first : ref f64[2]
  %i = loop %zero : i64 while (%i: i64) {
    %c = lt %i, %n
    yield %c
  } do (%i: i64) {
    %row = take %a, %i
    %twice = add %row, %row
    %small = cast[i32] %i
    %odd = eq %i, %one
    push[0] %twice, %small, %odd
    %j = add %i, %one
    yield %j
  }
  %count0 = constant 0 : i32
  %left, %count = loop %i, %count0 : i64, i32 while (%k: i64, %odds: i32) {
    %c = lt %zero, %k
    yield %c
  } do (%k: i64, %odds: i32) {
    %row, %small, %odd = pop[0] : f64[2], i32, bool
    %x = cast[f64] %small
    %wide = broadcast %x, %row
    %p = mul %wide, %row
    ref_add %cell, %p
    %g = get %p, %zero
    ref_acc[add_at] %cell, %one, %g
    %one32 = constant 1 : i32
    %more = add %odds, %one32
    %next = select %odd, %more, %odds
    %j = sub %k, %one
    yield %j, %next
  }
  %r = ref_get %cell : f64[2]
  yield %r, %count
})");
  std::vector<double> a{1, 2, 3, 4, 5, 6};
  const Matrix ma = view(a, 3);
  for (const Built& built : build(*m)) {
    INFO(built.how);
    Workspace ws;
    Vector r;
    std::int32_t count = 0;
    call(ws, built, "f", {&ma}, {&r, &count});
    CHECK(numbers(r) == std::vector<double>{26, 58});
    CHECK(count == 1);
  }
}

TEST_CASE("a loop with tensor temporaries runs in constant memory") {
  Module m = program(R"(
entry @f
fun @f(%x: f64[16], %n: i64) -> f64 {
  %zero = constant 0 : i64
  %one = constant 1 : i64
  %s0 = constant 0 : f64
  %i, %s = loop %zero, %s0 : i64, f64 while (%i: i64, %s: f64) {
    %c = lt %i, %n
    yield %c
  } do (%i: i64, %s: f64) {
    %y = mul %x, %x
    %z = sub %y, %x
    %d = dot %z, %y
    %t = add %s, %d
    %j = add %i, %one
    yield %j, %t
  }
  yield %s
})");
  std::vector<double> x(16, 2.0);
  const Vector vx = view(x);
  const std::int64_t n = 1000000;
  for (const Built& built : build(*m)) {
    INFO(built.how);
    Workspace ws;
    double s = 0;
    call(ws, built, "f", {&vx, &n}, {&s});
    CHECK(s == 16.0 * 2 * 4 * 1e6);
    CHECK(ws.peak_bytes() <= 65536);
  }
}
