// The ADBench problems' programs in the DSL, on small inputs of which no two parts are alike. (In the suite's
// bundle adjustment all cameras and points are.)
#include <catch2/catch.hpp>
#include <random>

#include "derivative_check.hpp"
#include "model_ba.hpp"
#include "model_gmm.hpp"
#include "model_hand.hpp"
#include "model_lstm.hpp"

using namespace lantern::bench;

namespace {

void check_all(const std::vector<Form>& forms) {
  CHECK(forms.size() == 2);
  for (const Form& form : forms) {
    INFO(form.name);
    CHECK(form.check() == "");
  }
}

struct Random {
  std::mt19937_64 engine{1};
  double operator()(double lo, double hi) { return std::uniform_real_distribution<double>(lo, hi)(engine); }
};

BaInput different_observations(int cameras, int points, int observations) {
  Random random;
  BaInput in;
  in.cameras = cameras, in.points = points, in.observations = observations;
  for (int i = 0; i < 11 * cameras; ++i) in.camera.push_back(random(-0.1, 0.1));
  for (int i = 0; i < cameras; ++i) in.camera[static_cast<std::size_t>(11 * i + 6)] = random(1, 2);
  for (int i = 0; i < 3 * points; ++i) in.point.push_back(i % 3 == 2 ? random(2, 3) : random(-1, 1));
  for (int i = 0; i < observations; ++i) {
    in.weight.push_back(random(0.5, 1));
    in.feature.insert(in.feature.end(), {random(-1, 1), random(-1, 1)});
    in.joins.push_back({i * 7 % cameras, i * 5 % points});
  }
  return in;
}

HandInput small_hand(bool complicated, int points) {
  Random random;
  HandInput in;
  HandModel& model = in.model;
  for (int bone = 0; bone < 22; ++bone) {
    model.parent.push_back((bone + 1) / 2 - 1);
    for (auto* matrices : {&model.base_relative, &model.inverse_base_absolute}) {
      auto& m = matrices->emplace_back();
      for (std::size_t i = 0; i < 12; ++i) m[i] = random(-0.3, 0.3) + (i % 5 == 0 ? 1 : 0);
      m[15] = 1;
    }
  }
  for (int vertex = 0; vertex < 7; ++vertex) {
    model.vertices.push_back({random(-1, 1), random(-1, 1), random(-1, 1)});
    for (int bone = 0; bone < 22; ++bone) model.weights.push_back(random(0, 0.1));
    model.triangles.push_back({vertex, (vertex + 1) % 7, (vertex + 3) % 7});
  }
  for (int i = 0; i < points; ++i) {
    in.correspondence.push_back(i * 3 % 7);
    in.measured.push_back({random(-1, 1), random(-1, 1), random(-1, 1)});
    if (complicated) in.u.insert(in.u.end(), {random(0, 0.5), random(0, 0.5)});
  }
  for (int i = 0; i < 26; ++i) in.theta.push_back(random(-0.5, 0.5));
  return in;
}

}  // namespace

TEST_CASE("adbench models: Gaussian mixtures", "[adbench]") {
  for (const auto& [dimensions, components, points] : {std::array{1, 1, 1}, {3, 2, 5}, {2, 5, 37}}) {
    INFO(dimensions << " dimensions, " << components << " components, " << points << " points");
    check_all(gmm_forms(std::make_shared<const GmmInput>(synthetic_gmm(dimensions, components, points)), ""));
  }
}

TEST_CASE("adbench models: character model", "[adbench]") {
  for (const auto& [layers, characters, width] : {std::array{1, 2, 1}, {2, 9, 3}, {3, 20, 14}}) {
    INFO(layers << " layers, " << characters << " characters, width " << width);
    check_all(lstm_forms(std::make_shared<const LstmInput>(synthetic_lstm(layers, characters, width)), ""));
  }
}

TEST_CASE("adbench models: bundle adjustment", "[adbench]") {
  for (const int observations : {1, 4, 31}) {
    INFO(observations << " observations");
    check_all(ba_forms(std::make_shared<const BaInput>(different_observations(3, 5, observations)), ""));
  }
}

TEST_CASE("adbench models: a camera that is not turned", "[adbench]") {
  BaInput in = different_observations(3, 5, 11);
  std::fill_n(in.camera.begin() + 11, 3, 0.0);
  check_all(ba_forms(std::make_shared<const BaInput>(in), ""));
}

TEST_CASE("adbench models: hand tracking", "[adbench]") {
  for (const int points : {1, 10}) {
    INFO(points << " points");
    check_all(hand_forms(std::make_shared<const HandInput>(small_hand(false, points)), ""));
    check_all(hand_forms(std::make_shared<const HandInput>(small_hand(true, points)), ""));
  }
}

TEST_CASE("adbench models: a wrong derivative is seen", "[adbench]") {
  const auto in = std::make_shared<const GmmInput>(synthetic_gmm(2, 5, 37));
  auto other = std::make_shared<GmmInput>(*in);
  other->m += 1;
  const auto forms = gmm_forms(other, "gmm_d2_K5");  // whose values are the suite's, for other data
  CHECK(forms[0].check() == "");
  CHECK(forms[1].check().rfind("expected the sum", 0) == 0);
}
