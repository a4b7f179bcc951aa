// What `bench adbench` measures: problems, each with a reference and forms of a program that solves it.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "adbench_input.hpp"
#include "report.hpp"

namespace lantern::bench {

/// One way of computing a problem's objective or derivative.
struct Form {
  std::string name;           ///< "objective", "reverse", "forward", ...
  std::function<void()> run;  ///< once, into memory that it keeps: what is timed
  /// Runs once and says what is wrong with the results; empty: they are right.
  std::function<std::string()> check;
  /// Called after the timing; may be empty.
  std::function<Extras()> extras = {};
};

struct Problem {
  std::string name;
  std::function<void()> reference;  ///< the plain objective, once
  std::vector<Form> forms;
};

/// What turns an input into forms. Inputs are shared: forms keep what they need.
struct Models {
  std::function<std::vector<Form>(std::shared_ptr<const GmmInput>, const std::string& problem)> gmm;
  std::function<std::vector<Form>(std::shared_ptr<const BaInput>, const std::string& problem)> ba;
  std::function<std::vector<Form>(std::shared_ptr<const LstmInput>, const std::string& problem)> lstm;
  std::function<std::vector<Form>(std::shared_ptr<const HandInput>, const std::string& problem)> hand;
};

/// The name of an input file's problem: gmm_d10_K25, ba1, lstm_l2_c1024, hand_simple_hand4,
/// hand_complicated_hand4. Error where the name does not begin with gmm, ba, lstm or hand.
std::string problem_name(const std::filesystem::path& file);

/// The problem in a file of the suite, with the forms that `models` has for it (those not set give none).
/// Where there is no such file, the sizes in a name like gmm_d2_K200, gmm_d10_K25_n10000 or lstm_l4_c4096
/// give a synthetic one.
Problem load_problem(const std::filesystem::path& file, const Models& models = {});

/// The files for which the suite's own values are known, inside the folder adbench/.
std::vector<std::filesystem::path> known_files(const std::filesystem::path& folder);

/// The file that `name` represents: itself, or one of the known files by the name of its problem, as ba1.
std::filesystem::path input_file(const std::string& name);

/// The folder adbench/ in $LANTERN_DATA, or else in shared/data beside the source tree. Error where neither
/// is.
std::filesystem::path adbench_folder();

}  // namespace lantern::bench
