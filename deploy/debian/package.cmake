# The Debian package, by CPack. What only the package has is the component "package", which
# `cmake --install` leaves out.
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME opserve)
set(CPACK_PACKAGE_VENDOR opserve)
set(CPACK_PACKAGE_CONTACT "opserve developers <developers@opserve.invalid>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "lends Ascend NPUs to programs that have none")
set(CPACK_PACKAGE_DESCRIPTION "A daemon that owns the devices of a machine and runs gradient operators on
them for clients that call over gRPC, with its command line. Without NPUs it
computes on the processor, through libraries with the interface of CANN, which
programs can be built with as well.")
set(CPACK_STRIP_FILES ON)
# Files of the system's own directories stay where they are, whatever the prefix.
set(CPACK_SET_DESTDIR ON)
set(CPACK_INSTALL_PREFIX ${CMAKE_INSTALL_PREFIX})
set(CPACK_INSTALL_CMAKE_PROJECTS
  "${CMAKE_BINARY_DIR};opserve;Unspecified;/;${CMAKE_BINARY_DIR};opserve;package;/")
set(CPACK_PRE_BUILD_SCRIPTS ${CMAKE_CURRENT_LIST_DIR}/finish.cmake)

set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_RELEASE 1)
set(CPACK_DEBIAN_PACKAGE_SECTION net)
set(CPACK_DEBIAN_PACKAGE_DEPENDS "adduser, init-system-helpers (>= 1.52)")
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS ${CMAKE_BINARY_DIR}/${OPSERVE_HOST_CANN_DIR})
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
file(WRITE ${CMAKE_CURRENT_BINARY_DIR}/conffiles "/etc/opserve/opserved.textproto\n")
set(CPACK_DEBIAN_PACKAGE_CONTROL_EXTRA
  ${CMAKE_CURRENT_LIST_DIR}/postinst ${CMAKE_CURRENT_LIST_DIR}/prerm ${CMAKE_CURRENT_LIST_DIR}/postrm
  ${CMAKE_CURRENT_BINARY_DIR}/conffiles)

install(FILES debian/opserved.textproto DESTINATION /etc/opserve COMPONENT package EXCLUDE_FROM_ALL)
install(FILES debian/copyright DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT package EXCLUDE_FROM_ALL)
install(FILES debian/changelog DESTINATION ${CMAKE_INSTALL_DOCDIR} RENAME changelog.Debian
  COMPONENT package EXCLUDE_FROM_ALL)
install(FILES debian/lintian-overrides DESTINATION ${CMAKE_INSTALL_DATADIR}/lintian/overrides RENAME opserve
  COMPONENT package EXCLUDE_FROM_ALL)

include(CPack)
