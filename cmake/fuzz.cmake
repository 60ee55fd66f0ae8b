# Each tests/fuzz/targets/X.c is a program fuzz_X. With FUZZ, libFuzzer drives
# it; else a driver that runs its corpus and a few mutations, the same ones each
# time, which is a test.
set(FUZZ_FILES ${CMAKE_BINARY_DIR}/fuzz/files)
file(GLOB fuzz_packed CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/tests/fuzz/bases/*.xz
	${CMAKE_SOURCE_DIR}/testdata/cores/*-small*.core.xz
	${CMAKE_SOURCE_DIR}/testdata/cores/*-damaged-*.core.xz)
foreach(packed IN LISTS fuzz_packed)
	get_filename_component(name ${packed} NAME)
	string(REGEX REPLACE "\\.xz$" "" name ${name})
	add_custom_command(OUTPUT ${FUZZ_FILES}/${name}
		COMMAND ${Python3_EXECUTABLE} ${CMAKE_SOURCE_DIR}/tests/fuzz/unpack
			${packed} ${FUZZ_FILES}/${name}
		DEPENDS ${packed} VERBATIM)
	list(APPEND fuzz_files ${FUZZ_FILES}/${name})
endforeach()
file(MAKE_DIRECTORY ${FUZZ_FILES}) # Make does not, as Ninja does
add_custom_target(fuzz_files ALL DEPENDS ${fuzz_files})

add_library(fuzz_support OBJECT tests/fuzz/edits.c tests/fuzz/core_target.c
	tests/fuzz/edited_program.c tests/fuzz/memory.c)
target_compile_definitions(fuzz_support PUBLIC FUZZ_FILES="${FUZZ_FILES}")
target_link_libraries(fuzz_support PUBLIC front)

file(GLOB fuzz_targets CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/tests/fuzz/targets/*.c)
foreach(source IN LISTS fuzz_targets)
	get_filename_component(name ${source} NAME_WE)
	add_executable(fuzz_${name} ${source})
	target_link_libraries(fuzz_${name} PRIVATE fuzz_support)
	add_dependencies(fuzz_${name} fuzz_files)
	set_target_properties(fuzz_${name} PROPERTIES
		RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/fuzz)
	if(FUZZ)
		target_link_options(fuzz_${name} PRIVATE -fsanitize=fuzzer)
		continue()
	endif()
	target_sources(fuzz_${name} PRIVATE tests/fuzz/driver.c)
	add_test(NAME fuzz/${name}
		COMMAND fuzz_${name} -runs=${FUZZ_RUNS} -seed=1
			${CMAKE_SOURCE_DIR}/tests/fuzz/corpus/${name}
		WORKING_DIRECTORY ${CMAKE_BINARY_DIR}/fuzz)
	set_tests_properties(fuzz/${name} PROPERTIES TIMEOUT 120 LABELS unit)
endforeach()
