/*
 * xz, as older systemd-coredump packed, by liblzma.
 */
#include "analyzer/image/packing.h"

#include <lzma.h>
#include <stdlib.h>
#include <string.h>

static bool xz_recognise(const uint8_t *bytes, size_t size)
{
	static const uint8_t magic[] = { 0xfd, '7', 'z', 'X', 'Z', 0 };

	return size >= sizeof(magic) && memcmp(bytes, magic, sizeof(magic)) == 0;
}

static void *xz_open(void)
{
	lzma_stream *stream = calloc(1, sizeof(*stream));

	if (stream && lzma_stream_decoder(stream, MOST_DECODER_MEMORY, 0) != LZMA_OK) {
		free(stream);
		return NULL;
	}
	return stream;
}

static enum packing_state xz_step(void *decoder, struct packing_step *step)
{
	lzma_stream *stream = decoder;

	switch (PACKING_CALL(stream, step, lzma_code(stream, LZMA_RUN))) {
	case LZMA_OK:
	case LZMA_BUF_ERROR:
	case LZMA_UNSUPPORTED_CHECK: /* all but the check is understood */
		return PACKING_GOES_ON;
	case LZMA_STREAM_END:
		return PACKING_ENDED;
	case LZMA_MEM_ERROR:
	case LZMA_MEMLIMIT_ERROR:
		return PACKING_NO_MEMORY;
	default:
		return PACKING_DAMAGED;
	}
}

static void xz_close(void *decoder)
{
	lzma_end(decoder);
	free(decoder);
}

const struct packing packing_xz = {
	.name = "xz",
	.recognise = xz_recognise,
	.open = xz_open,
	.step = xz_step,
	.close = xz_close,
};
