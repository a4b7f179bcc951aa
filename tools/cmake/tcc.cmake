# libtcc as one object that a shared library may hold too.
#
# Debian's libtcc.a is made for executables: its code finds what it refers to at a distance that is fixed when it is
# linked, which is not so of variables of the C library, nor of names that another library may replace. Here its parts
# are merged, all names but those of its interface become its own, and the variables get names that
# codegen/toolchain/tcc.cpp defines.
#
#   lantern_tcc_object(ARCHIVE OBJECT)   how OBJECT, a file, is made of ARCHIVE, libtcc.a
function(lantern_tcc_object archive object)
  set(names)
  foreach(function new delete set_error_func set_options set_output_type compile_string add_symbol relocate list_symbols)
    list(APPEND names --keep-global-symbol=tcc_${function})
  endforeach()
  foreach(variable stdout stderr environ)
    list(APPEND names --redefine-sym ${variable}=lantern_tcc_${variable})
  endforeach()
  add_custom_command(OUTPUT ${object} DEPENDS ${archive} VERBATIM COMMENT "Merging ${archive}"
    COMMAND ${CMAKE_LINKER} -r --whole-archive ${archive} -o ${object}
    COMMAND ${CMAKE_OBJCOPY} ${names} ${object})
endfunction()
