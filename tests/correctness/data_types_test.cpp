// Element types that files and other libraries have and tensors do not: read as numbers, and written back.
#include <unistd.h>

#include <bit>
#include <catch2/catch.hpp>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <lantern/data.hpp>
#include <string>

#include "lantern/runtime/data/dlpack.hpp"
#include "lantern/runtime/small_float.hpp"

using namespace lantern;
using namespace std::string_literals;
namespace fs = std::filesystem;
using Shape = std::vector<std::int64_t>;

namespace {

std::span<const std::byte> bytes(std::string_view text) { return std::as_bytes(std::span(text)); }

template <class F>
std::string message_of(F&& f) {
  try {
    f();
  } catch (const Error& e) {
    return e.what();
  }
  return "no error";
}

std::string contents(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

/// A file of one tensor "w".
std::string safetensors(const std::string& dtype, const std::string& shape, const std::string& elements) {
  const std::string header = "{\"w\":{\"dtype\":\"" + dtype + "\",\"shape\":" + shape +
                             ",\"data_offsets\":[0," + std::to_string(elements.size()) + "]}}";
  std::string length(8, '\0');
  length[0] = static_cast<char>(header.size());
  return length + header + elements;
}

struct Folder {
  fs::path path = fs::temp_directory_path() / ("lantern-data-types-" + std::to_string(::getpid()));
  Folder() { fs::create_directories(path); }
  ~Folder() { fs::remove_all(path); }
};

std::string all_bytes() {
  std::string all;
  for (int i = 0; i < 256; ++i) all += static_cast<char>(i);
  return all;
}

}  // namespace

TEST_CASE("safetensors of each type are read as numbers, and written back bit for bit", "[data]") {
  const Folder folder;
  struct Case {
    std::string dtype, shape, elements;
  };
  // All codes of 8 bits; of 6 bits, four codes in three bytes; of 4 bits, two in one.
  std::string sixes;
  for (unsigned i = 0; i < 64; i += 4) {
    const unsigned four = i | (i + 1) << 6U | (i + 2) << 12U | (i + 3) << 18U;
    for (unsigned k = 0; k < 3; ++k) sixes += static_cast<char>(four >> 8 * k & 0xffU);
  }
  const std::vector<Case> cases = {
      {"F8_E4M3FNUZ", "[256]", all_bytes()},
      {"F8_E5M2FNUZ", "[2,128]", all_bytes()},
      {"F8_E8M0", "[256]", all_bytes()},
      {"F4", "[512]", all_bytes()},
      {"F6_E2M3", "[8,8]", sixes},
      {"F6_E3M2", "[64]", sixes},
      {"I8", "[256]", all_bytes()},
      {"U8", "[256]", all_bytes()},
      {"I16", "[128]", all_bytes()},
      {"U16", "[128]", all_bytes()},
      {"U32", "[64]", all_bytes()},
      {"U64", "[2]", "\1\2\3\4\5\6\7\x7f\xff\xff\xff\xff\xff\xff\xff\x7f"s},
      {"F16", "[5]", "\0\x3c\1\0\0\xfc\xff\x7b\0\x80"s},
      {"BF16", "[4]", "\x80\x3f\1\0\x80\xff\0\x80"s},
      {"C64", "[2,1]", "\0\0\x80\x3f\0\0\0\x40\0\0\x40\x40\0\0\x80\x40"s},
      {"F32", "[1]", "\0\0\x80\x3f"s},
  };
  for (const Case& c : cases) {
    INFO(c.dtype);
    const Safetensors all = load_safetensors(bytes(safetensors(c.dtype, c.shape, c.elements)), "w.st");
    CHECK(all.dtypes.size() == (c.dtype == "F32" ? 0 : 1));
    save_safetensors(folder.path / "w.st", all.tensors, all.metadata, all.dtypes);
    const std::string back = contents(folder.path / "w.st");
    CHECK(back.find("\"" + c.dtype + "\"") != std::string::npos);
    // A NaN has several codes.
    const Safetensors again = load_safetensors(bytes(back), "w.st");
    const TensorValue<double> x = all.tensors.at("w").convert<double>(),
                              y = again.tensors.at("w").convert<double>();
    CHECK(x.shape == y.shape);
    bool same = true, whole = true;
    for (std::size_t i = 0; i < x.data.size(); ++i) {
      whole = whole && !std::isnan(x.data[i]);
      same = same && (x.data[i] == y.data[i] || (std::isnan(x.data[i]) && std::isnan(y.data[i]))) &&
             std::signbit(x.data[i]) == std::signbit(y.data[i]);
    }
    CHECK(same);
    if (whole) CHECK(back.substr(back.size() - c.elements.size()) == c.elements);
  }
}

TEST_CASE("numbers of 4 and 6 bits, and complex ones, are those that their bits say", "[data]") {
  const auto read = [](const std::string& dtype, const std::string& shape, const std::string& elements) {
    return load_safetensors(bytes(safetensors(dtype, shape, elements)), "w.st").tensors.at("w").get<float>();
  };
  CHECK(read("F4", "[4]", "\x21\xf7").data == std::vector<float>{0.5F, 1, 6, -6});
  // Codes 1, 31, 32 and 63: the smallest number, the largest, -0, and the largest below 0.
  const unsigned four = 1U | 31U << 6U | 32U << 12U | 63U << 18U;
  const std::string sixes = {static_cast<char>(four & 255U), static_cast<char>(four >> 8U & 255U),
                             static_cast<char>(four >> 16U)};
  CHECK(read("F6_E2M3", "[4]", sixes).data == std::vector<float>{0.125F, 7.5F, 0, -7.5F});
  CHECK(read("F6_E3M2", "[4]", sixes).data == std::vector<float>{0.0625F, 28, 0, -28});
  const TensorValue<float> c = read("C64", "[2]", "\0\0\x80\x3f\0\0\0\x40\0\0\x40\x40\0\0\x80\x40"s);
  CHECK(c.shape == Shape{2, 2});
  CHECK(c.data == std::vector<float>{1, 2, 3, 4});
  CHECK(message_of([&] { read("F4", "[3]", "\1\2"); }) ==
        "w.st: tensor 'w': error: expected elements of float4_e2m1fn that fill whole bytes, got shape [3]");
}

TEST_CASE("tensors are written as the types that are asked for, to the nearest number", "[data]") {
  const Folder folder;
  const fs::path path = folder.path / "w.st";
  const NamedTensors w = {{"w", TensorValue<float>({1.0F / 3, -500, 0.03F, 3.25F}, {4})}};
  const auto written = [&](const NamedTensors& tensors, const std::string& dtype) {
    save_safetensors(path, tensors, {}, {{"w", dtype}});
    return load_safetensors(path).tensors.at("w");
  };
  CHECK(written(w, "F8_E4M3").get<float>().data == std::vector<float>{0.34375F, -448, 0.029296875F, 3.25F});
  CHECK(written(w, "F4").get<float>().data == std::vector<float>{0.5F, -6, 0, 3});
  CHECK(written(w, "BF16").get<float>().data == std::vector<float>{0x1.56p-2F, -500, 0x1.ecp-6F, 3.25F});
  const std::string e = path.string() + ": tensor 'w': error: expected ";
  CHECK(message_of([&] { written(w, "I8"); }) ==
        e + "elements of int32 to be written as int8, got float32 of shape [4]");
  CHECK(message_of([&] { written(w, "C64"); }) == e + "elements of float32 with a last dimension of 2 to be "
                                                      "written as complex64, got float32 of shape [4]");
  CHECK(message_of([&] {
          written({{"w", TensorValue<std::int32_t>({1, 200}, {2})}}, "I8");
        }) == e + "numbers from -128 to 127 to be written as int8, got 200");
  CHECK(message_of([&] {
          written({{"w", TensorValue<std::int64_t>({-1}, {1})}}, "U64");
        }) == e + "numbers from 0 to 9223372036854775807 to be written as uint64, got -1");
  CHECK(message_of([&] { written(w, "F5"); }) ==
        path.string() + ": error: expected a dtype of safetensors files, such as BF16 or F8_E4M3, got 'F5'");
  CHECK(message_of([&] {
          save_safetensors(path, w, {}, {{"v", "BF16"}});
        }) == path.string() + ": error: expected dtypes of tensors that are written, got one of 'v'");
}

TEST_CASE("elements of .npy files without a type are what the caller says", "[data]") {
  const auto npy = [](const std::string& descr, const std::string& elements) {
    const std::string header = "{'descr': '" + descr + "', 'fortran_order': False, 'shape': (2,)}";
    return "\x93NUMPY\x01\0"s + std::string{static_cast<char>(header.size()), '\0'} + header + elements;
  };
  const std::string upper = npy("<V2", "\x80\x3f\0\xc0"s), eight = npy("|V1", "\x38\xfe"s);
  CHECK(load_npy<float>(bytes(upper), "w.npy", {.raw = "bfloat16"}).data == std::vector<float>{1, -2});
  CHECK(load_npy(bytes(eight), "w.npy", {.raw = "float8_e4m3fn"}).get<float>().data ==
        std::vector<float>{1, -448});
  CHECK(
      message_of([&] { load_npy(bytes(upper), "w.npy"); }) ==
      "w.npy: error: expected to be told what elements of '<V2', which have no type, are: NpyOptions{.raw = "
      "...} with one of \"bfloat16\", \"float16\", got none");
  CHECK(
      message_of([&] { load_npy(bytes(eight), "w.npy", {.raw = "bfloat16"}); }) ==
      "w.npy: error: expected to be told what elements of '|V1', which have no type, are: NpyOptions{.raw = "
      "...} with one of \"float8_e4m3fn\", \"float8_e4m3fnuz\", \"float8_e5m2\", \"float8_e5m2fnuz\", "
      "\"float8_e8m0fnu\", got 'bfloat16'");
}

TEST_CASE("tensors of DLPack 1.0: flags, versions, complex numbers", "[data]") {
  DlpackVersioned* managed =
      to_dlpack_versioned(TensorValue<float>({1, 2, 3}, {3}), dlpack_read_only | dlpack_is_copied);
  CHECK(managed->version.major == 1);
  CHECK(managed->flags == 3);
  CHECK(load_dlpack(*managed).get<float>().data == std::vector<float>{1, 2, 3});
  CHECK(from_dlpack<const float>(*managed).at_flat(2) == 3);
  CHECK(message_of([&] { from_dlpack<float>(*managed); }) ==
        "from_dlpack: expected a tensor that may be written to, got one that may only be read; ask for a "
        "TensorView of const elements");
  managed->flags = 0;
  from_dlpack<float>(*managed).at_flat(2) = 4;
  CHECK(load_dlpack(*managed).get<float>().data == std::vector<float>{1, 2, 4});
  managed->version.major = 2;
  CHECK(message_of([&] { load_dlpack(*managed); }) ==
        "load_dlpack: expected a tensor of DLPack 1.x, got one of 2.0");
  managed->deleter(managed);

  // Complex numbers two apart, and unsigned ones.
  double parts[] = {1, 2, 0, 0, 3, 4};
  std::int64_t size = 2, stride = 2;
  DLTensor t{};
  t.data = parts;
  t.device = {kDLCPU, 0};
  t.ndim = 1;
  t.dtype = {kDLComplex, 128, 1};
  t.shape = &size;
  t.strides = &stride;
  const TensorValue<double> c = load_dlpack(t).get<double>();
  CHECK(c.shape == Shape{2, 2});
  CHECK(c.data == std::vector<double>{1, 2, 3, 4});
  const std::uint64_t large[] = {7, 1ULL << 63U};
  t.data = const_cast<std::uint64_t*>(large);
  t.dtype = {kDLUInt, 64, 1};
  t.strides = nullptr;
  size = 1;
  CHECK(load_dlpack(t).get<std::int64_t>().data == std::vector<std::int64_t>{7});
  size = 2;
  CHECK(message_of([&] { load_dlpack(t); }).find("got 9223372036854775808") != std::string::npos);
}
