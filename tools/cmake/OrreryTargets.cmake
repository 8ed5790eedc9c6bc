# Helpers that keep every folder's CMakeLists.txt down to lists of files.

add_library(orrery_options INTERFACE)
add_library(orrery::options ALIAS orrery_options)
set_target_properties(orrery_options PROPERTIES EXPORT_NAME options)
install(TARGETS orrery_options EXPORT orreryTargets)
# No -ffast-math anywhere and no contraction outside kernels: bits at staleness 0 are a promise (DESIGN, section 5). Who
# links the libraries inherits that, since their headers hold arithmetic (random.h).
target_compile_options(orrery_options INTERFACE -ffp-contract=off)
set(orrery_compile_options -Wall -Wextra -Wconversion -Wshadow -fno-omit-frame-pointer)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  list(APPEND orrery_compile_options -Wno-restrict) # false reports on std::string + (GCC bug 105651)
endif()
if(CMAKE_UNITY_BUILD)
  # Several sources in one compilation see each other's unnamed namespaces; what these warnings are for, builds of single
  # sources find.
  list(APPEND orrery_compile_options -Wno-shadow)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    list(APPEND orrery_compile_options -Wno-subobject-linkage)
  endif()
endif()
if(ORRERY_NATIVE)
  list(APPEND orrery_compile_options -march=native)
endif()
if(ORRERY_SANITIZE)
  add_compile_options(-fsanitize=${ORRERY_SANITIZE} -fno-sanitize-recover=undefined)
  add_link_options(-fsanitize=${ORRERY_SANITIZE})
  if(ORRERY_SANITIZE MATCHES "undefined" AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # TBB's own headers trip vptr. What null and object-size would say the address sanitizer says, too, and they are a
    # quarter of the time to compile.
    add_compile_options(-fno-sanitize=vptr,null,object-size)
  endif()
endif()
string(TOUPPER ${ORRERY_ASSERT} orrery_assert_upper)
target_compile_definitions(orrery_options INTERFACE ORRERY_ASSERT_${orrery_assert_upper}=1)

# Which of HEADERS no compilation has shown to compile alone yet. A header that the source of its name includes first was
# shown to by that source; to compile it once more by itself took a minute of every check. Read when CMake runs.
function(orrery_unproved_headers result)
  set(unproved "")
  foreach(header IN LISTS ARGN)
    cmake_path(RELATIVE_PATH CMAKE_CURRENT_SOURCE_DIR BASE_DIRECTORY ${PROJECT_SOURCE_DIR} OUTPUT_VARIABLE folder)
    cmake_path(REPLACE_EXTENSION header LAST_ONLY cpp OUTPUT_VARIABLE source)
    set(first "")
    if(EXISTS ${CMAKE_CURRENT_SOURCE_DIR}/${source})
      file(STRINGS ${source} first REGEX "^#" LIMIT_COUNT 1)
    endif()
    # In a unity build other sources stand before it.
    if(CMAKE_UNITY_BUILD OR NOT first STREQUAL "#include \"${folder}/${header}\"")
      list(APPEND unproved ${header})
    endif()
  endforeach()
  set(${result} ${unproved} PARENT_SCOPE)
endfunction()

# orrery_library(NAME SOURCES … HEADERS … PUBLIC … PRIVATE …): target orrery_NAME, alias orrery::NAME, installed headers.
# `ninja all_verify_interface_header_sets` compiles the headers of the set `unproved`, each alone.
function(orrery_library name)
  cmake_parse_arguments(arg "" "" "SOURCES;HEADERS;PUBLIC;PRIVATE" ${ARGN})
  add_library(orrery_${name} STATIC ${arg_SOURCES})
  add_library(orrery::${name} ALIAS orrery_${name})
  set_target_properties(orrery_${name} PROPERTIES EXPORT_NAME ${name} POSITION_INDEPENDENT_CODE ON)
  target_compile_features(orrery_${name} PUBLIC cxx_std_20)
  target_compile_options(orrery_${name} PRIVATE ${orrery_compile_options})
  # Of builds of many files at once (presets asan, tsan, fuzz): twice as many as of tests, whose own code is larger.
  set_target_properties(orrery_${name} PROPERTIES UNITY_BUILD_BATCH_SIZE 16)
  # Kernels at several levels include the same text into unnamed namespaces.
  set(kernels ${arg_SOURCES})
  list(FILTER kernels INCLUDE REGEX "_kernels_")
  set_source_files_properties(${kernels} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
  orrery_unproved_headers(unproved ${arg_HEADERS})
  list(REMOVE_ITEM arg_HEADERS ${unproved})
  target_sources(orrery_${name}
    PUBLIC FILE_SET HEADERS BASE_DIRS ${PROJECT_SOURCE_DIR} FILES ${arg_HEADERS}
    PUBLIC FILE_SET unproved TYPE HEADERS BASE_DIRS ${PROJECT_SOURCE_DIR} FILES ${unproved})
  set_target_properties(orrery_${name} PROPERTIES INTERFACE_HEADER_SETS_TO_VERIFY unproved)
  target_link_libraries(orrery_${name} PUBLIC orrery_options ${arg_PUBLIC} PRIVATE ${arg_PRIVATE})
  install(TARGETS orrery_${name} EXPORT orreryTargets
    ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}
    FILE_SET HEADERS DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/orrery
    FILE_SET unproved DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/orrery)
  target_include_directories(orrery_${name} INTERFACE $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}/orrery>)
endfunction()

# orrery_test(NAME SOURCES … LIBS … LABELS …): one GoogleTest binary, every test case known to CTest by its own name.
# `ninja tests_LABEL` builds the binaries that `ctest -L LABEL` runs, so that a sanitizer pass builds no more than it needs.
function(orrery_test name)
  cmake_parse_arguments(arg "" "TIMEOUT;SLOW" "SOURCES;LIBS;LABELS" ${ARGN})
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 300)
  endif()
  add_executable(${name} ${arg_SOURCES})
  target_compile_options(${name} PRIVATE ${orrery_compile_options})
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR})
  target_compile_definitions(${name} PRIVATE ORRERY_SOURCE_DIR="${PROJECT_SOURCE_DIR}" ORRERY_BINARY_DIR="${PROJECT_BINARY_DIR}")
  target_link_libraries(${name} PRIVATE ${arg_LIBS} GTest::gmock GTest::gtest GTest::gtest_main)
  include(GoogleTest)
  foreach(label IN LISTS arg_LABELS)
    if(NOT TARGET tests_${label})
      add_custom_target(tests_${label})
    endif()
    add_dependencies(tests_${label} ${name})
  endforeach()
  # gtest_discover_tests cannot pass lists on; `ctest -L` matches a part of a label.
  list(JOIN arg_LABELS "," labels)
  set(others)
  if(arg_SLOW)
    set(others TEST_FILTER "-${arg_SLOW}")
    gtest_discover_tests(${name} DISCOVERY_MODE PRE_TEST DISCOVERY_TIMEOUT 60 TEST_FILTER "${arg_SLOW}"
      PROPERTIES LABELS "slow" TIMEOUT 1800)
  endif()
  gtest_discover_tests(${name} DISCOVERY_MODE PRE_TEST DISCOVERY_TIMEOUT 60 ${others}
    PROPERTIES LABELS "${labels}" TIMEOUT ${arg_TIMEOUT})
endfunction()

function(orrery_install_package)
  include(CMakePackageConfigHelpers)
  set(dir ${CMAKE_INSTALL_LIBDIR}/cmake/orrery)
  if(TARGET orrery_dist)
    set(orrery_has_dist TRUE)
  else()
    set(orrery_has_dist FALSE)
  endif()
  configure_package_config_file(${PROJECT_SOURCE_DIR}/tools/cmake/orreryConfig.cmake.in
    ${PROJECT_BINARY_DIR}/orreryConfig.cmake INSTALL_DESTINATION ${dir})
  write_basic_package_version_file(${PROJECT_BINARY_DIR}/orreryConfigVersion.cmake COMPATIBILITY SameMinorVersion)
  install(FILES ${PROJECT_BINARY_DIR}/orreryConfig.cmake ${PROJECT_BINARY_DIR}/orreryConfigVersion.cmake DESTINATION ${dir})
  install(EXPORT orreryTargets NAMESPACE orrery:: DESTINATION ${dir})
endfunction()
