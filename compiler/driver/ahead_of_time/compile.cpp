// What replaces compile() in a program built by lanternc: there is no compiler in it.
#include "lantern/compiler/driver/compile.hpp"

namespace lantern::core::driver {

std::shared_ptr<const Code> compile(const std::string&, const std::vector<ir::Type>&,
                                    ir::FunctionRef<Datums(const Datums&)>, const CompileOptions&) {
  throw Error("compile() is not available in a program built by lanternc; build it with --with-jit");
}

}  // namespace lantern::core::driver
