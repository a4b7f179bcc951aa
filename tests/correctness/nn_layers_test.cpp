// Layers: values against PyTorch 2.15 (torch.nn, in double), derivatives against each other and differences,
// eager against compiled; the names of parameters; models on the host and staged.
#include <lantern/random.hpp>

#include "nn_check.hpp"

using namespace nn_check;

namespace {

using D = Rep<double>;

/// A layer whose parameters are cut off in the order of its members.
template <class Layer>
Layer filled(Cut& cut, const std::vector<Shape>& shapes) {
  Layer layer;
  std::size_t i = 0;
  core::detail::for_each_rep(layer, [&]<class V>(Rep<V>& p) { p = Rep<V>(cut(shapes[i++])); });
  REQUIRE(i == shapes.size());
  return layer;
}
template <class S, nn::Gates gates, std::size_t layers, bool both_ways>
constexpr nn::Gates gates_of(const nn::Recurrent<S, gates, layers, both_ways>&) {
  return gates;
}
template <class Layer>
Layer recurrent(Cut& cut, std::int64_t in, std::int64_t hidden) {
  std::vector<Shape> shapes;
  const std::int64_t ways = Layer::directions;
  for (std::size_t k = 0; k < Layer{}.cells.size(); ++k) {
    const std::int64_t inputs = k < Layer::directions ? in : ways * hidden;
    std::int64_t rows = hidden;
    rows *= nn::detail::gate_count(gates_of(Layer()));
    shapes.insert(shapes.end(), {{rows, inputs}, {rows, hidden}, {rows}, {rows}});
  }
  return filled<Layer>(cut, shapes);
}

template <class S>
struct Block {
  nn::Linear<S> first;
  nn::Linear<S, false> second;
};
template <class S>
struct Network {
  nn::Embedding<S> words;
  std::array<Block<S>, 2> blocks;
  std::tuple<nn::Parameter<S, dyn>, nn::LayerNorm<S>> end;
};

}  // namespace

TEST_CASE("linear") {
  check("three dimensions",
        [](const T& x) {
          Cut cut(x);
          const auto layer = filled<nn::Linear<D>>(cut, {{3, 4}, {3}});
          return layer(cut({2, 2, 4}));
        },
        numbers(31, 1),
        {1.07632692554, 0.207280765092, 0.566841793484, 1.01286019137, 0.261904647731, 0.690760652158,
         0.432027273015, 0.0219280534372, 0.605955034319, 0.218079597818, -0.15050191004, 0.484023472965});
  const auto vector = [](T w, T x) { return nn::Linear<D, false>{w, {}}(x); };
  const TensorValue<double> w(std::vector<double>{1, 2, 3, 4, 5, 6}, Shape{2, 3}),
      v(std::vector<double>{1, 0, -1}, Shape{3});
  CHECK(eager(vector)(w, v).data == std::vector<double>{-2, -2});
  CHECK(compile(vector, {.target = Target::c})(w, v).data == std::vector<double>{-2, -2});
}

TEST_CASE("convolution") {
  check("1d, groups",
        [](const T& x) {
          Cut cut(x);
          const auto layer = filled<nn::Conv<D, 1>>(cut, {{4, 1, 3}, {4}});
          return layer(cut({1, 2, 6}), {.stride = 2, .padding = 1, .groups = 2});
        },
        numbers(28, 2),
        {0.160977662147, -0.675011766445, 0.144852760824, -0.402716419137, -0.496332559903, -0.468860353325,
         0.726584268213, 0.0932896595456, 0.714592528495, 0.229892039858, 0.737451939872, -0.126146983735});
  check("2d, dilation",
        [](const T& x) {
          Cut cut(x);
          const auto layer = filled<nn::Conv<D, 2, false>>(cut, {{2, 1, 2, 2}});
          return layer(cut({1, 1, 3, 3}), {.padding = 1, .dilation = 2});
        },
        numbers(17, 2.5),
        {-0.193691873464, -0.207357589863, 0.105501161332, 0.333230672777, -0.722068349516, -0.305023557333,
         0.18763856895, 0.284439578863, -0.184257222131, -0.265690985423, -0.066486040321, -0.069296171667,
         0.419936352118, -0.516050069448, 0.015524187143, 0.23270018348, 0.121824534815, -0.00175384197185});
}

TEST_CASE("transposed convolution") {
  check(
      "2d, groups",
      [](const T& x) {
        Cut cut(x);
        const auto layer = filled<nn::ConvTranspose<D>>(cut, {{2, 1, 2, 2}, {2}});
        return layer(cut({1, 2, 2, 2}), {.stride = 2, .padding = 1, .groups = 2, .output_padding = {1, 0}});
      },
      numbers(18, 2.7),
      {-0.15607725606, -0.382760180449, -0.0961636206832, -0.371012673186, -0.569026222048, -0.321451928434,
       -0.147899293576, -0.538146447366, -0.137873224101, -0.540949291167, -0.967496271382, -0.518165514982});
  nn::Generator rng(3);
  const auto layer = nn::ConvTranspose<double, 1>::init(4, 6, {3}, rng, 2);
  CHECK(layer.weight.shape == Shape{4, 3, 3});
  CHECK(layer.bias.shape == Shape{6});
  CHECK_THROWS_WITH((nn::ConvTranspose<double, 2>::init(4, 6, {3}, rng)),
                    Catch::Contains("a window of 2 sizes, got 1"));
}

TEST_CASE("normalisation") {
  // Running statistics carry no derivative: they are data here.
  check("batch, three dimensions",
        [](const T& x) {
          Cut cut(x);
          const auto layer = filled<nn::BatchNorm<D>>(cut, {{2}, {2}});
          const T mean = cut({2}), variance = abs(cut({2})) + 0.5, in = cut({3, 2, 2});
          const auto [y, after] = layer.train(in, {stop_gradient(mean), stop_gradient(variance)});
          return y;
        },
        numbers(20, 3),
        {-0.0691955346431, -0.0289879337116, 0.115296656164, 0.572354174967, -0.0987162791414, 0.240489917484,
         -0.153900502568, 1.09638526076, -0.179428855403, 0.324212908415, 0.00110634364007, 1.27139085991});
  check(
      "batch, afterwards",
      [](const T& x) {
        Cut cut(x);
        const auto layer = filled<nn::BatchNorm<D>>(cut, {{2}, {2}});
        const T mean = cut({2}), variance = abs(cut({2})) + 0.5, in = cut({3, 2, 2});
        const auto [y, after] = layer.train(in, {mean, variance});
        return all_of_them({after.mean, after.variance, layer(in, {mean, variance})});
      },
      numbers(20, 3),
      {-0.290245388482, -0.433277910697, 0.865892917035, 0.930179108679, -0.0023604637857, 0.0110905974609,
       -0.0352874033769, 0.127648683808, -0.0122363413087, 0.10124178771, -0.131253293709, 0.314460126942,
       -0.0392379475105, 0.129250498816, -0.0759950210216, 0.376847739853},
      false);
  check(
      "batch, two dimensions",
      [](const T& x) {
        Cut cut(x);
        const auto layer = filled<nn::BatchNorm<D>>(cut, {{2}, {2}});
        const auto [y, after] = layer.train(cut({4, 2}), {T(zeros<double>({2})), T(ones<double>({2}))},
                                            {.epsilon = 1e-3, .momentum = 0.3});
        return all_of_them({y, after.mean, after.variance});
      },
      numbers(12, 3.5),
      {0.412503895321, 0.858394291292, 0.186058320942, -0.420372998865, 0.424275220628, 0.43344456363,
       0.211282721332, 0.498440161399, 0.00150402015507, -0.0219909949175, 0.829291777926, 0.717265004216},
      false);
  check(
      "layer",
      [](const T& x) {
        Cut cut(x);
        const auto layer = filled<nn::LayerNorm<D>>(cut, {{3}, {3}});
        return layer(cut({2, 2, 3}));
      },
      numbers(18, 4),
      {-0.359917886393, -0.626080998693, -0.600756535461, -0.0276892436559, -0.938667202349, -0.700144731818,
       0.571292943495, -0.944787096891, 0.135706060434, 0.473286695711, -0.587092091345, 0.648434975556});
}

TEST_CASE("embedding and dropout") {
  check("embedding",
        [](const T& x) {
          Cut cut(x);
          return filled<nn::Embedding<D>>(cut, {{4, 3}})(integers({1, 3, 1, 0}, {2, 2}));
        },
        numbers(12, 5),
        {-0.473204143696, -0.486417946613, 0.50248416797, 0.511801041293, -0.0971390641955, -0.612246992336,
         -0.473204143696, -0.486417946613, 0.50248416797, -0.475354564798, 0.298347385988, 0.474225525776});
  const auto halves = [](T x, T u) { return nn::dropout(x, u, 0.6); };
  const TensorValue<double> x(std::vector<double>{1, 2, 3}, Shape{3}),
      u(std::vector<double>{0.7, 0.5, 0.6}, Shape{3});
  const std::vector<double> want = {2.5, 0, 7.5};
  same(eager(halves)(x, u).data, want, 1e-15);
  same(compile(halves, {.target = Target::c})(x, u).data, want, 1e-15);
  CHECK_THROWS_WITH(eager([](T a, T b) { return nn::dropout(a, b, 1); })(x, u),
                    Catch::Contains("expected a probability"));
}

TEST_CASE("recurrent layers") {
  check("RNN",
        [](const T& x) {
          Cut cut(x);
          const auto layer = recurrent<nn::RNN<D>>(cut, 2, 2);
          const auto [y, s] = layer(cut({3, 2, 2}));
          return all_of_them({y, s.hidden});
        },
        numbers(24, 6),
        {-0.103940997437, -0.125769457823, -0.156653458339, 0.0471437580838, -0.438190746625, 0.259442759743,
         0.141414357053, -0.247493802206, -0.392618886638, 0.315488643141, 5.30143522192e-05, -0.203144568518,
         -0.392618886638, 0.315488643141, 5.30143522192e-05, -0.203144568518});
  check("RNN of relu",
        [](const T& x) {
          Cut cut(x);
          const auto layer = recurrent<nn::ReluRNN<D>>(cut, 2, 2);
          const T in = cut({3, 1, 2});
          const auto [y, s] = layer(in, {cut({1, 1, 2})});
          return all_of_them({y, s.hidden});
        },
        numbers(20, 6.5), {0.131814462474, 0, 0, 0, 0, 0.23844701332, 0, 0.23844701332});
  check("LSTM",
        [](const T& x) {
          Cut cut(x);
          const auto layer = recurrent<nn::LSTM<D>>(cut, 2, 2);
          const T in = cut({3, 2, 2}), h = cut({1, 2, 2}), c = cut({1, 2, 2});
          const auto [y, s] = layer(in, {h, c});
          return all_of_them({y, s.hidden, s.cell});
        },
        numbers(68, 7),
        {0.0539510885305, 0.0980784039318,  -0.0998434269378,  0.161363530966,    0.012116277358,
         0.110096828971,  -0.116327589183,  0.21971289551,     -0.00774045850884, 0.105603972656,
         -0.145395451946, 0.237888976968,   -0.00774045850884, 0.105603972656,    -0.145395451946,
         0.237888976968,  -0.0120936051957, 0.502450416624,    -0.309362456532,   1.00525786591});
  check(
      "LSTM, two layers, both ways, lengths",
      [](const T& x) {
        Cut cut(x);
        const auto layer = recurrent<nn::LSTM<D, 2, true>>(cut, 2, 1);
        const T in = cut({3, 2, 2}), h = cut({4, 2, 1}), c = cut({4, 2, 1});
        const auto [y, s] = layer(in, {h, c}, integers({1, 3}, {2}));
        return all_of_them({y, s.hidden, s.cell});
      },
      numbers(108, 7.5),
      {-0.307132718088,
       -0.0274203339114,
       -0.415917252904,
       0.169174134505,
       0,
       0,
       -0.37507225518,
       0.175748536637,
       0,
       0,
       -0.375650264645,
       0.174416609329,
       0.0455342611543,
       0.117281687463,
       -0.0234500292642,
       0.134966755859,
       -0.307132718088,
       -0.375650264645,
       -0.0274203339114,
       0.169174134505,
       0.0540402945639,
       0.159595185272,
       -0.122682009046,
       0.485827934434,
       -0.48980694791,
       -0.667784908065,
       -0.0744973020102,
       0.375634679596},
      true, false);
  check("GRU",
        [](const T& x) {
          Cut cut(x);
          const auto layer = recurrent<nn::GRU<D>>(cut, 2, 2);
          const auto [y, s] = layer(cut({3, 2, 2}));
          return all_of_them({y, s.hidden});
        },
        numbers(48, 8),
        {-0.323644826491, 0.10569743116, -0.0869995323095, -0.110564338477, -0.407706103229, 0.108620260676,
         -0.200402020976, -0.128768495655, -0.421847537104, 0.0815685640252, -0.317317567021,
         -0.0906254158361, -0.421847537104, 0.0815685640252, -0.317317567021, -0.0906254158361});
  check(
      "GRU, both ways, lengths",
      [](const T& x) {
        Cut cut(x);
        const auto layer = recurrent<nn::GRU<D, 1, true>>(cut, 1, 2);
        const T in = cut({3, 2, 1});
        const auto [y, s] = layer(in, {cut({2, 2, 2})}, integers({2, 3}, {2}));
        return all_of_them({y, s.hidden});
      },
      numbers(74, 8.5),
      {0.451839089361,
       -0.0424048806157,
       0.647813365271,
       -0.315399166474,
       -0.323175973389,
       0.354797968816,
       0.45033033278,
       -0.0409721611267,
       0.443765551019,
       -0.268783939251,
       0.628857573922,
       -0.415030186938,
       -0.0139911811993,
       0.0175447274831,
       0.231898152719,
       -0.122529781632,
       0,
       0,
       0,
       0,
       0.122138545225,
       0.041301243945,
       0.0288751190822,
       0.175915659938,
       0.443765551019,
       -0.268783939251,
       0.122138545225,
       0.041301243945,
       0.647813365271,
       -0.315399166474,
       0.45033033278,
       -0.0409721611267},
      true, false);
}

TEST_CASE("dropout between recurrent layers, while training") {
  constexpr std::int64_t key = 41;
  const auto layer_of = [](Cut& cut) { return recurrent<nn::GRU<D, 3, true>>(cut, 1, 2); };
  constexpr std::int64_t numbers_of_layer = 2 * (6 + 12 + 12) + 2 * 2 * (24 + 12 + 12);
  // The same of layers that stand alone, with the numbers in between dropped by hand.
  const auto by_hand = [&](const T& v) {
    Cut cut(v);
    const auto all = layer_of(cut);
    T x = cut({3, 2, 1});
    for (std::size_t i = 0; i < 3; ++i) {
      nn::GRU<D, 1, true> one;
      one.cells = {all.cells[2 * i], all.cells[2 * i + 1]};
      x = one(x, integers({2, 3}, {2})).first;
      if (i == 2) break;
      const auto u = random::uniform<double>(
          random::fold_in(Rep<std::int64_t>(key), static_cast<std::int64_t>(i)), 3, 2, 4);
      x = nn::dropout(x, u, 0.4);
    }
    return x;
  };
  const Function trained = [&](const T& v) {
    Cut cut(v);
    const auto layer = layer_of(cut);
    return layer.train(cut({3, 2, 1}), integers({2, 3}, {2}), {key, 0.4}).first;
  };
  const TensorValue<double> x = numbers(numbers_of_layer + 6, 8.7);
  check("GRU, three layers, both ways, lengths", trained, x, eager([&](T v) { return by_hand(v); })(x).data,
        true, false);
  const auto run = [](bool training, double rate) {
    return [=](T v, Rep<std::int64_t> k) {
      Cut cut(v);
      const auto layer = recurrent<nn::LSTM<D, 2>>(cut, 2, 8);
      const T in = cut({3, 2, 2});
      return training ? layer.train(in, nn::LayerDropout{k, rate}).first : layer(in).first;
    };
  };
  const TensorValue<double> lstm = numbers(32 * (2 + 8 + 2) + 32 * (8 + 8 + 2) + 12, 7.9);
  const auto plain = eager(run(false, 0))(lstm, std::int64_t{1}).data;
  CHECK(eager(run(true, 0))(lstm, std::int64_t{1}).data == plain);
  const auto half = compile(run(true, 0.5), {.target = Target::c});
  CHECK(half(lstm, std::int64_t{1}).data == half(lstm, std::int64_t{1}).data);
  CHECK(half(lstm, std::int64_t{1}).data != half(lstm, std::int64_t{2}).data);
  CHECK(half(lstm, std::int64_t{1}).data != plain);
  same(half(lstm, std::int64_t{1}).data, eager(run(true, 0.5))(lstm, std::int64_t{1}).data, 1e-11);
  // Nothing stands between a layer and what reads the whole: one layer has no dropout.
  const auto alone = [](T v) {
    Cut cut(v);
    const auto layer = recurrent<nn::RNN<D>>(cut, 2, 2);
    const T in = cut({3, 2, 2});
    return sum(abs(layer.train(in, {key, 0.9}).first - layer(in).first));
  };
  CHECK(eager(alone)(numbers(24, 6)) == 0);
  CHECK_THROWS_WITH(eager(run(true, 1))(lstm, std::int64_t{1}),
                    Catch::Contains("dropout: expected a probability"));
}

TEST_CASE("attention") {
  check("causal",
        [](const T& x) {
          Cut cut(x);
          const auto layer = filled<nn::MultiheadAttention<D, 2>>(cut, {{12, 4}, {12}, {4, 4}, {4}});
          return layer(cut({1, 3, 4}), true);
        },
        numbers(92, 9),
        {0.331106725902, 0.793809430425, -0.072780798329, -0.907747340345, 0.414551370329, 0.83641749133,
         -0.0150209829966, -0.989150388817, 0.542182757695, 0.891828827597, 0.0396021663808, -1.02899679048});
  check("to other keys, masked",
        [](const T& x) {
          Cut cut(x);
          const auto layer = filled<nn::MultiheadAttention<D, 1>>(cut, {{6, 2}, {6}, {2, 2}, {2}});
          const T q = cut({1, 2, 2}), k = cut({1, 3, 2}), v = cut({1, 3, 2});
          const Rep<Tensor<bool>> seen(integers({1, 0, 1, 1, 1, 0}, {2, 3}) == 1);
          return layer(q, k, v, seen);
        },
        numbers(40, 9.5), {-0.133886370395, -0.574386099552, -0.314492963257, -0.406750970783});
}

TEST_CASE("a query that sees nothing takes the mean of the values, and no NaN") {
  const auto f = [](T x) {
    const Rep<Tensor<bool>> seen(integers({0, 0, 1, 0}, {2, 2}) == 1);
    return nn::attention(x, x, x, seen);
  };
  const TensorValue<double> x(std::vector<double>{1, 3}, Shape{1, 2, 1, 1});
  CHECK(eager(f)(x).data == std::vector<double>{2, 1});
}

TEST_CASE("what does not fit into a layer is an error at the line that calls it") {
  const auto zero = [](const Shape& shape) { return T(zeros<double>(shape)); };
  const TensorValue<double> x({2, 5});
  const auto fails = [&](std::uint_least32_t line, auto f, const TensorValue<double>& in) {
    INFO("line " << line);
    const auto place = Catch::Contains("nn_layers_test.cpp:" + std::to_string(line));
    const auto told = [&](auto run) {
      try {
        run(f)(in);
        return std::string("no error");
      } catch (const Error& e) {
        return std::string(e.what());
      }
    };
    CHECK_THAT(told([](auto g) { return eager(g); }), place);
    CHECK_THAT(told([](auto g) { return compile(g, {.target = Target::c, .opt = 0}); }), place);
  };
#define FAILS_HERE(in, ...) fails(__LINE__, __VA_ARGS__, in)
  FAILS_HERE(x, [&](T t) { return nn::Linear<D>{zero({3, 4}), zero({3})}(t); });
  FAILS_HERE(x, [&](T t) { return nn::Linear<D, false>{zero({3, 4}), {}}(t); });
  FAILS_HERE(x, [&](T t) { return nn::LayerNorm<D>{zero({4}), zero({4})}(t); });
  FAILS_HERE(x, [&](T t) { return nn::BatchNorm<D>{zero({4}), zero({4})}(t, {zero({4}), zero({4})}); });
  FAILS_HERE(x, [&](T t) { return nn::BatchNorm<D>{zero({4}), zero({4})}.train(t, {zero({4}), zero({4})}).first; });
  FAILS_HERE(x, [&](T t) { return nn::BatchNorm<D>{zero({4}), zero({4})}(t.row(0), {zero({4}), zero({4})}); });
  FAILS_HERE(x, [&](T t) { return nn::Conv<D, 1>{zero({1, 3, 2}), zero({1})}(unsqueeze<0>(t)); });
  FAILS_HERE(x, [&](T t) { return nn::ConvTranspose<D, 1>{zero({3, 1, 2}), zero({1})}(unsqueeze<0>(t)); });
  FAILS_HERE(x, [&](T t) { return nn::Embedding<D>{t}(integers({1, 2}, {2})); });
  FAILS_HERE(x, [&](T t) { return nn::dropout(t, zero({2, 4}), 0.5); });
  FAILS_HERE(x, [&](T t) { return nn::attention(unsqueeze<0>(unsqueeze<0>(t)), zero({1, 1, 2, 4}), zero({1, 1, 2, 4})); });
  FAILS_HERE(x, [&](T t) {
    return nn::MultiheadAttention<D, 2>{zero({12, 4}), zero({12}), {zero({4, 4}), zero({4})}}(unsqueeze<0>(t));
  });
  FAILS_HERE(x, [&](T t) {
    const nn::RecurrentCell<D, nn::Gates::lstm> cell{zero({8, 3}), zero({8, 2}), zero({8}), zero({8})};
    return nn::LSTM<D>{{cell}}(unsqueeze<0>(t)).first;
  });
  FAILS_HERE(x, [&](T t) { return nn::attention(t, t, t); });
  FAILS_HERE(x, [&](T t) { return nn::mse(t, zero({2, 4})); });
  FAILS_HERE(x, [&](T t) { return nn::huber(t, zero({2, 4})); });
  FAILS_HERE(x, [&](T t) { return nn::cross_entropy(t, integers({1, 2, 3}, {3})); });
  FAILS_HERE(x, [&](T t) { return nn::kl_divergence(t, zero({2, 4})); });
#undef FAILS_HERE
  CHECK_THROWS_WITH(eager([](T t) { return nn::attention(t, t, t); })(x),
                    Catch::Contains("attention: expected a tensor [batch, positions, heads, features], got f64[2,5]"));
  const auto flat = [&](T t) {
    return nn::MultiheadAttention<D, 1>{zero({15, 5}), zero({15}), {zero({5, 5}), zero({5})}}(t);
  };
  CHECK_THROWS_WITH(eager(flat)(x), Catch::Contains("MultiheadAttention: expected a tensor [batch, positions, features], got"));
  const auto no_batch = [&](T t) {
    const nn::RecurrentCell<D, nn::Gates::tanh> cell{zero({2, 5}), zero({2, 2}), zero({2}), zero({2})};
    return nn::RNN<D>{{cell}}(t).first;
  };
  CHECK_THROWS_WITH(eager(no_batch)(x), Catch::Contains("recurrent layer: expected a tensor [time, batch, features], got"));
  const auto alone = [&](T t) { return nn::BatchNorm<D>{zero({5}), zero({5})}.train(t(range(0, 1), all), {zero({5}), zero({5})}).first; };
  const char* const one = "BatchNorm: expected more than one number in each channel while training, got 1";
  CHECK_THROWS_WITH(eager(alone)(x), Catch::Contains(one));
  CHECK_THROWS_WITH(compile(alone)(x), Catch::Contains(one));
  // A model's layers are called from its own lines, and what is behind a layer is at its own again.
  const auto after = [&](T t) {
    const T y = nn::Linear<D>{zero({3, 5}), zero({3})}(t);
    return y + zero({4});
  };
  CHECK_THROWS_WITH(compile(after)(x), Catch::Contains("nn_layers_test.cpp:" + std::to_string(__LINE__ - 2)));
}

TEST_CASE("a model is a plain struct: names, counts, host and staged") {
  static_assert(std::same_as<core::detail::host_out<Network<Rep<float>>>, Network<float>>);
  static_assert(
      std::same_as<core::detail::host_out<nn::AdamState<Network<D>>>, nn::AdamState<Network<double>>>);
  nn::Generator rng(1);
  const auto block = [&] {
    return Block<double>{nn::Linear<double>::init(2, 3, rng), nn::Linear<double, false>::init(3, 2, rng)};
  };
  Network<double> m{nn::Embedding<double>::init(5, 2, rng),
                    {block(), block()},
                    {nn::Parameter<double, dyn>({4}), nn::LayerNorm<double>::init(2)}};
  CHECK(nn::parameter_names(m) ==
        std::vector<std::string>{"words.weight", "blocks.0.first.weight", "blocks.0.first.bias",
                                 "blocks.0.second.weight", "blocks.1.first.weight", "blocks.1.first.bias",
                                 "blocks.1.second.weight", "end.0", "end.1.weight", "end.1.bias"});
  CHECK(nn::parameter_count(m) == 10 + 2 * (6 + 3 + 6) + 4 + 4);
  const auto f = [](Network<D> w) {
    T x = w.words(integers({4, 0}, {2}));
    for (const Block<D>& b : w.blocks) x = b.second(tanh(b.first(x)));
    return weighed(std::get<1>(w.end)(x)) + sum(std::get<0>(w.end));
  };
  const Network<double> eagerly = eager(grad(f))(nn::view(m));
  const Network<double> compiled = compile(grad(f), {.target = Target::c, .opt = 0})(nn::view(m));
  std::vector<double> a, b;
  nn::for_each_parameter(
      eagerly, [&](const std::string&, const auto& p) { a.insert(a.end(), p.data.begin(), p.data.end()); });
  nn::for_each_parameter(
      compiled, [&](const std::string&, const auto& p) { b.insert(b.end(), p.data.begin(), p.data.end()); });
  same(b, a, 1e-10);
  CHECK(std::get<0>(eagerly.end).data == std::vector<double>(4, 1));
  CHECK(std::inner_product(a.begin(), a.end(), a.begin(), 0.0) > 4.1);
  CHECK(eagerly.words.weight.shape == Shape{5, 2});
}

TEST_CASE("initialisers") {
  nn::Generator rng(7);
  const auto moments = [](const TensorValue<double>& t) {
    double mean = 0, square = 0, most = 0;
    for (const double x : t.data) {
      mean += x / static_cast<double>(t.data.size());
      square += x * x / static_cast<double>(t.data.size());
      most = std::max(most, std::abs(x));
    }
    return std::array{mean, square, most};
  };
  const auto check_moments = [&](const TensorValue<double>& t, double variance, double most) {
    const auto [mean, square, largest] = moments(t);
    CHECK(std::abs(mean) < 0.05 * std::sqrt(variance));
    CHECK(square == Approx(variance).epsilon(0.04));
    if (most > 0)
      CHECK((largest <= most && largest > 0.99 * most));
    else
      CHECK(largest > 3 * std::sqrt(variance));
  };
  TensorValue<double> t({40, 30, 5});  // fan_in 150, fan_out 200
  nn::xavier_uniform(t, rng);
  check_moments(t, 2.0 / 350, std::sqrt(6.0 / 350));
  nn::xavier_normal(t, rng, 2);
  check_moments(t, 8.0 / 350, 0);
  nn::kaiming_uniform(t, rng);
  check_moments(t, 2.0 / 150, std::sqrt(6.0 / 150));
  nn::kaiming_normal(t, rng);
  check_moments(t, 2.0 / 150, 0);
  nn::uniform(t, rng, -2, 2);
  check_moments(t, 16.0 / 12, 2);
  nn::constant(t, 1.5);
  CHECK(t.data == std::vector<double>(40 * 30 * 5, 1.5));
  nn::normal(t, rng, 3, 0.01);
  CHECK(moments(t)[0] == Approx(3).margin(0.001));
  TensorValue<double> q({3, 5}), r({5, 3});
  nn::orthogonal(q, rng);
  nn::orthogonal(r, rng, 2);
  for (std::size_t i = 0; i < 3; ++i)
    for (std::size_t j = 0; j < 3; ++j) {
      double rows = 0, columns = 0;
      for (std::size_t k = 0; k < 5; ++k) {
        rows += q.data[i * 5 + k] * q.data[j * 5 + k];
        columns += r.data[k * 3 + i] * r.data[k * 3 + j];
      }
      CHECK(rows == Approx(i == j).margin(1e-12));
      CHECK(columns == Approx(4.0 * (i == j)).margin(1e-12));
    }
  nn::Generator again(3), same_seed(3);
  CHECK(nn::Linear<float>::init(3, 2, again).weight.data ==
        nn::Linear<float>::init(3, 2, same_seed).weight.data);
  TensorValue<double> vector({3});
  CHECK_THROWS_WITH(nn::xavier_uniform(vector, rng), Catch::Contains("at least two dimensions"));
}
