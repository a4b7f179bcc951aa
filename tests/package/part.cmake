# cmake -DWAY=add_subdirectory|FetchContent -DBUILD=ON|OFF -DLANTERN_SOURCE=... -DLANTERN_BUILD=... -DWORK=... -DCXX=... -DGENERATOR=...
#       -P part.cmake
#
# A project that has Lantern as a part of itself is configured. With BUILD it is built too: Lantern's libraries and lanternc, whose
# objects are those of LANTERN_BUILD (reuse_objects.sh), and a program, which runs. Otherwise what the build would do is listed.
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
set(part lantern)
if(WAY STREQUAL "FetchContent")
  set(part _deps/lantern-build)
endif()
run("${CMAKE_COMMAND}" -S "${CMAKE_CURRENT_LIST_DIR}/part" -B "${WORK}" -G "${GENERATOR}" "-DCMAKE_CXX_COMPILER=${CXX}"
    "-DLANTERN_SOURCE=${LANTERN_SOURCE}" -DWAY=${WAY} "-DCCACHE=${CMAKE_CURRENT_LIST_DIR}/reuse_objects.sh")
if(BUILD)
  run("${CMAKE_COMMAND}" -E env "REUSE_FROM=${LANTERN_BUILD}" PART=${part} "${CMAKE_COMMAND}" --build "${WORK}" --target model)
  run("${WORK}/model")
  expect("^6\n$")
endif()
if(GENERATOR STREQUAL "Ninja")
  find_program(NINJA ninja REQUIRED)
  run("${NINJA}" -C "${WORK}" -t commands model)
  expect("lanternc.* -c --whole-program .*liblantern_aot.a")
endif()
file(REMOVE_RECURSE "${WORK}")
