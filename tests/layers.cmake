# A layer of the compiler sees the layers it stands on and nothing else: which headers the preprocessor finds, in the
# include directories that the layer is compiled with.
#
#   cmake -DINCLUDES=layer_includes.cmake -DSOURCE=.. -DCXX=c++ -DWORK=directory -P layers.cmake
cmake_minimum_required(VERSION 3.25)

# What each sees: folders of the source tree. By this table an #include of a higher layer does not build.
set(passes compiler/passes)
set(ir_sees ir)
set(runtime_sees ${ir_sees} runtime runtime/cuda)
set(control_sees ${ir_sees} compiler/control)
set(staging_sees ${runtime_sees} ${control_sees} compiler/staging)
set(support_sees ${ir_sees} ${passes}/support)
set(analysis_sees ${support_sees} ${passes}/analysis)
set(canonical_sees ${analysis_sees} ${passes}/canonical)
set(direct_sees ${canonical_sees} ${passes}/direct)
set(ad_sees ${staging_sees} ${direct_sees} compiler/ad compiler/ad/modes compiler/ad/semiring)
set(library_sees ${ad_sees} compiler/tensor compiler/special compiler/random compiler/linalg compiler/solvers compiler/distributed compiler/frontend
    runtime/linalg runtime/distributed)
set(array_sees ${canonical_sees} ${passes}/array)
set(schedule_sees ${array_sees} ${passes}/schedule)
set(memory_sees ${canonical_sees} ${passes}/memory)
set(pipeline_sees ${direct_sees} ${schedule_sees} ${memory_sees} ${passes})
set(codegen_sees ${analysis_sees} codegen codegen/c codegen/cpp codegen/cuda)
set(toolchain_sees ${codegen_sees} ${runtime_sees} codegen/toolchain)
set(driver_sees ${library_sees} ${pipeline_sees} ${toolchain_sees} compiler/driver)
set(drawing_sees ${ir_sees} compiler/drawing)
set(calculus_sees ${staging_sees} compiler/calculus)
set(frontend_sees ${toolchain_sees} compiler/frontend/clang)

include(${INCLUDES})  # layers; NAME_includes, the directories of each
file(GLOB_RECURSE headers RELATIVE ${SOURCE} ${SOURCE}/ir/*.hpp ${SOURCE}/ir/*.inc ${SOURCE}/compiler/*.hpp
     ${SOURCE}/codegen/*.hpp ${SOURCE}/runtime/*.hpp ${SOURCE}/runtime/*.h)
foreach(layer ${layers})
  if(NOT ${layer}_sees)
    message(SEND_ERROR "expected a line in ${CMAKE_CURRENT_LIST_FILE} that says what layer ${layer} sees, found none")
  endif()
  set(text "")
  foreach(header ${headers})
    get_filename_component(folder ${header} DIRECTORY)
    if(folder IN_LIST ${layer}_sees)
      string(APPEND text "#if !__has_include(\"lantern/${header}\")\n#error ${layer} does not see ${header}\n#endif\n")
    else()
      string(APPEND text "#if __has_include(\"lantern/${header}\")\n#error ${layer} sees ${header}, a layer it does not stand on\n#endif\n")
    endif()
  endforeach()
  file(WRITE ${WORK}/${layer}.cpp "${text}")
  list(TRANSFORM ${layer}_includes PREPEND -I)
  execute_process(COMMAND ${CXX} -E ${${layer}_includes} ${WORK}/${layer}.cpp RESULT_VARIABLE status
                  OUTPUT_QUIET ERROR_VARIABLE messages)
  if(NOT status EQUAL 0)
    message(SEND_ERROR "${messages}")
  endif()
endforeach()

# And what a wrong #include comes to: of the driver by a pass.
file(WRITE ${WORK}/wrong.cpp "#include \"lantern/compiler/driver/compile.hpp\"\n")
execute_process(COMMAND ${CXX} -fsyntax-only ${array_includes} ${WORK}/wrong.cpp RESULT_VARIABLE status
                ERROR_VARIABLE messages)
if(status EQUAL 0 OR NOT messages MATCHES "wrong.cpp:1:.*lantern/compiler/driver/compile.hpp")
  message(SEND_ERROR "expected that a pass that includes the driver does not compile, got: ${messages}")
endif()
