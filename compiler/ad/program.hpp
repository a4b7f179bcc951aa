// Derivatives of flattened programs: what grad, vjp and jvp do once types are gone.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "lantern/compiler/staging/check.hpp"
#include "lantern/compiler/staging/mode.hpp"
#include "lantern/compiler/staging/operation.hpp"
#include "lantern/ir/function_ref.hpp"

namespace lantern::core {
class Staging;
}

namespace lantern::core::ad {

/// Ends a mode on every way out.
struct Ending {
  Mode& mode;
  ~Ending() { mode.end(); }
};

/// A variable has another value in its lifetime.
template <class T>
class Meanwhile {
 public:
  Meanwhile(T& variable, T value) : variable_(variable), before_(std::exchange(variable, value)) {}
  ~Meanwhile() { variable_ = before_; }
  Meanwhile(const Meanwhile&) = delete;
  Meanwhile& operator=(const Meanwhile&) = delete;

 private:
  T& variable_;
  T before_;
};

/// A program over flattened products.
struct Program {
  std::string name;
  std::function<Datums(const Datums&)> run;
};

/// A typed function, and what structure its arguments and results have, by references whose types are gone.
struct Untyped {
  const void *function, *prototypes;
  void* value;
  Datums (*run)(const Untyped&, const Datums&);
};
/// The program that it is. std::function costs a compiler a dozen functions for each type of callable; this is one type.
Program untyped_program(std::string name, const Untyped& untyped);

/// Which arguments are differentiated, one entry per flattened argument.
using Active = std::vector<bool>;

/// The arguments, with make(x) in place of each active x, in order.
template <class Make>
Datums with_active(Datums arguments, const Active& active, Make make) {
  for (std::size_t i = 0; i < arguments.size(); ++i)
    if (active[i]) arguments[i] = make(arguments[i]);
  return arguments;
}

/// `a`, then `b`.
template <class T>
std::vector<T> joined(std::vector<T> a, const std::vector<T>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}
/// Numbers `from` to `to` - 1 of a list.
template <class T>
std::vector<T> slice(const std::vector<T>& all, std::size_t from, std::size_t to) {
  return {all.begin() + static_cast<std::ptrdiff_t>(from), all.begin() + static_cast<std::ptrdiff_t>(to)};
}

/// Reverse mode, a vector-Jacobian product: the values if `values`, then one adjoint per active argument. `seeds`
/// has one entry per floating result. Eager outside staging; while staging, a derivative unit is built and called.
Datums vjp(const Program& program, const Datums& arguments, const Active& active, const Datums& seeds, bool values,
           const Location& loc);
/// The same, eagerly, for a program whose result is one floating scalar, with 1 as its seed.
Datums eager_gradient(const Program& program, const Datums& arguments, const Active& active, bool value,
                      const Location& loc);

/// Error, naming `loc`, unless there is one tangent for each active argument, of its type. `what`: "jvp",
/// "taylor".
void require_tangents(const char* what, const Datums& arguments, const Active& active, const Datums& tangents,
                      const Location& loc);

/// Forward mode: the values, then one tangent per floating result. `tangents` has one entry per active argument.
/// `literal`: by a handler (thesis, listing 4.4), if eagerly.
Datums jvp(const Program& program, const Datums& arguments, const Active& active, const Datums& tangents,
           const Location& loc, bool literal = false);

/// What row(s) gives for each s[0] below n, put together: number i in place i of scalars, row i of arrays and tensors.
/// `empty` are the results before the first; s has them so far, behind the number.
Datums row_by_row(const Datum& n, const Datums& empty, ir::FunctionRef<Datums(const Datums& s)> row,
                  const Location& loc);

/// The gradient of a scalar program by forward mode, one pass per element of each active argument.
Datums forward_gradient(const Program& program, const Datums& arguments, const Active& active, bool literal,
                        const Location& loc);

/// Error, naming `loc`, unless the results are one floating scalar.
void require_scalar(const std::vector<ir::Type>& results, const Location& loc);

std::vector<ir::Type> types_of(const Datums& data);

/// Says of data that were appended which are active: those that are selected and have derivatives.
void extend(Active& active, const Datums& data, bool selected);

/// Runs a program at once, also while something is being staged.
Datums run_eagerly(const Program& program, const Datums& arguments);

/// A program over flattened data that owns its function. The function's type is gone: what compiles and runs programs is
/// compiled once for all.
class OwnedProgram {
 public:
  OwnedProgram(std::string name, const void* function, void (*deleted)(const void*),
               Datums (*run)(const void* function, const Datums&));
  OwnedProgram(const OwnedProgram&);
  OwnedProgram& operator=(const OwnedProgram&);
  ~OwnedProgram();
  const std::string& name() const { return name_; }
  Datums operator()(const Datums& data) const { return run_(function_.get(), data); }

 private:
  std::string name_;
  std::shared_ptr<const void> function_;
  Datums (*run_)(const void*, const Datums&);
};
/// Runs the program at once, watched as `check` says.
Datums run_eagerly(const OwnedProgram& program, Check check, const Datums& arguments);

}  // namespace lantern::core::ad
