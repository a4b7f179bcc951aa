// Eager tensors and tag stripping.
#include "lantern/compiler/staging/datum.hpp"

#include "lantern/compiler/staging/mode.hpp"

namespace lantern {

std::size_t element_size(ir::Kind k) {
  switch (k) {
    case ir::Kind::boolean: return 1;
    case ir::Kind::i32:
    case ir::Kind::f32: return 4;
    default: return 8;
  }
}

Datum make_tensor(ir::Kind element, std::vector<std::int64_t> shape) {
  std::size_t count = 1;
  for (std::int64_t d : shape) count *= static_cast<std::size_t>(d);
  const ir::Type type = ir::Type::tensor(element, shape);
  return Datum::boxed(new TensorBox(std::move(shape), count * element_size(element)), type);
}

const Datum& strip(const Datum& d) {
  const Datum* at = &d;
  while (at->is_tagged()) at = &static_cast<const TaggedBox*>(at->box())->primal;
  return *at;
}

}  // namespace lantern
