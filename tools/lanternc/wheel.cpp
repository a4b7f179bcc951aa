// A zip archive with the module, its metadata, and a list of both with hashes.
#include "wheel.hpp"

#include <llvm/ADT/ArrayRef.h>
#include <llvm/Support/SHA256.h>
#include <sys/utsname.h>
#include <zip.h>

#include <memory>
#include <regex>
#include <vector>

#include "lantern/codegen/toolchain/process.hpp"
#include "lantern/ir/error.hpp"
#include "python_parts.hpp"

namespace lantern::tool {

namespace {

struct Member {
  std::string path, contents;
};

/// In the alphabet of URLs, without padding, as RECORD has it.
std::string sha256(const std::string& contents) {
  const auto hash = llvm::SHA256::hash(llvm::ArrayRef(reinterpret_cast<const std::uint8_t*>(contents.data()), contents.size()));
  std::string text = base64(std::string(hash.begin(), hash.end()));
  text.erase(text.find('='));
  for (char& c : text) c = c == '+' ? '-' : c == '/' ? '_' : c;
  return text;
}

void write_archive(const std::filesystem::path& path, const std::vector<Member>& members) {
  int failure = 0;
  std::unique_ptr<zip_t, decltype(&zip_discard)> archive(zip_open(path.c_str(), ZIP_CREATE | ZIP_TRUNCATE, &failure), zip_discard);
  bool written = archive != nullptr;
  for (const Member& m : members) {
    zip_source_t* const source = written ? zip_source_buffer(archive.get(), m.contents.data(), m.contents.size(), 0) : nullptr;
    const zip_int64_t index = source ? zip_file_add(archive.get(), m.path.c_str(), source, ZIP_FL_ENC_UTF_8) : -1;
    // The same input gives the same bytes: 1980 is the first year that an archive can hold.
    written = index >= 0 && zip_file_set_mtime(archive.get(), static_cast<zip_uint64_t>(index), 315532800, 0) == 0;
    if (!written) break;
  }
  if (!written || zip_close(archive.get()) != 0) throw Error("--emit=wheel: cannot write the archive '" + path.string() + "'");
  static_cast<void>(archive.release());  // closed
}

}  // namespace

WheelName wheel_name(const std::filesystem::path& output) {
  static const std::regex form(R"(([A-Za-z][A-Za-z0-9_]*)-([0-9][0-9A-Za-z.!+]*)-py3-none-(\w+)\.whl)");
  const std::string file = output.filename().string();
  std::smatch match;
  if (!std::regex_match(file, match, form))
    throw Error("--emit=wheel: expected an output named as pip needs it, '" + default_wheel("model") + "' for version 0 of a module "
                "model, got '" + file + "'");
  return {match[1], match[2], match[3]};
}

std::string default_wheel(const std::string& module) {
  utsname machine{};
  uname(&machine);
  return module + "-0-py3-none-linux_" + machine.machine + ".whl";
}

std::string wheel(const WheelName& name, const std::string& module, bool needs_numpy) {
  const std::string information = name.name + "-" + name.version + ".dist-info/";
  std::vector<Member> members{
      {name.name + ".py", module},
      {information + "METADATA", "Metadata-Version: 2.1\nName: " + name.name + "\nVersion: " + name.version +
                                     "\nSummary: Functions compiled by lanternc\nRequires-Python: >=3.8\n" +
                                     (needs_numpy ? "Requires-Dist: numpy\n" : "")},
      {information + "WHEEL", "Wheel-Version: 1.0\nGenerator: lanternc " LANTERNC_VERSION "\nRoot-Is-Purelib: false\nTag: py3-none-" +
                                  name.platform + "\n"}};
  std::string record;
  for (const Member& m : members)
    record += m.path + ",sha256=" + sha256(m.contents) + "," + std::to_string(m.contents.size()) + "\n";
  members.push_back({information + "RECORD", record + information + "RECORD,,\n"});
  const codegen::TemporaryDirectory directory;
  const std::filesystem::path path = directory.path() / "module.whl";
  write_archive(path, members);
  return codegen::read_file(path);
}

}  // namespace lantern::tool
