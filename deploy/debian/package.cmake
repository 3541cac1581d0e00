# The Debian packages, by CPack: opserve, and libopserve-dev to write programs (the component "dev"). Files that only
# packages have are the components "package" and "dev-package", which `cmake --install` leaves out.
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME opserve)
set(CPACK_PACKAGE_VENDOR opserve)
set(CPACK_PACKAGE_CONTACT "opserve developers <developers@opserve.invalid>")
set(CPACK_STRIP_FILES ON)
# Files of the system's own directories stay where they are, whatever the prefix.
set(CPACK_SET_DESTDIR ON)
set(CPACK_INSTALL_PREFIX ${CMAKE_INSTALL_PREFIX})
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_COMPONENTS_GROUPING ONE_PER_GROUP)
set(CPACK_COMPONENTS_ALL Unspecified package dev dev-package)
set(CPACK_PRE_BUILD_SCRIPTS ${CMAKE_CURRENT_LIST_DIR}/finish.cmake)

set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_RELEASE 1)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS ${CMAKE_BINARY_DIR}/${OPSERVE_HOST_CANN_DIR})
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
file(WRITE ${CMAKE_CURRENT_BINARY_DIR}/conffiles "/etc/opserve/opserved.textproto\n")

set(CPACK_DEBIAN_DAEMON_PACKAGE_NAME opserve)
set(CPACK_DEBIAN_DAEMON_DESCRIPTION "lends Ascend NPUs to programs that have none
A daemon that owns the devices of a machine and runs operators on them for
clients that call over gRPC, with its command line. Without NPUs it computes
on the processor, through libraries with the interface of CANN; programs are
built with them by the package libopserve-dev.")
set(CPACK_DEBIAN_DAEMON_PACKAGE_SECTION net)
set(CPACK_DEBIAN_DAEMON_PACKAGE_DEPENDS "adduser, init-system-helpers (>= 1.52)")
set(CPACK_DEBIAN_DAEMON_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_DAEMON_PACKAGE_CONTROL_EXTRA
  ${CMAKE_CURRENT_LIST_DIR}/postinst ${CMAKE_CURRENT_LIST_DIR}/prerm ${CMAKE_CURRENT_LIST_DIR}/postrm
  ${CMAKE_CURRENT_BINARY_DIR}/conffiles)

# The client is a static library, so its programs link with all that it uses. (The description of gRPC for CMake names
# the plugin of protoc, and is refused without it.)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_NAME libopserve-dev)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_DEPENDS "opserve (= ${PROJECT_VERSION}-${CPACK_DEBIAN_PACKAGE_RELEASE}), \
libabsl-dev, libgrpc++-dev, libisal-dev, libprotobuf-dev, libssl-dev, pkgconf | pkg-config, \
protobuf-compiler-grpc")
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_RECOMMENDS "g++, cmake")
set(CPACK_DEBIAN_DEVELOPMENT_DESCRIPTION "C++ client of opserve and headers of its CANN for the processor
The static client library with its headers, for programs that call the daemon,
and the headers of the ACL and aclnn interface, for programs that compute on the
processor through the libraries of the package opserve. CMake finds the client
as opserve::client, pkg-config both as opserve and opserve-cann.")

install(FILES debian/opserved.textproto DESTINATION /etc/opserve COMPONENT package EXCLUDE_FROM_ALL)
install(FILES debian/copyright DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT package EXCLUDE_FROM_ALL)
install(FILES debian/changelog DESTINATION ${CMAKE_INSTALL_DOCDIR} RENAME changelog.Debian
  COMPONENT package EXCLUDE_FROM_ALL)
install(FILES debian/lintian-overrides DESTINATION ${CMAKE_INSTALL_DATADIR}/lintian/overrides RENAME opserve
  COMPONENT package EXCLUDE_FROM_ALL)

foreach(file copyright changelog)
  set(name ${file})
  if(file STREQUAL changelog)
    set(name changelog.Debian)
  endif()
  install(FILES debian/${file} DESTINATION ${CMAKE_INSTALL_DATAROOTDIR}/doc/libopserve-dev RENAME ${name}
    COMPONENT dev-package EXCLUDE_FROM_ALL)
endforeach()

include(CPack)
cpack_add_component(Unspecified GROUP daemon)
cpack_add_component(package GROUP daemon)
cpack_add_component(dev GROUP development)
cpack_add_component(dev-package GROUP development)
cpack_add_component_group(daemon)
cpack_add_component_group(development)
