// A TreeLSTM learns the sentiment of sentences (Lantern paper, section 5.1) or, without data, to compute.
//
//   sentiment_treelstm              the values of expressions like [MAX 1 [MIN 3 2]], made on the spot
//   sentiment_treelstm --data DIR   the Stanford Sentiment Treebank, in PTB form: DIR/sst/{train,dev}.txt
//
// The model is in treelstm_model.hpp. One compiled function, for trees of any shape, makes a step: the loss
// of a tree, its gradient and Adagrad (Duchi, Hazan and Singer 2011). Of the embedding it has the rows of the
// tree's words, and no others. With --batch 25 a step is of 25 trees, computed level by level (docs/trees.md). Either way the training loss of every epoch is printed, then how often the
// root of a held-out tree is right.
#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <numeric>

#include "device.hpp"
#include "lantern/runtime/progress.hpp"
#include "training.hpp"
#include "treelstm_data.hpp"
#include "treelstm_model.hpp"

// [functions]
LANTERN_FUNCTION(step_f32, treelstm::training_step<float>)
LANTERN_FUNCTION(scores_f32, treelstm::classify<float>)
LANTERN_FUNCTION(step_f64, treelstm::training_step<double>)
LANTERN_FUNCTION(scores_f64, treelstm::classify<double>)
LANTERN_FUNCTION(batch_step_f32, treelstm::batch_step<float>)
LANTERN_FUNCTION(batch_step_f64, treelstm::batch_step<double>)
// [/functions]

namespace {

using namespace lantern;
using namespace treelstm;

struct Options : Training {
  DeviceOptions device;
  std::size_t trees = 0, batch = 1;
  std::int64_t hidden = 50, embedding = 25;
  double rate = 0.05;
  bool in_double = false;
};

using Clock = std::chrono::steady_clock;
double seconds(Clock::duration d) { return std::chrono::duration<double>(d).count(); }

/// Steps of so many trees, in a new order every epoch; gives the losses of the epochs, per tree.
template <class E, class Step, class BatchStep>
std::vector<double> train(Model<E>& model, const Data& data, const Options& options, const Step& step_code,
                          const BatchStep& batch_step_code, nn::Generator& random) {
  auto step = nn::in_place(step_code);
  auto batch_step = nn::in_place(batch_step_code);
  TreeBatch<Node> batch;
  auto state = nn::adagrad_state(model);
  std::vector<std::size_t> order(data.train.size());
  std::iota(order.begin(), order.end(), 0);
  std::vector<double> losses;
  LossCurve curve;
  for (int epoch = 1; epoch <= options.epochs; ++epoch) {
    std::shuffle(order.begin(), order.end(), random);
    Progress progress(fmt::format("epoch {}", epoch), (order.size() + options.batch - 1) / options.batch);
    double sum = 0, done = 0;
    const auto start = Clock::now();
    // [train]
    for (std::size_t from = 0; from < order.size(); from += options.batch) {
      nn::UniqueRows words;  // of the trees of this step
      std::vector<LabelledTree> trees;
      for (std::size_t i = from; i < std::min(from + options.batch, order.size()); ++i)
        trees.push_back(words.renumber(data.train[order[i]].original));
      if (options.batch > 1) batch.assign(trees);
      sum += nn::with_rows("words.weight", words, std::tie(model, state), [&] {
        return options.batch > 1 ? batch_step(model, state, batch, options.rate)
                                 : step(model, state, trees[0], options.rate);
      });
      done += static_cast<double>(trees.size());
      progress.step(fmt::format("loss {:.3f}", sum / done));
    }
    // [/train]
    progress.clear();
    losses.push_back(sum / done);
    curve.add(epoch, losses.back());
    fmt::print("epoch {}: training loss {:.4f} per tree, {:.0f} trees per second\n", epoch, losses.back(),
               done / seconds(Clock::now() - start));
  }
  finish(options, model, curve, "training loss per tree");
  return losses;
}

/// How often the label of a node is right, of the held-out trees' roots and of all their nodes, each as the root of its
/// own tree; of sentiment also with two classes, without neutral. Gives what is right of the roots, in percent, and how
/// often the most frequent label would be.
template <class E, class Scores>
std::pair<double, double> report_accuracy(Model<E>& model, const Data& data, const Scores& scores) {
  std::size_t right = 0, polar = 0, right_polar = 0, nodes = 0, right_nodes = 0;
  std::array<std::size_t, 5> seen{};
  const auto best_of = [](const std::vector<E>& s) { return std::max_element(s.begin(), s.end()) - s.begin(); };
  for (const auto& [words, tree, original] : data.held_out) {
    std::vector<E> s;
    nn::with_rows("words.weight", words, std::tie(model), [&] {
      s = scores(nn::view(model), tree).data;
      std::vector<LabelledTree> open{tree};
      while (!open.empty()) {
        const LabelledTree node = open.back();
        open.pop_back();
        if (node.empty()) continue;
        ++nodes;
        right_nodes += best_of(scores(nn::view(model), node).data) == std::get<1>(node.value());
        open.push_back(node.left());
        open.push_back(node.right());
      }
      return 0;
    });
    const std::int64_t label = std::get<1>(tree.value());
    const std::int64_t best = best_of(s);
    ++seen[static_cast<std::size_t>(label)];
    right += best == label;
    if (label == 2) continue;
    ++polar;
    const E positive = std::exp(s[3]) + std::exp(s[4]), negative = std::exp(s[0]) + std::exp(s[1]);
    right_polar += (positive > negative) == (label > 2);
  }
  const auto percent = [](std::size_t part, std::size_t whole) {
    return 100.0 * double(part) / double(whole);
  };
  const std::size_t all = data.held_out.size();
  const double accuracy = percent(right, all),
               frequent = percent(*std::max_element(seen.begin(), seen.end()), all);
  fmt::print("held-out roots: {:.1f} % of {} right; the most frequent label alone gives {:.1f} %\n", accuracy,
             all, frequent);
  fmt::print("held-out nodes: {:.1f} % of {} right\n", percent(right_nodes, nodes), nodes);
  if (data.sentiment)
    fmt::print("positive or negative: {:.1f} % of {} right\n", percent(right_polar, polar), polar);
  return {accuracy, frequent};
}

/// 0 where the model has learnt.
template <class E, class Step, class BatchStep, class Scores>
int run(const Options& options, const Step& step, const BatchStep& batch_step, const Scores& scores) {
  nn::Generator random(options.seed);
  const bool nested = is_directory(options.data / "sst");
  const std::filesystem::path folder = nested ? options.data / "sst" : options.data;
  const Data data = options.data.empty() ? make_expressions(options.trees > 0 ? options.trees : 1000, random)
                                         : read_sentences(folder, options.trees);
  if (data.train.empty() || data.held_out.empty()) throw Error("there are no trees to learn from");
  std::int64_t nodes = 0;
  for (const Example& example : data.train) nodes += example.tree.size();
  fmt::print("{} trees, {} nodes, {} words; hidden {}, embedding {}\n", data.train.size(), nodes,
             data.words.size() - 1, options.hidden, options.embedding);

  Model<E> model = initial<E>({data.words.size(), options.embedding, options.hidden, 5}, random);
  const auto vectors = folder / "glove_twitter_25d_sst.txt";
  if (data.sentiment && options.embedding == 25 && exists(vectors))
    fmt::print("{} words start from GloVe vectors\n", load_vectors(vectors, data.words, model.words.weight));

  const std::vector<double> losses = train(model, data, options, step, batch_step, random);
  const auto [accuracy, frequent] = report_accuracy(model, data, scores);
  if (losses.size() > 1 && !(losses.back() < losses.front())) {
    fmt::print("expected the training loss to fall\n");
    return 1;
  }
  if (!data.sentiment && data.train.size() >= 1000 && losses.size() > 1 && !(accuracy > frequent + 30)) {
    fmt::print("expected more held-out roots to be right than the most frequent label gives, by 30 %\n");
    return 1;
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  options.epochs = 3;
  CLI::App app("Trains a TreeLSTM by gradients that Lantern derives and compiles.");
  app.option_defaults()->always_capture_default();
  add_options(app, options);
  add_device_option(app, options.device);
  const CLI::Range positive(1, 1'000'000);
  app.add_option("--trees", options.trees, "training trees; 0: all sentences, or 1000 expressions");
  app.add_option("--batch", options.batch, "trees of a step; more than 1 are computed level by level")
      ->check(positive);
  app.add_option("--hidden", options.hidden, "hidden size")->check(positive);
  app.add_option("--embedding", options.embedding, "embedding size; 25 can start from GloVe")
      ->check(positive);
  app.add_option("--rate", options.rate, "learning rate");
  app.add_flag("--double", options.in_double, "compute in double instead of float");
  CLI11_PARSE(app, argc, argv);
  try {
    if (options.threads > 1)
      throw Error("--threads: expected 1; lanternc --threads makes a program whose steps use more");
    if (options.device.on_gpu() && (options.in_double || options.batch == 1))
      throw Error("--device=cuda: expected --batch of more than 1, and no --double");
    if (options.device.on_gpu()) {
      const CompileOptions gpu{.target = Target::cuda};
      return run<float>(options, compile(training_step<float>, gpu), compile(batch_step<float>, gpu), scores_f32);
    }
    return options.in_double ? run<double>(options, step_f64, batch_step_f64, scores_f64)
                             : run<float>(options, step_f32, batch_step_f32, scores_f32);
  } catch (const lantern::Error& e) {
    fmt::print(stderr, "{}\n", e.what());
    return 1;
  }
}
