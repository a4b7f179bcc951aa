// Constant matrices are packed once and kept between calls (runtime/panels.hpp): on either side of a product,
// of sizes that fill no tile and several blocks; what is not said to be constant is not kept.
#include "lantern/runtime/panels.hpp"

#include "lantern/codegen/toolchain/clang.hpp"
#include "printed_code.hpp"

using namespace lantern;
using namespace lantern::test;

namespace {

std::vector<double> waves(std::int64_t n, double phase) {
  std::vector<double> v(static_cast<std::size_t>(n));
  for (std::size_t i = 0; i < v.size(); ++i) v[i] = std::sin(1.3 * static_cast<double>(i) + phase);
  return v;
}

std::span<const std::byte> memory_of(const std::vector<double>& v) { return std::as_bytes(std::span(v)); }

/// The largest error of c = a b, of m by k and k by n.
double error(const Matrix& c, const Matrix& a, const Matrix& b) {
  const std::int64_t m = a.dim[0], k = a.dim[1], n = b.dim[1];
  REQUIRE((c.dim[0] == m && c.dim[1] == n));
  double worst = 0;
  for (std::int64_t i = 0; i < m; ++i)
    for (std::int64_t j = 0; j < n; ++j) {
      double sum = 0;
      for (std::int64_t l = 0; l < k; ++l) sum += a.data[i * k + l] * b.data[l * n + j];
      worst = std::max(worst, std::abs(sum - c.data[i * n + j]));
    }
  return worst;
}

Module product() {
  Module m = program(R"(
entry @f
fun @f(%x: f64[?,?], %y: f64[?,?]) -> f64[?,?] {
  %p = matmul %x, %y
  yield %p
})");
  passes::lower(*m, {.packed = true});
  return m;
}

}  // namespace

TEST_CASE("constant operands of products are packed once", "[panels]") {
  const Module m = product();
  codegen::ClangOptions optimised;
  optimised.opt_level = 2;
  std::vector<Built> all;
  all.push_back({"clang", codegen::compile_with_clang(print_cpp(*m), Language::cpp, optimised)});
  all.push_back({"c++", codegen::compile_with_system_compiler(print_cpp(*m), Language::cpp, optimised)});
  all.push_back({"tcc", codegen::compile_with_tcc(print_c(*m))});
  struct Sizes {
    std::int64_t m, n, k;
  };
  for (const Built& built : all)
    for (const Sizes s : {Sizes{70, 90, 33}, {13, 300, 600}, {300, 7, 290}, {40, 49, 512}, {5, 33, 530}}) {
      INFO(built.how << ": " << s.m << " by " << s.n << ", sums over " << s.k);
      std::vector<double> a = waves(s.m * s.k, 0.1), b = waves(s.k * s.n, 0.7);
      const Matrix x = view(a, s.m), y = view(b, s.k);
      for (const bool left : {true, false}) {
        Panels panels({memory_of(left ? a : b)});
        std::int64_t packed = -1;
        for (int call_number = 0; call_number < 3; ++call_number) {
          Workspace ws;  // of one thread or another
          ws.get()->panels = panels.get();
          Matrix c;
          call(ws, built, "f", {&x, &y}, {&c});
          CHECK(error(c, x, y) < 1e-11);
          if (packed >= 0) CHECK(panels.get()->count == packed);  // no call packs it again
          packed = panels.get()->count;
          std::vector<double>& changing = left ? b : a;
          for (double& v : changing) v = 0.5 - v;
        }
        // Of few rows, which are not packed, it takes part in products as it is.
        const bool few = left && s.m <= 48;
        CHECK(packed <= (built.how == "tcc" ? 0 : 1));
        CHECK((few || packed == (built.how == "tcc" ? 0 : 1)));
      }
    }
}

TEST_CASE("matrices that are not constant, or in part, are not kept", "[panels]") {
  const Module m = product();
  codegen::ClangOptions optimised;
  optimised.opt_level = 2;
  const Built built{"clang", codegen::compile_with_clang(print_cpp(*m), Language::cpp, optimised)};
  std::vector<double> a = waves(60 * 50, 0.1), b = waves(50 * 80, 0.7), other(10);
  const Matrix x = view(a, 60), y = view(b, 50);
  for (const std::span<const std::byte> constant :
       {memory_of(other), memory_of(a).first(59 * 50 * sizeof(double))}) {
    Panels panels({constant, memory_of(other).first(0)});
    Workspace ws;
    ws.get()->panels = panels.get();
    Matrix c;
    call(ws, built, "f", {&x, &y}, {&c});
    CHECK(error(c, x, y) < 1e-11);
    CHECK(panels.get()->count == 0);
  }
}
