// Random numbers inside programs: the generator's published values, the same numbers everywhere, their distributions.
#include <cmath>
#include <lantern/random.hpp>
#include <lantern/tensor.hpp>
#include <numeric>
#include <set>

#include "catch2/catch.hpp"

using namespace lantern;

namespace {

template <class V>
std::pair<double, double> mean_and_variance(const V& data) {
  const double n = static_cast<double>(data.size());
  const double mean = std::accumulate(data.begin(), data.end(), 0.0) / n;
  double squares = 0;
  for (const auto x : data) squares += (static_cast<double>(x) - mean) * (static_cast<double>(x) - mean);
  return {mean, squares / n};
}

using Words = std::array<std::int64_t, 4>;

}  // namespace

// Random123 1.14, kat_vectors.
TEST_CASE("philox gives its published values") {
  const auto block = [](std::array<Rep<std::int64_t>, 4> c, std::array<Rep<std::int64_t>, 2> k) {
    const auto w = core::random::detail::philox(
        std::array<core::Datum, 4>{c[0].datum(), c[1].datum(), c[2].datum(), c[3].datum()},
        std::array<core::Datum, 2>{k[0].datum(), k[1].datum()}, {});
    using R = Rep<std::int64_t>;
    return std::array<R, 4>{R(w[0]), R(w[1]), R(w[2]), R(w[3])};
  };
  const auto everywhere = [&](const Words& c, const std::array<std::int64_t, 2>& k, const Words& want) {
    CHECK(eager(block)(c, k) == want);
    CHECK(compile(block, {.target = Target::c})(c, k) == want);
    CHECK(compile(block, {.target = Target::cpp})(c, k) == want);
  };
  everywhere({0, 0, 0, 0}, {0, 0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
  everywhere({0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, {0xffffffff, 0xffffffff},
             {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd});
  everywhere({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0},
             {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1});
}

TEST_CASE("the same numbers eagerly, on each target and in threads") {
  const auto program = [](Rep<std::int64_t> key, Rep<std::int64_t> n) {
    return std::tuple(random::uniform<double>(key, n, 3), random::uniform<float>(key, n),
                      random::integers(key, -5, 7, n), random::bernoulli(key, Rep<double>(0.3), n),
                      random::permutation(key, n), random::normal<double>(key, n));
  };
  const auto eagerly = eager(program)(42, 37);
  for (const CompileOptions& options :
       {CompileOptions{.target = Target::c, .opt = 0}, CompileOptions{.target = Target::c},
        CompileOptions{.target = Target::cpp}, CompileOptions{.target = Target::cpp, .threads = 2}}) {
    const auto compiled = compile(program, options)(42, 37);
    CHECK(std::get<0>(compiled).data == std::get<0>(eagerly).data);
    CHECK(std::get<1>(compiled).data == std::get<1>(eagerly).data);
    CHECK(std::get<2>(compiled).data == std::get<2>(eagerly).data);
    CHECK(std::get<3>(compiled).data == std::get<3>(eagerly).data);
    CHECK(std::get<4>(compiled).data == std::get<4>(eagerly).data);
    for (std::size_t i = 0; i < 37; ++i)  // of functions of the mathematical library
      CHECK(std::get<5>(compiled).data[i] == Approx(std::get<5>(eagerly).data[i]).epsilon(1e-12));
  }
  const auto longer = eager(program)(42, 40);  // an element depends on the key and its place alone
  CHECK(std::equal(std::get<1>(eagerly).data.begin(), std::get<1>(eagerly).data.end(), std::get<1>(longer).data.begin()));
}

TEST_CASE("distributions") {
  constexpr std::int64_t n = 200'000;
  const CompileOptions fast = {.target = Target::cpp};
  const auto u = compile([](Rep<std::int64_t> key) { return random::uniform<double>(key, n); }, fast)(1).data;
  CHECK(*std::min_element(u.begin(), u.end()) >= 0);
  CHECK(*std::max_element(u.begin(), u.end()) < 1);
  CHECK(mean_and_variance(u).first == Approx(0.5).margin(0.003));
  CHECK(mean_and_variance(u).second == Approx(1.0 / 12).margin(0.001));
  std::vector<double> cells(64);
  for (const double x : u) cells[static_cast<std::size_t>(x * 64)] += 1;
  double chi = 0;
  for (const double c : cells) chi += (c - n / 64.0) * (c - n / 64.0) / (n / 64.0);
  CHECK(chi < 120);  // of 63 degrees of freedom: one in 50,000 is above
  CHECK(chi > 25);
  const auto z = compile([](Rep<std::int64_t> key) { return random::normal<float>(key, n); }, fast)(2).data;
  CHECK(mean_and_variance(z).first == Approx(0).margin(0.01));
  CHECK(mean_and_variance(z).second == Approx(1).margin(0.015));
  CHECK(std::count_if(z.begin(), z.end(), [](float x) { return x > 1.96F; }) == Approx(0.025 * n).epsilon(0.05));
  const auto e = compile([](Rep<std::int64_t> key) { return random::exponential<double>(key, n); }, fast)(3).data;
  CHECK(mean_and_variance(e).first == Approx(1).margin(0.01));
  CHECK(*std::min_element(e.begin(), e.end()) >= 0);
  const auto g = compile([](Rep<std::int64_t> key) { return random::gumbel<double>(key, n); }, fast)(4).data;
  CHECK(mean_and_variance(g).first == Approx(0.57721566).margin(0.015));
  const auto b = compile([](Rep<std::int64_t> key) { return random::bernoulli(key, Rep<double>(0.3), n); }, fast)(5).data;
  CHECK(mean_and_variance(b).first == Approx(0.3).margin(0.005));
  const auto i = compile([](Rep<std::int64_t> key) { return random::integers(key, -2, 3, n); }, fast)(6).data;
  for (std::int64_t v = -2; v < 3; ++v) CHECK(std::count(i.begin(), i.end(), v) == Approx(0.2 * n).epsilon(0.03));
  CHECK(*std::min_element(i.begin(), i.end()) == -2);
  CHECK(*std::max_element(i.begin(), i.end()) == 2);
  const auto c = compile([](Rep<std::int64_t> key) {
    return random::categorical(key, tabulate<n, 3>([](auto, auto j) { return log(cast<double>(j) + 1.0); }));
  }, fast)(7).data;
  for (std::int64_t v = 0; v < 3; ++v) CHECK(std::count(c.begin(), c.end(), v) == Approx(double(v + 1) / 6 * n).epsilon(0.03));
  const auto p = compile([](Rep<std::int64_t> key) { return random::permutation(key, 1000); }, fast)(8).data;
  CHECK(std::set<std::int64_t>(p.begin(), p.end()).size() == 1000);
  CHECK(!std::is_sorted(p.begin(), p.end()));
}

TEST_CASE("keys split") {
  const auto keys = [](Rep<std::int64_t> key) {
    const auto two = random::split<3>(key);
    return std::array<Rep<std::int64_t>, 5>{two[0], two[1], two[2], random::fold_in(key, 0), random::fold_in(key, 1)};
  };
  std::set<std::int64_t> all_keys;
  for (std::int64_t k = 0; k < 200; ++k)
    for (const std::int64_t made : eager(keys)(k)) all_keys.insert(made);
  CHECK(all_keys.size() == 1000);
  CHECK(compile(keys)(3) == eager(keys)(3));
}

TEST_CASE("derivatives go through scale and shift") {
  const auto loss = [](Rep<double> mean, Rep<double> deviation, Rep<std::int64_t> key) {
    const auto z = random::normal<double>(key, 50);
    const auto x = z * deviation + mean;
    return sum(x * x) / 50.0;
  };
  const auto z = eager([](Rep<std::int64_t> key) { return random::normal<double>(key, 50); })(9).data;
  double by_mean = 0, by_deviation = 0;
  for (const double v : z) {
    by_mean += 2 * (0.5 + 2 * v) / 50;
    by_deviation += 2 * (0.5 + 2 * v) * v / 50;
  }
  for (const auto& gradient : {eager(grad(loss))(0.5, 2.0, 9), compile(grad(loss))(0.5, 2.0, 9)}) {
    CHECK(std::get<0>(gradient) == Approx(by_mean));
    CHECK(std::get<1>(gradient) == Approx(by_deviation));
  }
}
