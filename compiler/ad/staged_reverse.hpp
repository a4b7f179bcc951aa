// Reverse mode over the graph: operators as in reverse.hpp, control flow by continuation capture (paper, 4).
#pragma once

#include <unordered_map>

#include "lantern/compiler/ad/replay.hpp"
#include "lantern/compiler/ad/reverse.hpp"
#include "lantern/compiler/ad/unit.hpp"
#include "lantern/ir/function_ref.hpp"
#include "lantern/ir/graph.hpp"

namespace lantern::core::ad {

class StagedReverse : public Reverse, public StagedMode {
 public:
  StagedReverse(Staging& staging, std::uint64_t tag) : Reverse(tag), StagedMode(*this, staging) {}

  /// Emits a program and its backward part: its values if `values`, then one adjoint per active argument. `seeds`: of
  /// the floating results.
  Datums vjp(const Unit& unit, const Datums& seeds, bool values, const Location& loc);
  /// The same of a program whose result is one floating scalar.
  Datums gradient(const Unit& unit, bool value, const Location& loc);

  ir::Part part() const override { return ir::Part::forward; }
  bool is_backward() const override { return true; }

  Datums branch(const Datum& condition, const Thunk& then, const Thunk& otherwise,
              const std::vector<ir::Type>& results, const Location& loc) override;
  Datums loop(const Datums& initial, const std::vector<ir::Type>& state, const Condition& condition, const Body& body,
            std::int64_t attribute, const Location& loc) override;
  Datums call(ir::Function* callee, const Datums& arguments, std::int64_t attribute, const Location& loc) override;
  void push(std::int64_t tape, const Datum& value, const Location& loc) override;
  Datum pop(std::int64_t tape, const ir::Type& type, const Location& loc) override;

 protected:
  CellPtr make_cell(const Datum& primal, const Location& loc) override;
  bool eager() const override { return false; }

  /// A floating value becomes a primal and a cell, another value stays one.
  static std::vector<ir::Type> lifted_types(const std::vector<ir::Type>& types);
  /// Graph values of a datum of the given type: primal, and cell if floating. A value that no derivative reaches
  /// gets a fresh cell: what the mode in charge needs decides, not the operand's tag.
  void lift(const Datum& d, std::vector<ir::Value*>& out, const Location& loc);
  std::vector<ir::Value*> lift(const Datums& data, const Location& loc);
  /// The reverse: data over block parameters.
  Datums variables(const std::vector<ir::Value*>& params, const std::vector<ir::Type>& types);
  void jump(ir::Value* continuation, const Datums& results, const Location& loc);
  /// Emits a continuation `name(types lifted)`; its body is filled in later.
  ir::Op* continuation(const char* name, const std::vector<ir::Type>& types, const Location& loc);
  /// Emits in a block, which ends with what `f` emits.
  void inside(ir::Block* block, const Location& loc, ir::FunctionRef<void()> f);

 private:
  ir::Function* instance(ir::Function* callee, const Active& active);

  std::unordered_map<std::string, ir::Function*> instances_;
};

// This mode, and those that are it but for one thing, one file each; see `mode`.
std::shared_ptr<StagedReverse> make_staged_reverse(Staging& staging, std::uint64_t tag);
std::shared_ptr<StagedReverse> make_staged_cps(Staging& staging, std::uint64_t tag);
std::shared_ptr<StagedReverse> make_staged_divide_and_conquer(Staging& staging, std::uint64_t tag);

}  // namespace lantern::core::ad
