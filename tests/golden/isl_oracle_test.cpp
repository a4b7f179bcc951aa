// The integer set library (Verdoolaege, "isl: an integer set library for the polyhedral model", ICMS 2010) as the judge of
// what index_form proves: random loop nests with affine bounds and indices. What we claim must hold for all values of the
// parameters; what holds and is not claimed is only counted.
#include <isl/ctx.h>
#include <isl/options.h>
#include <isl/set.h>

#include <catch2/catch.hpp>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "../correctness/depth.hpp"
#include "lantern/compiler/passes/analysis/index_form.hpp"
#include "lantern/compiler/passes/analysis/loops.hpp"
#include "lantern/ir/parse.hpp"
#include "lantern/ir/verify.hpp"

namespace lantern::passes {
namespace {

using Random = std::mt19937;

int uniform(Random& random, int lo, int hi) { return std::uniform_int_distribution(lo, hi)(random); }

/// A sum of integers times names, and a number.
struct Affine {
  std::vector<std::pair<int, std::string>> terms;
  int number = 0;

  /// In isl's notation. The counters of the loops from number `from` on have this letter behind their names.
  std::string text(const std::string& iteration = "", int from = 0) const {
    std::string all = std::to_string(number);
    for (const auto& [factor, name] : terms) {
      const bool inner = name.front() == 'i' && std::stoi(name.substr(1)) >= from;
      all += " + " + std::to_string(factor) + " * " + name + (inner ? iteration : "");
    }
    return "(" + all + ")";
  }
  /// As operations that make the value `result`.
  std::string operations(const std::string& result) const {
    std::string all = "%" + result + "_0 = constant " + std::to_string(number) + " : i64\n", sum = "%" + result + "_0";
    int k = 0;
    for (const auto& [factor, name] : terms) {
      const std::string at = "%" + result + "_" + std::to_string(++k);
      all += at + "c = constant " + std::to_string(factor) + " : i64\n" + at + "p = mul " + at + "c, %" + name + " : i64\n" +
             at + " = add " + sum + ", " + at + "p : i64\n";
      sum = at;
    }
    return all + "%" + result + " = add " + sum + ", %" + result + "_0z : i64\n";
  }
};

constexpr int parameters = 4;
const char* const parameter_names[parameters] = {"n", "m", "d0", "d1"};  // the last two: sizes of the tensor

/// Mostly short, as indices and bounds of programs are.
Affine affine(Random& random, int counters, bool bound) {
  Affine a{{}, uniform(random, 0, 2) == 0 ? uniform(random, -3, 3) : 0};
  for (int c = 0; c < counters; ++c)
    if (uniform(random, 0, bound ? 2 : 1) == 0) {
      const int factor = uniform(random, 0, 3) == 0 ? uniform(random, -2, 3) : 1;
      if (factor != 0) a.terms.emplace_back(factor, "i" + std::to_string(c));
    }
  if (uniform(random, 0, bound ? 1 : 3) == 0) {
    const int factor = uniform(random, 0, 4) == 0 ? uniform(random, -1, 2) : 1;
    if (factor != 0) a.terms.emplace_back(factor, parameter_names[uniform(random, 0, parameters - 1)]);
  }
  return a;
}

struct Access {
  std::vector<Affine> indices;  ///< one for each dimension
};

/// Loops around two accesses to a tensor, the second under a condition, maybe.
struct Nest {
  int rank = 1;
  std::vector<Affine> lower, upper;  ///< of each loop, from the outside
  Access read, written;
  std::vector<std::pair<Affine, Affine>> condition;  ///< none or one: the first is below the second

  std::string text() const {
    const auto with_zero = [](const Affine& a, const std::string& name) {
      return "%" + name + "_0z = constant 0 : i64\n" + a.operations(name);
    };
    const std::string type = rank == 1 ? "f64[?]" : "f64[?,?]";
    std::string all = "entry @f\n\nfun @f(%v: " + type + ", %n: i64, %m: i64, %x: f64) -> " + type + " {\n%d0 = dim[0] %v : i64\n";
    all += rank == 1 ? "%d1 = constant 7 : i64\n" : "%d1 = dim[1] %v : i64\n";
    const int depth = static_cast<int>(lower.size());
    std::string tensor = "%v";
    for (int l = 0; l < depth; ++l) {
      const std::string k = std::to_string(l);
      all += with_zero(lower[l], "lo" + k) + with_zero(upper[l], "hi" + k);
      all += "%r" + k + ", %t" + k + " = loop %lo" + k + ", " + tensor + " : i64, " + type + " while (%c" + k + ": i64, %ct" + k +
             ": " + type + ") {\n%more" + k + " = lt %c" + k + ", %hi" + k + " : bool\nyield %more" + k + "\n} do (%i" + k +
             ": i64, %b" + k + ": " + type + ") {\n";
      tensor = "%b" + k;
    }
    const auto indices = [&](const Access& a, const std::string& name) {
      std::string operations, list;
      for (int d = 0; d < rank; ++d) {
        operations += with_zero(a.indices[d], name + std::to_string(d));
        list += ", %" + name + std::to_string(d);
      }
      return std::pair(operations, list);
    };
    const auto [read_operations, read_list] = indices(read, "read");
    all += read_operations + "%y = get " + tensor + read_list + " : f64\n";
    const auto [write_operations, write_list] = indices(written, "written");
    if (condition.empty()) {
      all += write_operations + "%s = set " + tensor + write_list + ", %y : " + type + "\n";
    } else {
      all += with_zero(condition[0].first, "left") + with_zero(condition[0].second, "right") +
             "%if = lt %left, %right : bool\n%s = branch %if : " + type + " {\n" + write_operations + "%s1 = set " + tensor +
             write_list + ", %y : " + type + "\nyield %s1\n} else {\nyield " + tensor + "\n}\n";
    }
    std::string result = "%s";
    for (int l = depth - 1; l >= 0; --l) {
      const std::string k = std::to_string(l);
      all += "%one" + k + " = constant 1 : i64\n%next" + k + " = add %i" + k + ", %one" + k + " : i64\nyield %next" + k + ", " +
             result + "\n}\n";
      result = "%t" + k;
    }
    return all + "yield " + result + "\n}\n";
  }

  /// That an access is made, in range, in the iteration of that name. The counters of loops outside of `from` have no name.
  std::string made(const Access& access, const std::string& iteration, int from, bool in_range = true) const {
    std::string all = "true";
    const auto put = [&](const Affine& a) { return a.text(iteration, from); };
    for (int l = 0; l < static_cast<int>(lower.size()); ++l) {
      const std::string counter = "i" + std::to_string(l) + (l >= from ? iteration : "");
      all += " and " + put(lower[l]) + " <= " + counter + " < " + put(upper[l]);
    }
    if (&access == &written)
      for (const auto& [left, right] : condition) all += " and " + put(left) + " < " + put(right);
    for (int d = 0; in_range && d < rank; ++d)
      all += " and 0 <= " + put(access.indices[d]) + " < d" + std::to_string(d);
    return all;
  }
  std::string same_element(const Access& a, const std::string& of_a, const Access& b, const std::string& of_b, int from) const {
    std::string all;
    for (int d = 0; d < rank; ++d) all += " and " + a.indices[d].text(of_a, from) + " = " + b.indices[d].text(of_b, from);
    return all;
  }
  std::string counters() const {
    std::string all;
    for (std::size_t l = 0; l < lower.size(); ++l)
      for (const char* iteration : {"", "p", "q"}) all += (all.empty() ? "i" : ", i") + std::to_string(l) + iteration;
    return all;
  }
};

Nest nest(Random& random) {
  Nest all;
  all.rank = uniform(random, 1, 2);
  const int depth = uniform(random, 1, 3);
  for (int l = 0; l < depth; ++l) {
    all.lower.push_back(uniform(random, 0, 1) == 0 ? Affine{} : affine(random, l, true));
    all.upper.push_back(affine(random, l, true));
    if (all.upper.back().terms.empty()) all.upper.back().terms.emplace_back(1, parameter_names[uniform(random, 0, 3)]);
  }
  for (int d = 0; d < all.rank; ++d) {
    all.read.indices.push_back(affine(random, depth, false));
    all.written.indices.push_back(affine(random, depth, false));
    if (uniform(random, 0, 1) == 0) all.read.indices[d].terms = all.written.indices[d].terms;
  }
  if (uniform(random, 0, 3) == 0) all.condition.emplace_back(affine(random, depth, false), affine(random, depth, false));
  return all;
}

class Oracle {
 public:
  Oracle() : context_(isl_ctx_alloc()) { isl_options_set_on_error(context_.get(), ISL_ON_ERROR_CONTINUE); }

  /// Whether no parameters and counters fulfil the conditions.
  bool never(const Nest& nest, const std::string& conditions) {
    const std::string text = std::string("[n, m, d0, d1] -> { [") + nest.counters() + "] : 0 <= d0 and 0 <= d1 and " +
                             (nest.rank == 1 ? "d1 = 7 and " : "") + conditions + " }";
    isl_set* set = isl_set_read_from_str(context_.get(), text.c_str());
    INFO(text);
    REQUIRE(set != nullptr);
    const isl_bool empty = isl_set_is_empty(set);
    isl_set_free(set);
    REQUIRE(empty != isl_bool_error);
    return empty == isl_bool_true;
  }

 private:
  struct Free {
    void operator()(isl_ctx* c) const { isl_ctx_free(c); }
  };
  std::unique_ptr<isl_ctx, Free> context_;
};

/// How often a statement holds, and how often we say so.
struct Count {
  int claimed = 0, asked = 0, true_of_asked = 0, claimed_of_true = 0;
};

class Judge {
 public:
  /// Checks each claim, and asks about one in ten of what is not claimed.
  void see(Count& count, bool claimed, const Nest& nest, const std::vector<std::string>& impossible) {
    const bool sample = number_++ % 10 == 0;
    if (!claimed && !sample) return;
    bool holds = true;
    for (const std::string& conditions : impossible) holds &= oracle_.never(nest, conditions);
    count.claimed += claimed;
    if (sample) {
      ++count.asked;
      count.true_of_asked += holds;
      count.claimed_of_true += holds && claimed;
    }
    if (claimed) CHECK(holds);
  }

 private:
  Oracle oracle_;
  long number_ = 0;
};

TEST_CASE("what is proved of accesses holds by the integer set library", "[analysis]") {
  Judge judge;
  Count carried, alias, order, range;
  test::Seeds(600, 50000).each([&](unsigned seed) {
    Random random(seed);
    const Nest nest = passes::nest(random);
    const std::string text = nest.text();
    INFO("seed " << seed << "\n" << text);
    const auto module = ir::parse(text);
    ir::verify(*module);
    const std::vector<Op*> loops = loops_in(*module->functions().front());
    REQUIRE(loops.size() == nest.lower.size());
    const Op *read = nullptr, *written = nullptr;
    ir::walk(loops.back()->blocks[1], [&](const Op* op) {
      if (op->is(Opcode::get_)) read = op;
      if (op->is(Opcode::set_)) written = op;
    });
    REQUIRE((read != nullptr && written != nullptr));

    for (int l = 0; l < static_cast<int>(loops.size()); ++l) {
      const std::string k = std::to_string(l);
      // Iterations p and q of this loop, and any of those inside.
      const auto meet = [&](const Access& a, const Access& b, const std::string& relation) {
        return nest.made(a, "p", l) + " and " + nest.made(b, "q", l) + nest.same_element(a, "p", b, "q", l) + " and i" + k +
               "p " + relation + " i" + k + "q";
      };
      judge.see(carried, no_loop_carried_dependence({read, written}, loops[l]), nest,
                {meet(nest.read, nest.written, "<"), meet(nest.read, nest.written, ">"),
                 meet(nest.written, nest.written, "<")});
      for (const auto& [when, relation] : {std::pair(Iteration::earlier, ">"), std::pair(Iteration::later, "<")})
        judge.see(order, no_alias(*written, *read, loops[l], when), nest, {meet(nest.written, nest.read, relation)});
    }
    const int all = static_cast<int>(loops.size());
    judge.see(alias, no_alias(*written, *read), nest,
              {nest.made(nest.written, "", all) + " and " + nest.made(nest.read, "", all) +
               nest.same_element(nest.written, "", nest.read, "", all)});
    for (int d = 0; d < nest.rank; ++d) {
      const std::string index = nest.read.indices[d].text(), size = "d" + std::to_string(d);
      const std::string reached = nest.made(nest.read, "", all, false);
      judge.see(range, in_range(*read, d), nest, {reached + " and " + index + " < 0", reached + " and " + index + " >= " + size});
    }
  });
  const auto told = [](const char* what, const Count& c) {
    WARN(what << ": " << c.claimed << " claimed; of " << c.asked << " asked " << c.true_of_asked << " hold, " << c.claimed_of_true
              << " of which are claimed");
    CHECK(c.claimed > 40);
    CHECK(3 * c.claimed_of_true > c.true_of_asked);  // many of the others cannot be reached in range
  };
  told("no dependence between iterations", carried);
  told("not in an earlier or a later iteration", order);
  told("different elements", alias);
  told("in range", range);
}

}  // namespace
}  // namespace lantern::passes
