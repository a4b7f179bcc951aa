// What LANTERN_FUNCTION adds to its definition, by what lanternc compiles the file for:
//
//   -DLANTERN_STAGING_IMAGE   the image that it stages: the program is registered
//   -DLANTERN_AHEAD_OF_TIME   the program that it builds: the function calls the generated entry point
//
// A precompiled header serves both, so this file is included once more after it.
#undef LANTERN_ENTRY_DECLARATION
#undef LANTERN_MODE
#undef LANTERN_REGISTER

#if defined(LANTERN_AHEAD_OF_TIME)
#define LANTERN_ENTRY_DECLARATION(name)                                                     \
  extern "C" void lantern_entry_##name(::lt_workspace*, const void* const*, void* const*);  \
  extern "C" const signed char lantern_facts_##name[];
#define LANTERN_MODE(name) , ::lantern::core::driver::Mode::ahead_of_time, &lantern_entry_##name, lantern_facts_##name
#define LANTERN_REGISTER(name)
#elif defined(LANTERN_STAGING_IMAGE)
#define LANTERN_ENTRY_DECLARATION(name)
#define LANTERN_MODE(name) , ::lantern::core::driver::Mode::staging
#define LANTERN_REGISTER(name) \
  [[maybe_unused]] static const bool lantern_registered_##name = lantern_exported_##name.registered(__FILE__, __LINE__);
#else
#define LANTERN_ENTRY_DECLARATION(name)
#define LANTERN_MODE(name)
#define LANTERN_REGISTER(name)
#endif
