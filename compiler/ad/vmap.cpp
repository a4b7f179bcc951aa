// A loop over the examples of a batch.
#include "lantern/compiler/ad/vmap.hpp"

#include <algorithm>

#include "lantern/compiler/staging/control_flow.hpp"
#include "lantern/compiler/staging/requirement.hpp"

namespace lantern::core::ad {

namespace {

class Batching {
 public:
  Batching(const Program& f, const Datums& arguments, const std::vector<bool>& mapped, const Location& loc)
      : f_(f), arguments_(arguments), mapped_(mapped), loc_(loc) {}

  Datums run(const std::vector<ir::Type>& declared) {
    size_ = common_size();
    types_ = declared;
    const auto has_sizes = [](const ir::Type& t) { return std::ranges::count(t.dims(), ir::dynamic) == 0; };
    Datums sizes;
    if (types_.empty() || !std::ranges::all_of(types_, has_sizes)) sizes = result_sizes();
    Datums empty;
    for (std::size_t i = 0, at = 0; i < types_.size(); ++i) {
      Datums operands{Datum::zero(ir::Type(types_[i].element())), size_};
      std::vector<std::int64_t> dims{ir::dynamic};
      for (std::size_t k = 0; k < static_cast<std::size_t>(types_[i].rank()); ++k, ++at) {
        dims.push_back(declared.empty() ? ir::dynamic : declared[i].dims()[k]);
        operands.push_back(dims.back() == ir::dynamic ? sizes[at] : Datum::integer(dims.back(), ir::I64));
      }
      empty.push_back(perform({Opcode::fill_, 0, loc_, dims}, operands));
    }
    return row_by_row(
        size_, empty, [&](const Datums& s) { return results(s); }, loc_);
  }

 private:
  Datum op(Opcode code, const Datums& operands) const { return perform({code, 0, loc_}, operands); }
  Datum dimension(const Datum& t, int k) const { return dimension_of(t, k, loc_); }

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
      int count = 0;
      for (const ir::Type& t : types_) count += t.rank();
      return Datums(static_cast<std::size_t>(count), Datum::integer(0, ir::I64));
    };
    return detail::branch(op(Opcode::lt_, {Datum::integer(0, ir::I64), size_}), first, none, loc_);
  }

  /// The results of example s[0], of the sizes of those in s.
  Datums results(const Datums& s) const {
    Datums out = f_.run(example(s[0]));
    for (std::size_t k = 0; k < out.size(); ++k)
      for (int d = 0; d < out[k].type().rank(); ++d)
        detail::require(op(Opcode::eq_, {dimension(out[k], d), dimension(s[k + 1], d + 1)}),
                        "vmap: expected results of one size for every example, got several", loc_);
    return out;
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
