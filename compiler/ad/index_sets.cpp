// A mode under which every number carries the set of elements it depends on.
#include "lantern/compiler/ad/index_sets.hpp"

#include <algorithm>

#include "lantern/compiler/ad/custom_rule.hpp"
#include "lantern/compiler/ad/op_derivative.hpp"
#include "lantern/compiler/staging/staging.hpp"
#include "lantern/ir/points.hpp"

namespace lantern::core::ad {

namespace {

/// Sets of element numbers, each once, by number; the empty set is 0.
class Sets {
 public:
  using Id = std::uint32_t;

  Id singleton(std::int64_t i) { return add({i}); }
  Id unite(Id a, Id b) {
    if (a == b || b == 0) return a;
    if (a == 0) return b;
    const std::uint64_t pair = std::uint64_t{std::min(a, b)} << 32 | std::max(a, b);
    if (const auto known = unions_.find(pair); known != unions_.end()) return known->second;
    std::vector<std::int64_t> all;
    std::ranges::set_union(sets_[a], sets_[b], std::back_inserter(all));
    const Id id = all.size() == sets_[a].size() ? a : all.size() == sets_[b].size() ? b : add(std::move(all));
    return unions_[pair] = id;
  }
  Id unite(std::vector<Id> ids) {
    std::ranges::sort(ids);
    const auto [first, last] = std::ranges::unique(ids);
    ids.erase(first, last);
    if (ids.size() <= 2) return ids.empty() ? 0 : unite(ids.front(), ids.back());
    std::vector<std::int64_t> all;
    for (Id id : ids) all.insert(all.end(), sets_[id].begin(), sets_[id].end());
    std::ranges::sort(all);
    const auto [begin, end] = std::ranges::unique(all);
    all.erase(begin, end);
    return add(std::move(all));
  }
  const std::vector<std::int64_t>& operator[](Id id) const { return sets_[id]; }

 private:
  Id add(std::vector<std::int64_t> s) {
    sets_.push_back(std::move(s));
    return static_cast<Id>(sets_.size() - 1);
  }
  std::vector<std::vector<std::int64_t>> sets_{{}};
  std::unordered_map<std::uint64_t, Id> unions_;
};

using Ids = std::vector<Sets::Id>;

/// A value and the number of each element's set: of a tensor a tensor of numbers, of which updates share what
/// they do not change, as those of the value do.
struct Dependent : TaggedBox {
  Dependent(Mode& m, Datum p, Datum s) : TaggedBox(m, std::move(p)), sets(std::move(s)) {}
  Datum sets;
};

std::size_t elements(const Datum& d) {
  const Datum& p = strip(d);
  return p.type().is_tensor() ? static_cast<std::size_t>(static_cast<const TensorBox*>(p.box())->count()) : 1;
}
std::size_t dimension(const Datum& d, std::size_t k) {
  return static_cast<std::size_t>(static_cast<const TensorBox*>(strip(d).box())->shape[k]);
}

class IndexSets : public Mode {
 public:
  using Mode::Mode;
  const char* name() const override { return "detection of sparsity"; }

  Datum dependent(const Datum& primal, const Ids& sets) {
    if (std::ranges::all_of(sets, [](Sets::Id s) { return s == 0; })) return primal;
    return make_number<Dependent>(primal, numbers(primal, sets));
  }
  Ids sets_of(const Datum& d) const {
    const auto* v = number_of<Dependent>(d);
    return v ? ids(v->sets) : Ids(elements(d), 0);
  }
  Sets& sets() { return sets_; }

  Datum apply(const Operation& op, std::span<const Datum> operands) override {
    const Datums below = primals(operands);
    const Datum y = perform(op, below);
    if (!y.type().is_differentiable()) return y;
    if (is_access(op.code)) return access(op, operands, y);
    if (y.type().is_scalar() && ir::info(op.code).elementwise) return of_numbers(op, operands, y);
    std::vector<Ids> in;
    for (std::size_t i = 0; i < operands.size(); ++i)
      in.push_back(carries_derivative(op, i, operands.size()) ? sets_of(operands[i])
                                                              : Ids(elements(operands[i]), 0));
    return dependent(y, propagate(op, below, in, elements(y)));
  }

  /// Every result may depend on every argument: a rule says nothing about elements.
  Datums follow(const std::shared_ptr<const Rule>& rule, const Datums& arguments,
                const Location& loc) override {
    Ids all;
    for (const Datum& d : arguments) all = joined(std::move(all), sets_of(d));
    Datums results = rule->forward(primals(arguments)).results;
    require_untagged(*rule, results, *this, loc);
    const Sets::Id any = sets_.unite(std::move(all));
    for (Datum& y : results)
      if (y.type().is_differentiable()) y = dependent(y, Ids(elements(y), any));
    return results;
  }

 private:
  static bool is_access(Opcode code) {
    return code == Opcode::get_ || code == Opcode::set_ || code == Opcode::add_at_;
  }

  /// An operation on numbers, of which programs make millions: without lists of one set.
  Datum of_numbers(const Operation& op, std::span<const Datum> operands, const Datum& y) {
    Sets::Id all = 0;
    for (std::size_t i = 0; i < operands.size(); ++i) {
      const auto* v = number_of<Dependent>(operands[i]);
      if (v && carries_derivative(op, i, operands.size()))
        all = sets_.unite(all, static_cast<Sets::Id>(v->sets.i()));
    }
    return all == 0 ? y : make_number<Dependent>(y, Datum::integer(all, ir::I64));
  }

  /// One element is read or replaced: the same happens to the numbers of the sets.
  Datum access(const Operation& op, std::span<const Datum> operands, const Datum& y) {
    const auto *of = number_of<Dependent>(operands[0]), *changed = number_of<Dependent>(operands.back());
    const bool reads = op.code == Opcode::get_;
    if (!of && (reads || !changed)) return y;
    Datums on;
    on.push_back(of ? of->sets : numbers(operands[0], Ids(elements(operands[0]), 0)));
    for (const Datum& i : operands.subspan(1)) on.push_back(strip(i));
    if (!reads) {
      on.back() = changed ? changed->sets : Datum::integer(0, ir::I64);
      if (op.code == Opcode::add_at_) {
        Datums read(on.begin(), on.end() - 1);
        const auto before = static_cast<Sets::Id>(evaluate({Opcode::get_, 0, op.loc}, read).i());
        on.back() = Datum::integer(sets_.unite(before, static_cast<Sets::Id>(on.back().i())), ir::I64);
      }
    }
    const Datum sets = evaluate({reads ? Opcode::get_ : Opcode::set_, 0, op.loc}, on);
    return sets.type().is_scalar() && sets.i() == 0 ? y : make_number<Dependent>(y, sets);
  }

  /// The numbers of sets as data, and back.
  static Datum numbers(const Datum& like, const Ids& sets) {
    const Datum& p = strip(like);
    if (p.type().is_scalar()) return Datum::integer(sets[0], ir::I64);
    Datum t = make_tensor(ir::Kind::i64, static_cast<const TensorBox*>(p.box())->shape);
    std::ranges::copy(sets, static_cast<TensorBox*>(t.box())->as<std::int64_t>());
    return t;
  }
  static Ids ids(const Datum& numbers) {
    if (numbers.type().is_scalar()) return {static_cast<Sets::Id>(numbers.i())};
    const auto* const from = static_cast<const TensorBox*>(numbers.box())->as<std::int64_t>();
    return Ids(from, from + elements(numbers));
  }

  Ids propagate(const Operation& op, const Datums& primals, const std::vector<Ids>& in, std::size_t n) {
    if (ir::info(op.code).elementwise) {
      Ids out(n, 0);
      for (const Ids& x : in)
        for (std::size_t i = 0; i < n; ++i) out[i] = sets_.unite(out[i], x[x.size() == 1 ? 0 : i]);
      return out;
    }
    if (ir::info(op.code).in_notation()) return products(op, primals, in, n);
    switch (op.code) {
      case Opcode::stop_gradient_:
      case Opcode::zeros_like_:
        return Ids(n, 0);
      case Opcode::cast_:
      case Opcode::cast_like_:
        return in[0];
      case Opcode::take_:
      case Opcode::slice_:
      case Opcode::fill_:
      case Opcode::reshape_:
      case Opcode::concat_:
        return moved(op, primals, in);
      case Opcode::add_take_:
      case Opcode::add_slice_: {
        std::vector<Ids> added = in;
        added[0].assign(n, 0);
        return united(in[0], moved(op, primals, added));
      }
      default: {
        Ids all;
        for (const Ids& x : in) all = joined(std::move(all), x);
        return Ids(n, sets_.unite(std::move(all)));
      }
    }
  }

  /// An operation that moves elements, and adds to zeros at most: it is run on the numbers of their sets.
  static Ids moved(const Operation& op, const Datums& primals, const std::vector<Ids>& in) {
    Datums on;
    for (std::size_t i = 0; i < primals.size(); ++i)
      on.push_back(primals[i].type().is_differentiable() ? numbers(primals[i], in[i]) : strip(primals[i]));
    return ids(evaluate(op, on));
  }

  Ids united(const Ids& a, const Ids& b) {
    Ids out;
    for (std::size_t i = 0; i < a.size(); ++i) out.push_back(sets_.unite(a[i], b[i]));
    return out;
  }

  /// Of a sum of products: each factor's sets are united over the indices that the result does not have, then
  /// those of all factors.
  Ids products(const Operation& op, const Datums& primals, const std::vector<Ids>& in, std::size_t n) {
    std::vector<ir::Type> types;
    for (const Datum& d : primals) types.push_back(d.type());
    const ir::Notation sum = ir::concrete(*ir::notation_of(op.code, op.text), types);
    const auto size_of = [&](const ir::SizeSource& s) {
      return s.dimension < 0 ? strip(primals[s.operand]).i()
                             : static_cast<std::int64_t>(
                                   dimension(primals[s.operand], static_cast<std::size_t>(s.dimension)));
    };
    const auto shape = [&](std::size_t i) -> std::span<const std::int64_t> {
      const Datum& p = strip(primals[i]);
      if (!p.type().is_tensor()) return {};
      return static_cast<const TensorBox*>(p.box())->shape;
    };
    std::vector<std::int64_t> result_shape;
    if (sum.accumulates) result_shape.assign(shape(0).begin(), shape(0).end());
    for (std::size_t d = 0; !sum.accumulates && d < sum.result.size(); ++d)
      result_shape.push_back(size_of(*ir::result_size(sum, d)));
    Ids out = sum.accumulates ? in[0] : Ids(n, 0);
    for (std::size_t i = 0; i < sum.operands.size(); ++i) {
      if (!sum.is_factor(i)) continue;
      // The indices that the factor and the result have in common name the united sets.
      std::string common;
      ir::Subscripts named;
      for (const char c : sum.letters()) {
        const auto in_both = [&](const ir::Subscripts& at) {
          return ir::letters_of(at).find(c) != std::string::npos;
        };
        if (!in_both(sum.operands[i].at) || !in_both(sum.result)) continue;
        common += c;
        named.push_back({{{c, 1}}, 0});
      }
      std::vector<std::int64_t> sizes;
      for (const char c : common) sizes.push_back(size_of(*ir::size_source(sum, c)));
      std::size_t groups = 1;
      for (const std::int64_t size : sizes) groups *= static_cast<std::size_t>(size);
      std::vector<Ids> parts(groups);
      const auto over = [&](const ir::Subscripts& place, std::span<const std::int64_t> of, const auto& each) {
        const std::string letters = ir::letters_of(place);
        std::vector<std::int64_t> all;
        for (const char c : letters) all.push_back(size_of(*ir::size_source(sum, c)));
        ir::Points points(letters, std::move(all));
        points.follow(place, of);
        points.follow(named, sizes);
        points.run([&](std::span<const std::int64_t> at) {
          each(static_cast<std::size_t>(at[0]), static_cast<std::size_t>(at[1]));
        });
      };
      over(sum.operands[i].at, shape(i),
           [&](std::size_t from, std::size_t to) { parts[to].push_back(in[i][from]); });
      Ids united_parts;
      for (Ids& p : parts) united_parts.push_back(sets_.unite(std::move(p)));
      over(sum.result, result_shape,
           [&](std::size_t to, std::size_t from) { out[to] = sets_.unite(out[to], united_parts[from]); });
    }
    return out;
  }

  Sets sets_;
};

}  // namespace

Pattern dependences(const Program& program, const Datums& arguments, std::size_t argument,
                    const Location& loc) {
  const StagingScope eagerly(nullptr);
  const auto require_vector = [&](const Datum& d, const char* what) {
    if (!d.type().is_differentiable() || d.type().rank() != 1)
      raise_at(loc,
               std::string("sparsity: expected ") + what + " to be a floating array, got " + d.type().str());
  };
  const auto mode = std::make_shared<IndexSets>(fresh_number());
  require_vector(arguments[argument], "the argument");
  Datums tagged = arguments;
  Ids own(elements(arguments[argument]));
  for (std::size_t i = 0; i < own.size(); ++i) own[i] = mode->sets().singleton(static_cast<std::int64_t>(i));
  const auto columns = static_cast<std::int64_t>(own.size());
  tagged[argument] = mode->dependent(arguments[argument], std::move(own));
  const Datums results = program.run(tagged);
  if (results.size() != 1)
    raise_at(loc,
             "sparsity: expected one array as the result, got " + std::to_string(results.size()) + " values");
  require_vector(results[0], "the result");
  Pattern pattern{0, columns, {0}, {}};
  for (Sets::Id id : mode->sets_of(results[0])) {
    const std::vector<std::int64_t>& set = mode->sets()[id];
    pattern.column.insert(pattern.column.end(), set.begin(), set.end());
    pattern.row_start.push_back(static_cast<std::int64_t>(pattern.column.size()));
    ++pattern.rows;
  }
  mode->end();
  return pattern;
}

}  // namespace lantern::core::ad
