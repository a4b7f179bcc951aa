// What a signal that ends lanternc finds to be tidied up.
#pragma once

namespace lantern::tool {

/// From now on SIGINT, SIGTERM and SIGHUP, unless they are ignored, end what lanternc has started and remove
/// what it has made beside its output, before they end lanternc. To be called before there are threads.
void tidy_up_when_interrupted();

}  // namespace lantern::tool
