// An interpreter of the IR for tests, in direct style and in continuation-passing style. It shares memory as
// the printed code does: rows, slices and reshapes are views, handles are passed on, and an operation that
// the inplace pass has marked overwrites its first operand. A wrong mark thus gives a wrong result.
#pragma once

#include <array>
#include <cmath>
#include <map>
#include <memory>
#include <stdexcept>
#include <unordered_map>

#include "lantern/compiler/staging/operation.hpp"
#include "lantern/ir/error.hpp"
#include "lantern/ir/graph.hpp"
#include "lantern/ir/op.hpp"
#include "lantern/ir/verify.hpp"

namespace lantern::ir::test {

using namespace core;

/// The program takes too long to be compared.
struct Endless : std::runtime_error {
  Endless() : std::runtime_error("endless") {}
};

class Interpreter {
 public:
  struct Frame;
  struct Item {
    Datum scalar;
    std::shared_ptr<std::vector<double>> memory;  ///< of a tensor
    std::size_t at = 0;
    std::vector<std::int64_t> shape;
    std::shared_ptr<Item> cell;
    const Op* fun = nullptr;  ///< of a continuation
    Frame* frame = nullptr;

    std::int64_t i() const { return scalar.i(); }
    std::size_t count() const {
      std::size_t n = 1;
      for (const std::int64_t d : shape) n *= static_cast<std::size_t>(d);
      return n;
    }
    double* data() const { return memory->data() + at; }
  };
  using Items = std::vector<Item>;
  struct Frame {
    Frame* up = nullptr;
    std::unordered_map<const Value*, Item> values;
  };

  /// `sizes`: a mask for the sizes of what is filled, which in random programs may be any numbers.
  explicit Interpreter(std::size_t steps = 20000, std::int64_t sizes = 3) : steps_(steps), sizes_(sizes) {}

  static Item number(double v) { return {Datum::number(v, F64), {}, 0, {}, {}, nullptr, nullptr}; }
  static Item integer(std::int64_t v, const Type& type = I64) {
    return {Datum::integer(v, type), {}, 0, {}, {}, nullptr, nullptr};
  }
  static Item tensor(std::vector<std::int64_t> shape, const std::vector<double>& elements = {}) {
    Item t;
    t.shape = std::move(shape);
    t.memory = std::make_shared<std::vector<double>>(elements);
    t.memory->resize(t.count());
    return t;
  }

  /// The numbers of all results in order. Throws Error where the program raises.
  std::vector<double> run(const Module& module, const Items& arguments) {
    std::vector<double> out;
    for (const Item& item : results(module, arguments)) append(out, item);
    return out;
  }
  /// The results themselves: scalars may be of any handler.
  Items results(const Module& module, const Items& arguments) {
    return call(*module.entry, arguments, nullptr);
  }
  /// Runs parallel loops, whose iterations may run in any order, in the order that a wrong one shows most.
  void last_trip_first() { last_trip_first_ = true; }
  /// How many tensors were made.
  std::size_t allocations() const { return allocations_; }

  static void append(std::vector<double>& out, const Item& item) {
    if (item.memory)
      out.insert(out.end(), item.data(), item.data() + item.count());
    else if (item.scalar.type().is_float_element())
      out.push_back(item.scalar.f());
    else
      out.push_back(static_cast<double>(item.scalar.i()));
  }

 private:
  Items call(const Function& f, const Items& arguments, Frame* up) {
    if (++depth_ > 300) throw Endless();
    Frame frame{up, {}};
    Items results = block(*f.body, arguments, frame);
    --depth_;
    return results;
  }

  void jump(const Item& k, const Items& arguments) {
    if (++depth_ > 300) throw Endless();
    Frame frame{k.frame, {}};
    block(*k.fun->blocks[0], arguments, frame);
    --depth_;
  }

  static Item& get(Frame& frame, const Value* v) {
    for (Frame* f = &frame; f; f = f->up)
      if (const auto it = f->values.find(v); it != f->values.end()) return it->second;
    throw InternalError("a value without a definition");
  }
  static Items get(Frame& frame, const std::vector<Value*>& values, std::size_t from = 0) {
    Items items;
    for (std::size_t i = from; i < values.size(); ++i) items.push_back(get(frame, values[i]));
    return items;
  }
  static void define(Frame& frame, const std::vector<Value*>& values, const Items& items) {
    for (std::size_t i = 0; i < values.size(); ++i) frame.values[values[i]] = items[i];
  }

  Items block(const Block& b, const Items& arguments, Frame& frame) {
    define(frame, b.params, arguments);
    for (const Op* op : b.ops) {
      if (steps_-- == 0) throw Endless();
      if (op->is(Opcode::yield_)) return get(frame, op->operands);
      execute(*op, frame);
    }
    return {};
  }

  /// The iterations of a parallel loop from the last one to the first: what counts is set for each of them, and
  /// the rest goes from iteration to iteration.
  Items backwards(const Op& loop, Items state, Frame& frame) {
    const Block& body = *loop.blocks[1];
    const auto step = [&](std::size_t i) {
      const Op& next = *body.ops.back()->operands[i]->def;
      const Op* by = next.operands[next.operands[0] == body.params[i] ? 1 : 0]->def;
      return next.is(Opcode::sub_) ? -by->integer : by->integer;
    };
    const auto iteration = [&](const Items& start, std::int64_t n) {
      Items at = start;
      for (std::size_t i = 0; i < at.size(); ++i)
        if (counts(combine(loop, i))) at[i] = integer(start[i].i() + n * step(i));
      return at;
    };
    std::int64_t iterations = 0;
    while (block(*loop.blocks[0], iteration(state, iterations), frame)[0].scalar.b()) ++iterations;
    const Items start = state;
    for (std::int64_t n = iterations; n-- > 0;) {
      const Items at = iteration(start, n);
      for (std::size_t i = 0; i < state.size(); ++i)
        if (counts(combine(loop, i))) state[i] = at[i];
      state = block(body, state, frame);
    }
    const Items end = iteration(start, iterations);
    for (std::size_t i = 0; i < state.size(); ++i)
      if (counts(combine(loop, i))) state[i] = end[i];
    return state;
  }

  void execute(const Op& op, Frame& frame) {
    switch (op.code) {
      case Opcode::constant_:
        frame.values[op.result()] = {op.result()->type.is_float_element()
                                         ? Datum::number(op.number, op.result()->type)
                                         : Datum::integer(op.integer, op.result()->type),
                                     {},
                                     0,
                                     {},
                                     {},
                                     nullptr,
                                     nullptr};
        return;
      case Opcode::undef_:
        frame.values[op.result()] = zero(op.result()->type);
        return;
      case Opcode::branch_: {
        const Block& side = *op.blocks[get(frame, op.operands[0]).scalar.b() ? 0 : 1];
        return define(frame, op.results, block(side, {}, frame));
      }
      case Opcode::loop_: {
        Items state = get(frame, op.operands);
        if (last_trip_first_ && is_parallel(op))
          return define(frame, op.results, backwards(op, state, frame));
        while (block(*op.blocks[0], state, frame)[0].scalar.b()) state = block(*op.blocks[1], state, frame);
        return define(frame, op.results, state);
      }
      case Opcode::call_:
        return define(frame, op.results, call(*op.callee, get(frame, op.operands), nullptr));
      case Opcode::fun_: {
        Item k;
        k.fun = &op;
        k.frame = &frame;
        frame.values[op.result()] = k;
        return;
      }
      case Opcode::jump_:
        return jump(Item(get(frame, op.operands[0])), get(frame, op.operands, 1));
      case Opcode::halt_:
      case Opcode::forget_:
        return;
      case Opcode::check_:
        if (!get(frame, op.operands[0]).scalar.b()) throw Error(op.text);
        return;
      case Opcode::ref_new_:
      case Opcode::slot_: {
        Item c;
        const bool sized = op.is(Opcode::ref_new_) && op.operands[0]->type.is_tensor();
        c.cell = std::make_shared<Item>(sized ? tensor(get(frame, op.operands[0]).shape)
                                              : zero(op.result()->type.content()));
        frame.values[op.result()] = c;
        return;
      }
      case Opcode::ref_get_:
        frame.values[op.result()] = *get(frame, op.operands[0]).cell;
        return;
      case Opcode::ref_set_:
        *get(frame, op.operands[0]).cell = get(frame, op.operands[1]);
        return;
      case Opcode::ref_add_:
      case Opcode::ref_acc_: {
        Items in = get(frame, op.operands);
        Item& cell = *in[0].cell;
        in[0] = cell;
        cell = pure(op, op.is(Opcode::ref_add_) ? Opcode::add_ : ir::accumulated_by(op), in);
        return;
      }
      case Opcode::push_:
        for (const Value* v : op.operands) tapes_[op.integer].push_back(get(frame, v));
        return;
      case Opcode::pop_:
        for (std::size_t i = op.results.size(); i-- > 0;) {
          frame.values[op.results[i]] = tapes_[op.integer].back();
          tapes_[op.integer].pop_back();
        }
        return;
      default:
        frame.values[op.result()] = pure(op, op.code, get(frame, op.operands));
    }
  }

  static Item zero(const Type& type) {
    if (!type.is_tensor()) return {Datum::zero(type), {}, 0, {}, {}, nullptr, nullptr};
    std::vector<std::int64_t> shape = type.dims();
    for (std::int64_t& d : shape) d = d == dynamic ? 0 : d;
    return tensor(shape);
  }

  static Datum scalar(Opcode code, std::int64_t attribute, std::vector<Datum> operands) {
    return perform({code, attribute, {}}, operands);
  }

  Item fresh(const std::vector<std::int64_t>& shape) {
    ++allocations_;
    return tensor(shape);
  }
  Item copied(const Item& t) {
    Item r = fresh(t.shape);
    std::copy_n(t.data(), t.count(), r.data());
    return r;
  }
  static bool marked(const Op& op) { return op.in_place; }
  /// What an update works on.
  Item target(const Op& op, const Item& t) { return marked(op) ? t : copied(t); }
  static std::size_t row(const Item& t, std::int64_t i, std::int64_t rows = 1) {
    if (i < 0 || rows < 0 || i + rows > t.shape[0]) throw Error("outside");
    const std::size_t size = t.shape[0] ? t.count() / static_cast<std::size_t>(t.shape[0]) : 0;
    return static_cast<std::size_t>(i) * size;
  }

  /// The value of an operation, which may be the one that `op` accumulates by.
  Item pure(const Op& op, Opcode code, const Items& in) {
    const bool tensors = !in.empty() && (in[0].memory || in.back().memory);
    if (!tensors && code != Opcode::fill_) {
      std::vector<Datum> operands;
      for (const Item& item : in) operands.push_back(item.scalar);
      return {scalar(code, op.code == code ? op.integer : 0, operands), {}, 0, {}, {}, nullptr, nullptr};
    }
    const Item& t = in[0];
    switch (code) {
      case Opcode::fill_: {
        std::vector<std::int64_t> shape;
        for (std::size_t i = 1; i < in.size(); ++i) shape.push_back(in[i].i() & sizes_);
        if (op.result()->type.dims()[0] != dynamic) shape = op.result()->type.dims();
        Item r = fresh(shape);
        std::fill_n(r.data(), r.count(), t.scalar.f());
        return r;
      }
      case Opcode::dim_:
        return integer(t.shape[static_cast<std::size_t>(op.integer)]);
      case Opcode::zeros_like_:
        return fresh(t.shape);
      case Opcode::copy_:
        return target(op, t);
      case Opcode::get_:
        return number(t.data()[row(t, in[1].i())]);
      case Opcode::set_:
      case Opcode::add_at_: {
        const std::size_t i = row(t, in[1].i());
        Item r = target(op, t);
        r.data()[i] = code == Opcode::set_ ? in[2].scalar.f() : r.data()[i] + in[2].scalar.f();
        return r;
      }
      case Opcode::take_: {
        Item r = t;
        r.at += row(t, in[1].i());
        r.shape.erase(r.shape.begin());
        return r;
      }
      case Opcode::slice_: {
        Item r = t;
        r.at += row(t, in[1].i(), in[2].i() - in[1].i());
        r.shape[0] = in[2].i() - in[1].i();
        return r;
      }
      case Opcode::reshape_: {
        Item r = t;
        r.shape = in[1].shape;
        if (r.count() != t.count()) throw Error("sizes");
        return r;
      }
      case Opcode::add_take_: {
        const std::size_t i = row(t, in[1].i());
        Item r = target(op, t);
        for (std::size_t j = 0; j < in[2].count(); ++j) r.data()[i + j] += in[2].data()[j];
        return r;
      }
      case Opcode::sum_: {
        double sum = 0;
        for (std::size_t i = 0; i < t.count(); ++i) sum += t.data()[i];
        return number(sum);
      }
      default:
        break;
    }
    if (code == Opcode::select_ && !t.memory) return t.scalar.b() ? in[1] : in[2];
    const OpInfo& row_info = info(code);
    if (!row_info.elementwise) throw InternalError("the interpreter lacks " + std::string(row_info.name));
    for (const Item& item : in)
      if (item.shape != t.shape) throw Error("shapes");
    Item r = marked(op) ? t : fresh(t.shape);
    for (std::size_t i = 0; i < t.count(); ++i) {
      std::vector<Datum> operands;
      for (std::size_t k = 0; k < in.size(); ++k) {
        const bool boolean = op.operands[k]->type.element() == Kind::boolean;
        operands.push_back(boolean ? Datum::integer(in[k].data()[i] != 0, Bool)
                                   : Datum::number(in[k].data()[i], F64));
      }
      const Datum v = scalar(code, 0, operands);
      r.data()[i] = v.type().is_bool() ? static_cast<double>(v.b()) : v.f();
    }
    return r;
  }

  std::size_t steps_;
  std::int64_t sizes_;
  bool last_trip_first_ = false;
  int depth_ = 0;
  std::size_t allocations_ = 0;
  std::map<std::int64_t, Items> tapes_;
};

/// Where a continuation calls itself for ever, the last call of the branch's other side may have become code, which
/// the verifier refuses.
inline bool has_endless_side(const Module& m) {
  try {
    verify(m);
  } catch (const std::exception& e) {
    return std::string_view(e.what()).find("both blocks of a branch to call a continuation") != std::string_view::npos;
  }
  return false;
}

/// Equal to the bit, but for the kind of NaN.
inline bool same_numbers(const std::vector<double>& a, const std::vector<double>& b) {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (std::isnan(a[i]) && std::isnan(b[i])) continue;
    if (a[i] != b[i] || std::signbit(a[i]) != std::signbit(b[i])) return false;
  }
  return true;
}

}  // namespace lantern::ir::test
