// Pictures: 8-bit grey or RGB, read from and written to PNG files (ISO/IEC 15948) by libpng.
#pragma once

#include <png.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <lantern/ir/error.hpp>
#include <string>
#include <vector>

/// Pixels row by row, from the top; of each its channels: one, grey, or three, red, green and blue.
struct Picture {
  std::int64_t width = 0, height = 0, channels = 3;
  std::vector<std::uint8_t> pixels = {};

  Picture() = default;
  Picture(std::int64_t w, std::int64_t h, std::int64_t c = 3)
      : width(w), height(h), channels(c), pixels(static_cast<std::size_t>(w * h * c)) {}

  std::uint8_t& at(std::int64_t x, std::int64_t y, std::int64_t channel = 0) {
    return pixels[static_cast<std::size_t>((y * width + x) * channels + channel)];
  }
  std::uint8_t at(std::int64_t x, std::int64_t y, std::int64_t channel = 0) const {
    return pixels[static_cast<std::size_t>((y * width + x) * channels + channel)];
  }
};

/// 0 for 0 and less, 255 for 1 and more; 0 for NaN.
inline std::uint8_t to_byte(double brightness) {
  return brightness > 0 ? static_cast<std::uint8_t>(std::lround(255 * std::min(brightness, 1.0)))
                        : std::uint8_t{0};
}

/// Error: sizes that do not fit the pixels, or the file cannot be written.
inline void write_png(const std::filesystem::path& file, const Picture& picture) {
  if ((picture.channels != 1 && picture.channels != 3) || picture.width < 1 || picture.height < 1 ||
      picture.pixels.size() != static_cast<std::size_t>(picture.width * picture.height * picture.channels))
    throw lantern::Error("write_png: expected a pixel for each place, of 1 or 3 channels, got " +
                         std::to_string(picture.pixels.size()) + " numbers for " +
                         std::to_string(picture.width) + " x " + std::to_string(picture.height) + " x " +
                         std::to_string(picture.channels));
  png_image image{};
  image.version = PNG_IMAGE_VERSION;
  image.width = static_cast<png_uint_32>(picture.width);
  image.height = static_cast<png_uint_32>(picture.height);
  image.format = picture.channels == 1 ? PNG_FORMAT_GRAY : PNG_FORMAT_RGB;
  if (png_image_write_to_file(&image, file.c_str(), 0, picture.pixels.data(), 0, nullptr) == 0)
    throw lantern::Error("expected to write a picture, cannot write " + file.string() + ": " + image.message);
}

/// With the given number of channels, whatever the file has. Error: the file cannot be read, or is no PNG.
inline Picture read_png(const std::filesystem::path& file, std::int64_t channels = 3) {
  if (channels != 1 && channels != 3)
    throw lantern::Error("read_png: expected 1 or 3 channels, got " + std::to_string(channels));
  png_image image{};
  image.version = PNG_IMAGE_VERSION;
  if (png_image_begin_read_from_file(&image, file.c_str()) == 0)
    throw lantern::Error("expected a PNG file, cannot read " + file.string() + ": " + image.message);
  image.format = channels == 1 ? PNG_FORMAT_GRAY : PNG_FORMAT_RGB;
  Picture picture(image.width, image.height, channels);
  const png_color white{255, 255, 255};  // behind what is transparent
  if (png_image_finish_read(&image, &white, picture.pixels.data(), 0, nullptr) == 0)
    throw lantern::Error("expected a PNG file, cannot read " + file.string() + ": " + image.message);
  return picture;
}
