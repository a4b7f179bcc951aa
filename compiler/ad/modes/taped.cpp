// Taped reverse mode (thesis, 4.4, listing 4.8): the backward pass, defunctionalised. A number is a value
// with the name of its derivative; what depends on no input has none, and leaves nothing on the tape.
#include <optional>
#include <vector>

#include "lantern/compiler/ad/modes/eager_reverse.hpp"
#include "lantern/compiler/ad/modes/effects.hpp"

namespace lantern::core::ad {

namespace {

/// interface Fresh = fresh : Name
struct Fresh : Effect<Name()> {};

class Taped : public EagerReverse {
 public:
  using EagerReverse::EagerReverse;
  const char* name() const override { return "taped reverse mode"; }

  Datum input(const Datum& primal) override { return make_number<Prop>(primal, inputs_++); }

  // incrementName, reverse, and then the tape, its last pointer first.
  void run(const std::function<void()>& program) override {
    std::vector<Pointer> tape;
    Name next = inputs_;
    handle(
        [&] {
          handle([&program] { program(); },
                 resuming<Smooth>(this, [&](const Step& b) { return reverse(b, tape); }));
        },
        resuming<Fresh>(this, [&next] { return next++; }));
    for (; !tape.empty(); tape.pop_back()) perform_deferred(tape.back());
  }
  void seed(const Datum& result, const Datum& g, const Location& loc) override {
    if (number_of(result)) derivative(result).add(g, loc);
  }
  Datum adjoint(const Datum& input, const Location& loc) override { return derivative(input).get(loc); }

 private:
  using Prop = Named;
  /// An accumulation to be done later: what it depends on, with the saved derivatives. Where these are no
  /// numbers (of tensors, of a function with a rule) the step itself represents them.
  struct Pointer {
    std::vector<std::optional<Name>> results;       ///< one for each value
    std::vector<std::pair<Datum, Datum>> operands;  ///< x, d b / d x
    std::optional<Step> step;
  };

  //   reverse tape <ap2 b (prop x dx) (prop y dy) -> k> =
  //     let res = ap2 b x y in
  //     case (pair dx dy) { (pair (just nx) (just ny)) ->
  //       reverse (double nx ny (der2 L b x y) (der2 R b x y) :: tape) (k (prop res (just fresh!))) | ... }
  Datums reverse(const Step& b, std::vector<Pointer>& tape) {
    Pointer p;
    Datums r;
    for (const Datum& res : b.values()) {
      p.results.push_back(res.type().is_differentiable() ? std::optional(perform_on<Fresh>(this))
                                                         : std::nullopt);
      r.push_back(p.results.back() ? make_number<Prop>(res, *p.results.back()) : res);
    }
    if (b.has_partials()) {
      for (std::size_t i = 0; i < b.operands().size(); ++i)
        if (b.depends_on(i)) p.operands.emplace_back(b.operands()[i], b.partial(i));
    } else {
      p.step = b;
    }
    tape.push_back(std::move(p));
    return r;
  }

  //   (nth nu state) := p du (t vu dk)
  void perform_deferred(const Pointer& p) {
    Datums cotangents;
    bool any = false;
    for (const std::optional<Name> k : p.results) {
      const CellPtr dk = k && *k < state_.size() ? std::exchange(state_[*k], nullptr) : nullptr;
      const bool touched = dk && dk->touched();
      cotangents.push_back(touched ? dk->get({}) : Datum());
      any |= touched;
    }
    if (!any && !(p.step && p.step->ordered())) return;
    if (p.step)
      return p.step->propagate(cotangents, [this](const Datum& x) -> Cell& { return derivative(x); });
    for (const auto& [u, v] : p.operands) derivative(u).add(times(v, cotangents[0]), {});
  }

  static Datum times(const Datum& v, const Datum& dk) { return perform({Opcode::mul_, 0, {}}, {v, dk}); }
  /// @nth n state, which is zero until something is added.
  Cell& derivative(const Datum& x) {
    const auto* number = number_of<Prop>(x);
    if (number->name >= state_.size()) state_.resize(number->name + 1);
    CellPtr& cell = state_[number->name];
    if (!cell) cell = eager_cell(number->primal);
    return *cell;
  }

  Name inputs_ = 0;
  std::vector<CellPtr> state_;
};

}  // namespace

std::shared_ptr<EagerReverse> make_taped(std::uint64_t tag) { return std::make_shared<Taped>(tag); }

}  // namespace lantern::core::ad
