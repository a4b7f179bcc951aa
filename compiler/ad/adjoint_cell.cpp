// Eager and staged adjoint cells.
#include "lantern/compiler/ad/adjoint_cell.hpp"

#include "lantern/compiler/staging/staging.hpp"

namespace lantern::ad {

namespace {

class EagerCell : public Cell {
 public:
  explicit EagerCell(const Datum& like) : like_(like) {}

  void add(const Datum& v, const Location& loc) override {
    if (value_.empty())
      value_ = v;
    else if (v.type().is_scalar())
      value_ = perform({Opcode::add_, 0, loc}, {value_, v});
    else
      value_ = combine(Opcode::add_, {v}, loc);
  }
  void accumulate(Opcode op, const Data& arguments, const Location& loc) override {
    if (value_.empty()) value_ = zeros_like(like_, loc);
    value_ = combine(op, arguments, loc);
  }
  Datum get(const Location& loc) override { return value_.empty() ? zeros_like(like_, loc) : value_; }
  bool touched() const override { return !value_.empty(); }

 private:
  // At the bottom level the cell's own memory is reused; above it, the level's handler is asked.
  Datum combine(Opcode op, const Data& arguments, const Location& loc) {
    Data operands;
    operands.push_back(std::move(value_));
    bool tagged = operands[0].is_tagged();
    for (const Datum& d : arguments) {
      tagged |= d.is_tagged();
      operands.push_back(d);
    }
    if (tagged || operands[0].is_node()) return perform({op, 0, loc}, operands);
    return evaluate({op, 0, loc}, operands);
  }

  Datum like_;
  Datum value_;
};

ir::Op* emit(Opcode code, std::vector<ir::Value*> operands, const Location& loc,
             const std::vector<ir::Type>& results = {}) {
  return context().staging->builder(loc).op(code, std::move(operands), results);
}

}  // namespace

CellPtr eager_cell(const Datum& like) { return std::allocate_shared<EagerCell>(PoolAllocator<EagerCell>(), like); }

std::shared_ptr<StagedCell> staged_cell(ir::Value* primal, const Location& loc) {
  return std::make_shared<StagedCell>(
      emit(Opcode::ref_new_, {primal}, loc, {ir::Type::ref(primal->type)})->result());
}

void StagedCell::add(const Datum& v, const Location& loc) {
  touched_ = true;
  emit(Opcode::ref_add_, {ref_, context().staging->use(v, loc)}, loc);
}

void StagedCell::accumulate(Opcode op, const Data& arguments, const Location& loc) {
  touched_ = true;
  std::vector<ir::Value*> operands{ref_};
  for (const Datum& d : arguments) operands.push_back(context().staging->use(d, loc));
  emit(Opcode::ref_acc_, std::move(operands), loc)->integer = static_cast<std::int64_t>(op);
}

Datum StagedCell::get(const Location& loc) {
  return Datum::node(emit(Opcode::ref_get_, {ref_}, loc, {ref_->type.content()})->result());
}

}  // namespace lantern::ad
