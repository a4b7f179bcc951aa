// The yardstick of the benchmarks computes what the suite's own modules compute, to all digits known of them.
#include <catch2/catch.hpp>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "adbench_input.hpp"
#include "lantern/ir/error.hpp"
#include "reference/ba.hpp"
#include "reference/gmm.hpp"
#include "reference/hand.hpp"
#include "reference/lstm.hpp"

using namespace lantern;
using namespace lantern::bench;

namespace {

/// The folder adbench/, by the environment or beside the source tree; empty, with a warning, where there is
/// none.
std::filesystem::path data_folder() {
  const char* named = std::getenv("LANTERN_DATA");
  const std::filesystem::path beside = std::filesystem::path(LANTERN_TEST_DIR) / "../../shared/data";
  for (const std::filesystem::path& folder : {std::filesystem::path(named ? named : ""), beside})
    if (exists(folder / "adbench/gmm")) return folder / "adbench";
  WARN("skipped: no adbench/gmm in $LANTERN_DATA or ../shared/data");
  return {};
}

struct Summary {
  double sum = 0, norm = 0, first = 0, last = 0;
};
Summary summary(const std::vector<double>& values) {
  Summary s{0, 0, values.front(), values.back()};
  double squares = 0;
  for (const double v : values) s.sum += v, squares += v * v;
  s.norm = std::sqrt(squares);
  return s;
}
void check(const std::vector<double>& values, const Summary& expected) {
  const Summary s = summary(values);
  CHECK(s.sum == Approx(expected.sum).epsilon(1e-10));
  CHECK(s.norm == Approx(expected.norm).epsilon(1e-10));
  CHECK(s.first == Approx(expected.first).epsilon(1e-10));
  CHECK(s.last == Approx(expected.last).epsilon(1e-10));
}

/// A file with this text, for as long as the object lives.
class TextFile {
 public:
  explicit TextFile(const std::string& text)
      : path_(std::filesystem::temp_directory_path() / ("adbench_" + std::to_string(counter_++) + ".txt")) {
    std::ofstream(path_) << text;
  }
  ~TextFile() { std::filesystem::remove(path_); }
  TextFile(const TextFile&) = delete;
  TextFile& operator=(const TextFile&) = delete;
  const std::filesystem::path& path() const { return path_; }

 private:
  static inline int counter_ = 0;
  std::filesystem::path path_;
};

/// The message about a file with this text, after the file's name.
template <class Read>
std::string error_of(Read read, const std::string& text) {
  const TextFile file(text);
  try {
    read(file.path());
  } catch (const Error& e) {
    const std::string message = e.what();
    REQUIRE(message.rfind(file.path().string(), 0) == 0);
    return message.substr(file.path().string().size());
  }
  return "no error";
}

}  // namespace

TEST_CASE("yardstick: Gaussian mixtures", "[adbench]") {
  const std::filesystem::path folder = data_folder();
  if (folder.empty()) return;
  const struct {
    const char* name;
    double objective;
  } known[] = {{"gmm_d2_K5", -5240.59056254965},   {"gmm_d10_K5", -31302.5409109107},
               {"gmm_d10_K25", -25649.6526211976}, {"gmm_d20_K50", -65629.5068712677},
               {"gmm_d64_K25", -944188.541866021}, {"gmm_d128_K5", -5011761.18102223}};
  for (const auto& [name, objective] : known) {
    INFO(name);
    const GmmInput in = read_gmm(folder / "gmm/1k" / (std::string(name) + ".txt"));
    CHECK(reference::gmm(in) == Approx(objective).epsilon(1e-10));
  }
}

TEST_CASE("yardstick: bundle adjustment", "[adbench]") {
  const std::filesystem::path folder = data_folder();
  if (folder.empty()) return;
  const BaInput in = read_ba(folder / "ba/ba1_n49_m7776_p31843.txt");
  std::vector<double> reprojection(63686), weight(31843);
  REQUIRE(in.joins.size() == weight.size());
  reference::ba(in, reprojection, weight);
  check(reprojection, {1030.69651638, 21.87366336, 0.101335837914, -0.0689677659245});
  check(weight, {26305.2683022, 147.412987354, 0.826092651516, 0.826092651516});
}

TEST_CASE("yardstick: a camera that is not turned", "[adbench]") {
  BaInput in;
  in.cameras = in.points = in.observations = 1;
  in.camera = {0, 0, 0, 1, 2, 3, 10, 0.5, 0.25, 0.1, 0.01};
  in.point = {2, 4, 5};  // seen at (1, 2, 2): p = (0.5, 1), s = 1.25, factor 1.140625
  in.weight = {2};
  in.feature = {1, 1};
  in.joins = {{0, 0}};
  std::vector<double> reprojection(2), weight(1);
  reference::ba(in, reprojection, weight);
  CHECK(reprojection[0] == Approx(2 * (10 * 0.5 * 1.140625 + 0.5 - 1)));
  CHECK(reprojection[1] == Approx(2 * (10 * 1.140625 + 0.25 - 1)));
  CHECK(weight[0] == -3);
}

TEST_CASE("yardstick: character model", "[adbench]") {
  const std::filesystem::path folder = data_folder();
  if (folder.empty()) return;
  CHECK(reference::lstm(read_lstm(folder / "lstm/lstm_l2_c1024.txt")) ==
        Approx(0.666665179558852).epsilon(1e-10));
  CHECK(reference::lstm(read_lstm(folder / "lstm/lstm_l4_c1024.txt")) ==
        Approx(0.710676638558428).epsilon(1e-10));
}

TEST_CASE("yardstick: hand tracking", "[adbench]") {
  const std::filesystem::path folder = data_folder();
  if (folder.empty()) return;
  const struct {
    const char* name;
    Summary error;
  } known[] = {
      {"simple_small/hand1_t26_c100", {-1.12493459343, 1.76769337526, 0.192243394536, 0.136696471273}},
      {"complicated_small/hand1_t26_c100", {0.837798731241, 1.79638946539, -0.106894294629, -0.109570469792}},
      {"simple_small/hand4_t26_c400", {4.3356675393, 3.41041341147, 0.0398850059613, -0.0359558298311}},
      {"complicated_small/hand4_t26_c400", {0.439946308344, 3.49653699327, 0.110654571585, 0.0202703391176}},
      {"simple_small/hand6_t26_c1600", {-8.27723003478, 6.93062815859, 0.225784803191, 0.200721533915}},
      {"complicated_small/hand6_t26_c1600", {3.61820512486, 6.9089059475, 0.0470825313874, -0.0589266535587}},
      {"simple_small/hand8_t26_c6400", {1.18756133219, 13.7479155019, -0.0485905070596, 0.160912510593}},
      {"complicated_small/hand8_t26_c6400", {1.18183556883, 13.8689526968, -0.041609743995, -0.10256928152}}};
  for (const auto& [name, error] : known) {
    INFO(name);
    const HandInput in = read_hand(folder / "hand" / (std::string(name) + ".txt"));
    CHECK(in.complicated() == (name[0] == 'c'));
    std::vector<double> errors(3 * in.measured.size());
    const reference::Hand hand(in);
    hand(in.theta, in.u, errors);
    check(errors, error);
  }
}

TEST_CASE("adbench: synthetic inputs have the sizes asked for and repeat", "[adbench]") {
  const GmmInput g = synthetic_gmm(3, 4, 5);
  CHECK(g.factors.size() == 4 * 6);
  CHECK(g.data.size() == 15);
  CHECK(std::isfinite(reference::gmm(g)));
  CHECK(reference::gmm(g) == reference::gmm(synthetic_gmm(3, 4, 5)));
  const LstmInput l = synthetic_lstm(2, 7, 3);
  CHECK(l.main.size() == 48);
  CHECK(l.sequence.size() == 21);
  CHECK(reference::lstm(l) > 0);
  CHECK(reference::lstm(l) == reference::lstm(synthetic_lstm(2, 7, 3)));
}

TEST_CASE("adbench: what is said about a malformed file", "[adbench]") {
  const std::string gmm = "1 1 1\n0.5\n0.25\n0.125\n2\n1 0\n";
  CHECK(error_of(read_gmm, gmm) == "no error");
  CHECK(error_of(read_gmm, gmm + "7") == ":7: expected the end of the file, got '7'");
  CHECK(error_of(read_gmm, "1 1 1\n0.5\nx") == ":3: expected an entry of a mean (a number), got 'x'");
  CHECK(error_of(read_gmm, "1 1.5 1") == ":1: expected the number of components (an integer), got '1.5'");
  CHECK(error_of(read_gmm, "1 1 1\n0.5\n") == ":3: expected an entry of a mean, got the end of the file");
  CHECK(error_of(read_gmm, "0 1 1") == ":1: expected the number of dimensions from 1 to 10000, got 0");
  CHECK(error_of(read_ba, "1 1 1\n1 2 3") == ":2: expected an entry of the camera, got the end of the file");
  CHECK(error_of(read_lstm, "1 1 1") == ":1: expected the number of characters from 2 to 100000000, got 1");
  CHECK_THROWS_WITH(read_gmm("/nowhere/gmm.txt"), "/nowhere/gmm.txt: expected a readable file");
}

TEST_CASE("adbench: what is said about a malformed hand", "[adbench]") {
  const std::filesystem::path folder = std::filesystem::temp_directory_path() / "adbench_hand";
  create_directories(folder / "model");
  create_directories(folder / "simple");
  std::string identity;
  for (int i = 0; i < 32; ++i) identity += i % 16 % 5 == 0 ? ":1" : ":0";
  const auto write = [&](const char* name, const std::string& text) { std::ofstream(folder / name) << text; };
  const auto message = [&] {
    try {
      read_hand(folder / "simple/one.txt");
    } catch (const Error& e) {
      return std::string(e.what()).substr(folder.string().size());
    }
    return std::string("no error");
  };
  std::string theta;
  for (int i = 0; i < 26; ++i) theta += "\n0";
  write("model/bones.txt", "wrist:-1" + identity + "\n");
  write("model/vertices.txt", "1:2:3:0:0:0:0:0:1:0:1\n");
  write("model/triangles.txt", "0:0:0\n");
  write("simple/one.txt", "1 26\n0 1 2 3" + theta);
  CHECK(message() == "no error");
  CHECK_FALSE(read_hand(folder / "simple/one.txt").complicated());
  write("simple/one.txt", "1 26\n0 1 2 3\n0.5 0.25" + theta);
  CHECK(message() == "no error");
  CHECK(read_hand(folder / "simple/one.txt").u == std::vector<double>{0.5, 0.25});
  write("simple/one.txt", "1 26\n4 1 2 3" + theta);
  CHECK(message() == "/simple/one.txt: expected a vertex from 0 to 0, got 4");
  write("simple/one.txt", "1 20\n4 1 2 3" + theta);
  CHECK(message() == "/simple/one.txt:1: expected the number of parameters from 26 to 26, got 20");
  write("model/triangles.txt", "0:0:1\n");
  CHECK(message() == "/model/triangles.txt:1: expected a vertex from 0 to 0, got 1");
  write("model/bones.txt", "wrist:0" + identity + "\n");
  CHECK(message() == "/model/bones.txt:1: expected the parent of a bone from -1 to -1, got 0");
  remove_all(folder);
}
