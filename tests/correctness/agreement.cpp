// The instances of Agreement that most tests use.
#include "agree.hpp"

namespace lantern::test::agree {

template class Agreement<double, Rep<Array<double>>>;
template class Agreement<double, std::array<Rep<double>, 1>>;
template class Agreement<double, std::array<Rep<double>, 2>>;
template class Agreement<double, std::array<Rep<double>, 3>>;

}  // namespace lantern::test::agree
