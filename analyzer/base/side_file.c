#include "analyzer/base/side_file.h"

#include "analyzer/base/temporary.h"

#include <assert.h>
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <xxhash.h>

static_assert(__BYTE_ORDER == __LITTLE_ENDIAN, "arrays are written as they stand in memory");

/* Changes whenever a file of before would be misread. */
enum { FORMAT = 4 };

static const char MAGIC[16] = "heapcore side\n";

struct section {
	uint64_t offset, size; /* bytes in the file; 0: it is not there */
	uint64_t hash;
};

struct header {
	char magic[sizeof(MAGIC)];
	uint64_t format;
	uint64_t file_size;
	struct side_identity identity;
	struct section sections[SIDE_SECTIONS];
	uint64_t hash; /* of all before it */
};

static_assert((int)SIDE_NUMBERS_END <= (int)SIDE_SECTIONS, "every array has a section");
static_assert(sizeof(struct header) <= SIDE_ALIGNMENT, "the header fits in front of the arrays");

struct side_file {
	const uint8_t *bytes;
	size_t size;
	const struct header *header;
	bool checked[SIDE_SECTIONS];
};

struct side_writer {
	char *path, *temporary;
	int fd;
	uint64_t position;
	unsigned int current; /* SIDE_SECTIONS: none was begun */
	XXH3_state_t *state;
	struct header header;
};

static uint64_t hash_header(const struct header *header)
{
	return XXH3_64bits(header, offsetof(struct header, hash));
}

struct memory side_memory(const void *bytes, size_t size)
{
	return (struct memory){ .bytes = (void *)bytes, .size = size };
}

static struct error *check_status(const struct stat *status)
{
	if (!S_ISREG(status->st_mode))
		return error_create(ERROR_USAGE, "it is not a regular file");
	if (status->st_uid != geteuid() && status->st_uid != 0)
		return error_create(ERROR_USAGE, "it is somebody else's");
	if (status->st_mode & (S_IWGRP | S_IWOTH))
		return error_create(ERROR_USAGE, "others can write to it");
	if (status->st_size < (off_t)sizeof(struct header))
		return error_create(ERROR_BAD_DUMP, "it is truncated");
	return NULL;
}

/* The error for a file that could not be opened; there may be none yet. */
static struct error *open_failure(void)
{
	if (errno == ENOENT)
		return error_create(ERROR_BAD_DUMP, "there is none");
	if (errno == ELOOP)
		return error_create(ERROR_USAGE, "it is a symbolic link");
	return error_system("it cannot be read");
}

static bool is_within(const struct section *section, uint64_t file_size)
{
	return section->offset % SIDE_ALIGNMENT == 0 && section->offset <= file_size &&
	       section->size <= file_size - section->offset;
}

static struct error *check_header(const struct side_file *file,
				  const struct side_identity *identity)
{
	const struct header *header = file->header;

	if (memcmp(header->magic, MAGIC, sizeof(MAGIC)) != 0)
		return error_create(ERROR_USAGE, "it is no side file");
	if (header->format != FORMAT || header->identity.maker != identity->maker)
		return error_create(ERROR_BAD_DUMP, "it is of another heapcore");
	if (header->hash != hash_header(header))
		return error_create(ERROR_BAD_DUMP, "it is damaged");
	if (header->file_size != file->size)
		return error_create(ERROR_BAD_DUMP, "it is truncated");
	if (memcmp(&header->identity, identity, sizeof(*identity)) != 0)
		return error_create(ERROR_BAD_DUMP, "the core was changed");
	for (size_t i = 0; i < SIDE_SECTIONS; i++)
		if (!is_within(&header->sections[i], file->size))
			return error_create(ERROR_BAD_DUMP, "it is damaged");
	return NULL;
}

struct error *side_file_open(const char *path, const struct side_identity *identity,
			     struct side_file **ret)
{
	_cleanup_(close) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	_cleanup_(side_file_close) struct side_file *file = NULL;
	struct stat status;
	void *bytes;

	if (fd < 0 || fstat(fd, &status) < 0)
		return open_failure();
	TRY(check_status(&status));
	bytes = mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (bytes == MAP_FAILED)
		return error_system("it cannot be mapped");
	file = calloc(1, sizeof(*file));
	if (!file) {
		munmap(bytes, (size_t)status.st_size);
		return &error_no_memory;
	}
	file->bytes = bytes;
	file->size = (size_t)status.st_size;
	file->header = bytes;
	TRY(check_header(file, identity));
	*ret = take(file);
	return NULL;
}

void side_file_close(struct side_file *file)
{
	munmap((void *)file->bytes, file->size);
	free(file);
}

struct error *side_file_find(struct side_file *file, unsigned int number, struct side_array *ret)
{
	const struct section *section = &file->header->sections[number];

	*ret = (struct side_array){ NULL };
	if (section->offset == 0)
		return NULL;
	if (!file->checked[number] &&
	    XXH3_64bits(file->bytes + section->offset, section->size) != section->hash)
		return error_create(ERROR_BAD_DUMP, "it is damaged");
	file->checked[number] = true;
	*ret = (struct side_array){ file->bytes + section->offset, section->size };
	return NULL;
}

struct error *side_file_take(struct side_file *file, unsigned int number, size_t count,
			     size_t element, const void **ret)
{
	struct side_array array;

	TRY(side_file_find(file, number, &array));
	if (!array.bytes || array.size % element != 0 || array.size / element != count)
		return error_create(ERROR_BAD_DUMP, "it is damaged");
	*ret = array.bytes;
	return NULL;
}

struct error *side_file_check(struct side_file *file)
{
	for (unsigned int i = 0; i < SIDE_SECTIONS; i++)
		TRY(side_file_find(file, i, &(struct side_array){ NULL }));
	return NULL;
}

/* The notes of the program itself, with its build-id. */
static int hash_notes(struct dl_phdr_info *info, size_t size, void *data)
{
	uint64_t *hash = data;

	for (size_t i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *segment = &info->dlpi_phdr[i];

		if (segment->p_type == PT_NOTE)
			*hash = XXH3_64bits_withSeed((const char *)info->dlpi_addr +
							     segment->p_vaddr,
						     segment->p_memsz, *hash);
	}
	return 1; /* the first is the program */
}

uint64_t side_maker(void)
{
	uint64_t hash = 0;

	dl_iterate_phdr(hash_notes, &hash);
	return hash;
}

struct error *side_writer_create(const char *path, struct side_writer **ret)
{
	_cleanup_(side_writer_destroy) struct side_writer *writer = calloc(1, sizeof(*writer));

	TRY_MEMORY(writer);
	writer->fd = -1;
	writer->current = SIDE_SECTIONS;
	writer->position = SIDE_ALIGNMENT;
	writer->path = strdup(path);
	writer->state = XXH3_createState();
	if (!writer->path || !writer->state || asprintf(&writer->temporary, "%s.XXXXXX", path) < 0)
		return &error_no_memory;
	/* For the owner only: it tells what is in the process's memory. */
	writer->fd = mkostemp(writer->temporary, O_CLOEXEC);
	if (writer->fd < 0)
		return error_system("%s", path);
	*ret = take(writer);
	return NULL;
}

void side_writer_destroy(struct side_writer *writer)
{
	if (writer->fd >= 0) {
		unlink(writer->temporary);
		close(writer->fd);
	}
	if (writer->state)
		XXH3_freeState(writer->state);
	free(writer->temporary);
	free(writer->path);
	free(writer);
}

static struct error *write_all(const struct side_writer *writer, const void *bytes, size_t size,
			       uint64_t offset)
{
	return write_fully(writer->fd, bytes, size, offset) ? NULL
							    : error_system("%s", writer->path);
}

static void end_section(struct side_writer *writer)
{
	struct section *section;

	if (writer->current == SIDE_SECTIONS)
		return;
	section = &writer->header.sections[writer->current];
	section->size = writer->position - section->offset;
	section->hash = XXH3_64bits_digest(writer->state);
	writer->position =
		(writer->position + SIDE_ALIGNMENT - 1) & ~(uint64_t)(SIDE_ALIGNMENT - 1);
	writer->current = SIDE_SECTIONS;
}

void side_writer_begin(struct side_writer *writer, unsigned int number)
{
	assert(number < SIDE_SECTIONS && writer->header.sections[number].offset == 0);
	end_section(writer);
	writer->current = number;
	writer->header.sections[number].offset = writer->position;
	XXH3_64bits_reset(writer->state);
}

struct error *side_writer_add(struct side_writer *writer, const void *bytes, size_t size)
{
	assert(writer->current != SIDE_SECTIONS);
	if (size == 0)
		return NULL;
	TRY(write_all(writer, bytes, size, writer->position));
	XXH3_64bits_update(writer->state, bytes, size);
	writer->position += size;
	return NULL;
}

struct error *side_writer_array(struct side_writer *writer, unsigned int number, const void *bytes,
				size_t size)
{
	side_writer_begin(writer, number);
	return side_writer_add(writer, bytes, size);
}

uint64_t side_writer_size(const struct side_writer *writer)
{
	return writer->position;
}

struct error *side_writer_finish(struct side_writer *writer, const struct side_identity *identity)
{
	struct header *header = &writer->header;

	end_section(writer);
	memcpy(header->magic, MAGIC, sizeof(MAGIC));
	header->format = FORMAT;
	header->file_size = writer->position;
	header->identity = *identity;
	header->hash = hash_header(header);
	TRY(write_all(writer, header, sizeof(*header), 0));
	if (ftruncate(writer->fd, (off_t)writer->position) < 0 ||
	    rename(writer->temporary, writer->path) < 0)
		return error_system("%s", writer->path);
	close(writer->fd);
	writer->fd = -1;
	return NULL;
}

unsigned int side_writer_compare(struct side_writer *writer, const struct side_file *file)
{
	const struct section *ours = writer->header.sections;
	const struct section *theirs = file->header->sections;
	unsigned int i = 0;

	end_section(writer);
	while (i < SIDE_SECTIONS && (ours[i].offset != 0) == (theirs[i].offset != 0) &&
	       ours[i].size == theirs[i].size && ours[i].hash == theirs[i].hash)
		i++;
	return i;
}
