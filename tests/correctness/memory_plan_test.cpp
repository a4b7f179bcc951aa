// Memory that nobody reads any more is used again, and how much a program takes at one time is known
// beforehand.
#include <catch2/catch.hpp>
#include <cstring>
#include <thread>

#include "agree.hpp"
#include "../../tools/lanternc/arena.hpp"
#include "lantern/compiler/passes/pipeline.hpp"
#include "printed_code.hpp"

using namespace lantern;
using namespace lantern::core;
using namespace lantern::test;

namespace {

using M = Rep<Tensor<double, dyn, dyn>>;
using Large = Rep<Tensor<double, 96, 96>>;
using I = Rep<std::int64_t>;

/// The value and the bytes of workspace of a call in a thread that has made no other.
template <class F, class... X>
auto in_new_thread(const F& f, const X&... x) {
  std::pair<decltype(f(x...)), std::int64_t> result;
  std::thread([&] {
    result.first = f(x...);
    result.second = driver::workspace_bytes();
  }).join();
  return result;
}

TensorValue<double> matrix(std::int64_t n) {
  TensorValue<double> m({n, n});
  for (std::size_t i = 0; i < m.data.size(); ++i)
    m.data[i] = std::sin(1.3 * static_cast<double>(i)) / static_cast<double>(n);
  return m;
}

template <class T>
T layers(int n, T x, const T& w) {
  for (int i = 0; i < n; ++i) x = tanh(matmul(x, w)) + transpose(x);
  return x;
}

void same(const TensorValue<double>& a, const TensorValue<double>& b) {
  REQUIRE(a.data.size() == b.data.size());
  double most = 0;
  for (std::size_t i = 0; i < a.data.size(); ++i) {
    const double apart = std::abs(a.data[i] - b.data[i]) / (1 + std::abs(b.data[i]));
    most = apart <= most ? most : apart;  // of a NaN it stays one
  }
  CHECK(most < 1e-11);
}

/// What the passes make of a program.
template <class F>
Module optimised(const F& f) {
  std::vector<ir::Type> types;
  using Params = typename detail::FunctionTraits<F>::Params;
  [&]<class... P>(std::type_identity<std::tuple<P...>>) {
    (detail::types_of<P>(types), ...);
  }(std::type_identity<Params>{});
  Module m = core::driver::stage("f", types, detail::program_of(f).run);
  run_on_large_stack([&] { passes::run_pipeline(*m); });
  return m;
}

/// How many bytes of the arena a call writes to, or leaves lie between what it does.
std::int64_t touched(lt_entry* entry, const std::vector<const void*>& in, const std::vector<void*>& out,
                     std::vector<lt_target> targets) {
  constexpr int pattern = 0xA5;
  constexpr std::int64_t piece = 64;
  Workspace ws;
  std::vector<lt_target> first = targets;
  ws.call(entry, in.data(), out.data(), first.data());
  const auto start = [](lt_chunk* c) {
    const auto address = reinterpret_cast<std::uintptr_t>(c + 1);
    return reinterpret_cast<unsigned char*>((address + piece - 1) / piece * piece);
  };
  for (lt_chunk* c = ws.get()->first; c; c = c->next)
    std::memset(start(c), pattern, static_cast<std::size_t>(c->capacity));
  ws.call(entry, in.data(), out.data(), targets.data());
  std::int64_t bytes = 0;
  for (lt_chunk* c = ws.get()->first; c; c = c->next)
    for (std::int64_t at = 0; at < c->capacity; at += piece)
      if (std::any_of(start(c) + at, start(c) + at + piece, [](unsigned char b) { return b != pattern; }))
        bytes += piece;
  return bytes;
}

}  // namespace

TEST_CASE("a chain of tensors takes the memory of a few of them, however long it is", "[memory_plan]") {
  const auto w = matrix(40), x = matrix(40);
  for (const auto& way : {CompileOptions{.target = Target::c}, CompileOptions{.target = Target::cpp}}) {
    const auto chain = [&](int n) { return compile([n](M a, M b) { return layers(n, a, b); }, way); };
    const auto [y, few] = in_new_thread(chain(4), x, w);
    const auto [z, many] = in_new_thread(chain(24), x, w);
    CHECK(many <= few);
    same(y, eager([](M a, M b) { return layers(4, a, b); })(x, w));
    same(z, eager([](M a, M b) { return layers(24, a, b); })(x, w));
  }
}

TEST_CASE("states of a loop take turns in two pieces of memory", "[memory_plan]") {
  const auto power = [](M x, M w, I n) {
    return FOR(0, n, x, [&](I, M y) { return tanh(matmul(y, w)) + transpose(y); });
  };
  const auto w = matrix(40), x = matrix(40);
  for (const auto& way : {CompileOptions{.target = Target::c}, CompileOptions{.target = Target::cpp}}) {
    const auto compiled = compile(power, way);
    const auto [y, few] = in_new_thread(compiled, x, w, std::int64_t{3});
    const auto [z, many] = in_new_thread(compiled, x, w, std::int64_t{50});
    CHECK(many == few);
    CHECK(many <= 65536);  // three matrices of 12,800 bytes
    same(y, eager(power)(x, w, 3));
    same(z, eager(power)(x, w, 50));
    for (const std::int64_t n : {0, 1, 2}) same(compiled(x, w, n), eager(power)(x, w, n));
  }
}

TEST_CASE("states that go round have the memory of three others at first", "[memory_plan]") {
  const auto round = [](M x, M y, M z, I n) {
    const auto [a, b, c] = FOR(0, n, std::tuple(x, y, z), [&](I i, M p, M q, M r) {
      return IF(
          i % 5 == 4, [&] { return std::tuple(M(tanh(matmul(q, r))), r, p); },
          [&] { return std::tuple(q, r, p); });
    });
    return std::tuple(a, b, c);
  };
  const auto x = matrix(24), y = matrix(25), z = matrix(26);
  const auto square = [](const TensorValue<double>& m) {
    TensorValue<double> s({24, 24});
    std::copy_n(m.data.begin(), s.data.size(), s.data.begin());
    return s;
  };
  for (const auto& way : {CompileOptions{.target = Target::c}, CompileOptions{.target = Target::cpp}}) {
    const auto compiled = compile(round, way);
    for (const std::int64_t n : {0, 1, 2, 3, 4, 5, 6, 23}) {
      const auto [a, b, c] = compiled(x, square(y), square(z), n);
      const auto [a1, b1, c1] = eager(round)(x, square(y), square(z), n);
      same(a, a1);
      same(b, b1);
      same(c, c1);
    }
  }
}

TEST_CASE("what is handed on is not used again", "[memory_plan]") {
  // Both sides of a branch, states that change places, a tensor that a later iteration reads, results that share
  // memory.
  const auto program = [](M x, M w, I n) {
    auto [a, b, c] = FOR(0, n, std::tuple(x, w, x + w), [&](I i, M p, M q, M r) {
      const M s = matmul(p, q) * 0.5;
      const M t = IF(
          i % 2 == 0, [&] { return s + r; }, [&] { return transpose(s); });
      return std::tuple(q, tanh(t),
                        IF(
                            i % 3 == 0, [&] { return p; }, [&] { return t - r; }));
    });
    const M d = a + b;
    return std::tuple(d, a, sum(matmul(d, c)), d);
  };
  const auto w = matrix(24), x = matrix(24);
  for (const auto& way : {CompileOptions{.target = Target::c}, CompileOptions{.target = Target::cpp},
                          CompileOptions{.target = Target::cpp, .threads = 2, .lanes = 2}}) {
    const auto compiled = compile(program, way);
    for (const std::int64_t n : {0, 1, 2, 3, 7, 20}) {
      CAPTURE(n);
      const auto [d, a, s, e] = compiled(x, w, n);
      const auto [d1, a1, s1, e1] = eager(program)(x, w, n);
      same(d, d1);
      same(a, a1);
      same(e, e1);
      CHECK(s == Approx(s1).margin(1e-12));
    }
  }
}

TEST_CASE("the gradient of a chain and of a loop, in memory that is used again", "[memory_plan]") {
  const auto loss = [](M x, M w, I n) {
    return sum(FOR(0, n, layers(3, x, w), [&](I, M y) { return tanh(matmul(y, w)) + 0.1 * transpose(y); }));
  };
  const auto w = matrix(24), x = matrix(24);
  for (const auto& way : {CompileOptions{.target = Target::c}, CompileOptions{.target = Target::cpp}}) {
    const auto [dx, dw] = compile(grad<0, 1>(loss), way)(x, w, 6);
    const auto [ex, ew] = eager(grad<0, 1>(loss))(x, w, 6);
    same(dx, ex);
    same(dw, ew);
  }
}

TEST_CASE("the most that a program takes at one time is known beforehand", "[memory_plan]") {
  const auto chain = [](Large x, Large w) { return layers(6, x, w); };
  const auto gradient = grad<0, 1>([](Large x, Large w) { return sum(layers(6, x, w)); });
  const auto loop = [](Large x, Large w) {
    return FOR(0, 20, x, [&](I, Large y) { return tanh(matmul(y, w)) + transpose(y); });
  };
  const auto check = [](const char* what, const auto& program, std::size_t results) {
    INFO(what);
    const Module m = optimised(program);
    const tool::ArenaUse use = tool::arena_use(*m);
    REQUIRE(use.peak.number());
    constexpr std::int64_t n = 96;
    std::vector<double> x(n * n, 0.01), w(n * n, 0.02);
    const Matrix mx = view(x, n), mw = view(w, n);
    std::vector<std::vector<double>> memory(results, std::vector<double>(n * n));
    std::vector<Matrix> given(results);
    std::vector<void*> out;
    std::vector<lt_target> targets;
    for (std::size_t i = 0; i < results; ++i) {
      out.push_back(&given[i]);
      targets.push_back({memory[i].data(), n * n * 8});
    }
    const auto code = codegen::compile_with_tcc(codegen::print_c(*m, {}));
    const std::int64_t measured =
        touched(code->template function<lt_entry>(m->entry->name + "_entry"), {&mx, &mw}, out, targets);
    CHECK(static_cast<double>(measured) == Approx(*use.peak.number()).epsilon(0.05));
  };
  check("chain", chain, 1);
  check("gradient", gradient, 2);
  check("loop", loop, 1);
}

TEST_CASE("sizes that are not known are named", "[memory_plan]") {
  const auto f = [](M x, M w) { return sum(layers(4, x, w)); };
  const Module m = optimised(f);
  const tool::ArenaUse use = tool::arena_use(*m);
  CHECK_FALSE(use.peak.number());
  CHECK(use.peak.str().find(".dim(") != std::string::npos);
  CHECK(tool::ByteCount(24).str() == "24 bytes");
  tool::ByteCount n = tool::ByteCount(8) * tool::ByteCount::named("x.size()");
  CHECK(n.str() == "8 * x.size()");
  CHECK((n += tool::ByteCount(64)).str() == "64 bytes + 8 * x.size()");
  CHECK((n -= tool::ByteCount(64)).str() == "8 * x.size()");
}
