// The prelude's threads, for sources that stand alone; in process, runtime/workspace.cpp does the same.
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
      {"fork",
       functions,
       {"workspace", "memset", "pthread"},
       R"c(/* What one thread does of a loop, with a workspace that is kept from call to call. */
typedef struct lt_worker {
  lt_workspace ws;
  lt_workspace* caller;
  struct lt_worker* next;
  void (*part)(lt_workspace* ws, void* share);
  char* shares; /* it does share number `at`, and every `step` after it */
  int64_t bytes, at, step, count;
  unsigned long thread;
  int apart;  /* in a thread of its own */
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
    if (worker->apart) {
      pthread_join(worker->thread, 0);
      worker->apart = 0;
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
  if (worker->apart) pthread_exit(0);
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
    worker->apart = 1;
    if (i + 1 < threads && pthread_create(&worker->thread, 0, lt_work, worker) == 0) continue;
    worker->apart = 0;
    lt_work(worker);
  }
  lt_join(ws);
}
)c"},
  };
  return parts;
}

}  // namespace lantern::codegen
