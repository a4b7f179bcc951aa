// Messages on the standard error stream.
#include "report.hpp"

#include <unistd.h>

#include <cstdio>

namespace lantern::tool {

namespace {
std::string& all_told() {
  static std::string text;
  return text;
}
}  // namespace

void report(const std::string& text) { std::fwrite(text.data(), 1, text.size(), stderr); }

void tell(const std::string& text) {
  all_told() += text;
  report(text);
}

const std::string& told() { return all_told(); }

bool messages_in_colour() { return ::isatty(STDERR_FILENO) != 0; }

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
