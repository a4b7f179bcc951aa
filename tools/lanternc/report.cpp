// Messages on the standard error stream.
#include "report.hpp"

#include <cstdio>

namespace lantern::tool {

void tell(const std::string& text) { std::fwrite(text.data(), 1, text.size(), stderr); }

int reporting(const std::function<void()>& body) {
  try {
    body();
    return 0;
  } catch (const PlacedError& e) {
    tell(std::string(e.what()) + "\n");
  } catch (const InternalError& e) {
    tell("lanternc: internal error: " + std::string(e.what()) +
         "\nlanternc: please report this with the file\n");
  } catch (const std::exception& e) {
    tell("lanternc: error: " + std::string(e.what()) + "\n");
  }
  return 1;
}

}  // namespace lantern::tool
