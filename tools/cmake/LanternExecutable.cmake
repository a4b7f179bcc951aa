# lantern_add_executable(NAME SOURCE... [OPTIONS lanternc-option...] [COMPILE_OPTIONS flag...] [LINK_LIBRARIES lib...])
#
# A program whose LANTERN_FUNCTIONs lanternc compiles ahead of time. It is built anew when a source, or a header that one
# includes, has changed, and not otherwise; what did not change of its functions is not compiled again. OPTIONS are
# those of lanternc (--threads=2, -g, --check=nan); COMPILE_OPTIONS go to the C++ compiler; LINK_LIBRARIES are files,
# -l flags, or targets of this project (object files for external functions, for instance).
#
# The program is CMAKE_CURRENT_BINARY_DIR/NAME; the target that builds it is NAME_program, a part of all. Where CMAKE_EXPORT_COMPILE_COMMANDS is on,
# compile_commands.json has the sources as lanternc reads them, so that clangd understands native control flow over Rep.
function(lantern_add_executable name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "OPTIONS;COMPILE_OPTIONS;LINK_LIBRARIES")
  if(NOT arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "lantern_add_executable(${name}): expected source files")
  endif()
  if(NOT LANTERN_LANTERNC)
    message(FATAL_ERROR "lantern_add_executable(${name}): there is no lanternc in this installation")
  endif()
  set(sources "")
  foreach(source ${arg_UNPARSED_ARGUMENTS})
    get_filename_component(source "${source}" ABSOLUTE)
    list(APPEND sources "${source}")
  endforeach()
  set(libraries "")
  set(depends "")
  foreach(library ${arg_LINK_LIBRARIES})
    if(TARGET ${library})
      get_target_property(type ${library} TYPE)
      if(type STREQUAL "OBJECT_LIBRARY")
        list(APPEND libraries "$<TARGET_OBJECTS:${library}>")
        list(APPEND depends "$<TARGET_OBJECTS:${library}>")
      else()
        list(APPEND libraries "$<TARGET_LINKER_FILE:${library}>")
      endif()
      list(APPEND depends ${library})
    else()
      list(APPEND libraries "${library}")
      if(EXISTS "${library}")
        list(APPEND depends "${library}")
      endif()
    endif()
  endforeach()
  set(program "${CMAKE_CURRENT_BINARY_DIR}/${name}${CMAKE_EXECUTABLE_SUFFIX}")
  set(depfile "${CMAKE_CURRENT_BINARY_DIR}/${name}.lantern.d")
  add_custom_command(
    OUTPUT "${program}"
    COMMAND ${CMAKE_COMMAND} -E env "CXX=${CMAKE_CXX_COMPILER}" "${LANTERN_LANTERNC}" ${sources} ${arg_OPTIONS} -o
            "${program}" --depfile "${depfile}" -- ${arg_COMPILE_OPTIONS} ${libraries}
    DEPENDS ${sources} ${depends} "${LANTERN_LANTERNC}"
    DEPFILE "${depfile}"
    COMMENT "lanternc ${name}"
    COMMAND_EXPAND_LISTS VERBATIM)
  add_custom_target(${name}_program ALL DEPENDS "${program}")
  # What editors read: never built.
  add_library(${name}_sources OBJECT EXCLUDE_FROM_ALL ${sources})
  target_link_libraries(${name}_sources PRIVATE Lantern::core)
  target_compile_features(${name}_sources PRIVATE cxx_std_20)
  target_compile_definitions(${name}_sources PRIVATE LANTERN_FRONTEND)
  target_compile_options(${name}_sources PRIVATE ${arg_COMPILE_OPTIONS})
endfunction()
