#include "lantern/runtime/data/npz.hpp"

#include <fmt/format.h>
#include <zip.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <memory>
#include <vector>

#include "lantern/runtime/data/element.hpp"
#include "lantern/runtime/data/file.hpp"
#include "lantern/runtime/data/npy.hpp"
#include "lantern/runtime/data/report.hpp"

namespace lantern {

namespace core::data {

namespace {

constexpr std::string_view extension = ".npy";

struct CloseMember {
  void operator()(zip_file_t* member) const { zip_fclose(member); }
};
struct DiscardArchive {
  void operator()(zip_t* archive) const { zip_discard(archive); }
};
/// An archive whose changes are dropped unless it is closed by name.
using Archive = std::unique_ptr<zip_t, DiscardArchive>;

/// libzip's reason for a failure.
struct Failure : zip_error_t {
  Failure() { zip_error_init(this); }
  ~Failure() { zip_error_fini(this); }
  Failure(const Failure&) = delete;
  Failure& operator=(const Failure&) = delete;
  std::string reason() { return zip_error_strerror(this); }
};

/// Takes the source over.
Archive open_archive(const std::string& where, zip_source_t* source, Failure& failure) {
  zip_t* archive =
      source != nullptr ? zip_open_from_source(source, ZIP_RDONLY | ZIP_CHECKCONS, &failure) : nullptr;
  if (archive == nullptr) {
    if (source != nullptr) zip_source_free(source);
    const int code = zip_error_code_zip(&failure);
    if (code == ZIP_ER_READ || code == ZIP_ER_OPEN || code == ZIP_ER_NOENT || code == ZIP_ER_SEEK)
      fail(where, "cannot be opened: " + failure.reason());
    if (code == ZIP_ER_EXISTS) fail(where, "expected one array for each name, got two members of one name");
    fail(where,
         "expected a .npz file, which is a zip archive, got something else (" + failure.reason() + ")");
  }
  return Archive(archive);
}

class ArchiveReader {
 public:
  ArchiveReader(const std::string& where, zip_t* archive, std::uint64_t bytes, const NpyOptions& options)
      : where_(where), archive_(archive), bytes_left_(bytes), options_(options) {}

  NamedTensors tensors() {
    NamedTensors all;
    const auto count = static_cast<zip_uint64_t>(zip_get_num_entries(archive_, 0));
    for (zip_uint64_t i = 0; i < count; ++i) {
      zip_stat_t status;
      if (zip_stat_index(archive_, i, 0, &status) != 0) broken(fmt::format("member {}", i));
      const std::string member = status.name;
      if (!member.ends_with(extension)) {  // what is no array, and folders
        fmt::print(stderr, "{}: note: {} is no .npy file and is passed over\n", where_, in_quotes(member));
        continue;
      }
      const std::string name = member.substr(0, member.size() - extension.size());
      if (all.contains(name))  // in two encodings
        fail(where_, "expected one array for each name, got two members " + in_quotes(member));
      const std::vector<std::byte> contents = read(i, member, status);
      all.emplace(name, load_npy(contents, where_ + "(" + plain(member) + ")", options_));
    }
    return all;
  }

 private:
  static std::string plain(const std::string& member) {
    const std::string text = in_quotes(member);
    return text.substr(1, text.size() - 2);
  }

  [[noreturn]] void broken(const std::string& member) const {
    fail(where_, fmt::format("{} cannot be read: {}", member, zip_error_strerror(zip_get_error(archive_))));
  }

  /// The contents of a member, whose check sum holds. Memory is taken for what the compressed bytes can give,
  /// whatever the archive says: deflate makes at most 1032 bytes of one.
  std::vector<std::byte> read(zip_uint64_t index, const std::string& member, const zip_stat_t& status) {
    constexpr std::uint64_t most_from_one = 1032, most_from_none = 64;
    constexpr std::uint64_t most_from_packed =
        8192;  // of one byte by bzip2 or LZMA, which have no bound worth having
    constexpr zip_uint64_t needed =
        ZIP_STAT_SIZE | ZIP_STAT_COMP_SIZE | ZIP_STAT_COMP_METHOD | ZIP_STAT_ENCRYPTION_METHOD;
    if ((status.valid & needed) != needed) broken(in_quotes(member));
    if (status.encryption_method != ZIP_EM_NONE)
      fail(where_, "expected members without encryption, got " + in_quotes(member) + " with it");
    const bool packed = status.comp_method == ZIP_CM_BZIP2 || status.comp_method == ZIP_CM_LZMA;
    if ((status.comp_method != ZIP_CM_STORE && status.comp_method != ZIP_CM_DEFLATE && !packed) ||
        zip_compression_method_supported(status.comp_method, 0) == 0)
      fail(where_, fmt::format("expected members stored or deflated, got {} with compression method {}; "
                               "numpy.savez and numpy.savez_compressed write such",
                               in_quotes(member), status.comp_method));
    const std::uint64_t most =
        status.comp_method == ZIP_CM_STORE
            ? status.comp_size
            : status.comp_size * (packed ? most_from_packed : most_from_one) + most_from_none;
    if (status.comp_size > bytes_left_)
      fail(where_,
           fmt::format("expected members that lie in the file one after the other, got {} of {} bytes where "
                       "{} are left",
                       in_quotes(member), status.comp_size, bytes_left_));
    if (status.size > most)
      fail(where_, fmt::format("expected at most {} bytes from the {} of {}, got a size of {}", most,
                               status.comp_size, in_quotes(member), status.size));
    bytes_left_ -= status.comp_size;

    const std::unique_ptr<zip_file_t, CloseMember> file(zip_fopen_index(archive_, index, 0));
    if (!file) broken(in_quotes(member));
    std::vector<std::byte> contents(status.size);
    std::size_t got = 0;
    zip_int64_t n = 1;
    while (got < contents.size() && n > 0) {
      n = zip_fread(file.get(), contents.data() + got, contents.size() - got);
      if (n > 0) got += static_cast<std::size_t>(n);
    }
    // Reading on to the end is what compares the check sum.
    std::byte beyond;
    if (n >= 0) n = zip_fread(file.get(), &beyond, 1);
    if (n != 0 || got < contents.size())
      fail(where_, fmt::format("{} is damaged: {}", in_quotes(member),
                               n < 0 ? std::string(zip_error_strerror(zip_file_get_error(file.get())))
                                     : fmt::format("expected {} bytes, got {}", contents.size(),
                                                   n > 0 ? "more" : std::to_string(got))));
    return contents;
  }

  const std::string& where_;
  zip_t* archive_;
  std::uint64_t bytes_left_;  ///< of the file, for members that are still to come
  const NpyOptions& options_;
};

NamedTensors load(const std::string& where, zip_source_t* source, Failure& failure, std::uint64_t bytes,
                  const NpyOptions& options) {
  const Archive archive = open_archive(where, source, failure);
  // To libzip an empty file is an archive to be.
  if (bytes == 0) fail(where, "expected a .npz file, which is a zip archive, got an empty file");
  return ArchiveReader(where, archive.get(), bytes, options).tensors();
}

/// A tensor as a member, of which the archive needs memory until it is closed: the header, and the elements,
/// which are those of the tensor itself where they can be.
struct Member {
  std::string header;
  std::vector<std::byte> gathered;
  std::array<zip_buffer_fragment_t, 2> parts{};

  Member(const std::string& where, const AnyView& tensor) : header(npy_header(where, tensor)) {
    parts[0] = {reinterpret_cast<zip_uint8_t*>(header.data()), header.size()};
    encode(tensor, [&](std::span<const std::byte> part) {
      const bool whole = part.data() == tensor.data();
      if (!whole) gathered.insert(gathered.end(), part.begin(), part.end());
      const std::byte* at = whole ? part.data() : gathered.data();
      // libzip does not write to what it reads from.
      parts[1] = {const_cast<zip_uint8_t*>(reinterpret_cast<const zip_uint8_t*>(at)),
                  whole ? part.size() : gathered.size()};
    });
  }
  Member(const Member&) = delete;
  Member& operator=(const Member&) = delete;
};

class Writer {
 public:
  Writer(std::string where, const Replacement& file) : where_(std::move(where)) {
    int code = 0;
    archive_.reset(zip_open(file.own_name().c_str(), ZIP_CREATE | ZIP_TRUNCATE, &code));
    if (archive_) return;
    Failure failure;
    zip_error_set(&failure, code, errno);
    fail(where_, "cannot be written: " + failure.reason());
  }

  void add(const std::string& name, const AnyTensor& tensor, const NpzOptions& options) {
    if (name.find('\0') != std::string::npos)
      fail(where_, "expected names without NUL, got " + in_quotes(name));
    Member& member = *members_.emplace_back(std::make_unique<Member>(where_, tensor));
    Failure failure;
    zip_source_t* source =
        zip_source_buffer_fragment_create(member.parts.data(), member.parts.size(), 0, &failure);
    if (source == nullptr) fail(where_, "cannot be written: " + failure.reason());
    const zip_int64_t added =
        zip_file_add(archive_.get(), (name + std::string(extension)).c_str(), source, ZIP_FL_ENC_UTF_8);
    if (added < 0) {
      zip_source_free(source);
      fail(where_, "cannot hold an array named " + in_quotes(name) + ": " + reason());
    }
    const auto index = static_cast<zip_uint64_t>(added);
    const zip_int32_t method = options.deflate ? ZIP_CM_DEFLATE : ZIP_CM_STORE;
    constexpr zip_uint16_t midnight = 0, first_of_1980 = 1U << 5U | 1U;  // as NumPy: no time in the bytes
    if (zip_set_file_compression(archive_.get(), index, method, 0) != 0 ||
        zip_file_set_dostime(archive_.get(), index, midnight, first_of_1980, 0) != 0)
      fail(where_, "cannot be written: " + reason());
  }

  /// Writes all.
  void close() {
    if (zip_close(archive_.get()) != 0) fail(where_, "cannot be written: " + reason());
    static_cast<void>(archive_.release());
  }

 private:
  std::string reason() const { return zip_error_strerror(zip_get_error(archive_.get())); }

  std::string where_;
  std::vector<std::unique_ptr<Member>> members_;  ///< which the archive reads until it is closed
  Archive archive_;
};

/// The record that ends an archive, of one without members.
constexpr std::string_view empty_archive{"PK\5\6\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 22};

}  // namespace
}  // namespace core::data

using namespace core::data;

NamedTensors load_npz(const std::filesystem::path& path, const NpyOptions& options) {
  std::error_code failed;
  const std::uintmax_t bytes = std::filesystem::file_size(path, failed);
  if (failed) fail(path.string(), "cannot be opened: " + failed.message());
  Failure failure;
  return load(path.string(), zip_source_file_create(path.c_str(), 0, -1, &failure), failure, bytes, options);
}

NamedTensors load_npz(std::span<const std::byte> bytes, const std::string& name, const NpyOptions& options) {
  Failure failure;
  return load(name, zip_source_buffer_create(bytes.data(), bytes.size(), 0, &failure), failure, bytes.size(),
              options);
}

void save_npz(const std::filesystem::path& path, const NamedTensors& tensors, const NpzOptions& options) {
  Replacement file(path);
  if (tensors.empty()) {
    file.write(bytes_of(empty_archive));  // libzip writes none
  } else {
    Writer writer(path.string(), file);
    for (const auto& [name, tensor] : tensors) writer.add(name, tensor, options);
    writer.close();
  }
  file.take_place();
}

}  // namespace lantern
