// Eigen matrices of Reps: Eigen::Matrix<Rep<double>, 3, 1> and the like, for programs that use Eigen 3.
//
//   #include <lantern/eigen.hpp>
//   using V = Eigen::Matrix<Rep<double>, 3, 1>;
//   Rep<double> f(V a, V b) { return (2.0 * a).cross(b).squaredNorm(); }
//
// A matrix of a fixed size is a product, as a struct of its elements is. The Jacobian of a function from vectors to
// vectors, and the Hessian of a function of a vector, is a matrix.
//
// Matrices of numbers of any size (VectorXd, MatrixXd, Map, blocks, transposed ones) are arguments of programs over
// Rep<Array<T>> and Rep<Tensor<T, dyn, dyn>>, read by their strides, and targets of `into`:
//
//   Rep<double> g(Rep<Tensor<double, dyn, dyn>> m, Rep<Array<double>> v);
//   compile(g)(Eigen::MatrixXd(3, 3), Eigen::VectorXd(3));
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

namespace lantern::core::detail {

/// A matrix of Reps whose size is not in its type.
template <class T, int rows, int columns, int options, int most_rows, int most_columns>
  requires(rows == Eigen::Dynamic || columns == Eigen::Dynamic)
struct KnownMembers<Eigen::Matrix<Rep<T>, rows, columns, options, most_rows, most_columns>> {
  static constexpr bool value = false;
  static_assert(dependent_false<T>,
                "the size of an Eigen matrix of Reps is part of its type: write Eigen::Matrix<Rep<double>, 3, 3>, or, "
                "where the size is data, Rep<Tensor<double, dyn, dyn>>, which takes a MatrixXd");
};
template <class T, int rows, int columns, int options, int most_rows, int most_columns>
  requires(rows == Eigen::Dynamic || columns == Eigen::Dynamic)
inline constexpr bool refused_elsewhere<Eigen::Matrix<Rep<T>, rows, columns, options, most_rows, most_columns>> = true;

/// Matrices, maps and blocks: what has its elements in memory.
template <class M>
concept EigenInMemory = std::derived_from<M, Eigen::DenseBase<std::remove_const_t<M>>> &&
                        ((M::Flags & Eigen::DirectAccessBit) != 0) && std::is_arithmetic_v<typename M::Scalar>;

/// A vector has one dimension, a matrix two.
template <class T, EigenInMemory M>
TensorView<T> view_of(M& m) {
  using Size = std::int64_t;
  T* const data = m.data();
  if constexpr (M::IsVectorAtCompileTime)
    return {data, {static_cast<Size>(m.size())}, {static_cast<Size>(m.innerStride())}};
  else
    return {data,
            {static_cast<Size>(m.rows()), static_cast<Size>(m.cols())},
            {static_cast<Size>(m.rowStride()), static_cast<Size>(m.colStride())}};
}
template <EigenInMemory M>
struct ReadAsTensor<M> {
  static auto of(const M& m) { return view_of<const typename M::Scalar>(m); }
};
template <EigenInMemory M>
  requires((M::Flags & Eigen::LvalueBit) != 0)
struct ViewOf<M> {
  static auto of(M& m) { return view_of<typename M::Scalar>(m); }
};

/// The Jacobian of a vector by a vector.
template <class T, int m, int n, int a, int b>
  requires(m > 0 && n > 0)
struct DerivativeOf<Eigen::Matrix<Eigen::Matrix<Rep<T>, n, 1, b, n, 1>, m, 1, a, m, 1>> {
  static auto of(const Eigen::Matrix<Eigen::Matrix<Rep<T>, n, 1, b, n, 1>, m, 1, a, m, 1>& rows) {
    constexpr int order = m == 1 && n != 1 ? Eigen::RowMajor : Eigen::ColMajor;
    Eigen::Matrix<Rep<T>, m, n, order> all;
    for (int i = 0; i < m; ++i)
      for (int j = 0; j < n; ++j) all(i, j) = rows(i)(j);
    return all;
  }
};

}  // namespace lantern::core::detail
