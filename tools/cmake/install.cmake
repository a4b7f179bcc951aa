# cmake --install: headers, static libraries, lanternc, and a package for find_package(Lantern).
include(CMakePackageConfigHelpers)
set(CMAKE_INSTALL_DEFAULT_COMPONENT_NAME dev)  # but for the tools

set_target_properties(lantern_core PROPERTIES EXPORT_NAME core)
set_target_properties(lantern_calculus PROPERTIES EXPORT_NAME calculus)

set(lantern_package lib/cmake/Lantern)
foreach(layer ir compiler codegen runtime)
  file(GLOB_RECURSE headers CONFIGURE_DEPENDS RELATIVE ${PROJECT_SOURCE_DIR} ${layer}/*.hpp ${layer}/*.h ${layer}/*.inc)
  list(FILTER headers EXCLUDE REGEX "/frontend/clang/")  # lanternc's own
  foreach(header ${headers})
    get_filename_component(folder ${header} DIRECTORY)
    install(FILES ${header} DESTINATION include/lantern/${folder})
  endforeach()
endforeach()
foreach(header complex cuda distributed distributed_training lantern data eigen linalg mdspan nn onnx random solvers special tensor)
  install(FILES compiler/${header}.hpp DESTINATION include/lantern)
endforeach()
install(FILES tools/gdb/lantern.py DESTINATION share/lantern/gdb)

# What is installed, without tests, samples and benchmarks: cmake --build build --target installed
add_custom_target(installed)
add_dependencies(installed lantern lantern_core lantern_calculus lantern_aot)

# lanternc looks for ../include and ../lib.
set_target_properties(lantern_aot PROPERTIES EXPORT_NAME aot)
install(TARGETS lantern_core lantern_calculus lantern_aot EXPORT lantern_core_targets ARCHIVE DESTINATION lib)
install(TARGETS lantern EXPORT lantern_jit_targets ARCHIVE DESTINATION lib)
install(EXPORT lantern_core_targets NAMESPACE Lantern:: FILE core.cmake DESTINATION ${lantern_package})
install(EXPORT lantern_jit_targets NAMESPACE Lantern:: FILE jit.cmake DESTINATION ${lantern_package})
foreach(part data distributed linalg onnx)
  set_target_properties(lantern_${part} PROPERTIES EXPORT_NAME ${part})
  install(TARGETS lantern_${part} EXPORT lantern_${part}_targets ARCHIVE DESTINATION lib)
  install(EXPORT lantern_${part}_targets NAMESPACE Lantern:: FILE ${part}.cmake DESTINATION ${lantern_package})
  add_dependencies(installed lantern_${part})
endforeach()
if(TARGET lanternc)
  add_dependencies(installed lanternc lantern-onnx)
  install(TARGETS lanternc lantern-onnx RUNTIME DESTINATION bin COMPONENT tools)
endif()

configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/LanternConfig.cmake.in LanternConfig.cmake
  INSTALL_DESTINATION ${lantern_package} NO_SET_AND_CHECK_MACRO NO_CHECK_REQUIRED_COMPONENTS_MACRO)
write_basic_package_version_file(LanternConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/LanternConfig.cmake ${PROJECT_BINARY_DIR}/LanternConfigVersion.cmake
        ${CMAKE_CURRENT_LIST_DIR}/libraries.cmake ${CMAKE_CURRENT_LIST_DIR}/LanternExecutable.cmake DESTINATION ${lantern_package})

# For pkg-config: lantern compiles in process; lantern-core stages, differentiates and prints; the other three are what
# programs link beside them for the headers of these names.
function(lantern_pkg_config name description requires)
  list(JOIN ARGN " " libraries)
  file(GENERATE OUTPUT ${PROJECT_BINARY_DIR}/${name}.pc CONTENT
"prefix=\${pcfiledir}/../..
includedir=\${prefix}/include
libdir=\${prefix}/lib

Name: ${name}
Description: ${description}
Version: ${PROJECT_VERSION}
Requires: ${requires}
Cflags: -I\${includedir}
Libs: -L\${libdir} ${libraries}
")
  install(FILES ${PROJECT_BINARY_DIR}/${name}.pc DESTINATION lib/pkgconfig)
endfunction()
lantern_pkg_config(lantern-core "Staged automatic differentiation: staging, derivatives, emitted code" ""
  -llantern_core $<TARGET_LINKER_FILE:Boost::context> $<TARGET_LINKER_FILE:fmt::fmt> -pthread -ldl)
lantern_pkg_config(lantern "Staged automatic differentiation, compiled in process" lantern-core
  -llantern ${LANTERN_CLANG_LIBRARY} ${LANTERN_LLVM_LIBRARY} -Wl,-rpath,${LANTERN_LLVM_DIR})
lantern_pkg_config(lantern-data "Tensors in files, for Lantern" lantern-core -llantern_data ${LANTERN_ZIP_LIBRARY})
lantern_pkg_config(lantern-linalg "Linear algebra and Fourier transforms, for Lantern" lantern-core
  -llantern_linalg ${LANTERN_openblas_LIBRARY} ${LANTERN_fftw3_LIBRARY} ${LANTERN_fftw3f_LIBRARY})
lantern_pkg_config(lantern-onnx "Models in ONNX, for Lantern" lantern
  -llantern_onnx ${LANTERN_onnx_proto_LIBRARY} ${LANTERN_protobuf_LIBRARY})
lantern_pkg_config(lantern-distributed "Operations between processes, for Lantern" lantern-core -llantern_distributed)

include(${CMAKE_CURRENT_LIST_DIR}/packages.cmake)
