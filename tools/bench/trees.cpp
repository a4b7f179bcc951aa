// Training of the TreeLSTM of samples/, node by node and level by level: sentences a second, memory, loss.
#include <fmt/format.h>

#include <cmath>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <limits>
#include <random>

#include "../../samples/treelstm_data.hpp"
#include "../../samples/treelstm_model.hpp"
#include "bench.hpp"
#include "child.hpp"
#include "lantern/lantern.hpp"
#include "options.hpp"
#include "report.hpp"

namespace lantern::bench {
namespace {

using namespace treelstm;
using Labelled = LabelledTree;

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

/// Steps over all trees, `size` at a time; make(trees) is what the step takes.
template <class Step, class Make>
Training train(const Setting& setting, std::size_t size, const Step& step_code, const Make& make) {
  nn::Generator random(1);
  Model<float> model = initial<float>({setting.words, setting.embedding, setting.hidden, 5}, random);
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
                                        [&] { return step(model, state, given, 0.05); });
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

}  // namespace

int bench_trees(int argc, char** argv) {
  constexpr std::int64_t most_bytes = 16'000'000'000;
  constexpr double most_seconds = 900;
  int status = 0;
  const auto options =
      parse_options(argc, argv, "training of a TreeLSTM, node by node and level by level", "", status);
  if (!options) return status;

  const Setting setting = read(options->quick);
  const auto count = static_cast<double>(setting.trees.size());
  fmt::print("{} trees, hidden {}, embedding {}, Adagrad, float, one thread; ms for a sentence\n",
             setting.trees.size(), setting.hidden, setting.embedding);
  std::vector<Row> rows;
  int wrong = 0;
  double reference = 0;
  std::vector<double> first;
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
    if (!r.ok()) {
      fmt::print(stderr, "bench: {}, batch {}: {}\n", form.name, form.size, r.failure);
      ++wrong;
      continue;
    }
    const double ms = 1000 * r.values[0] / count;
    const std::string problem = fmt::format("batch {}", form.size);
    const bool is_first = rows.empty() || rows.back().problem != problem;
    const std::vector<double> steps(r.values.begin() + 2, r.values.begin() + 4);
    if (is_first) {
      reference = ms;
      first = steps;
    }
    for (std::size_t i = 0; i < steps.size(); ++i)
      if (!(std::abs(steps[i] - first[i]) <= 1e-4 * std::abs(first[i]))) {
        fmt::print(stderr, "bench: {}, batch {}: loss {:.8g} after {} steps, expected {:.8g}\n", form.name,
                   form.size, steps[i], i, first[i]);
        ++wrong;
      }
    Extras extra{{"sentences_per_second", 1000 / ms},
                 {"schedule_percent", 100 * r.values[1] / r.values[0]},
                 {"peak_bytes", static_cast<double>(r.peak_bytes)}};
    for (std::size_t i = 4; i < r.values.size(); ++i)
      extra.emplace_back(fmt::format("loss_{}", i - 3), r.values[i]);
    rows.push_back({problem, form.name, ms, reference, ms / reference, std::move(extra)});
  }
  fmt::print("{}", table(rows));
  if (!options->json.empty()) write_file(options->json, json(rows));
  if (!options->svg.empty())
    write_file(options->svg,
               bar_plot("TreeLSTM", "ms for a sentence", rows, [](const Row& r) { return r.ms; }));
  return wrong == 0 ? 0 : 1;
}

}  // namespace lantern::bench
