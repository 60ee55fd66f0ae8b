/*
 * Values of PHP: which allocations are such, and of what class.
 */
#pragma once

#include "analyzer/runtimes/runtime.h"

#define PHP_SLOTS                                                                             \
	php, release, find_objects, class_name, visit_bases, may_refer, is_link, find_unused, \
		resolve, is_collecting, liveness, visit_code, visit_frames, find_globals,     \
		find_locals, visit_links, target_of, tell_step, visit_members
DECLARE_SLOTS(PHP_SLOTS);
