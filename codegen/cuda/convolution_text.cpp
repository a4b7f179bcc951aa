// Convolutions of pictures on the GPU by cuDNN's backend API: forward, and the derivatives by the picture and by the weights.
#include "lantern/codegen/c/prelude_text.hpp"

namespace lantern::codegen {

using enum PreludeGroup;

const std::vector<PreludePart>& device_convolution_parts();

const std::vector<PreludePart>& device_convolution_parts() {
  static const std::vector<PreludePart> parts = {
      {"K:device_convolution", types, {}, R"c(/* y[n,o,i,j] = sum over c, p and q of x[n,c,s i + d p,t j + e q] w[o,c,p,q], and what gives w or x from the other two:
   its adjoints. No place lies outside x. Where x has more channels than w has inputs, each group of outputs reads its own. */
typedef struct lt_convolution_$K {
  int computed, fresh; /* 0: y, 1: w, 2: x; whether that begins with zeros, as x never does */
  $T *x, *w, *y;
  int64_t x_size[4], w_size[4], y_size[4], x_step[4], w_step[4], y_step[4], stride[2], dilation[2];
} lt_convolution_$K;
)c"},
      {"dnn", functions, {"blas"}, R"c(/* cuDNN, loaded when it is first needed. */
typedef struct lt_dnn {
  void* handle;
  int (*destroy)(void* handle);
  void* room;
  lt_dnn_plan* plans;
  int (*drop)(void* descriptor);
  int (*set_stream)(void* handle, cudaStream_t stream);
  int (*make)(int kind, void** descriptor);
  int (*finish)(void* descriptor);
  int (*set)(void* descriptor, int attribute, int type, int64_t count, const void* elements);
  int (*get)(void* descriptor, int attribute, int type, int64_t asked, int64_t* count, void* elements);
  int (*execute)(void* handle, void* plan, void* pack);
} lt_dnn;

static lt_dnn* lt_dnn_of(lt_workspace* ws) {
#ifdef LANTERN_LAUNCH_EMULATOR
  (void)ws;
  return 0;
#else
  lt_device* device = ws->device;
  if (device->dnn || device->no_dnn) return (lt_dnn*)device->dnn;
  device->no_dnn = 1;
  const char* wanted = getenv("LANTERN_CUDNN");
  if (wanted && wanted[0] == '0') return 0;
  void* library = dlopen("libcudnn.so.9", RTLD_NOW);
  lt_dnn* dnn = library ? (lt_dnn*)calloc(1, sizeof(lt_dnn)) : 0;
  if (!dnn) return 0;
  int (*create)(void**) = (int (*)(void**))dlsym(library, "cudnnCreate");
  *(void**)&dnn->destroy = dlsym(library, "cudnnDestroy");
  *(void**)&dnn->set_stream = dlsym(library, "cudnnSetStream");
  *(void**)&dnn->make = dlsym(library, "cudnnBackendCreateDescriptor");
  *(void**)&dnn->drop = dlsym(library, "cudnnBackendDestroyDescriptor");
  *(void**)&dnn->finish = dlsym(library, "cudnnBackendFinalize");
  *(void**)&dnn->set = dlsym(library, "cudnnBackendSetAttribute");
  *(void**)&dnn->get = dlsym(library, "cudnnBackendGetAttribute");
  *(void**)&dnn->execute = dlsym(library, "cudnnBackendExecute");
  if (!create || !dnn->destroy || !dnn->set_stream || !dnn->make || !dnn->drop || !dnn->finish || !dnn->set || !dnn->get ||
      !dnn->execute || create(&dnn->handle) != 0 || cudaMalloc(&dnn->room, LT_BLAS_ROOM) != cudaSuccess) {
    (void)cudaGetLastError();
    if (dnn->handle) dnn->destroy(dnn->handle);
    free(dnn);
    return 0;
  }
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

/* The first of cuDNN's ways that gives the same bits each time, rounds no factor unless that was asked for, has no larger errors
   than sums of products, and needs no more memory than there is. */
static void lt_dnn_choose(const lt_dnn* dnn, lt_dnn_plan* plan, void* graph) {
  for (int mode = 3, last = 0; !last; mode = 2) { /* its usual choice, then whatever works */
    last = mode == 2;
    void* configurations[16];
    int64_t made = 0, found = 0;
    while (made < 16 && (configurations[made] = lt_dnn_make(dnn, plan, 3))) ++made;
    void* heuristic = lt_dnn_make(dnn, plan, 4);
    if (!heuristic || dnn->set(heuristic, 201, LT_DNN_DESCRIPTOR, 1, &graph) != 0 ||
        dnn->set(heuristic, 200, LT_DNN_HEURISTIC, 1, &mode) != 0 || dnn->finish(heuristic) != 0 ||
        dnn->get(heuristic, 202, LT_DNN_DESCRIPTOR, made, &found, configurations) != 0)
      continue;
    for (int64_t k = 0; k < found && k < made; ++k) {
      void *engine = lt_dnn_make(dnn, plan, 2), *way = lt_dnn_make(dnn, plan, 5);
      int notes[16];
      int64_t count = 0, bytes = 0;
      if (!engine || !way || dnn->get(configurations[k], 300, LT_DNN_DESCRIPTOR, 1, &count, &engine) != 0 ||
          dnn->get(engine, 1303, LT_DNN_NOTE, 10, &count, notes) != 0)
        continue;
      int good = 1;
      for (int64_t i = 0; i < count && i < 10; ++i) /* 0: tensor cores, 1 and 2: less precision, 4: other bits; Fourier, Winograd */
        if (notes[i] > 1 ? notes[i] < 9 : LT_F32_PRODUCTS == 68) good = 0;
      if (!good || dnn->set(way, 401, LT_DNN_DESCRIPTOR, 1, &configurations[k]) != 0) continue;
      (void)dnn->set(way, 400, LT_DNN_HANDLE, 1, &dnn->handle); /* older versions ask for it */
      if (dnn->finish(way) != 0 || dnn->get(way, 402, LT_DNN_INT64, 1, &count, &bytes) != 0 || bytes > (int64_t)LT_BLAS_ROOM)
        continue;
      plan->way = way;
      return;
    }
  }
}
)c"},
      {"K:convolved",
       functions,
       {"K:device_convolution", "dnn"},
       R"c(/* The plan for a convolution of these sizes; its `way` is null where cuDNN has none. */
static lt_dnn_plan* lt_dnn_plan_$K(lt_dnn* dnn, const lt_convolution_$K* c, const int64_t* x_size, int64_t alignment) {
  int64_t key[LT_DNN_KEY] = {sizeof($T), c->computed, c->fresh, alignment};
  for (int d = 0; d < 4; ++d) {
    const int64_t facts[] = {x_size[d], c->w_size[d], c->y_size[d], c->x_step[d], c->w_step[d], c->y_step[d]};
    for (int f = 0; f < 6; ++f) key[4 + 6 * d + f] = facts[f];
  }
  for (int d = 0; d < 2; ++d) key[28 + d] = c->stride[d], key[30 + d] = c->dilation[d];
  for (lt_dnn_plan* known = dnn->plans; known; known = known->next)
    if (memcmp(known->key, key, sizeof key) == 0) return known;
  lt_dnn_plan* plan = (lt_dnn_plan*)calloc(1, sizeof(lt_dnn_plan));
  if (!plan) return 0;
  memcpy(plan->key, key, sizeof key);
  plan->next = dnn->plans;
  dnn->plans = plan;

  const int type = sizeof($T) == 8 ? 1 : 0, number = sizeof($T) == 8 ? LT_DNN_DOUBLE : LT_DNN_FLOAT, correlation = 1;
  const int64_t dimensions = 2, none[2] = {0, 0};
  const $T one = 1, kept = c->fresh ? 0 : 1;
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
  if (!operation || !graph || dnn->set(operation, kind[1], number, 1, &one) != 0 ||
      dnn->set(operation, kind[1] + 1, number, 1, &kept) != 0 ||
      dnn->set(operation, kind[1] + 2, LT_DNN_DESCRIPTOR, 1, &convolution) != 0 ||
      dnn->set(operation, kind[2], LT_DNN_DESCRIPTOR, 1, &x) != 0 || dnn->set(operation, kind[3], LT_DNN_DESCRIPTOR, 1, &w) != 0 ||
      dnn->set(operation, kind[4], LT_DNN_DESCRIPTOR, 1, &y) != 0 || dnn->finish(operation) != 0 ||
      dnn->set(graph, 800, LT_DNN_HANDLE, 1, &dnn->handle) != 0 || dnn->set(graph, 801, LT_DNN_DESCRIPTOR, 1, &operation) != 0 ||
      dnn->finish(graph) != 0)
    return plan;
  lt_dnn_choose(dnn, plan, graph);
  return plan;
}

/* By cuDNN, where it computes that; whether it did. */
static bool lt_convolved_$K(lt_workspace* ws, const lt_convolution_$K* c) {
  int64_t x_size[4];
  for (int d = 0; d < 4; ++d) {
    x_size[d] = c->x_size[d];
    if (c->w_size[d] <= 0 || c->y_size[d] <= 0 || x_size[d] <= 0) return false;
    if (d < 2) continue;
    /* cuDNN has as many places as fit: what lies behind the last one of ours is no part of its picture. */
    const int64_t read = c->stride[d - 2] * (c->y_size[d] - 1) + c->dilation[d - 2] * (c->w_size[d] - 1) + 1;
    if (x_size[d] - read >= c->stride[d - 2]) x_size[d] = read;
  }
  lt_dnn* dnn = lt_dnn_of(ws);
  if (!dnn) return false;
  const uintptr_t places = (uintptr_t)c->x | (uintptr_t)c->w | (uintptr_t)c->y;
  lt_dnn_plan* plan = lt_dnn_plan_$K(dnn, c, x_size, places % 16 == 0 ? 16 : (int64_t)sizeof($T));
  if (!plan || !plan->way) return false;
  if (ws->device->skip && ws->device->skip()) {
    ++ws->device->launches;
    return true;
  }
  const int64_t names[3] = {'x', 'w', 'y'};
  void *const data[3] = {c->x, c->w, c->y}, *pack = 0;
  bool done = dnn->set_stream(dnn->handle, ws->device->stream) == 0 && dnn->make(16, &pack) == 0;
  done = done && dnn->set(pack, 1000, LT_DNN_INT64, 3, names) == 0 && dnn->set(pack, 1001, LT_DNN_POINTER, 3, data) == 0 &&
         dnn->set(pack, 1003, LT_DNN_POINTER, 1, &dnn->room) == 0 && dnn->finish(pack) == 0 &&
         dnn->execute(dnn->handle, plan->way, pack) == 0;
  if (pack) dnn->drop(pack);
  if (done) ++ws->device->launches;
  else plan->way = 0; /* it is not tried again */
  return done;
}
)c"},
  };
  return parts;
}

}  // namespace lantern::codegen
