// Rows from rank to rank, as many as each pair likes, and sums whose bits do not depend on the ranks.
#include <array>
#include <string>

#include "lantern/compiler/distributed/rules.hpp"
#include "lantern/compiler/staging/control_flow.hpp"
#include "lantern/compiler/staging/unset_variable.hpp"
#include "lantern/compiler/tensor/reduce.hpp"
#include "lantern/compiler/tensor/shape.hpp"

namespace lantern::distributed::detail {

namespace {

Datum product_of(const Call& call, const Datums& sizes, std::size_t from) {
  Datum n = integer(1);
  for (std::size_t d = from; d < sizes.size(); ++d) n = op(Opcode::mul_, call, {n, sizes[d]});
  return n;
}
Datum zeros(const Call& call, ir::Kind element, const Datums& sizes) {
  return filled(call, Datum::zero(ir::Type(element)), sizes);
}
void require_rows(const Call& call, const char* name, const Datum& x) {
  if (x.empty()) core::refuse_empty(call.loc);
  if (x.type().is_tree() || x.type().is_scalar())
    core::raise_at(call.loc, std::string("distributed::") + name + ": expected an array or a tensor, got " + x.type().str());
}

Kernel ragged_of(const Kernels& all, ir::Kind element) {
  switch (element) {
    case ir::Kind::f64: return all.ragged_f64;
    case ir::Kind::f32: return all.ragged_f32;
    case ir::Kind::i64: return all.ragged_i64;
    case ir::Kind::i32: return all.ragged_i32;
    default: return all.ragged_boolean;
  }
}
Datum run_ragged(const Call& call, const Datum& send, const Datum& receive, const Datum& x) {
  Datums sizes = sizes_of(call, x);
  const Datum row = product_of(call, sizes, 1);
  sizes[0] = core::detail::sum_along(receive, {{}, false}, call.loc);
  return core::detail::call_external(*ragged_of(*call.kernels, x.type().element()), {.ordered = true},
                                     {call.comm, row, send, receive, x, zeros(call, x.type().element(), sizes)},
                                     call.loc)[0];
}
Datum ragged(const Call& call, const Datum& send, const Datum& receive, const Datum& x) {
  if (!x.type().is_differentiable()) return run_ragged(call, send, receive, x);
  const Body transpose = [](const Call& c, const Datum& sent, const Datum& received, const Datum& g) {
    return ragged(c, received, sent, g);
  };
  return linear({"all_to_all", run_ragged, transpose}, call, send, receive, x, ragged);
}

// ---- sums of rows; `rows` is how many there are on this rank

Datum run_sum(const Call& call, const Datum& rows, const Datum&, const Datum& x) {
  Datums sizes = sizes_of(call, x);
  const Datum n = product_of(call, sizes, 1);
  sizes.erase(sizes.begin());
  const ir::Kind element = x.type().element();
  const Kernel kernel = element == ir::Kind::f64 ? call.kernels->exact_sum_f64 : call.kernels->exact_sum_f32;
  return core::detail::call_external(*kernel, {.ordered = true}, {call.comm, rows, n, x, zeros(call, element, sizes)},
                                     call.loc)[0];
}
Datum copies(const Call& call, const Datum& rows, const Datum&, const Datum& x) {
  Datums sizes = sizes_of(call, x), one = sizes;
  sizes.insert(sizes.begin(), rows);
  one.insert(one.begin(), integer(1));
  return core::detail::expand(core::detail::reshape(x, one, call.loc), sizes, call.loc);
}

Datum sum_rows(const Call& call, const Datum& rows, const Datum& unused, const Datum& x);
Datum sum_replicated(const Call& call, const Datum& rows, const Datum& unused, const Datum& x);
Datum copy_replicated(const Call& call, const Datum& rows, const Datum& unused, const Datum& x);

Datum sum_rows(const Call& call, const Datum& rows, const Datum& unused, const Datum& x) {
  const Body transpose = [](const Call& c, const Datum& n, const Datum& b, const Datum& g) {
    return copies(c, n, b, sum_rows(c, integer(1), b, copies(c, integer(1), b, g)));
  };
  return linear({"deterministic_sum", run_sum, transpose}, call, rows, unused, x, sum_rows);
}
Datum sum_replicated(const Call& call, const Datum& rows, const Datum& unused, const Datum& x) {
  return linear({"deterministic_total", run_sum, copy_replicated}, call, rows, unused, x, sum_replicated);
}
Datum copy_replicated(const Call& call, const Datum& rows, const Datum& unused, const Datum& x) {
  return linear({"deterministic_replicate", copies, sum_replicated}, call, rows, unused, x, copy_replicated);
}

}  // namespace

std::array<Datum, 2> ragged_all_to_all(const Call& call, const Datum& x, const Datum& counts) {
  require_rows(call, "all_to_all", x);
  if (counts.empty()) core::refuse_empty(call.loc);
  const Datum send = core::strip(counts), ranks = core::dimension_of(send, 0, call.loc);
  const Datum receive =
      core::detail::call_external(*call.kernels->counts, {.ordered = true},
                                  {call.comm, ranks, core::dimension_of(x, 0, call.loc), send,
                                   zeros(call, ir::Kind::i64, {size(call)})},
                                  call.loc)[0];
  return {ragged(call, send, receive, x), receive};
}

Datum deterministic_sum(const Call& call, Cotangent cotangent, const Datum& x) {
  require_rows(call, "deterministic_sum", x);
  const Datum rows = core::dimension_of(x, 0, call.loc);
  const auto sum = [&](const Datum& t) {
    return cotangent == Cotangent::partial ? sum_rows(call, rows, integer(0), t)
                                           : sum_replicated(call, rows, integer(0), t);
  };
  if (x.type().rank() > 1) return sum(x);
  return op(Opcode::get_, call, {sum(core::detail::reshape(x, {rows, integer(1)}, call.loc)), integer(0)});
}

Datum deterministic_replicate(const Call& call, const Datum& rows, const Datum& x) {
  if (x.empty()) core::refuse_empty(call.loc);
  const Datum n = core::strip(rows);
  if (!x.type().is_scalar()) return copy_replicated(call, n, integer(0), x);
  const Datum all = copy_replicated(call, n, integer(0), filled(call, x, {integer(1)}));
  return core::detail::reshape(all, {n}, call.loc);
}

}  // namespace lantern::distributed::detail
