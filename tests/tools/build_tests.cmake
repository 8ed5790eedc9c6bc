# Tests of the build and of the README: layers, the installed package as somebody else uses it, the commands that a reader
# would type. Labels: build, readme.
add_test(NAME build.layers COMMAND ${CMAKE_COMMAND} -DROOT=${PROJECT_SOURCE_DIR}
  -DSCRATCH=${PROJECT_BINARY_DIR}/layers-scratch -P ${PROJECT_SOURCE_DIR}/tests/check_layers.cmake)
set_tests_properties(build.layers PROPERTIES LABELS build)
if(NOT ORRERY_SANITIZE) # a consumer would have to be built with the same sanitizer
  add_test(NAME build.consumer COMMAND ${CMAKE_COMMAND} -DBUILD=${PROJECT_BINARY_DIR}
    -DSOURCE=${PROJECT_SOURCE_DIR}/tests/consumer -DSCRATCH=${PROJECT_BINARY_DIR}/consumer-scratch
    -DCXX=${CMAKE_CXX_COMPILER} -DDATA=${PROJECT_SOURCE_DIR}/tests/data/real/anime.test.txt.gz
    -P ${PROJECT_SOURCE_DIR}/tests/consumer/run.cmake)
  set_tests_properties(build.consumer PROPERTIES LABELS build TIMEOUT 1200)
endif()
add_test(NAME readme COMMAND ${Python3_EXECUTABLE} -B -m unittest test_readme
  WORKING_DIRECTORY ${PROJECT_SOURCE_DIR}/tests/readme)
set_tests_properties(readme PROPERTIES LABELS readme TIMEOUT 300
  ENVIRONMENT "ORRERY=$<TARGET_FILE:orrery>;ORRERY_SOURCE_DIR=${PROJECT_SOURCE_DIR};ORRERY_HAS_MPI=$<TARGET_EXISTS:orrery_dist>")
