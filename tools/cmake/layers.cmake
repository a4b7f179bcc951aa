# lantern_layer(NAME [ON layers...] FOLDERS folders... [HEADERS folders...]): a layer of the compiler, the object library
# layer_NAME of what lies in its folders; of the last ones it has the headers alone.
#
# Its files see the headers of the layer and of those that it stands ON, directly or through others: each layer has an
# include directory of its own, build/layers/NAME, with links to its headers. An #include of any other finds no file.
function(lantern_layer name)
  cmake_parse_arguments(PARSE_ARGV 1 layer "" "" "ON;FOLDERS;HEADERS")
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
  add_library(layer_${name} OBJECT ${sources})
  target_include_directories(layer_${name} PUBLIC ${include})
  list(TRANSFORM layer_ON PREPEND layer_)
  target_link_libraries(layer_${name} PUBLIC ${layer_ON} PRIVATE Threads::Threads Boost::context fmt::fmt lantern_warnings)
  lantern_precompile_standard_headers(layers layer_${name})
  set_property(GLOBAL APPEND PROPERTY LANTERN_LAYERS ${name})
endfunction()

# lantern_objects(VARIABLE layers...): the object files of layers, as sources of a library.
function(lantern_objects variable)
  list(TRANSFORM ARGN REPLACE "(.+)" "$<TARGET_OBJECTS:layer_\\1>")
  set(${variable} ${ARGN} PARENT_SCOPE)
endfunction()
