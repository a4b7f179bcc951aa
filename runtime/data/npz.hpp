// NumPy's .npz files: zip archives of .npy files, one for each named array.
//
// Format: as numpy.savez and numpy.savez_compressed write it; the array "w" is the member "w.npy".
#pragma once

#include <filesystem>
#include <span>
#include <string>

#include "lantern/runtime/data/npy.hpp"

namespace lantern {

/// The arrays of an archive by name, each as load_npy gives it without a type. Members are stored or
/// deflated. Errors: "m.npz: error: expected ..., got ...": the file cannot be read or is no zip archive, a
/// member is encrypted, compressed in another way, damaged, or no .npy file, or a name occurs twice. What is
/// wrong within a member is told as of "m.npz(w.npy)".
NamedTensors load_npz(const std::filesystem::path& path, const NpyOptions& options = {});

/// The same from a file's contents; `name` represents it in messages.
NamedTensors load_npz(std::span<const std::byte> bytes, const std::string& name = "npz",
                      const NpyOptions& options = {});

struct NpzOptions {  ///< how a .npz file is written
  bool deflate = false;  ///< compress the members
};

/// Writes an archive that load_npz and numpy.load read. The same tensors give the same bytes. A former file
/// is replaced when all is written. Error: the file cannot be written, or a name is not in UTF-8.
void save_npz(const std::filesystem::path& path, const NamedTensors& tensors, const NpzOptions& options = {});

}  // namespace lantern
