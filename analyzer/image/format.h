/*
 * The contract of a dump format, which fills in an image: regions, cuts and mappings by the
 * functions here, and all else of what the dump tells by itself.
 *
 * Each file of formats/ defines one struct image_format; the build collects them. Image borrows the
 * pieces it is given: they point into the dump.
 */
#pragma once

#include "analyzer/image/image.h"

struct image_format {
	const char *name;
	/* True if the file is of this format, by its first bytes. */
	bool (*recognise)(const uint8_t *bytes, size_t size);
	/* Add all the file holds. bytes may be written to: they are private. */
	struct error *(*read)(uint8_t *bytes, size_t size, struct image *image);
	/*
	 * The size of a complete file that begins with these bytes; 0 if it takes more of them to
	 * know.
	 */
	uint64_t (*claim)(const uint8_t *bytes, size_t size);
};

extern const struct image_format *const image_formats[]; /* NULL at the end */

/*
 * Say that the dump is of that machine and class, as in an ELF header, or why it cannot be read.
 * Comes first.
 */
struct error *image_set_machine(struct image *image, unsigned int machine, unsigned int class);
/* The error that a dump is what nothing here supports, such as "of a big-endian machine". */
struct error *image_refuse_machine(const struct image *image, const char *what);

/* The name of an e_machine that is unsupported or only partly supported; NULL: unknown. */
const char *image_machine_name(unsigned int machine);

/*
 * A mapping of the process, [start, end), whose first present bytes the dump holds; bytes points at
 * them. The next lost ones it was to hold. The origin is REGION_FILE if they are what the mapped
 * file has, though they are in the dump.
 */
struct error *image_add_segment(struct image *image, uint64_t start, uint64_t end, uint8_t rights,
				enum region_origin origin, const uint8_t *bytes, uint64_t present,
				uint64_t lost);
/* Gaps between segments in [start, end) were never touched. */
struct error *image_add_cut(struct image *image, uint64_t start, uint64_t end);
struct error *image_add_mapping(struct image *image, struct mapping mapping);
