#include "tests/fuzz/edits.h"

#include "analyzer/analysis/analysis.h"
#include "analyzer/base/list.h"
#include "tests/fuzz/target.h"

#include <elf.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

enum { MOST_EDITS = 64, WORD = 8 };

static void give_up(const char *name)
{
	fprintf(stderr, "%s cannot be used: %m\n", name);
	abort();
}

/* All that is in fd. */
static void read_all(struct edited_file *file, int fd, const char *name)
{
	struct stat status;

	if (fd < 0 || fstat(fd, &status) < 0)
		give_up(name);
	file->size = file->headers = (size_t)status.st_size;
	file->bytes = malloc(file->size);
	if (!file->bytes || pread(fd, file->bytes, file->size, 0) != (ssize_t)file->size)
		give_up(name);
}

void edited_file_adopt(struct edited_file *file, int fd, const char *name)
{
	*file = (struct edited_file){ .fd = fd };
	read_all(file, fd, name);
	snprintf(file->path, sizeof(file->path), "/proc/self/fd/%d", fd);
}

void edited_file_open(struct edited_file *file, const char *name)
{
	_cleanup_(free) char *path = NULL;
	_cleanup_(close) int fd = -1;

	*file = (struct edited_file){ .fd = memfd_create(name, MFD_CLOEXEC) };
	if (file->fd < 0 || asprintf(&path, "%s/%s", FUZZ_FILES, name) < 0)
		give_up(name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	read_all(file, fd, path);
	if (write(file->fd, file->bytes, file->size) != (ssize_t)file->size)
		give_up(path);
	snprintf(file->path, sizeof(file->path), "/proc/self/fd/%d", file->fd);
}

void places_add(struct places *places, uint64_t place)
{
	if (!LIST_GROW(places->list, places->count))
		give_up("memory");
	places->list[places->count++] = place;
}

/* None if it is no ELF file. */
static const Elf64_Phdr *program_headers(const struct edited_file *file, size_t *ret_count)
{
	const Elf64_Ehdr *header = (const Elf64_Ehdr *)file->bytes;

	*ret_count = 0;
	if (file->size < sizeof(*header) || memcmp(header->e_ident, ELFMAG, SELFMAG) != 0)
		return NULL;
	*ret_count = header->e_phnum;
	return (const Elf64_Phdr *)(file->bytes + header->e_phoff);
}

/* The offset of the byte at address in the file; 0: it is not there. */
static uint64_t offset_of(const struct edited_file *file, uint64_t address)
{
	size_t count;
	const Elf64_Phdr *headers = program_headers(file, &count);

	for (size_t i = 0; i < count; i++)
		if (address - headers[i].p_vaddr < headers[i].p_filesz)
			return headers[i].p_offset + address - headers[i].p_vaddr;
	return 0;
}

static uint64_t address_of(const struct edited_file *file, uint64_t offset)
{
	size_t count;
	const Elf64_Phdr *headers = program_headers(file, &count);

	for (size_t i = 0; i < count; i++)
		if (headers[i].p_type == PT_LOAD &&
		    offset - headers[i].p_offset < headers[i].p_filesz)
			return headers[i].p_vaddr + offset - headers[i].p_offset;
	return offset;
}

static uint64_t word_at(const struct edited_file *file, uint64_t offset)
{
	uint64_t value = 0;

	if (file->size >= WORD && offset <= file->size - WORD)
		memcpy(&value, file->bytes + offset, WORD);
	return value;
}

/* The words of a segment that was written to, by what they are. */
static void find_words(struct edited_file *file, const Elf64_Phdr *segment)
{
	for (uint64_t i = 0; i + WORD <= segment->p_filesz; i += WORD) {
		uint64_t value = word_at(file, segment->p_offset + i);

		if (value)
			places_add(&file->words, segment->p_offset + i);
		if (value && offset_of(file, value))
			places_add(&file->pointers, segment->p_offset + i);
	}
}

static void find_allocations(struct edited_file *file)
{
	struct progress progress = { .task = NULL };
	const struct debug_options options = { .sysroot = "/nonexistent" };
	_cleanup_(analysis_destroy) struct analysis *analysis = NULL;
	const struct allocation_index *index;

	if (analysis_create(file->path, &options, &progress, &analysis) ||
	    analysis_need(analysis, STAGE_HEAP))
		give_up(file->path);
	index = analysis_index(analysis);
	for (allocation_id id = 0; id < allocation_count(index); id++) {
		uint64_t offset = offset_of(file, allocation_start(index, id));

		if (offset < 2 * WORD)
			continue;
		places_add(&file->first, offset);
		places_add(&file->chunks, offset - WORD);
	}
}

void edited_core_open(struct edited_file *file, const char *name)
{
	const Elf64_Phdr *headers;
	size_t count;

	edited_file_open(file, name);
	headers = program_headers(file, &count);
	for (size_t i = 0; i < count; i++)
		if (headers[i].p_type == PT_NOTE)
			file->headers = headers[i].p_offset + headers[i].p_filesz;
	for (size_t i = 0; i < count; i++)
		if (headers[i].p_type == PT_LOAD && headers[i].p_flags & PF_W)
			find_words(file, &headers[i]);
	find_allocations(file);
}

static uint64_t pick(const struct places *places, uint64_t index)
{
	return places->count ? places->list[index % places->count] : 0;
}

static uint64_t find_place(const struct edited_file *file, const struct edit *edit)
{
	uint64_t further = WORD * (edit->width / 4 % 4);

	switch (edit->place % PLACES) {
	case PLACE_HEADERS:
		return edit->index % file->headers;
	case PLACE_CHUNK:
		return pick(&file->chunks, edit->index);
	case PLACE_POINTER:
		return pick(&file->pointers, edit->index);
	case PLACE_WORD:
		return pick(&file->words, edit->index);
	case PLACE_FIRST:
		return pick(&file->first, edit->index) + further;
	default:
		return edit->index % file->size;
	}
}

static uint64_t extreme(uint64_t number)
{
	static const uint64_t extremes[] = {
		0,
		1,
		UINT64_MAX,
		INT64_MAX,
		UINT64_C(1) << 63,
		UINT32_MAX,
		INT32_MAX,
		UINT64_C(1) << 47,
		(UINT64_C(1) << 47) - 4096,
		UINT64_MAX - 15,
		UINT64_MAX - 4095,
		UINT16_MAX,
		UINT64_C(1) << 32,
		UINT64_C(1) << 40,
		UINT64_C(0xffffffffff600000),
	};

	return extremes[number % (sizeof(extremes) / sizeof(*extremes))];
}

static uint64_t new_value(const struct edited_file *file, const struct edit *edit, uint64_t place)
{
	uint64_t old = word_at(file, place);

	switch (edit->change % CHANGES) {
	case CHANGE_ADD:
		return old + (uint64_t)(int64_t)(int16_t)edit->value;
	case CHANGE_FLIP:
		return old ^ edit->value;
	case CHANGE_POINTER:
		return word_at(file, pick(&file->pointers, edit->value));
	case CHANGE_BLOCK:
		return address_of(file, pick(&file->first, edit->value & 65535)) +
		       (uint64_t)(int64_t)(int8_t)(edit->value >> 16);
	case CHANGE_SELF:
		return address_of(file, place) + (uint64_t)(int64_t)(int8_t)edit->value;
	case CHANGE_EXTREME:
		return extreme(edit->value) + (uint64_t)(int8_t)edit->index % 2;
	default:
		return edit->value;
	}
}

static void write_at(const struct edited_file *file, uint64_t offset, const void *bytes,
		     uint64_t size)
{
	if (offset >= file->size)
		return;
	if (size > file->size - offset)
		size = file->size - offset;
	if (pwrite(file->fd, bytes, size, (off_t)offset) != (ssize_t)size)
		give_up("a memory file");
}

/* Overwrite size bytes with zeros, from place on. */
static void blank(const struct edited_file *file, uint64_t place, uint64_t size)
{
	static const uint8_t zeros[4096];

	for (uint64_t i = 0; i < size; i += sizeof(zeros))
		write_at(file, place + i, zeros,
			 size - i < sizeof(zeros) ? size - i : sizeof(zeros));
}

static void make(struct edited_file *file, struct edit edit)
{
	static const uint8_t widths[] = { 8, 4, 2, 1 };
	unsigned int times = edit.count % 4 == 3 ? edit.count / 4 + 1 : 1;

	for (unsigned int i = 0; i < times; i++) {
		uint64_t place = find_place(file, &edit), value;

		if (edit.place % PLACES == PLACE_CUT) {
			if (ftruncate(file->fd, (off_t)place) < 0)
				give_up("a memory file");
			return;
		}
		if (edit.place % PLACES == PLACE_BLANK) {
			blank(file, place, edit.value & 0xffff);
			return;
		}
		value = new_value(file, &edit, place);
		write_at(file, place, &value, widths[edit.width % 4]);
		edit.index++;
	}
}

void edits_make(struct edited_file *file, const uint8_t *bytes, size_t size)
{
	struct edit edit = { 0 };

	for (size_t i = 0; i < MOST_EDITS && size > 0; i++) {
		size_t length = size < sizeof(edit) ? size : sizeof(edit);

		memcpy(&edit, bytes, length);
		bytes += length;
		size -= length;
		make(file, edit);
	}
}

/* All of it: what is unchanged costs as little as what is changed. */
void edits_undo(struct edited_file *file)
{
	if (ftruncate(file->fd, (off_t)file->size) < 0 ||
	    pwrite(file->fd, file->bytes, file->size, 0) != (ssize_t)file->size)
		give_up("a memory file");
}

static void randomize(struct edit *edit, uint64_t *state)
{
	*state = *state * 6364136223846793005 + 1442695040888963407;
	edit->place = (uint8_t)(*state >> 60) % PLACE_CUT;
	edit->change = (uint8_t)(*state >> 52) % CHANGES;
	edit->width = (*state >> 40) % 4 ? 0 : (uint8_t)(*state >> 32);
	edit->count = 0;
	edit->index = (uint32_t)(*state >> 12);
	*state = *state * 6364136223846793005 + 1442695040888963407;
	edit->value = *state >> 20;
	/* Cuts and blanks leave little to look at: few of them. */
	if ((*state >> 56) % 32 == 0)
		edit->place = (*state >> 50) % 2 ? PLACE_CUT : PLACE_BLANK;
}

size_t edits_mutate(uint8_t *bytes, size_t size, size_t most, size_t head, unsigned int seed)
{
	uint64_t state = seed * UINT64_C(0x9e3779b97f4a7c15) + 1;
	size_t count, number;
	struct edit edit;

	if (size < head || size > most || seed % 4 == 0)
		return LLVMFuzzerMutate(bytes, size, most);
	count = (size - head) / sizeof(edit);
	number = seed / 4 % (count + 1);
	if (seed % 4 == 1 && count > 1 && number < count) {
		memmove(bytes + head + number * sizeof(edit),
			bytes + head + (number + 1) * sizeof(edit),
			size - head - (number + 1) * sizeof(edit));
		return size - sizeof(edit);
	}
	if (count >= MOST_EDITS || head + (count + 1) * sizeof(edit) > most)
		number %= MOST_EDITS;
	else if (number == count || seed % 4 == 2)
		size = head + ++count * sizeof(edit), number = count - 1;
	randomize(&edit, &state);
	memcpy(bytes + head + number * sizeof(edit), &edit, sizeof(edit));
	return size;
}
