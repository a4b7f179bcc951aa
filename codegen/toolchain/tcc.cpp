// libtcc in process: one short-lived TCCState per compilation, code in a mapping of our own.
#include "lantern/codegen/toolchain/tcc.hpp"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <unordered_map>
#include <utility>
#include <vector>

#include "lantern/ir/error.hpp"

// Other libraries in the process may have a tcc of their own.
#pragma GCC visibility push(hidden)
#include <libtcc.h>

// What tcc refers to of the C library's variables, under the names that the build gives them
// (tools/cmake/tcc.cmake).
extern "C" {
FILE* lantern_tcc_stdout;
FILE* lantern_tcc_stderr;
char** lantern_tcc_environ;
}
#pragma GCC visibility pop

namespace lantern::codegen {

namespace {

// What tcc calls for conversions that x86-64 has no single instruction for. The functions are normally found
// in libtcc1.a, which would have to be located on disk and linked at every compilation.
uint64_t double_to_unsigned(double x) { return static_cast<uint64_t>(x); }
uint64_t float_to_unsigned(float x) { return static_cast<uint64_t>(x); }
uint64_t extended_to_unsigned(long double x) { return static_cast<uint64_t>(x); }
int64_t double_to_signed(double x) { return static_cast<int64_t>(x); }
int64_t float_to_signed(float x) { return static_cast<int64_t>(x); }
int64_t extended_to_signed(long double x) { return static_cast<int64_t>(x); }
double unsigned_to_double(uint64_t x) { return static_cast<double>(x); }
float unsigned_to_float(uint64_t x) { return static_cast<float>(x); }
long double unsigned_to_extended(uint64_t x) { return static_cast<long double>(x); }

// A list of functions by name. The parameter types choose one function out of the C++ overload set.
struct DefaultSymbols {
  std::vector<HostSymbol> list;

  template <class Function>
  void add(const std::string& name, Function* function) {
    list.push_back({name, reinterpret_cast<void*>(function)});
  }
  void unary(const std::string& name, double (*f)(double), float (*f_single)(float)) {
    add(name, f);
    add(name + "f", f_single);
  }
  void binary(const std::string& name, double (*f)(double, double), float (*f_single)(float, float)) {
    add(name, f);
    add(name + "f", f_single);
  }
  void ternary(const std::string& name, double (*f)(double, double, double),
               float (*f_single)(float, float, float)) {
    add(name, f);
    add(name + "f", f_single);
  }
};

DefaultSymbols make_default_symbols() {
  DefaultSymbols table;
#define MATH_1(name, ...) table.unary(#name, ::name, ::name##f);
#define MATH_2(name, ...) table.binary(#name, ::name, ::name##f);
#include "lantern/ir/ops.inc"
  table.unary("tgamma", ::tgamma, ::tgammaf);
  table.unary("fabs", ::fabs, ::fabsf);
  table.unary("rint", ::rint, ::rintf);
  table.unary("nearbyint", ::nearbyint, ::nearbyintf);
  table.binary("fmin", ::fmin, ::fminf);
  table.binary("fmax", ::fmax, ::fmaxf);
  table.ternary("fma", ::fma, ::fmaf);
  table.add("memcpy", ::memcpy);
  table.add("memmove", ::memmove);
  table.add("memset", ::memset);
  table.add("printf", ::printf);
  table.add("__fixunsdfdi", double_to_unsigned);
  table.add("__fixunssfdi", float_to_unsigned);
  table.add("__fixunsxfdi", extended_to_unsigned);
  table.add("__fixdfdi", double_to_signed);
  table.add("__fixsfdi", float_to_signed);
  table.add("__fixxfdi", extended_to_signed);
  table.add("__floatundidf", unsigned_to_double);
  table.add("__floatundisf", unsigned_to_float);
  table.add("__floatundixf", unsigned_to_extended);
  return table;
}

const std::vector<HostSymbol>& default_symbols() {
  static const DefaultSymbols symbols = make_default_symbols();
  return symbols.list;
}

// Pages that tcc may make executable. Left to itself, tcc turns parts of the malloc heap executable.
class CodeMapping {
 public:
  explicit CodeMapping(std::size_t size) : size_(size) {
    data_ = ::mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (data_ == MAP_FAILED) throw Error("out of memory for generated code");
  }
  CodeMapping(CodeMapping&& other) noexcept
      : data_(std::exchange(other.data_, MAP_FAILED)), size_(other.size_) {}
  CodeMapping& operator=(CodeMapping&&) = delete;
  ~CodeMapping() {
    if (data_ != MAP_FAILED) ::munmap(data_, size_);
  }
  void* data() const { return data_; }

 private:
  void* data_;
  std::size_t size_;
};

using SymbolTable = std::unordered_map<std::string, void*>;

class TccCode final : public LoadedCode {
 public:
  TccCode(CodeMapping mapping, SymbolTable symbols)
      : mapping_(std::move(mapping)), symbols_(std::move(symbols)) {}

  void* symbol(const std::string& name) const override {
    const auto found = symbols_.find(name);
    if (found == symbols_.end()) throw Error("compiled code has no symbol named '" + name + "'");
    return found->second;
  }

 private:
  CodeMapping mapping_;
  SymbolTable symbols_;
};

struct DeleteState {
  void operator()(TCCState* state) const { tcc_delete(state); }
};

// "<string>:12: error: ..." -> "12", or 0 when the message names no line.
std::size_t line_number(const std::string& message) {
  constexpr const char* prefix = "<string>:";
  if (message.rfind(prefix, 0) != 0) return 0;
  return static_cast<std::size_t>(std::strtoul(message.c_str() + std::strlen(prefix), nullptr, 10));
}

std::string source_line(const std::string& source, std::size_t number) {
  std::size_t begin = 0;
  for (std::size_t line = 1; line < number; ++line) {
    begin = source.find('\n', begin);
    if (begin == std::string::npos) return {};
    ++begin;
  }
  return source.substr(begin, source.find('\n', begin) - begin);
}

struct Diagnostics {
  const std::string& source;
  std::string text;

  static void append(void* self, const char* message) {
    auto& diagnostics = *static_cast<Diagnostics*>(self);
    diagnostics.text += '\n';
    diagnostics.text += message;
    // tcc has read one token ahead, so the mistake may be at the end of the line before.
    const std::size_t reported = line_number(message);
    for (std::size_t line = reported > 1 ? reported - 1 : reported; line != 0 && line <= reported; ++line)
      diagnostics.text += "\n" + std::to_string(line) + " | " + source_line(diagnostics.source, line);
  }
};

[[noreturn]] void fail(const Diagnostics& diagnostics) {
  throw InternalError("tcc does not accept the generated code:" + diagnostics.text);
}

void collect_symbol(void* table, const char* name, const void* address) {
  static_cast<SymbolTable*>(table)->emplace(name, const_cast<void*>(address));
}

}  // namespace

std::unique_ptr<LoadedCode> compile_with_tcc(const std::string& c_source,
                                             std::span<const HostSymbol> symbols) {
  // tcc keeps its compiler state in globals behind a lock of its own; ours also covers creating and deleting
  // a state, which that lock does not.
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  lantern_tcc_stdout = stdout;
  lantern_tcc_stderr = stderr;
  lantern_tcc_environ = environ;

  Diagnostics diagnostics{c_source, {}};
  const std::unique_ptr<TCCState, DeleteState> state(tcc_new());
  if (!state) throw Error("out of memory for a compiler state");
  tcc_set_error_func(state.get(), &diagnostics, &Diagnostics::append);
  tcc_set_options(state.get(), "-nostdinc -nostdlib -Wall -Werror");
  tcc_set_output_type(state.get(), TCC_OUTPUT_MEMORY);

  if (tcc_compile_string(state.get(), c_source.c_str()) != 0) fail(diagnostics);
  for (const HostSymbol& symbol : symbols) tcc_add_symbol(state.get(), symbol.name.c_str(), symbol.address);
  for (const HostSymbol& symbol : default_symbols()) {
    tcc_add_symbol(state.get(), symbol.name.c_str(), symbol.address);
  }

  const int size = tcc_relocate(state.get(), nullptr);
  if (size < 0) fail(diagnostics);
  CodeMapping mapping(static_cast<std::size_t>(size));
  if (tcc_relocate(state.get(), mapping.data()) != 0) fail(diagnostics);

  SymbolTable table;
  tcc_list_symbols(state.get(), &table, &collect_symbol);
  return std::make_unique<TccCode>(std::move(mapping), std::move(table));
}

}  // namespace lantern::codegen
