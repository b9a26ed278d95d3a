# What the command prints about itself, as files to install: the man page and the shells' completion.
set(words ${CMAKE_CURRENT_BINARY_DIR}/words)
file(MAKE_DIRECTORY ${words})
add_custom_command(OUTPUT ${words}/isamap.1 ${words}/isamap.bash ${words}/_isamap
  COMMAND isamap --man > ${words}/isamap.1
  COMMAND isamap --completion bash > ${words}/isamap.bash
  COMMAND isamap --completion zsh > ${words}/_isamap
  DEPENDS isamap VERBATIM)
add_custom_target(words ALL DEPENDS ${words}/isamap.1 ${words}/isamap.bash ${words}/_isamap)
install(FILES ${words}/isamap.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
install(FILES ${words}/isamap.bash DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions RENAME isamap)
install(FILES ${words}/_isamap DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions)
