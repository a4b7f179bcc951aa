// Variables of enclosing regions: met, carried, put back.
#include "lantern/compiler/staging/region.hpp"

#include <algorithm>

#include "lantern/compiler/staging/operand_notes.hpp"
#include "lantern/ir/error.hpp"
#include "lantern/ir/uses.hpp"

namespace lantern::core {

namespace {

/// Where the value was computed, if that is known, else `otherwise`.
Location place_of(const Staging& s, const Datum& d, const Location& otherwise) {
  if (d.is_node() && d.graph() == s.id() && d.node()->def) {
    const Location& loc = d.node()->def->loc;
    if (!loc.str().empty()) return loc;
  }
  return otherwise;
}

/// How deep regions may be nested.
constexpr std::size_t most_regions = 1000;

constexpr const char* outside_its_region =
    "a value made inside a branch, loop or function body is used outside it; make the variable outside and assign "
    "it there, or return its value from the construct";
constexpr const char* function_ended = "a staged value is used after the function it belongs to has ended";

}  // namespace

bool same(const Datum& a, const Datum& b) {
  if (a.state() != b.state()) return false;
  if (a.is_node()) return a.node() == b.node();
  if (a.is_literal()) return a.type() == b.type() && a.i() == b.i();
  return a.empty() || a.box() == b.box();
}

std::uint64_t StorageBase::current_region() noexcept {
  const Staging* s = context().staging;
  if (!s || s->regions().empty()) return 0;
  const Region& r = *s->regions().back();
  return r.number() << flags | (r.is_function() || context().keeping != 0 ? constant : 0);
}

StorageBase::Kept::Kept() noexcept { ++context().keeping; }
StorageBase::Kept::~Kept() { --context().keeping; }

/// A region that has joined another one is that.
void StorageBase::follow(const Staging& s) noexcept {
  for (auto joined = s.joined_regions.find(number()); joined != s.joined_regions.end();
       joined = s.joined_regions.find(number()))
    region_ = joined->second << flags | (region_ & (noted | outside | constant));
}

/// Whether what is read inside these regions is read before anything in them can have assigned it: outside of loops,
/// and where every iteration of a loop reads it, the first too.
static bool reads_first(std::span<Region* const> regions) {
  const auto loop = std::ranges::find_if(regions, [](const Region* r) { return r->is_loop(); });
  return std::all_of(loop, regions.end(), [](const Region* r) { return r->is_loop(); });
}

/// Lets the regions between the variable's own and the current one meet it.
void StorageBase::meet(Staging& s, ir::Kind kind, Access access) {
  follow(s);
  const std::vector<Region*>& regions = s.regions();
  std::size_t at = regions.size();
  while (at > 0 && regions[at - 1]->number() != number()) --at;
  if (at == regions.size()) return;
  if (at == 0) {
    if ((region_ & constant) != 0) return;  // whether its value is still there, is seen where it is used
    const bool other = datum_.is_node() && datum_.graph() != s.id();
    const auto made = s.ended_regions.find(number());
    const Location around = regions.empty() ? Location() : regions.back()->loc();
    raise_at(place_of(s, datum_, made == s.ended_regions.end() ? around : made->second),
             other ? function_ended : outside_its_region);
  }
  // An operation raises. A copy may get its value later in the iteration, as in a rotation of variables.
  if (access == Access::read && datum_.empty() && reads_first(std::span(regions).subspan(at))) return;
  if (datum_.empty() && kind < ir::Kind::tensor) datum_ = Datum::zero(ir::Type(kind));
  for (; at < regions.size(); ++at) regions[at]->meet(*this);
}

const Datum& StorageBase::read_staged(ir::Kind kind, Access access) const {
  if (region_ != 0 && region_ < detached)
    if (Staging* s = context().staging) const_cast<StorageBase*>(this)->meet(*s, kind, access);
  return datum_;
}

void StorageBase::write_staged(Datum d, ir::Kind kind) {
  Staging* const s = context().staging;
  if (region_ >= detached) region_ = here();
  if (s && !s->regions().empty()) {
    if (region_ != 0) meet(*s, kind, Access::write);
    if (region_ == 0 || (region_ & outside) != 0)
      raise_at(place_of(*s, d, s->regions().back()->loc()),
               "a variable that was made outside of the function being staged is assigned in it. A function gives "
               "values: return the new one, or make the variable inside");
    region_ &= ~constant;
  }
  datum_ = std::move(d);
}

Datum StorageBase::take_staged(ir::Kind kind) noexcept {
  const Staging* s = context().staging;
  const bool own = !s || s->regions().empty() ||
                   ((region_ & noted) == 0 && number() == s->regions().back()->number());
  if (own) return std::move(datum_);
  // What cannot be read here is copied: who uses it is told why.
  try {
    return read_staged(kind, Access::copy);
  } catch (...) {
    return datum_;
  }
}

void StorageBase::end() noexcept {
  if (region_ >= detached) return;
  Staging* const s = context().staging;
  if (!s || s->regions().empty()) return;
  follow(*s);
  if ((region_ & noted) != 0 || number() != s->regions().back()->number()) Region::forget(*s, *this);
}

Region::Region(Staging& s, const char* what, const Location& loc)
    : staging_(s), what_(what), loc_(loc), number_(fresh_number()) {
  if (s.regions().size() == most_regions)
    raise_at(loc, std::string("staging does not end: branches, loops and functions are nested ") + std::to_string(most_regions) +
                      " deep. A function that calls itself under a staged condition is staged anew for each call; "
                      "make it a FUN, or a function that calls itself by name, and whose plain arguments do not "
                      "change from call to call");
  s.regions().push_back(this);
}

Region::~Region() {
  if (open_) restore();
}

Datum Region::enter(StorageBase&, const Datum& before) { return before; }

void Region::meet(StorageBase& v) {
  const std::uint64_t bits =
      StorageBase::noted | (v.region_ & StorageBase::outside) | (is_function() ? StorageBase::outside : 0);
  const Datum inside = enter(v, v.datum_);
  met_.push_back({&v, v.datum_, inside, {}, v.region_});
  v.datum_ = inside;
  v.region_ = number_ << StorageBase::flags | bits;
}

void Region::restore() noexcept {
  open_ = false;
  std::erase(staging_.regions(), this);
  staging_.ended_regions.emplace(number_, loc_);
  for (auto c = met_.rbegin(); c != met_.rend(); ++c) {
    if (!c->variable) continue;
    c->after = std::move(c->variable->datum_);
    c->variable->datum_ = c->before;
    c->variable->region_ = c->region;
  }
}

void Region::require_all() const {
  if (lost_)
    raise_at(loc_, std::string("a variable that was made outside of this ") + what_ +
                       " is destroyed or moved away in it, which would happen whatever the program computes: a "
                       "container of staged values may not grow, shrink or be reset here; give it its size outside, "
                       "or use an Array");
}

const std::vector<Region::Change>& Region::leave() {
  require_all();
  restore();
  return met_;
}

void Region::assign(StorageBase& v, Datum d) { v.write_staged(std::move(d), ir::Kind::tensor); }

/// A variable ends. Where it is one of an enclosing region, the current one cannot go on without it.
void Region::forget(Staging& s, StorageBase& v) noexcept {
  const std::vector<Region*>& regions = s.regions();
  std::size_t at = regions.size();
  while (at > 0 && regions[at - 1]->number() != v.number()) --at;
  if (at == 0) return;
  regions.back()->lost_ = true;
  while ((v.region_ & StorageBase::noted) != 0 && at > 0) {
    Region& r = *regions[--at];
    const auto c = std::ranges::find(r.met_, &v, &Change::variable);
    if (c == r.met_.end()) continue;
    c->variable = nullptr;
    v.region_ = c->region;
  }
}

/// What was lost is lost to the region around, unless it was a variable of that.
void Region::join() noexcept {
  restore();
  Region& around = *staging_.regions().back();
  staging_.joined_regions.emplace(number_, around.number_);
  for (const Change& c : met_)
    around.lost_ |= !c.variable && ((c.region & StorageBase::noted) != 0 ||
                                    c.region >> StorageBase::flags != around.number_);
}

void IterationRegion::keep() {
  join();
  for (const Change& c : met_)
    if (c.variable && !same(value(*c.variable), c.after)) assign(*c.variable, c.after);
}

LoopRegion::LoopRegion(Staging& s, ir::Op* loop, Types& types, const Location& loc)
    : Region(s, "loop", loc),
      loop_(loop),
      function_(s.current()),
      around_(s.current()->block),
      types_(types),
      functions_(s.functions_.size()),
      own_(loop->operands.size()) {}

const ir::Value* LoopRegion::before(const ir::Value* v) const {
  const bool variable = !v->def && (v->block == loop_->blocks[0] || v->block == loop_->blocks[1]) && v->index >= own_;
  return variable ? loop_->operands[v->index] : v;
}

/// A value that the loop starts from: what it takes is emitted in front of the loop.
ir::Value* LoopRegion::before_loop(ir::FunctionRef<Datum()> make) {
  StagedFunction* const current = std::exchange(staging_.current_, function_);
  ir::Block* const block = std::exchange(function_->block, around_);
  around_->ops.pop_back();
  const auto put_back = [&] {
    around_->ops.push_back(loop_);
    function_->block = block;
    staging_.current_ = current;
  };
  try {
    ir::Value* const v = staging_.use(make(), loc());
    put_back();
    return v;
  } catch (...) {
    put_back();
    throw;
  }
}

std::size_t LoopRegion::add_state(const StorageBase& v, ir::Value* initial) {
  const auto known = types_.find(&v);
  const ir::Type type = known == types_.end() ? initial->type : known->second;
  const std::size_t index = loop_->operands.size();
  loop_->operands.push_back(initial);
  for (ir::Block* b : loop_->blocks) staging_.module().add_param(b, type, initial->name);
  state_.emplace(&v, index);
  return index;
}

Datum LoopRegion::enter(StorageBase& v, const Datum& before) {
  const auto known = types_.find(&v);
  if (before.empty() && known == types_.end()) return before;  // its type is known when it is assigned
  const std::size_t i =
      add_state(v, before_loop([&] { return before.empty() ? unset(staging_, known->second) : before; }));
  return Datum::node(loop_->blocks[in_body_ ? 1 : 0]->params[i]);
}

bool LoopRegion::begin_body() {
  in_body_ = true;
  for (Change& c : met_) {
    if (!c.variable) continue;
    if (!same(value(*c.variable), c.inside)) return false;
    const auto i = state_.find(c.variable);
    if (i == state_.end()) continue;
    c.inside = Datum::node(loop_->blocks[1]->params[i->second]);
    put(*c.variable, c.inside);
  }
  return true;
}

bool LoopRegion::end_body(std::vector<ir::Value*>& yields) {
  require_all();
  bool fits = true;
  for (const Change& c : met_) {
    if (!c.variable || value(*c.variable).empty()) continue;
    ir::Value* const after = staging_.use(value(*c.variable), loc());
    const auto i = state_.find(c.variable);
    if (i == state_.end()) {  // it had no value before the loop; a branch in a later iteration may leave it as it is
      types_.insert_or_assign(c.variable, after->type);
      fits = false;
      continue;
    }
    ir::Value* const param = loop_->blocks[1]->params[i->second];
    const ir::Type joined = with_notes(
        staging_, {{"the variable before the loop", loop_->operands[i->second]}, {"the variable after the body", after}},
        loc(), [&] { return join_types(param->type, after->type, "a variable that a loop assigns", loc()); });
    if (!(joined == param->type)) {
      types_.insert_or_assign(c.variable, joined);
      fits = false;
    }
    if (yields.size() <= i->second) yields.resize(i->second + 1);
    yields[i->second] = after;
  }
  return fits;
}

namespace {

/// Takes the listed state (in falling order) out of a loop.
void remove_state(ir::Op* loop, const std::vector<std::size_t>& falling) {
  for (const std::size_t i : falling) {
    const auto at = static_cast<std::ptrdiff_t>(i);
    for (ir::Block* b : loop->blocks) b->params.erase(b->params.begin() + at);
    loop->blocks[1]->yields().erase(loop->blocks[1]->yields().begin() + at);
    loop->operands.erase(loop->operands.begin() + at);
  }
  for (ir::Block* b : loop->blocks)
    for (std::size_t k = 0; k < b->params.size(); ++k) b->params[k]->index = static_cast<std::uint32_t>(k);
}

}  // namespace

std::vector<std::pair<StorageBase*, std::size_t>> LoopRegion::finish(std::size_t keep) {
  std::vector<StorageBase*> variables(loop_->operands.size(), nullptr);
  for (const auto& [v, i] : state_) variables[i] = const_cast<StorageBase*>(v);
  for (;;) {
    ir::Renaming by;
    std::vector<std::size_t> constant;
    const std::vector<ir::Value*>& next = loop_->blocks[1]->yields();
    for (std::size_t i = loop_->operands.size(); i-- > keep;) {
      ir::Value* const start = loop_->operands[i];
      if (next[i] != loop_->blocks[1]->params[i] && next[i] != start) continue;
      for (const ir::Block* b : loop_->blocks) by.emplace(b->params[i], start);
      constant.push_back(i);
      variables.erase(variables.begin() + static_cast<std::ptrdiff_t>(i));
    }
    if (constant.empty()) break;
    for (ir::Block* b : loop_->blocks) ir::replace_uses(b, by);
    staging_.replace_captured(functions_, by);
    remove_state(loop_, constant);
  }
  std::vector<std::pair<StorageBase*, std::size_t>> left;
  for (std::size_t i = keep; i < variables.size(); ++i) left.emplace_back(variables[i], i);
  return left;
}

Datum unset(Staging& s, const ir::Type& type) {
  if (type.is_scalar()) return Datum::zero(type);
  if (!type.is_tensor()) return {};
  Datums operands{Datum::zero(ir::Type(type.element()))};
  std::vector<std::int64_t> dims = type.dims();
  for (std::int64_t& n : dims) {
    n = n == ir::dynamic ? 0 : n;
    operands.push_back(Datum::integer(n, ir::I64));
  }
  return s.emit({Opcode::fill_, 0, {}, dims}, operands);
}

}  // namespace lantern::core
