#include "analyzer/image/unpack.h"

#include "analyzer/base/bytes.h"
#include "analyzer/base/progress.h"
#include "analyzer/base/temporary.h"
#include "analyzer/base/text.h"
#include "analyzer/image/format.h"
#include "analyzer/image/packing.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/magic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>

enum {
	INPUT_ROOM = 1 << 18,
	OUTPUT_ROOM = 1 << 20,
	BLOCK = 4096,		  /* unit of holes */
	LONGEST_MAGIC = 8,	  /* of a packing */
	MOST_HEADERS = 64 << 20,  /* a dump tells its size within these bytes */
	SLACK = 1 << 20,	  /* for what stands behind all that it tells */
	BETWEEN_CHECKS = 16 << 20 /* of the room, in bytes written */
};

/* Space to leave for others on the file system, or a twentieth of it if that is less. */
static const uint64_t LARGEST_RESERVE = UINT64_C(1) << 30;

struct unpacking {
	int from, to;
	const char *folder; /* of the new file, for messages */
	struct progress *progress;
	struct findings *findings;
	const struct packing *packing;
	void *decoder;

	uint8_t *input;
	size_t start, end; /* of what is there of the input, in its buffer */
	bool input_ended;
	uint64_t taken; /* of the input, in total */

	uint8_t *output;
	size_t used;
	uint64_t position; /* in the new file, of the output's first byte */
	uint64_t limit;	   /* of what may come out; 0: not known yet */
	uint64_t stored, checked;
	bool full;	    /* the limit is passed */
	const char *damage; /* of the packed file, that ended it */
};

/* A stream that is not packed: there is nothing to keep. */
static void *plain_open(void)
{
	return malloc(1);
}

static enum packing_state plain_step(void *decoder, struct packing_step *step)
{
	size_t size = step->input_size < step->output_size ? step->input_size : step->output_size;

	memcpy(step->output, step->input, size);
	step->input += size;
	step->input_size -= size;
	step->output += size;
	step->output_size -= size;
	return PACKING_GOES_ON;
}

static void plain_close(void *decoder)
{
	free(decoder);
}

static const struct packing plain = {
	.name = "stream",
	.open = plain_open,
	.step = plain_step,
	.close = plain_close,
};

static void unpacking_deinit(struct unpacking *unpacking)
{
	if (unpacking->decoder)
		unpacking->packing->close(unpacking->decoder);
	cleanup_close(&unpacking->to);
	free(unpacking->input);
	free(unpacking->output);
}
DEFINE_DEINIT(unpacking_deinit, struct unpacking)

bool unpack_is_stream(int fd)
{
	struct stat status;
	struct statfs system;

	if (fstat(fd, &status) < 0)
		return false;
	if (S_ISSOCK(status.st_mode))
		return true;
	/* One of a folder may never be written to; one without has a writer. */
	return S_ISFIFO(status.st_mode) && fstatfs(fd, &system) == 0 &&
	       system.f_type == PIPEFS_MAGIC;
}

static const struct packing *find_packing(const uint8_t *bytes, size_t size)
{
	for (size_t i = 0; packings[i]; i++)
		if (packings[i]->recognise(bytes, size))
			return packings[i];
	return NULL;
}

static bool is_dump(const uint8_t *bytes, size_t size)
{
	for (size_t i = 0; image_formats[i]; i++)
		if (image_formats[i]->recognise(bytes, size))
			return true;
	return false;
}

/* Have at least size bytes of input, if there are so many. */
static struct error *read_input(struct unpacking *unpacking, size_t size)
{
	if (unpacking->end - unpacking->start >= size || unpacking->input_ended)
		return NULL;
	memmove(unpacking->input, unpacking->input + unpacking->start,
		unpacking->end - unpacking->start);
	unpacking->end -= unpacking->start;
	unpacking->start = 0;
	while (unpacking->end < size && !unpacking->input_ended) {
		ssize_t got = read(unpacking->from, unpacking->input + unpacking->end,
				   INPUT_ROOM - unpacking->end);

		if (got < 0 && errno != EINTR)
			return error_system("cannot be read");
		unpacking->input_ended = got == 0;
		TRY(progress_check(unpacking->progress, got > 0 ? (uint64_t)got : 0));
		if (got > 0)
			unpacking->end += (size_t)got;
	}
	return NULL;
}

static struct error *no_room(const struct unpacking *unpacking, const char *reason)
{
	return error_create(
		ERROR_SYSTEM,
		"there is no room to unpack it in %s: %s; set TMPDIR to a folder with more",
		unpacking->folder, reason);
}

/* Fail unless enough of the file system is left for others. */
static struct error *check_room(struct unpacking *unpacking)
{
	struct statvfs system;
	uint64_t reserve, left;

	if (unpacking->stored < unpacking->checked)
		return NULL;
	unpacking->checked = unpacking->stored + BETWEEN_CHECKS;
	if (fstatvfs(unpacking->to, &system) < 0)
		return NULL;
	reserve = (uint64_t)system.f_blocks * system.f_frsize / 20;
	reserve = MIN(reserve, LARGEST_RESERVE);
	left = (uint64_t)system.f_bavail * system.f_frsize;
	if (left >= reserve + BETWEEN_CHECKS)
		return NULL;
	return no_room(unpacking, "the file system is all but full");
}

static struct error *store(struct unpacking *unpacking, const uint8_t *bytes, size_t size,
			   uint64_t position)
{
	unpacking->stored += size;
	return write_fully(unpacking->to, bytes, size, position)
		       ? NULL
		       : no_room(unpacking, strerror(errno));
}

static size_t block_at(size_t offset, size_t size)
{
	return size - offset < BLOCK ? size - offset : BLOCK;
}

/* Write the output, but for the blocks that are zeros. */
static struct error *store_output(struct unpacking *unpacking)
{
	const uint8_t *bytes = unpacking->output;
	size_t start = 0, end, size = unpacking->used;

	TRY(check_room(unpacking));
	while (start < size) {
		if (bytes_are_zero(bytes + start, block_at(start, size))) {
			start += BLOCK;
			continue;
		}
		for (end = start; end < size; end += block_at(end, size))
			if (bytes_are_zero(bytes + end, block_at(end, size)))
				break;
		TRY(store(unpacking, bytes + start, end - start, unpacking->position + start));
		start = end;
	}
	unpacking->position += size;
	unpacking->used = 0;
	/* It is mapped, and so has to have its size. */
	if (ftruncate(unpacking->to, (off_t)unpacking->position) < 0)
		TRY(no_room(unpacking, strerror(errno)));
	return NULL;
}

/* Ask the dump itself, as soon as its headers are there, how large it is. */
static struct error *find_limit(struct unpacking *unpacking)
{
	void *bytes = mmap(NULL, unpacking->position, PROT_READ, MAP_PRIVATE, unpacking->to, 0);
	uint64_t claimed = 0;

	if (bytes == MAP_FAILED)
		return error_system("cannot be mapped");
	for (size_t i = 0; image_formats[i] && claimed == 0; i++)
		if (image_formats[i]->recognise(bytes, unpacking->position))
			claimed = image_formats[i]->claim(bytes, unpacking->position);
	munmap(bytes, unpacking->position);
	if (claimed == 0 && unpacking->position >= MOST_HEADERS)
		claimed = 1;
	if (claimed && __builtin_add_overflow(claimed, SLACK, &unpacking->limit))
		unpacking->limit = UINT64_MAX;
	return NULL;
}

/* The first bytes show whether the rest is useful. */
static struct error *check_kind(const struct unpacking *unpacking)
{
	const struct packing *inner;

	if (is_dump(unpacking->output, unpacking->used))
		return NULL;
	inner = find_packing(unpacking->output, unpacking->used);
	if (unpacking->packing == &plain)
		return error_create(ERROR_NOT_SUPPORTED,
				    "is not a core dump: it has no ELF header");
	if (inner)
		return error_create(ERROR_NOT_SUPPORTED,
				    "is packed twice, with %s and within with %s: unpack it once",
				    unpacking->packing->name, inner->name);
	return error_create(
		ERROR_NOT_SUPPORTED,
		"is packed with %s, but what is in it is not a core dump: it has no ELF header",
		unpacking->packing->name);
}

static struct error *flush(struct unpacking *unpacking)
{
	if (unpacking->used == 0)
		return NULL;
	if (unpacking->position == 0)
		TRY(check_kind(unpacking));
	TRY(store_output(unpacking));
	if (unpacking->limit == 0)
		TRY(find_limit(unpacking));
	unpacking->full = unpacking->limit > 0 && unpacking->position > unpacking->limit;
	return NULL;
}

/* Find out, behind a member, whether another one begins. */
static struct error *next_member(struct unpacking *unpacking, bool *ret)
{
	struct error *error = read_input(unpacking, LONGEST_MAGIC);

	unpacking->packing->close(take(unpacking->decoder));
	if (error || unpacking->end == unpacking->start)
		return error;
	if (!unpacking->packing->recognise(unpacking->input + unpacking->start,
					   unpacking->end - unpacking->start)) {
		findings_add(unpacking->findings, FINDING_NOTE,
			     "what follows the packed core, from byte %" PRIu64
			     " of its file on, is not part of it and is left out",
			     unpacking->taken);
		return NULL;
	}
	unpacking->decoder = unpacking->packing->open();
	*ret = unpacking->decoder != NULL;
	return *ret ? NULL : &error_no_memory;
}

/* Decode the next piece; sets whether the decoder advanced. */
static enum packing_state decode(struct unpacking *unpacking, bool *ret_moved)
{
	struct packing_step step = {
		.input = unpacking->input + unpacking->start,
		.input_size = unpacking->end - unpacking->start,
		.output = unpacking->output + unpacking->used,
		.output_size = OUTPUT_ROOM - unpacking->used,
	};
	size_t input_size = step.input_size, output_size = step.output_size;
	enum packing_state state = unpacking->packing->step(unpacking->decoder, &step);

	unpacking->taken += input_size - step.input_size;
	unpacking->start += input_size - step.input_size;
	unpacking->used += output_size - step.output_size;
	*ret_moved = step.input_size < input_size || step.output_size < output_size;
	return state;
}

/* One step. There is always room for output, so not to move is an end. */
static struct error *step(struct unpacking *unpacking, bool *ret_more)
{
	struct error *error = read_input(unpacking, 1);
	enum packing_state state;
	bool moved;

	*ret_more = false;
	if (error)
		return error;
	state = decode(unpacking, &moved);
	if (unpacking->used == OUTPUT_ROOM)
		error = flush(unpacking);
	if (error || unpacking->full)
		return error;
	switch (state) {
	case PACKING_NO_MEMORY:
		return error_create(
			ERROR_NO_MEMORY,
			"takes more memory to unpack than there is, or more than %d MiB",
			MOST_DECODER_MEMORY >> 20);
	case PACKING_ENDED:
		return next_member(unpacking, ret_more);
	case PACKING_DAMAGED:
		unpacking->damage = "damaged";
		return NULL;
	case PACKING_GOES_ON:
		*ret_more = moved;
		if (!moved && unpacking->start < unpacking->end)
			unpacking->damage = "damaged";
		else if (!moved)
			unpacking->damage = "cut off";
	}
	return NULL;
}

/* A stream's headers say how much it lacks. */
static struct error *finish(struct unpacking *unpacking)
{
	char size[NUMBER_SIZE];

	TRY(flush(unpacking));
	if (unpacking->position == 0)
		return error_create(ERROR_BAD_DUMP, "%s",
				    unpacking->packing == &plain
					    ? "is empty"
					    : "is packed, but unpacks to nothing");
	if (unpacking->full) {
		findings_add(
			unpacking->findings, FINDING_NOTE,
			"the packed data is larger than its headers say: everything after %s bytes is left out",
			grouped(unpacking->limit, size));
		if (ftruncate(unpacking->to, (off_t)unpacking->limit) < 0)
			return error_system("cannot be cut");
	}
	if (unpacking->damage && unpacking->packing != &plain)
		findings_add(unpacking->findings, FINDING_INCOMPLETE,
			     "the core is packed with %s, and %s at byte %" PRIu64
			     " of the packed file: only the %s bytes before that are analysed",
			     unpacking->packing->name, unpacking->damage, unpacking->taken,
			     grouped(unpacking->position, size));
	return NULL;
}

static struct error *unpack_all(struct unpacking *unpacking)
{
	bool more = true;

	unpacking->decoder = unpacking->packing->open();
	TRY_MEMORY(unpacking->decoder);
	while (more && !unpacking->full)
		TRY(step(unpacking, &more));
	return finish(unpacking);
}

static struct error *begin(struct unpacking *unpacking, const char *folder, uint64_t size)
{
	unpacking->input = malloc(INPUT_ROOM);
	unpacking->output = malloc(OUTPUT_ROOM);
	TRY_MEMORY(unpacking->input && unpacking->output);
	progress_begin(unpacking->progress, size ? "unpacking the core" : "reading the core", size);
	TRY(read_input(unpacking, LONGEST_MAGIC));
	unpacking->packing = find_packing(unpacking->input, unpacking->end);
	if (!unpacking->packing)
		unpacking->packing = &plain;
	unpacking->folder = temporary_folder(folder);
	return temporary_open(folder, &unpacking->to);
}

/* True if a regular file is packed; its offset does not change. */
static bool is_packed(int fd)
{
	uint8_t magic[LONGEST_MAGIC];
	ssize_t size = pread(fd, magic, sizeof(magic), 0);

	return size > 0 && find_packing(magic, (size_t)size);
}

struct error *unpack(int from, const struct image_options *options, struct findings *findings,
		     int *ret)
{
	struct progress silent = { 0 };
	_cleanup_(unpacking_deinit) struct unpacking unpacking = {
		.from = from,
		.to = -1,
		.findings = findings,
		.progress = options->progress ? options->progress : &silent,
	};
	struct stat status;

	*ret = -1;
	if (fstat(from, &status) < 0)
		return error_system("cannot be read");
	if (S_ISREG(status.st_mode)) {
		if (!is_packed(from))
			return NULL;
		if (lseek(from, 0, SEEK_SET) < 0)
			return error_system("cannot be read");
	}
	TRY(begin(&unpacking, options->temporary_folder,
		  S_ISREG(status.st_mode) ? (uint64_t)status.st_size : 0));
	TRY(unpack_all(&unpacking));
	*ret = unpacking.to;
	unpacking.to = -1;
	return NULL;
}
