// A name for contents: what has the same digest is the same.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

namespace lantern::codegen {

/// BLAKE3 (O'Connor, Aumasson, Neves, Wilcox-O'Hearn, 2020), cut to 128 bits. Each text is delimited: ("ab",
/// "c") and ("a", "bc") differ.
class ContentHash {
 public:
  ContentHash();
  ContentHash(const ContentHash&) = delete;
  ContentHash& operator=(const ContentHash&) = delete;
  ~ContentHash();

  ContentHash& add(std::string_view text);
  /// 32 hexadecimal digits. More may be added afterwards.
  std::string text() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// The digest of one text.
std::string content_hash(std::string_view text);

/// The digest of a file's contents; empty where it cannot be read.
std::string file_hash(const std::filesystem::path& path);

}  // namespace lantern::codegen
