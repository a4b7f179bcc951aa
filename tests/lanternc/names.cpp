// Users' names that are members of LANTERN_FUNCTION's own structures, or something in generated code;
// namespaces, structures and parameters of such names.
#include <cstdio>
#include <lantern/lantern.hpp>

namespace entry {
struct Result {
  lantern::Rep<double> in, out;
};
lantern::Rep<double> line(lantern::Rep<double> x) { return 2.0 * x + 1.0; }
lantern::Rep<double> id(lantern::Rep<double> file, lantern::Rep<double> ws) { return file * ws; }
Result make(Result facts) { return {facts.out, facts.in}; }
lantern::Rep<double> program(lantern::Rep<double> name) { return name * name; }
namespace file {
lantern::Rep<double> entry(lantern::Rep<double> call) { return exp(call); }
LANTERN_FUNCTION(lantern_entry, lantern::grad(entry))
LANTERN_FUNCTION(call, entry)
}  // namespace file
LANTERN_FUNCTION(slope, lantern::grad(line))
LANTERN_FUNCTION(registered, id)
LANTERN_FUNCTION(Exported, make)
LANTERN_FUNCTION(df_, lantern::grad(program))
LANTERN_FUNCTION(df__, lantern::value_and_grad(program))
LANTERN_FUNCTION(y0, lantern::grad(file::entry))
}  // namespace entry

namespace {
LANTERN_FUNCTION(hidden, lantern::grad(entry::program))
}

int main() {
  const auto [out, in] = entry::Exported({1.0, 2.0});
  const bool good = entry::slope(3.0) == 2.0 && entry::registered(2.0, 3.0) == 6.0 && out == 2.0 &&
                    in == 1.0 && entry::df_(2.0) == 4.0 && std::get<1>(entry::df__(2.0)) == 4.0 &&
                    entry::y0(0.0) == 1.0 && entry::file::lantern_entry(0.0) == 1.0 &&
                    entry::file::call(0.0) == 1.0 && hidden(3.0) == 6.0;
  std::puts(good ? "ok" : "BAD");
  return good ? 0 : 1;
}
