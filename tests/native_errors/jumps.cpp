// Control flow that has no staged form.
#include <coroutine>
#include <stdexcept>

#include <lantern/lantern.hpp>

using namespace lantern;

Rep<double> jumps_back(Rep<double> x) {
again:
  x = x * 0.5;
  if (x > 1.0) goto again;
  return x;
}
Rep<double> throws(Rep<double> x) {
  if (x < 0.0) throw std::runtime_error("negative");
  return sqrt(x);
}
Rep<double> throws_after_return(Rep<double> x) {
  if (x > 0.0) return x;
  throw std::runtime_error("negative");
}
Rep<double> throws_in_loop(Rep<double> x) {
  while (x > 1.0) {
    x = x * 0.5;
    if (x < 0.1) throw 1;
  }
  return x;
}
Rep<double> tries(Rep<double> x) {
  try {
    if (x > 0.0) return x;
  } catch (const std::exception&) {
    return -x;
  }
  return x * x;
}
Rep<double> try_in_branch(Rep<double> x) {
  Rep<double> y = x;
  if (x > 0.0) {
    try {
      y = x * 2.0;
    } catch (...) {
      y = 0.0;
    }
  }
  return y;
}
Rep<double> allocates(Rep<double> x) {
  Rep<double> y = 0.0;
  if (x > 0.0) {
    auto* p = new Rep<double>(x);
    y = *p;
    delete p;
  }
  return y;
}
Rep<double> case_range(Rep<double> x, Rep<std::int64_t> k) {
  switch (k) {
    case 1 ... 3: return x;
    default: return -x;
  }
}
Rep<double> before_first_case(Rep<double> x, Rep<std::int64_t> k) {
  switch (k) {
    x = 0.0;
    case 1: return x;
    default: return -x;
  }
}
Rep<double> missing_middle(Rep<double> x) { return x ?: Rep<double>(1.0); }
Rep<double> statement_expression(Rep<double> x) {
  return ({ Rep<double> y = x; if (y > 0.0) y = -y; y; });
}
struct Task {
  struct promise_type {
    Task get_return_object() { return {}; }
    std::suspend_never initial_suspend() { return {}; }
    std::suspend_never final_suspend() noexcept { return {}; }
    void return_void() {}
    void unhandled_exception() {}
  };
};
Task coroutine(Rep<double> x) {
  if (x > 0.0) co_return;
  co_await std::suspend_never();
}
Rep<double> assembles(Rep<double> x) {
  if (x > 0.0) {
    asm("nop");
    x = -x;
  }
  return x;
}
Rep<double> case_by_macro(Rep<double> x, Rep<std::int64_t> k) {
#define FIRST 1
#define LABEL case FIRST:
  switch (k) {
    LABEL x = -x;
  }
  return x;
}
Rep<double> no_braces(Rep<double> x, Rep<std::int64_t> k) {
  switch (k) case 1: x = -x;
  return x;
}
Rep<double> jumps_out(Rep<double> x) {
  while (x > 1.0) {
    if (x > 100.0) goto out;
    x = x * 0.5;
  }
out:
  return x;
}
