/*
 * gzip, by zlib.
 */
#include "analyzer/image/packing.h"

#include <stdlib.h>
#include <string.h>
#include <zlib.h>

enum { LARGEST_WINDOW = 15, GZIP_HEADER = 16 };

static bool gzip_recognise(const uint8_t *bytes, size_t size)
{
	static const uint8_t magic[] = { 0x1f, 0x8b, Z_DEFLATED };

	return size >= sizeof(magic) && memcmp(bytes, magic, sizeof(magic)) == 0;
}

static void *gzip_open(void)
{
	z_stream *stream = calloc(1, sizeof(*stream));

	if (stream && inflateInit2(stream, LARGEST_WINDOW + GZIP_HEADER) != Z_OK) {
		free(stream);
		return NULL;
	}
	return stream;
}

static enum packing_state gzip_step(void *decoder, struct packing_step *step)
{
	z_stream *stream = decoder;

	switch (PACKING_CALL(stream, step, inflate(stream, Z_NO_FLUSH))) {
	case Z_OK:
	case Z_BUF_ERROR:
		return PACKING_GOES_ON;
	case Z_STREAM_END:
		return PACKING_ENDED;
	case Z_MEM_ERROR:
		return PACKING_NO_MEMORY;
	default:
		return PACKING_DAMAGED;
	}
}

static void gzip_close(void *decoder)
{
	inflateEnd(decoder);
	free(decoder);
}

const struct packing packing_gzip = {
	.name = "gzip",
	.recognise = gzip_recognise,
	.open = gzip_open,
	.step = gzip_step,
	.close = gzip_close,
};
