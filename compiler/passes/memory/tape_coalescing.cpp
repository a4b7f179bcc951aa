// Tapes that are worked on in step become one.
#include "lantern/compiler/passes/memory/tape_coalescing.hpp"

#include <map>
#include <tuple>
#include <vector>

namespace lantern::passes {

namespace {

using ir::Op;
using ir::Opcode;

/// Where a tape is worked on. Tapes with the same sites and the same type of value are in step.
struct Tape {
  ir::Type type;
  std::vector<std::size_t> sites;  ///< runs of pushes or of pops, by number
  bool simple = true;              ///< one scalar or vector at a time
};

class Records {
 public:
  explicit Records(ir::Module& module) {
    for (const ir::Function* f : module.functions())
      for (ir::Block* b : ir::blocks_below(f->body)) blocks_.push_back(b);
    for (ir::Block* b : blocks_) find_sites(b);
  }

  void run() {
    // Ordered by tape, so that the first of a record is the one with the smallest number.
    using Key = std::tuple<std::vector<std::size_t>, std::string>;
    std::map<Key, std::vector<std::int64_t>> records;
    for (const auto& [number, tape] : tapes_)
      if (tape.simple) records[{tape.sites, tape.type.str()}].push_back(number);
    for (const auto& [key, members] : records)
      for (std::size_t i = 0; i < members.size(); ++i)
        place_[members[i]] = {members.front(), i, members.size()};
    for (ir::Block* b : blocks_) merge(b);
  }

 private:
  struct Place {
    std::int64_t tape = 0;  ///< of the record
    std::size_t index = 0, size = 1;
  };

  void find_sites(const ir::Block* b) {
    const Op* before = nullptr;
    for (const Op* op : b->ops) {
      if (ir::is_on_tape(*op)) {
        if (!before || before->code != op->code) ++site_;
        note(*op);
      }
      before = op;
    }
  }

  void note(const Op& op) {
    const auto& values = op.is(Opcode::push_) ? op.operands : op.results;
    Tape& tape = tapes_.try_emplace(op.integer, Tape{values.front()->type, {}, true}).first->second;
    tape.simple &= values.size() == 1 && values.front()->type == tape.type && tape.type.is_scalar() &&
                   op.number == 0 && (tape.sites.empty() || tape.sites.back() != site_);
    tape.sites.push_back(site_);
  }

  /// Gathers the operations of each record in a run into its first pop or its last push.
  void merge(ir::Block* b) {
    std::vector<Op*> kept;
    for (std::size_t i = 0; i < b->ops.size();) {
      std::size_t end = i + 1;
      if (ir::is_on_tape(*b->ops[i]))
        while (end < b->ops.size() && b->ops[end]->code == b->ops[i]->code) ++end;
      merge_run(
          std::vector<Op*>(b->ops.begin() + static_cast<long>(i), b->ops.begin() + static_cast<long>(end)),
          kept);
      i = end;
    }
    b->ops = std::move(kept);
  }

  void merge_run(const std::vector<Op*>& run, std::vector<Op*>& kept) {
    std::map<std::int64_t, std::vector<Op*>> members;
    const auto place = [&](const Op* op) {
      const auto it = ir::is_on_tape(*op) ? place_.find(op->integer) : place_.end();
      return it == place_.end() ? Place{} : it->second;
    };
    for (Op* op : run)
      if (const Place p = place(op); p.size > 1) {
        auto& list = members[p.tape];
        list.resize(p.size);
        list[p.index] = op;
      }
    std::map<std::int64_t, std::size_t> seen;
    for (Op* op : run) {
      const Place p = place(op);
      if (p.size == 1) {
        kept.push_back(op);
        continue;
      }
      const std::size_t nth = ++seen[p.tape];
      if (nth != (op->is(Opcode::push_) ? p.size : 1)) continue;
      kept.push_back(joined(op, p.tape, members[p.tape]));
    }
  }

  static Op* joined(Op* op, std::int64_t tape, const std::vector<Op*>& members) {
    std::vector<ir::Value*> values;
    for (const Op* m : members) values.push_back(m->is(Opcode::push_) ? m->operands[0] : m->results[0]);
    op->integer = tape;
    if (op->is(Opcode::push_)) {
      op->operands = std::move(values);
      return op;
    }
    for (std::size_t i = 0; i < values.size(); ++i) {
      values[i]->def = op;
      values[i]->index = static_cast<std::uint32_t>(i);
    }
    op->results = std::move(values);
    return op;
  }

  std::vector<ir::Block*> blocks_;
  std::map<std::int64_t, Tape> tapes_;
  std::map<std::int64_t, Place> place_;
  std::size_t site_ = 0;
};

}  // namespace

void tape_coalescing(ir::Module& module) { Records(module).run(); }

}  // namespace lantern::passes
