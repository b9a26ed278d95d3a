# embed_text(target file symbol): the file's bytes, NUL-terminated, as `const char symbol[]` in the target.
# The second half runs at build time, as a script.
if(NOT CMAKE_SCRIPT_MODE_FILE)
  set(embed_script ${CMAKE_CURRENT_LIST_FILE})
  function(embed_text target file symbol)
    set(out ${CMAKE_BINARY_DIR}/generated/${symbol}.c)
    add_custom_command(OUTPUT ${out}
      COMMAND ${CMAKE_COMMAND} -DIN=${CMAKE_SOURCE_DIR}/${file} -DOUT=${out} -DSYMBOL=${symbol} -P ${embed_script}
      DEPENDS ${CMAKE_SOURCE_DIR}/${file} ${embed_script} VERBATIM)
    target_sources(${target} PRIVATE ${out})
  endfunction()
else()
  file(READ ${IN} bytes HEX)
  string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${bytes}")
  string(REGEX REPLACE "((0x..,){20})" "\\1\n" bytes "${bytes}")
  file(WRITE ${OUT} "extern const char ${SYMBOL}[];\nconst char ${SYMBOL}[] = {\n${bytes}0};\n")
endif()
