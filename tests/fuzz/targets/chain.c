/*
 * Cores that are damaged anywhere: every command on them, from the first byte of the core to the
 * last of the report.
 */
#include "tests/fuzz/core_target.h"

static struct core_target target;

int LLVMFuzzerInitialize(int *count, char ***arguments)
{
	static const char *const names[] = {
		"classes.core",
		"collected.core",
		"bookworm-small.core",
		"trixie-small.core",
		"containers.core",
		"trixie-damaged-run.core",
		NULL,
	};

	core_target_init(&target, names);
	return 0;
}

static void look(const char *path, unsigned int choice)
{
	static const char *const lines[] = {
		"summarize used",
		"summarize leaked",
		"summarize leakroots",
		"explain used --limit 20",
		"explain leaked --limit 20",
		"describe used --limit 30 --show-up-to 40",
		"describe threads",
		"describe stacks",
		"backtrace --locals",
		"list used --limit 50 --annotate *.*",
		"list free --limit 50",
		"enumerate leakroots --sort-by bytes --limit 20",
		"show used --limit 5 --ascii",
		"memprof counts",
		"memprof sizes",
		"memprof allocations --limit 20",
		"gate --likely",
		"gate --max-used 1M --max-leaked-bytes 1K",
		"list modules",
		"list mappings",
		"count unreferenced",
		"summarize used --extend ->",
		"list garbage --limit 20",
		"count threadonlyanchored",
		"summarize used --sort-by bytes --format json",
		"explain used --sort-by retained --limit 10",
		"findbytes --text a --limit 10",
		"summarize writable",
		"list used --limit 5 --extend <- --comment-extensions",
		"let x = leaked minus unreferenced",
		"summarize used %LongString",
		"list regions",
	};
	/* Chosen by a byte of their own; the first is to ask for no more. */
	static const char *const further[] = {
		NULL,
		"bill",
		"bill --all",
		"fragmentation",
		"fragmentation --quick --by-arena",
		"fragmentation --limit 5",
		"waste",
		"waste duplicates --limit 50",
		"waste zeros",
		"waste spare --limit 20",
		"waste slack used %VectorBody",
		"waste leaked",
	};
	enum {
		COUNT = sizeof(lines) / sizeof(*lines),
		FURTHER = sizeof(further) / sizeof(*further)
	};
	const char *asked[4] = { lines[choice % COUNT], lines[choice / COUNT % COUNT],
				 further[(choice >> 16) % FURTHER] };

	core_target_ask(path, asked);
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
