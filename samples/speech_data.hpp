// Recordings and what is said in them, as batches for connectionist temporal classification; its results as
// text.
#pragma once

#include <lantern/nn.hpp>
#include <numeric>

#include "audio.hpp"

namespace audio {

using lantern::TensorValue;

/// The classes; the first is the blank.
inline const std::string alphabet = "_ ABCDEFGHIJKLMNOPQRSTUVWXYZ'";

/// Letters of which each is a chord of two tones, held for a tenth of a second or so, under noise.
inline Recording made_up(const std::string& transcript, lantern::nn::Generator& rng) {
  Recording r{4000, {}};
  const auto noise = [&] { return static_cast<double>(rng() >> 11) * 0x1p-52 - 1; };
  for (const char c : transcript) {
    const auto length = static_cast<std::size_t>(400 + 80 * noise());
    const double low = 200 + 150 * ((c - 'A') % 4), high = 1000 + 200 * ((c - 'A') / 4);
    for (std::size_t i = 0; i < length; ++i) {
      const double t = 2 * std::numbers::pi * static_cast<double>(i) / 4000;
      const double swell = std::sin(std::numbers::pi * static_cast<double>(i) / static_cast<double>(length));
      r.samples.push_back(
          static_cast<float>(0.3 * swell * (std::sin(low * t) + std::sin(high * t)) + 0.03 * noise()));
    }
  }
  return r;
}

/// The first recordings of DIR/speech/an4 with their transcripts; without a folder, some made up.
inline std::vector<std::pair<Recording, std::string>> recordings(const std::filesystem::path& data,
                                                                 std::size_t count,
                                                                 lantern::nn::Generator& rng) {
  std::vector<std::pair<Recording, std::string>> all;
  if (data.empty()) {
    for (const char* said : {"LANTERN", "HELLO", "ALL", "TENOR", "HALO", "NEON", "TREE", "ORAL"})
      if (all.size() < count) all.emplace_back(made_up(said, rng), said);
    return all;
  }
  const auto folder = data / "speech/an4";
  std::ifstream list(folder / "train.tsv");
  for (std::string id, samples, transcript; all.size() < count && std::getline(list, id, '\t') &&
                                            std::getline(list, samples, '\t') &&
                                            std::getline(list, transcript);)
    all.emplace_back(read_wav(folder / "train" / (id + ".wav")), transcript);
  if (all.empty()) throw Error("expected recordings, found none in " + (folder / "train.tsv").string());
  return all;
}

/// A batch: what is heard, padded to the longest, and what it means.
struct Corpus {
  TensorValue<float> spectra;                 ///< [examples, 1, frames, frequencies]
  TensorValue<std::int64_t> frames, letters;  ///< how many, of each example
  TensorValue<std::int64_t> labels;           ///< [examples, most letters]
  std::vector<std::string> transcripts;
};
/// Of windows of 20 ms, one each 10 ms. Error: a recording is shorter, or a transcript has something else
/// than letters.
inline Corpus corpus(const std::vector<std::pair<Recording, std::string>>& all) {
  const auto spectrogram = lantern::compile(log_spectrogram, {.target = lantern::Target::c});
  std::vector<TensorValue<float>> spectra;
  std::size_t longest = 1;
  for (const auto& [recording, transcript] : all) {
    const std::int64_t window = recording.rate / 50;
    if (std::ssize(recording.samples) < window)
      throw Error("expected at least 20 ms of sound, got " + std::to_string(recording.samples.size()) +
                  " samples");
    spectra.push_back(spectrogram(recording.samples, window, window / 2));
    longest = std::max(longest, transcript.size());
  }
  const auto n = std::ssize(all);
  Corpus c{padded(spectra),
           TensorValue<std::int64_t>({n}),
           TensorValue<std::int64_t>({n}),
           TensorValue<std::int64_t>({n, static_cast<std::int64_t>(longest)}),
           {}};
  for (std::size_t i = 0; i < all.size(); ++i) {
    const std::string& transcript = all[i].second;
    c.transcripts.push_back(transcript);
    c.frames[i] = spectra[i].shape[0];
    c.letters[i] = std::ssize(transcript);
    for (std::size_t k = 0; k < transcript.size(); ++k) {
      const std::size_t found = alphabet.find(transcript[k]);
      if (found == std::string::npos || found == 0)
        throw Error("expected letters A to Z, spaces and apostrophes, got \"" + transcript + '"');
      c.labels[i * longest + k] = static_cast<std::int64_t>(found);
    }
  }
  return c;
}

/// What classes at successive steps mean: runs of one are one letter, blanks none (Graves et al. 2006, 3.1).
inline std::string spelled(const TensorValue<std::int64_t>& classes, std::size_t example,
                           std::int64_t steps) {
  std::string text;
  std::int64_t before = 0;
  for (std::size_t t = 0; t < static_cast<std::size_t>(steps); ++t) {
    const std::int64_t c = classes.data[t * static_cast<std::size_t>(classes.shape[1]) + example];
    if (c != before && c != 0) text += alphabet[static_cast<std::size_t>(c)];
    before = c;
  }
  return text;
}

/// How many letters have to be put in, taken out or replaced (Levenshtein 1966).
inline std::size_t edit_distance(const std::string& a, const std::string& b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), 0);
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0]++;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replaced = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({replaced, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row[b.size()];
}

}  // namespace audio
