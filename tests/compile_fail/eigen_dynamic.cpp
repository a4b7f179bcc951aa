// expect alone: the size of an Eigen matrix of Reps is part of its type: write Eigen::Matrix<Rep<double>, 3, 3>, or, where the size is data, Rep<Tensor<double, dyn, dyn>>, which takes a MatrixXd
#include "lantern/eigen.hpp"
#include "lantern/lantern.hpp"
using namespace lantern;
using V = Eigen::Matrix<Rep<double>, Eigen::Dynamic, 1>;
Rep<double> f(V v) { return v.sum(); }
auto c = compile(f);
