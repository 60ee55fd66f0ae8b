# Each tests/PATH/X_test.c is a file of cmocka tests for the main() of tests/main.c, each X_test.py a
# script for python3. A test is named by its path.
pkg_check_modules(CMOCKA QUIET IMPORTED_TARGET cmocka)
find_package(Python3 QUIET COMPONENTS Interpreter)
if(NOT CMOCKA_FOUND OR NOT Python3_FOUND)
	message(STATUS "No tests: they need what 'scripts/install-dependencies test' installs")
	return()
endif()

file(GLOB_RECURSE unit_tests CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/tests/*_test.c)
if(NOT CAPTURE)
	list(FILTER unit_tests EXCLUDE REGEX "/analyzer/capture/")
elseif(NOT MACHINE STREQUAL x86_64)
	list(FILTER unit_tests EXCLUDE REGEX "/analyzer/capture/xstate_test\\.c$")
endif()
# It has an allocator of its own, as the sanitizers have.
if(SANITIZE OR FUZZ)
	list(FILTER unit_tests EXCLUDE REGEX "/cli/leaks_test\\.c$")
endif()
# All are one program, but for those that define functions of heapcore or of the C library anew.
set(STANDING_IN analyzer/analysis/analysis analyzer/gate/shape analyzer/graph/dominators
	analyzer/graph/leaks analyzer/graph/liveness analyzer/graph/paths analyzer/kinds/reach
	analyzer/kinds/retained analyzer/query/extension analyzer/query/order cli/leaks)
add_executable(units tests/main.c)
# Results for a program are kept by its build-id, and some tests are that program.
target_link_options(units PRIVATE -Wl,--build-id)
function(add_unit_test name source)
	set(target units)
	if(name IN_LIST STANDING_IN)
		string(REPLACE "/" "_" target unit_${name})
		add_executable(${target} tests/main.c)
	endif()
	target_sources(${target} PRIVATE ${source})
	add_test(NAME ${name} COMMAND ${target} ${name} WORKING_DIRECTORY ${CMAKE_SOURCE_DIR})
	set_tests_properties(${name} PROPERTIES TIMEOUT 120 LABELS unit)
	# Some read their own debug information, whatever the type of the build. They compile in half
	# the time as the build with the sanitizers has them; what they test is optimised.
	target_compile_options(${target} PRIVATE -g -Og -Wno-maybe-uninitialized)
	target_link_libraries(${target} PRIVATE front PkgConfig::CMOCKA)
	set_target_properties(${target} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
endfunction()
foreach(source IN LISTS unit_tests)
	file(RELATIVE_PATH path ${CMAKE_SOURCE_DIR}/tests ${source})
	string(REGEX REPLACE "_test\\.c$" "" name ${path})
	add_unit_test(${name} ${source})
endforeach()

# heapcore with the allocators of testdata/allocators, too.
file(GLOB more_sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/testdata/allocators/*.c)
set(COLLECTED_AS more_)
collect_kind(allocator allocators analyzer/heap/allocator.h allocators testdata/allocators)
unset(COLLECTED_AS)
add_executable(heapcore_more cli/main.c ${COLLECTED_more_allocators} ${more_sources})
target_compile_definitions(heapcore_more PRIVATE VERSION="${PROJECT_VERSION}")
target_link_libraries(heapcore_more PRIVATE front)
target_link_options(heapcore_more PRIVATE -Wl,--build-id)

set(BUILT_BY_TESTS ${CMAKE_BINARY_DIR}/built-by-tests CACHE PATH
	"Where programs that tests compile are kept for the next run")
file(GLOB_RECURSE script_tests CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/tests/*_test.py)
# scripts/static runs these.
list(FILTER script_tests EXCLUDE REGEX "/tests/(static|packages)_test\\.py$")
foreach(source IN LISTS script_tests)
	file(RELATIVE_PATH path ${CMAKE_SOURCE_DIR}/tests ${source})
	string(REGEX REPLACE "_test\\.py$" "" name ${path})
	add_test(NAME ${name} COMMAND ${Python3_EXECUTABLE} -B
		${CMAKE_SOURCE_DIR}/tests/say_skips.py ${source}
		WORKING_DIRECTORY ${CMAKE_SOURCE_DIR})
	set_tests_properties(${name} PROPERTIES TIMEOUT 600
		SKIP_RETURN_CODE 77 ENVIRONMENT
		"HEAPCORE=$<TARGET_FILE:heapcore>;SOURCE_DIR=${CMAKE_SOURCE_DIR};BUILD_DIR=${CMAKE_BINARY_DIR};BUILT_BY_TESTS=${BUILT_BY_TESTS};XDG_CACHE_HOME=${CMAKE_BINARY_DIR}/cache;CI=;GITHUB_ACTIONS=")
endforeach()

# It compiles a program in three ways, with HEAPCORE_VARIANTS=all.
set_tests_properties(live/crystal PROPERTIES TIMEOUT 1800)

# Those that take longest start first: no processor waits for the other in the end. ctest itself
# knows only what it has run before. live/live takes two places, which are free together only in the
# beginning; live/soak waits for most of its time.
set(FIRST_TESTS live/live live/slim live/soak live/gate_programs live/clone live/crystal live/stacks
	live/script_stacks live/ruby live/boehm cli/ci_recipes live/same_numbers cli/shortage
	live/typed_containers live/serve_viewers cli/export_programs live/patterns cli/session
	live/tcmalloc cli/names live/gate_debian live/classes live/python_paths cli/tutorial
	live/ruby_paths live/jemalloc live/rust live/serve_clicks_viewers live/typed_members cli/gate
	live/elsewhere cli/examples live/ruby_dump_all cli/schemas cli/sql live/types
	live/fleet_engines cli/terminal)
# scripts/test --quick runs these, too.
set(NOT_SLOW live/soak live/script_stacks live/ruby cli/ci_recipes live/serve_viewers
	live/python_paths cli/tutorial live/ruby_paths live/serve_clicks_viewers live/ruby_dump_all)
list(LENGTH FIRST_TESTS cost)
foreach(name IN LISTS FIRST_TESTS)
	if(TEST ${name})
		set_tests_properties(${name} PROPERTIES COST ${cost})
		if(NOT name IN_LIST NOT_SLOW)
			set_tests_properties(${name} PROPERTIES LABELS slow)
		endif()
	endif()
	math(EXPR cost "${cost} - 1")
endforeach()

# It runs as many programs at once as there are processors.
set_tests_properties(live/live PROPERTIES PROCESSORS 2)

# How many mutations the fuzz tests try besides their corpora.
set(FUZZ_RUNS 50)
include(cmake/fuzz.cmake)

# One session of each kind: what a core of any allocator, language or command needs.
set(SESSION_TESTS cli/leak_roots cli/prompt cli/run cli/tutorial cli/untrusted live/cores live/diff live/gdb
	live/mimalloc live/notes live/objects live/perl_paths live/php_paths live/python_frames live/report
	live/ruby_frames live/unexplained live/variables live/waiting)
set_property(TEST ${SESSION_TESTS} APPEND PROPERTY LABELS session)
# What differs most from one Debian to the next.
set_property(TEST live/perl live/php live/python live/ruby live/threads
	APPEND PROPERTY LABELS system)
