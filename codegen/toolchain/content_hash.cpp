// LLVM's implementation of BLAKE3.
#include "lantern/codegen/toolchain/content_hash.hpp"

#include <llvm-c/blake3.h>

#include <array>
#include <cstdint>
#include <fstream>
#include <sstream>

namespace lantern::codegen {

struct ContentHash::State {
  llvm_blake3_hasher hasher;
};

ContentHash::ContentHash() : state_(std::make_unique<State>()) { llvm_blake3_hasher_init(&state_->hasher); }
ContentHash::~ContentHash() = default;

ContentHash& ContentHash::add(std::string_view text) {
  const std::uint64_t size = text.size();
  llvm_blake3_hasher_update(&state_->hasher, &size, sizeof size);
  llvm_blake3_hasher_update(&state_->hasher, text.data(), text.size());
  return *this;
}

std::string ContentHash::text() const {
  std::array<std::uint8_t, 16> bytes{};
  llvm_blake3_hasher_finalize(&state_->hasher, bytes.data(), bytes.size());
  std::string out;
  for (const std::uint8_t b : bytes) {
    out += "0123456789abcdef"[b >> 4U];
    out += "0123456789abcdef"[b & 15U];
  }
  return out;
}

std::string content_hash(std::string_view text) { return ContentHash().add(text).text(); }

std::string file_hash(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) return {};
  std::stringstream contents;
  if (in.peek() != std::ifstream::traits_type::eof()) contents << in.rdbuf();
  return in.bad() ? std::string() : content_hash(contents.view());
}

}  // namespace lantern::codegen
