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
foreach(header cuda distributed lantern data eigen linalg nn onnx random solvers tensor)
  install(FILES compiler/${header}.hpp DESTINATION include/lantern)
endforeach()
install(FILES tools/gdb/lantern.py DESTINATION share/lantern/gdb)

# lanternc looks for ../include and ../lib.
install(TARGETS lantern_core lantern_calculus EXPORT lantern_core_targets ARCHIVE DESTINATION lib)
install(TARGETS lantern EXPORT lantern_jit_targets ARCHIVE DESTINATION lib)
install(EXPORT lantern_core_targets NAMESPACE Lantern:: FILE core.cmake DESTINATION ${lantern_package})
install(EXPORT lantern_jit_targets NAMESPACE Lantern:: FILE jit.cmake DESTINATION ${lantern_package})
foreach(part data distributed linalg onnx)
  set_target_properties(lantern_${part} PROPERTIES EXPORT_NAME ${part})
  install(TARGETS lantern_${part} EXPORT lantern_${part}_targets ARCHIVE DESTINATION lib)
  install(EXPORT lantern_${part}_targets NAMESPACE Lantern:: FILE ${part}.cmake DESTINATION ${lantern_package})
endforeach()
if(TARGET lanternc)
  install(TARGETS lanternc lantern-onnx RUNTIME DESTINATION bin COMPONENT tools)
  install(TARGETS lantern_aot ARCHIVE DESTINATION lib)
endif()

configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/LanternConfig.cmake.in LanternConfig.cmake
  INSTALL_DESTINATION ${lantern_package} NO_SET_AND_CHECK_MACRO NO_CHECK_REQUIRED_COMPONENTS_MACRO)
write_basic_package_version_file(LanternConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/LanternConfig.cmake ${PROJECT_BINARY_DIR}/LanternConfigVersion.cmake
        ${CMAKE_CURRENT_LIST_DIR}/libraries.cmake ${CMAKE_CURRENT_LIST_DIR}/LanternExecutable.cmake DESTINATION ${lantern_package})

include(${CMAKE_CURRENT_LIST_DIR}/packages.cmake)
