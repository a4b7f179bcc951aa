// What `using namespace lantern` leaves to a program: every name that lantern.hpp does not list, at global scope too.
#include <catch2/catch.hpp>

#include "lantern/lantern.hpp"

using namespace lantern;

// Functions of Reps are found by their arguments, the compiler's own classes lie deeper.
static const double sum = 1.0, dot = 2.0, outer = 3.0, transpose = 4.0, concat = 5.0, argmax = 6.0;
static const int fill = 7, matmul = 8, logsumexp = 9, zeros_like = 10, as_tensor = 11, sign = 12;

struct Datum {};
struct Datums {};
struct Operation {};
struct Location {};
struct Mode {};
struct At {};
struct Context {};
struct Staging {};
struct Barrier {};
struct VarCell {};
struct Boxed {};
enum class Opcode { none };
static const int here = 13, context = 14, evaluate = 15, strip = 16, label_of = 17, resolved = 18;
static const bool detail_is_ours = true, ad = true, driver = true, control = true, detail = true;
namespace {
struct Part {};
struct Kind {};
struct Block {};
struct Function {};
struct Module {};
struct Value {};
}  // namespace

namespace {

Rep<double> energy(Rep<Array<double>> a, Rep<Tensor<double, dyn, dyn>> m) {
  const auto b = ::lantern::core::fill(Rep<double>(2.0), a.size());
  Rep<double> e = FOR(0, a.size(), 0.0, [&](Rep<int64_t> i, Rep<double> s) { return s + exp(a[i]) * b[i]; });
  return e + m(0, 0) + max(e, 0.0);
}

}  // namespace

TEST_CASE("a program's own names stand beside lantern's") {
  CHECK(sum + dot + outer + transpose + concat + argmax == 21.0);
  CHECK(fill + matmul + logsumexp + zeros_like + as_tensor + sign == 57);
  CHECK(here + context + evaluate + strip + label_of + resolved == 93);
  CHECK((detail_is_ours && ad && driver && control && detail));
  CHECK(sizeof(Datum) + sizeof(Datums) + sizeof(Operation) + sizeof(Location) + sizeof(Mode) + sizeof(At) +
            sizeof(Context) + sizeof(Staging) + sizeof(Barrier) + sizeof(VarCell) + sizeof(Boxed) + sizeof(Part) +
            sizeof(Kind) + sizeof(Block) + sizeof(Function) + sizeof(Module) + sizeof(Value) ==
        17);
  CHECK(static_cast<int>(Opcode::none) == 0);

  const std::vector<double> a{0.0, 1.0}, m{3.0};
  const double e = 2.0 + 2.0 * std::exp(1.0);
  CHECK(eager(energy)(a, TensorView<const double>(m.data(), {1, 1})) == Approx(2.0 * e + 3.0));
}

TEST_CASE("what hides a name of lantern's is asked for by its arguments or its place") {
  const auto f = [](Rep<double> x) {
    const double mode = 2.0;
    const bool on = true;
    return on ? mode * x * x : x;
  };
  CHECK(eager(grad<mode::forward>(f))(3.0) == 12.0);
}
