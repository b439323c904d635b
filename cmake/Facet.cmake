# Build rules that every folder shares: warnings, one library per folder, one test program per folder.

add_library(facet_options INTERFACE)
target_include_directories(facet_options INTERFACE ${CMAKE_SOURCE_DIR}/src)
# -ffp-contract=off: a fused multiply-add happens only where the code says fma (numbers contract, ARCHITECTURE.md).
target_compile_options(facet_options INTERFACE -Wall -Wextra -Wpedantic -Wshadow -Wconversion -ffp-contract=off)
if(FACET_WERROR)
  target_compile_options(facet_options INTERFACE -Werror)
endif()
target_link_libraries(facet_options INTERFACE Threads::Threads)

# facet_library(NAME DEPS...): library facet_NAME from the .cc files of this folder, and facet_NAME_test from its *_test.cc.
# Options: LABELS (of the test), TEST_DEPS (more libraries for the test), EXCLUDE (files that are part of neither), OWN_FLAGS
# (some files are compiled for other processors, which no common header fits).
function(facet_library name)
  cmake_parse_arguments(ARG "OWN_FLAGS" "" "DEPS;TEST_DEPS;LABELS;EXCLUDE" ${ARGN})
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.cc ${CMAKE_CURRENT_SOURCE_DIR}/*.S)
  set(tests ${sources})
  list(FILTER tests INCLUDE REGEX "_test\\.cc$")
  list(FILTER sources EXCLUDE REGEX "_test\\.cc$")
  foreach(file ${ARG_EXCLUDE})
    list(REMOVE_ITEM sources ${CMAKE_CURRENT_SOURCE_DIR}/${file})
    list(REMOVE_ITEM tests ${CMAKE_CURRENT_SOURCE_DIR}/${file})
  endforeach()
  if(sources)
    add_library(facet_${name} STATIC ${sources})
    target_link_libraries(facet_${name} PUBLIC facet_options ${ARG_DEPS})
    list(LENGTH sources n_sources)
    if(FACET_PRECOMPILED AND NOT ARG_OWN_FLAGS AND n_sources GREATER 5)
      target_precompile_headers(facet_${name} PRIVATE <fmt/format.h> <algorithm> <functional> <map> <memory> <string> <vector>)
    endif()
  else()
    add_library(facet_${name} INTERFACE)
    target_link_libraries(facet_${name} INTERFACE facet_options ${ARG_DEPS})
  endif()
  if(tests AND FACET_TESTS)
    facet_test(facet_${name}_test SOURCES ${tests} DEPS facet_${name} ${ARG_TEST_DEPS} LABELS unit ${ARG_LABELS})
  endif()
endfunction()

# facet_test(NAME SOURCES... DEPS... LABELS...): one GoogleTest program, one CTest entry.
function(facet_test name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPS;LABELS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE ${ARG_DEPS} facet_test_support GTest::gmock GTest::gtest_main)
  # What is tested lies in the libraries; the tests themselves are many, run once, and compile twice as fast like this.
  target_compile_options(${name} PRIVATE -O0)
  list(LENGTH ARG_SOURCES n_sources)
  if(FACET_PRECOMPILED AND n_sources GREATER 5)
    target_precompile_headers(${name} PRIVATE <gtest/gtest.h> <algorithm> <functional> <map> <string> <vector>)
  endif()
  add_test(NAME ${name} COMMAND ${name})
  set_tests_properties(${name} PROPERTIES LABELS "${ARG_LABELS}" TIMEOUT 600)
endfunction()
