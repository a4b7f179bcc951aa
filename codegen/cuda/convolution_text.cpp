// Convolutions of pictures on the GPU by cuDNN's backend API: forward, and the derivatives by the picture and by the weights.
#include "lantern/codegen/c/prelude_text.hpp"
#include "lantern/codegen/cuda/layouts.hpp"

namespace lantern::codegen {

using enum PreludeGroup;

const std::vector<PreludePart>& device_convolution_parts();

const std::vector<PreludePart>& device_convolution_parts() {
  static const std::vector<PreludePart> parts = {
      {"device_convolution",
       types,
       {},
       R"c(/* y[n,o,i,j] = sum over c, p and q of x[n,c,s i + d p,t j + e q] w[o,c,p,q], and what gives w or x from the other two:
   its adjoints. No place lies outside x. Where x has more channels than w has inputs, each group of outputs reads its own. */
typedef struct lt_convolution {
  int bytes;           /* of an element: a float or a double */
  int computed, fresh; /* 0: y, 1: w, 2: x; whether that begins without values, not to be added to */
  void *x, *w, *y;
  int64_t x_size[4], w_size[4], y_size[4], x_step[4], w_step[4], y_step[4], stride[2], dilation[2];
} lt_convolution;
)c"},
      {"dnn_layout", functions, {}, cuda_text::dnn_layout},
      {"convolved",
       functions,
       {"device_convolution", "blas", "dnn_layout"},
       R"c(static lt_dnn* lt_dnn_of(lt_workspace* ws) {
#ifdef LANTERN_LAUNCH_EMULATOR
  (void)ws;
  return 0;
#else
  lt_device* device = ws->device;
  if (device->dnn || device->no_dnn) return device->dnn;
  device->no_dnn = 1;
  const char* wanted = getenv("LANTERN_CUDNN");
  if (wanted && wanted[0] == '0') return 0;
  void* library = dlopen("libcudnn.so.9", RTLD_NOW);
  lt_dnn* dnn = library ? (lt_dnn*)calloc(1, sizeof(lt_dnn)) : 0;
  if (!dnn) return 0;
  int (*create)(void**) = (int (*)(void**))dlsym(library, "cudnnCreate");
  size_t (*version)(void) = (size_t(*)(void))dlsym(library, "cudnnGetVersion");
  *(void**)&dnn->destroy = dlsym(library, "cudnnDestroy");
  *(void**)&dnn->set_stream = dlsym(library, "cudnnSetStream");
  *(void**)&dnn->make = dlsym(library, "cudnnBackendCreateDescriptor");
  *(void**)&dnn->drop = dlsym(library, "cudnnBackendDestroyDescriptor");
  *(void**)&dnn->finish = dlsym(library, "cudnnBackendFinalize");
  *(void**)&dnn->set = dlsym(library, "cudnnBackendSetAttribute");
  *(void**)&dnn->get = dlsym(library, "cudnnBackendGetAttribute");
  *(void**)&dnn->execute = dlsym(library, "cudnnBackendExecute");
  cudaDeviceProp gpu;
  int number = 0;
  if (!create || !version || !dnn->destroy || !dnn->set_stream || !dnn->make || !dnn->drop || !dnn->finish || !dnn->set || !dnn->get ||
      !dnn->execute || cudaGetDevice(&number) != cudaSuccess || cudaGetDeviceProperties(&gpu, number) != cudaSuccess ||
      create(&dnn->handle) != 0 || cudaMalloc(&dnn->room, LT_BLAS_ROOM) != cudaSuccess) {
    (void)cudaGetLastError();
    if (dnn->handle) dnn->destroy(dnn->handle);
    free(dnn);
    return 0;
  }
  snprintf(dnn->about, sizeof dnn->about, "%s, %d multiprocessors, cuDNN %d", gpu.name, device->processors, (int)version());
  device->dnn = dnn;
  device->no_dnn = 0;
  return dnn;
#endif
}

/* A descriptor of a plan; null where that failed. */
static void* lt_dnn_make(const lt_dnn* dnn, lt_dnn_plan* plan, int kind) {
  void* made = 0;
  if (plan->count == LT_DNN_DESCRIPTORS || dnn->make(kind, &made) != 0) return 0;
  return plan->descriptors[plan->count++] = made;
}

/* cuDNN's numbers for its attributes and types. */
enum {
  LT_DNN_HANDLE = 0, LT_DNN_DATA_TYPE = 1, LT_DNN_INT64 = 3, LT_DNN_FLOAT = 4, LT_DNN_DOUBLE = 5, LT_DNN_POINTER = 6,
  LT_DNN_MODE = 7, LT_DNN_HEURISTIC = 8, LT_DNN_NOTE = 11, LT_DNN_DESCRIPTOR = 15
};

/* A tensor with the number by which a call names its memory. */
static void* lt_dnn_tensor(const lt_dnn* dnn, lt_dnn_plan* plan, int64_t name, int type, int64_t alignment, const int64_t* size,
                           const int64_t* step) {
  void* t = lt_dnn_make(dnn, plan, 17);
  if (!t || dnn->set(t, 901, LT_DNN_DATA_TYPE, 1, &type) != 0 || dnn->set(t, 902, LT_DNN_INT64, 4, size) != 0 ||
      dnn->set(t, 903, LT_DNN_INT64, 4, step) != 0 || dnn->set(t, 906, LT_DNN_INT64, 1, &name) != 0 ||
      dnn->set(t, 900, LT_DNN_INT64, 1, &alignment) != 0 || dnn->finish(t) != 0)
    return 0;
  return t;
}

/* Plans that may be used, the one first that cuDNN thinks is the fastest: they give the same bits each time, round no factor
   unless that was asked for, have no larger errors than sums of products, and need no more memory than there is. How many. */
#define LT_DNN_WAYS 8
static int lt_dnn_ways(const lt_dnn* dnn, lt_dnn_plan* plan, void* graph, void** ways) {
  int there = 0;
  for (int mode = 3, last = 0; !last && there == 0; mode = 2) { /* its usual choice, then whatever works */
    last = mode == 2;
    void* configurations[16];
    int64_t made = 0, found = 0;
    while (made < 16 && (configurations[made] = lt_dnn_make(dnn, plan, 3))) ++made;
    void* heuristic = lt_dnn_make(dnn, plan, 4);
    if (!heuristic || dnn->set(heuristic, 201, LT_DNN_DESCRIPTOR, 1, &graph) != 0 ||
        dnn->set(heuristic, 200, LT_DNN_HEURISTIC, 1, &mode) != 0 || dnn->finish(heuristic) != 0 ||
        dnn->get(heuristic, 202, LT_DNN_DESCRIPTOR, made, &found, configurations) != 0)
      continue;
    for (int64_t k = 0; k < found && k < made && there < LT_DNN_WAYS; ++k) {
      void *engine = lt_dnn_make(dnn, plan, 2), *way = 0;
      int notes[16];
      int64_t count = 0, bytes = 0;
      if (!engine || dnn->get(configurations[k], 300, LT_DNN_DESCRIPTOR, 1, &count, &engine) != 0 ||
          dnn->get(engine, 1303, LT_DNN_NOTE, 10, &count, notes) != 0)
        continue;
      int good = 1;
      for (int64_t i = 0; i < count && i < 10; ++i) /* 0: tensor cores, 1 and 2: less precision, 4: other bits; Fourier, Winograd */
        if (notes[i] > 1 ? notes[i] < 9 : LT_F32_PRODUCTS == 68) good = 0;
      if (!good || dnn->make(5, &way) != 0) continue;
      (void)dnn->set(way, 400, LT_DNN_HANDLE, 1, &dnn->handle); /* older versions ask for it */
      if (dnn->set(way, 401, LT_DNN_DESCRIPTOR, 1, &configurations[k]) == 0 && dnn->finish(way) == 0 &&
          dnn->get(way, 402, LT_DNN_INT64, 1, &count, &bytes) == 0 && bytes <= (int64_t)LT_BLAS_ROOM)
        ways[there++] = way;
      else
        dnn->drop(way);
    }
  }
  return there;
}

/* Queues a plan for tensors x, w and y; whether cuDNN has taken it. */
static bool lt_dnn_queue(lt_workspace* ws, const lt_dnn* dnn, void* way, void* const* data) {
  const int64_t names[3] = {'x', 'w', 'y'};
  void* pack = 0;
  const bool done = dnn->set_stream(dnn->handle, ws->device->stream) == 0 && dnn->make(16, &pack) == 0 &&
                    dnn->set(pack, 1000, LT_DNN_INT64, 3, names) == 0 && dnn->set(pack, 1001, LT_DNN_POINTER, 3, data) == 0 &&
                    dnn->set(pack, 1003, LT_DNN_POINTER, 1, &dnn->room) == 0 && dnn->finish(pack) == 0 &&
                    dnn->execute(dnn->handle, way, pack) == 0;
  if (pack) dnn->drop(pack);
  return done;
}

/* The shortest time of three runs, behind one that loads what a plan needs; negative: it does not run. */
static double lt_dnn_seconds(lt_workspace* ws, const lt_dnn* dnn, void* way, void* const* data) {
  double best = -1;
  for (int run = 0; run < 4; ++run) {
    struct timespec from, to;
    lt_gpu(ws, cudaStreamSynchronize(ws->device->stream));
    clock_gettime(CLOCK_MONOTONIC, &from);
    if (!lt_dnn_queue(ws, dnn, way, data)) return -1;
    lt_gpu(ws, cudaStreamSynchronize(ws->device->stream));
    clock_gettime(CLOCK_MONOTONIC, &to);
    const double seconds = (double)(to.tv_sec - from.tv_sec) + 1e-9 * (double)(to.tv_nsec - from.tv_nsec);
    if (run > 0 && (best < 0 || seconds < best)) best = seconds;
  }
  return best;
}

/* The file of the user's cache that keeps which plan was the fastest, to be read and to be added to: a line for each convolution,
   of which the first one counts. Null: there is none. */
static FILE* lt_dnn_kept(void) {
  const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
  const bool own = cache && cache[0] == '/';
  char path[1024];
  if (!own && (!home || home[0] != '/')) return 0;
  if (snprintf(path, sizeof path, "%s%s", own ? cache : home, own ? "" : "/.cache") > 900) return 0;
  mkdir(path, 0700);
  strcat(path, "/lantern");
  mkdir(path, 0700);
  strcat(path, "/convolutions");
  FILE* file = fopen(path, "a+");
  if (file && fseek(file, 0, SEEK_END) == 0 && ftell(file) > 4l << 20) { /* enough: it begins again */
    fclose(file);
    file = fopen(path, "w+");
  }
  return file;
}

/* Which plan a file names for a convolution; -1: none. */
static int lt_dnn_read(FILE* file, const char* text) {
  char line[2048];
  const size_t length = strlen(text);
  rewind(file);
  while (fgets(line, sizeof line, file))
    if (strncmp(line, text, length) == 0 && line[length] >= '0' && line[length] < '0' + LT_DNN_WAYS && line[length + 1] == '\n')
      return line[length] - '0';
  return -1;
}

/* The elements from a tensor's first one to its last. */
static int64_t lt_dnn_extent(const int64_t* size, const int64_t* step) {
  int64_t last = 0;
  for (int d = 0; d < 4; ++d) last += (size[d] - 1) * step[d];
  return last + 1;
}

/* Which of the plans is the fastest; -1: that cannot be said. */
static int lt_dnn_measured(lt_workspace* ws, const lt_dnn* dnn, const lt_convolution* c, const int64_t* x_size, int count, void* const* ways) {
  void *data[3] = {c->x, c->w, c->y}, *instead = 0;
  if (!c->fresh) { /* to the result these runs must not add */
    const int64_t elements = c->computed == 0   ? lt_dnn_extent(c->y_size, c->y_step)
                             : c->computed == 1 ? lt_dnn_extent(c->w_size, c->w_step)
                                                : lt_dnn_extent(x_size, c->x_step);
    if (cudaMalloc(&instead, (size_t)(elements * c->bytes)) != cudaSuccess) {
      (void)cudaGetLastError();
      return -1;
    }
    data[c->computed == 0 ? 2 : c->computed == 1 ? 1 : 0] = instead;
  }
  int fastest = -1;
  double best = 0;
  for (int k = 0; k < count; ++k) {
    const double seconds = lt_dnn_seconds(ws, dnn, ways[k], data);
    if (seconds >= 0 && (fastest < 0 || seconds < best)) best = seconds, fastest = k;
  }
  if (instead) lt_gpu(ws, cudaFree(instead));
  return fastest;
}

/* One of the plans: the fastest one, as this call finds or an earlier one has kept, so that all calls after the first take the
   same. Where that cannot be kept, the first one. */
static int lt_dnn_chosen(lt_workspace* ws, const lt_dnn* dnn, const lt_dnn_plan* plan, const lt_convolution* c, const int64_t* x_size,
                         int count, void* const* ways) {
  char text[1536];
  const char* wanted = getenv("LANTERN_CUDNN");
  FILE* file = count > 1 && !(wanted && strcmp(wanted, "first") == 0) ? lt_dnn_kept() : 0;
  if (!file) return 0;
  int length = snprintf(text, sizeof text, "%s:", dnn->about);
  for (int k = 0; k < LT_DNN_KEY; ++k) length += snprintf(text + length, sizeof text - (size_t)length, " %lld", (long long)plan->key[k]);
  snprintf(text + length, sizeof text - (size_t)length, " = ");
  int chosen = lt_dnn_read(file, text);
  if (chosen < 0) {
    const int fastest = lt_dnn_measured(ws, dnn, c, x_size, count, ways);
    if (fastest >= 0) {
      fseek(file, 0, SEEK_END);
      fprintf(file, "%s%d\n", text, fastest);
      fflush(file);
      chosen = lt_dnn_read(file, text); /* another process may have been earlier */
    }
  }
  fclose(file);
  return chosen >= 0 && chosen < count ? chosen : 0;
}

/* Finds a plan for what an operation graph says, if there is one. */
static void lt_dnn_choose(lt_workspace* ws, const lt_dnn* dnn, lt_dnn_plan* plan, void* graph, const lt_convolution* c,
                          const int64_t* x_size) {
  void* ways[LT_DNN_WAYS];
  const int count = lt_dnn_ways(dnn, plan, graph, ways), chosen = lt_dnn_chosen(ws, dnn, plan, c, x_size, count, ways);
  for (int k = 0; k < count; ++k)
    if (k != chosen || plan->count == LT_DNN_DESCRIPTORS) dnn->drop(ways[k]);
    else plan->way = plan->descriptors[plan->count++] = ways[k];
}

/* The plan for a convolution of these sizes; its `way` is null where cuDNN has none. */
static lt_dnn_plan* lt_dnn_plan_of(lt_workspace* ws, lt_dnn* dnn, const lt_convolution* c, const int64_t* x_size, int64_t alignment) {
  int64_t key[LT_DNN_KEY] = {c->bytes, c->computed, c->fresh, alignment};
  for (int d = 0; d < 4; ++d) {
    const int64_t facts[] = {x_size[d], c->w_size[d], c->y_size[d], c->x_step[d], c->w_step[d], c->y_step[d]};
    for (int f = 0; f < 6; ++f) key[4 + 6 * d + f] = facts[f];
  }
  for (int d = 0; d < 2; ++d) key[28 + d] = c->stride[d], key[30 + d] = c->dilation[d];
  key[32] = LT_F32_PRODUCTS;
  for (lt_dnn_plan* known = dnn->plans; known; known = known->next)
    if (memcmp(known->key, key, sizeof key) == 0) return known;
  lt_dnn_plan* plan = (lt_dnn_plan*)calloc(1, sizeof(lt_dnn_plan));
  if (!plan) return 0;
  memcpy(plan->key, key, sizeof key);
  plan->next = dnn->plans;
  dnn->plans = plan;

  const bool doubles = c->bytes == 8;
  const int type = doubles ? 1 : 0, number = doubles ? LT_DNN_DOUBLE : LT_DNN_FLOAT, correlation = 1;
  const int64_t dimensions = 2, none[2] = {0, 0};
  const double of_doubles[2] = {1, c->fresh ? 0.0 : 1.0};
  const float of_floats[2] = {1, c->fresh ? 0.0f : 1.0f};
  const void* const one = doubles ? (const void*)of_doubles : of_floats;
  const void* const kept = doubles ? (const void*)(of_doubles + 1) : of_floats + 1;
  void* x = lt_dnn_tensor(dnn, plan, 'x', type, alignment, x_size, c->x_step);
  void* w = lt_dnn_tensor(dnn, plan, 'w', type, alignment, c->w_size, c->w_step);
  void* y = lt_dnn_tensor(dnn, plan, 'y', type, alignment, c->y_size, c->y_step);
  void* convolution = lt_dnn_make(dnn, plan, 1);
  if (!x || !w || !y || !convolution || dnn->set(convolution, 100, LT_DNN_DATA_TYPE, 1, &type) != 0 ||
      dnn->set(convolution, 101, LT_DNN_MODE, 1, &correlation) != 0 || dnn->set(convolution, 102, LT_DNN_INT64, 2, c->dilation) != 0 ||
      dnn->set(convolution, 103, LT_DNN_INT64, 2, c->stride) != 0 || dnn->set(convolution, 104, LT_DNN_INT64, 2, none) != 0 ||
      dnn->set(convolution, 105, LT_DNN_INT64, 2, none) != 0 || dnn->set(convolution, 106, LT_DNN_INT64, 1, &dimensions) != 0 ||
      dnn->finish(convolution) != 0)
    return plan;
  /* Of each kind of operation: its number, the first of its attributes (alpha, beta, convolution), and those of x, w and y. */
  static const int kinds[3][5] = {{10, 700, 704, 703, 705}, {11, 712, 716, 715, 717}, {12, 706, 710, 709, 711}};
  const int* const kind = kinds[c->computed];
  void *operation = lt_dnn_make(dnn, plan, kind[0]), *graph = lt_dnn_make(dnn, plan, 15);
  if (!operation || !graph || dnn->set(operation, kind[1], number, 1, one) != 0 ||
      dnn->set(operation, kind[1] + 1, number, 1, kept) != 0 ||
      dnn->set(operation, kind[1] + 2, LT_DNN_DESCRIPTOR, 1, &convolution) != 0 ||
      dnn->set(operation, kind[2], LT_DNN_DESCRIPTOR, 1, &x) != 0 || dnn->set(operation, kind[3], LT_DNN_DESCRIPTOR, 1, &w) != 0 ||
      dnn->set(operation, kind[4], LT_DNN_DESCRIPTOR, 1, &y) != 0 || dnn->finish(operation) != 0 ||
      dnn->set(graph, 800, LT_DNN_HANDLE, 1, &dnn->handle) != 0 || dnn->set(graph, 801, LT_DNN_DESCRIPTOR, 1, &operation) != 0 ||
      dnn->finish(graph) != 0)
    return plan;
  lt_dnn_choose(ws, dnn, plan, graph, c, x_size);
  return plan;
}

/* By cuDNN, where it computes that; whether it did. */
static bool lt_convolved(lt_workspace* ws, const lt_convolution* c) {
  int64_t x_size[4];
  bool whole = true;
  for (int d = 0; d < 4; ++d) {
    x_size[d] = c->x_size[d];
    if (c->w_size[d] <= 0 || c->y_size[d] <= 0 || x_size[d] <= 0) return false;
    if (d < 2) continue;
    /* cuDNN has as many places as fit: what lies behind the last one of ours is no part of its picture. */
    const int64_t read = c->stride[d - 2] * (c->y_size[d] - 1) + c->dilation[d - 2] * (c->w_size[d] - 1) + 1;
    if (x_size[d] - read < c->stride[d - 2]) continue;
    x_size[d] = read;
    whole = false;
  }
  lt_dnn* dnn = lt_dnn_of(ws);
  if (!dnn) return false;
  const uintptr_t places = (uintptr_t)c->x | (uintptr_t)c->w | (uintptr_t)c->y;
  lt_dnn_plan* plan = lt_dnn_plan_of(ws, dnn, c, x_size, places % 16 == 0 ? 16 : c->bytes);
  if (!plan || !plan->way) return false;
  if (ws->device->skip && ws->device->skip()) {
    ++ws->device->launches;
    return true;
  }
  if (!whole && c->computed == 2 && c->fresh) /* cuDNN writes its own picture only */
    lt_gpu(ws, cudaMemsetAsync(c->x, 0, (size_t)(lt_dnn_extent(c->x_size, c->x_step) * c->bytes), ws->device->stream));
  void* const data[3] = {c->x, c->w, c->y};
  const bool done = lt_dnn_queue(ws, dnn, plan->way, data);
  if (done) ++ws->device->launches;
  else plan->way = 0; /* it is not tried again */
  return done;
}
)c"},
  };
  return parts;
}

}  // namespace lantern::codegen
