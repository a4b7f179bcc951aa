// expect: a number of more than 32 bits is used as a std::int32_t, or beside a Rep of those: write static_cast<std::int32_t>(x) for the number, or cast<std::int64_t>(n) for the Rep
#include "lantern/lantern.hpp"
using namespace lantern;
Rep<int32_t> f() {
  Rep<int32_t> n = 3000000000;
  return n;
}
