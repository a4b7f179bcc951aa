// Trapping the first value that is not finite. Off unless asked for: by an option, or for a whole process by
// LANTERN_CHECK=nan in the environment.
#pragma once

#include <span>
#include <string>

#include "lantern/compiler/staging/datum.hpp"

namespace lantern::core {

struct Operation;

/// What a running program is checked for.
enum class Check {
  environment,  ///< what LANTERN_CHECK says when the program is compiled, or made eager
  none,
  nan,  ///< a NaN, or an infinity made of finite operands, is an error where it arises
};

/// The check named by a text: "nan" or, for none, "none". `option` begins the message of the Error for any other.
Check check_named(const std::string& text, const std::string& option);

/// What LANTERN_CHECK says; none where it is not set or empty. Error: anything but nan and none.
Check check_from_environment();

/// The check itself, where it is left to the environment.
inline Check resolved(Check check) { return check == Check::environment ? check_from_environment() : check; }

namespace detail {

/// Eager evaluation by this thread checks what it computes for as long as this lives.
class CheckScope {
 public:
  explicit CheckScope(Check check);
  ~CheckScope();
  CheckScope(const CheckScope&) = delete;
  CheckScope& operator=(const CheckScope&) = delete;

 private:
  bool saved_;
};

/// Whether this thread's eager evaluation is checked. Costs one load where no thread's is.
bool checking();

/// Error, naming the place, the operation and the part of the derivative, where an operation has made a NaN, or an
/// infinity of finite operands.
void check_result(const Operation& op, const Datum& result, bool operands_finite);
/// Whether every number in the datum is finite.
bool all_finite(const Datum& d);
/// Error where an argument is not finite: argument 1[3] is the fourth element of the first.
void check_argument(std::size_t i, const Datum& argument);

}  // namespace detail

}  // namespace lantern::core
