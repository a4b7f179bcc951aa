// Checkpoints: the state of a long computation, to go on from after a crash.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <variant>

#include "lantern/runtime/data/array.hpp"

namespace lantern {

/// Tensors and single values by name: {.tensors = {{"w", w}}, .values = {{"step", 100}, {"rate", 0.1}}}.
struct Checkpoint {
  using Value = std::variant<std::int64_t, double, std::string>;

  NamedTensors tensors = {};
  std::map<std::string, Value> values = {};
};

/// Writes a checkpoint, a safetensors file whose metadata are the values, beside `path`, brings it to the
/// disk, and gives it the name. Whenever the program or the machine stops, `path` is the former checkpoint or
/// the new one, whole; a stop while writing may leave a file .lantern-*.unfinished beside it, which may be
/// removed. Error: the file cannot be written (the former one stays), or a name or text is not in UTF-8.
void save_checkpoint(const std::filesystem::path& path, const Checkpoint& checkpoint);

/// The checkpoint of a file, bit for bit as it was saved. Errors: those of load_safetensors; a safetensors
/// file that is no checkpoint.
Checkpoint load_checkpoint(const std::filesystem::path& path);

/// The same from a file's contents; `name` represents it in messages.
Checkpoint load_checkpoint(std::span<const std::byte> bytes, const std::string& name = "checkpoint");

}  // namespace lantern
