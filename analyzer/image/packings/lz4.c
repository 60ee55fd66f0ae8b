/*
 * lz4 in its frame format, as systemd-coredump packs where it has no zstd, by liblz4.
 */
#include "analyzer/image/packing.h"

#include <lz4frame.h>
#include <string.h>

static bool lz4_recognise(const uint8_t *bytes, size_t size)
{
	static const uint8_t magic[] = { 0x04, 0x22, 0x4d, 0x18 };

	return size >= sizeof(magic) && memcmp(bytes, magic, sizeof(magic)) == 0;
}

static void *lz4_open(void)
{
	LZ4F_dctx *context;

	return LZ4F_isError(LZ4F_createDecompressionContext(&context, LZ4F_VERSION)) ? NULL
										     : context;
}

static enum packing_state lz4_step(void *decoder, struct packing_step *step)
{
	size_t taken = step->input_size, made = step->output_size;
	size_t left = LZ4F_decompress(decoder, step->output, &made, step->input, &taken, NULL);

	if (LZ4F_isError(left))
		return PACKING_DAMAGED;
	step->input += taken;
	step->input_size -= taken;
	step->output += made;
	step->output_size -= made;
	return left == 0 ? PACKING_ENDED : PACKING_GOES_ON;
}

static void lz4_close(void *decoder)
{
	LZ4F_freeDecompressionContext(decoder);
}

const struct packing packing_lz4 = {
	.name = "lz4",
	.recognise = lz4_recognise,
	.open = lz4_open,
	.step = lz4_step,
	.close = lz4_close,
};
