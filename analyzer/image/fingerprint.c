/*
 * The identity of a dump: the size and time of change of its file; a hash of the bytes at its
 * beginning and end, and of pieces spread over all of it; and the division of memory into regions,
 * which also depends on the mapped files at hand. It takes milliseconds for a dump of any size; to
 * hash every byte would take as long as the analysis.
 */
#include "analyzer/base/side_file.h"
#include "analyzer/image/image.h"

#include <string.h>
#include <sys/stat.h>
#include <xxhash.h>

enum {
	ENDS = 256 << 10, /* bytes at the beginning and at the end */
	PIECE = 4096,
	PIECES = 1024,
};

static void add_number(XXH3_state_t *state, uint64_t number)
{
	XXH3_64bits_update(state, &number, sizeof(number));
}

static void add_text(XXH3_state_t *state, const char *text)
{
	XXH3_64bits_update(state, text, strlen(text) + 1);
}

static void add_contents(XXH3_state_t *state, const uint8_t *bytes, size_t size)
{
	size_t step;

	if (size <= 2 * (size_t)ENDS + PIECES * (size_t)PIECE) {
		XXH3_64bits_update(state, bytes, size);
		return;
	}
	XXH3_64bits_update(state, bytes, ENDS);
	XXH3_64bits_update(state, bytes + size - ENDS, ENDS);
	step = (size - 2 * (size_t)ENDS) / PIECES & ~(size_t)(PIECE - 1);
	for (size_t i = 0; i < PIECES; i++)
		XXH3_64bits_update(state, bytes + ENDS + i * step, PIECE);
}

static void add_regions(XXH3_state_t *state, const struct image *image)
{
	list_for_each(region, image->regions, image->region_count) {
		add_number(state, region->start);
		add_number(state, region->end);
		add_number(state, region->rights);
		add_number(state, region->origin);
		add_number(state, region->bytes != NULL);
		if (!region->mapping)
			continue;
		add_text(state, region->mapping->path);
		add_number(state, region->mapping->offset);
		add_number(state, region->mapping->state);
	}
}

struct error *image_identify(const struct image *image, struct side_identity *ret)
{
	XXH3_state_t *state;
	struct stat status;

	if (stat(image->path, &status) < 0)
		return error_system("%s", image->path);
	state = XXH3_createState();
	TRY_MEMORY(state);
	XXH3_64bits_reset(state);
	add_contents(state, image->bytes, image->size);
	add_regions(state, image);
	ret->dump_size = (uint64_t)status.st_size;
	ret->dump_seconds = status.st_mtim.tv_sec;
	ret->dump_nanoseconds = status.st_mtim.tv_nsec;
	ret->dump_hash = XXH3_64bits_digest(state);
	XXH3_freeState(state);
	return NULL;
}
