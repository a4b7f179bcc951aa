// A pole on a cart swings up within the limits of its motor and of its track, with the least force: optimal
// control by direct collocation (Kelly 2017, "An introduction to trajectory optimization", SIAM Review 59).
//
//   cart_pole
//   cart_pole --picture FILE    draws the motion into an .svg file
//
// The path is cut into intervals, of which states and forces at both ends and in the middle are unknown and
// obey Simpson's rule. One Rep program has it all: the Lagrangian, cost plus multipliers times what the
// equations of motion lack. Of its Hessian only entries near the diagonal are there; they take a dozen
// passes, however many intervals there are. The interior-point method (interior_point.hpp) works with these,
// and with the gradient. Links with LAPACK.
#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <array>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <lantern/lantern.hpp>
#include <vector>

#include "interior_point.hpp"
#include "lantern/runtime/progress.hpp"
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

// The unknowns: 4 multipliers of the start; of each interval state and force at its start and in its middle,
// and 2 x 4 multipliers; the last state and force; 4 multipliers of the end.
constexpr int64_t block = 18, unknowns = 4 + block * intervals + 5 + 4;
constexpr int64_t force = 4, middle = 5, of_middle = 10, of_end = 14;  // places in what an interval has

/// Position of the cart, angle of the pole (0: hanging), and their speeds.
template <class T>
using State = std::array<T, 4>;

/// The equations of motion, for numbers and for Reps.
template <class T>
State<T> rates(const State<T>& s, const T& push) {
  using std::cos, std::sin;
  constexpr double cart = 1.0, bob = 0.3, gravity = 9.81;
  const T c = cos(s[1]), d = sin(s[1]), pull = bob * pole * d * s[3] * s[3], all = cart + bob * d * d;
  return {s[2], s[3], (pull + push + bob * gravity * c * d) / all,
          -1.0 * (pull * c + push * c + (cart + bob) * gravity * d) / (pole * all)};
}

State<D> four(A z, I at) { return {z[at], z[at + 1], z[at + 2], z[at + 3]}; }

/// The integral of the squared force, and multipliers times what is missing: at the start, in the middle and
/// at the end of each interval, at the end.
D lagrangian(A z) {
  const State<D> first = four(z, 4);
  D begin = 0.0;
  for (size_t i = 0; i < 4; ++i) begin = begin + z[int64_t(i)] * first[i];
  const D path = FOR(0, intervals, begin, [&](I k, D sum) {
    const I at = 4 + block * k;
    const State<D> a = four(z, at), m = four(z, at + middle), b = four(z, at + block);
    const D ua = z[at + force], um = z[at + middle + force], ub = z[at + block + force];
    const State<D> fa = rates(a, ua), fm = rates(m, um), fb = rates(b, ub);
    const State<D> by_middle = four(z, at + of_middle), by_end = four(z, at + of_end);
    D all = sum + width / 6 * (ua * ua + 4.0 * um * um + ub * ub);
    for (size_t i = 0; i < 4; ++i)
      all = all + by_middle[i] * (m[i] - 0.5 * (a[i] + b[i]) - width / 8 * (fa[i] - fb[i])) +
            by_end[i] * (b[i] - a[i] - width / 6 * (fa[i] + 4.0 * fm[i] + fb[i]));
    return all;
  });
  const State<D> last = four(z, unknowns - 9), multipliers = four(z, unknowns - 4);
  const std::array<double, 4> goal = {0.0, pi, 0.0, 0.0};
  D sum = path;
  for (size_t i = 0; i < 4; ++i) sum = sum + multipliers[i] * (last[i] - goal[i]);
  return sum;
}

LANTERN_FUNCTION(gradient, value_and_grad(lagrangian))
LANTERN_FUNCTION(hessian_entries, sparse_hessian(lagrangian))

namespace {

bool is_multiplier(int64_t i) {
  return i < 4 || i >= unknowns - 4 || (i < unknowns - 9 && (i - 4) % block >= of_middle);
}
/// How far unknown number i may be from 0; 0: anywhere.
double limit(int64_t i) {
  if (is_multiplier(i)) return 0;
  const int64_t part = (i - 4) % block % middle;
  return part == 0 ? half_track : part == force ? most_force : 0;
}
/// Where a point of time begins: the ends of intervals are even, their middles odd.
size_t place(int64_t point) { return size_t(4 + block * (point / 2) + middle * (point % 2)); }

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

/// The Hessian times a direction, beside a difference of gradients, relative to its length.
double derivative_error(const Vector& z, const Sparsity& s, std::uint64_t seed) {
  Random random(seed);
  constexpr double small = 1e-6;
  Vector direction(z.size()), up = z, down = z;
  for (size_t i = 0; i < z.size(); ++i) {
    direction[i] = random();
    up[i] += small * direction[i], down[i] -= small * direction[i];
  }
  const Vector entries = hessian_entries(z, s), above = std::get<1>(gradient(up)),
               below = std::get<1>(gradient(down));
  double off = 0, length = 0;
  for (size_t i = 0; i < z.size(); ++i) {
    double product = 0;
    for (auto e = size_t(s.row_start[i]); e < size_t(s.row_start[i + 1]); ++e)
      product += entries[e] * direction[size_t(s.column[e])];
    off += std::pow(product - (above[i] - below[i]) / (2 * small), 2), length += product * product;
  }
  return std::sqrt(off / length);
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
  const Sparsity s = hessian_sparsity(lagrangian)(z);
  ConstrainedProblem problem{[](const Vector& at) { return gradient(at); },
                             [&](const Vector& at) { return hessian_entries(at, s); },
                             s,
                             {},
                             {}};
  for (int64_t i = 0; i < unknowns; ++i) {
    problem.is_multiplier.push_back(is_multiplier(i));
    problem.limit.push_back(limit(i));
  }
  const double wrong = derivative_error(z, s, options.seed);
  fmt::print("Hessian: {} entries of {} x {}, by {} passes; beside differences {:.0e}\n", s.column.size(),
             s.rows, s.columns, s.forward + s.reverse, wrong);

  InteriorPoint search(problem, z);
  int steps = 0;
  LossCurve curve;
  Progress progress("swinging up", static_cast<std::uint64_t>(options.epochs));
  for (; search.error() > 1e-8 && steps < options.epochs; ++steps) {
    curve.add(steps, search.cost());
    progress.step(fmt::format("cost {:.3f}", search.cost()));
    if (steps % 10 == 0) progress.clear();
    if (steps % 10 == 0)
      fmt::print("step {:3}: cost {:7.3f}, equations lack {:.0e}, conditions {:.0e}\n", steps, search.cost(),
                 search.violation(), search.error());
    search.advance();
  }
  progress.clear();
  double track = 0, push = 0;
  for (int64_t point = 0; point <= 2 * intervals; ++point) {
    track = std::max(track, std::abs(search.z[place(point)]));
    push = std::max(push, std::abs(search.z[place(point) + force]));
  }
  const State<double> end = simulated(search.z);
  fmt::print("step {:3}: cost {:7.3f}, equations lack {:.0e}, conditions {:.0e}\n", steps, search.cost(),
             search.violation(), search.error());
  fmt::print("at most {:.3f} from the middle, a force of {:.3f}; simulated: cart at {:.4f}, pole at {:.4f}\n",
             track, push, end[0], end[1]);
  if (!picture.empty()) draw(picture, search.z);
  TensorValue<double> path({unknowns});
  path.data = search.z;
  finish(options, {{"path", path}}, curve, "cost: the integral of the squared force");
  const bool within = track <= half_track && push <= most_force && search.violation() < 1e-8;
  if (within && wrong < 1e-7 && search.error() <= 1e-8 && std::abs(end[1] - pi) < 0.02) return 0;
  fmt::print("expected the pole to stand, within the limits, and derivatives right to 1e-7\n");
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  Training options{.epochs = 300};
  std::filesystem::path picture;
  CLI::App app("Swings up a pole on a cart, within the limits of motor and track.");
  app.option_defaults()->always_capture_default();
  add_run_options(app, options, "steps of Newton's method, at most");
  app.add_option("--picture", picture, "draw the motion into this .svg file")->type_name("FILE");
  CLI11_PARSE(app, argc, argv);
  try {
    return run(options, picture);
  } catch (const Error& e) {
    fmt::print(stderr, "{}\n", e.what());
    return 1;
  }
}
