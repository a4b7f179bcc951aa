option(LANTERN_UNITY_BUILD "Compile the compiler's sources in groups: a whole build takes a quarter less time, one after a small change more" ON)

# lantern_unite(NAME SIZE): compiles so many sources of a target as one, if LANTERN_UNITY_BUILD is on. Sources with options
# of their own stay by themselves. What is in an anonymous namespace must have a name of its own in the target.
function(lantern_unite name size)
  if(LANTERN_UNITY_BUILD)
    set_target_properties(${name} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE ${size})
    # A source that is included is a header to g++, which warns of types there that have an anonymous part.
    target_compile_options(${name} PRIVATE $<$<CXX_COMPILER_ID:GNU>:-Wno-subobject-linkage>)
  endif()
endfunction()

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
