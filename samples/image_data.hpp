// Labelled pictures: MNIST and CIFAR-10 as they are published, and batches of them for a model.
#pragma once

#include <zlib.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <lantern/ir/error.hpp>
#include <lantern/runtime/tensor.hpp>
#include <memory>
#include <numbers>
#include <numeric>
#include <random>
#include <string>
#include <vector>

/// Pictures of one size, of which each is of a class; bytes are [count, channels, height, width].
struct LabelledImages {
  std::int64_t channels = 1, height = 0, width = 0;
  std::vector<std::uint8_t> bytes = {};
  std::vector<std::int64_t> labels = {};

  std::size_t size() const { return labels.size(); }
  std::size_t bytes_each() const { return static_cast<std::size_t>(channels * height * width); }
};

namespace image_data {

using lantern::Error;

/// What a gzip file holds, or a file that is not compressed. Error: it cannot be read, or is damaged.
inline std::vector<std::uint8_t> unzipped(const std::filesystem::path& file) {
  const std::unique_ptr<gzFile_s, int (*)(gzFile)> in(gzopen(file.c_str(), "rb"), gzclose);
  if (!in) throw Error("expected a file of pictures or labels, cannot open " + file.string());
  std::vector<std::uint8_t> bytes;
  constexpr std::size_t part = 1 << 20;
  for (int got = 1; got > 0;) {
    const std::size_t before = bytes.size();
    bytes.resize(before + part);
    got = gzread(in.get(), &bytes[before], part);
    int state = Z_OK;
    const char* const message = gzerror(in.get(), &state);
    if (got < 0 || state != Z_OK)
      throw Error("expected a whole gzip file, cannot read " + file.string() + ": " + message);
    bytes.resize(before + static_cast<std::size_t>(got));
  }
  return bytes;
}

/// Sizes and elements of an idx file of bytes with so many dimensions (LeCun, Cortes and Burges, "The MNIST
/// database": 0, 0, 8 for bytes, the number of dimensions, each size in four bytes, the largest first,
/// elements).
struct Idx {
  std::vector<std::int64_t> sizes;
  std::vector<std::uint8_t> elements;
};
inline Idx read_idx(const std::filesystem::path& file, std::size_t dimensions) {
  const std::vector<std::uint8_t> bytes = unzipped(file);
  const std::size_t begin = 4 + 4 * dimensions;
  if (bytes.size() < begin || bytes[0] != 0 || bytes[1] != 0 || bytes[2] != 8 || bytes[3] != dimensions)
    throw Error("expected an idx file of bytes with " + std::to_string(dimensions) +
                " dimensions, found something else in " + file.string());
  Idx idx;
  std::size_t count = 1;
  for (std::size_t d = 0; d < dimensions; ++d) {
    std::uint32_t size = 0;
    for (std::size_t i = 0; i < 4; ++i) size = size << 8 | bytes[4 + 4 * d + i];
    idx.sizes.push_back(size);
    count = size != 0 && count > bytes.size() / size ? bytes.size() : count * size;
  }
  if (count != bytes.size() - begin)
    throw Error("expected as many elements as the sizes say in " + file.string() + ", found " +
                std::to_string(bytes.size() - begin));
  idx.elements.assign(bytes.begin() + static_cast<std::ptrdiff_t>(begin), bytes.end());
  return idx;
}

}  // namespace image_data

/// The part "train" or "t10k" of MNIST: FOLDER/train-images-idx3-ubyte.gz and
/// FOLDER/train-labels-idx1-ubyte.gz, or these unzipped. Error: a file is missing, damaged or of another
/// form, or the two do not fit.
inline LabelledImages read_mnist(const std::filesystem::path& folder, const std::string& part) {
  const auto file = [&](const std::string& rest) {
    const auto zipped = folder / (part + rest + ".gz"), plain = folder / (part + rest);
    return exists(zipped) || !exists(plain) ? zipped : plain;
  };
  const auto image_file = file("-images-idx3-ubyte"), label_file = file("-labels-idx1-ubyte");
  image_data::Idx images = image_data::read_idx(image_file, 3), labels = image_data::read_idx(label_file, 1);
  if (images.sizes[0] != labels.sizes[0])
    throw lantern::Error("expected a label for each picture, found " + std::to_string(images.sizes[0]) +
                         " pictures in " + image_file.string() + " and " + std::to_string(labels.sizes[0]) +
                         " labels in " + label_file.string());
  for (const std::uint8_t label : labels.elements)
    if (label > 9)
      throw lantern::Error("expected labels from 0 to 9, found " + std::to_string(label) + " in " +
                           label_file.string());
  return {1, images.sizes[1], images.sizes[2], std::move(images.elements),
          std::vector<std::int64_t>(labels.elements.begin(), labels.elements.end())};
}

/// A file of CIFAR-10's binary form: of each picture its label, one byte, then red, green and blue, 32 x 32
/// bytes each (Krizhevsky 2009). Error: it cannot be read or is of another form.
inline LabelledImages read_cifar10(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  if (!in) throw lantern::Error("expected a file of CIFAR-10, cannot open " + file.string());
  const std::vector<char> bytes{std::istreambuf_iterator<char>(in), {}};
  constexpr std::size_t each = 3 * 32 * 32, record = 1 + each;
  if (bytes.empty() || bytes.size() % record != 0)
    throw lantern::Error("expected records of 3073 bytes in " + file.string() + ", found " +
                         std::to_string(bytes.size()) + " bytes");
  LabelledImages images{3, 32, 32, {}, {}};
  images.bytes.reserve(bytes.size() / record * each);
  for (auto at = bytes.begin(); at != bytes.end(); at += record) {
    const auto label = static_cast<std::uint8_t>(*at);
    if (label > 9)
      throw lantern::Error("expected labels from 0 to 9, found " + std::to_string(label) + " in " +
                           file.string());
    images.labels.push_back(label);
    images.bytes.insert(images.bytes.end(), at + 1, at + record);
  }
  return images;
}

/// Ten glyphs, the digits in 5 x 7 points, anywhere in grey pictures of 12 x 12 points, more or less bright
/// and under noise; made on the spot.
inline LabelledImages draw_glyphs(std::size_t count, std::uint64_t seed) {
  constexpr const char* glyphs[10] = {
      "01110100011001110101110011000101110", "00100011000010000100001000010001110",
      "01110100010000100010001000100011111", "11111000100010000010000011000101110",
      "00010001100101010010111110001000010", "11111100001111000001000011000101110",
      "00110010001000011110100011000101110", "11111000010001000100010000100001000",
      "01110100011000101110100011000101110", "01110100011000101111000010001001100"};
  LabelledImages images{1, 12, 12, std::vector<std::uint8_t>(count * 144), {}};
  std::mt19937_64 rng(seed);
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t label = rng() % 10, top = rng() % 6, left = rng() % 8, bright = 110 + rng() % 110;
    std::uint8_t* const picture = &images.bytes[i * 144];
    for (std::size_t k = 0; k < 144; ++k) picture[k] = static_cast<std::uint8_t>(rng() % 36);
    for (std::size_t k = 0; k < 35; ++k)
      if (glyphs[label][k] == '1') {
        std::uint8_t& point = picture[(top + k / 5) * 12 + left + k % 5];
        point = static_cast<std::uint8_t>(point + bright);
      }
    images.labels.push_back(static_cast<std::int64_t>(label));
  }
  return images;
}

/// Ten textures in colour, waves of five directions and two lengths, with any phase and contrast and under
/// noise; made on the spot.
inline LabelledImages draw_waves(std::size_t count, std::uint64_t seed, std::int64_t side) {
  LabelledImages images{3, side, side, {}, {}};
  images.bytes.reserve(count * images.bytes_each());
  std::mt19937_64 rng(seed);
  const auto from = [&](double lo, double hi) {
    return lo + (hi - lo) * static_cast<double>(rng() >> 11) * 0x1p-53;
  };
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t label = rng() % 10;
    const double angle = std::numbers::pi / 5 * static_cast<double>(label / 2),
                 length = label % 2 == 0 ? 3.5 : 7;
    const double across = 2 * std::numbers::pi / length * std::cos(angle),
                 down = 2 * std::numbers::pi / length * std::sin(angle),
                 phase = from(0, 2 * std::numbers::pi);
    for (int channel = 0; channel < 3; ++channel) {
      const double base = from(80, 170), contrast = from(25, 75);
      for (std::int64_t y = 0; y < side; ++y)
        for (std::int64_t x = 0; x < side; ++x) {
          const double wave =
              std::sin(across * static_cast<double>(x) + down * static_cast<double>(y) + phase);
          const double value = base + contrast * wave + from(-20, 20);
          images.bytes.push_back(static_cast<std::uint8_t>(std::clamp(value, 0.0, 255.0)));
        }
    }
    images.labels.push_back(static_cast<std::int64_t>(label));
  }
  return images;
}

/// Mean and deviation of the bytes of pictures.
struct Spread {
  double mean = 0, deviation = 1;
};
inline Spread spread_of(const LabelledImages& images) {
  double sum = 0, squares = 0;
  for (const double b : images.bytes) sum += b, squares += b * b;
  const double n = static_cast<double>(std::max<std::size_t>(1, images.bytes.size())), mean = sum / n;
  return {mean, std::sqrt(std::max(1e-6, squares / n - mean * mean))};
}

/// Some of the pictures, for a model: (byte - mean) / deviation, [size, channels, height, width], and labels.
struct Batch {
  lantern::TensorValue<float> images;
  lantern::TensorValue<std::int64_t> labels;
};

/// Pictures in batches of one size, in their order or, after `shuffle`, another one. Pictures that fill no
/// batch are left out.
class Batches {
 public:
  Batches(const LabelledImages& all, std::size_t size, const Spread& spread, std::uint64_t seed = 0)
      : all_(all), size_(size), spread_(spread), rng_(seed), order_(all.size()) {
    if (size == 0 || size > all.size())
      throw lantern::Error("expected a batch of 1 to " + std::to_string(all.size()) + " pictures, got " +
                           std::to_string(size));
    std::iota(order_.begin(), order_.end(), 0);
    const auto n = static_cast<std::int64_t>(size);
    batch_ = {lantern::TensorValue<float>({n, all.channels, all.height, all.width}),
              lantern::TensorValue<std::int64_t>({n})};
  }

  std::size_t count() const { return order_.size() / size_; }
  std::size_t batch_size() const { return size_; }
  void shuffle() {
    for (std::size_t i = order_.size(); i > 1; --i) std::swap(order_[i - 1], order_[rng_() % i]);
  }
  /// The i-th batch; it is there until the next one is asked for.
  const Batch& operator[](std::size_t i) {
    const std::size_t each = all_.bytes_each();
    const auto mean = static_cast<float>(spread_.mean), scale = static_cast<float>(1 / spread_.deviation);
    for (std::size_t k = 0; k < size_; ++k) {
      const std::size_t from = order_[i * size_ + k];
      batch_.labels[k] = all_.labels[from];
      for (std::size_t b = 0; b < each; ++b)
        batch_.images[k * each + b] = (static_cast<float>(all_.bytes[from * each + b]) - mean) * scale;
    }
    return batch_;
  }

 private:
  const LabelledImages& all_;
  std::size_t size_;
  Spread spread_;
  std::mt19937_64 rng_;
  std::vector<std::size_t> order_;
  Batch batch_;
};

/// The part of the pictures, of at most so many batches, that are recognised: right(batch) says how many of a
/// batch are.
template <class Right>
double accuracy(Batches& batches, const Right& right, std::size_t at_most = static_cast<std::size_t>(-1)) {
  const std::size_t count = std::min(at_most, batches.count());
  std::int64_t sum = 0;
  for (std::size_t i = 0; i < count; ++i) sum += right(batches[i]);
  return static_cast<double>(sum) / static_cast<double>(count * batches.batch_size());
}
