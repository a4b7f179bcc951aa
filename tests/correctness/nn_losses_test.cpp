// Losses: values against PyTorch 2.15 (torch.nn.functional, in double), derivatives against each other,
// differences and, of ctc, PyTorch's; eager against compiled.
#include "nn_check.hpp"

using namespace nn_check;

namespace {

T together(const std::vector<Rep<double>>& values) {
  std::vector<T> parts;
  for (const Rep<double>& v : values) parts.push_back(one(v));
  return all_of_them(parts);
}
constexpr auto in_sum = nn::Reduction::sum;

struct Case {
  std::int64_t time, batch, classes;
  std::vector<std::int64_t> labels, steps, counts;
};
Rep<Tensor<double>> ctc_of(const T& x, const Case& c, const nn::CtcOptions& o) {
  Cut cut(x);
  const T scores = cut({c.time, c.batch, c.classes});
  const std::int64_t most = static_cast<std::int64_t>(c.labels.size()) / c.batch;
  return nn::ctc_each(log_softmax<2>(T(2.0 * scores)), integers(c.labels, {c.batch, most}),
                      integers(c.steps, {c.batch}), integers(c.counts, {c.batch}), o);
}

}  // namespace

TEST_CASE("losses of numbers") {
  check("mse, l1, huber",
        [](const T& x) {
          Cut cut(x);
          const T a = cut({2, 3}), b = cut({2, 3});
          return together({nn::mse(a, b), nn::l1(a, b), nn::huber(a, b, 0.3), nn::mse(a, b, in_sum),
                           nn::l1(a, b, in_sum), nn::huber(a, b, 1, in_sum)});
        },
        numbers(12, 10),
        {0.559538803079, 0.640630283564, 0.151632095313, 3.35723281847, 3.84378170138, 1.67499693581});
  check(
      "binary cross entropy",
      [](const T& x) {
        T y = zeros<double>({6});
        y = y.set(0, 1.0).set(2, 0.5).set(3, 1.0).set(4, 0.2);
        return together({nn::binary_cross_entropy(5.0 * x, y), nn::binary_cross_entropy(5.0 * x, y, in_sum)});
      },
      numbers(6, 10.5), {1.08975697201, 6.53854183205});
  check("kl_divergence",
        [](const T& x) {
          T p = zeros<double>({2, 3});
          p = p.set(0, 0, 0.2).set(0, 1, 0.5).set(0, 2, 0.3).set(1, 1, 0.9).set(1, 2, 0.1);
          const T q = log_softmax<1>(Cut(x)({2, 3}));
          return together({nn::kl_divergence(q, p), nn::kl_divergence(q, p, in_sum)});
        },
        numbers(6, 12), {0.443227143723, 0.886454287445});
  const auto far = [](T x) { return nn::binary_cross_entropy(x, T(zeros<double>({2}))); };
  const TensorValue<double> x(std::vector<double>{1000, -1000}, Shape{2});
  CHECK(eager(far)(x) == 500);
  CHECK(eager(grad(far))(x).data == std::vector<double>{0.5, 0});
}

TEST_CASE("losses of classes") {
  check("cross entropy",
        [](const T& x) {
          const T a = 3.0 * Cut(x)({4, 3});
          const I y = integers({2, 0, -100, 1}, {4});
          return together({nn::cross_entropy(a, y), nn::cross_entropy(a, y, {.label_smoothing = 0.1}),
                           nn::cross_entropy(a, y, {.reduction = in_sum, .label_smoothing = 0.2}),
                           nn::nll(a, y)});
        },
        numbers(12, 11), {1.35708259042, 1.39987416553, 4.32799722192, -0.284171436545});
  check("of sequences",
        [](const T& x) {
          return together({nn::cross_entropy(T(3.0 * Cut(x)({2, 2, 3})), integers({2, 0, 1, 1}, {2, 2}))});
        },
        numbers(12, 11.5), {2.33565067287});
}

TEST_CASE("what does not fit into a loss is refused, and nothing is repeated") {
  const auto refused = [](auto f, const TensorValue<double>& x, const TensorValue<double>& y, const char* text) {
    const std::string file = "nn_losses_test.cpp:";
    CHECK_THROWS_WITH(eager(f)(x, y), Catch::Contains(text) && Catch::Contains(file));
    CHECK_THROWS_WITH(compile(f, {.target = Target::c, .opt = 0})(x, y), Catch::Contains(text) && Catch::Contains(file));
  };
  const TensorValue<double> three({3}), column({3, 1}), matrix({3, 2});
  const auto mse = [](T x, T y) { return nn::mse(x, y); };
  refused(mse, three, column, "mse: expected a target of the prediction's shape f64[");
  refused(mse, matrix, three, "mse: expected a target of the prediction's shape f64[");
  refused(mse, matrix, TensorValue<double>({2, 3}), "nn_losses_test.cpp:");
  // A dimension that is known to be 1 would be repeated.
  refused([](Rep<Tensor<double, dyn, 1>> x, Rep<Tensor<double, dyn, dyn>> y) { return nn::l1(x, y); }, column, matrix,
          "l1: expected a target of the prediction's shape in dimension 1, got 1 and 2");
  refused([](Rep<Tensor<double, dyn, 1>> x, Rep<Tensor<double, dyn, dyn>> y) { return nn::huber(x, y); }, column, matrix,
          "huber: expected a target of the prediction's shape in dimension 1, got 1 and 2");
  refused([](T x, T y) { return nn::binary_cross_entropy(x, y); }, three, column, "binary_cross_entropy: expected");
  refused([](T x, T y) { return nn::kl_divergence(x, y); }, three, column, "kl_divergence: expected");
  refused([](T x, T y) { return nn::huber(x, y, 0); }, three, three, "huber: expected a delta above 0, got 0");
  const auto labels = [](const Shape& shape, double smoothing) {
    return [=](T x, T y) {
      std::int64_t n = 1;
      for (const std::int64_t d : shape) n *= d;
      return nn::cross_entropy(x, integers(std::vector<std::int64_t>(static_cast<std::size_t>(n), 1), shape),
                               {.label_smoothing = smoothing}) + sum(y);
    };
  };
  refused(labels({2}, 0), matrix, three, "expected a label for each row of [..., classes] in dimension 0, got 3 and 2");
  refused(labels({3, 2}, 0), matrix, three, "expected a label for each row of [..., classes], got i64[3,2] for f64[");
  refused(labels({3, 2}, 0), TensorValue<double>({2, 3, 4}), three, "in dimension 0, got 2 and 3");
  refused(labels({3}, 1.5), matrix, three, "expected a label_smoothing from 0 to 1, got 1.5");
  CHECK(eager(labels({1}, 0))(three, three) == Approx(std::log(3.0)));
  // A label beyond the classes is an index beyond a dimension.
  refused(labels({3}, 0), TensorValue<double>({3, 1}), three, "index 1 is outside 0..0");
}

TEST_CASE("ctc") {
  const Case c{5, 3, 3, {1, 2, 1, 1, 2, 0}, {5, 4, 3}, {2, 2, 1}};
  check("each", [c](const T& x) { return ctc_of(x, c, {}); }, numbers(45, 13),
        {2.0755822079, 2.30504958802, 1.88439228387});
  check("another blank, no labels",
        [](const T& x) { return ctc_of(x, {4, 2, 3, {1, 0, 0, 0}, {4, 2}, {2, 0}}, {.blank = 2}); },
        numbers(24, 13.5), {2.2288315934, 1.7734047864});
  const auto total = [c](T x) {
    return nn::ctc(log_softmax<2>(T(2.0 * Cut(x)({5, 3, 3}))), integers(c.labels, {3, 2}),
                   integers(c.steps, {3}), integers(c.counts, {3}), {.reduction = in_sum});
  };
  const std::vector<double> golden = {-0.182364909243,
                                      0.104590773359,
                                      0.0777741358847,
                                      0.0777942073248,
                                      -0.485010606038,
                                      0.407216398713,
                                      -0.155967459755,
                                      0.195387898573,
                                      -0.0394204388182,
                                      -0.199424574473,
                                      -0.272794307758,
                                      0.472218882231,
                                      -0.216345574894,
                                      0.123746399661,
                                      0.0925991752335,
                                      -0.126682378183,
                                      0.408812977334,
                                      -0.282130599152,
                                      -0.0457903918919,
                                      -0.0390200159376,
                                      0.0848104078295,
                                      -0.0410932116693,
                                      -0.640949338816,
                                      0.682042550485,
                                      -0.331031847259,
                                      0.118439168164,
                                      0.212592679096,
                                      0.0607612797865,
                                      0.0253936748349,
                                      -0.0861549546215,
                                      0.0226466890548,
                                      -0.101122761934,
                                      0.0784760728793,
                                      0,
                                      0,
                                      0,
                                      -0.0199795909026,
                                      0.35043666383,
                                      -0.330457072927,
                                      0,
                                      0,
                                      0,
                                      0,
                                      0,
                                      0};
  std::vector<double> by_scores = eager(grad(total))(numbers(45, 13)).data;
  for (double& g : by_scores) g /= 2;  // the golden ones are by what goes into log_softmax
  same(by_scores, golden, 1e-10);
  CHECK(eager(total)(numbers(45, 13)) == Approx(6.26502407979).epsilon(1e-10));
  const auto mean = [c](T x) {
    return nn::ctc(log_softmax<2>(T(2.0 * Cut(x)({5, 3, 3}))), integers(c.labels, {3, 2}),
                   integers(c.steps, {3}), integers(c.counts, {3}));
  };
  CHECK(eager(mean)(numbers(45, 13)) == Approx(1.35823606061).epsilon(1e-10));
}

TEST_CASE("labels that do not fit cost infinity, or nothing, and carry no derivative") {
  const Case c{2, 1, 3, {1, 1}, {2}, {2}};
  const TensorValue<double> x = numbers(6, 14);
  CHECK(std::isinf(eager([c](T t) { return sum(ctc_of(t, c, {})); })(x)));
  const auto zero = [c](T t) { return sum(ctc_of(t, c, {.zero_infinity = true})); };
  CHECK(eager(zero)(x) == 0);
  CHECK(eager(grad(zero))(x).data == std::vector<double>(6, 0));
  CHECK(compile(grad(zero), {.target = Target::c})(x).data == std::vector<double>(6, 0));
}
