// Sound for models: WAV files, and the logarithms of their spectra over time, by a compiled program.
#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <lantern/linalg.hpp>
#include <lantern/tensor.hpp>
#include <numbers>
#include <string>
#include <vector>

namespace audio {

using lantern::Error;

/// One channel; samples from -1 to 1.
struct Recording {
  std::int64_t rate = 0;  ///< samples a second
  std::vector<float> samples;
};

/// A WAV file of one channel of 16-bit numbers (RIFF; Microsoft and IBM, "Multimedia programming interface
/// and data specifications 1.0", 1991). An Error where it is something else, or ends early.
inline Recording read_wav(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  if (!in) throw Error("expected a WAV file, cannot open " + file.string());
  const std::vector<char> bytes{std::istreambuf_iterator<char>(in), {}};
  const auto number = [&](std::size_t at, std::size_t size) {
    if (at + size > bytes.size()) throw Error("expected a WAV file, found the end of " + file.string());
    std::int64_t v = 0;
    for (std::size_t i = size; i-- > 0;) v = v * 256 + static_cast<unsigned char>(bytes[at + i]);
    return v;
  };
  const auto is = [&](std::size_t at, const char* name) {
    return at + 4 <= bytes.size() && std::memcmp(&bytes[at], name, 4) == 0;
  };
  if (!is(0, "RIFF") || !is(8, "WAVE"))
    throw Error("expected a WAV file, found something else in " + file.string());
  Recording r;
  for (std::size_t at = 12; at + 8 <= bytes.size();) {
    const auto size = static_cast<std::size_t>(number(at + 4, 4));
    if (is(at, "fmt ")) {
      const std::int64_t format = number(at + 8, 2), channels = number(at + 10, 2), bits = number(at + 22, 2);
      if (format != 1 || channels != 1 || bits != 16)
        throw Error("expected one channel of 16-bit numbers, found " + std::to_string(channels) + " of " +
                    std::to_string(bits) + " bits, format " + std::to_string(format) + ", in " +
                    file.string() + "; sox in.wav -c 1 -b 16 -e signed-integer out.wav makes them");
      r.rate = number(at + 12, 4);
    } else if (is(at, "data")) {
      if (r.rate == 0) throw Error("expected the format before the data in " + file.string());
      r.samples.resize(size / 2);
      for (std::size_t i = 0; i < r.samples.size(); ++i)
        r.samples[i] = static_cast<float>(static_cast<std::int16_t>(number(at + 8 + 2 * i, 2))) / 32768;
      return r;
    }
    at += 8 + size + size % 2;
  }
  throw Error("expected samples, found none in " + file.string());
}

using Spectrogram = lantern::Rep<lantern::Tensor<float>>;

/// [frames, window / 2 + 1]: of each part of `window` samples, `hop` after the one before, under a Hann
/// window, the logarithm of the squared amplitude of each frequency; less their mean, over their deviation. A
/// part that is not complete is left out.
inline Spectrogram log_spectrogram(lantern::Rep<lantern::Array<float>> samples,
                                   lantern::Rep<std::int64_t> window, lantern::Rep<std::int64_t> hop) {
  using I = lantern::Rep<std::int64_t>;
  using lantern::Rep;
  const I frames = (samples.size() - window) / hop + 1;
  const Rep<float> turn = static_cast<float>(2 * std::numbers::pi) / cast<float>(window);
  const Spectrogram parts = lantern::tabulate(
      [&](const I& frame, const I& i) {
        return samples[frame * hop + i] * (0.5f - 0.5f * cos(turn * cast<float>(i)));
      },
      frames, window);
  const auto [re, im] = lantern::linalg::rfft(parts);
  const Spectrogram level = log(re * re + im * im + 1e-6f);
  const Spectrogram centred = level - mean(level);
  return centred / sqrt(mean(centred * centred) + 1e-5f);
}

/// Spectrograms as pictures of one channel, shorter ones followed by zeros: [examples, 1, frames of the
/// longest, frequencies].
inline lantern::TensorValue<float> padded(const std::vector<lantern::TensorValue<float>>& all) {
  std::int64_t frames = 0;
  for (const auto& s : all) frames = std::max(frames, s.shape[0]);
  const std::int64_t width = all.empty() ? 0 : all[0].shape[1];
  lantern::TensorValue<float> t({static_cast<std::int64_t>(all.size()), 1, frames, width});
  for (std::size_t i = 0; i < all.size(); ++i)
    std::copy(all[i].data.begin(), all[i].data.end(),
              t.data.begin() + static_cast<std::ptrdiff_t>(i) * frames * width);
  return t;
}

}  // namespace audio
