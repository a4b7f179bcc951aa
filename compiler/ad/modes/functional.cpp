// Purely functional reverse mode, by store passing (Lantern paper, 3.6).
//
// Every variable has an identity. A continuation returns a map from identities to adjoints, and an operator
// returns that map with its operands' shares added and its own entry left out. Maps are passed by value and
// moved: no map is used after it was passed on.
#include <map>

#include "lantern/compiler/ad/modes/eager_reverse.hpp"
#include "lantern/compiler/control/control.hpp"

namespace lantern::core::ad {

namespace {

using Id = Name;
using Store = std::map<Id, Datum, std::less<>, PoolAllocator<std::pair<const Id, Datum>>>;

/// The store in which g has been added to the adjoint of x.
Store plus(Store store, Id x, const Datum& g, const Location& loc) {
  Datum& entry = store[x];
  entry = sum(entry, g, loc);
  return store;
}

class Functional : public EagerReverse {
 public:
  using EagerReverse::EagerReverse;
  const char* name() const override { return "functional reverse mode"; }

  Datum input(const Datum& primal) override { return fresh(primal); }
  void run(const std::function<void()>& program) override {
    adjoints_ = reset(prompt_, [this, &program] {
      program();
      return std::move(seeds_);
    });
  }
  void seed(const Datum& result, const Datum& g, const Location& loc) override {
    if (const auto* z = number_of<Named>(result)) seeds_ = plus(std::move(seeds_), z->name, g, loc);
  }
  Datum adjoint(const Datum& input, const Location& loc) override {
    const auto* x = number_of<Named>(input);
    const auto found = adjoints_.find(x->name);
    return found == adjoints_.end() ? zeros_like(x->primal, loc) : found->second;
  }

 private:
  Datum fresh(const Datum& primal) { return make_number<Named>(primal, ++ids_); }

  Datums handle_step(Step b) override {
    return shift<Datums>(prompt_, [this, b = std::move(b)](auto k) -> Store {
      require_stack(b);
      const Datums y = numbers(b.values(), [this](const Datum& v) { return fresh(v); });
      Store store = k(y);
      Datums own;
      for (const Datum& r : y) {
        const auto* number = number_of<Named>(r);
        auto entry = number ? store.extract(number->name) : Store::node_type();
        own.push_back(entry.empty() ? Datum() : std::move(entry.mapped()));
      }
      const Datums shares = b.shares(own);
      for (std::size_t i = shares.size(); i-- > 0;)
        if (!shares[i].empty()) store = plus(std::move(store), number_of<Named>(b.operands()[i])->name, shares[i], b.backward());
      return store;
    });
  }

  Prompt<Store> prompt_;
  Id ids_ = 0;
  Store seeds_, adjoints_;  // the empty store and the seeds in it, and the answer: one each a run
};

}  // namespace

std::shared_ptr<EagerReverse> make_functional(std::uint64_t tag) { return std::make_shared<Functional>(tag); }

}  // namespace lantern::core::ad
