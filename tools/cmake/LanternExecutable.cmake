# Sources with LANTERN_FUNCTIONs in a project's own targets: lanternc compiles them, ahead of time, with native control
# flow over Rep.
#
#   lantern_add_executable(NAME SOURCE... [OPTIONS lanternc-option...] [COMPILE_OPTIONS flag...] [LINK_LIBRARIES lib...])
#   lantern_add_library(NAME [STATIC|SHARED|OBJECT] SOURCE... [OPTIONS ...] [COMPILE_OPTIONS ...] [LINK_LIBRARIES ...])
#   lantern_target_sources(TARGET [PRIVATE] SOURCE... [OPTIONS ...] [COMPILE_OPTIONS ...])
#
# The first two make a target NAME, as add_executable and add_library do; the third adds sources to a target of the same
# directory. All sources of one call are compiled together, by the compile options, definitions and include directories of
# the target. They are compiled again when one, or a header that one includes, has changed; what did not change of their
# functions is not. OPTIONS are those of lanternc (--threads=2, -g, --check=nan); COMPILE_OPTIONS go to the C++ compiler;
# LINK_LIBRARIES are as for target_link_libraries, and those that are files or targets are there while the functions are
# staged, too. Of an executable, functions over Rep that the program itself does not call are left out: give
# lantern_target_sources those that other files of a program call.
#
# Where CMAKE_EXPORT_COMPILE_COMMANDS is on, compile_commands.json has the sources as lanternc reads them, so that clangd
# understands native control flow over Rep.
function(lantern_add_executable name)
  add_executable(${name})
  lantern_compile(lantern_add_executable ${name} ${ARGN} OPTIONS -c --whole-program)
endfunction()

function(lantern_add_library name)
  set(arguments ${ARGN})
  list(GET arguments 0 type)
  if(type MATCHES "^(STATIC|SHARED|OBJECT)$")
    list(REMOVE_AT arguments 0)
  elseif(BUILD_SHARED_LIBS)
    set(type SHARED)
  else()
    set(type STATIC)
  endif()
  if(type STREQUAL "OBJECT")
    # An object library has only what CMake compiles; this has an object, for those that link it.
    add_library(${name} INTERFACE)
  else()
    add_library(${name} ${type})
  endif()
  lantern_compile(lantern_add_library ${name} ${arguments} OPTIONS -c)
endfunction()

function(lantern_target_sources name)
  set(arguments ${ARGN})
  if(NOT TARGET ${name})
    message(FATAL_ERROR "lantern_target_sources(${name}): there is no such target; add_executable or add_library makes it")
  endif()
  list(REMOVE_ITEM arguments PRIVATE)
  lantern_compile(lantern_target_sources ${name} ${arguments} OPTIONS -c)
endfunction()

# What the three have in common; `caller` is for messages.
function(lantern_compile caller name)
  cmake_parse_arguments(PARSE_ARGV 2 arg "" "" "OPTIONS;COMPILE_OPTIONS;LINK_LIBRARIES")
  if(NOT arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "${caller}(${name}): expected source files")
  endif()
  foreach(option ${arg_OPTIONS})
    if(option MATCHES "^(--emit|--depfile|--function|--prefix|--explain|-o)" OR option STREQUAL "--strided")
      message(FATAL_ERROR "${caller}(${name}): OPTIONS ${option} is not for a target, of which lanternc makes an object; "
                          "run lanternc with it by add_custom_command")
    endif()
  endforeach()
  foreach(source ${arg_UNPARSED_ARGUMENTS})
    if(source MATCHES "^(STATIC|SHARED|OBJECT|MODULE|INTERFACE|PUBLIC|PRIVATE|WIN32|MACOSX_BUNDLE|EXCLUDE_FROM_ALL|ALIAS|IMPORTED)$")
      message(FATAL_ERROR "${caller}(${name}): ${source} does not belong here: a library is STATIC, SHARED or OBJECT, sources of a "
                          "target are PRIVATE, an executable takes no such word")
    endif()
    get_source_file_property(made "${source}" GENERATED)
    get_filename_component(file "${source}" ABSOLUTE)
    if(NOT made AND NOT EXISTS "${file}")
      message(FATAL_ERROR "${caller}(${name}): there is no file ${file}")
    endif()
  endforeach()
  if(TARGET lanternc)  # a part of the same build
    set(lanternc $<TARGET_FILE:lanternc>)
    set(depends lanternc lantern_aot lantern_core)
  elseif(LANTERN_LANTERNC)
    set(lanternc "${LANTERN_LANTERNC}")
    set(depends "${LANTERN_LANTERNC}")
  else()
    message(FATAL_ERROR "${caller}(${name}): there is no lanternc in this installation")
  endif()
  set(sources "")
  foreach(source ${arg_UNPARSED_ARGUMENTS})
    get_filename_component(source "${source}" ABSOLUTE)
    list(APPEND sources "${source}")
  endforeach()
  # cmake_parse_arguments keeps the options of both lists: lanternc's own come last.
  set(staging_libraries "")
  foreach(library ${arg_LINK_LIBRARIES})
    if(TARGET ${library})
      get_target_property(type ${library} TYPE)
      if(type STREQUAL "OBJECT_LIBRARY")
        list(APPEND staging_libraries "$<TARGET_OBJECTS:${library}>")
        list(APPEND depends "$<TARGET_OBJECTS:${library}>")
      elseif(type MATCHES "STATIC_LIBRARY|SHARED_LIBRARY|UNKNOWN_LIBRARY")
        list(APPEND staging_libraries "$<TARGET_LINKER_FILE:${library}>")
      endif()
      list(APPEND depends ${library})
    elseif(EXISTS "${library}")
      list(APPEND staging_libraries "${library}")
      list(APPEND depends "${library}")
    endif()
  endforeach()

  get_target_property(type ${name} TYPE)
  set(pic "")
  set(scope PRIVATE)
  if(type STREQUAL "INTERFACE_LIBRARY")
    set(scope INTERFACE)
  endif()
  if(NOT type STREQUAL "EXECUTABLE")
    set(pic -fPIC)
  endif()
  # The same as CMake gives the target's other sources.
  separate_arguments(flags NATIVE_COMMAND "${CMAKE_CXX_FLAGS}")
  foreach(configuration Debug Release RelWithDebInfo MinSizeRel)
    string(TOUPPER ${configuration} upper)
    separate_arguments(more NATIVE_COMMAND "${CMAKE_CXX_FLAGS_${upper}}")
    list(JOIN more "$<SEMICOLON>" more)
    list(APPEND flags "$<$<CONFIG:${configuration}>:${more}>")
  endforeach()
  foreach(property COMPILE_OPTIONS COMPILE_DEFINITIONS INCLUDE_DIRECTORIES)
    set(${property} "$<TARGET_PROPERTY:${name},${property}>")
    if(scope STREQUAL "INTERFACE")
      set(${property} "$<TARGET_PROPERTY:${name},INTERFACE_${property}>")
    endif()
  endforeach()
  list(APPEND flags "${COMPILE_OPTIONS}" "$<$<BOOL:${COMPILE_DEFINITIONS}>:-D$<JOIN:${COMPILE_DEFINITIONS},;-D>>"
       "$<$<BOOL:${INCLUDE_DIRECTORIES}>:-I$<JOIN:${INCLUDE_DIRECTORIES},;-I>>" ${arg_COMPILE_OPTIONS} ${pic})

  get_target_property(standard ${name} CXX_STANDARD)
  if(standard MATCHES "^2[036]$")
    list(APPEND arg_OPTIONS --std=c++${standard})
  endif()

  string(MD5 which "${sources}")
  string(SUBSTRING ${which} 0 8 which)
  set(object "${CMAKE_CURRENT_BINARY_DIR}/${name}.lantern.${which}${CMAKE_CXX_OUTPUT_EXTENSION}")
  set(depfile "${CMAKE_CURRENT_BINARY_DIR}/${name}.lantern.${which}.d")
  add_custom_command(
    OUTPUT "${object}"
    COMMAND ${CMAKE_COMMAND} -E env "CXX=${CMAKE_CXX_COMPILER}" "${lanternc}" ${sources} ${arg_OPTIONS} -o "${object}"
            --depfile "${depfile}" -- "${flags}" ${staging_libraries}
    DEPENDS ${sources} ${depends}
    DEPFILE "${depfile}"
    COMMENT "lanternc ${name}"
    COMMAND_EXPAND_LISTS VERBATIM)
  set_source_files_properties("${object}" PROPERTIES EXTERNAL_OBJECT ON GENERATED ON)
  target_sources(${name} ${scope} "${object}")
  set(runtime Lantern::aot)
  if("--with-jit" IN_LIST arg_OPTIONS)
    set(runtime Lantern::lantern)
  endif()
  if("--target=cuda" IN_LIST arg_OPTIONS)
    find_package(CUDAToolkit QUIET)
    if(NOT TARGET CUDA::cudart_static)
      message(FATAL_ERROR "${caller}(${name}): --target=cuda needs the CUDA run time (libcudart_static.a): install the CUDA "
              "toolkit, and set CUDAToolkit_ROOT where it is not found")
    endif()
    list(APPEND runtime CUDA::cudart_static)
  endif()
  target_link_libraries(${name} ${scope} ${arg_LINK_LIBRARIES} ${runtime})
  if(scope STREQUAL "INTERFACE")
    add_custom_target(${name}_object DEPENDS "${object}")  # one rule for all directories that link it
    add_dependencies(${name} ${name}_object)
  else()
    set_target_properties(${name} PROPERTIES LINKER_LANGUAGE CXX)
  endif()
  # What editors read: never built.
  set(shown ${name}_sources)
  if(TARGET ${shown})
    string(APPEND shown _${which})
  endif()
  add_library(${shown} OBJECT EXCLUDE_FROM_ALL ${sources})
  target_link_libraries(${shown} PRIVATE Lantern::core)
  target_compile_features(${shown} PRIVATE cxx_std_20)
  target_compile_definitions(${shown} PRIVATE LANTERN_FRONTEND ${COMPILE_DEFINITIONS})
  target_include_directories(${shown} PRIVATE ${INCLUDE_DIRECTORIES})
  target_compile_options(${shown} PRIVATE ${COMPILE_OPTIONS} ${arg_COMPILE_OPTIONS})
endfunction()
