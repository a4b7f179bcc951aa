// A thread that waits for signals may do what a signal's handler may not.
#include "interruption.hpp"

#include <signal.h>

#include <thread>

#include "lantern/codegen/toolchain/process.hpp"

namespace lantern::tool {

void tidy_up_when_interrupted() {
  sigset_t awaited;
  ::sigemptyset(&awaited);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction now {};
    if (::sigaction(signal, nullptr, &now) == 0 && now.sa_handler == SIG_DFL) ::sigaddset(&awaited, signal);
  }
  ::pthread_sigmask(SIG_BLOCK, &awaited, nullptr);  // in the threads to come too
  std::thread([awaited] {
    int signal = 0;
    if (::sigwait(&awaited, &signal) != 0) return;
    codegen::abandon_work();
    ::pthread_sigmask(SIG_UNBLOCK, &awaited, nullptr);
    ::raise(signal);
  }).detach();
}

}  // namespace lantern::tool
