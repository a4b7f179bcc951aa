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

using Id = std::uint64_t;
using Store = std::map<Id, Datum, std::less<>, PoolAllocator<std::pair<const Id, Datum>>>;

/// The store in which g has been added to the adjoint of x.
Store plus(Store store, Id x, const Datum& g, const Location& loc) {
  Datum& entry = store[x];
  entry = entry.empty() ? g : perform({Opcode::add_, 0, loc}, {entry, g});
  return store;
}

class Functional : public EagerReverse {
 public:
  using EagerReverse::EagerReverse;
  const char* name() const override { return "functional reverse mode"; }

  Datum apply(const Operation& op, std::span<const Datum> operands) override {
    Step s = step(op, operands);
    if (!differentiable(s)) return s.y;
    return shift<Datum>(prompt_, [this, s = std::move(s)](auto k) -> Store {
      const Datum y = fresh(s.y);
      Store store = k(y);
      const auto own = store.extract(variable_of<Variable>(y)->id);
      if (own.empty()) return store;
      s.backward([&](std::size_t i) {
        const auto* x = variable_of<Variable>(s.operands[i]);
        if (x && s.carries(i)) store = plus(std::move(store), x->id, s.share(i, own.mapped()), s.op.loc);
      });
      return store;
    });
  }

  Datum input(const Datum& primal) override { return fresh(primal); }
  void run(const std::function<void()>& program) override {
    adjoints_ = reset(prompt_, [this, &program] {
      program();
      return std::move(seeds_);
    });
  }
  void seed(const Datum& result, const Datum& g, const Location& loc) override {
    if (const auto* z = variable_of<Variable>(result)) seeds_ = plus(std::move(seeds_), z->id, g, loc);
  }
  Datum adjoint(const Datum& input, const Location& loc) override {
    const auto* x = variable_of<Variable>(input);
    const auto found = adjoints_.find(x->id);
    return found == adjoints_.end() ? zeros_like(x->primal, loc) : found->second;
  }

 private:
  struct Variable : TaggedBox {
    Variable(Mode& m, Datum p, Id i) : TaggedBox(m, std::move(p)), id(i) {}
    Id id;
  };
  Datum fresh(const Datum& primal) { return make_variable<Variable>(primal, ++ids_); }

  Datums vertex(const Datums& operands, const Datums& values, Pullback pullback, const Location& loc) override {
    return shift<Datums>(prompt_,
                       [this, operands, values, pullback = std::move(pullback), loc](auto k) -> Store {
                         Datums results, cotangents;
                         for (const Datum& y : values)
                           results.push_back(y.type().is_differentiable() ? fresh(y) : y);
                         Store store = k(results);
                         bool touched = false;
                         for (const Datum& r : results) {
                           const auto* y = variable_of<Variable>(r);
                           if (!y) continue;
                           const auto own = store.extract(y->id);
                           touched |= !own.empty();
                           cotangents.push_back(own.empty() ? zeros_like(y->primal, loc) : own.mapped());
                         }
                         if (!touched) return store;
                         const Datums shares = pullback(cotangents);
                         for (std::size_t i = 0; i < operands.size(); ++i)
                           if (const auto* x = variable_of<Variable>(operands[i]); x && !shares[i].empty())
                             store = plus(std::move(store), x->id, shares[i], loc);
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
