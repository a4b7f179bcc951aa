// The fast path of taped reverse mode (taped.cpp has the rule): no control operators, doubles where they are
// available, and a tape of bytes on which an entry says what the result of one operation passes on to its
// operands. The name of a derivative is where it lies on the tape.
#include <memory>
#include <optional>

#include "lantern/compiler/ad/modes/eager_reverse.hpp"
#include "lantern/compiler/control/byte_stack.hpp"

namespace lantern::core::ad {

namespace {

class FastTaped : public EagerReverse {
 public:
  using EagerReverse::EagerReverse;
  ~FastTaped() override {
    while (last_) pop();
  }
  const char* name() const override { return "taped reverse mode"; }

  Datum apply(const Operation& op, std::span<const Datum> operands) override {
    const auto primal_of = [this](const Datum& d) -> const Datum& { return primal(d); };
    DoubleStep step;
    if (step.perform(op, operands, primal_of)) return apply(operands, step);
    return EagerReverse::apply(op, operands);
  }

  Datum input(const Datum& primal) override { return make_number<Variable>(primal, &push(0)); }
  void run(const std::function<void()>& program) override {
    struct Clear {
      FastTaped& taped;
      Name inputs;
      ~Clear() {
        while (taped.last_ != inputs) taped.pop();  // what is on the tape refers to this mode
      }
    } clear{*this, last_};
    program();
    for (; last_ != clear.inputs; pop()) reverse(*last_);
  }
  void seed(const Datum& result, const Datum& g, const Location& loc) override {
    if (number_of(result)) add(*name_of(result), g, loc);
  }
  Datum adjoint(const Datum& input, const Location& loc) override {
    const Datum& d = name_of(input)->derivative;
    return d.empty() ? zeros_like(primal(input), loc) : d;
  }

 private:
  struct Entry;
  /// The name of a derivative is where it lies: on the tape, with what the operation passes on.
  using Name = Entry*;
  struct Variable : TaggedBox {
    Variable(Mode& m, Datum p, Name n) : TaggedBox(m, std::move(p)), name(n) {}
    Name name;
  };
  /// `name` receives the result's derivative times the factor.
  struct Weight {
    Name name;
    double factor;
  };
  /// What is on the tape for a step whose derivatives are no known doubles: they, or the step where
  /// they are no numbers at all, and the results.
  struct Kept {
    std::vector<std::pair<Name, Datum>> factors;
    std::optional<Step> step;
    Datums results;
  };
  /// A derivative on the tape, as a cell for the time of one accumulation.
  class Borrowed final : public EagerCell {
   public:
    Borrowed(Datum& d, const Datum& p) : d_(d), like_(p) {
      if (!d.empty()) add(std::exchange(d, {}), {});
    }
    ~Borrowed() override {
      if (touched()) d_ = get({});
    }

   private:
    const Datum& like() const override { return like_; }
    Datum& d_;
    const Datum& like_;
  };
  struct Entry {
    Datum derivative;  // of the result; empty: zero
    Name below;
    std::unique_ptr<Kept> kept;
    std::uint32_t weight_count;

    Weight* weights() { return reinterpret_cast<Weight*>(this + 1); }
    std::size_t bytes() const { return sizeof(Entry) + weight_count * sizeof(Weight); }
  };

  Name name_of(const Datum& d) const { return static_cast<Variable*>(d.box())->name; }

  Datum apply(std::span<const Datum> operands, const DoubleStep& step) {
    const auto depends = [&](std::size_t i) { return number_of(operands[i]) && step.carries(i); };
    std::uint32_t count = 0;
    for (std::size_t i = 0; i < operands.size(); ++i) count += depends(i);
    if (count == 0) return step.value();
    Entry& e = push(count);
    Weight* w = e.weights();
    for (std::size_t i = 0; i < operands.size(); ++i)
      if (depends(i)) ::new (static_cast<void*>(w++)) Weight{name_of(operands[i]), step.partial(i)};
    return make_number<Variable>(step.value(), &e);
  }

  Entry& push(std::uint32_t weights) {
    const std::size_t bytes = sizeof(Entry) + weights * sizeof(Weight);
    return *(last_ = ::new (tape_.push(bytes)) Entry{{}, last_, nullptr, weights});
  }
  void pop() {
    Entry& e = *last_;
    last_ = e.below;
    const std::size_t bytes = e.bytes();
    e.~Entry();
    tape_.pop(bytes);
  }

  static void add(Entry& x, const Datum& g, const Location& loc) { x.derivative = sum(x.derivative, g, loc); }

  Datums handle_step(Step b) override {
    Kept k;
    k.results = numbers(b.values(), [this](const Datum& y) { return make_number<Variable>(y, &push(0)); });
    if (b.has_partials()) {
      for (std::size_t i = 0; i < b.operands().size(); ++i)
        if (b.depends_on(i)) k.factors.emplace_back(name_of(b.operands()[i]), b.partial(i));
    } else {
      k.step = std::move(b);
    }
    Datums results = k.results;
    // Above the results: what is passed on to them is complete when its turn comes.
    push(0).kept = std::make_unique<Kept>(std::move(k));
    return results;
  }

  void reverse(Entry& e) {
    if (e.kept) return reverse(*e.kept);
    const Datum g = std::move(e.derivative);
    if (g.empty()) return;
    for (const Weight& w : std::span(e.weights(), e.weight_count)) add(*w.name, times(w.factor, g, {}), {});
  }
  void reverse(const Kept& k) {
    Datums cotangents;
    for (const Datum& y : k.results)
      cotangents.push_back(number_of(y) ? std::exchange(name_of(y)->derivative, {}) : Datum());
    if (!k.step) {
      if (const Datum& g = cotangents[0]; !g.empty())
        for (const auto& [x, factor] : k.factors) add(*x, perform({Opcode::mul_, 0, {}}, {factor, g}), {});
      return;
    }
    std::optional<Borrowed> cell;
    k.step->propagate(cotangents, [&](const Datum& x) -> Cell& {
      cell.reset();
      return cell.emplace(name_of(x)->derivative, static_cast<Variable*>(x.box())->primal);
    });
  }

  ByteStack tape_;
  Name last_ = nullptr;
};

}  // namespace

std::shared_ptr<EagerReverse> make_fast_taped(std::uint64_t tag) { return std::make_shared<FastTaped>(tag); }

}  // namespace lantern::core::ad
