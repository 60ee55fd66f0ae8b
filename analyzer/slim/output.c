/*
 * The file of a slim core, as it is or packed: then each piece is a frame of zstd, packed by the
 * thread that has it, and frames follow each other in order.
 */
#include "analyzer/base/temporary.h"
#include "analyzer/slim/parts.h"

#include <string.h>

/* Quicker than most disks; more takes three times as long for a twentieth. */
enum { LEVEL = 3 };

void slim_output_deinit(struct slim_output *output)
{
	ZSTD_freeCCtx(output->context);
	free(output->frame);
}

struct error *slim_output_init(struct slim_output *output, uint64_t most)
{
	output->room = ZSTD_compressBound(most);
	output->context = ZSTD_createCCtx();
	output->frame = malloc(output->room);
	TRY_MEMORY(output->context && output->frame);
	ZSTD_CCtx_setParameter(output->context, ZSTD_c_compressionLevel, LEVEL);
	ZSTD_CCtx_setParameter(output->context, ZSTD_c_checksumFlag, 1);
	return NULL;
}

struct error *slim_output_pack(struct slim_output *output, const uint8_t *bytes, uint64_t size)
{
	output->size = ZSTD_compress2(output->context, output->frame, output->room, bytes, size);
	if (ZSTD_isError(output->size))
		return error_create(ERROR_SYSTEM, "cannot be packed: %s",
				    ZSTD_getErrorName(output->size));
	return NULL;
}

size_t slim_output_pack_header(const Elf64_Ehdr *header, uint8_t *ret)
{
	/* One segment, its size, and one block, the last, of bytes as they are. */
	static const uint8_t frame[SLIM_FRAME_HEAD] = {
		0x28,
		0xb5,
		0x2f,
		0xfd,
		0x20,
		sizeof(*header),
		1 | (sizeof(*header) << 3 & 0xff),
		sizeof(*header) >> 5,
	};

	memcpy(ret, frame, sizeof(frame));
	memcpy(ret + sizeof(frame), header, sizeof(*header));
	return sizeof(frame) + sizeof(*header);
}
