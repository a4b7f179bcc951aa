// Compilations that go on while the program runs, and the end of the program.
#pragma once

#include <functional>
#include <thread>

namespace lantern::driver {

/// Runs `work` on a thread of its own, which the caller joins. A program that returns from main, or calls exit there,
/// first waits for such work: LLVM must not lose its static objects while it compiles. After that nothing is
/// started, and the thread is not joinable.
std::thread in_background(std::function<void()> work);

}  // namespace lantern::driver
