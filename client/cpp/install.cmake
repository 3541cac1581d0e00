# The installed client: one archive, the public headers, and its descriptions for CMake and pkg-config.

set(OPSERVE_CLIENT_ABSL
  any_invocable btree cleanup cord flat_hash_map inlined_vector random_random span status statusor strings
  synchronization time)

# One archive, so that a program names one library wherever its objects come from in the tree.
add_library(opserve_client_archive STATIC
  $<TARGET_OBJECTS:opserve_client> $<TARGET_OBJECTS:opserve_codec> $<TARGET_OBJECTS:opserve_dtypes>
  $<TARGET_OBJECTS:opserve_status> $<TARGET_OBJECTS:opserve_proto>)
set_target_properties(opserve_client_archive PROPERTIES
  LINKER_LANGUAGE CXX OUTPUT_NAME opserve_client EXPORT_NAME client
  ARCHIVE_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib)
target_compile_features(opserve_client_archive INTERFACE cxx_std_20)
target_include_directories(opserve_client_archive INTERFACE $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
list(TRANSFORM OPSERVE_CLIENT_ABSL PREPEND absl:: OUTPUT_VARIABLE targets)
target_link_libraries(opserve_client_archive INTERFACE
  gRPC::grpc++ protobuf::libprotobuf ${targets} OpenSSL::Crypto $<INSTALL_INTERFACE:PkgConfig::ISAL> Threads::Threads)

# Programs with a sanitizer are not installed.
if(OPSERVE_SANITIZE)
  set_target_properties(opserve_client_archive PROPERTIES EXCLUDE_FROM_ALL ON)
  return()
endif()

# Installed headers include each other as "opserve/X.h", the tree's as "client/cpp/X.h" and
# "proto/status/X.h". A header that is not in these lists stays inside the tree; a test compiles each
# installed one by itself.
set(headers
  client/cpp/admin_client.h client/cpp/call_handle.h client/cpp/client.h client/cpp/connect_options.h client/cpp/data_type.h
  client/cpp/error.h client/cpp/execute_stream.h client/cpp/operator_calls.h client/cpp/operators.h client/cpp/prepared_program.h client/cpp/program.h client/cpp/request.h client/cpp/resident_tensor.h
  client/cpp/shared_memory.h client/cpp/shared_range.h client/cpp/tensor.h client/cpp/transfer_options.h
  proto/status/error.h proto/status/reason.h)
foreach(header ${headers})
  string(REPLACE "client/cpp/" "" name ${header})
  string(REPLACE "proto/" "" name ${name})
  cmake_path(GET name PARENT_PATH directory)
  set(made ${CMAKE_CURRENT_BINARY_DIR}/include/opserve/${name})
  install(CODE "
    file(READ \"${CMAKE_SOURCE_DIR}/${header}\" text)
    string(REPLACE \"client/cpp/\" \"opserve/\" text \"\${text}\")
    string(REPLACE \"proto/status/\" \"opserve/status/\" text \"\${text}\")
    file(WRITE \"${made}\" \"\${text}\")" COMPONENT dev)
  install(FILES ${made} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/opserve/${directory} COMPONENT dev)
endforeach()
install(DIRECTORY ${CMAKE_BINARY_DIR}/generated/opserve/v1 DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/opserve
  COMPONENT dev FILES_MATCHING PATTERN "*.pb.h")

set(config ${CMAKE_INSTALL_LIBDIR}/cmake/opserve)
install(TARGETS opserve_client_archive EXPORT opserve-targets
  ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT dev)
install(EXPORT opserve-targets NAMESPACE opserve:: DESTINATION ${config} COMPONENT dev)
include(CMakePackageConfigHelpers)
configure_package_config_file(opserve-config.cmake.in opserve-config.cmake INSTALL_DESTINATION ${config})
write_basic_package_version_file(opserve-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/opserve-config.cmake
  ${CMAKE_CURRENT_BINARY_DIR}/opserve-config-version.cmake DESTINATION ${config} COMPONENT dev)

# The .pc file names the prefix relative to its own place, so that an installation can be moved.
file(RELATIVE_PATH OPSERVE_PC_PREFIX ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_PREFIX})
list(TRANSFORM OPSERVE_CLIENT_ABSL PREPEND absl_ OUTPUT_VARIABLE modules)
list(JOIN modules " " OPSERVE_PC_ABSL)
configure_file(opserve.pc.in opserve.pc @ONLY)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/opserve.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT dev)
