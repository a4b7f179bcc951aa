// Files that nobody wrote on purpose: whatever the bytes, a reader gives a value or an Error, and takes no
// more memory than the bytes can justify.
#include <malloc.h>
#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <lantern/data.hpp>
#include <new>
#include <random>
#include <string>

#include "data_fixtures.hpp"

namespace {

/// Bytes that operator new has handed out and not taken back, and the most of them since it was last set.
std::size_t held = 0, most_held = 0;

}  // namespace

void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  void* memory = std::malloc(size);
  if (memory != nullptr) held += malloc_usable_size(memory);
  most_held = std::max(most_held, held);
  return memory;
}
void* operator new(std::size_t size) {
  void* memory = operator new(size, std::nothrow);
  return memory != nullptr ? memory : throw std::bad_alloc();
}
void operator delete(void* memory) noexcept {
  held -= malloc_usable_size(memory);
  std::free(memory);
}
void operator delete(void* memory, std::size_t) noexcept { operator delete(memory); }
void operator delete(void* memory, const std::nothrow_t&) noexcept { operator delete(memory); }
void* operator new[](std::size_t size) { return operator new(size); }
void operator delete[](void* memory) noexcept { operator delete(memory); }
void operator delete[](void* memory, std::size_t) noexcept { operator delete(memory); }

using namespace lantern;
namespace fs = std::filesystem;
using namespace std::string_literals;

namespace {

std::span<const std::byte> bytes(std::string_view text) { return std::as_bytes(std::span(text)); }

/// Changes some places: a bit, a byte, a number where a size may be; or bytes gone, or new, or from
/// elsewhere.
std::string mutated(std::string text, const std::vector<std::string>& others, std::mt19937& random) {
  const auto below = [&](std::size_t n) { return n == 0 ? 0 : random() % n; };
  const std::string_view tokens[] = {"0",
                                     "1099511627776",
                                     "18446744073709551615",
                                     "-1",
                                     "'",
                                     "\"",
                                     "[",
                                     "{",
                                     "}",
                                     ",",
                                     ":",
                                     "(",
                                     ")",
                                     "\n",
                                     "True",
                                     "1e999",
                                     "nan",
                                     "F64",
                                     "<f8"};
  for (std::size_t n = 1 + below(4); n > 0; --n) {
    const std::size_t at = below(text.size() + 1);
    const std::size_t length = std::min(text.size() - at, below(2) == 0 ? below(8) : below(200));
    switch (below(7)) {
      case 0:
        if (at < text.size()) text[at] = static_cast<char>(text[at] ^ (1 << below(8)));
        break;
      case 1:
        if (at < text.size()) text[at] = static_cast<char>(random());
        break;
      case 2:
        text.insert(at, tokens[below(std::size(tokens))]);
        break;
      case 3:
        text.erase(at, length);
        break;
      case 4:
        text.resize(at);
        break;
      case 5:
        text.insert(at, text.substr(below(text.size() + 1), length));
        break;
      default: {
        const std::string& other = others[below(others.size())];
        text.replace(at, length, other.substr(below(other.size() + 1), length));
      }
    }
  }
  return text;
}

/// How many mutations of each kind of file: LANTERN_DATA_FUZZ says. Where the random numbers begin:
/// LANTERN_DATA_FUZZ_SEED.
int mutations() {
  const char* n = std::getenv("LANTERN_DATA_FUZZ");
  return n ? std::atoi(n) : 20'000;
}
unsigned seed() {
  const char* n = std::getenv("LANTERN_DATA_FUZZ_SEED");
  return n ? static_cast<unsigned>(std::atoi(n)) : 20240229;
}

/// Reads mutations of the files: how many of 20 were refused.
template <class Read>
int refused(const std::vector<std::string>& files, std::size_t memory_of_a_byte, Read&& read) {
  std::mt19937 random(seed());
  int count = 0;
  for (int i = 0; i < mutations(); ++i) {
    const std::string text = mutated(files[random() % files.size()], files, random);
    const std::size_t before = most_held = held;
    try {
      read(bytes(text));
    } catch (const Error& e) {
      const std::string message = e.what();
      if (!message.starts_with("input") || message.find("error: ") == std::string::npos) FAIL(message);
      ++count;
    }
    if (most_held - before > (text.size() + 1000) * memory_of_a_byte)
      FAIL("took " << most_held - before << " bytes for " << text.size() << " of input");
  }
  return static_cast<int>(20LL * count / mutations());
}

std::string written(const char* name, auto&& write) {
  const fs::path path = fs::temp_directory_path() / (name + std::to_string(::getpid()));
  write(path);
  std::ifstream in(path, std::ios::binary);
  std::string text{std::istreambuf_iterator<char>(in), {}};
  fs::remove(path);
  return text;
}

std::vector<std::string> strings(std::initializer_list<std::string_view> all) {
  return {all.begin(), all.end()};
}

}  // namespace

TEST_CASE("mutated .npy files give arrays or errors", "[data]") {
  const auto files =
      strings({fixtures::float32, fixtures::float64_big_endian, fixtures::float64_columns_first,
               fixtures::int64_number, fixtures::booleans, fixtures::float16, fixtures::no_elements,
               fixtures::version_2, fixtures::records});
  const int count = refused(files, 16, [](auto input) {
    static_cast<void>(load_npy(input, "input"));
    static_cast<void>(load_npy<double>(input, "input", {.raw = "bfloat16"}));
  });
  CHECK((count >= 10 && count < 20));
}

TEST_CASE("mutated .npz files give arrays or errors", "[data]") {
  auto files = strings({fixtures::archive, fixtures::archive_deflated});
  files.push_back(written("lantern-fuzz-npz", [](const fs::path& path) {
    save_npz(path, {{"z", TensorValue<double>({100})}, {"", TensorValue<bool>({3})}}, {.deflate = true});
  }));
  const int count = refused(files, 1100, [](auto input) { static_cast<void>(load_npz(input, "input")); });
  CHECK((count >= 10 && count < 20));
}

TEST_CASE("mutated safetensors files give tensors or errors", "[data]") {
  auto files = strings({fixtures::tensors});
  files.push_back(written("lantern-fuzz-safetensors", [](const fs::path& path) {
    const TensorValue<float> x({0.5F, -1, 2, 6}, {2, 2});
    save_safetensors(path, {{"a", x}, {"b", x}, {"c", x}, {"d", x}, {"e", x}}, {{"format", "pt"}},
                     {{"a", "F4"}, {"b", "F6_E2M3"}, {"c", "C64"}, {"d", "F8_E4M3"}, {"e", "BF16"}});
  }));
  const int count =
      refused(files, 100, [](auto input) { static_cast<void>(load_safetensors(input, "input")); });
  CHECK((count >= 10 && count < 20));
}

TEST_CASE("mutated checkpoints give checkpoints or errors", "[data]") {
  const std::vector<std::string> files{written("lantern-fuzz-checkpoint", [](const fs::path& path) {
    save_checkpoint(path,
                    {.tensors = {{"w", TensorValue<float>({3}, 0.5F)}, {"on", TensorValue<bool>({2}, true)}},
                     .values = {{"step", 100}, {"rate", 0.1}, {"name", "Adam"}}});
  })};
  const int count =
      refused(files, 100, [](auto input) { static_cast<void>(load_checkpoint(input, "input")); });
  CHECK((count >= 10 && count < 20));
}

TEST_CASE("mutated tables give numbers or errors", "[data]") {
  const auto files =
      strings({"a,b\n1,2\n3,4\n", "1;2.5;-3e2\r\n\"4\";5;6\r\n", "x, \"y, \"\"z\"\"\"\nnan,inf\n0.1,\n"});
  const int count = refused(files, 100, [](auto input) {
    static_cast<void>(load_csv<float>(input, "input", {.empty_as_nan = true}));
    static_cast<void>(load_csv(input, "input", {.separator = ';'}));
  });
  CHECK((count >= 2 && count < 20));
}

TEST_CASE("what a hostile header claims is refused before memory is taken for it", "[data]") {
  const auto memory = [](auto&& read) {
    const std::size_t before = most_held = held;
    CHECK_THROWS_AS(read(), Error);
    return most_held - before;
  };
  const std::string npy =
      "\x93NUMPY\x01\0\x4d\0{'descr': '<f8', 'fortran_order': False, 'shape': (1099511627776,), }     "s;
  CHECK(memory([&] { load_npy(bytes(npy)); }) < 10'000);
  CHECK(memory([&] { load_npy(bytes("\x93NUMPY\x02\0\xff\xff\xff\xff{"s)); }) < 10'000);
  CHECK(memory([&] { load_safetensors(bytes("\0\0\0\0\0\x01\0\0{}"s)); }) < 10'000);
  CHECK(memory([&] { load_safetensors(bytes("\0\xe1\xf5\x05\0\0\0\0{}"s)); }) < 10'000);
  const std::string huge =
      "{\"w\":{\"dtype\":\"F64\",\"shape\":[1099511627776],\"data_offsets\":[0,8796093022208]}}";
  CHECK(memory([&] {
          load_safetensors(bytes(std::string(1, static_cast<char>(huge.size())) + "\0\0\0\0\0\0\0"s + huge));
        }) < 10'000);
  std::string nested = "\x40\x42\x0f\0\0\0\0\0{\"w\":"s;
  nested.resize(1'000'008, '[');
  CHECK(memory([&] { load_safetensors(bytes(nested)); }) < 10'000);

  // An archive whose one member is said to give 2 GiB from 83 bytes, in both of its headers.
  std::string archive(fixtures::archive_deflated);
  const std::string size("\x90\0\0\0", 4), local("\x90\0\0\0\0\0\0\0\x53", 9);
  archive.replace(archive.find(local), 4, "\xff\xff\xff\x7f");
  archive.replace(archive.rfind(size), 4, "\xff\xff\xff\x7f");
  CHECK_THROWS_WITH(
      load_npz(bytes(archive), "m.npz"),
      "m.npz: error: expected at most 85720 bytes from the 83 of 'w.npy', got a size of 2147483647");
  CHECK(memory([&] { load_npz(bytes(archive)); }) < 10'000);
}
