// A thread that waits for signals may do what a signal's handler may not.
#include "interruption.hpp"

#include <signal.h>
#include <ucontext.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <thread>
#include <vector>

#include "lantern/codegen/toolchain/process.hpp"

namespace lantern::tool {

namespace {

constexpr std::array<int, 5> faults{SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
std::array<struct sigaction, faults.size()> before_faults;
std::string fault_text;
std::atomic<bool> tidied = false,  ///< a thread waits for SIGTERM
    faulty = false;

/// Whether the address lies where the stack would grow to.
bool leaves_stack([[maybe_unused]] const void* address, [[maybe_unused]] const void* context) {
#if defined(__x86_64__)
  const auto stack = static_cast<std::uintptr_t>(static_cast<const ucontext_t*>(context)->uc_mcontext.gregs[REG_RSP]);
  const auto at = reinterpret_cast<std::uintptr_t>(address);
  constexpr std::uintptr_t near = 1 << 16;
  return at < stack + near && at + near > stack;
#else
  return false;
#endif
}

/// Nothing but what a handler may do.
void tell_fault(int signal, siginfo_t* info, void* context) {
  const bool deep = (signal == SIGSEGV || signal == SIGBUS) && leaves_stack(info->si_addr, context);
  const char* kind = deep ? "functions that call themselves without an end"
                     : signal == SIGFPE ? "an arithmetic error, such as an integer divided by zero"
                     : signal == SIGILL ? "an illegal instruction"
                     : signal == SIGABRT ? "a call of abort"
                                         : "a wrong address, such as a null pointer or an index outside";
  for (const char* part : {"lanternc: error: ", kind, fault_text.c_str()})
    if (::write(STDERR_FILENO, part, std::strlen(part)) < 0) break;
  if (!tidied) ::_exit(1);
  faulty = true;
  ::kill(::getpid(), SIGTERM);
  while (true) ::pause();
}

}  // namespace

FaultsOfUser::FaultsOfUser(const std::string& what) {
  fault_text = ", while " + what +
               ": the program's functions over Rep and its static initialisers run in lanternc; look there for what C++ leaves "
               "undefined, or run them under a debugger: gdb --args lanternc ...\n";
  // A recursion that has no stack left needs another one for its message.
  static std::vector<char> stack(1 << 16);
  stack_t other{};
  other.ss_sp = stack.data();
  other.ss_size = stack.size();
  ::sigaltstack(&other, nullptr);
  for (std::size_t i = 0; i < faults.size(); ++i) {
    struct sigaction action {};
    action.sa_sigaction = tell_fault;
    action.sa_flags = SA_ONSTACK | SA_SIGINFO;
    ::sigaction(faults[i], &action, &before_faults[i]);
  }
}

FaultsOfUser::~FaultsOfUser() {
  for (std::size_t i = 0; i < faults.size(); ++i) ::sigaction(faults[i], &before_faults[i], nullptr);
}

void tidy_up_when_interrupted() {
  sigset_t awaited;
  ::sigemptyset(&awaited);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction now {};
    if (::sigaction(signal, nullptr, &now) == 0 && now.sa_handler == SIG_DFL) ::sigaddset(&awaited, signal);
  }
  ::pthread_sigmask(SIG_BLOCK, &awaited, nullptr);  // in the threads to come too
  tidied = ::sigismember(&awaited, SIGTERM) == 1;
  std::thread([awaited] {
    int signal = 0;
    if (::sigwait(&awaited, &signal) != 0) return;
    codegen::abandon_work();
    if (faulty) ::_exit(1);
    ::pthread_sigmask(SIG_UNBLOCK, &awaited, nullptr);
    ::raise(signal);
  }).detach();
}

}  // namespace lantern::tool
