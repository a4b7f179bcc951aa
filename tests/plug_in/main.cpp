// Opens a shared library and calls what is in it.
#include <dlfcn.h>

#include <cstdio>
#include <initializer_list>

int main(int argc, char** argv) {
  void* const library = argc == 2 ? ::dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : nullptr;
  if (library == nullptr) {
    std::printf("cannot open the library: %s\n", argc == 2 ? ::dlerror() : "no name was given");
    return 1;
  }
  for (const char* name : {"slope", "both_compilers"}) {
    auto* const f = reinterpret_cast<double (*)(double)>(::dlsym(library, name));
    const double expected = name[0] == 's' ? 27 : 54, got = f != nullptr ? f(3.0) : -1;
    if (got == expected) continue;
    std::printf("%s: expected %g, got %g\n", name, expected, got);
    return 1;
  }
  return 0;
}
