// Staging for formats that have operators for windows, such as ONNX.
#pragma once

#include "lantern/compiler/driver/compile.hpp"

namespace lantern::core::driver {

/// As stage(), with short loops kept: the exporter recognises the largest number of a window by its loops.
std::unique_ptr<ir::Module> stage_for_export(const std::string& name, const std::vector<ir::Type>& params,
                                             ir::FunctionRef<Datums(const Datums&)> program);

}  // namespace lantern::core::driver
