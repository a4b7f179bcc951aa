# lantern_compile_by_clang(NAME): a target is compiled by Clang 19 at -O0 where g++ is the compiler of a Release build. For a
# program that is compiled once and computes little by itself that is half of g++'s time. Other builds compile it as all
# others: those with the sanitizers, whose run time is g++'s, those for debuggers, and -DLANTERN_CLANG_TESTS=OFF.
find_program(LANTERN_CLANGXX clang++ HINTS "${LANTERN_LLVM_DIR}/../bin" NO_DEFAULT_PATH)
option(LANTERN_CLANG_TESTS "Compile most tests by Clang, if g++ is the compiler: half of g++'s time" ON)
set(LANTERN_BY_CLANG OFF)
if(LANTERN_CLANG_TESTS AND LANTERN_CLANGXX AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_BUILD_TYPE STREQUAL "Release"
   AND NOT LANTERN_SANITIZE)
  set(LANTERN_BY_CLANG ON)
endif()

function(lantern_compile_by_clang name)
  set(launcher ${PROJECT_SOURCE_DIR}/tools/cmake/by_clang ${LANTERN_CLANGXX})
  if(CCACHE)  # a compiled header has no times in it; the files that it was made of are compared
    set(launcher ${CMAKE_COMMAND} -E env CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime
        ${launcher} ${CCACHE})
  endif()
  if(LANTERN_BY_CLANG)
    set_target_properties(${name} PROPERTIES CXX_COMPILER_LAUNCHER "${launcher};--")
  endif()
endfunction()
