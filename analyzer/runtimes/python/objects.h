/*
 * Objects of CPython: which allocations are such, and of what type.
 */
#pragma once

#include "analyzer/runtimes/runtime.h"

#define PYTHON_SLOTS                                                                               \
	python, release, find_objects, class_name, visit_bases, may_refer, is_link, is_collecting, \
		liveness, known_leak, visit_frames, find_exception, find_globals, find_locals,     \
		visit_links, target_of, tell_step, visit_tasks, item_of, read_value
DECLARE_SLOTS(PYTHON_SLOTS);
