// Continuation reverse mode (thesis, 4.3, listing 4.7).
//
// A number is a value with its backpropagator, the linear function that takes the number's cotangent to the
// gradient of the inputs. It is run once for each use of the number, so that a gradient costs what the paths
// through the program cost: quadratic for a value that each iteration of a loop reads, exponential for t = t * t.
// The thesis finds the wrong complexity in four languages (6.2) and proves the mode correct (8.3). What that
// proof rests on is that backpropagators are linear, and a linear function may be run once, on the sum:
//
//   dx z1 + dx z2 = dx (z1 + z2)
//
// (linear factoring: Brunel, Mazza and Pagani, "Backpropagation in the Simply Typed Lambda-Calculus with
// Linear Negation", POPL 2020). The sum is then what reverse.hpp calls the adjoint, and the backpropagators,
// the last one first, are its backward steps: form::fast of this mode is that of mode::reverse.
#include <deque>

#include "lantern/compiler/ad/modes/eager_reverse.hpp"
#include "lantern/compiler/ad/modes/effects.hpp"

namespace lantern::core::ad {

namespace {

class Continuations : public EagerReverse {
 public:
  using EagerReverse::EagerReverse;
  const char* name() const override { return "continuation reverse mode"; }

  /// prop x {z -> z}, where the gradient has several components: {z -> z at this input}.
  Datum input(const Datum& primal) override {
    const std::size_t at = inputs_++;
    return prop(primal, [this, at](const Datum& z) {
      Gradient g(inputs_);
      g[at] = z;
      return g;
    });
  }

  //   d f x = let bp = dv (reverse (f (prop x {z -> z}))) in bp (c 1.0)
  // Calls of backpropagators are as deep as the program is long.
  void run(const std::function<void()>& program) override {
    run_on_large_stack([&] {
      struct Forget {
        std::deque<Backpropagator>& made;
        std::size_t inputs;
        ~Forget() {
          while (made.size() > inputs) made.pop_back();  // each refers to ones before it, and to this mode
        }
      } forget{made_, inputs_};
      handle([&program] { program(); }, resuming<Smooth>(this, [this](const Step& b) { return reverse(b); }));
      gradient_ = result_ ? (*result_)(seed_) : Gradient(inputs_);
    });
  }
  void seed(const Datum& result, const Datum& g, const Location&) override {
    if (!number_of(result)) return;
    result_ = dv(result);
    seed_ = g;
  }
  Datum adjoint(const Datum& input, const Location& loc) override {
    const Datum& g = gradient_[next_++];
    return g.empty() ? zeros_like(primal(input), loc) : g;
  }

 private:
  /// By input; empty where it is zero.
  using Gradient = Datums;
  using Backpropagator = std::function<Gradient(const Datum& z)>;
  struct Prop : TaggedBox {
    Prop(Mode& m, Datum p, const Backpropagator& b) : TaggedBox(m, std::move(p)), d(&b) {}
    const Backpropagator* d;
  };

  //   reverse <ap2 b (prop x dx) (prop y dy) -> k> =
  //     let r = prop (ap2 b x y) {z -> p (dx (t (der2 L b x y) z)) (dy (t (der2 R b x y) z))} in
  //     reverse (k r)
  Datums reverse(const Step& b) {
    std::size_t j = 0;
    Datums r;
    for (const Datum& y : b.values()) {
      r.push_back(!y.type().is_differentiable() ? y : prop(y, [this, b, j](const Datum& z) {
        Datums cotangents(b.values().size());
        cotangents[j] = z;
        const Datums shares = b.shares(cotangents);
        Gradient sum(inputs_);
        require_stack(b);
        for (std::size_t i = 0; i < shares.size(); ++i)
          if (!shares[i].empty()) sum = p(std::move(sum), (*dv(b.operands()[i]))(shares[i]), b.backward());
        return sum;
      }));
      ++j;
    }
    return r;
  }

  Datum prop(const Datum& value, Backpropagator d) {
    return make_number<Prop>(value, made_.emplace_back(std::move(d)));
  }
  const Backpropagator* dv(const Datum& x) const { return number_of<Prop>(x)->d; }

  static Gradient p(Gradient a, const Gradient& b, const Location& loc) {
    for (std::size_t i = 0; i < a.size(); ++i) a[i] = sum(a[i], b[i], loc);
    return a;
  }

  std::deque<Backpropagator> made_;
  std::size_t inputs_ = 0, next_ = 0;
  const Backpropagator* result_ = nullptr;
  Datum seed_;
  Gradient gradient_;
};

}  // namespace

std::shared_ptr<EagerReverse> make_continuation(std::uint64_t tag) {
  return std::make_shared<Continuations>(tag);
}

}  // namespace lantern::core::ad
