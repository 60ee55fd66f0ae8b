#include "analyzer/image/unpack.h"

#include "tests/analyzer/image/core_builder.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <zlib.h>

enum { LARGE = 64 << 20 };

/* A core packed with gzip, in a file without a name. */
static int pack(const struct core *core)
{
	FILE *file = tmpfile();
	uint8_t *bytes = malloc(core->size);
	gzFile packed;
	int fd;

	assert_non_null(file);
	assert_non_null(bytes);
	fd = dup(fileno(file));
	assert_int_equal(pread(core->fd, bytes, core->size, 0), core->size);
	packed = gzdopen(dup(fd), "wb1");
	assert_non_null(packed);
	assert_int_equal(gzwrite(packed, bytes, (unsigned int)core->size), core->size);
	assert_int_equal(gzclose(packed), Z_OK);
	fclose(file);
	free(bytes);
	return fd;
}

TEST(zeros_become_holes)
{
	_cleanup_(findings_deinit) struct findings findings = { 0 };
	_cleanup_(core_deinit) struct core core;
	_cleanup_(close) int packed = -1, unpacked = -1;
	struct image_options options = { 0 };
	struct stat status;
	char byte = 0;

	core_init(&core);
	core_add(&core, 0x100000, LARGE, RIGHTS_RW);
	core_set(&core, 0x100000 + LARGE - 8, 42);
	core_write_file(&core);
	packed = pack(&core);
	assert_no_error(unpack(packed, &options, &findings, &unpacked));
	assert_int_equal(fstat(unpacked, &status), 0);
	assert_int_equal(status.st_size, core.size);
	assert_true(status.st_blocks * 512 < 1 << 20);
	assert_int_equal(pread(unpacked, &byte, 1, (off_t)core.size - 8), 1);
	assert_int_equal(byte, 42);
	assert_no_finding(&findings);
}

TEST(unpacking_ends_when_interrupted)
{
	_cleanup_(findings_deinit) struct findings findings = { 0 };
	_cleanup_(core_deinit) struct core core;
	_cleanup_(close) int packed = -1;
	struct progress progress = { .interrupted = true };
	struct image_options options = { .progress = &progress };
	int unpacked = -1;

	core_init(&core);
	core_add(&core, 0x100000, PAGE, RIGHTS_RW);
	core_write_file(&core);
	packed = pack(&core);
	assert_error(unpack(packed, &options, &findings, &unpacked), ERROR_INTERRUPTED,
		     "interrupted");
	assert_int_equal(unpacked, -1);
}

TEST(file_that_is_not_packed_is_left_alone)
{
	_cleanup_(findings_deinit) struct findings findings = { 0 };
	_cleanup_(core_deinit) struct core core;
	struct image_options options = { 0 };
	int unpacked = 0;

	core_init(&core);
	core_add(&core, 0x100000, PAGE, RIGHTS_RW);
	core_write_file(&core);
	assert_no_error(unpack(core.fd, &options, &findings, &unpacked));
	assert_int_equal(unpacked, -1);
}
