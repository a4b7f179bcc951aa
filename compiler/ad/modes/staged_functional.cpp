// Purely functional reverse mode, staged (Lantern paper, 3.6).
//
// A continuation returns a map from identities to adjoints; an operator returns that map with its operands'
// shares added and its own entry left out. What an operator does to the map is a function from store to
// store. Branches and trips of loops pass the whole map: its entries are the values that enter and leave
// their backward blocks, and the code has no cells, before any pass has run.
#include <algorithm>

#include "lantern/compiler/ad/modes/two_pass.hpp"

namespace lantern::core::ad {

namespace {

class StagedFunctional : public TwoPass {
 public:
  using TwoPass::TwoPass;
  const char* name() const override { return "functional reverse mode"; }

  Datum apply(const Operation& op, std::span<const Datum> operands) override {
    Step s = step(op, operands);
    if (!differentiable(s)) return s.y;
    Datum y = variable(s.y);
    record(operands, [this, s = std::move(s), id = variable_of(y)->name] {
      store_ = returned(s, id, std::move(store_));
    });
    return y;
  }

 private:
  /// The store that the operator returns, where its continuation returned `store`.
  Store returned(const Step& s, Name id, Store store) {
    const auto own = store.extract(id);
    if (own.empty()) return store;
    s.backward([&](std::size_t i) {
      const Variable* x = variable_of(s.operands[i]);
      if (!x || !carries_derivative(s.op, i, s.operands.size())) return;
      Datum& entry = store[x->name];
      entry = received(std::exchange(entry, {}), s, i, own.mapped());
    });
    return store;
  }

  std::vector<Name> passed(const std::vector<Name>& outs, const std::vector<Name>& touched) override {
    std::vector<Name> whole = TwoPass::passed(outs, touched);
    for (const auto& [x, adjoint] : store_)
      if (std::ranges::find(whole, x) == whole.end()) whole.push_back(x);
    return whole;
  }
};

}  // namespace

std::shared_ptr<TwoPass> make_staged_functional(Staging& staging, std::uint64_t tag) {
  return std::make_shared<StagedFunctional>(staging, tag);
}

}  // namespace lantern::core::ad
