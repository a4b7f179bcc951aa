// The headers are those of a precompiled header.
#include "lantern/compiler/frontend/clang/object.hpp"

#include <clang/CodeGen/CodeGenAction.h>
#include <llvm/Support/TargetSelect.h>

#include <mutex>
#include <optional>

#include "lantern/compiler/frontend/clang/invocation.hpp"
#include "lantern/ir/error.hpp"

namespace lantern::frontend {

bool compile_object(const std::string& path, const std::vector<std::string>& flags, const std::vector<std::string>& more,
                    const std::string& object, const std::string& dependencies) {
  static std::once_flag once;
  std::call_once(once, [] {
    llvm::InitializeNativeTarget();
    llvm::InitializeNativeTargetAsmPrinter();
  });
  const std::optional<std::string> headers = precompiled_headers(Purpose::compiling, flags);
  if (!headers) return false;
  std::vector<std::string> arguments = flags;
  arguments.insert(arguments.end(), more.begin(), more.end());
  arguments.insert(arguments.end(), {"-include-pch", *headers, "-x", "c++", path});
  std::string text;
  Messages messages(text);
  clang::EmitObjAction action;
  try {
    return run(action, messages, Purpose::compiling, arguments, {object, dependencies}) && messages.warnings == 0;
  } catch (const Error&) {
    return false;
  }
}

}  // namespace lantern::frontend
