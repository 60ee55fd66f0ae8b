/*
 * Cores whose heaps are damaged: what the allocators and the graph make of them.
 */
#include "tests/fuzz/core_target.h"

static struct core_target target;

int LLVMFuzzerInitialize(int *count, char ***arguments)
{
	static const char *const names[] = {
		"bookworm-small.core",
		"bullseye-small.core",
		"forky-damaged-size.core",
		"trixie-damaged-run.core",
		"forky-small.core",
		"bookworm-small-static.core",
		"collected.core",
		"containers.core",
		"bookworm-small-jemalloc.core",
		"tcmalloc.core",
		"musl.core",
		"mimalloc.core",
		NULL,
	};

	core_target_init(&target, names);
	return 0;
}

static void look(const char *path, unsigned int choice)
{
	static const enum stage stages[] = {
		STAGE_HEAP,	STAGE_OWNERS,	STAGE_FIBERS,	  STAGE_COLLECTOR,    STAGE_LEAKS,
		STAGE_RETAINED, STAGE_PATTERNS, STAGE_SIGNATURES, STAGE_OBJECT_PATHS,
	};

	core_target_need(path, stages[choice % (sizeof(stages) / sizeof(*stages))]);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	core_target_run(&target, bytes, size, look);
	return 0;
}

size_t LLVMFuzzerCustomMutator(uint8_t *bytes, size_t size, size_t most, unsigned int seed)
{
	return edits_mutate(bytes, size, most, CORE_TARGET_HEAD, seed);
}
