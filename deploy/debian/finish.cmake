# What policy wants of packages and an installation need not have: manuals and changelogs are compressed (the same
# each time), the licence is named rather than repeated, and archives have no debug information.
set(root ${CPACK_TEMPORARY_INSTALL_DIRECTORY})
cmake_policy(SET CMP0009 NEW)  # links stay links
file(GLOB_RECURSE pages ${root}/*/usr/share/man/*.[0-9] ${root}/*/changelog.Debian)
foreach(file ${pages})
  execute_process(COMMAND gzip -9nf ${file} COMMAND_ERROR_IS_FATAL ANY)
endforeach()
file(REMOVE ${root}/daemon/usr/share/doc/opserve/LICENSE)
file(GLOB_RECURSE archives ${root}/*/usr/lib/*.a)
foreach(file ${archives})
  execute_process(COMMAND strip --strip-debug --enable-deterministic-archives ${file} COMMAND_ERROR_IS_FATAL ANY)
endforeach()
