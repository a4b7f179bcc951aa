// Legal and unique identifiers.
#include "lantern/codegen/naming.hpp"

#include <cctype>

#include "lantern/ir/op.hpp"

namespace lantern::codegen {

namespace {

/// Words that mean something in C, C++ or CUDA sources, or in the text that we generate.
constexpr std::string_view words =
    " alignas alignof and and_eq asm auto bitand bitor bool break case catch char char16_t char32_t char8_t "
    "class "
    "co_await co_return co_yield compl concept const const_cast consteval constexpr constinit continue "
    "decltype "
    "default delete do double dynamic_cast else enum explicit export extern false float for friend goto if "
    "inline "
    "int long mutable namespace new noexcept not not_eq nullptr operator or or_eq private protected public "
    "register "
    "reinterpret_cast requires restrict return short signed sizeof static static_assert static_cast struct "
    "switch "
    "template this thread_local throw true try typedef typeid typename union unsigned using virtual void "
    "volatile "
    "wchar_t while xor xor_eq "
    "int64_t int32_t uint64_t size_t NULL memcpy memmove memset abort realloc free malloc write main linux "
    "unix "
    "ws at env captured blockIdx threadIdx blockDim gridDim warpSize dim3 printf assert index y0 y1 yn j0 j1 "
    "jn "
    "asinh acosh atanh cbrt ceil trunc round rint hypot fmod fdim exp2 log2 log10 tgamma gamma ldexp frexp "
    "modf "
    "remainder nan signbit isnan isinf ";

/// The functions that operations of the table call: exp, fabs, ... and their float forms.
const std::unordered_set<std::string>& reserved() {
  static const auto set = [] {
    std::unordered_set<std::string> names;
    for (std::size_t at = 1, end; at < words.size(); at = end + 1) {
      end = words.find(' ', at);
      names.emplace(words.substr(at, end - at));
    }
    for (std::size_t i = 0; i < static_cast<std::size_t>(ir::Opcode::count_); ++i) {
      const std::string_view text = ir::info(static_cast<ir::Opcode>(i)).expression;
      for (std::size_t at = 0, end; at < text.size(); at = end + 1) {
        end = at;
        while (end < text.size() && (std::isalnum(static_cast<unsigned char>(text[end])) || text[end] == '_'))
          ++end;
        if (end - at < 2) continue;
        names.emplace(text.substr(at, end - at));
        names.insert(std::string(text.substr(at, end - at)) + "f");
      }
    }
    for (const char* name : {"abs", "absf", "labs", "pow", "powf"}) names.insert(name);
    return names;
  }();
  return set;
}

}  // namespace

std::string identifier(std::string_view text) {
  std::string s;
  for (const char c : text) {
    const bool good = std::isalnum(static_cast<unsigned char>(c)) && static_cast<unsigned char>(c) < 128;
    if (good) {
      s += c;
    } else if (!s.empty() && s.back() != '_') {
      s += '_';  // runs of '_' and a leading one belong to the implementation
    }
  }
  while (s.size() > 1 && s.back() == '_') s.pop_back();
  if (s.empty() || s == "_") s = "v";
  if (std::isdigit(static_cast<unsigned char>(s[0]))) s.insert(0, 1, 'n');
  if (s.size() > 60) s.resize(60);
  if (s.starts_with("lt_") || reserved().contains(s)) s += '_';
  return s;
}

bool NameScope::free(const std::string& name) const {
  return !taken_.contains(name) && (!outer_ || outer_->free(name));
}

std::string NameScope::unique(std::string_view wanted) {
  const std::string base = identifier(wanted);
  std::string name = base;
  // An identifier ends in '_' only where it was reserved; the number then follows at once: exp_2.
  const char* joint = base.back() == '_' ? "" : "_";
  if (!free(name)) {
    int& i = next_[base];
    for (i = i < 2 ? 2 : i; !free(name); ++i) name = base + joint + std::to_string(i);
  }
  taken_.insert(name);
  log_.push_back(name);
  return name;
}

void NameScope::release(std::size_t mark) {
  for (; log_.size() > mark; log_.pop_back()) taken_.erase(log_.back());
}

std::string NameScope::numbered(const std::string& stem) {
  std::string name;
  do {
    name = stem + std::to_string(++next_["#" + stem]);
  } while (!free(name));
  taken_.insert(name);
  log_.push_back(name);
  return name;
}

}  // namespace lantern::codegen
