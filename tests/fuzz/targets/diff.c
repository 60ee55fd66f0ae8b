/*
 * Two cores that are damaged, each in its own way: what grew between them. They may be of one
 * process, or of two.
 */
#include "tests/fuzz/core_target.h"

#include <stdio.h>

/* Each twice: once as the newer core, once as the older one. */
static struct core_target target;

int LLVMFuzzerInitialize(int *count, char ***arguments)
{
	static const char *const names[] = {
		"classes.core",
		"classes.core",
		"collected.core",
		"collected.core",
		"trixie-small.core",
		"trixie-small.core",
		NULL,
	};

	core_target_init(&target, names);
	return 0;
}

static void ask(const char *newer, const char *older, unsigned int choice)
{
	static const char *const questions[] = {
		"diff %s",
		"diff %s --by class",
		"diff %s --by signature",
		"diff %s --by pattern",
		"diff %s --by size --limit 0",
		"diff %s --by fingerprint",
		"diff %s --by owner",
		"gate --compare %s --max-growth 1K",
		"diff %s --elapsed 12h --limit 5",
	};
	static const char *const lines[] = {
		"summarize new",
		"list survived --limit 20",
		"explain new --limit 20",
		"count new minus survived",
	};
	enum {
		COUNT = sizeof(questions) / sizeof(*questions),
		LINES = sizeof(lines) / sizeof(*lines)
	};
	char question[128];
	const char *asked[3] = { question, lines[choice / COUNT % LINES] };

	snprintf(question, sizeof(question), questions[choice % COUNT], older);
	core_target_ask(newer, asked);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	const uint8_t *edits = bytes + CORE_TARGET_HEAD;
	struct edited_file *newer, *older;
	size_t pairs = target.count / 2, first;

	if (size < CORE_TARGET_HEAD)
		return 0;
	size -= CORE_TARGET_HEAD;
	newer = &target.files[bytes[0] % pairs * 2];
	/* More often than not they are of one process. */
	older = &target.files[(bytes[1] & 3 ? bytes[0] : bytes[1] / 4) % pairs * 2 + 1];
	first = bytes[3] % 8 * sizeof(struct edit);
	if (first > size)
		first = size;
	edits_make(older, edits, first);
	edits_make(newer, edits + first, size - first);
	ask(newer->path, older->path, bytes[2]);
	edits_undo(newer);
	edits_undo(older);
	return 0;
}

size_t LLVMFuzzerCustomMutator(uint8_t *bytes, size_t size, size_t most, unsigned int seed)
{
	return edits_mutate(bytes, size, most, CORE_TARGET_HEAD, seed);
}
