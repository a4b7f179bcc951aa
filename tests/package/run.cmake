# cmake -DLANTERN_BUILD=... -DWORK=... -DCXX=... -DGENERATOR=... -P run.cmake
cmake_minimum_required(VERSION 3.25)
function(run)
  execute_process(COMMAND ${ARGV} RESULT_VARIABLE status OUTPUT_VARIABLE out ERROR_VARIABLE out)
  if(NOT status EQUAL 0)
    list(JOIN ARGV " " command)
    message(FATAL_ERROR "${command}: ${status}\n${out}")
  endif()
  set(out "${out}" PARENT_SCOPE)
endfunction()
function(expect what)
  if(NOT out MATCHES "${what}")
    message(FATAL_ERROR "expected ${what}, got: ${out}")
  endif()
endfunction()

file(REMOVE_RECURSE "${WORK}")
file(MAKE_DIRECTORY "${WORK}")
# The archive runs where it is unpacked. Nothing is built for it.
get_filename_component(tools "${CMAKE_COMMAND}" DIRECTORY)
run("${CMAKE_COMMAND}" -E chdir "${LANTERN_BUILD}" "${tools}/cpack" -G TGZ -B "${WORK}/packed")
file(GLOB archive "${WORK}/packed/lantern-*.tar.gz")
run("${CMAKE_COMMAND}" -E chdir "${WORK}" "${CMAKE_COMMAND}" -E tar xzf "${archive}")
file(GLOB unpacked "${WORK}/lantern-*")
file(WRITE "${WORK}/f.cpp" "#include <lantern/lantern.hpp>\nlantern::Rep<double> f(lantern::Rep<double> x) { return x * x; }\n"
                           "LANTERN_FUNCTION(df, lantern::grad(f))\n")
run("${unpacked}/bin/lanternc" "${WORK}/f.cpp" --emit=header)
expect("double df.double x.;")
# Of the two Debian packages one has the tools alone.
run("${CMAKE_COMMAND}" --install "${LANTERN_BUILD}" --component tools --prefix "${WORK}/tools")
file(GLOB_RECURSE installed RELATIVE "${WORK}/tools" "${WORK}/tools/*")
if(NOT installed STREQUAL "bin/lantern-onnx;bin/lanternc")
  message(FATAL_ERROR "the package of the tools has ${installed}")
endif()
set(prefix "${WORK}/an installed lantern")
run("${CMAKE_COMMAND}" --install "${LANTERN_BUILD}" --prefix "${prefix}")
# The target `installed` builds all of it.
if(GENERATOR STREQUAL "Ninja")
  run(ninja -C "${LANTERN_BUILD}" -t query installed)
  set(built "${out}")
  file(GLOB binaries RELATIVE "${prefix}/bin" "${prefix}/bin/*")
  file(GLOB archives RELATIVE "${prefix}/lib" "${prefix}/lib/*.a")
  foreach(name ${binaries} ${archives})
    string(FIND "${built}" "${name}\n" place)
    if(place EQUAL -1)
      message(FATAL_ERROR "the target `installed` does not build ${name}")
    endif()
  endforeach()
endif()
run("${CMAKE_COMMAND}" -S "${CMAKE_CURRENT_LIST_DIR}" -B "${WORK}/build" -G "${GENERATOR}"
    "-DCMAKE_CXX_COMPILER=${CXX}" "-DCMAKE_PREFIX_PATH=${prefix}")
file(WRITE "${WORK}/build/power.hpp" "constexpr int power = 3;\n")
run("${CMAKE_COMMAND}" --build "${WORK}/build")
run("${WORK}/build/compiled")
run("${WORK}/build/eager")
run("${CMAKE_COMMAND}" -E chdir "${WORK}/build" "${WORK}/build/libraries")

run("${CMAKE_CTEST_COMMAND}" --test-dir "${WORK}/build" --output-on-failure)

# Programs of another compiler find the functions of the libraries.
find_program(CLANGXX NAMES clang++-19 clang++-18)
if(CLANGXX)
  run("${CMAKE_COMMAND}" -S "${CMAKE_CURRENT_LIST_DIR}" -B "${WORK}/by_clang" -G "${GENERATOR}"
      "-DCMAKE_CXX_COMPILER=${CLANGXX}" "-DCMAKE_PREFIX_PATH=${prefix}")
  run("${CMAKE_COMMAND}" --build "${WORK}/by_clang" --target libraries)
  run("${CMAKE_COMMAND}" -E chdir "${WORK}/by_clang" "${WORK}/by_clang/libraries")
endif()

# A program that is compiled ahead of time is built when what it depends on has changed, and only then.
run("${CMAKE_COMMAND}" --build "${WORK}/build")
if(GENERATOR STREQUAL "Ninja")
  expect("no work to do")
endif()
execute_process(COMMAND "${CMAKE_COMMAND}" -E sleep 1.1)
file(WRITE "${WORK}/build/power.hpp" "constexpr int power = 2;\n")
run("${CMAKE_COMMAND}" --build "${WORK}/build")
run("${WORK}/build/ahead_of_time")
expect("^8 4\n$")
run("${CMAKE_COMMAND}" --install "${WORK}/build" --prefix "${WORK}/theirs")
run("${WORK}/theirs/bin/ahead_of_time")
expect("^8 4\n$")
file(READ "${WORK}/build/compile_commands.json" out)
expect("-DLANTERN_FRONTEND")
expect("ahead_of_time.cpp")

# lanternc links what the included headers need, and says early what the linker would not find.
run("${CMAKE_COMMAND}" -E chdir "${WORK}/build" "${CMAKE_COMMAND}" -E env "CXX=${CXX}" "${prefix}/bin/lanternc"
    "${CMAKE_CURRENT_LIST_DIR}/with_libraries.cpp" -o with_libraries)
run("${CMAKE_COMMAND}" -E chdir "${WORK}/build" "${WORK}/build/with_libraries")
expect("^0.25 0.5\n$")

# Without CMake.
find_program(PKG_CONFIG pkg-config)
if(PKG_CONFIG)
  function(by_pkg_config source packages program)  # the shell reads what pkg-config quotes
    run("${CMAKE_COMMAND}" -E env "PKG_CONFIG_PATH=${prefix}/lib/pkgconfig" sh -c
        "eval \"'${CXX}' -std=c++20 '${CMAKE_CURRENT_LIST_DIR}/${source}' $(${PKG_CONFIG} --cflags --libs ${packages}) -o '${WORK}/build/${program}'\"")
  endfunction()
  by_pkg_config(main.cpp lantern by_pkg_config)
  run("${WORK}/build/by_pkg_config")
  by_pkg_config(libraries.cpp "lantern-core lantern-data lantern-linalg" libraries_by_pkg_config)
  run("${CMAKE_COMMAND}" -E chdir "${WORK}/build" "${WORK}/build/libraries_by_pkg_config")
endif()

file(REMOVE_RECURSE "${WORK}")
