// How lanternc says what went wrong.
#pragma once

#include <functional>
#include <string>

#include "lantern/ir/error.hpp"

namespace lantern::tool {

/// An error whose text begins with the user's place: "model.cpp:5: error: ...".
class PlacedError : public Error {
 public:
  using Error::Error;
};

/// Runs the body; an exception becomes a message on the standard error stream. The exit status.
int reporting(const std::function<void()>& body);

/// Text as it is, to the standard error stream.
void report(const std::string& text);
/// The same for what is said about the user's files: told() gives all of it.
void tell(const std::string& text);
const std::string& told();

/// Whether messages may hold colours.
bool messages_in_colour();

}  // namespace lantern::tool
