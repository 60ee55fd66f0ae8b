/*
 * Packed cores, damaged before they were packed or after it: in several members, with more behind
 * them, and with far more in them than they say.
 */
#include "tests/fuzz/core_target.h"

#include <bzlib.h>
#include <lz4frame.h>
#include <lzma.h>
#include <string.h>
#include <sys/mman.h>
#include <zlib.h>
#include <zstd.h>

enum {
	PACKERS = 5,
	GZIP_WINDOW = 15 + 16,
	DEFLATE_MEMORY = 8,
	ZEROS = 4 << 20,    /* zero bytes behind a core's end */
	ROOM_LEFT = 1 << 16 /* a packer may need that much more */
};

enum shape { SHAPE_WHOLE, SHAPE_SPLIT, SHAPE_BOMB, SHAPE_TAIL, SHAPES };

struct buffer {
	uint8_t *bytes;
	size_t size, room;
};

static struct core_target target;
static struct buffer zeros[PACKERS]; /* packed */

static size_t pack_zstd(const uint8_t *bytes, size_t size, uint8_t *packed, size_t room)
{
	return ZSTD_compress(packed, room, bytes, size, 1);
}

static size_t pack_lz4(const uint8_t *bytes, size_t size, uint8_t *packed, size_t room)
{
	return LZ4F_compressFrame(packed, room, bytes, size, NULL);
}

static size_t pack_gzip(const uint8_t *bytes, size_t size, uint8_t *packed, size_t room)
{
	z_stream stream = { .next_in = (uint8_t *)(uintptr_t)bytes,
			    .avail_in = (uInt)size,
			    .next_out = packed,
			    .avail_out = (uInt)room };

	if (deflateInit2(&stream, 1, Z_DEFLATED, GZIP_WINDOW, DEFLATE_MEMORY, Z_DEFAULT_STRATEGY) !=
	    Z_OK)
		abort();
	deflate(&stream, Z_FINISH);
	deflateEnd(&stream);
	return room - stream.avail_out;
}

static size_t pack_xz(const uint8_t *bytes, size_t size, uint8_t *packed, size_t room)
{
	size_t used = 0;

	if (lzma_easy_buffer_encode(0, LZMA_CHECK_NONE, NULL, bytes, size, packed, &used, room) !=
	    LZMA_OK)
		abort();
	return used;
}

static size_t pack_bzip2(const uint8_t *bytes, size_t size, uint8_t *packed, size_t room)
{
	unsigned int used = (unsigned int)room;

	if (BZ2_bzBuffToBuffCompress((char *)packed, &used, (char *)(uintptr_t)bytes,
				     (unsigned int)size, 1, 0, 0) != BZ_OK)
		abort();
	return used;
}

static size_t (*const packers[PACKERS])(const uint8_t *bytes, size_t size, uint8_t *packed,
					size_t room) = {
	pack_zstd, pack_lz4, pack_gzip, pack_xz, pack_bzip2,
};

/* Put it behind what the buffer holds. */
static void add(struct buffer *buffer, const uint8_t *bytes, size_t size)
{
	size_t room = buffer->size + size + size / 4 + ROOM_LEFT;

	if (room > buffer->room) {
		buffer->bytes = realloc(buffer->bytes, room);
		buffer->room = room;
	}
	if (!buffer->bytes)
		abort();
	memcpy(buffer->bytes + buffer->size, bytes, size);
	buffer->size += size;
}

static void add_packed(struct buffer *buffer, size_t packer, const uint8_t *bytes, size_t size)
{
	size_t room = size + size / 4 + ROOM_LEFT;
	uint8_t *packed = malloc(room);

	if (!packed)
		abort();
	add(buffer, packed, packers[packer](bytes, size, packed, room));
	free(packed);
}

int LLVMFuzzerInitialize(int *count, char ***arguments)
{
	static const char *const names[] = {
		"classes.core",
		"trixie-small.core",
		NULL,
	};
	uint8_t *nothing = calloc(1, ZEROS);

	core_target_init(&target, names);
	for (size_t i = 0; i < PACKERS; i++)
		add_packed(&zeros[i], i, nothing, ZEROS);
	free(nothing);
	return 0;
}

/* The core as it was edited, packed in one of the shapes. */
static void pack(const struct edited_file *core, size_t packer, unsigned int shape,
		 struct buffer *ret)
{
	off_t length = lseek(core->fd, 0, SEEK_END);
	size_t size = (size_t)length, first = size;
	uint8_t *bytes = malloc(size + 1);

	if (length < 0 || !bytes || pread(core->fd, bytes, size, 0) != length)
		abort();
	if (shape % SHAPES == SHAPE_SPLIT)
		first = size / 64 * (shape / SHAPES);
	add_packed(ret, packer, bytes, first);
	if (first < size)
		add_packed(ret, packer, bytes + first, size - first);
	if (shape % SHAPES == SHAPE_BOMB)
		add(ret, zeros[packer].bytes, zeros[packer].size);
	if (shape % SHAPES == SHAPE_TAIL)
		add(ret, bytes, size < ROOM_LEFT ? size : ROOM_LEFT);
	free(bytes);
}

static void look_at_packed(const struct buffer *packed, const uint8_t *edits, size_t size)
{
	enum { HEADERS = 64 };
	struct edited_file file;
	int fd = memfd_create("packed", MFD_CLOEXEC);

	if (fd < 0 || write(fd, packed->bytes, packed->size) != (ssize_t)packed->size)
		abort();
	edited_file_adopt(&file, fd, "a packed core");
	if (file.headers > HEADERS)
		file.headers = HEADERS;
	edits_make(&file, edits, size);
	core_target_need(file.path, STAGE_HEAP);
	free(file.bytes);
	close(fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	const uint8_t *edits = bytes + CORE_TARGET_HEAD;
	struct buffer packed = { NULL };
	struct edited_file *core;
	size_t before;

	if (size < CORE_TARGET_HEAD)
		return 0;
	size -= CORE_TARGET_HEAD;
	core = &target.files[bytes[0] / PACKERS % target.count];
	before = bytes[2] % 4 * sizeof(struct edit);
	if (before > size)
		before = size;
	edits_make(core, edits, before);
	pack(core, bytes[0] % PACKERS, bytes[1], &packed);
	edits_undo(core);
	look_at_packed(&packed, edits + before, size - before);
	free(packed.bytes);
	return 0;
}

size_t LLVMFuzzerCustomMutator(uint8_t *bytes, size_t size, size_t most, unsigned int seed)
{
	return edits_mutate(bytes, size, most, CORE_TARGET_HEAD, seed);
}
