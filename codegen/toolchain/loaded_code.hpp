// Machine code that has been loaded into this process, whichever tool chain produced it.
#pragma once

#include <string>

namespace lantern::codegen {

/// The language of a generated source text.
enum class Language { c, cpp };

/// A function of the running program that generated code may call by name.
/// It must not throw: generated code carries no unwind tables.
struct HostSymbol {
  std::string name;
  void* address;
};

/// Owns loaded code. Every address obtained from it dies with it.
class LoadedCode {
 public:
  LoadedCode() = default;
  LoadedCode(const LoadedCode&) = delete;
  LoadedCode& operator=(const LoadedCode&) = delete;
  virtual ~LoadedCode() = default;

  /// The address of an exported function or variable. Throws lantern::Error if there is none of that name.
  /// May be called from several threads at once.
  virtual void* symbol(const std::string& name) const = 0;

  /// `symbol` as a function pointer: `code.function<double(double)>("f")`.
  template <class Signature>
  Signature* function(const std::string& name) const {
    return reinterpret_cast<Signature*>(symbol(name));
  }
};

}  // namespace lantern::codegen
