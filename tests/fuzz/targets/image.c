/*
 * Anything at all as a core: ELF headers, notes, packed files, and the program in them.
 */
#include "tests/fuzz/core_target.h"

#include "analyzer/analysis/analysis.h"

#include <string.h>
#include <sys/mman.h>

/* Ask the image for each region by its bounds. */
static void look_at_regions(const struct image *image)
{
	for (size_t i = 0; i < image->region_count; i++) {
		const struct region *region = &image->regions[i];
		uint64_t size, value;

		if (image_bytes(image, region->start, &size) && size > region->end - region->start)
			abort();
		image_next_data(image, region->start);
		image_read_u64(image, region->end - 4, &value);
		image_find_mapping(image, region->start);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	const struct debug_options options = { .sysroot = "/nonexistent" };
	struct progress progress = { .task = NULL };
	_cleanup_(analysis_destroy) struct analysis *analysis = NULL;
	_cleanup_(close) int fd = memfd_create("core", MFD_CLOEXEC);
	struct error *error;
	char path[32];

	core_target_settle();
	if (fd < 0 || write(fd, bytes, size) != (ssize_t)size)
		abort();
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	error = analysis_create(path, &options, &progress, &analysis);
	if (!error)
		look_at_regions(analysis_image(analysis));
	if (!error)
		error = analysis_need(analysis, STAGE_REACHABILITY);
	if (error)
		error_destroy(error);
	return 0;
}
