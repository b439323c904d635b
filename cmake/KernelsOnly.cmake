# The folders that the kernels need, and their tests, for a processor that this machine has no libraries for (preset
# neon): of {fmt} and nlohmann-json the headers are enough, and GoogleTest is built from its sources.

# Links to these two alone: beside them lie the headers of this machine's own C library.
find_path(FACET_FMT_HEADERS fmt/format.h NO_CMAKE_FIND_ROOT_PATH REQUIRED)
find_path(FACET_JSON_HEADERS nlohmann/json.hpp NO_CMAKE_FIND_ROOT_PATH REQUIRED)
set(headers ${CMAKE_BINARY_DIR}/headers)
file(MAKE_DIRECTORY ${headers})
file(CREATE_LINK ${FACET_FMT_HEADERS}/fmt ${headers}/fmt SYMBOLIC)
file(CREATE_LINK ${FACET_JSON_HEADERS}/nlohmann ${headers}/nlohmann SYMBOLIC)
add_library(facet_headers INTERFACE)
target_include_directories(facet_headers SYSTEM INTERFACE ${headers})
target_compile_definitions(facet_headers INTERFACE FMT_HEADER_ONLY)
add_library(fmt::fmt ALIAS facet_headers)
add_library(nlohmann_json::nlohmann_json ALIAS facet_headers)

find_path(FACET_GOOGLETEST googlemock/CMakeLists.txt PATHS /usr/src/googletest NO_CMAKE_FIND_ROOT_PATH REQUIRED)
set(INSTALL_GTEST OFF)
add_subdirectory(${FACET_GOOGLETEST} ${CMAKE_BINARY_DIR}/googletest EXCLUDE_FROM_ALL SYSTEM)

enable_testing()
add_subdirectory(src/base)
add_subdirectory(src/format)
add_subdirectory(src/quant)
add_subdirectory(src/compute)
add_subdirectory(tests/support)
