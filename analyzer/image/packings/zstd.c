/*
 * Zstandard, as systemd-coredump packs by default, by libzstd.
 *
 * A frame may be one to skip; parallel packers begin with such.
 */
#include "analyzer/image/packing.h"

#include <string.h>
#include <zstd.h>
#include <zstd_errors.h>

static bool zstd_recognise(const uint8_t *bytes, size_t size)
{
	uint32_t magic;

	if (size < sizeof(magic))
		return false;
	memcpy(&magic, bytes, sizeof(magic));
	return magic == ZSTD_MAGICNUMBER ||
	       (magic & ZSTD_MAGIC_SKIPPABLE_MASK) == ZSTD_MAGIC_SKIPPABLE_START;
}

/* Windows of more than 128 MB are refused by the library itself. */
static void *zstd_open(void)
{
	return ZSTD_createDStream();
}

static enum packing_state zstd_step(void *decoder, struct packing_step *step)
{
	ZSTD_inBuffer input = { step->input, step->input_size, 0 };
	ZSTD_outBuffer output = { step->output, step->output_size, 0 };
	size_t left = ZSTD_decompressStream(decoder, &output, &input);

	step->input += input.pos;
	step->input_size -= input.pos;
	step->output += output.pos;
	step->output_size -= output.pos;
	if (left == 0)
		return PACKING_ENDED;
	if (!ZSTD_isError(left))
		return PACKING_GOES_ON;
	switch (ZSTD_getErrorCode(left)) {
	case ZSTD_error_memory_allocation:
	case ZSTD_error_frameParameter_windowTooLarge:
		return PACKING_NO_MEMORY;
	default:
		return PACKING_DAMAGED;
	}
}

static void zstd_close(void *decoder)
{
	ZSTD_freeDStream(decoder);
}

const struct packing packing_zstd = {
	.name = "zstd",
	.recognise = zstd_recognise,
	.open = zstd_open,
	.step = zstd_step,
	.close = zstd_close,
};
