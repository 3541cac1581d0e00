# What policy wants of a package and an installation need not have: manuals and changelog are compressed (the same
# each time), and the licence is named rather than repeated.
set(share ${CPACK_TEMPORARY_INSTALL_DIRECTORY}/usr/share)
file(GLOB_RECURSE pages ${share}/man/*.[0-9])
foreach(file ${pages} ${share}/doc/opserve/changelog.Debian)
  execute_process(COMMAND gzip -9nf ${file} COMMAND_ERROR_IS_FATAL ANY)
endforeach()
file(REMOVE ${share}/doc/opserve/LICENSE)
