#include "analyzer/capture/source.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/uio.h>

struct error *source_open(pid_t process, struct source *ret)
{
	struct error *error;
	char path[64];
	int memory;

	snprintf(path, sizeof(path), "/proc/%d/mem", process);
	memory = open(path, O_RDONLY | O_CLOEXEC);
	if (memory < 0)
		return error_system("%s", path);
	*ret = (struct source){ .process = process, .memory = memory };
	error = pages_open(process, &ret->pages);
	return error;
}

void source_close(struct source *source)
{
	if (source->memory >= 0)
		close(source->memory);
	pages_close(&source->pages);
}

uint64_t source_read(const struct source *source, uint64_t address, void *ret, uint64_t size)
{
	struct iovec here = { ret, size };
	struct iovec there = { (void *)(uintptr_t)address, size };
	ssize_t taken = 0;

	/* It pins pages, and the kernel copies those that are shared. */
	if (!source->is_clone)
		taken = process_vm_readv(source->process, &here, 1, &there, 1, 0);
	/* Some sandboxes forbid the quicker way. */
	if (taken <= 0)
		taken = pread(source->memory, ret, size, (off_t)address);
	return taken < 0 ? 0 : (uint64_t)taken;
}

uint64_t source_copy(const struct source *source, uint64_t address, uint8_t *ret, uint64_t size)
{
	uint64_t unreadable = 0;

	while (size > 0) {
		uint64_t taken = source_read(source, address, ret, size);

		if (taken == 0) {
			taken = size < PAGE ? size : PAGE;
			memset(ret, 0, taken);
			if (!pages_is_guard(&source->pages, address))
				unreadable += taken;
		}
		address += taken;
		ret += taken;
		size -= taken;
	}
	return unreadable;
}

int source_open_mapped(const struct source *source, const struct memory_area *area)
{
	char path[96];

	snprintf(path, sizeof(path), "/proc/%d/map_files/%" PRIx64 "-%" PRIx64, source->process,
		 area->start, area->end);
	return open(path, O_RDONLY | O_CLOEXEC);
}
