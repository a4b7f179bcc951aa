// What differs between C, C++ and other C-like targets: spelling, kept behind one small interface.
#pragma once

#include <string>
#include <string_view>

#include "lantern/ir/type.hpp"

namespace lantern::codegen {

class Target {
 public:
  virtual ~Target() = default;

  /// A scalar as a variable or parameter ("int" for bool in C) and as it lies in memory.
  virtual std::string scalar(ir::Kind kind) const = 0;
  virtual std::string element(ir::Kind kind) const = 0;
  virtual std::string boolean(bool value) const = 0;

  /// C++ rather than C: cells are references, several results a structure, continuations callable objects.
  virtual bool is_cpp() const = 0;

  /// The type of a truth value that a function takes from outside, or gives.
  virtual std::string public_boolean() const { return scalar(ir::Kind::boolean); }

  /// How many arguments, results by pointer included, every compiler takes.
  virtual std::size_t most_arguments() const { return static_cast<std::size_t>(-1); }

  /// What is before the definition of a function seen from outside, and of one that is not.
  virtual std::string exported() const = 0;
  virtual std::string internal() const { return "static "; }

  /// The values of a tape lie side by side, so that a loop may hold a pointer to its top.
  virtual bool contiguous_tapes() const { return true; }

  /// The compiler that reads the text is ours, and told that integers wrap.
  virtual bool integers_wrap() const { return true; }

  /// The code can call functions of the program that it becomes part of.
  virtual bool calls_host() const { return true; }

  /// The code runs where threads can be made.
  virtual bool has_threads() const { return true; }

  /// A recursion is told how far down the stack it may go.
  virtual bool knows_stack_end() const { return has_threads(); }

  /// Loops whose iterations do not depend on each other are launched as kernels.
  virtual bool has_kernels() const { return false; }

  /// What replaces a part of the prelude; null where the part is as it is.
  virtual const char* prelude_part(std::string_view /*name*/) const { return nullptr; }

  /// A function of <math.h> for this kind: exp, expf.
  virtual std::string math(std::string_view name, ir::Kind kind) const {
    return std::string(name) + (kind == ir::Kind::f32 ? "f" : "");
  }
};

class CTarget : public Target {
 public:
  std::string scalar(ir::Kind kind) const override;
  std::string element(ir::Kind kind) const override;
  std::string boolean(bool value) const override { return value ? "1" : "0"; }
  bool is_cpp() const override { return false; }
  std::string public_boolean() const override { return "_Bool"; }
  /// tcc's stack of values ends at 256.
  std::size_t most_arguments() const override { return 200; }
  std::string exported() const override { return ""; }
};

class CppTarget : public CTarget {
 public:
  std::string scalar(ir::Kind kind) const override;
  std::string element(ir::Kind kind) const override { return scalar(kind); }
  std::string boolean(bool value) const override { return value ? "true" : "false"; }
  bool is_cpp() const override { return true; }
  std::string public_boolean() const override { return "bool"; }
  std::size_t most_arguments() const override { return Target::most_arguments(); }
  std::string exported() const override { return "extern \"C\" "; }
};

}  // namespace lantern::codegen
