// Eigen matrices of Reps: Eigen::Matrix<Rep<double>, 3, 1> and the like, for programs that use Eigen 3.
//
//   #include <lantern/eigen.hpp>
//   using V = Eigen::Matrix<Rep<double>, 3, 1>;
//   Rep<double> f(V a, V b) { return (2.0 * a).cross(b).squaredNorm(); }
//
// A matrix of a fixed size is a product, as a struct of its elements is.
//
// What Eigen computes without looking at numbers works: sums and products, dot, cross, norm, determinant and
// inverse of fixed sizes up to 4, blocks, transposed. Elements are Reps, so that native loops and branches
// may assign matrices. What compares numbers to find its way, as a pivot or a convergence does, does not
// compile: a Rep<bool> is no bool.
#pragma once

#include <Eigen/Core>
#include <tuple>
#include <utility>

#include "lantern/lantern.hpp"

namespace Eigen {

template <class T>
struct NumTraits<lantern::Rep<T>> : GenericNumTraits<T> {
  using Real = lantern::Rep<T>;
  using NonInteger = lantern::Rep<T>;
  using Nested = lantern::Rep<T>;
  using Literal = T;
  enum {
    IsComplex = 0,
    IsInteger = NumTraits<T>::IsInteger,
    IsSigned = NumTraits<T>::IsSigned,
    RequireInitialization = 1,
    ReadCost = 1,
    AddCost = 2,
    MulCost = 2
  };
  static Real epsilon() { return NumTraits<T>::epsilon(); }
  static Real dummy_precision() { return NumTraits<T>::dummy_precision(); }
  static Real highest() { return NumTraits<T>::highest(); }
  static Real lowest() { return NumTraits<T>::lowest(); }
  static int digits10() { return NumTraits<T>::digits10(); }
};

/// Numbers of the host mix with Reps of them: 2.0 * a.
template <class T, class Op>
struct ScalarBinaryOpTraits<lantern::Rep<T>, T, Op> {
  using ReturnType = lantern::Rep<T>;
};
template <class T, class Op>
struct ScalarBinaryOpTraits<T, lantern::Rep<T>, Op> {
  using ReturnType = lantern::Rep<T>;
};

}  // namespace Eigen

/// Matrices of a fixed size are products, in the order of their memory: they may be what a function takes and
/// gives, the state of FOR and WHILE, and what IF gives. Outside, an Eigen::Matrix<Rep<double>, 3, 1> is an
/// Eigen::Matrix<double, 3, 1>.
template <class S, int rows, int columns, int options>
  requires(rows > 0 && columns > 0)
struct lantern::core::detail::MembersOf<Eigen::Matrix<S, rows, columns, options, rows, columns>> {
  static auto of(auto& m) {
    return [&]<std::size_t... I>(std::index_sequence<I...>) {
      return std::tie(m.data()[I]...);
    }(std::make_index_sequence<static_cast<std::size_t>(rows * columns)>{});
  }
};
