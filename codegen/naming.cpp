// Legal and unique identifiers.
#include "lantern/codegen/naming.hpp"

#include <algorithm>
#include <array>
#include <cstring>

#include "lantern/ir/op.hpp"
#include "lantern/ir/text.hpp"

namespace lantern::codegen {

namespace {

/// Words that mean something in C, C++ or CUDA sources, or wherever our text speaks of values.
constexpr std::string_view words =
    "alignas alignof and and_eq asm auto bitand bitor bool break case catch char char16_t char32_t "
    "char8_t class co_await co_return co_yield compl concept const const_cast consteval constexpr "
    "constinit continue decltype default delete do double dynamic_cast else enum explicit export extern "
    "false float for friend goto if inline int long mutable namespace new noexcept not not_eq nullptr "
    "operator or or_eq private protected public register reinterpret_cast requires restrict return short "
    "signed sizeof static static_assert static_cast struct switch template this thread_local throw true "
    "try typedef typeid typename typeof typeof_unqual union unsigned using virtual void volatile wchar_t "
    "while xor xor_eq "
    "int64_t int32_t uint64_t size_t NULL memcpy memmove memset abort realloc free malloc write main "
    "linux unix ws at env captured blockIdx threadIdx blockDim gridDim warpSize dim3 printf assert index "
    "y0 y1 yn j0 j1 jn asinh acosh atanh cbrt ceil trunc round rint hypot fmod fdim exp2 log2 log10 "
    "tgamma gamma ldexp frexp modf remainder nan signbit isnan isinf ";

/// What else our text calls parameters and variables beside functions, and a name of the language.
constexpr std::string_view words_beside_functions = "in out data share results handler message std ";

/// Functions of the C library that compilers know without a declaration. With f, l, f32, f64x, ... behind
/// them too.
constexpr std::string_view library =
    "abort abs acos acosh aligned_alloc asin asinh atan atan2 atanh bcmp bcopy bzero cabs cacos cacosh "
    "calloc carg casin casinh catan catanh cbrt ccos ccosh ceil cexp cimag clog clog10 conj copysign cos "
    "cosh cpow cproj creal csin csinh csqrt ctan ctanh dcgettext dgettext drem erf erfc execl execle "
    "execlp execv execve execvp exit exp exp10 exp2 expm1 fabs fdim fegetenv fegetexceptflag fegetround "
    "feholdexcept fesetenv fesetexceptflag feupdateenv ffs finite floor fma fmax fmin fmod fopen fork "
    "fprintf fputc fputc_unlocked fputs fputs_unlocked fread free frexp fscanf fwrite fwrite_unlocked "
    "gamma gamma_r gettext hypot ilogb imaxabs index isalnum isalpha isascii isblank iscntrl isdigit "
    "isgraph isinf islower isnan isprint ispunct isspace isupper isxdigit j0 j1 jn labs ldexp lgamma "
    "lgamma_r llabs llrint llround log log10 log1p log2 logb lrint lround malloc memalign memccpy memchr "
    "memcmp memcpy memmove mempcpy memset modf nan nearbyint nextafter nexttoward posix_memalign pow "
    "pow10 printf putc putc_unlocked putchar puts realloc remainder remquo rindex rint round roundeven "
    "scalb scalbln scalbn scanf significand signbit sin sincos sinh snprintf sprintf sqrt sscanf stpcpy "
    "stpncpy strcasecmp strcat strchr strcmp strcpy strcspn strdup strerror strfmon strftime strlen "
    "strncasecmp strncat strncmp strncpy strndup strnlen strpbrk strrchr strspn strstr strtod strtof "
    "strtok strtol strtold strtoul strxfrm tan tanh tgamma toascii tolower toupper trunc vfork vfprintf "
    "vfscanf vprintf vscanf vsnprintf vsprintf vsscanf wcschr wcscmp wcslen wcsncmp wmemchr wmemcmp "
    "wmemcpy wmemmove write y0 y1 yn ";

std::unordered_set<std::string> split(std::string_view list) {
  std::unordered_set<std::string> names;
  for (std::size_t at = 0, end; at < list.size(); at = end + 1) {
    end = list.find(' ', at);
    names.emplace(list.substr(at, end - at));
  }
  return names;
}

/// The functions that operations of the table call: exp, fabs, ... and their float forms.
const std::unordered_set<std::string>& reserved() {
  static const auto set = [] {
    std::unordered_set<std::string> names = split(words);
    for (std::size_t i = 0; i < static_cast<std::size_t>(ir::Opcode::count_); ++i) {
      if (ir::info(static_cast<ir::Opcode>(i)).composed) continue;
      const std::string_view text = ir::info(static_cast<ir::Opcode>(i)).expression;
      for (std::size_t at = 0, end; at < text.size(); at = end + 1) {
        end = at;
        end = ir::end_of_word(text, end);
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

/// A function of the C library, for numbers of any type.
bool in_library(std::string_view name) {
  static const auto known = split(library);
  for (const char* suffix : {"", "f", "l", "f32", "f64", "f128", "f32x", "f64x"}) {
    if (!name.ends_with(suffix)) continue;
    if (known.contains(std::string(name.substr(0, name.size() - std::strlen(suffix))))) return true;
  }
  return false;
}

bool reserved_beside_functions(const std::string& name) {
  static const auto known = split(words_beside_functions);
  return known.contains(name) || in_library(name);
}

/// Legal characters alone, and none of the beginnings that are reserved: for the implementation's names '_',
/// for ours lt_ and lantern_, which NAME_workspace must not get from a name that ends before the '_' either.
std::string legal(std::string_view text) {
  std::string s;
  bool gap = false;
  for (const char c : text) {
    if (!ir::is_word(c)) {
      gap = true;
      continue;
    }
    if (s.empty() && c == '_') continue;
    if (gap && !s.empty() && s.back() != '_' && c != '_') s += '_';
    gap = false;
    s += c;
  }
  if (s.empty()) s = "v";
  const bool digit = ir::is_digit(s[0]);
  const bool ours = std::ranges::any_of(std::array<std::string_view, 3>{"lt_", "LT_", "lantern_"},
                                        [&](std::string_view p) { return (s + "_").starts_with(p); });
  if (digit || ours) s.insert(0, ours ? "n_" : "n");
  return s;
}

}  // namespace

std::string identifier(std::string_view text) {
  constexpr std::size_t longest = 60;
  std::string s = legal(text);
  if (s.size() > longest) s.resize(longest);
  if (reserved().contains(s)) s += '_';
  return s;
}

std::string function_identifier(std::string_view text) {
  std::string s = legal(text);
  if (reserved().contains(s) || reserved_beside_functions(s)) s += '_';
  return s;
}

bool NameScope::free(const std::string& name) const {
  return !taken_.contains(name) && (!outer_ || outer_->free(name));
}

std::string NameScope::unique(std::string_view wanted) { return made_unique(identifier(wanted)); }

std::string NameScope::unique_function(std::string_view wanted) {
  return made_unique(function_identifier(wanted));
}

std::string NameScope::made_unique(const std::string& base) {
  std::string name = base;
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
