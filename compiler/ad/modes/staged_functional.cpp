// Purely functional reverse mode, staged (Lantern paper, 3.6).
//
// A continuation returns a map from identities to adjoints; an operator returns that map with its operands'
// shares added and its own entry left out. What an operator does to the map is a function from store to
// store. Branches and iterations of loops pass the whole map: its entries are the values that enter and leave
// their backward blocks, and the code has no cells, before any pass has run.
#include "lantern/compiler/ad/modes/two_pass.hpp"

namespace lantern::core::ad {

namespace {

class StagedFunctional : public TwoPass {
 public:
  using TwoPass::TwoPass;
  const char* name() const override { return "functional reverse mode"; }

 private:
  Update update(Step s, Name id) override {
    return [this, s = std::move(s), id] { store_ = returned(s, id, std::move(store_)); };
  }

  /// The store that the operator returns, where its continuation returned `store`.
  Store returned(const Step& s, Name id, Store store) {
    const auto own = store.extract(id);
    if (own.empty()) return store;
    backward_order(s.op.code, s.operands.size(), [&](std::size_t i) {
      const Variable* x = receiver(s, i);
      if (!x) return;
      Datum& entry = store[x->name];
      entry = received(std::exchange(entry, {}), s, i, own.mapped());
    });
    return store;
  }

  Names passed(const Names& outs, const Names& touched) override {
    Names whole = TwoPass::passed(outs, touched);
    for (const auto& [x, adjoint] : store_) include(whole, x);
    return whole;
  }
};

}  // namespace

std::shared_ptr<TwoPass> make_staged_functional(Staging& staging, std::uint64_t tag) {
  return std::make_shared<StagedFunctional>(staging, tag);
}

}  // namespace lantern::core::ad
