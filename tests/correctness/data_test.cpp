// Tensors in files: what NumPy and safetensors write is read, what is written is read back bit for bit, and
// what is wrong with a file is said.
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cmath>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <lantern/data.hpp>
#include <limits>
#include <string>

#include "data_fixtures.hpp"
#include "lantern/runtime/data/dlpack.hpp"

using namespace lantern;
namespace fs = std::filesystem;
using namespace std::string_literals;
using Shape = std::vector<std::int64_t>;

namespace {

/// A folder that is gone at the end of the test.
struct Folder {
  fs::path path = fs::temp_directory_path() / ("lantern-data-test-" + std::to_string(::getpid()));
  Folder() {
    fs::remove_all(path);
    fs::create_directory(path);
  }
  ~Folder() { fs::remove_all(path); }
  fs::path operator/(const std::string& name) const { return path / name; }
  std::size_t files() const {
    return static_cast<std::size_t>(std::distance(fs::directory_iterator(path), fs::directory_iterator()));
  }
};

std::span<const std::byte> bytes(std::string_view text) { return std::as_bytes(std::span(text)); }

std::string contents(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

void write(const fs::path& path, std::string_view text) { std::ofstream(path, std::ios::binary) << text; }

template <class F>
std::string message_of(F&& work) {
  try {
    work();
  } catch (const Error& e) {
    return e.what();
  }
  return "(no error)";
}

/// The same type and shape, and the same bits: a NaN equals itself, 0 does not equal -0.
template <class T>
bool same(const TensorValue<T>& a, const TensorValue<T>& b) {
  if (a.shape != b.shape || a.data.size() != b.data.size()) return false;
  if constexpr (std::is_same_v<T, bool>)
    return a.data == b.data;
  else
    return a.data.empty() || std::memcmp(a.data.data(), b.data.data(), a.data.size() * sizeof(T)) == 0;
}

template <class T>
TensorValue<T> of(std::vector<T> elements, Shape shape) {
  return {std::move(elements), std::move(shape)};
}

/// Extremes first, then numbers of all bits.
template <class T>
TensorValue<T> tensor(Shape shape) {
  TensorValue<T> t(std::move(shape));
  std::uint64_t state = 88172645463325252U;
  for (std::size_t i = 0; i < t.data.size(); ++i) {
    state ^= state << 13U, state ^= state >> 7U, state ^= state << 17U;
    using limits = std::numeric_limits<T>;
    const T special[] = {
        limits::min(),         limits::max(),       limits::lowest(),   T(0),
        static_cast<T>(-T(0)), limits::quiet_NaN(), limits::infinity(), limits::denorm_min()};
    T bits{};
    if constexpr (std::is_same_v<T, bool>)
      bits = state % 2 != 0;
    else
      std::memcpy(&bits, &state, sizeof(T));
    t.data[i] = i < std::size(special) ? special[i] : bits;
  }
  return t;
}

/// A .npy file of version 1.0.
std::string npy(const std::string& header, const std::string& elements = "") {
  return "\x93NUMPY\x01\0"s + static_cast<char>(header.size() & 0xffU) +
         static_cast<char>(header.size() >> 8U) + header + elements;
}

std::string safetensors(const std::string& header, const std::string& elements = "") {
  std::string length(8, '\0');
  for (unsigned i = 0; i < 8; ++i) length[i] = static_cast<char>(header.size() >> 8U * i & 0xffU);
  return length + header + elements;
}

const std::vector<Shape> shapes{{}, {0}, {1}, {17}, {3, 0, 2}, {0, 5}, {2, 3}, {2, 3, 4}, {1, 2, 1, 3, 2}};

}  // namespace

TEMPLATE_TEST_CASE("each type and rank comes back from each format bit for bit", "[data]", bool, std::int32_t,
                   std::int64_t, float, double) {
  const Folder folder;
  NamedTensors all;
  for (const Shape& shape : shapes) {
    const TensorValue<TestType> t = tensor<TestType>(shape);
    save_npy(folder / "t.npy", t);
    CHECK(same(load_npy<TestType>(folder / "t.npy"), t));
    CHECK(same(load_npy(folder / "t.npy").template get<TestType>(), t));
    all.emplace("tensor " + std::to_string(all.size()) + "/\xc3\xa9", t);
  }
  save_npz(folder / "stored.npz", all);
  save_npz(folder / "deflated.npz", all, {.deflate = true});
  save_safetensors(folder / "t.safetensors", all, {{"key", "text \" \xc3\xbc \n"}, {"", ""}});
  save_checkpoint(folder / "t.checkpoint", {all, {}});
  const Safetensors safe = load_safetensors(folder / "t.safetensors");
  CHECK(safe.metadata == std::map<std::string, std::string>{{"key", "text \" \xc3\xbc \n"}, {"", ""}});
  for (const NamedTensors& read : {load_npz(folder / "stored.npz"), load_npz(folder / "deflated.npz"),
                                   safe.tensors, load_checkpoint(folder / "t.checkpoint").tensors}) {
    REQUIRE(read.size() == all.size());
    for (const auto& [name, t] : all)
      CHECK(same(read.at(name).template get<TestType>(), t.template get<TestType>()));
  }
  CHECK(folder.files() == 5);
}

TEST_CASE("strided views are written as what they show", "[data]") {
  const Folder folder;
  std::vector<float> memory(200'000);
  for (std::size_t i = 0; i < memory.size(); ++i) memory[i] = static_cast<float>(i);
  const TensorView<const float> columns(memory.data(), {2, 100'000}, {1, 2});  // a matrix transposed
  save_npy(folder / "t.npy", columns);
  const TensorValue<float> read = load_npy<float>(folder / "t.npy");
  CHECK(read.shape == Shape{2, 100'000});
  CHECK((read[0] == 0 && read[1] == 2 && read[100'000] == 1 && read[199'999] == 199'999));
  const TensorView<float> backwards(memory.data() + 2, {3}, {-1});
  save_npy(folder / "t.npy", backwards);
  CHECK(load_npy<float>(folder / "t.npy").data == std::vector<float>{2, 1, 0});
  const TensorView<const float> spread(memory.data() + 7, {2, 2}, {0, 0});
  save_npy(folder / "t.npy", spread);
  CHECK(load_npy<float>(folder / "t.npy").data == std::vector<float>(4, 7));
}

TEST_CASE("files of NumPy's are read, in either byte order and order of indices", "[data]") {
  using namespace fixtures;
  const auto f = load_npy<float>(bytes(float32));
  CHECK(f.shape == Shape{2, 3});
  CHECK(f.data == std::vector<float>{0, 0.25, 0.5, 0.75, 1, 1.25});
  CHECK(load_npy<double>(bytes(float64_big_endian)).data ==
        std::vector<double>{0.1, -2.5, std::numeric_limits<double>::infinity()});
  CHECK(load_npy<std::int32_t>(bytes(int32_columns_first)).data ==
        std::vector<std::int32_t>{0, 1, 2, 3, 4, 5});
  const auto columns = load_npy<double>(bytes(float64_columns_first));
  CHECK(columns.shape == Shape{2, 3, 2});
  for (std::size_t i = 0; i < 12; ++i) CHECK(columns[i] == static_cast<double>(i));
  const auto number = load_npy<std::int64_t>(bytes(int64_number));
  CHECK(number.shape.empty());
  CHECK(number.data == std::vector<std::int64_t>{std::numeric_limits<std::int64_t>::min()});
  CHECK(load_npy<bool>(bytes(booleans)).data == std::vector<bool>{true, false, true});
  CHECK(load_npy<float>(bytes(no_elements)).shape == Shape{0, 3});
  CHECK(load_npy<double>(bytes(version_2)).data == std::vector<double>{7});
  CHECK(load_npy<double>(bytes(version_3)).data == std::vector<double>{7});
}

TEST_CASE("types that tensors do not have are read as types that hold them", "[data]") {
  using namespace fixtures;
  CHECK(load_npy<std::int32_t>(bytes(int8)).data == std::vector<std::int32_t>{-128, 127});
  CHECK(load_npy<float>(bytes(int8)).data == std::vector<float>{-128, 127});
  CHECK(load_npy<std::int64_t>(bytes(uint8)).data == std::vector<std::int64_t>{0, 255});
  CHECK(load_npy<double>(bytes(int16)).data == std::vector<double>{-32768, 32767});
  CHECK(load_npy<float>(bytes(uint16)).data == std::vector<float>{0, 65535});
  CHECK(load_npy<std::int64_t>(bytes(uint32)).data == std::vector<std::int64_t>{0, 4294967295});
  CHECK(load_npy<double>(bytes(uint32)).data == std::vector<double>{0, 4294967295});
  CHECK(load_npy<float>(bytes(booleans)).data == std::vector<float>{1, 0, 1});
  CHECK(load_npy<double>(bytes(float32)).data == std::vector<double>{0, 0.25, 0.5, 0.75, 1, 1.25});
  CHECK(load_npy<double>(bytes(int32_columns_first)).shape == Shape{2, 3});
  const auto half = load_npy<float>(bytes(float16));
  CHECK((half[0] == 1.5F && half[1] == -0x1p-24F && half[2] == 65504.0F && half[3] == 0 &&
         std::signbit(half[3])));
  CHECK((std::isinf(half[4]) && half[4] > 0 && std::isnan(half[5])));
  for (const std::string_view file : {int8, uint8, int16, uint16})
    CHECK(load_npy(bytes(file)).is<std::int32_t>());
  CHECK(load_npy(bytes(uint32)).is<std::int64_t>());
  CHECK(load_npy(bytes(float16)).is<float>());
}

TEST_CASE("elements that a type may not hold are refused, with a remedy", "[data]") {
  using namespace fixtures;
  const auto remedy = [](const std::string& type, const std::string& got) {
    return "w.npy: error: expected elements that " + type + " holds exactly, got " + got +
           "; loaded without a type, as an AnyTensor, convert<" + type + ">() converts them";
  };
  CHECK(message_of([] { load_npy<float>(bytes(float64_big_endian), "w.npy"); }) ==
        remedy("float", "float64"));
  CHECK(message_of([] { load_npy<float>(bytes(int32_columns_first), "w.npy"); }) == remedy("float", "int32"));
  CHECK(message_of([] { load_npy<double>(bytes(int64_number), "w.npy"); }) == remedy("double", "int64"));
  CHECK(message_of([] { load_npy<std::int32_t>(bytes(uint32), "w.npy"); }) == remedy("int32", "uint32"));
  CHECK(message_of([] { load_npy<std::int32_t>(bytes(float32), "w.npy"); }) == remedy("int32", "float32"));
  CHECK(message_of([] { load_npy<bool>(bytes(uint8), "w.npy"); }) == remedy("bool", "uint8"));
}

TEST_CASE("archives and safetensors of Python's are read", "[data]") {
  using namespace fixtures;
  for (const std::string_view file : {archive, archive_deflated}) {
    const NamedTensors npz = load_npz(bytes(file));
    REQUIRE(npz.size() == 2);
    CHECK(npz.at("w").get<float>().data == std::vector<float>{1, 2, 3, 4});
    CHECK(npz.at("w").shape() == Shape{2, 2});
    CHECK(npz.at("step").get<std::int64_t>().data == std::vector<std::int64_t>{7});
    CHECK(npz.at("step").shape().empty());
  }
  const Safetensors safe = load_safetensors(bytes(tensors));
  CHECK(safe.metadata == std::map<std::string, std::string>{{"format", "np"}, {"\xc3\xa9", "\xc3\xbc"}});
  CHECK(safe.tensors.size() == 7);
  CHECK(safe.tensors.at("w").get<float>().data == std::vector<float>{1.5, -2});
  CHECK(safe.tensors.at("half").get<float>().data == std::vector<float>{0.5});
  CHECK(safe.tensors.at("brain").get<float>().data == std::vector<float>{-1.5, 3});
  CHECK(safe.tensors.at("step").get<std::int64_t>().data == std::vector<std::int64_t>{-5});
  CHECK(safe.tensors.at("on").get<bool>().data == std::vector<bool>{true, false});
  CHECK(safe.tensors.at("pixel").get<std::int32_t>().data == std::vector<std::int32_t>{255});
  CHECK(safe.tensors.at("none").shape() == Shape{2, 0});
}

TEST_CASE("an AnyTensor gives its type, and converts where values allow it", "[data]") {
  const AnyTensor t(of<double>({1.0, -2.0, 3e9}, {3}));
  CHECK(t.type_name() == "double");
  CHECK(t.size() == 3);
  CHECK(message_of([&] { t.get<float>(); }) ==
        "AnyTensor: expected a tensor of float, got one of double and shape [3]; convert<float>() converts");
  CHECK(t.convert<float>().data == std::vector<float>{1, -2, 3e9F});
  CHECK(t.convert<std::int64_t>().data == std::vector<std::int64_t>{1, -2, 3'000'000'000});
  CHECK(message_of([&] { t.convert<std::int32_t>(); }) ==
        "AnyTensor: expected elements that int32 has a place for, got 3000000000 as element 2 of double");
  CHECK(message_of([&] { t.convert<bool>(); }) ==
        "AnyTensor: expected elements that bool has a place for, got -2 as element 1 of double");
  const auto refused = [](double x, auto zero) {
    return message_of([&] { AnyTensor(of<double>({x}, {})).convert<decltype(zero)>(); }) != "(no error)";
  };
  CHECK((refused(0.5, 0) && refused(2147483648.0, 0) && !refused(-2147483648.0, 0) && refused(NAN, 0)));
  CHECK((refused(0x1p63, std::int64_t{}) && !refused(-0x1p63, std::int64_t{}) && refused(1e39, 0.0F)));
  CHECK((!refused(NAN, 0.0F) && !refused(INFINITY, 0.0F) && !refused(1.0, true) && refused(0.5, true)));
  CHECK(AnyTensor(of<bool>({true, false}, {2})).convert<double>().data == std::vector<double>{1, 0});
  CHECK(AnyTensor(of<bool>({true, false}, {2})).get<bool>().data == std::vector<bool>{true, false});
  CHECK(std::move(AnyTensor(t)).get<double>().data == std::vector<double>{1, -2, 3e9});
  CHECK(AnyTensor().shape() == Shape{0});
  const auto reshaped = [](TensorValue<float> x, Shape shape) {
    x.shape = std::move(shape);
    return x;
  };
  CHECK(message_of([&] { AnyTensor(reshaped(of<float>({1, 2}, {2}), {3})); }) ==
        "AnyTensor: expected as many elements as a tensor of shape [3] has, got 2");
  CHECK(message_of([&] { AnyTensor(reshaped(of<float>({}, {0}), {0, -1})); }) ==
        "AnyTensor: expected as many elements as a tensor of shape [0, -1] has, got 0");
  CHECK(message_of([] { AnyView{TensorView<const float>()}; }) ==
        "AnyView: expected the elements of a tensor of shape [], got no memory");
}

TEST_CASE("a malformed .npy file is told with what was expected", "[data]") {
  const auto error = [](std::string_view file) {
    return message_of([&] { load_npy(bytes(file), "w.npy"); });
  };
  const auto header = [&](const std::string& text) { return error(npy(text)); };
  const std::string e = "w.npy: error: expected ";
  const std::string good(fixtures::float32);
  CHECK(error("") == e + "a .npy file, which begins with '\\x93NUMPY', got an empty one");
  CHECK(error("PK\x03\x04.....") == e + "a .npy file, which begins with '\\x93NUMPY', got 'PK\\x03\\x04..'");
  CHECK(error(good.substr(0, 7)) == e + "the version of the format, got the end of the file");
  CHECK(error("\x93NUMPY\x04\0\0\0"s) == e + "version 1.0, 2.0 or 3.0 of the format, got 4.0");
  CHECK(error(good.substr(0, 9)) == e + "the length of the header, got the end of the file");
  CHECK(error(good.substr(0, 60)) == e + "a header of 118 bytes, got 50; the file is cut short");
  CHECK(error(good.substr(0, good.size() - 1)) ==
        e + "24 bytes of elements (float32 of shape [2, 3]), got 23; the file is cut short");
  CHECK(error(good + "more") == e + "24 bytes of elements (float32 of shape [2, 3]), got 28");
  CHECK(header("") == e + "'{' to begin the header, got the end of the header");
  CHECK(header("{'descr' '<f4'}") == e + "':' after 'descr', got ''<f4'}'");
  CHECK(header("{'descr': <f4}") == e + "the dtype in quotes, got '<f4}'");
  CHECK(header("{'descr: ") == e + "a key of the header that a quote ends, got 'descr: '");
  CHECK(header("{'descr': '<f4', 'fortran_order': 0") == e + "True or False as 'fortran_order', got '0'");
  CHECK(header("{'descr': '<f4', 'descr': '<f4'}") ==
        e + "each of 'descr', 'fortran_order' and 'shape' once in the header, got 'descr'");
  CHECK(header("{'color': 3}") ==
        e + "each of 'descr', 'fortran_order' and 'shape' once in the header, got 'color'");
  CHECK(header("{'descr': '<f4', 'fortran_order': False}") ==
        e + "'descr', 'fortran_order' and 'shape' in the header, got no 'shape'");
  const auto shape = [&](const std::string& s) {
    return header("{'descr': '<f4', 'fortran_order': False, 'shape': " + s + "}");
  };
  CHECK(shape("3") == e + "'(' to begin 'shape', got '3}'");
  CHECK(shape("(3)") == e + "',' or ')' in 'shape', got ')}'");
  CHECK(shape("(3 4)") == e + "',' or ')' in 'shape', got '4)}'");
  CHECK(shape("(-1,)") == e + "a size from 0 to 2^63 - 1 in 'shape', got '-1,)}'");
  CHECK(shape("(99999999999999999999,)") ==
        e + "a size from 0 to 2^63 - 1 in 'shape', got '99999999999999999999'");
  CHECK(shape("(1099511627776, 1099511627776)") ==
        e + "sizes that multiply to at most 2^50 elements, got shape [1099511627776, 1099511627776]");
  CHECK(shape("(0, 9223372036854775807)") ==
        e + "sizes that multiply to at most 2^50 elements, got shape [0, 9223372036854775807]");
  CHECK(
      shape("(1099511627776,)") ==
      e + "4398046511104 bytes of elements (float32 of shape [1099511627776]), got 0; the file is cut short");
  std::string many = "(";
  for (int i = 0; i < 65; ++i) many += "1, ";
  CHECK(shape(many + ")") == e + "at most 64 dimensions, got '1, )}'");
  CHECK(shape("(1,)} x") == e + "spaces after the header, got 'x}'");
  const std::string dtypes =
      e + "a dtype of bool, int8 to int64, uint8 to uint64 or float16 to float64, got ";
  CHECK(error(fixtures::complex_numbers) == dtypes + "'<c16'; convert it with astype() before it is saved");
  CHECK(error(fixtures::text) == dtypes + "'<U2'; convert it with astype() before it is saved");
  CHECK(error(fixtures::objects) == dtypes + "'|O', which is pickled objects; save an array of numbers");
  CHECK(error(fixtures::records) ==
        e + "elements that are numbers, got records; save each of their fields by itself");
  CHECK(header("{'descr': '<g'").find(dtypes + "'<g'") == 0);
  CHECK(error(npy("{'descr': '<u8', 'fortran_order': False, 'shape': (1,)}", "\0\0\0\0\0\0\0\x80"s)) ==
        e + "integers up to 2^63 - 1, got 9223372036854775808 among those of type uint64; convert them before they "
            "are saved");
  CHECK(header("{'descr': ''").find(dtypes + "''") == 0);
  CHECK(message_of([] { load_npy<float>("/nowhere/w.npy"); }) ==
        "/nowhere/w.npy: error: cannot be opened: No such file or directory");
  CHECK(message_of([] { load_npy(fs::path("/")); }) == "/: error: cannot be read: Is a directory");
}

TEST_CASE("the headers that Python may write otherwise are read", "[data]") {
  const std::string number("\0\0\x80?", 4);
  for (const char* text : {"{\"descr\":\"<f4\",\"fortran_order\":False,\"shape\":(1,)}",
                           "{'shape': (1L, 1L), 'fortran_order': True, 'descr': '<f4'}  \n",
                           " { 'fortran_order' : False , 'descr' : '<f4' , 'shape' : ( ) , } ",
                           "{'descr': '=f4', 'fortran_order': False, 'shape': ()}",
                           "{'descr': 'f4', 'fortran_order': False, 'shape': ()}",
                           "{'descr': '|f4', 'fortran_order': False, 'shape': ()}",
                           "{'descr': '<f', 'fortran_order': False, 'shape': ()}",
                           "{'descr': 'single', 'fortran_order': False, 'shape': ()}",
                           "{'descr': 'float32', 'fortran_order': False, 'shape': ()}"})
    CHECK(load_npy<float>(bytes(npy(text, number))).data == std::vector<float>{1});
  const std::string five("\5\0\0\0\0\0\0\0", 8);
  CHECK(load_npy<std::int64_t>(bytes(npy("{'descr': '<u8', 'fortran_order': False, 'shape': ()}", five))).data ==
        std::vector<std::int64_t>{5});
  const std::string wide = "{'descr': '<f4', 'fortran_order': False, 'shape': ()}" + std::string(10000, ' ');
  CHECK(message_of([&] { load_npy<float>(bytes(npy(wide, number))); }).find("at most 10000 bytes") != std::string::npos);
}

TEST_CASE("a malformed .npz file is told with what was expected", "[data]") {
  const Folder folder;
  const auto error = [](std::string_view file) {
    return message_of([&] { load_npz(bytes(file), "m.npz"); });
  };
  const std::string e = "m.npz: error: expected ";
  const std::string zip = e + "a .npz file, which is a zip archive, got something else (";
  CHECK(error("") == e + "a .npz file, which is a zip archive, got an empty file");
  CHECK(error("not an archive").find(zip) == 0);
  const std::string good(fixtures::archive);
  CHECK(error(good.substr(0, good.size() / 2)).find(zip) == 0);

  // One byte of an element is another: its check sum tells.
  std::string damaged = good;
  damaged[damaged.find("NUMPY") + 130] = '\x7f';
  CHECK(error(damaged) == "m.npz: error: 'w.npy' is damaged: CRC error");

  const auto replaced = [](std::string text, const std::string& from, const std::string& to) {
    for (std::size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
      text.replace(at, from.size(), to);
    return text;
  };
  CHECK(!load_npz(bytes(replaced(good, "w.npy", "w.txt")), "m.npz").contains("w"));  // no array
  // Of the members' headers: method, time, date.
  const std::string tail("\0\0\0\0!\0", 6), ppmd("\x62\0\0\0!\0", 6);
  CHECK(error(replaced(good, tail, ppmd))
            .find(e + "members stored or deflated, got 'w.npy' with compression method "
                      "98; numpy.savez and numpy.savez_compressed write such") == 0);
  // Two members of one name; a member that says it is encrypted, in both of its headers.
  save_npz(folder / "ab.npz", {{"aa", TensorValue<float>({2})}, {"ab", TensorValue<float>({2})}});
  CHECK(error(replaced(contents(folder / "ab.npz"), "ab.npy", "aa.npy")) ==
        e + "one array for each name, got two members of one name");
  const std::string encrypted =
      replaced(replaced(good, "PK\3\4-\0\0"s, "PK\3\4-\0\1"s), "PK\1\2-\3-\0\0"s, "PK\1\2-\3-\0\1"s);
  CHECK(error(encrypted) == e + "members without encryption, got 'w.npy' with it");
  CHECK(error(fixtures::archive_complex) ==
        "m.npz(z.npy): error: expected a dtype of bool, int8 to int64, uint8 to uint64 or float16 to "
        "float64, got "
        "'<c16'; convert it with astype() before it is saved");

  write(folder / "w.npz", "x");
  CHECK(message_of([&] {
          load_npz(folder / "w.npz");
        }).find((folder / "w.npz").string() + ": error: expected") == 0);
  CHECK(message_of([] { load_npz("/nowhere/m.npz"); }) ==
        "/nowhere/m.npz: error: cannot be opened: No such file or directory");
  CHECK(error(replaced(good, "'<f4'", "'<c4'")) == "m.npz: error: 'w.npy' is damaged: CRC error");
  CHECK(message_of([&] {
          save_npz(folder / "n.npz", {{"\xff", TensorValue<float>({2})}});
        }).find((folder / "n.npz").string() + ": error: cannot hold an array named '\xff': ") == 0);
  CHECK(folder.files() == 2);
}

TEST_CASE("the same arrays give the same .npz file", "[data]") {
  const Folder folder;
  const NamedTensors all{{"a", tensor<float>({20, 30})}, {"b", tensor<bool>({})}};
  save_npz(folder / "1.npz", all, {.deflate = true});
  save_npz(folder / "2.npz", all, {.deflate = true});
  CHECK(contents(folder / "1.npz") == contents(folder / "2.npz"));
  save_npz(folder / "zeros.npz", {{"z", TensorValue<double>({10'000})}}, {.deflate = true});
  CHECK(fs::file_size(folder / "zeros.npz") < 1000);
  save_npz(folder / "none.npz", {});
  CHECK(load_npz(folder / "none.npz").empty());
}

TEST_CASE("safetensors of uint64 and of 8 bits are read as numbers that hold them", "[data]") {
  const auto all = load_safetensors(
      bytes(safetensors(" {\"u\": {\"dtype\": \"U64\", \"shape\": [1], \"data_offsets\": [0, 8]}, "
                        "\"w\": {\"dtype\": \"F8_E4M3\", \"shape\": [3], \"data_offsets\": [8, 11]}, "
                        "\"v\": {\"dtype\": \"F8_E5M2\", \"shape\": [1], \"data_offsets\": [11, 12]}} ",
                        "\x05\0\0\0\0\0\0\0\x38\xfe\x01\x3c"s)),
      "w.st");
  CHECK(all.tensors.at("u").get<std::int64_t>().data == std::vector<std::int64_t>{5});
  CHECK(all.tensors.at("w").get<float>().data == std::vector<float>{1, -448, 0.001953125F});
  CHECK(all.tensors.at("v").get<float>().data == std::vector<float>{1});
  const std::string large = safetensors("{\"u\": {\"dtype\": \"U64\", \"shape\": [1], \"data_offsets\": [0, 8]}}",
                                        "\0\0\0\0\0\0\0\x80"s);
  CHECK(message_of([&] { load_safetensors(bytes(large), "w.st"); })
            .starts_with("w.st: error: expected integers up to 2^63 - 1, got 9223372036854775808"));
}

TEST_CASE("a malformed safetensors file is told with what was expected", "[data]") {
  const auto error = [](const std::string& file) {
    return message_of([&] { load_safetensors(bytes(file), "w.st"); });
  };
  CHECK(error(safetensors("{}\0\0"s, "")) ==
        "w.st: error: expected JSON and white space up to the header's end, got a NUL byte after 2 of its 4 bytes");
  const auto header = [&](const std::string& text, const std::string& elements = "") {
    return error(safetensors(text, elements));
  };
  const std::string e = "w.st: error: expected ";
  CHECK(error("abc") == e + "a .safetensors file, which begins with 8 bytes of the header's length, got 3");
  CHECK(error("\x01\xe1\xf5\x05\0\0\0\0"s) ==
        e + "a header of at most 100000000 bytes, got a length of 100000001; is it a .safetensors file?");
  CHECK(error("\x09\0\0\0\0\0\0\0{}"s) == e + "a header of 9 bytes, got 2; the file is cut short");
  CHECK(header("") == e + "'{' to begin the header, got an empty header");
  CHECK(header(" x") == e + "'{' to begin the header, got ' x'");
  CHECK(header("{]") == e + "a header in JSON, got something else at its byte 2");
  CHECK(header("{} x") == e + "a header in JSON, got something else at its byte 4");
  CHECK(header("{\"\xff\": {}}").find(e + "a header in JSON") == 0);
  CHECK(header("{\"w\": 3}") == e + "an object as tensor 'w', got a number");
  CHECK(header("{\"w\": [[[[") == e + "an object as tensor 'w', got an array");
  CHECK(header("{\"w\": {\"dtype\": {") == e + "text as 'dtype' of tensor 'w', got an object");
  CHECK(header("{\"w\": {\"shape\": [[") == e + "integers from 0 in 'shape' of tensor 'w', got an array");
  CHECK(header("{\"w\": {\"shape\": [-1]") ==
        e + "integers from 0 in 'shape' of tensor 'w', got a negative number");
  CHECK(header("{\"w\": {\"shape\": [1.5]") ==
        e + "integers from 0 in 'shape' of tensor 'w', got a number that is no integer");
  CHECK(header("{\"w\": {\"shape\": [99999999999999999999]").find("got a number that is no integer") !=
        std::string::npos);
  CHECK(header("{\"w\": {\"shape\": [18446744073709551615]") ==
        e + "at most 64 sizes up to 2^63 - 1 as the shape of tensor 'w', got 18446744073709551615 as size 1");
  CHECK(header("{\"w\": {\"shape\": 3") == e + "integers from 0 in 'shape' of tensor 'w', got a number");
  CHECK(header("{\"w\": {\"data_offsets\": [1]") == e + "2 'data_offsets' of tensor 'w', got 1");
  CHECK(header("{\"w\": {\"data_offsets\": [1, 2, 3]") == e + "2 'data_offsets' of tensor 'w', got 3");
  CHECK(header("{\"w\": {\"dtype\": \"C128\"") ==
        e + "BOOL, I8 to I64, U8 to U64, F4, F6 of two kinds, F8 of five, F16, BF16, F32, F64 or C64 as the dtype of tensor "
            "'w', got 'C128'; convert it before it is saved");
  // Other keys say nothing of the tensor.
  CHECK(header("{\"w\": {\"colour\": {\"x\": [1, null]}, \"dtype\": 1") ==
        e + "text as 'dtype' of tensor 'w', got a number");
  CHECK(header(" {\"__metadata__\": null, \"w\": null") == e + "an object as tensor 'w', got null");
  CHECK(header("{\"w\": {\"dtype\": \"F32\", \"shape\": []}}") ==
        e + "'data_offsets' of tensor 'w', got none");
  CHECK(header("{\"__metadata__\": {\"a\": 1") == e + "text as 'a' of the metadata, got a number");
  CHECK(header("{\"__metadata__\": {\"a\": \"1\", \"a\"") ==
        e + "each key of the metadata once, got two of 'a'");
  const auto entry = [](const std::string& name, const std::string& shape, const std::string& offsets) {
    return "\"" + name + "\": {\"dtype\": \"F32\", \"shape\": " + shape + ", \"data_offsets\": " + offsets +
           "}";
  };
  const auto two = [&](const std::string& a, const std::string& b, std::size_t bytes_of_elements) {
    return header("{" + entry("a", "[2]", a) + ", " + entry("b", "[2]", b) + "}",
                  std::string(bytes_of_elements, '\0'));
  };
  CHECK(two("[0, 8]", "[8, 16]", 16) == "(no error)");
  CHECK(two("[8, 16]", "[0, 8]", 16) == "(no error)");
  CHECK(two("[0, 8]", "[4, 12]", 12) ==
        e + "tensor 'b' to begin at byte 8, where the one before it ends, got 4; tensors overlap");
  CHECK(two("[0, 8]", "[12, 20]", 20) ==
        e + "tensor 'b' to begin at byte 8, where the one before it ends, got 12; tensors leave a hole");
  CHECK(two("[0, 8]", "[8, 16]", 20) == e + "16 bytes of elements, where the last tensor ends, got 20");
  CHECK(two("[0, 8]", "[8, 16]", 12) ==
        e + "data_offsets of tensor 'b' in order and up to 12, got [8, 16]; the file is cut short");
  CHECK(two("[0, 8]", "[16, 8]", 16) == e + "data_offsets of tensor 'b' in order and up to 16, got [16, 8]");
  CHECK(two("[0, 8]", "[8, 12]", 12) ==
        e + "8 bytes for tensor 'b' (float32 of shape [2]), got data_offsets [8, 12]");
  CHECK(header("{" + entry("a", "[0]", "[0, 0]") + "," + entry("a", "[0]", "[0, 0]") + "}") ==
        e + "one tensor for each name, got two of 'a'");
  CHECK(header("{" + entry("a", "[4294967296, 4294967296]", "[0, 0]") + "}") ==
        "w.st: tensor 'a': error: expected sizes that multiply to at most 2^50 elements, got shape "
        "[4294967296, "
        "4294967296]");
  CHECK(header("{" + entry("a", "[4611686018427387905]", "[0, 4]") + "}", "....").find("at most 2^50") !=
        std::string::npos);
  CHECK(header("{}") == "(no error)");
  CHECK(header("{}", "x") == e + "0 bytes of elements, where the last tensor ends, got 1");
  CHECK(message_of([] { load_safetensors("/nowhere/w.st"); }) ==
        "/nowhere/w.st: error: cannot be opened: No such file or directory");
}

TEST_CASE("what a safetensors file cannot hold is not written", "[data]") {
  const Folder folder;
  const std::string e = (folder / "w.st").string() + ": error: expected ";
  const AnyTensor t(TensorValue<float>({2}));
  CHECK(message_of([&] { save_safetensors(folder / "w.st", {{"\xff", t}}); }) ==
        e + "names and metadata in UTF-8, got other bytes");
  CHECK(message_of([&] { save_safetensors(folder / "w.st", {}, {{"a", "\xff"}}); }) ==
        e + "names and metadata in UTF-8, got other bytes");
  CHECK(message_of([&] { save_safetensors(folder / "w.st", {{"__metadata__", t}}); }) ==
        e + "another name for a tensor, got '__metadata__'");
  CHECK(folder.files() == 0);
  // The largest elements first, so that each tensor lies at a multiple of its element's size.
  save_safetensors(folder / "w.st",
                   {{"a", TensorValue<bool>({3})}, {"b", TensorValue<double>({1})}, {"c", t}});
  const std::string file = contents(folder / "w.st");
  CHECK(file.find("\"a\":{\"data_offsets\":[16,19]") != std::string::npos);
  CHECK(file.find("\"b\":{\"data_offsets\":[0,8]") != std::string::npos);
  CHECK((file.size() - 19) % 8 == 0);
}

TEST_CASE("a table of numbers is read with and without names", "[data]") {
  const auto read = [](std::string_view text, const CsvOptions& options = {}) {
    return load_csv(bytes(text), "t.csv", options);
  };
  auto t = read("x, \"y, \"\"z\"\"\"\n1,2.5\r\n\n -3e2 ,\"+4\"\n");
  CHECK(t.columns == std::vector<std::string>{"x", "y, \"z\""});
  CHECK(t.values.shape == Shape{2, 2});
  CHECK(t.values.data == std::vector<double>{1, 2.5, -300, 4});
  t = read("1;2\n3;4", {.separator = ';'});
  CHECK(t.columns.empty());
  CHECK(t.values.data == std::vector<double>{1, 2, 3, 4});
  CHECK(read("2019,2020\n1,2\n", {.header = true}).columns == std::vector<std::string>{"2019", "2020"});
  t = read("a\t\tb\n\t1\t\n", {.separator = '\t', .empty_as_nan = true});
  CHECK(t.columns == std::vector<std::string>{"a", "", "b"});
  CHECK((std::isnan(t.values[0]) && t.values[1] == 1 && std::isnan(t.values[2])));
  t = read("\xef\xbb\xbfnan,inf\n-INF,1e-400\n");
  CHECK(t.columns.empty());
  CHECK((std::isnan(t.values[0]) && std::isinf(t.values[1]) && t.values[2] < -1e308 && t.values[3] == 0));
  CHECK(read("").values.shape == Shape{0, 0});
  CHECK(read(" \n\r\n").values.shape == Shape{0, 0});
  CHECK(read("a,b").values.shape == Shape{0, 2});
  CHECK(load_csv<float>(bytes("0.1\n1e-46\n")).values.data == std::vector<float>{0.1F, 0});
  CHECK(read("\"a\nb\",c\n1,2\n").columns[0] == "a\nb");
  // As pandas writes a table without names; of whole numbers it could be a row.
  t = read("0,1,2\n0.5,1.0,2.0\n");
  CHECK(t.columns == std::vector<std::string>{"0", "1", "2"});
  CHECK(t.values.data == std::vector<double>{0.5, 1, 2});
  t = read(",0,1\n0,0.5,2.0\n", {.empty_as_nan = true});  // with the numbers of rows
  CHECK(t.columns == std::vector<std::string>{"", "0", "1"});
  CHECK(t.values.data == std::vector<double>{0, 0.5, 2});
  CHECK(message_of([&] { read("0,1\n3,4\n"); }).starts_with("t.csv:1: error: expected a first line that is either"));
  CHECK(read("0,1\n3,4\n", {.header = false}).values.shape == Shape{2, 2});
  CHECK(read("1,0\n0,1\n").values.shape == Shape{2, 2});
  CHECK(read("a,b\r1,2\r3,4\r").values.data == std::vector<double>{1, 2, 3, 4});
  CHECK(read("True,False\n0,1\n").values.data == std::vector<double>{1, 0, 0, 1});
}

TEST_CASE("a malformed table is told with line and column", "[data]") {
  const auto error = [](std::string_view text, const CsvOptions& options = {}) {
    return message_of([&] { load_csv(bytes(text), "t.csv", options); });
  };
  CHECK(error("age,size\n1,2\n3, abc\n") ==
        "t.csv:3:4: error: expected a number in field 2 ('size'), got 'abc'");
  CHECK(error("1,2\n3,4x\n") == "t.csv:2:3: error: expected a number in field 2, got '4x'");
  CHECK(error("a,b\n1;2,3\n") ==
        "t.csv:2:1: error: expected a number in field 1 ('a'), got '1;2'; "
        "CsvOptions::separator tells of another separator than ','");
  CHECK(error("a\n1e999\n") ==
        "t.csv:2:1: error: expected a number in the range of double in field 1 ('a'), got '1e999'");
  CHECK(message_of([] { load_csv<float>(bytes("1e39\n"), "t.csv"); }) ==
        "t.csv:1:1: error: expected a number in the range of float in field 1, got '1e39'");
  CHECK(error("a,b\n1,\n") ==
        "t.csv:2:3: error: expected a number in field 2 ('b'), got an empty field; "
        "CsvOptions::empty_as_nan reads such as NaN");
  CHECK(error("1,2\n\n3\n") == "t.csv:3: error: expected 2 fields, as in line 1, got 1");
  CHECK(error("1\n3,4,5\n") == "t.csv:2: error: expected 1 field, as in line 1, got 3");
  CHECK(error("a,b\n", {.header = false}) ==
        "t.csv:1:1: error: expected a number in field 1, got 'a'; CsvOptions::header tells of a line with "
        "names");
  CHECK(error("", {.header = true}) ==
        "t.csv: error: expected a line with the names of the columns, got an empty file");
  CHECK(error("a\n\"1\n2") ==
        "t.csv:2:1: error: expected a quote that ends the field, got the end of the file");
  CHECK(error("\"a\nb\" c\n") ==
        "t.csv:2:4: error: expected ',' or the end of the line after a quoted field, got 'c'");
  CHECK(error("1", {.separator = '.'}) ==
        "t.csv: error: expected a separator like ',', ';' or a tab, got '.'");
  CHECK(error("+-1\n") == "(no error)");  // a name
  CHECK(error("1\n+-1\n").find("t.csv:2:1: error: expected a number") == 0);
  CHECK(message_of([] { load_csv("/nowhere/t.csv"); }) ==
        "/nowhere/t.csv: error: cannot be opened: No such file or directory");
}

TEST_CASE("a table is written so that it reads back bit for bit", "[data]") {
  const Folder folder;
  const std::vector<std::string> names{"a", "b, \"c\"", ""};
  TensorValue<double> d = tensor<double>({50, 3});
  for (double& x : d.data)
    if (std::isnan(x)) x = std::numeric_limits<double>::quiet_NaN();  // of which text keeps no more
  save_csv(folder / "t.csv", d, names);
  const auto t = load_csv(folder / "t.csv");
  CHECK(t.columns == names);
  CHECK(same(t.values, d));
  const TensorValue<float> f = of<float>({0.1F, 1e-45F, 3.4028235e38F}, {3});
  save_csv(folder / "t.csv", f, {}, {.separator = ';'});
  CHECK(contents(folder / "t.csv") == "0.1\n1e-45\n3.4028235e+38\n");
  CHECK(load_csv<float>(folder / "t.csv").values.shape == Shape{3, 1});
  save_csv(folder / "t.csv", TensorView<double>(d.data.data(), {2, 2}, {1, 2}));
  CHECK(load_csv(folder / "t.csv").values[1] == d[2]);
  const std::string e = (folder / "t.csv").string() + ": error: expected ";
  CHECK(message_of([&] { save_csv(folder / "t.csv", TensorValue<float>({1, 2, 3})); }) ==
        e + "a vector or a matrix to write, got shape [1, 2, 3]");
  CHECK(message_of([&] { save_csv(folder / "t.csv", TensorValue<float>({1, 0})); }) ==
        e + "at least one column to write, got shape [1, 0]");
  CHECK(message_of([&] { save_csv(folder / "t.csv", f, {"a", "b"}); }) ==
        e + "one name for each of 1 columns, got 2");
}

TEST_CASE("a checkpoint holds values of each kind exactly", "[data]") {
  const Folder folder;
  const double odd_nan = std::bit_cast<double>(0xfff0000000000123U);
  const Checkpoint saved{.tensors = {{"w", tensor<float>({2, 5})}},
                         .values = {{"step", 100},
                                    {"least", std::numeric_limits<std::int64_t>::min()},
                                    {"rate", 0.1},
                                    {"tiny", 5e-324},
                                    {"zero", -0.0},
                                    {"infinite", -INFINITY},
                                    {"nan", odd_nan},
                                    {"name", "Adam \xc3\xa9 \" \\ \n"s},
                                    {"", ""}}};
  save_checkpoint(folder / "c", saved);
  const Checkpoint read = load_checkpoint(folder / "c");
  REQUIRE(read.values.size() == saved.values.size());
  for (const auto& [name, value] : saved.values) {
    CAPTURE(name);
    const Checkpoint::Value& got = read.values.at(name);
    REQUIRE(got.index() == value.index());
    if (const auto* x = std::get_if<double>(&value))
      CHECK(std::bit_cast<std::uint64_t>(std::get<double>(got)) == std::bit_cast<std::uint64_t>(*x));
    else
      CHECK(got == value);
  }
  CHECK(std::get<std::int64_t>(read.values.at("step")) == 100);
  CHECK(same(read.tensors.at("w").get<float>(), saved.tensors.at("w").get<float>()));

  CHECK(message_of([&] { load_checkpoint(bytes(fixtures::tensors), "c"); }) ==
        "c: error: expected a checkpoint, got a safetensors file of another kind; load_safetensors reads it");
  const auto error = [](const std::string& metadata) {
    return message_of(
        [&] { load_checkpoint(bytes(safetensors("{\"__metadata__\": {" + metadata + "}}")), "c"); });
  };
  CHECK(error("\"lantern.checkpoint\": \"2\"") == "c: error: expected version 1 of a checkpoint, got '2'");
  for (const char* value : {"int 1.5", "int ", "double x", "double nan x", "float 1", ""})
    CHECK(error("\"lantern.checkpoint\": \"1\", \"value.a\": \"" + std::string(value) + "\"") ==
          "c: error: expected 'int', 'double' or 'text' and a value for 'a', got '" + std::string(value) +
              "'");
}

TEST_CASE("a stop while a checkpoint is written leaves the former one", "[data]") {
  const Folder folder;
  save_checkpoint(folder / "c", {.values = {{"step", 1}}});
  const std::string former = contents(folder / "c");
  // The child may write no file beyond 64 KiB: the system ends it in the midst of the checkpoint, or, where
  // the signal is ignored, refuses.
  const auto child = [&](bool killed) {
    const pid_t pid = ::fork();
    if (pid == 0) {
      const rlimit size{1 << 16, 1 << 16}, core{0, 0};
      ::setrlimit(RLIMIT_CORE, &core);
      ::setrlimit(RLIMIT_FSIZE, &size);
      std::signal(SIGXFSZ, killed ? SIG_DFL : SIG_IGN);
      try {
        save_checkpoint(folder / "c",
                        {.tensors = {{"w", TensorValue<double>({100'000})}}, .values = {{"step", 2}}});
      } catch (const Error& e) {
        ::_exit(e.what() == (folder / "c").string() + ": error: cannot be written: File too large" ? 1 : 2);
      }
      ::_exit(0);
    }
    int status = 0;
    ::waitpid(pid, &status, 0);
    return status;
  };
  const int killed = child(true);
  CHECK((WIFSIGNALED(killed) && WTERMSIG(killed) == SIGXFSZ));
  CHECK(contents(folder / "c") == former);
  CHECK(folder.files() == 2);  // with what the child left
  const int refused = child(false);
  CHECK((WIFEXITED(refused) && WEXITSTATUS(refused) == 1));
  CHECK(contents(folder / "c") == former);
  CHECK(folder.files() == 2);
  CHECK(std::get<std::int64_t>(load_checkpoint(folder / "c").values.at("step")) == 1);
}

TEST_CASE("a file is replaced in its place, with its permissions, through a link too", "[data]") {
  const Folder folder;
  save_npy(folder / "w.npy", TensorValue<float>({1}));
  fs::permissions(folder / "w.npy", fs::perms::owner_read | fs::perms::owner_write);
  fs::create_symlink("w.npy", folder / "link.npy");
  save_npy(folder / "link.npy", TensorValue<float>({5}));
  CHECK(fs::is_symlink(folder / "link.npy"));
  CHECK(load_npy<float>(folder / "w.npy").shape == Shape{5});
  CHECK(fs::status(folder / "w.npy").permissions() == (fs::perms::owner_read | fs::perms::owner_write));
  fs::create_symlink("new.npy", folder / "dangling.npy");
  save_npy(folder / "dangling.npy", TensorValue<float>({6}));
  CHECK(load_npy<float>(folder / "new.npy").shape == Shape{6});
  CHECK(message_of([&] { save_npy(folder.path, TensorValue<float>({1})); }) ==
        folder.path.string() + ": error: expected a file to write, got a folder");
  CHECK(message_of([&] { save_npy(folder / "none" / "w.npy", TensorValue<float>({1})); }) ==
        (folder / "none/w.npy").string() + ": error: cannot be written: No such file or directory");
  CHECK(message_of([&] { save_npz("/dev/null", {}); }) ==
        "/dev/null: error: expected a file to write, got a pipe or a device");
  CHECK(folder.files() == 4);
}

TEST_CASE("a pipe is read to its end", "[data]") {
  const Folder folder;
  REQUIRE(::mkfifo((folder / "pipe").c_str(), 0600) == 0);
  const pid_t pid = ::fork();
  if (pid == 0) {
    write(folder / "pipe", "1\n" + std::string(300'000, '\n') + "2\n");
    ::_exit(0);
  }
  CHECK(load_csv(folder / "pipe").values.data == std::vector<double>{1, 2});
  ::waitpid(pid, nullptr, 0);
}

TEST_CASE("tensors of each type go to and come from DLPack", "[data]") {
  const auto round = [](const AnyTensor& t) {
    DLManagedTensor* managed = to_dlpack(t);
    AnyTensor back = load_dlpack(managed->dl_tensor);
    managed->deleter(managed);
    return back;
  };
  for (const Shape& shape : shapes) {
    CHECK(same(round(tensor<bool>(shape)).get<bool>(), tensor<bool>(shape)));
    CHECK(same(round(tensor<std::int32_t>(shape)).get<std::int32_t>(), tensor<std::int32_t>(shape)));
    CHECK(same(round(tensor<std::int64_t>(shape)).get<std::int64_t>(), tensor<std::int64_t>(shape)));
    CHECK(same(round(tensor<float>(shape)).get<float>(), tensor<float>(shape)));
    CHECK(same(round(tensor<double>(shape)).get<double>(), tensor<double>(shape)));
  }
  const std::vector<std::int64_t> numbers{1, 2, 3, 4, 5, 6};
  const DlpackView columns(TensorView<const std::int64_t>(numbers.data(), {3, 2}, {1, 3}));
  CHECK(columns.get().data == numbers.data());
  CHECK(load_dlpack(columns.get()).get<std::int64_t>().data == std::vector<std::int64_t>{1, 4, 2, 5, 3, 6});
  const DlpackView bits(of<bool>({true, false}, {2}));
  CHECK(load_dlpack(bits.get()).get<bool>().data == std::vector<bool>{true, false});

  // Half-precision numbers behind an offset, two apart.
  const std::uint16_t halves[] = {0, 0x3c00, 0, 0xc000};
  std::int64_t size = 2, stride = 2;
  DLTensor t{};
  t.data = const_cast<std::uint16_t*>(halves);
  t.device = {kDLCPU, 0};
  t.ndim = 1;
  t.dtype = {kDLFloat, 16, 1};
  t.shape = &size;
  t.strides = &stride;
  t.byte_offset = 2;
  CHECK(load_dlpack(t).get<float>().data == std::vector<float>{1, -2});
  t.dtype = {kDLBfloat, 16, 1};
  t.byte_offset = 0;
  t.strides = nullptr;
  CHECK(load_dlpack(t).get<float>().data == std::vector<float>{0, 0x1p-7F});
  t.dtype = {kDLComplex, 32, 1};
  CHECK(message_of([&] { load_dlpack(t); }) ==
        "load_dlpack: error: expected elements of bool, int8 to int64, uint8 to uint64, float16, bfloat16, "
        "float32, float64, float8, complex64 or complex128, got code 5 with 32 bits in 1 lanes");
  t.dtype = {10, 8, 1};  // kDLFloat8_e4m3fn
  CHECK(load_dlpack(t).get<float>().shape == std::vector<std::int64_t>{2});
  t.device = {kDLCUDA, 0};
  CHECK(message_of([&] { load_dlpack(t); }) ==
        "load_dlpack: error: expected a tensor in CPU memory, got one in CUDA's (device type 2); copy it to "
        "the CPU first");
  t.device = {kDLCPU, 0};
  t.dtype = {kDLFloat, 32, 1};
  t.data = nullptr;
  CHECK(message_of([&] { load_dlpack(t); }) ==
        "load_dlpack: error: expected the elements of a tensor of shape [2], got no memory");
}
