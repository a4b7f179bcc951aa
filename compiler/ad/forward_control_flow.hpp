// Modes that carry companions beside every number, forward: a tangent, or further coefficients of a series.
#pragma once

#include <unordered_map>

#include "lantern/compiler/ad/replay.hpp"
#include "lantern/ir/graph.hpp"

namespace lantern::core::ad {

/// Constructs over the graph: branches, loops, functions and tapes take the companions of a floating value
/// along.
class ForwardControlFlow : public StagedMode {
 public:
  ForwardControlFlow(Mode& mode, Staging& staging, std::size_t companions, const char* suffix)
      : StagedMode(mode, staging), companions_(companions), suffix_(suffix) {}

  Datums branch(const Datum& condition, const Thunk& then, const Thunk& otherwise,
              const std::vector<ir::Type>& results, const Location& loc) override;
  Datums loop(const Datums& initial, const std::vector<ir::Type>& state, const Condition& condition,
            const Body& body, std::int64_t attribute, const Location& loc) override;
  Datums call(ir::Function* callee, const Datums& arguments, std::int64_t attribute,
            const Location& loc) override;
  void push(std::int64_t tape, const Datum& value, const Location& loc) override;
  Datum pop(std::int64_t tape, const ir::Type& type, const Location& loc) override;

 protected:
  /// The companions of a floating datum, one level down; zeros where it has none.
  virtual Datums companions_of(const Datum& d, const Location& loc) const = 0;
  /// A floating datum with its companions.
  virtual Datum with(const Datum& primal, std::span<const Datum> companions) = 0;

 private:
  /// Which of some data come with a condition.
  using Conditional = std::vector<bool>;
  Conditional conditional(const Datums& data, const std::vector<ir::Type>& types) const;
  /// Every floating value followed by its companions, then the conditions, and back.
  Datums split(const Datums& data, const std::vector<ir::Type>& types, const Conditional& kept, const Location& loc) const;
  Datums join(const Datums& data, const std::vector<ir::Type>& types, const Conditional& kept);
  /// A function's companion, and which of its results come with a condition.
  struct Instance {
    ir::Function* function;
    Conditional kept;
  };
  Instance instance(ir::Function* callee, const Active& active, const Conditional& given);

  std::size_t companions_;
  const char* suffix_;  ///< of functions' names
  std::unordered_map<std::string, Instance> instances_;
};

}  // namespace lantern::core::ad
