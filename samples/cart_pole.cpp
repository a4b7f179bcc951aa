// A pole on a cart swings up within the limits of its motor and of its track, with the least force: optimal
// control by direct collocation (Kelly 2017, "An introduction to trajectory optimization", SIAM Review 59).
//
//   cart_pole
//   cart_pole --picture FILE    draws the motion into an .svg file
//
// The path is cut into intervals, of which states and forces at both ends and in the middle are unknown and
// obey Simpson's rule. Cost and equations are Rep programs, and solvers::interior_point finds the path. Each
// point of time meets its neighbours only: the Hessian of the Lagrangian takes a dozen passes, however many
// intervals there are, and Newton's equations are a narrow band.
#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <array>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <lantern/solvers.hpp>
#include <limits>
#include <vector>

#include "support.hpp"
#include "training.hpp"

using namespace lantern;

using D = Rep<double>;
using I = Rep<int64_t>;
using A = Rep<Array<double>>;
using Vector = std::vector<double>;

constexpr int64_t intervals = 50;
constexpr double duration = 3.0, width = duration / intervals, pi = 3.14159265358979323846;
constexpr double most_force = 8.0, half_track = 0.5, pole = 0.5;

// The unknowns: of each interval state and force at its start and in its middle; the last state and force.
constexpr int64_t point_size = 5, force = 4, points = 2 * intervals + 1, unknowns = point_size * points;

/// Position of the cart, angle of the pole (0: hanging), and their speeds.
template <class T>
using State = std::array<T, 4>;

// [motion]
/// The equations of motion, for numbers and for Reps.
template <class T>
State<T> rates(const State<T>& s, const T& push) {
  using std::cos, std::sin;
  constexpr double cart = 1.0, bob = 0.3, gravity = 9.81;
  const T c = cos(s[1]), d = sin(s[1]), pull = bob * pole * d * s[3] * s[3], all = cart + bob * d * d;
  return {s[2], s[3], (pull + push + bob * gravity * c * d) / all,
          -1.0 * (pull * c + push * c + (cart + bob) * gravity * d) / (pole * all)};
}
// [/motion]

State<D> four(A z, I at) { return {z[at], z[at + 1], z[at + 2], z[at + 3]}; }

// [cost]
/// The integral of the squared force.
D cost(A z) {
  return FOR(0, intervals, D(0.0), [&](I k, D sum) {
    const I at = 2 * point_size * k + force;
    const D a = z[at], m = z[at + point_size], b = z[at + 2 * point_size];
    return sum + width / 6 * (a * a + 4.0 * m * m + b * b);
  });
}
// [/cost]
// [missing]
/// What is missing: at the start and the end, in the middle and at the end of each interval.
A missing(A z) {
  const State<D> first = four(z, 0), last = four(z, unknowns - point_size);
  const std::array<double, 4> goal = {0.0, pi, 0.0, 0.0};
  A all = fill(D(0.0), 8 + 8 * intervals);
  for (int64_t i = 0; i < 4; ++i)
    all = all.set(i, first[size_t(i)]).set(4 + i, last[size_t(i)] - goal[size_t(i)]);
  return FOR(0, intervals, all, [&](I k, A lack) {
    const I at = 2 * point_size * k, middle = at + point_size, end = middle + point_size;
    const State<D> a = four(z, at), m = four(z, middle), b = four(z, end);
    const State<D> fa = rates(a, z[at + force]), fm = rates(m, z[middle + force]),
                   fb = rates(b, z[end + force]);
    for (size_t i = 0; i < 4; ++i)
      lack = lack.set(8 + 8 * k + int64_t(i), m[i] - 0.5 * (a[i] + b[i]) - width / 8 * (fa[i] - fb[i]))
                 .set(12 + 8 * k + int64_t(i), b[i] - a[i] - width / 6 * (fa[i] + 4.0 * fm[i] + fb[i]));
    return lack;
  });
}
// [/missing]
// [problem]
auto problem() { return solvers::problem(cost).equal_zero(missing); }
using Pattern = solvers::KktSparsityOf<I, Rep<Array<int64_t>>>;
/// `most`: how far each unknown may be from 0.
auto swing_up(A start, A most, Pattern pattern) {
  return solvers::interior_point(problem().between(-most, most).sparse(pattern),
                                 {.iterations = 300, .barrier = 10}, start);
}
LANTERN_FUNCTION(path_of_least_force, swing_up)
// [/problem]

namespace {

/// Where a point of time begins: the ends of intervals are even, their middles odd.
size_t place(int64_t point) { return size_t(point_size * point); }

/// Where cart and pole get with the forces of z, by small steps of the classical Runge-Kutta method.
State<double> simulated(const Vector& z) {
  State<double> s{};
  constexpr int64_t fine = 200;
  for (int64_t k = 0; k < intervals * fine; ++k) {
    const int64_t interval = k / fine;
    const double a = z[place(2 * interval) + force], m = z[place(2 * interval + 1) + force],
                 b = z[place(2 * interval + 2) + force];
    const auto slope = [&](double t, const State<double>& at) {  // the parabola through the three forces
      return rates(at, a + t * (4 * m - 3 * a - b) + 2 * t * t * (a - 2 * m + b));
    };
    const auto plus = [](State<double> x, double step, const State<double>& d) {
      for (size_t i = 0; i < 4; ++i) x[i] += step * d[i];
      return x;
    };
    constexpr double share = 1.0 / fine, step = width * share;
    const double t = double(k % fine) * share;
    const State<double> d1 = slope(t, s), d2 = slope(t + share / 2, plus(s, step / 2, d1)),
                        d3 = slope(t + share / 2, plus(s, step / 2, d2)),
                        d4 = slope(t + share, plus(s, step, d3));
    s = plus(plus(plus(plus(s, step / 6, d1), step / 3, d2), step / 3, d3), step / 6, d4);
  }
  return s;
}

/// The cart and the pole at many times, later ones darker, and the way of the bob.
void draw(const std::filesystem::path& file, const Vector& z) {
  std::ofstream out(file);
  const auto x = [](double meters) { return 320 + 300 * meters; };
  const auto y = [](double meters) { return 200 - 300 * meters; };
  out << "<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 640 400'>\n<rect width='640' height='400' "
         "fill='white'/>\n";
  out << fmt::format(
      "<path d='M{0:.1f} 200H{1:.1f}M{0:.1f} 180v40M{1:.1f} 180v40' stroke='gray' fill='none'/>\n",
      x(-half_track), x(half_track));
  std::string way;
  for (int64_t point = 0; point <= 2 * intervals; ++point) {
    const double cart = z[place(point)], angle = z[place(point) + 1];
    const double bob_x = x(cart + pole * std::sin(angle)), bob_y = y(-pole * std::cos(angle));
    way += fmt::format("{:.1f},{:.1f} ", bob_x, bob_y);
    if (point % 4 != 0) continue;
    out << fmt::format(
        "<g opacity='{:.2f}'><rect x='{:.1f}' y='194' width='28' height='12' fill='#1f77b4'/><path "
        "d='M{:.1f} 200L{:.1f} "
        "{:.1f}' stroke='#1f77b4' stroke-width='2'/><circle cx='{:.1f}' cy='{:.1f}' r='6' "
        "fill='#d62728'/></g>\n",
        0.15 + 0.85 * double(point) / (2 * intervals), x(cart) - 14, x(cart), bob_x, bob_y, bob_x, bob_y);
  }
  out << "<polyline points='" << way << "' fill='none' stroke='#d62728' stroke-dasharray='3'/>\n</svg>\n";
  if (!out.flush()) throw Error("expected to write a picture, cannot write " + file.string());
}

int run(const Training& options, const std::filesystem::path& picture) {
  Vector z(unknowns, 0.0);  // to begin with, the pole goes round at one speed
  for (int64_t point = 0; point <= 2 * intervals; ++point) {
    z[place(point) + 1] = pi * double(point) / (2 * intervals);
    z[place(point) + 3] = pi / duration;
  }
  // [solve]
  const auto pattern = solvers::kkt_sparsity(problem())(z);
  fmt::print("{} unknowns and {} equations: {} entries by {} passes, {} next to the diagonal\n", unknowns,
             pattern.hessian.rows - unknowns, pattern.hessian.column.size(),
             pattern.hessian.forward + pattern.hessian.reverse, pattern.band);
  Vector most(unknowns, std::numeric_limits<double>::infinity());
  for (int64_t point = 0; point < points; ++point)
    most[place(point)] = half_track, most[place(point) + force] = most_force;
  const auto found = path_of_least_force(z, most, pattern);
  // [/solve]
  double track = 0, push = 0;
  LossCurve forces;
  for (int64_t point = 0; point < points; ++point) {
    track = std::max(track, std::abs(found.x[place(point)]));
    push = std::max(push, std::abs(found.x[place(point) + force]));
    forces.add(0.5 * width * double(point), found.x[place(point) + force]);
  }
  const State<double> end = simulated(found.x);
  fmt::print("{} steps: cost {:.3f}, equations lack {:.0e}\n", found.iterations, found.value,
             found.violation);
  fmt::print("at most {:.3f} from the middle, a force of {:.3f}; simulated: cart at {:.4f}, pole at {:.4f}\n",
             track, push, end[0], end[1]);
  if (!picture.empty()) draw(picture, found.x);
  TensorValue<double> path({unknowns});
  path.data = found.x;
  finish(options, {{"path", path}}, forces, "force over time");
  const bool within = track <= half_track && push <= most_force && found.violation < 1e-8;
  if (within && found.converged && std::abs(end[1] - pi) < 0.02) return 0;
  fmt::print("expected the pole to stand, within the limits\n");
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  Training options;
  std::filesystem::path picture;
  CLI::App app("Swings up a pole on a cart, within the limits of motor and track.");
  app.option_defaults()->always_capture_default();
  app.add_option("--export", options.export_to, "write the path to this .safetensors file")
      ->type_name("FILE");
  app.add_option("--curve", options.curve, "draw the force into this .svg file")->type_name("FILE");
  app.add_option("--picture", picture, "draw the motion into this .svg file")->type_name("FILE");
  CLI11_PARSE(app, argc, argv);
  try {
    return run(options, picture);
  } catch (const Error& e) {
    fmt::print(stderr, "{}\n", e.what());
    return 1;
  }
}
