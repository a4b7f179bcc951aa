// Training of the TreeLSTM of samples/, node by node and level by level: sentences a second, memory, loss. With --python the
// same trees and weights in PyTorch, JAX and DyNet (peers/treelstm_*.py).
#include <fmt/format.h>

#include <cmath>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <limits>
#include <map>
#include <random>

#include "../../samples/treelstm_data.hpp"
#include "../../samples/treelstm_model.hpp"
#include "bench.hpp"
#include "child.hpp"
#include "lantern/codegen/toolchain/process.hpp"
#include "lantern/lantern.hpp"
#include "options.hpp"
#include "report.hpp"

namespace lantern::bench {
namespace {

using namespace treelstm;
using Labelled = LabelledTree;

constexpr double learning_rate = 0.05;

struct Setting {
  std::vector<Labelled> trees;
  std::int64_t words = 0, embedding = 300, hidden = 150;
  int epochs = 3;
};

/// Sentences of the treebank where there is one, in DIR/sst, else expressions.
Setting read(bool quick) {
  const char* const named = std::getenv("LANTERN_DATA");
  const std::filesystem::path folder = named ? named : LANTERN_SOURCE_DIR "/../shared/data";
  Setting s;
  Vocabulary words;
  TreebankOptions reading;
  reading.limit = quick ? 100 : 500;
  if (exists(folder / "sst" / "train.txt")) {
    s.trees = read_treebank(folder / "sst" / "train.txt", words, reading);
  } else {
    nn::Generator random(1);
    std::string text;
    for (std::size_t i = 0; i < reading.limit; ++i) append_expression(text, deepest, random);
    std::istringstream in(text);
    s.trees = read_treebank(in, "expressions", words);
  }
  s.words = words.size();
  if (quick) {
    s.embedding = 30;
    s.hidden = 20;
    s.epochs = 2;
  }
  return s;
}

/// What a form did: the losses of its epochs, a sentence, and of the first two steps; seconds of the fastest
/// epoch, and of those the ones that making the batches took.
struct Training {
  std::vector<double> losses, first;
  double seconds = std::numeric_limits<double>::infinity(), schedule = 0;
};

/// Seconds of the processor: the work is of one thread.
double now() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

Model<float> initial_model(const Setting& s) {
  nn::Generator random(1);
  return initial<float>({s.words, s.embedding, s.hidden, 5}, random);
}

/// Writes what peers read: sizes and trees, children before their parents, and the initial weights one after the other.
void write_problem(const Setting& s, double rate, const std::filesystem::path& folder) {
  std::string trees;
  for (const Labelled& tree : s.trees) {
    const auto& columns = *tree.columns();
    std::string nodes;
    for (std::size_t i = 0; i < columns.left.size(); ++i) {
      const auto number = [&](std::size_t column) {
        return reinterpret_cast<const std::int64_t*>(columns.values[column].data())[i];
      };
      nodes += fmt::format("{}[{},{},{},{}]", i == 0 ? "" : ",", number(1), number(0), columns.left[i], columns.right[i]);
    }
    trees += fmt::format("{}[{}]", trees.empty() ? "" : ",", nodes);
  }
  write_file((folder / "problem.json").string(),
             fmt::format("{{\"words\":{},\"embedding\":{},\"hidden\":{},\"epochs\":{},\"rate\":{},\"trees\":[{}]}}", s.words,
                         s.embedding, s.hidden, s.epochs, rate, trees));
  const Model<float> m = initial_model(s);
  std::string weights;
  const auto append = [&](const auto& tensor) {
    weights.append(reinterpret_cast<const char*>(tensor.data.data()), tensor.data.size() * sizeof(float));
  };
  append(m.words.weight);
  append(m.leaf.weight);
  append(m.leaf.bias);
  append(m.inner.weight);
  append(m.inner.bias);
  append(m.scores.weight);
  append(m.scores.bias);
  write_file((folder / "weights.f32").string(), weights);
}

/// Steps over all trees, `size` at a time; make(trees) is what the step takes.
template <class Step, class Make>
Training train(const Setting& setting, std::size_t size, const Step& step_code, const Make& make) {
  Model<float> model = initial_model(setting);
  auto state = nn::adagrad_state(model);
  auto step = nn::in_place(step_code);
  Training t;
  for (int epoch = 0; epoch < setting.epochs; ++epoch) {
    const auto start = now();
    double sum = 0, schedule = 0;
    for (std::size_t from = 0; from < setting.trees.size(); from += size) {
      const auto before = now();
      nn::UniqueRows words;
      std::vector<Labelled> trees;
      for (std::size_t i = from; i < std::min(from + size, setting.trees.size()); ++i)
        trees.push_back(words.renumber(setting.trees[i]));
      const auto& given = make(trees);
      schedule += now() - before;
      const double loss = nn::with_rows("words.weight", words, std::tie(model, state),
                                        [&] { return step(model, state, given, learning_rate); });
      if (t.first.size() < 2) t.first.push_back(loss);
      sum += loss;
    }
    const double seconds = now() - start;
    if (seconds < t.seconds) {
      t.seconds = seconds;
      t.schedule = schedule;
    }
    t.losses.push_back(sum / static_cast<double>(setting.trees.size()));
  }
  return t;
}

/// The matrix products of an epoch by themselves: of a layer for all rows of a level, one for its values, one for the adjoints
/// of its inputs and one for those of its weights.
struct Products {
  double seconds = std::numeric_limits<double>::infinity(), operations = 0;
};
Products products_alone(const Setting& setting, std::size_t size) {
  using Matrix = Rep<Tensor<float, dyn, dyn>>;
  const CompileOptions options{.target = Target::cpp, .opt = 3};
  const auto values = compile(sig<Matrix(Matrix, Matrix)>([](Matrix x, Matrix w) { return matmul(x, transpose(w)); }), options);
  const auto inputs = compile(sig<Matrix(Matrix, Matrix)>([](Matrix d, Matrix w) { return matmul(d, w); }), options);
  const auto weights = compile(sig<Matrix(Matrix, Matrix)>([](Matrix d, Matrix x) { return matmul(transpose(d), x); }), options);
  nn::Generator random(2);
  const auto matrix = [&](std::int64_t rows, std::int64_t columns) {
    TensorValue<float> m({rows, columns});
    nn::uniform(m, random, -1, 1);
    return m;
  };
  struct Layer {
    TensorValue<float> weight;
    std::map<std::int64_t, std::pair<TensorValue<float>, TensorValue<float>>> rows;  ///< inputs and adjoints, by their number
    std::vector<std::int64_t> levels;
  };
  const std::int64_t n = setting.hidden;
  std::vector<Layer> layers(3);
  layers[0].weight = matrix(3 * n, setting.embedding);
  layers[1].weight = matrix(5 * n, 2 * n);
  layers[2].weight = matrix(5, n);
  for (std::size_t from = 0; from < setting.trees.size(); from += size) {
    nn::UniqueRows words;
    std::vector<Labelled> trees;
    for (std::size_t i = from; i < std::min(from + size, setting.trees.size()); ++i)
      trees.push_back(words.renumber(setting.trees[i]));
    const TreeBatch<Node> batch(trees);
    const auto starts = batch.view().levels;
    layers[0].levels.push_back(static_cast<std::int64_t>(words.rows().size()));
    for (std::size_t l = 0; l + 1 < starts.size(); ++l) {
      if (l > 0) layers[1].levels.push_back(starts[l + 1] - starts[l]);
      layers[2].levels.push_back(starts[l + 1] - starts[l]);
    }
  }
  Products all;
  for (Layer& layer : layers)
    for (const std::int64_t rows : layer.levels) {
      layer.rows.try_emplace(rows, matrix(rows, layer.weight.shape[1]), matrix(rows, layer.weight.shape[0]));
      all.operations += 6.0 * static_cast<double>(rows * layer.weight.shape[0] * layer.weight.shape[1]);
    }
  for (int epoch = 0; epoch < setting.epochs; ++epoch) {
    const auto start = now();
    for (const Layer& layer : layers)
      for (const std::int64_t rows : layer.levels) {
        const auto& [x, d] = layer.rows.at(rows);
        values(x, layer.weight), inputs(d, layer.weight), weights(d, x);
      }
    all.seconds = std::min(all.seconds, now() - start);
  }
  return all;
}

struct Form {
  const char* name;
  std::size_t size;
  std::function<Training(const Setting&, std::size_t)> run;
};

std::vector<Form> forms() {
  const CompileOptions options{.target = Target::cpp, .opt = 3};
  const auto one = [options](const Setting& s, std::size_t size) {
    return train(s, size, compile(training_step<float>, options),
                 [](const std::vector<Labelled>& trees) -> const Labelled& { return trees[0]; });
  };
  const auto many = [options](auto step) {
    return [options, step](const Setting& s, std::size_t size) {
      TreeBatch<Node> batch;
      return train(s, size, compile(step, options),
                   [&](const std::vector<Labelled>& trees) -> const TreeBatch<Node>& {
                     batch.assign(trees);
                     return batch;
                   });
    };
  };
  return {{"node by node, a tree", 1, one},
          {"level by level", 1, many(batch_step<float, true>)},
          {"node by node", 25, many(batch_step<float, false>)},
          {"level by level", 25, many(batch_step<float, true>)}};
}

/// A peer: what it runs, for trees of so many a step.
struct Peer {
  const char* name;
  std::size_t size;
  const char* package;
  std::vector<std::string> command;
};
const std::vector<Peer> peers{{"DyNet", 1, "dynet", {"treelstm_dynet.py"}},
                              {"PyTorch, node by node", 1, "torch", {"treelstm_torch.py"}},
                              {"DyNet", 25, "dynet", {"treelstm_dynet.py"}},
                              {"DyNet, autobatch", 25, "dynet", {"treelstm_dynet.py", "--autobatch"}},
                              {"PyTorch, node by node", 25, "torch", {"treelstm_torch.py"}},
                              {"PyTorch, level by level", 25, "torch", {"treelstm_torch.py", "--levels"}},
                              {"JAX, padded levels", 25, "jax", {"treelstm_jax.py"}}};

/// What a form did: seconds of its fastest epoch, the part of them that schedules take, memory, losses of the first two
/// steps and of the epochs.
struct Result {
  std::vector<double> values;
  std::string failure;
};

Result run_peer(const Peer& peer, const std::string& python, const std::filesystem::path& folder) {
  std::vector<std::string> command{python, LANTERN_SOURCE_DIR "/tools/bench/peers/" + peer.command[0], folder.string(),
                                   "--batch", std::to_string(peer.size)};
  command.insert(command.end(), peer.command.begin() + 1, peer.command.end());
  const codegen::ProcessResult run = codegen::run_process(command);
  if (run.status != 0) return {{}, run.err};
  std::istringstream words(run.out);
  Result result;
  for (double x; words >> x;) result.values.push_back(x);
  if (result.values.size() < 5) return {{}, "expected seconds, bytes and losses, got " + run.out};
  result.values.insert(result.values.begin() + 1, 0);  // schedules are not counted
  return result;
}

}  // namespace

int bench_trees(int argc, char** argv) {
  constexpr std::int64_t most_bytes = 16'000'000'000;
  constexpr double most_seconds = 900;
  int status = 0;
  const auto options = parse_options(argc, argv, "training of a TreeLSTM, node by node and level by level", "", status,
                                     false, false, true);
  if (!options) return status;

  const Setting setting = read(options->quick);
  const auto count = static_cast<double>(setting.trees.size());
  fmt::print("{} trees, hidden {}, embedding {}, Adagrad, float, one thread; ms for a sentence\n",
             setting.trees.size(), setting.hidden, setting.embedding);
  std::vector<Row> rows;
  int wrong = 0;
  std::map<std::size_t, std::pair<double, std::vector<double>>> references;  // by trees of a step: ms, losses of two steps
  const auto note = [&](const std::string& name, std::size_t size, const Result& r) {
    if (!r.failure.empty()) {
      fmt::print(stderr, "bench: {}, batch {}: {}\n", name, size, r.failure);
      ++wrong;
      return;
    }
    const double ms = 1000 * r.values[0] / count;
    const std::vector<double> steps(r.values.begin() + 3, r.values.begin() + 5);
    const auto& [reference, first] = references.try_emplace(size, ms, steps).first->second;
    for (std::size_t i = 0; i < steps.size(); ++i)
      if (!(std::abs(steps[i] - first[i]) <= 1e-4 * std::abs(first[i]))) {
        fmt::print(stderr, "bench: {}, batch {}: loss {:.8g} after {} steps, expected {:.8g}\n", name, size, steps[i], i,
                   first[i]);
        ++wrong;
      }
    Extras extra{{"sentences_per_second", 1000 / ms},
                 {"schedule_percent", 100 * r.values[1] / r.values[0]},
                 {"peak_bytes", r.values[2]}};
    if (size > 1 && name == "level by level") {
      const Products alone = products_alone(setting, size);
      extra.emplace_back("products_percent", 100 * alone.seconds / r.values[0]);
      extra.emplace_back("products_gflops", alone.operations / alone.seconds * 1e-9);
      extra.emplace_back("products_alone_per_second", count / alone.seconds);
    }
    for (std::size_t i = 5; i < r.values.size(); ++i) extra.emplace_back(fmt::format("loss_{}", i - 4), r.values[i]);
    rows.push_back({fmt::format("batch {}", size), name, ms, reference, ms / reference, std::move(extra)});
  };
  for (const Form& form : forms()) {
    if (options->quick && form.size == 1) continue;
    const ChildResult r = in_child(
        [&] {
          const Training t = form.run(setting, form.size);
          std::vector<double> values{t.seconds, t.schedule, t.first.at(0), t.first.at(1)};
          values.insert(values.end(), t.losses.begin(), t.losses.end());
          return values;
        },
        most_bytes, most_seconds);
    Result result{r.values, r.failure};
    if (r.ok()) result.values.insert(result.values.begin() + 2, static_cast<double>(r.peak_bytes));
    note(form.name, form.size, result);
  }
  if (!options->python.empty()) {
    const codegen::TemporaryDirectory folder;
    write_problem(setting, learning_rate, folder.path());
    for (const Peer& peer : peers) {
      if (options->quick && peer.size == 1) continue;
      const std::string import = fmt::format("import importlib.util as u, sys; sys.exit(not u.find_spec('{}'))", peer.package);
      if (codegen::run_process({options->python, "-c", import}).status == 0)
        note(peer.name, peer.size, run_peer(peer, options->python, folder.path()));
      else
        fmt::print("skipped: {}, batch {}: {} has no package {}\n", peer.name, peer.size, options->python, peer.package);
    }
  }
  fmt::print("{}", table(rows));
  if (!options->json.empty()) write_file(options->json, json(rows));
  if (!options->svg.empty())
    write_file(options->svg,
               bar_plot("TreeLSTM", "ms for a sentence", rows, [](const Row& r) { return r.ms; }));
  return wrong == 0 ? 0 : 1;
}

}  // namespace lantern::bench
