/*
 * Damaged cores without contents: they are written, and read again.
 */
#include "analyzer/slim/slim.h"
#include "tests/fuzz/core_target.h"

#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

static struct core_target target;

int LLVMFuzzerInitialize(int *count, char ***arguments)
{
	static const char *const names[] = {
		"bookworm-small.core",
		"bookworm-small-jemalloc.core",
		"bookworm-small-aarch64_tags.core",
		"collected.core",
		"containers.core",
		"tcmalloc.core",
		NULL,
	};

	core_target_init(&target, names);
	return 0;
}

static struct error *slim(const char *path, unsigned int choice, int fd)
{
	const struct debug_options debug = { .sysroot = "/nonexistent" };
	struct progress progress = { .task = NULL };
	const struct slim_options options = {
		.fd = fd,
		.packed = (choice & 1) != 0,
		.hash_names = (choice & 2) != 0,
		.strings = (choice & 4) != 0,
		.progress = &progress,
	};
	_cleanup_(analysis_destroy) struct analysis *analysis = NULL;
	struct slim_sizes sizes = { 0 };

	TRY(analysis_create(path, &debug, &progress, &analysis));
	TRY(analysis_need(analysis, STAGE_HEAP));
	return slim_write(analysis, &options, &sizes);
}

static void look(const char *path, unsigned int choice)
{
	char written[32];
	int fd = memfd_create("slim", MFD_CLOEXEC);
	struct error *error = slim(path, choice, fd);

	snprintf(written, sizeof(written), "/proc/self/fd/%d", fd);
	if (!error)
		core_target_need(written, STAGE_LEAKS);
	error_destroy(error);
	close(fd);
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
