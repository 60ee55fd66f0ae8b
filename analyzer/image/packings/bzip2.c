/*
 * bzip2, by libbz2.
 */
#include "analyzer/image/packing.h"

#include <bzlib.h>
#include <stdlib.h>
#include <string.h>

static bool bzip2_recognise(const uint8_t *bytes, size_t size)
{
	return size >= 4 && memcmp(bytes, "BZh", 3) == 0 && bytes[3] >= '1' && bytes[3] <= '9';
}

static void *bzip2_open(void)
{
	bz_stream *stream = calloc(1, sizeof(*stream));

	if (stream && BZ2_bzDecompressInit(stream, 0, 0) != BZ_OK) {
		free(stream);
		return NULL;
	}
	return stream;
}

static enum packing_state bzip2_step(void *decoder, struct packing_step *step)
{
	bz_stream *stream = decoder;

	switch (PACKING_CALL(stream, step, BZ2_bzDecompress(stream))) {
	case BZ_OK:
		return PACKING_GOES_ON;
	case BZ_STREAM_END:
		return PACKING_ENDED;
	case BZ_MEM_ERROR:
		return PACKING_NO_MEMORY;
	default:
		return PACKING_DAMAGED;
	}
}

static void bzip2_close(void *decoder)
{
	BZ2_bzDecompressEnd(decoder);
	free(decoder);
}

const struct packing packing_bzip2 = {
	.name = "bzip2",
	.recognise = bzip2_recognise,
	.open = bzip2_open,
	.step = bzip2_step,
	.close = bzip2_close,
};
