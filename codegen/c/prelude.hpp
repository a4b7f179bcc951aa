// The text that generated code brings along: types, memory, kernels. Only the parts that are asked for.
//
// The text includes no header and is accepted as C99 by tcc, gcc and clang, and as C++.
#pragma once

#include <set>
#include <string>
#include <unordered_set>
#include <vector>

#include "lantern/codegen/print_options.hpp"
#include "lantern/codegen/target.hpp"
#include "lantern/ir/type.hpp"

namespace lantern::codegen {

/// The size of a lane in a vector: of i32 and f32 four bytes, of truth values, which are masks, eight.
int lane_bytes(ir::Kind kind);
/// Of a vector on a tape, where truth values are bits; of another scalar, those of a lane.
int taped_bytes(const ir::Type& type);
/// The type of the bits of so many truth values.
std::string packed_truths(int lanes);

/// Collects parts; each `need` brings what the part depends on.
class Prelude {
 public:
  explicit Prelude(const Target& target, const PrintOptions& options = {})
      : target_(&target),
        strict_(options.strict_math),
        standalone_(options.standalone),
        vector_library_(options.vector_library) {}

  /// A part by name: "workspace", "mark", "fail_index", "fail_shapes", "fail_size", "tapes" ...
  void need(const std::string& part);
  /// A function over elements of one kind, by its name without the kind: "sum" for lt_sum_f64. Returns the
  /// name. `stored`: the elements are "f16" or "bf16" in memory, with which the kind computes; "f16_f32": but a product's result
  /// is not.
  std::string kernel(const std::string& name, ir::Kind kind, const std::string& stored = {});
  /// The type of vectors of so many lanes: lt_f64x8. Returns the name.
  std::string vector(ir::Kind kind, int lanes);
  /// A function on such vectors: lt_splat_f64x8, lt_sum_f64x8, lt_exp_f64x8 ... Returns the name.
  std::string vector_function(const std::string& what, ir::Kind kind, int lanes);
  /// The function that makes vectors of integers of vectors of floating numbers, as lt_i64_of_f64 does of
  /// one.
  std::string saturating(ir::Kind from, ir::Kind to, int lanes);
  /// The structure of a tensor: lt_f64_2d. Returns the name.
  std::string tensor(ir::Kind kind, int rank, const std::string& stored = {});
  /// The same with elements that are read only: lt_const_f64_2d.
  std::string const_tensor(ir::Kind kind, int rank);
  /// The same with a stride for each dimension, in elements.
  std::string strided_tensor(ir::Kind kind, int rank);
  std::string const_strided_tensor(ir::Kind kind, int rank);
  /// A function that makes one: lt_new_f64_2d, lt_zeros_f64_2d(ws, sizes...), lt_copy_f64_2d(ws, t); and
  /// lt_save_f64_2d(ws, number, t), lt_load_f64_2d(ws, number), which put it on a tape and take it off.
  std::string tensor_function(const std::string& what, ir::Kind kind, int rank, const std::string& stored = {});
  /// The structure of a tree: lt_tree_f64_i64. Returns the name.
  std::string tree(const ir::Type& type);
  /// lt_push_NAME or lt_pop_NAME for values of a C type; `slot` bytes are used on the tape. For loops that
  /// hold the top of a tape in a variable, without `slot`: lt_top_NAME and lt_end_NAME (of the memory),
  /// lt_room_NAME (the top, with room for what the iterations of a loop push, from the first
  /// to before the last, so much each) and lt_more_NAME (the top, with room for one value).
  std::string tape_function(const std::string& what, const std::string& type_name, const std::string& type,
                            const std::string& slot);
  /// A function of <math.h>, or lt_polygamma.
  void math(const std::string& name, ir::Kind kind);
  /// A type that the printer composes itself (structures of continuations and results).
  void add_type(const std::string& name, const std::string& text);

  /// Takes over what another source's prelude has besides.
  void merge(const Prelude& other);

  std::string text() const;
  /// Of a source in parts: its routines, which take long to compile, are functions of one part and declared in the
  /// others. `linkage` is before what all parts know.
  enum class Routines { here, elsewhere };
  std::string text(Routines where, const std::string& linkage) const;
  bool has_routines() const;

  /// Of a text for two machines: the types that either side uses; what both sides call, which is what
  /// `device` has; kernels; what this side calls besides.
  struct Sides {
    std::string types, both, kernels, host;
  };
  Sides sides(const Prelude& device) const;

 private:
  std::string tensor_type(const std::string& begin, const std::string& element, std::string_view kind, int rank, bool strides);
  enum class Group { basics, prototypes, types, functions, kernels };
  struct Part {
    Group group;
    std::string text;
    std::string routine = {};  ///< the name of the function that the text ends with
  };
  template <class Text>
  std::string joined(Text&& text_of) const;
  bool fresh(const std::string& id) { return seen_.insert(id).second; }
  void add(Group group, std::string text) {
    parts_.push_back({group, wide_.empty() ? std::move(text) : wide_by_reference(std::move(text))});
  }
  std::string wide_by_reference(std::string text) const;
  std::string part_by_part(const std::string& what, const std::string& function, ir::Kind kind, int lanes,
                           bool two);
  std::string half_by_half(const std::string& what, const std::string& function, ir::Kind kind, int lanes);
  std::string packed_by_halves(const std::string& what, int lanes);
  std::string vector_math_function(const std::string& name, const std::string& full, ir::Kind kind,
                                   int lanes);
  void masks(ir::Kind kind);
  std::string tensor_on_tape(const std::string& what, ir::Kind kind, int rank, const std::string& name);
  std::string device_tensor_function(const std::string& what, const std::string& type, const std::string& element, ir::Kind kind,
                                     int rank, const std::string& name);

  const Target* target_;
  bool strict_;
  bool standalone_;  ///< any compiler may read it
  bool vector_library_;
  std::unordered_set<std::string> seen_;
  std::vector<Part> parts_;
  std::set<std::string> wide_;  ///< vectors that functions take by reference; in an order that all units share
};

}  // namespace lantern::codegen
