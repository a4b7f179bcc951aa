// The rule of higher-order reverse mode.
#include "lantern/compiler/ad/modes/closures.hpp"

namespace lantern::core::ad {

//   let g = {x -> reverseh (f x)}
Func Closures::instrumented(const Part& f) {
  return [this, f](const Datums& x) { return reverseh<Datums>([&] { return f(x); }); };
}

// A reverse pass is as deep as the program is long: so are its call and its end.
void Closures::run(const std::function<void()>& program) {
  run_on_large_stack([&] {
    const Pass pass = reverseh<Datums>([&] {
                        program();
                        return Datums();
                      }).second;
    pass();
  });
}

std::shared_ptr<EagerReverse> make_closures(std::uint64_t tag) { return std::make_shared<Closures>(tag); }

}  // namespace lantern::core::ad
