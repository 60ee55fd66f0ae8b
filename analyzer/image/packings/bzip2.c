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
	int status;

	/* The library does not write to what it reads. */
	stream->next_in = (char *)(uintptr_t)step->input;
	stream->avail_in = (unsigned int)step->input_size;
	stream->next_out = (char *)step->output;
	stream->avail_out = (unsigned int)step->output_size;
	status = BZ2_bzDecompress(stream);
	step->input = (const uint8_t *)stream->next_in;
	step->input_size = stream->avail_in;
	step->output = (uint8_t *)stream->next_out;
	step->output_size = stream->avail_out;
	switch (status) {
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
	.summary = "bzip2",
	.recognise = bzip2_recognise,
	.open = bzip2_open,
	.step = bzip2_step,
	.close = bzip2_close,
};
