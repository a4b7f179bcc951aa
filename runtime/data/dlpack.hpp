// Tensors of any element type to and from other libraries through DLPack: what dlpack.hpp does without a copy
// for floating-point tensors, with a copy for all, and views of tensors as DLPack sees them.
//
// Format: dmlc.github.io/dlpack. Not a part of <lantern/data.hpp>, for dlpack/dlpack.h need not be there.
#pragma once

#include <dlpack/dlpack.h>

#include "lantern/runtime/data/array.hpp"
#include "lantern/runtime/dlpack.hpp"

namespace lantern {

/// A copy of another library's tensor in CPU memory, strided ones too. Elements are bool, int8 to int64,
/// uint8 to uint64 (below 2^63), float16, bfloat16, float32, float64, float8 or complex; types that tensors
/// do not have are widened as load_npy does, and complex numbers have a last dimension of 2, the real and the
/// imaginary part. Error: another device or element type, or no elements where the shape
/// says there are.
AnyTensor load_dlpack(const DLTensor& tensor);
/// The same of DLPack 1.0 and later, whatever its flags, for it is only read. Error: another major version.
AnyTensor load_dlpack(const DlpackVersioned& tensor);

/// Hands a tensor over; the receiver calls the `deleter` of the result.
DLManagedTensor* to_dlpack(AnyTensor tensor);
/// The same as DLPack 1.0 and later want it; `flags`: dlpack_read_only, dlpack_is_copied, or both.
DlpackVersioned* to_dlpack_versioned(AnyTensor tensor, std::uint64_t flags = 0);

/// A tensor as a DLTensor, without a copy: other libraries may read it, or write to it where it is not const,
/// as long as the memory and this object are there. (Of a TensorValue<bool>, whose bits no library can read,
/// a copy.)
class DlpackView {
 public:
  explicit DlpackView(AnyView view);
  DlpackView(const DlpackView&) = delete;
  DlpackView& operator=(const DlpackView&) = delete;

  const DLTensor& get() const { return tensor_; }

 private:
  AnyView view_;
  std::vector<std::int64_t> shape_, strides_;
  DLTensor tensor_{};
};

}  // namespace lantern
