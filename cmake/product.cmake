# libisamap (static for tests and examples, shared to install), the command, the install targets, pkg-config and CMake package.
set(product_libraries isamap_bench isamap_backends isamap_sim isamap_approaches isamap_scheduler isamap_mapper isamap_machines isamap_onnx
    isamap_ir)
file(GLOB product_sources CONFIGURE_DEPENDS command/*.c)
set(command_sources ${product_sources})
list(FILTER product_sources EXCLUDE REGEX "/(guard|progress).c$") # the command's own
list(FILTER command_sources INCLUDE REGEX "/(guard|progress).c$")
list(APPEND product_sources isamap.c)
inner_library(isamap_static ${product_sources})
target_link_libraries(isamap_static PUBLIC ${product_libraries})
add_library(isamap_shared SHARED ${product_sources})
target_link_libraries(isamap_shared PRIVATE ${product_libraries})
set_target_properties(isamap_shared PROPERTIES OUTPUT_NAME isamap EXPORT_NAME isamap VERSION ${PROJECT_VERSION} SOVERSION 0
                      PUBLIC_HEADER isamap.h)
inner_command(isamap main.c ${command_sources})
target_link_libraries(isamap PRIVATE isamap_static)
target_compile_definitions(isamap PRIVATE ISAMAP_VERSION="${PROJECT_VERSION}")

add_executable(digits EXCLUDE_FROM_ALL examples/digits/digits.c)
target_link_libraries(digits PRIVATE isamap_static)

install(TARGETS isamap RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(TARGETS isamap_shared EXPORT isamap LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
        PUBLIC_HEADER DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
if(NOT ISAMAP_TRACE) # there the folders are libraries of their own
  install(EXPORT isamap NAMESPACE isamap:: FILE isamap-config.cmake DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/isamap)
endif()
include(CMakePackageConfigHelpers)
write_basic_package_version_file(${CMAKE_CURRENT_BINARY_DIR}/isamap-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/isamap-config-version.cmake DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/isamap)
# The share is laid out as the sources are: machine files name their models relative to themselves.
file(GLOB shipped_machines CONFIGURE_DEPENDS machines/*.xml machines/*.rng)
install(FILES ${shipped_machines} DESTINATION ${CMAKE_INSTALL_DATADIR}/isamap/machines)
file(GLOB shipped_suites CONFIGURE_DEPENDS bench/*.isam bench/*.csv)
install(FILES ${shipped_suites} DESTINATION ${CMAKE_INSTALL_DATADIR}/isamap/bench)
install(DIRECTORY sim/vdla DESTINATION ${CMAKE_INSTALL_DATADIR}/isamap/sim USE_SOURCE_PERMISSIONS)
install(FILES backends/device.h DESTINATION ${CMAKE_INSTALL_DATADIR}/isamap/backends)
file(RELATIVE_PATH pc_to_prefix ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_PREFIX})
file(RELATIVE_PATH pc_to_include ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_FULL_INCLUDEDIR})
configure_file(cmake/isamap.pc.in isamap.pc @ONLY)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/isamap.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
include(cmake/words.cmake)
