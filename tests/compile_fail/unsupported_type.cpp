// expect: Rep<T> takes bool, int32_t, int64_t, float, double, Array<T>, Tensor<T>, Tree<T>
#include "lantern/lantern.hpp"
lantern::Rep<char> x;
