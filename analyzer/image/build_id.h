/*
 * Build-ids: what tells one build of a file from another.
 */
#ifndef ANALYZER_IMAGE_BUILD_ID_H
#define ANALYZER_IMAGE_BUILD_ID_H

#include "analyzer/image/image.h"

struct build_id {
	uint8_t bytes[64]; /* 20 for SHA-1, 16 for MD5 and UUID */
	size_t size;	   /* 0: there is none */
};

/*
 * Of the ELF file that the process has mapped from base to end, its first byte at base. What lies
 * elsewhere is not looked at.
 */
struct build_id build_id_of_image(const struct image *image, uint64_t base, uint64_t end);

/* Of an ELF file of size bytes. */
struct build_id build_id_of_file(const uint8_t *bytes, size_t size);

/* Whether both are there and the same. */
bool build_id_equal(const struct build_id *a, const struct build_id *b);

#endif
