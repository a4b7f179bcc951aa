// compile(fn): a program over Rep as a typed callable of plain C++ types. eager(fn): the same, computed by
// run.
#pragma once

#include <array>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "lantern/compiler/ad/program.hpp"
#include "lantern/compiler/driver/call.hpp"
#include "lantern/compiler/driver/marshal.hpp"
#include "lantern/compiler/staging/check.hpp"
#include "lantern/runtime/workspace.hpp"

namespace lantern::ir {
class Module;
}

namespace lantern::core {

/// Where compiled code is kept from one run of a program to the next.
struct CodeCache {
  CodeCache() = default;
  /// true: the user's own cache directory, $XDG_CACHE_HOME/lantern/code or ~/.cache/lantern/code.
  CodeCache(bool on) : enabled(on) {}
  /// A directory, made where it is missing. No other user may write there: what is in it is run.
  CodeCache(std::string path) : enabled(true), directory(std::move(path)) {}
  CodeCache(const char* path) : CodeCache(std::string(path)) {}

  bool enabled = false;
  std::string directory;  ///< empty: the user's own
};

/// What code is generated for.
///
/// Code of libtcc has neither vectors nor fused operations: of Target::automatic the first calls may give
/// other numbers than later ones, within rounding. Target::c and Target::cpp are those two, each from the
/// first call on; strict_math without reassociate gives values, not derivatives, the same bits in both.
enum class Target {
  automatic,  ///< C for the first calls (libtcc, within a millisecond), C++ by Clang swapped in when it is
              ///< ready. Where that fails, standard error says so once, wait() raises, and calls go on as they
              ///< began
  c,          ///< C99, compiled by libtcc
  cpp,        ///< C++, compiled by Clang
  cuda,       ///< CUDA C++, compiled by NVRTC; calling it needs a GPU. cuda.hpp keeps tensors there between calls
};

struct CompileOptions {
  Target target = Target::automatic;
  /// 0: the graph as staged (continuations stay) and no compiler optimisation; 1 to 3: the pass pipeline, and
  /// that optimisation level of the compiler.
  int opt = 3;
  /// An index outside an array raises; without the check it is undefined behaviour.
  bool bounds_checks = true;
  /// Arithmetic operation by operation as IEEE 754 has it: a product and a sum are rounded each by itself,
  /// subnormal numbers are kept, and functions of the mathematical library give what libm gives, bit for bit,
  /// in vectorised loops too. Otherwise a sum of a product may be rounded once (pass `contract`), loops take
  /// subnormal numbers for zero, and functions in vectorised loops lie within 4 units in the last place.
  bool strict_math = false;
  /// Sums over a loop's iterations may be added up in another order: in lanes, in threads, element by element.
  /// Without it those that the program itself forms keep their order, and with strict_math their bits are
  /// those of eager evaluation; a derivative's own sums, of adjoints, have no order to keep.
  bool reassociate = true;
  /// Code for a debugger: breakpoints by the user's lines, variables with the user's names. Without vectors
  /// and the compiler's optimisation. Compiled by Clang at once; not for Target::c, whose compiler has none
  /// of it.
  bool debug = false;
  /// Check::nan: the first NaN or infinity is an Error that names its line, its operation and its part of a
  /// derivative. Nothing is generated for it otherwise.
  Check check = Check::environment;
  /// How many threads a call may use, from 1 to 64. Loops whose iterations do not depend on each other are shared
  /// out where there is enough to do; sums are then added up in another order, always the same for the same
  /// number of threads. Not with `debug`, at opt 0, nor for Target::cuda, which does all iterations of a kernel at
  /// once anyway.
  int threads = 1;
  /// How many f64 a vector holds: 2, 4 or 8. 0: as many as a register of this machine. With more than that,
  /// code runs all the same, of each vector one register after the other.
  int lanes = 0;
  /// For Target::cuda, how the loops of a line run, where the compiler's choice is not wanted: "model.cpp:12=rows", or
  /// =element or =host (docs/gpu.md). Error where that cannot be.
  std::vector<std::string> mappings = {};
  /// For Target::cuda, what cuBLAS may round the factors of products of matrices of float to, which GPUs multiply many times
  /// as fast: "tf32" (11 digits of 24), "bf16" (8) or "f16" (half). Sums stay float. "f32": nothing. Not with strict_math.
  std::string products = "f32";
  /// For Target::cuda, "f16" or "bf16": tensors of float that the function makes for itself lie in 16 bits in the GPU's memory, where
  /// kernels and products of matrices alone use them. Arithmetic and sums stay float. "f32": none. Not with strict_math.
  std::string storage = "f32";
  /// Passes left out, by name (see passes/pipeline.hpp).
  std::vector<std::string> disabled_passes = {};
  /// Name of the function in generated code; empty: taken from the program.
  std::string name = {};
  /// What Clang makes is kept, and loaded the next time, with Target::automatic in place of the first tier: by the
  /// staged program and the running build, else by the generated code, and by options, versions and processor. A cache
  /// that cannot be read or written does without; one that others may write to is an Error. The last 256 MB are kept.
  CodeCache cache = {};
};

namespace driver {

/// What calling code takes besides its entry point.
struct CallFacts {
  bool recursive = false;  ///< it may recurse deeply: it runs on a large stack
  bool flush = false;      ///< it works through loops: subnormal numbers are zero meanwhile
};

/// A compiled module. Calls are safe from several threads at once.
class Code {
 public:
  virtual ~Code() = default;
  virtual lt_entry* entry() const = 0;
  virtual const std::vector<ir::Type>& results() const = 0;
  virtual CallFacts facts() const = 0;
  /// Generated source: "ir", "c", "cpp" or "cuda".
  virtual std::string source(const std::string& what) const = 0;
  /// Of a function for a GPU the entry that leaves tensors there (driver/gpu.hpp). Error for any other.
  virtual void* device_entry() const { return nullptr; }
  /// Waits until optimised code has been swapped in (Target::automatic). Raises what kept it from being made.
  virtual void wait() const {}
};

/// The program staged as the entry of a module of its own. Runs on a large stack.
std::unique_ptr<ir::Module> stage(const std::string& name, const std::vector<ir::Type>& params,
                                  ir::FunctionRef<Datums(const Datums&)> program);

/// Stages, optimises and compiles. Raises in a program built by lanternc without --with-jit.
std::shared_ptr<const Code> compile(const std::string& name, const std::vector<ir::Type>& params,
                                    ir::FunctionRef<Datums(const Datums&)> program,
                                    const CompileOptions& options);

/// The code of a program: one, where its parameters' ranks are declared, or one for each combination of ranks that it
/// is called with. May be asked from several threads at once.
class ProgramCode {
 public:
  /// `ranked`: `types` have all ranks; then the program is compiled now.
  ProgramCode(const ad::OwnedProgram& program, const CompileOptions& options, bool ranked, const std::vector<ir::Type>& types);
  /// Null where code depends on the arguments' ranks.
  const Code* only() const { return only_.get(); }
  const Code& of(const std::vector<ir::Type>& types);
  /// What there is. Error before the first call where ranks are not declared.
  const Code& known();

 private:
  std::shared_ptr<const Code> compiled(const std::vector<ir::Type>& types) const;

  ad::OwnedProgram program_;
  CompileOptions options_;
  std::shared_ptr<const Code> only_;
  std::mutex mutex_;
  std::map<std::string, std::shared_ptr<const Code>> by_rank_;
};

/// Runs an entry point in the calling thread's workspace, which is kept between calls. `targets`: see
/// Workspace::call. `panels`: constants among the arguments (runtime/panels.hpp); null where all may change.
void run(lt_entry* entry, CallFacts facts, const void* const* in, void* const* out,
         lt_target* targets = nullptr, lt_panels* panels = nullptr);

/// Bytes the calling thread's workspace holds: the most its calls ever needed.
std::int64_t workspace_bytes();

}  // namespace driver

namespace detail {

template <class T, class H>
Datum to_datum(std::type_identity<T>, const H& h) {
  if constexpr (ScalarElement<T>) {
    return literal(h);
  } else if constexpr (std::same_as<T, Array<typename Traits<T>::element>>) {
    using E = typename Traits<T>::element;
    Datum d = make_tensor(TypeOf<E>::get().kind(), {static_cast<std::int64_t>(h.size())});
    E* to = static_cast<TensorBox*>(d.box())->as<E>();
    for (std::size_t i = 0; i < h.size(); ++i) to[i] = h[i];
    return d;
  } else if constexpr (Traits<T>::tensor) {
    using E = typename Traits<T>::element;
    Datum d = make_tensor(TypeOf<E>::get().kind(), h.shape());
    E* to = static_cast<TensorBox*>(d.box())->as<E>();
    for (std::int64_t i = 0; i < h.size(); ++i) to[i] = h.at_flat(i);
    return d;
  } else {
    return Rep<T>(h).datum();
  }
}

template <class T, class H>
void from_datum(std::type_identity<T>, const Datum& d, H& h) {
  if constexpr (ScalarElement<T>) {
    if constexpr (std::is_floating_point_v<T>)
      h = static_cast<T>(d.f());
    else
      h = static_cast<T>(d.i());
  } else {
    using E = typename Traits<T>::element;
    const auto& box = *static_cast<const TensorBox*>(d.box());
    const E* from = box.as<E>();
    if constexpr (std::same_as<T, Array<E>>) {
      h.assign(from, from + box.count());
    } else {
      h.data.assign(from, from + box.count());
      h.shape = box.shape;
    }
  }
}

/// Writes the elements of a result into the caller's memory, or adds them to what is there.
template <class T, class Out>
void store(std::type_identity<T>, std::span<const typename Traits<T>::element> from, Out& out, bool add) {
  const auto write = [&](auto&& to) {
    if (add)
      for (std::size_t i = 0; i < from.size(); ++i) to(i) = to(i) + from[i];
    else
      for (std::size_t i = 0; i < from.size(); ++i) to(i) = from[i];
  };
  if constexpr (ScalarElement<T>) {
    write([&](std::size_t) -> Out& { return out; });
  } else {
    const auto size = static_cast<std::size_t>(out.size());
    if (size != from.size())
      throw Error("into: expected room for " + std::to_string(from.size()) + " elements, got " +
                  std::to_string(size));
    auto* const data = out.data();
    if constexpr (requires { out.contiguous(); })
      if (!out.contiguous())
        return write([&](std::size_t i) -> auto& { return out.at_flat(static_cast<std::int64_t>(i)); });
    if (!add && from.data() == data) return;  // computed in place
    if (!add)
      for (std::size_t i = 0; i < size; ++i) data[i] = from[i];
    else
      write([data](std::size_t i) -> auto& { return data[i]; });
  }
}

}  // namespace detail

namespace driver {
template <class Make, class Tell, class F, class R, class Params>
struct Exported;
}  // namespace driver

namespace detail {

/// The entry point of generated code, and what its callers must know.
struct Entry {
  lt_entry* function;
  driver::CallFacts facts;
  const std::vector<ir::Type>* results;
};

// What is done with each leaf of arguments and results. They are types of their own, so that leaves of one type share it.
struct AppendDatum {
  Datums& data;
  template <class T, class H>
  void operator()(std::type_identity<T> type, const H& h) const {
    append(data, to_datum(type, h));
  }
};
struct TakeDatum {
  const Datums& data;
  std::size_t at = 0;
  template <class T, class H>
  void operator()(std::type_identity<T> type, H& h) {
    from_datum(type, data[at++], h);
  }
};
template <std::size_t Count>
struct AddArgument {
  Arguments<Count>& in;
  template <class T, class H>
  void operator()(std::type_identity<T> type, const H& h) const {
    in.add(type, h);
  }
};
template <std::size_t Count>
struct TakeResult {
  const Results<Count>& results;
  std::size_t at = 0;
  template <class T, class H>
  void operator()(std::type_identity<T> type, H& h) {
    results.take(at++, type, h);
  }
};

template <class T>
struct ViewOf<TensorValue<T>> {
  static TensorView<T> of(TensorValue<T>& value) { return value; }
};

/// Calls of generated code for a program of this type, which all programs of the type share.
template <class R, class... P>
struct EntryCall {
  static host_out<R> call(const Entry& entry, const host_in<P>&... args) {
    constexpr std::size_t count = (std::size_t{0} + ... + leaf_count<P>());
    Arguments<count> in;
    (for_each_leaf<P>(args, AddArgument<count>{in}), ...);
    Results<leaf_count<R>()> results(*entry.results);
    driver::run(entry.function, entry.facts, in.data(), results.data());
    host_out<R> out{};
    for_each_leaf<R>(out, TakeResult<leaf_count<R>()>{results});
    return out;
  }

  /// Results go from where they were computed to the targets, once all of them are safe from being written
  /// over.
  template <class... Out>
  static void write(const Entry& entry, bool add, const std::tuple<Out&...>& targets, const host_in<P>&... args) {
    constexpr std::size_t count = leaf_count<R>();
    const auto for_each_target = [&](auto&& f) {  // f(i, type, target) for the i-th number, array or tensor
      std::size_t i = 0;
      const auto with_number = [&]<class Target>(auto type, Target& out) {
        if constexpr (requires { ViewOf<std::remove_const_t<Target>>::of(out); }) {
          auto view = ViewOf<std::remove_const_t<Target>>::of(out);
          f(i++, type, view);
        } else {
          f(i++, type, out);
        }
      };
      [&]<std::size_t... I>(std::index_sequence<I...>) {
        (for_each_leaf<std::tuple_element_t<I, parts_of<R>>>(std::get<I>(targets), with_number), ...);
      }
      (std::index_sequence_for<Out...>{});
    };
    constexpr std::size_t places = (count + ... + leaf_count<P>());
    Arguments<places> in;
    (for_each_leaf<P>(args, AddArgument<places>{in}), ...);
    Results<count> results(*entry.results);
    std::array<lt_target, count> wanted;
    for_each_target([&](std::size_t i, auto type, auto& out) {
      wanted[i] = add ? lt_target{nullptr, -1} : in.target(type, out);
    });
    driver::run(entry.function, entry.facts, in.data(), results.data(), wanted.data());
    std::array<const void*, count> from;
    for_each_target([&](std::size_t i, auto type, auto&) {
      from[i] = in.apart(results.elements(i, type), wanted[i].data).data();
    });
    for_each_target([&]<class T>(std::size_t i, std::type_identity<T> type, auto& out) {
      using E = typename Traits<T>::element;
      store(type, std::span(static_cast<const E*>(from[i]), results.elements(i, type).size()), out, add);
    });
  }
};

/// What can be done with generated code: call it, or have its results written. Self gives the entry point for
/// some arguments: entry(in...).
template <class Self, class R, class Params>
class Callable;
template <class Self, class R, class... P>
class Callable<Self, R, std::tuple<P...>> : public TypedCalls<Self, R, std::tuple<P...>> {
 public:
  using Result = host_out<R>;
  /// There is `into`, which a callable that computes by running the program does not have.
  static constexpr bool writes_results = true;

  /// What operator() gives.
  Result called(const host_in<P>&... args) const {
    return EntryCall<R, P...>::call(static_cast<const Self*>(this)->entry(args...), args...);
  }

  /// Writes the results into the caller's memory, then returns: into(out..., in...). A result is T& for a
  /// scalar, std::span<T> for an array, TensorView<T> or TensorValue<T> for a tensor, of the result's size, and
  /// a struct or std::array of these where the program returns one. A
  /// result is computed in place where that can be. After an error the targets' contents are unspecified.
  template <class... A>
    requires(Targets<R, std::tuple<P...>>::template take<A...>())
  void into(A&&... outs_then_ins) const {
    write(false, std::forward_as_tuple(outs_then_ins...));
  }
  /// The same, adding to what is there.
  template <class... A>
    requires(Targets<R, std::tuple<P...>>::template take<A...>())
  void accumulate_into(A&&... outs_then_ins) const {
    write(true, std::forward_as_tuple(outs_then_ins...));
  }
  template <class... A, Text what = text_if<!Targets<R, std::tuple<P...>>::template take<A...>()>(
                            WrongTargets<Self, R, std::tuple<P...>, A...>())>
    requires(!Targets<R, std::tuple<P...>>::template take<A...>())
  void into(A&&...) const LANTERN_DELETED;
  template <class... A, Text what = text_if<!Targets<R, std::tuple<P...>>::template take<A...>()>(
                            WrongTargets<Self, R, std::tuple<P...>, A...>())>
    requires(!Targets<R, std::tuple<P...>>::template take<A...>())
  void accumulate_into(A&&...) const LANTERN_DELETED;

 private:
  using Parts = parts_of<R>;

  template <class All>
  void write(bool add, All all) const {
    constexpr std::size_t outs = std::tuple_size_v<Parts>;
    [&]<std::size_t... O, std::size_t... I>(std::index_sequence<O...>, std::index_sequence<I...>) {
      write_from(add, std::tie(std::get<O>(all)...), entering<P>(std::get<outs + I>(all))...);
    }
    (std::make_index_sequence<outs>{}, std::index_sequence_for<P...>{});
  }
  template <class... Out>
  void write_from(bool add, const std::tuple<Out&...>& targets, const host_in<P>&... args) const {
    EntryCall<R, P...>::write(static_cast<const Self*>(this)->entry(args...), add, targets, args...);
  }
};

}  // namespace detail

namespace detail {
template <class Self, class R, class Params>
class OnGpu;
}  // namespace detail

/// Compiled functions of one signature.
template <class R, class Params>
class CompiledSignature;
template <class R, class... P>
class CompiledSignature<R, std::tuple<P...>>
    : public detail::Callable<CompiledSignature<R, std::tuple<P...>>, R, std::tuple<P...>> {
 public:
  CompiledSignature(const ad::OwnedProgram& program, const CompileOptions& options) {
    const bool ranked = detail::ranks_known<P...>();
    std::vector<ir::Type> types;
    if (ranked) (detail::types_of<P>(types), ...);
    code_ = std::make_shared<driver::ProgramCode>(program, options, ranked, types);
  }

  /// Generated text: "ir", "c", "cpp", "cuda". Error before the first call where a tensor's rank is not
  /// declared.
  std::string source(const std::string& what = "cpp") const { return known().source(what); }
  /// Waits for optimised code (Target::automatic), and raises what kept it from being made.
  void wait() const { known().wait(); }

  /// The function on a stream of the GPU, with tensors that stay there: cuda.hpp, which is to be included. Error: it is
  /// not compiled for Target::cuda.
  template <class Stream>
  auto on(const Stream& stream) const {
    return detail::OnGpu<CompiledSignature, R, std::tuple<P...>>(*this, stream);
  }
  /// For what `on` gives.
  const driver::Code& gpu_code() const { return known(); }

 private:
  friend detail::Callable<CompiledSignature, R, std::tuple<P...>>;
  template <class, class, class, class, class>
  friend struct driver::Exported;

  detail::Entry entry(const detail::host_in<P>&... args) const {
    const driver::Code* const only = code_->only();
    const driver::Code& code = only ? *only : code_->of(detail::parameter_types<P...>(args...));
    return {code.entry(), code.facts(), &code.results()};
  }
  const driver::Code& known() const { return code_->known(); }

  std::shared_ptr<driver::ProgramCode> code_;
};

namespace detail {
template <class F>
void delete_function(const void* f) {
  delete static_cast<const F*>(f);
}
template <class F>
Datums run_function(const void* f, const Datums& data) {
  return run_typed(*static_cast<const F*>(f), data);
}
template <class F>
ad::OwnedProgram owned_program(F&& f) {
  std::string name = name_of(f);
  return {std::move(name), new F(std::move(f)), &delete_function<F>, &run_function<F>};
}
template <class F>
using compiled_signature = CompiledSignature<typename FunctionTraits<F>::Result, typename FunctionTraits<F>::Params>;
}  // namespace detail

/// A compiled function; see compile. Copies share the code.
template <class F>
class Compiled : public detail::compiled_signature<F> {
  using Signature = detail::compiled_signature<F>;

 public:
  using Signature::Signature;
};

/// Compiles a program over Rep: `auto df = compile(grad(f)); df(3.0);`
///
/// The program is run once, now, and what it did is compiled: values of C++ that it captures, by reference too, are
/// those of this moment, and prints and changes of C++ variables happen once. What differs between calls is an argument.
///
/// Parameters and results become plain C++ types (driver/host_types.hpp). A tensor parameter without declared
/// dimensions takes its rank from the first call's argument. Errors: whatever staging finds wrong, with the
/// place; a missing CUDA tool chain. The callable may be used from several threads at once.
template <detail::OverReps F>
auto compile(F f, const CompileOptions& options = {}) {
  return Compiled<F>(detail::owned_program(std::move(f)), options);
}
LANTERN_TAKES_ONE_FUNCTION(compile, const CompileOptions& = {})

/// Eager functions of one signature.
template <class R, class Params>
class EagerSignature;
template <class R, class... P>
class EagerSignature<R, std::tuple<P...>>
    : public detail::TypedCalls<EagerSignature<R, std::tuple<P...>>, R, std::tuple<P...>> {
 public:
  EagerSignature(const ad::OwnedProgram& program, Check check) : program_(program), check_(resolved(check)) {}
  /// What operator() gives.
  detail::host_out<R> called(const detail::host_in<P>&... args) const {
    Datums data;
    (detail::for_each_leaf<P>(args, detail::AppendDatum{data}), ...);
    const Datums results = ad::run_eagerly(program_, check_, data);
    detail::host_out<R> out{};
    detail::for_each_leaf<R>(out, detail::TakeDatum{results});
    return out;
  }

 private:
  ad::OwnedProgram program_;
  Check check_;
};

namespace detail {
template <class F>
using eager_signature = EagerSignature<typename FunctionTraits<F>::Result, typename FunctionTraits<F>::Params>;
}  // namespace detail

/// The same callable, computed by running the program: step through it in a debugger.
template <class F>
class EagerCall : public detail::eager_signature<F> {
  using Signature = detail::eager_signature<F>;

 public:
  using Signature::Signature;
};
template <detail::OverReps F>
auto eager(F f, Check check = Check::environment) {
  return EagerCall<F>(detail::owned_program(std::move(f)), check);
}
LANTERN_TAKES_ONE_FUNCTION(eager)

}  // namespace lantern::core
