// From files to problems.
#include "problem.hpp"

#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>

#include "derivative_check.hpp"
#include "lantern/ir/error.hpp"
#include "reference/ba.hpp"
#include "reference/gmm.hpp"
#include "reference/hand.hpp"
#include "reference/lstm.hpp"

namespace lantern::bench {
namespace {

volatile double sink = 0;

bool begins(const std::string& text, const char* with) { return text.rfind(with, 0) == 0; }

template <class Input, class Make>
std::vector<Form> forms(const Make& make, const std::shared_ptr<const Input>& in, const std::string& name) {
  return make ? make(in, name) : std::vector<Form>();
}

GmmInput gmm_input(const std::filesystem::path& file, const std::string& name) {
  int d = 0, k = 0, points = 1000;
  if (!exists(file) && std::sscanf(name.c_str(), "gmm_d%d_K%d_n%d", &d, &k, &points) >= 2)
    return synthetic_gmm(d, k, points);
  return read_gmm(file);
}

LstmInput lstm_input(const std::filesystem::path& file, const std::string& name) {
  int l = 0, c = 0;
  if (!exists(file) && std::sscanf(name.c_str(), "lstm_l%d_c%d", &l, &c) == 2)
    return synthetic_lstm(l, c, 14);
  return read_lstm(file);
}

std::vector<double> room(std::size_t entries) { return std::vector<double>(entries); }

}  // namespace

std::string problem_name(const std::filesystem::path& file) {
  const std::string stem = file.stem().string(), first = stem.substr(0, stem.find('_'));
  if (begins(stem, "gmm") || begins(stem, "lstm")) return stem;
  if (begins(stem, "ba")) return first;
  if (begins(stem, "hand")) {
    const std::string folder = file.parent_path().filename().string();
    return "hand_" + folder.substr(0, folder.find('_')) + "_" + first;
  }
  throw Error(fmt::format("expected a file named gmm..., ba..., lstm... or hand..., got {}", file.string()));
}

Problem load_problem(const std::filesystem::path& file, const Models& models) {
  Problem p;
  p.name = problem_name(file);
  if (begins(p.name, "gmm")) {
    const auto in = std::make_shared<const GmmInput>(gmm_input(file, p.name));
    p.reference = [in] { sink = reference::gmm(*in); };
    p.forms = forms(models.gmm, in, p.name);
  } else if (begins(p.name, "ba")) {
    const auto in = std::make_shared<const BaInput>(read_ba(file));
    p.reference = [in, errors = room(2 * in->joins.size()), weights = room(in->joins.size())]() mutable {
      reference::ba(*in, errors, weights);
    };
    p.forms = forms(models.ba, in, p.name);
  } else if (begins(p.name, "lstm")) {
    const auto in = std::make_shared<const LstmInput>(lstm_input(file, p.name));
    p.reference = [in] { sink = reference::lstm(*in); };
    p.forms = forms(models.lstm, in, p.name);
  } else {
    const auto in = std::make_shared<const HandInput>(read_hand(file));
    const auto hand = std::make_shared<const reference::Hand>(*in);
    p.reference = [in, hand, errors = room(3 * in->measured.size())]() mutable {
      (*hand)(in->theta, in->u, errors);
    };
    p.forms = forms(models.hand, in, p.name);
  }
  return p;
}

std::vector<std::filesystem::path> known_files(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> files;
  for (const char* name :
       {"gmm/1k/gmm_d2_K5", "gmm/1k/gmm_d10_K5", "gmm/1k/gmm_d10_K25", "gmm/1k/gmm_d20_K50",
        "gmm/1k/gmm_d64_K25", "gmm/1k/gmm_d128_K5", "ba/ba1_n49_m7776_p31843", "lstm/lstm_l2_c1024",
        "lstm/lstm_l4_c1024", "hand/simple_small/hand1_t26_c100", "hand/complicated_small/hand1_t26_c100",
        "hand/simple_small/hand4_t26_c400", "hand/complicated_small/hand4_t26_c400",
        "hand/simple_small/hand6_t26_c1600", "hand/complicated_small/hand6_t26_c1600",
        "hand/simple_small/hand8_t26_c6400", "hand/complicated_small/hand8_t26_c6400"})
    files.push_back(folder / (std::string(name) + ".txt"));
  return files;
}

std::filesystem::path input_file(const std::string& name) {
  if (!known_values(name) || std::filesystem::exists(name)) return name;
  for (auto& file : known_files(adbench_folder()))
    if (problem_name(file) == name) return std::move(file);
  return name;
}

std::filesystem::path adbench_folder() {
  const char* named = std::getenv("LANTERN_DATA");
  const std::filesystem::path beside = std::filesystem::path(LANTERN_SOURCE_DIR) / "../shared/data";
  for (const std::filesystem::path& folder : {std::filesystem::path(named ? named : ""), beside})
    if (exists(folder / "adbench/gmm")) return (folder / "adbench").lexically_normal();
  throw Error("expected the folder adbench in $LANTERN_DATA or ../shared/data, got none; set LANTERN_DATA");
}

}  // namespace lantern::bench
