# lantern_precompile_headers(GROUP NAME headers...): the headers that nearly every source of some targets reads, compiled
# once, with the first target of the group. All of them are compiled by the same flags.
function(lantern_precompile_headers group name)
  get_property(first GLOBAL PROPERTY LANTERN_PRECOMPILED_${group})
  if(first)
    target_precompile_headers(${name} REUSE_FROM ${first})
  else()
    target_precompile_headers(${name} PRIVATE ${ARGN})
    set_property(GLOBAL PROPERTY LANTERN_PRECOMPILED_${group} ${name})
  endif()
endfunction()

# lantern_precompile_standard_headers(GROUP NAME): those of the standard library and of fmt, which are most of what the
# compilation of a source of the compiler costs.
function(lantern_precompile_standard_headers group name)
  # g++ 12 forgets that the warnings it then has of strings are of the system's headers.
  target_compile_options(${name} PRIVATE $<$<CXX_COMPILER_ID:GNU>:-Wno-array-bounds -Wno-stringop-overflow>)
  lantern_precompile_headers(${group} ${name} <algorithm> <array> <cmath> <cstdint> <fmt/format.h> <functional> <map>
                             <memory> <optional> <set> <span> <sstream> <string> <string_view> <unordered_map>
                             <unordered_set> <variant> <vector>)
endfunction()
