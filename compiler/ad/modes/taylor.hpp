// Forward mode of any order: numbers that are truncated Taylor series.
#pragma once

#include "lantern/compiler/ad/custom_rule.hpp"
#include "lantern/compiler/ad/forward_control_flow.hpp"
#include "lantern/compiler/staging/operation.hpp"

namespace lantern::core::ad {

/// Coefficients of a power series; the one of order 0 first. An empty datum is zero, except the first.
using Coefficients = Datums;

/// The arithmetic of power series in t, one level up: see taylor.cpp.
class Taylor : public Mode {
 public:
  using Mode::Mode;
  const char* name() const override { return "Taylor mode"; }

  Datum series(Coefficients c);
  /// The coefficient of t^k; empty if it is zero.
  Datum coefficient(const Datum& d, std::size_t k) const;
  Datum apply(const Operation& op, std::span<const Datum> operands) override;
  /// The rule's tangent along the series is the series of the derivative: as for an operation, of one order
  /// less.
  Datums follow(const std::shared_ptr<const Rule>& rule, const Datums& arguments, const Location& loc) override;

 private:
  struct Series : TaggedBox {
    Series(Mode& m, Datum p, Coefficients all) : TaggedBox(m, std::move(p)), c(std::move(all)) {}
    Coefficients c;
  };
  const Series* series_of(const Datum& d) const { return number_of<Series>(d); }
  /// How many coefficients are known of each of them.
  std::size_t known(std::span<const Datum> data) const;
  Datums coefficients(std::span<const Datum> data, std::size_t k) const;
  /// Values, and the derivatives of their derivatives of order 0 and more, last in each list, as series.
  Datums integrated(Datums values, const std::vector<Datums>& orders, const Location& loc);
  /// The first `size` coefficients; a plain datum if that is one.
  Datum truncated(const Datum& d, std::size_t size);
  /// One coefficient of the result.
  Datum elementwise(const Operation& op, std::span<const Datum> operands, const Coefficients& r,
                    std::size_t k);
  Datum by_leibniz(const Operation& op, std::span<const Datum> operands, std::size_t k);
};

/// The same over the graph: constructs carry the coefficients of orders 1 to `order` beside every floating
/// value.
class StagedTaylor : public Taylor, public ForwardControlFlow {
 public:
  StagedTaylor(Staging& staging, std::uint64_t tag, std::size_t order)
      : Taylor(tag), ForwardControlFlow(*this, staging, order, "_taylor"), order_(order) {}

 protected:
  Datums companions_of(const Datum& d, const Location& loc) const override;
  Datum with(const Datum& primal, std::span<const Datum> companions) override;

 private:
  std::size_t order_;
};

}  // namespace lantern::core::ad
