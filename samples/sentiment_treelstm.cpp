// A TreeLSTM learns the sentiment of sentences (Lantern paper, section 5.1) or, without data, to compute.
//
// The model is in treelstm_model.hpp; here it is differentiated, compiled and trained.
//
//   sentiment_treelstm              the values of expressions like [MAX 1 [MIN 3 2]], made on the spot
//   sentiment_treelstm --data DIR   the Stanford Sentiment Treebank, in PTB form: DIR/sst/{train,dev}.txt
//
// Either way it prints the training loss of every epoch, then how often the root of a held-out tree is right.
#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <sstream>

#include "lantern/runtime/progress.hpp"
#include "lantern/runtime/treebank.hpp"
#include "treelstm_model.hpp"

// One pass forward and one backward over a tree of any shape, staged once.
LANTERN_FUNCTION(loss_and_gradient, lantern::value_and_grad(treelstm::loss))
LANTERN_FUNCTION(root_scores, treelstm::classify)

namespace {

using namespace lantern;
using namespace treelstm;

struct Options {
  std::filesystem::path data;
  std::size_t epochs = 3, trees = 1000;
  std::int64_t hidden = 50, embedding = 25;
  double rate = 0.05;
  std::uint64_t seed = 1;
};

struct Data {
  Vocabulary words;
  std::vector<LabelledTree> train, held_out;
};

// ---- data

constexpr int deepest = 3;

/// Appends a nested list as in ListOps (Nangia and Bowman, 2018), in PTB form, and gives its value. The list
/// [MAX 1 4 2] is the tree (((MAX 1) 4) 2); every node is labelled with the value so far; SUM is modulo 5.
std::int64_t append_expression(std::string& text, int depth, std::mt19937_64& random) {
  const auto below = [&](std::uint64_t n) { return static_cast<std::int64_t>(random() % n); };
  if (depth == 0 || (depth < deepest && below(4) == 0)) {
    const std::int64_t digit = below(5);
    text += fmt::format("({} {})", digit, digit);
    return digit;
  }
  enum { max, min, sum };
  const auto operation = static_cast<std::size_t>(below(3));
  std::int64_t value = operation == min ? 4 : 0;
  std::string list = fmt::format("({} {})", value, std::array{"MAX", "MIN", "SUM"}[operation]);
  for (std::int64_t operands = 2 + below(2); operands > 0; --operands) {
    std::string operand;
    const std::int64_t x = append_expression(operand, depth - 1, random);
    value = operation == max ? std::max(value, x) : operation == min ? std::min(value, x) : (value + x) % 5;
    list = fmt::format("({} {} {})", value, list, operand);
  }
  text += list;
  return value;
}

Data make_expressions(const Options& options, std::mt19937_64& random) {
  const auto make = [&](std::size_t count) {
    std::string text;
    for (std::size_t i = 0; i < count; ++i) append_expression(text, deepest, random);
    return text;
  };
  Data data;
  std::istringstream train(make(options.trees)), held_out(make(500));
  data.train = read_treebank(train, "train", data.words);
  data.held_out = read_treebank(held_out, "held out", data.words, {.new_words = false});
  return data;
}

Data read_sentences(const std::filesystem::path& folder, const Options& options) {
  Data data;
  data.train = read_treebank(folder / "train.txt", data.words, {.limit = options.trees});
  data.held_out = read_treebank(folder / "dev.txt", data.words, {.new_words = false});
  return data;
}

/// Starts rows of the embedding from a file of lines "word x1 x2 ...", by the word in lower case; gives how
/// many.
std::size_t load_vectors(const std::filesystem::path& file, const Vocabulary& words,
                         TensorValue<double>& embedding) {
  std::unordered_map<std::string, std::vector<double>> vectors;
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);) {
    std::istringstream fields(line);
    std::string word;
    fields >> word;
    vectors[word] = {std::istream_iterator<double>(fields), {}};
  }
  const auto width = static_cast<std::size_t>(embedding.shape[1]);
  std::size_t found = 0;
  for (std::int64_t i = 1; i < words.size(); ++i) {
    std::string word = words.word(i);
    for (char& c : word) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    const auto at = vectors.find(word);
    if (at == vectors.end() || at->second.size() != width) continue;
    std::copy(at->second.begin(), at->second.end(), embedding.data.begin() + i * embedding.shape[1]);
    ++found;
  }
  return found;
}

// ---- training

/// Adagrad (Duchi, Hazan and Singer, 2011): each number's rate falls as the squares of its gradients add up.
class Adagrad {
 public:
  Adagrad(const Values& like, double rate) : sums_(like), rate_(rate) {
    for (TensorValue<double>* t : each(sums_)) std::fill(t->data.begin(), t->data.end(), 0.0);
  }
  void step(Values& values, Values& gradient) {
    for (std::size_t k = 0; k < each(values).size(); ++k) {
      std::vector<double>& x = each(values)[k]->data;
      std::vector<double>& sum = each(sums_)[k]->data;
      const std::vector<double>& g = each(gradient)[k]->data;
      for (std::size_t i = 0; i < x.size(); ++i) {
        sum[i] += g[i] * g[i];
        x[i] -= rate_ * g[i] / std::sqrt(sum[i] + 1e-8);
      }
    }
  }

 private:
  Values sums_;
  double rate_;
};

/// How often the root is right among held-out trees; for sentiment also with two classes, without neutral.
void report_accuracy(const Values& values, const Data& data, bool sentiment) {
  std::size_t right = 0, polar = 0, right_polar = 0;
  std::array<std::size_t, 5> seen{};
  for (const LabelledTree& tree : data.held_out) {
    const std::vector<double> s = root_scores(view(values), tree).data;
    const std::int64_t label = std::get<1>(tree.value());
    const std::int64_t best = std::max_element(s.begin(), s.end()) - s.begin();
    ++seen[static_cast<std::size_t>(label)];
    right += best == label;
    if (label == 2) continue;
    ++polar;
    const double positive = std::exp(s[3]) + std::exp(s[4]), negative = std::exp(s[0]) + std::exp(s[1]);
    right_polar += (positive > negative) == (label > 2);
  }
  const auto percent = [](std::size_t part, std::size_t whole) {
    return 100.0 * double(part) / double(whole);
  };
  const std::size_t all = data.held_out.size();
  fmt::print("held-out roots: {:.1f} % of {} right; the most frequent label alone gives {:.1f} %\n",
             percent(right, all), all, percent(*std::max_element(seen.begin(), seen.end()), all));
  if (sentiment)
    fmt::print("positive or negative: {:.1f} % of {} right\n", percent(right_polar, polar), polar);
}

using Clock = std::chrono::steady_clock;
double milliseconds(Clock::duration d) { return std::chrono::duration<double, std::milli>(d).count(); }

/// One step of Adagrad per tree, in a new order every epoch.
void train(Values& values, const Data& data, const Options& options, std::mt19937_64& random) {
  Adagrad adagrad(values, options.rate);
  std::vector<std::size_t> order(data.train.size());
  std::iota(order.begin(), order.end(), 0);
  Clock::duration differentiating{}, updating{};
  for (std::size_t epoch = 1; epoch <= options.epochs; ++epoch) {
    std::shuffle(order.begin(), order.end(), random);
    Progress progress(fmt::format("epoch {}", epoch), order.size());
    double sum = 0, done = 0;
    for (const std::size_t i : order) {
      const auto start = Clock::now();
      auto [loss, gradient] = loss_and_gradient(view(values), data.train[i]);
      const auto middle = Clock::now();
      adagrad.step(values, gradient);
      differentiating += middle - start;
      updating += Clock::now() - middle;
      sum += loss;
      progress.step(fmt::format("loss {:.3f}", sum / ++done));
    }
    progress.clear();
    fmt::print("epoch {}: training loss {:.4f} per tree\n", epoch, sum / done);
  }
  const double steps = static_cast<double>(options.epochs * order.size());
  fmt::print("{} steps: per tree {:.2f} ms forward and backward, {:.2f} ms Adagrad; workspace {:.1f} MB\n",
             steps, milliseconds(differentiating) / steps, milliseconds(updating) / steps,
             static_cast<double>(workspace_bytes()) / 1e6);
}

void run(const Options& options) {
  std::mt19937_64 random(options.seed);
  const bool sentiment = !options.data.empty();
  const bool nested = sentiment && is_directory(options.data / "sst");
  const std::filesystem::path folder = nested ? options.data / "sst" : options.data;
  const Data data = sentiment ? read_sentences(folder, options) : make_expressions(options, random);
  if (data.train.empty() || data.held_out.empty()) throw Error("there are no trees to learn from");
  std::int64_t nodes = 0;
  for (const LabelledTree& tree : data.train) nodes += tree.size();
  fmt::print("{} trees, {} nodes, {} words; hidden {}, embedding {}\n", data.train.size(), nodes,
             data.words.size() - 1, options.hidden, options.embedding);

  Values values = initial({data.words.size(), options.embedding, options.hidden, 5}, random);
  const auto vectors = folder / "glove_twitter_25d_sst.txt";
  if (sentiment && options.embedding == 25 && exists(vectors))
    fmt::print("{} words start from GloVe vectors\n", load_vectors(vectors, data.words, values.embedding));

  const auto start = Clock::now();
  loss_and_gradient(view(values), data.train[0]);
  fmt::print("the first gradient took {:.0f} ms\n", milliseconds(Clock::now() - start));
  train(values, data, options, random);
  report_accuracy(values, data, sentiment);
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app("Trains a TreeLSTM by gradients that Lantern derives and compiles.");
  app.option_defaults()->always_capture_default();
  app.add_option("--data", options.data,
                 "folder with train.txt and dev.txt, or with sst/ (else expressions are made)");
  const CLI::Range positive(1, 1'000'000);
  app.add_option("--epochs", options.epochs, "passes over the training trees")->check(positive);
  app.add_option("--trees", options.trees, "training trees")->check(positive);
  app.add_option("--hidden", options.hidden, "hidden size")->check(positive);
  app.add_option("--embedding", options.embedding, "embedding size; 25 can start from GloVe")
      ->check(positive);
  app.add_option("--rate", options.rate, "learning rate");
  app.add_option("--seed", options.seed, "of the initial weights, the order and the expressions");
  CLI11_PARSE(app, argc, argv);
  try {
    run(options);
  } catch (const lantern::Error& e) {
    fmt::print(stderr, "{}\n", e.what());
    return 1;
  }
}
