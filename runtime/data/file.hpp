// Files read whole, and files that take the place of another only when they are complete.
#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <span>

namespace lantern::core::data {

/// The contents of a file.
class FileBytes {
 public:
  /// Reads a file, or a pipe until it ends. Error, with the system's reason: it cannot be read.
  explicit FileBytes(const std::filesystem::path& path);

  operator std::span<const std::byte>() const { return {bytes_.get(), size_}; }

 private:
  std::unique_ptr<std::byte[]> bytes_;
  std::size_t size_ = 0;
};

/// A file to write in the place of another: written under a name of its own in the same folder, which
/// rename(2) gives the other's name in one step. Until then, and for ever where the program ends before or an
/// Error is thrown, the former file is whole. What a symbolic link names is replaced, not the link;
/// permissions stay.
class Replacement {
 public:
  /// Error: the folder is not there, it or the former file may not be written to, or `path` is a folder, a
  /// pipe or a device.
  explicit Replacement(const std::filesystem::path& path);
  /// Removes what took no place.
  ~Replacement();
  Replacement(const Replacement&) = delete;
  Replacement& operator=(const Replacement&) = delete;

  /// Appends. Error: no space, or another reason of the system's.
  void write(std::span<const std::byte> bytes);

  enum class Durable { no, yes };
  /// Takes the place. Durable: the contents are on the disk first (fsync), and then the name, so that a loss
  /// of power leaves one of the two files too.
  void take_place(Durable durable = Durable::no);

  /// The file under its own name, for a library that writes by name. It is there, empty.
  const std::filesystem::path& own_name() const { return own_; }

 private:
  [[noreturn]] void cannot_write(int error) const;

  std::filesystem::path path_, target_, own_;
  int file_ = -1;
};

}  // namespace lantern::core::data
