# lantern_layer(NAME [ON layers...] FOLDERS folders... [HEADERS folders...] [CLANG sources... WITH options...]
#               [SEPARATE | EAGER | COMPILER]): a
# layer of the compiler, the object library layer_NAME of what lies in its folders; of HEADERS it has the headers alone. Sources
# that include LLVM's or Clang's headers are named by CLANG, with the options that these need, and make up layer_NAME_clang.
# A layer of which programs link parts is SEPARATE: each source by itself, so that they link no more than they call. A layer
# that computes derivatives eagerly is EAGER: -O3, and g++ inlines in its groups as much as it does in small files. What
# lanternc builds links some of its groups, so nothing in it uses fmt. One that only compiles programs is part of the COMPILER.
#
# Its files see the headers of the layer and of those that it stands ON, directly or through others: each layer has an
# include directory of its own, build/layers/NAME, with links to its headers. An #include of any other finds no file.
function(lantern_layer name)
  cmake_parse_arguments(PARSE_ARGV 1 layer "SEPARATE;EAGER;COMPILER" "" "ON;FOLDERS;HEADERS;CLANG;WITH")
  set(include ${PROJECT_BINARY_DIR}/layers/${name})
  file(REMOVE_RECURSE ${include})  # a header that has moved is no longer here
  foreach(folder ${layer_FOLDERS} ${layer_HEADERS})
    file(MAKE_DIRECTORY ${include}/lantern/${folder})
    file(GLOB headers CONFIGURE_DEPENDS RELATIVE ${PROJECT_SOURCE_DIR} ${folder}/*.hpp ${folder}/*.h ${folder}/*.inc)
    foreach(header ${headers})
      file(CREATE_LINK ${PROJECT_SOURCE_DIR}/${header} ${include}/lantern/${header} SYMBOLIC)
    endforeach()
  endforeach()
  list(TRANSFORM layer_FOLDERS APPEND /*.cpp)
  file(GLOB sources CONFIGURE_DEPENDS ${layer_FOLDERS})
  if(layer_CLANG)
    list(TRANSFORM layer_CLANG PREPEND ${PROJECT_SOURCE_DIR}/)
    list(REMOVE_ITEM sources ${layer_CLANG})
    add_library(layer_${name}_clang OBJECT ${layer_CLANG})
    target_compile_options(layer_${name}_clang PRIVATE ${layer_WITH})
    target_include_directories(layer_${name}_clang SYSTEM PRIVATE ${LLVM_INCLUDE_DIRS})
    target_link_libraries(layer_${name}_clang PRIVATE layer_${name} Threads::Threads Boost::context fmt::fmt lantern_warnings)
    lantern_unite(layer_${name}_clang 16)  # Clang's headers cost more than what we write
  endif()
  add_library(layer_${name} OBJECT ${sources})
  target_include_directories(layer_${name} PUBLIC ${include})
  list(TRANSFORM layer_ON PREPEND layer_)
  target_link_libraries(layer_${name} PUBLIC ${layer_ON} PRIVATE Threads::Threads Boost::context fmt::fmt lantern_warnings)
  lantern_precompile_standard_headers(layers layer_${name})
  if(NOT layer_SEPARATE)
    lantern_unite(layer_${name} 8)
  endif()
  foreach(part layer_${name} layer_${name}_clang)
    if(TARGET ${part})
      target_compile_options(${part} PRIVATE -ffunction-sections -fdata-sections)  # programs drop what they do not call
      if(layer_EAGER)
        target_compile_options(${part} PRIVATE "$<$<CXX_COMPILER_ID:GNU>:SHELL:--param large-unit-insns=200000 --param inline-unit-growth=200>")
      elseif(layer_COMPILER)
        target_compile_options(${part} PRIVATE $<$<CONFIG:Release>:-O1>)  # at -O2 they take a third longer to compile, and compile no faster
      elseif(NOT layer_SEPARATE)
        target_compile_options(${part} PRIVATE $<$<CONFIG:Release>:-O2>)
      endif()
    endif()
  endforeach()
  set_property(GLOBAL APPEND PROPERTY LANTERN_LAYERS ${name})
endfunction()

# lantern_objects(VARIABLE layers...): the object files of layers, as sources of a library.
function(lantern_objects variable)
  set(objects)
  foreach(name ${ARGN})
    list(APPEND objects $<TARGET_OBJECTS:layer_${name}>)
    if(TARGET layer_${name}_clang)
      list(APPEND objects $<TARGET_OBJECTS:layer_${name}_clang>)
    endif()
  endforeach()
  set(${variable} ${objects} PARENT_SCOPE)
endfunction()
