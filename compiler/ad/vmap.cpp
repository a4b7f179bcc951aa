// A loop over the examples of a batch.
#include "lantern/compiler/ad/vmap.hpp"

#include <algorithm>

#include "lantern/compiler/staging/control_flow.hpp"
#include "lantern/compiler/staging/requirement.hpp"
#include "lantern/ir/error.hpp"

namespace lantern::core::ad {

namespace {

class Batching {
 public:
  Batching(const Program& f, const Datums& arguments, const std::vector<bool>& mapped, const Location& loc)
      : f_(f), arguments_(arguments), mapped_(mapped), loc_(loc) {}

  Datums run(const std::vector<ir::Type>& results) {
    size_ = common_size();
    types_ = results;
    const bool known =
        !results.empty() && std::ranges::none_of(results, [](const ir::Type& t) { return t.is_tensor(); });
    Datums sizes;
    if (!known) sizes = result_sizes();
    Datums state{Datum::integer(0, ir::I64)};
    for (std::size_t i = 0, at = 0; i < types_.size(); ++i) {
      Datums operands{Datum::zero(ir::Type(types_[i].element())), size_};
      for (int k = 0; k < types_[i].rank(); ++k) operands.push_back(sizes[at++]);
      state.push_back(perform({Opcode::fill_, 0, loc_}, operands));
    }
    Datums done = detail::loop(
        state,
        [&](const Datums& s) {
          return op(Opcode::lt_, {s[0], size_});
        },
        [&](const Datums& s) { return trip(s); }, loc_);
    done.erase(done.begin());
    return done;
  }

 private:
  Datum op(Opcode code, const Datums& operands) const { return perform({code, 0, loc_}, operands); }
  Datum dimension(const Datum& t, int k) const {
    const std::int64_t known = t.type().dims()[static_cast<std::size_t>(k)];
    return known != ir::dynamic ? Datum::integer(known, ir::I64)
                                : perform({Opcode::dim_, k, loc_}, {strip(t)});
  }

  /// The number of examples.
  Datum common_size() const {
    Datum size;
    for (std::size_t i = 0; i < arguments_.size(); ++i) {
      if (!mapped_[i]) continue;
      if (arguments_[i].type().rank() < 1)
        raise_at(loc_, "vmap: expected an array or tensor of examples, got " + arguments_[i].type().str());
      const Datum here = dimension(arguments_[i], 0);
      if (size.empty()) {
        size = here;
        continue;
      }
      std::string found = "several numbers of them";
      if (size.is_literal() && here.is_literal())
        found = std::to_string(size.i()) + " and " + std::to_string(here.i());
      detail::require(op(Opcode::eq_, {size, here}),
                      "vmap: expected as many examples in every argument, got " + found, loc_);
    }
    return size;
  }

  Datums example(const Datum& i) const {
    Datums in = arguments_;
    for (std::size_t k = 0; k < in.size(); ++k)
      if (mapped_[k]) in[k] = op(in[k].type().rank() == 1 ? Opcode::get_ : Opcode::take_, {in[k], i});
    return in;
  }

  /// The sizes of the first example's results, one after another; zeros where there is none.
  Datums result_sizes() {
    const std::vector<ir::Type> declared = types_;
    const auto count = [this] {
      std::size_t n = 0;
      for (const ir::Type& t : types_) n += static_cast<std::size_t>(t.rank());
      return n;
    };
    const auto first = [&] {
      Datums sizes;
      types_.clear();
      for (const Datum& r : f_.run(example(Datum::integer(0, ir::I64)))) {
        types_.push_back(r.type());
        for (int k = 0; k < r.type().rank(); ++k) sizes.push_back(dimension(r, k));
      }
      return sizes;
    };
    const auto none = [&] {
      if (types_.empty())
        raise_at(
            loc_,
            "vmap: expected at least one example of a function whose results have sizes that show when it "
            "runs, got none");
      return Datums(count(), Datum::integer(0, ir::I64));
    };
    return detail::branch(op(Opcode::lt_, {Datum::integer(0, ir::I64), size_}), first, none, loc_);
  }

  Datums trip(const Datums& s) const {
    const Datum& i = s[0];
    const Datums results = f_.run(example(i));
    Datums next{op(Opcode::add_, {i, Datum::integer(1, ir::I64)})};
    for (std::size_t k = 0; k < results.size(); ++k) {
      const Datum& r = results[k];
      if (!r.type().is_tensor()) {
        next.push_back(op(Opcode::set_, {s[k + 1], i, r}));
        continue;
      }
      for (int d = 0; d < r.type().rank(); ++d)
        detail::require(op(Opcode::eq_, {dimension(r, d), dimension(s[k + 1], d + 1)}),
                        "vmap: expected results of one size for every example, got several", loc_);
      next.push_back(op(Opcode::add_take_, {s[k + 1], i, r}));
    }
    return next;
  }

  const Program& f_;
  const Datums& arguments_;
  const std::vector<bool>& mapped_;
  Location loc_;
  Datum size_;
  std::vector<ir::Type> types_;  ///< of f's results
};

}  // namespace

Datums vmap(const Program& f, const Datums& arguments, const std::vector<bool>& mapped,
          const std::vector<ir::Type>& results, const Location& loc) {
  return Batching(f, arguments, mapped, loc).run(results);
}

}  // namespace lantern::core::ad
