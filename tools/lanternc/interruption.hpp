// What a signal that ends lanternc finds to be tidied up.
#pragma once

#include <string>

namespace lantern::tool {

/// From now on SIGINT, SIGTERM and SIGHUP, unless they are ignored, end what lanternc has started and remove
/// what it has made beside its output, before they end lanternc. To be called before there are threads.
void tidy_up_when_interrupted();

/// While there is one: a fault of the user's code in this process (a null pointer, a division by zero, a failed assertion)
/// is told before it ends lanternc, which is tidied up as by SIGTERM.
class FaultsOfUser {
 public:
  /// What runs: "the static initialisers ran".
  explicit FaultsOfUser(const std::string& what);
  ~FaultsOfUser();
  FaultsOfUser(const FaultsOfUser&) = delete;
  FaultsOfUser& operator=(const FaultsOfUser&) = delete;
};

}  // namespace lantern::tool
