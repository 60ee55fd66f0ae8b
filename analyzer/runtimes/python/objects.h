/*
 * Objects of CPython: which allocations are such, and of what type.
 */
#pragma once

#include "analyzer/runtimes/object_links.h"

#define PYTHON_SLOTS                                                                               \
	python, release, find_objects, class_name, visit_bases, may_refer, is_link, is_collecting, \
		liveness, known_leak, visit_structure
DECLARE_SLOTS(runtime, PYTHON_SLOTS);
#define PYTHON_CALL_SLOTS python, visit_frames, find_exception, visit_tasks
DECLARE_SLOTS(runtime_calls, PYTHON_CALL_SLOTS);
#define PYTHON_LINK_SLOTS \
	python, find_globals, find_locals, walk_links, target_of, tell_step, read_value, whole
DECLARE_SLOTS(runtime_links, PYTHON_LINK_SLOTS);
extern const struct object_step python_steps[];
