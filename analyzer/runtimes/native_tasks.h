/*
 * Tasks of compiled languages, which allocators know as blocks alone. They begin with addresses of
 * code, or of a table of such:
 *
 *	coroutine of C++20	| resume | destroy | promise | parameters, variables ...
 *	task of tokio		| state | link | table | ...
 *	  table			| poll | schedule | ... 7 functions | offsets within the block ...
 *
 * The function is named by its symbol: GCC adds .actor to that of a coroutine, and Clang .resume.
 */
#pragma once

#include "analyzer/runtimes/runtime.h"

/* Visit those that have not ended, by address. */
struct error *native_tasks_visit(const struct image *image, const struct allocation_index *index,
				 struct debug *debug, struct memory_account *account,
				 const struct task_visitor *visitor);
