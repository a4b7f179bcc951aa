// Products of two tensors on the GPU: cuBLAS for those that are products of matrices, one after the other or in a
// batch; a kernel with tiles in shared memory for all others, convolutions among them.
#include "lantern/codegen/c/prelude_text.hpp"
#include "lantern/codegen/cuda/layouts.hpp"

namespace lantern::codegen {

using enum PreludeGroup;

const std::vector<PreludePart>& device_contraction_parts();

const std::vector<PreludePart>& device_contraction_parts() {
  static const std::vector<PreludePart> parts = {
      {"K:device_contraction", types, {}, R"c(/* r[b,i,j] += sum over k of x[b,i,k] y[b,k,j], where b, i, j and k are groups of indices: how many each group has,
   their sizes, and by how many elements each steps in x, y and r. `fresh`: r begins with zeros, whatever it holds. */
typedef struct lt_contraction_$K {
  const $T* x;
  const $T* y;
  $R* r;
  int fresh, rank[4];
  int64_t size[26], x_step[26], y_step[26], r_step[26];
} lt_contraction_$K;
)c"},
      {"K:merged_contraction", functions, {"K:device_contraction"}, R"c(/* Neighbouring indices that step through all three tensors as one become one. */
static lt_contraction_$K lt_merged_$K(const lt_contraction_$K* c) {
  lt_contraction_$K all = *c;
  int to = 0;
  for (int g = 0, d = 0; g < 4; ++g) {
    const int first = to;
    for (int e = 0; e < c->rank[g]; ++e, ++d) {
      const int64_t n = c->size[d];
      if (n == 1) continue;
      const int last = to - 1;
      if (to > first && all.x_step[last] == n * c->x_step[d] && all.y_step[last] == n * c->y_step[d] &&
          all.r_step[last] == n * c->r_step[d])
        all.size[last] *= n;
      else
        all.size[to++] = n;
      all.x_step[to - 1] = c->x_step[d];
      all.y_step[to - 1] = c->y_step[d];
      all.r_step[to - 1] = c->r_step[d];
    }
    all.rank[g] = to - first;
  }
  return all;
}
)c"},
      {"blas_layout", functions, {}, cuda_text::blas_layout},
      {"blas", functions, {"gpu", "blas_layout"}, R"c(#define LT_BLAS_ROOM ((size_t)32 << 20)
#define LT_F32_PRODUCTS 68

static const lt_blas* lt_blas_of(lt_workspace* ws) {
#ifdef LANTERN_LAUNCH_EMULATOR
  (void)ws;
  return 0;
#else
  lt_device* device = ws->device;
  if (device->blas || device->no_blas) return device->blas;
  device->no_blas = 1;
  void* library = dlopen("libcublas.so.13", RTLD_NOW);
  if (!library) library = dlopen("libcublas.so.12", RTLD_NOW);
  if (!library) library = dlopen("libcublas.so", RTLD_NOW);
  if (!library) return 0;
  int (*create)(void**) = (int (*)(void**))dlsym(library, "cublasCreate_v2");
  lt_blas* blas = (lt_blas*)calloc(1, sizeof(lt_blas));
  if (!blas) return 0;
  blas->destroy = (int (*)(void*))dlsym(library, "cublasDestroy_v2");
  blas->set_stream = (int (*)(void*, cudaStream_t))dlsym(library, "cublasSetStream_v2");
  blas->set_room = (int (*)(void*, void*, size_t))dlsym(library, "cublasSetWorkspace_v2");
  *(void**)&blas->multiply = dlsym(library, "cublasGemmStridedBatchedEx");
  if (!create || !blas->destroy || !blas->set_room || !blas->set_stream || !blas->multiply || create(&blas->handle) != 0 ||
      cudaMalloc(&blas->room, LT_BLAS_ROOM) != cudaSuccess) {
    (void)cudaGetLastError();
    if (blas->handle) blas->destroy(blas->handle);
    free(blas);
    return 0;
  }
  device->blas = blas;
  device->no_blas = 0;
  return blas;
#endif
}
)c"},
      {"K:tiles", types, {"K:device_contraction"}, R"c(/* What a block of the kernel below needs to find its elements: each index of a group, with its size and steps. */
typedef struct lt_tiles_$K {
  lt_contraction_$K c;
  $S scale;                 /* of what is added to r */
  int64_t count[4], share;  /* of each group; how many sums a block takes */
  $S* parts;                /* where the blocks that share sums put them; null: none do */
} lt_tiles_$K;
)c"},
      {"K:tile_kernel", kernels, {"K:tiles"}, R"c(static __device__ int64_t lt_offset_$K(int64_t number, int rank, const int64_t* size, const int64_t* step) {
  int64_t offset = 0;
  for (int d = rank - 1; d >= 0; --d) {
    if (d == 0) return offset + number * step[0];
    const int64_t rest = number / size[d];
    offset += (number - rest * size[d]) * step[d];
    number = rest;
  }
  return offset;
}

/* 64 x 64 elements a block of 16 x 16 threads, each of them 4 x 4; 16 sums at a time in shared memory. */
LT_KERNEL void lt_tile_kernel_$K(lt_tiles_$K t) {
  __shared__ $S x[16][65], y[16][65];
  __shared__ int64_t x_row[64], y_column[64], r_row[64], r_column[64], x_sum[16], y_sum[16];
  const lt_contraction_$K& c = t.c;
  const int row = c.rank[0], column = row + c.rank[1], sum = column + c.rank[2];
  const int thread = threadIdx.y * 16 + threadIdx.x;
  const int64_t i0 = (int64_t)blockIdx.y * 64, columns = (t.count[2] + 63) / 64;
  const int64_t j0 = (int64_t)blockIdx.x % columns * 64, batch = (int64_t)blockIdx.x / columns;
  const int64_t first = (int64_t)blockIdx.z * t.share, end = first + t.share < t.count[3] ? first + t.share : t.count[3];
  const $T* const x_at = c.x + lt_offset_$K(batch, c.rank[0], c.size, c.x_step);
  const $T* const y_at = c.y + lt_offset_$K(batch, c.rank[0], c.size, c.y_step);
  if (thread < 64) {
    const int64_t i = i0 + thread < t.count[1] ? i0 + thread : 0;
    x_row[thread] = lt_offset_$K(i, c.rank[1], c.size + row, c.x_step + row);
    r_row[thread] = lt_offset_$K(i, c.rank[1], c.size + row, c.r_step + row);
  } else if (thread < 128) {
    const int64_t j = j0 + thread - 64 < t.count[2] ? j0 + thread - 64 : 0;
    y_column[thread - 64] = lt_offset_$K(j, c.rank[2], c.size + column, c.y_step + column);
    r_column[thread - 64] = lt_offset_$K(j, c.rank[2], c.size + column, c.r_step + column);
  }
  $S sums[4][4] = {};
  for (int64_t k0 = first; k0 < end; k0 += 16) {
    __syncthreads();
    if (thread < 16) {
      const int64_t k = k0 + thread < end ? k0 + thread : 0;
      x_sum[thread] = lt_offset_$K(k, c.rank[3], c.size + sum, c.x_step + sum);
      y_sum[thread] = lt_offset_$K(k, c.rank[3], c.size + sum, c.y_step + sum);
    }
    __syncthreads();
    for (int e = thread; e < 1024; e += 256) {
      const int k = e / 64, at = e % 64;
      x[k][at] = k0 + k < end && i0 + at < t.count[1] ? ($S)x_at[x_row[at] + x_sum[k]] : ($S)0;
      y[k][at] = k0 + k < end && j0 + at < t.count[2] ? ($S)y_at[y_column[at] + y_sum[k]] : ($S)0;
    }
    __syncthreads();
    for (int k = 0; k < 16; ++k)
      for (int a = 0; a < 4; ++a)
        for (int b = 0; b < 4; ++b) sums[a][b] += x[k][threadIdx.y + 16 * a] * y[k][threadIdx.x + 16 * b];
  }
  __syncthreads();
  const int64_t r_batch = lt_offset_$K(batch, c.rank[0], c.size, c.r_step);
  for (int a = 0; a < 4; ++a)
    for (int b = 0; b < 4; ++b) {
      const int64_t i = i0 + threadIdx.y + 16 * a, j = j0 + threadIdx.x + 16 * b;
      if (i >= t.count[1] || j >= t.count[2]) continue;
      if (t.parts) {
        t.parts[(((int64_t)blockIdx.z * t.count[0] + batch) * t.count[1] + i) * t.count[2] + j] = sums[a][b];
      } else {
        $R* const to = c.r + r_batch + r_row[threadIdx.y + 16 * a] + r_column[threadIdx.x + 16 * b];
        *to = c.fresh ? t.scale * sums[a][b] : *to + t.scale * sums[a][b];
      }
    }
}

/* Adds up what blocks have shared. */
LT_KERNEL void lt_tile_sum_kernel_$K(lt_tiles_$K t, int64_t shares) {
  const lt_contraction_$K& c = t.c;
  const int row = c.rank[0], column = row + c.rank[1];
  const int64_t elements = t.count[0] * t.count[1] * t.count[2];
  for (int64_t e = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; e < elements; e += (int64_t)gridDim.x * blockDim.x) {
    $S sum = 0;
    for (int64_t s = 0; s < shares; ++s) sum += t.parts[s * elements + e];
    const int64_t rest = e / t.count[2], j = e - rest * t.count[2], batch = rest / t.count[1], i = rest - batch * t.count[1];
    $R* const to = c.r + lt_offset_$K(batch, c.rank[0], c.size, c.r_step) +
                   lt_offset_$K(i, c.rank[1], c.size + row, c.r_step + row) +
                   lt_offset_$K(j, c.rank[2], c.size + column, c.r_step + column);
    *to = c.fresh ? t.scale * sum : *to + t.scale * sum;
  }
}
)c"},
      {"K:device_contract",
       functions,
       {"K:merged_contraction", "K:tile_kernel", "blas", "blocks", "device_mark", "device_allocate"},
       R"c(/* By cuBLAS, where each of the three is a matrix in memory, or a row of them; whether it was. */
static bool lt_multiplied_$K(lt_workspace* ws, const lt_contraction_$K* c, const int64_t* count, $S scale) {
  /* Of cudaDataType and cublasComputeType_t. */
  const int type = $B, result = $C, arithmetic = sizeof($T) == 8 ? 70 : sizeof($T) == 2 ? 68 : LT_F32_PRODUCTS;
  const int row = c->rank[0], column = row + c->rank[1], sum = column + c->rank[2];
  const int64_t most = 2147483647;
  if (c->rank[0] > 1 || c->rank[1] > 1 || c->rank[2] > 1 || c->rank[3] > 1) return false;
  if (count[0] > most || count[1] > most || count[2] > most || count[3] > most || count[3] == 0) return false;
  const int64_t x_row = c->rank[1] ? c->x_step[row] : 0, x_sum = c->rank[3] ? c->x_step[sum] : 0,
                y_column = c->rank[2] ? c->y_step[column] : 0, y_sum = c->rank[3] ? c->y_step[sum] : 0,
                r_row = c->rank[1] ? c->r_step[row] : 0, r_column = c->rank[2] ? c->r_step[column] : 0;
  /* A matrix has a step of one in one direction, and steps over a whole line in the other. */
  const auto lies = [&](int64_t step, int64_t other, int64_t n, int64_t lines, int64_t* across) {
    if (n > 1 && step != 1) return false;
    *across = lines > 1 ? other : n;
    return *across >= n && *across <= most && *across > 0;
  };
  int64_t ldx, ldy, ldr;
  bool x_by_sums, y_by_columns;
  if (!lies(r_column, r_row, count[2], count[1], &ldr)) {
    if (!lies(r_row, r_column, count[1], count[2], &ldr)) return false;
    /* The result lies by columns: the product of the transposed matrices lies by rows. */
    lt_contraction_$K turned = *c;
    int64_t turned_count[4] = {count[0], count[2], count[1], count[3]};
    turned.x = c->y;
    turned.y = c->x;
    for (int d = 0; d < c->rank[0]; ++d) turned.x_step[d] = c->y_step[d], turned.y_step[d] = c->x_step[d];
    turned.rank[1] = c->rank[2];
    turned.rank[2] = c->rank[1];
    int to = row;
    for (int g = 0; g < 3; ++g) {
      const int from = g == 0 ? column : g == 1 ? row : sum;
      if (c->rank[g == 0 ? 2 : g == 1 ? 1 : 3] == 0) continue;
      turned.size[to] = c->size[from];
      turned.x_step[to] = c->y_step[from];
      turned.y_step[to] = c->x_step[from];
      turned.r_step[to++] = c->r_step[from];
    }
    return lt_multiplied_$K(ws, &turned, turned_count, scale);
  }
  if (lies(x_sum, x_row, count[3], count[1], &ldx)) x_by_sums = true;
  else if (lies(x_row, x_sum, count[1], count[3], &ldx)) x_by_sums = false;
  else return false;
  if (lies(y_column, y_sum, count[2], count[3], &ldy)) y_by_columns = true;
  else if (lies(y_sum, y_column, count[3], count[2], &ldy)) y_by_columns = false;
  else return false;
  const lt_blas* blas = lt_blas_of(ws);
  if (!blas) return false;
  const $S beta = c->fresh ? 0 : 1;
  if (ws->device->skip && ws->device->skip()) {
    ++ws->device->launches;
    return true;
  }
  if (blas->set_stream(blas->handle, ws->device->stream) != 0 ||
      blas->set_room(blas->handle, blas->room, LT_BLAS_ROOM) != 0)
    return false;
  /* cuBLAS has matrices by columns: r^T = y^T x^T. */
  const int status = blas->multiply(
      blas->handle, y_by_columns ? 0 : 1, x_by_sums ? 0 : 1, (int)count[2], (int)count[1], (int)count[3], &scale, c->y, type,
      (int)ldy, c->rank[0] ? c->y_step[0] : 0, c->x, type, (int)ldx, c->rank[0] ? c->x_step[0] : 0, &beta, c->r, result,
      (int)ldr, c->rank[0] ? c->r_step[0] : 0, (int)count[0], arithmetic, -1);
  ++ws->device->launches;
  return status == 0;
}

static void lt_device_contract_scaled_$K(lt_workspace* ws, const lt_contraction_$K* given, $S scale) {
  lt_tiles_$K t;
  t.scale = scale;
  t.c = lt_merged_$K(given);
  for (int g = 0, d = 0; g < 4; ++g) {
    t.count[g] = 1;
    for (int e = 0; e < t.c.rank[g]; ++e) t.count[g] *= t.c.size[d++];
  }
  if (t.count[0] <= 0 || t.count[1] <= 0 || t.count[2] <= 0 || t.count[3] < 0) return;
  if (lt_multiplied_$K(ws, &t.c, t.count, scale)) return;
  if (t.c.rank[0] == 2) { /* of batches of batches, as of heads, each of the fewer ones is a call of cuBLAS, where there is enough to do */
    const int split = t.c.size[0] <= t.c.size[1] ? 0 : 1;
    const int64_t parts = t.c.size[split], count[4] = {t.c.size[1 - split], t.count[1], t.count[2], t.count[3]};
    lt_contraction_$K one = t.c;
    one.rank[0] = 1;
    for (int d = split + 1; d < 2 + t.c.rank[1] + t.c.rank[2] + t.c.rank[3]; ++d) {
      one.size[d - 1] = t.c.size[d];
      one.x_step[d - 1] = t.c.x_step[d];
      one.y_step[d - 1] = t.c.y_step[d];
      one.r_step[d - 1] = t.c.r_step[d];
    }
    if ((double)count[0] * (double)count[1] * (double)count[2] * (double)count[3] >= 262144 && lt_multiplied_$K(ws, &one, count, scale)) {
      for (int64_t i = 1; i < parts; ++i) {
        one.x += t.c.x_step[split];
        one.y += t.c.y_step[split];
        one.r += t.c.r_step[split];
        lt_device_contract_scaled_$K(ws, &one, scale);
      }
      return;
    }
  }
  const lt_device_position mark = lt_device_mark(ws);
  const int64_t tiles = t.count[0] * ((t.count[2] + 63) / 64), rows = (t.count[1] + 63) / 64;
  if (tiles > 2147483647 || rows > 65535) ws->fail(ws, "a product of more than 65535 tiles of rows");
  /* Blocks share long sums, so many as sizes alone say. */
  int64_t shares = 264 / (tiles * rows);
  if (shares > t.count[3] / 256) shares = t.count[3] / 256;
  if (shares < 1) shares = 1;
  t.share = ((t.count[3] + shares - 1) / shares + 15) / 16 * 16;
  shares = t.share > 0 ? (t.count[3] + t.share - 1) / t.share : 1;
  if (shares < 1) shares = 1;
  t.parts = 0;
  const int64_t elements = t.count[0] * t.count[1] * t.count[2];
  if (shares > 1) t.parts = ($S*)lt_device_allocate(ws, shares * elements * (int64_t)sizeof($S));
  lt_tile_kernel_$K<<<dim3((unsigned)tiles, (unsigned)rows, (unsigned)shares), dim3(16, 16), 0, ws->device->stream>>>(t);
  lt_launched(ws);
  if (shares > 1) {
    lt_tile_sum_kernel_$K<<<lt_blocks(ws, elements), 256, 0, ws->device->stream>>>(t, shares);
    lt_launched(ws);
  }
  lt_device_leave(ws, mark);
}

static void lt_device_contract_$K(lt_workspace* ws, const lt_contraction_$K* c) {
  lt_device_contract_scaled_$K(ws, c, 1);
}

)c"},
      {"K:device_gemm", functions, {"K:device_contract"}, R"c(/* r += scale x y, or r = scale x y, of matrices whose rows and columns step as said; a row of r lies in one piece. */
static void lt_device_gemm_$K(lt_workspace* ws, int fresh, int64_t m, int64_t n, int64_t k, $S scale, const $T* x,
                              int64_t x_row, int64_t x_sum, const $T* y, int64_t y_sum, int64_t y_column, $R* r,
                              int64_t r_row) {
  const lt_contraction_$K c = {x,          y,           r, fresh, {0, 1, 1, 1}, {m, n, k}, {x_row, 0, x_sum}, {0, y_column, y_sum},
                               {r_row, 1, 0}};
  lt_device_contract_scaled_$K(ws, &c, scale);
}
)c"},
  };
  return parts;
}

}  // namespace lantern::codegen
