// Forward mode over the graph: constructs carry a tangent beside every floating value.
#pragma once

#include <unordered_map>

#include "lantern/compiler/ad/forward.hpp"
#include "lantern/compiler/ad/replay.hpp"

namespace lantern::ad {

class StagedForward : public Forward, public StagedMode {
 public:
  StagedForward(Staging& staging, std::uint64_t tag) : Forward(tag), staging_(staging) {}

  Mode& mode() override { return *this; }
  Datum primal_of(const Datum& d) const override { return primal(d); }
  bool is_active(const Datum& d) const override { return dual_of(d) != nullptr; }

  Data branch(const Datum& condition, const Thunk& then, const Thunk& otherwise,
              const std::vector<ir::Type>& results, const Location& loc) override;
  Data loop(const Data& initial, const std::vector<ir::Type>& state, const Condition& condition, const Body& body,
            std::int64_t attribute, const Location& loc) override;
  Data call(ir::Function* callee, const Data& arguments, std::int64_t attribute, const Location& loc) override;
  void push(std::int64_t tape, const Datum& value, const Location& loc) override;
  Datum pop(std::int64_t tape, const ir::Type& type, const Location& loc) override;

  /// Floating values followed by their tangents.
  Data split(const Data& data, const std::vector<ir::Type>& types, const Location& loc) const;
  Data join(const Data& data, const std::vector<ir::Type>& types);

 private:
  ir::Function* instance(ir::Function* callee, const std::vector<bool>& active);
  std::int64_t tangent_tape(std::int64_t tape);

  Staging& staging_;
  std::unordered_map<std::string, ir::Function*> instances_;
  std::unordered_map<std::int64_t, std::int64_t> tapes_;
};

}  // namespace lantern::ad
