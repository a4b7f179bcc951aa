// Numbers with two directions and their product, in long double, and matrices of them: exact first and second
// derivatives of programs of sums and products.
#pragma once

#include <cmath>
#include <cstddef>
#include <vector>

namespace hyper_dual {

using Real = long double;

/// v + a s + b t + ab s t with s s = t t = 0.
struct Number {
  Real v = 0, a = 0, b = 0, ab = 0;
};
inline Number operator+(const Number& x, const Number& y) {
  return {x.v + y.v, x.a + y.a, x.b + y.b, x.ab + y.ab};
}
inline Number operator*(const Number& x, const Number& y) {
  return {x.v * y.v, x.v * y.a + x.a * y.v, x.v * y.b + x.b * y.v,
          x.v * y.ab + x.ab * y.v + x.a * y.b + x.b * y.a};
}
inline Number operator*(Real c, const Number& x) { return {c * x.v, c * x.a, c * x.b, c * x.ab}; }
inline Number operator-(const Number& x, const Number& y) { return x + Real(-1) * y; }

struct Matrix {
  std::size_t rows, columns;
  std::vector<Number> data;
  Matrix(std::size_t m, std::size_t n, Real diagonal = 0) : rows(m), columns(n), data(m * n) {
    for (std::size_t i = 0; i < m && i < n; ++i) (*this)(i, i).v = diagonal;
  }
  /// x + s d + t e
  Matrix(std::size_t m, std::size_t n, const std::vector<double>& x, const std::vector<double>& d,
         const std::vector<double>& e)
      : Matrix(m, n) {
    for (std::size_t i = 0; i < m * n; ++i) data[i] = {x[i], d[i], e[i], 0};
  }
  Number& operator()(std::size_t i, std::size_t j) { return data[i * columns + j]; }
  const Number& operator()(std::size_t i, std::size_t j) const { return data[i * columns + j]; }
};
inline Matrix operator+(Matrix x, const Matrix& y) {
  for (std::size_t i = 0; i < x.data.size(); ++i) x.data[i] = x.data[i] + y.data[i];
  return x;
}
inline Matrix operator*(Real c, Matrix x) {
  for (Number& e : x.data) e = c * e;
  return x;
}
inline Matrix operator-(const Matrix& x, const Matrix& y) { return x + Real(-1) * y; }
inline Matrix operator*(const Matrix& x, const Matrix& y) {
  Matrix z(x.rows, y.columns);
  for (std::size_t i = 0; i < x.rows; ++i)
    for (std::size_t j = 0; j < y.columns; ++j)
      for (std::size_t k = 0; k < x.columns; ++k) z(i, j) = z(i, j) + x(i, k) * y(k, j);
  return z;
}
inline Matrix t(const Matrix& x) {
  Matrix y(x.columns, x.rows);
  for (std::size_t i = 0; i < x.rows; ++i)
    for (std::size_t j = 0; j < x.columns; ++j) y(j, i) = x(i, j);
  return y;
}
inline Matrix symmetric(const Matrix& x) { return Real(0.5) * (x + t(x)); }
inline Number trace(const Matrix& x) {
  Number sum;
  for (std::size_t i = 0; i < x.rows; ++i) sum = sum + x(i, i);
  return sum;
}
/// The sum of g x, element by element.
inline Number inner(const std::vector<double>& g, const Matrix& x) {
  Number sum;
  for (std::size_t i = 0; i < x.data.size(); ++i) sum = sum + Real(g[i]) * x.data[i];
  return sum;
}
/// sum of c[k] (x - 1)^k
inline Matrix series(const Matrix& x, const std::vector<Real>& c) {
  const Matrix y = x - Matrix(x.rows, x.rows, 1);
  Matrix sum(x.rows, x.rows), power(x.rows, x.rows, 1);
  for (const Real factor : c) {
    sum = sum + factor * power;
    power = power * y;
  }
  return sum;
}
/// u of the polar factors of x, whose singular values are below sqrt(3): Newton's iteration of Schulz.
inline Matrix orthogonal_factor(Matrix x) {
  for (int i = 0; i < 60; ++i) x = Real(0.5) * (Real(3) * x - x * (t(x) * x));
  return x;
}
/// The pseudoinverse, by Newton's iteration.
inline Matrix pseudoinverse(const Matrix& a, int iterations) {
  Real square = 0;
  for (const Number& e : a.data) square += e.v * e.v;
  Matrix x = (1 / square) * t(a);
  for (int i = 0; i < iterations; ++i) x = Real(2) * x - x * (a * x);
  return x;
}
/// By expansion along the first row.
inline Number determinant(const Matrix& a) {
  if (a.rows == 0) return {1, 0, 0, 0};
  Number sum;
  for (std::size_t j = 0; j < a.columns; ++j) {
    Matrix minor(a.rows - 1, a.rows - 1);
    for (std::size_t i = 1; i < a.rows; ++i)
      for (std::size_t k = 0; k + 1 < a.rows; ++k) minor(i - 1, k) = a(i, k < j ? k : k + 1);
    sum = sum + Real(j % 2 == 0 ? 1 : -1) * (a(0, j) * determinant(minor));
  }
  return sum;
}

}  // namespace hyper_dual
