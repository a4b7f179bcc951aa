// What every source of --emit=mex has between the generated code and the functions that call it.
#pragma once

namespace lantern::tool {

inline constexpr const char* mex_helpers = R"c(
/* Octave and MATLAB: what mxMalloc gives is freed when the call ends, with an error or without. */
#include <math.h>
#include <string.h>
#include "mex.h"

typedef struct {
  const char* function;
  const char* name;
} lt_mex_place;

/* The element as a double. Only called for these two classes. */
static double lt_mex_element(const mxArray* a, size_t i) {
  return mxIsLogical(a) ? (double)((const mxLogical*)mxGetData(a))[i] : ((const double*)mxGetData(a))[i];
}

/* Writes a number as an element of a class. */
static void lt_mex_store(lt_mex_place at, mxClassID class_, void* to, size_t i, double x) {
  const double limit = class_ == mxINT32_CLASS ? 2147483648.0 : 9223372036854775808.0;
  if (class_ == mxDOUBLE_CLASS) {
    ((double*)to)[i] = x;
  } else if (class_ == mxSINGLE_CLASS) {
    ((float*)to)[i] = (float)x;
  } else if (class_ == mxLOGICAL_CLASS) {
    if (x != x) mexErrMsgIdAndTxt("lantern:argument", "%s: %s: NaN is neither true nor false", at.function, at.name);
    ((mxLogical*)to)[i] = x != 0;
  } else {
    if (!(x >= -limit && x < limit && floor(x) == x))
      mexErrMsgIdAndTxt("lantern:argument", "%s: %s: expected a whole number of %d bits, got %.17g", at.function, at.name,
                        class_ == mxINT32_CLASS ? 32 : 64, x);
    if (class_ == mxINT32_CLASS) ((int32_t*)to)[i] = (int32_t)x;
    else ((int64_t*)to)[i] = (int64_t)x;
  }
}

/* The elements of an array in the other order of dimensions: the first varies slowest in C, and fastest in Octave. */
static void lt_mex_transpose(char* c, char* octave, int rank, const int64_t* dim, size_t size, int to_c) {
  int64_t at[16] = {0};
  int64_t count = 1, stride[16];
  for (int r = 0; r < rank; ++r) {
    stride[r] = count;
    count *= dim[r];
  }
  int64_t from = 0;
  for (int64_t i = 0; i < count; ++i) {
    if (to_c) memcpy(c + (size_t)i * size, octave + (size_t)from * size, size);
    else memcpy(octave + (size_t)from * size, c + (size_t)i * size, size);
    for (int r = rank - 1; r >= 0; --r) {
      from += stride[r];
      if (++at[r] < dim[r]) break;
      from -= stride[r] * dim[r];
      at[r] = 0;
    }
  }
}

/* The elements of an argument in C's order, and its sizes. Of one dimension and the right class they are not copied. */
static const void* lt_mex_argument(lt_mex_place at, const mxArray* a, mxClassID class_, const char* class_name, size_t size,
                                   int rank, int64_t* dim) {
  const mwSize* shape = mxGetDimensions(a);
  const int given = (int)mxGetNumberOfDimensions(a);
  const int64_t count = (int64_t)mxGetNumberOfElements(a);
  if (mxIsComplex(a) || mxIsSparse(a) || (mxGetClassID(a) != class_ && !mxIsDouble(a) && !mxIsLogical(a)))
    mexErrMsgIdAndTxt("lantern:argument", "%s: %s: expected %s%s, real and full, got %s%s", at.function, at.name,
                      class_name, class_ == mxDOUBLE_CLASS ? "" : " or double", mxIsComplex(a) ? "complex " : mxIsSparse(a) ? "sparse " : "", mxGetClassName(a));
  int extended = 0; /* dimensions of another size than 1 */
  for (int r = 0; r < given; ++r) extended += shape[r] != 1;
  if (rank == 0 ? count != 1 : rank == 1 ? extended > 1 && count > 0 : given > rank)
    mexErrMsgIdAndTxt("lantern:argument", "%s: %s: expected %s, got an array of %d dimensions with %lld elements", at.function,
                      at.name, rank == 0 ? "a number" : rank == 1 ? "a row or a column" : rank == 2 ? "a matrix" : "fewer dimensions",
                      given, (long long)count);
  for (int r = 0; r < rank; ++r) dim[r] = rank == 1 ? count : r < given ? (int64_t)shape[r] : 1;
  char* data = (char*)mxGetData(a);
  if (mxGetClassID(a) != class_) {
    char* converted = (char*)mxMalloc((size_t)(count + 1) * size);
    for (size_t i = 0; i < (size_t)count; ++i) lt_mex_store(at, class_, converted, i, lt_mex_element(a, i));
    data = converted;
  }
  if (rank < 2) return data;
  char* transposed = (char*)mxMalloc((size_t)(count + 1) * size);
  lt_mex_transpose(transposed, data, rank, dim, size, 1);
  return transposed;
}

/* A result as an array of Octave's. */
static mxArray* lt_mex_result(mxClassID class_, size_t size, int rank, const int64_t* dim, const void* data) {
  mwSize shape[16] = {1, 1};
  for (int r = 0; r < rank; ++r) shape[r] = (mwSize)dim[r];
  const mwSize dimensions = rank < 2 ? 2 : (mwSize)rank;
  mxArray* a = class_ == mxLOGICAL_CLASS ? mxCreateLogicalArray(dimensions, shape)
                                         : mxCreateNumericArray(dimensions, shape, class_, mxREAL);
  const size_t count = mxGetNumberOfElements(a);
  if (rank < 2 && count > 0) memcpy(mxGetData(a), data, count * size);
  else lt_mex_transpose((char*)data, (char*)mxGetData(a), rank, dim, size, 0);
  return a;
}

static void lt_mex_require_counts(const char* function, int results, int most, int arguments, int expected) {
  if (arguments != expected)
    mexErrMsgIdAndTxt("lantern:argument", "%s: expected %d argument%s, got %d", function, expected, expected == 1 ? "" : "s", arguments);
  if (results > most)
    mexErrMsgIdAndTxt("lantern:argument", "%s: it has %d result%s, not %d", function, most, most == 1 ? "" : "s", results);
}
)c";

}  // namespace lantern::tool
