// The prelude's threads, for stand-alone sources (in process, runtime/workspace.cpp does the same), and
// products that threads share out.
#include "lantern/codegen/c/prelude_text.hpp"

namespace lantern::codegen {

using enum PreludeGroup;

const std::vector<PreludePart>& thread_parts();

const std::vector<PreludePart>& thread_parts() {
  static const std::vector<PreludePart> parts = {
      {"pthread", prototypes, {}, R"c(/* POSIX threads: link with -pthread where the C library asks for it. */
int pthread_create(unsigned long* thread, const void* attributes, void* (*start)(void*), void* argument);
int pthread_join(unsigned long thread, void** result);
__attribute__((noreturn)) void pthread_exit(void* result);
)c"},
      {"fork", functions, {"workspace", "memset", "pthread"},
       R"c(/* What one thread does of a loop, with a workspace that is kept from call to call. */
typedef struct lt_worker {
  lt_workspace ws;
  lt_workspace* caller;
  struct lt_worker* next;
  void (*part)(lt_workspace* ws, void* share);
  char* shares; /* it does share number `at`, and every `step` after it */
  int64_t bytes, at, step, count;
  unsigned long thread;
  int own_thread;  /* in a thread of its own */
  int failed; /* at share number `at`: its message says how */
} lt_worker;

static void* lt_work(void* argument) {
  lt_worker* worker = (lt_worker*)argument;
  for (; worker->at < worker->count; worker->at += worker->step) {
    worker->ws.chunk = 0;
    worker->ws.top = worker->ws.end = 0;
    worker->ws.unused = 0;
    for (int64_t k = 0; k < worker->ws.tape_count; ++k) worker->ws.tapes[k].used = 0;
    worker->part(&worker->ws, worker->shares + worker->at * worker->bytes);
  }
  return 0;
}

/* Waits for all; then what failed in the first share that failed, if any, fails for the caller. */
static void lt_join(lt_workspace* ws) {
  lt_worker* worker;
  lt_worker* first = 0;
  for (worker = (lt_worker*)ws->host; worker; worker = worker->next)
    if (worker->own_thread) {
      pthread_join(worker->thread, 0);
      worker->own_thread = 0;
    }
  for (worker = (lt_worker*)ws->host; worker; worker = worker->next)
    if (worker->failed && (!first || worker->at < first->at)) first = worker;
  if (first) ws->fail(ws, first->ws.message);
}

static void lt_fail_worker(lt_workspace* ws, const char* message) {
  lt_worker* worker = (lt_worker*)ws->host;
  unsigned long i = 0;
  if (message != ws->message) {
    for (; i + 1 < sizeof ws->message && message[i]; ++i) ws->message[i] = message[i];
    ws->message[i] = 0;
  }
  worker->failed = 1;
  if (worker->own_thread) pthread_exit(0);
  lt_join(worker->caller);
}

static void lt_fork(lt_workspace* ws, int64_t threads, int64_t count,
                    void (*part)(lt_workspace* ws, void* share), void* shares, int64_t bytes) {
  lt_worker* worker;
  lt_worker* before = 0;
  for (worker = (lt_worker*)ws->host; worker; worker = worker->next) worker->failed = 0;
  for (int64_t i = 0; i < threads; ++i, before = worker) {
    worker = before ? before->next : (lt_worker*)ws->host;
    if (!worker) {
      worker = (lt_worker*)ws->resize(0, sizeof(lt_worker));
      if (!worker) {
        lt_join(ws);
        ws->fail(ws, "out of memory");
      }
      memset(worker, 0, sizeof(lt_worker));
      worker->caller = ws;
      worker->ws.fail = lt_fail_worker;
      worker->ws.resize = ws->resize;
      worker->ws.host = worker;
      if (before) before->next = worker;
      else ws->host = worker;
    }
    worker->part = part;
    worker->shares = (char*)shares;
    worker->bytes = bytes;
    worker->at = i;
    worker->step = threads;
    worker->count = count;
    worker->own_thread = 1;
    if (i + 1 < threads && pthread_create(&worker->thread, 0, lt_work, worker) == 0) continue;
    worker->own_thread = 0;
    lt_work(worker);
  }
  lt_join(ws);
}
)c"},
      // Products that threads share out.
      {"K:gemm_team", functions, {"K:gemm", "workspace"}, R"c(typedef struct {
  int64_t m, n;
  const $T *a, *b;
  $T* c;
  const struct lt_gemm_all_$K* all;
} lt_gemm_share_$K;
struct lt_gemm_all_$K {
  int64_t k, a_row, a_column, b_row, b_column, c_row;
  $T scale;
};
static void lt_gemm_run_$K(lt_workspace* ws, void* data) {
  const lt_gemm_share_$K* const share = (const lt_gemm_share_$K*)data;
  const struct lt_gemm_all_$K* const all = share->all;
  lt_gemm_$K(ws, 0, share->m, share->n, all->k, all->scale, share->a, all->a_row, all->a_column, share->b, all->b_row,
             all->b_column, share->c, all->c_row);
}

/* c += scale a b in so many threads, each with some of the rows or of the columns of c, of which there are more. */
static void lt_gemm_team_$K(lt_workspace* ws, int64_t threads, int64_t m, int64_t n, int64_t k, $T scale, const $T* a,
                            int64_t a_row, int64_t a_column, const $T* b, int64_t b_row, int64_t b_column, $T* c,
                            int64_t c_row) {
  const int by_rows = m >= n;
  const int64_t tile = by_rows ? LT_GEMM_ROWS : LT_GEMM_COLUMNS_$K, tiles = ((by_rows ? m : n) + tile - 1) / tile;
  if (!ws->fork || (double)m * (double)n * (double)k < 4e6 || tiles < threads) {
    lt_gemm_$K(ws, 0, m, n, k, scale, a, a_row, a_column, b, b_row, b_column, c, c_row);
    return;
  }
  const struct lt_gemm_all_$K all = {k, a_row, a_column, b_row, b_column, c_row, scale};
  const lt_position mark = lt_mark(ws);
  lt_gemm_share_$K* const shares = (lt_gemm_share_$K*)lt_allocate(ws, threads * (int64_t)sizeof(lt_gemm_share_$K));
  for (int64_t t = 0; t < threads; ++t) {
    const int64_t from = tiles * t / threads * tile, to = tiles * (t + 1) / threads * tile;
    lt_gemm_share_$K* const share = shares + t;
    share->m = by_rows ? (to < m ? to : m) - from : m;
    share->n = by_rows ? n : (to < n ? to : n) - from;
    share->a = by_rows ? a + from * a_row : a;
    share->b = by_rows ? b : b + from * b_column;
    share->c = c + (by_rows ? from * c_row : from);
    share->all = &all;
  }
  ws->fork(ws, threads, threads, lt_gemm_run_$K, shares, (int64_t)sizeof(lt_gemm_share_$K));
  lt_leave(ws, mark);
}
)c", true},
      {"K:contract_team", functions, {"K:contract", "workspace"},
       R"c(static void lt_contract_share_$K(lt_workspace* ws, void* share) {
  lt_contract_$K(ws, (const lt_contraction_$K*)share);
}

/* The same in so many threads, each with a part of the first index of a group: of those whose bit is set in `split` (1 batch,
   2 rows, 4 columns) parts of the result have no element in common. */
static void lt_contract_team_$K(lt_workspace* ws, int threads, int split, const lt_contraction_$K* c) {
  double work = 1;
  int at = -1;
  for (int g = 0, d = 0; g < 4; ++g) {
    if (g < 3 && c->rank[g] > 0 && (split >> g & 1) && (at < 0 || c->size[d] > c->size[at])) at = d;
    for (int e = 0; e < c->rank[g]; ++e) work *= (double)c->size[d++];
  }
  if (!ws->fork || work < 4e6 || at < 0 || c->size[at] < 2) {
    lt_contract_$K(ws, c);
    return;
  }
  const lt_position mark = lt_mark(ws);
  const int64_t parts = threads < c->size[at] ? threads : c->size[at];
  lt_contraction_$K* const shares = (lt_contraction_$K*)lt_allocate(ws, parts * (int64_t)sizeof(lt_contraction_$K));
  for (int64_t t = 0; t < parts; ++t) {
    const int64_t from = c->size[at] * t / parts;
    shares[t] = *c;
    shares[t].size[at] = c->size[at] * (t + 1) / parts - from;
    shares[t].x += from * c->x_step[at];
    shares[t].y += from * c->y_step[at];
    shares[t].r += from * c->r_step[at];
  }
  ws->fork(ws, parts, parts, lt_contract_share_$K, shares, (int64_t)sizeof(lt_contraction_$K));
  lt_leave(ws, mark);
}
)c", true},
  };
  return parts;
}

}  // namespace lantern::codegen
