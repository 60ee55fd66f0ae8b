#include "analyzer/image/build_id.h"

#include <elf.h>
#include <string.h>

/* Of a file; bytes of all its notes, for several rows may be the same. */
enum { MAXIMUM_HEADERS = 256, MAXIMUM_NOTES = 64 * 1024 };

/* Where the bytes of an ELF file come from. */
struct source {
	bool (*read)(const struct source *source, uint64_t offset, void *ret, size_t size);
	/* Either the process's memory, or a file. */
	const struct image *image;
	uint64_t base;
	const uint8_t *bytes;
	uint64_t size; /* of either */
};

static bool read_image(const struct source *source, uint64_t offset, void *ret, size_t size)
{
	return offset <= source->size && size <= source->size - offset &&
	       image_read(source->image, source->base + offset, ret, size);
}

static bool read_file(const struct source *source, uint64_t offset, void *ret, size_t size)
{
	if (offset > source->size || size > source->size - offset)
		return false;
	memcpy(ret, source->bytes + offset, size);
	return true;
}

/* Look for the build-id among the notes at [offset, offset + size). */
static struct build_id find_note(const struct source *source, uint64_t offset, uint64_t size)
{
	struct build_id id = { .size = 0 };
	Elf64_Nhdr note;

	while (size >= sizeof(note) && source->read(source, offset, &note, sizeof(note))) {
		uint64_t name = (note.n_namesz + UINT64_C(3)) & ~UINT64_C(3);
		uint64_t all = sizeof(note) + name + ((note.n_descsz + UINT64_C(3)) & ~UINT64_C(3));
		char owner[4];

		if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == sizeof(owner) &&
		    note.n_descsz <= sizeof(id.bytes) &&
		    source->read(source, offset + sizeof(note), owner, sizeof(owner)) &&
		    memcmp(owner, "GNU", sizeof(owner)) == 0 &&
		    source->read(source, offset + sizeof(note) + name, id.bytes, note.n_descsz)) {
			id.size = note.n_descsz;
			return id;
		}
		if (all > size)
			break;
		offset += all;
		size -= all;
	}
	return id;
}

/*
 * The notes stand in the first mapped bytes of the file, so their offset in the file is also their
 * distance from its base in memory.
 */
static struct build_id find(const struct source *source)
{
	struct build_id id = { .size = 0 };
	uint64_t left = MAXIMUM_NOTES;
	Elf64_Ehdr header;

	if (!source->read(source, 0, &header, sizeof(header)) ||
	    memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 ||
	    header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_phentsize != sizeof(Elf64_Phdr) ||
	    header.e_phnum > MAXIMUM_HEADERS)
		return id;
	for (unsigned int i = 0; i < header.e_phnum && id.size == 0; i++) {
		Elf64_Phdr segment;

		if (!source->read(source, header.e_phoff + i * sizeof(segment), &segment,
				  sizeof(segment)))
			break;
		if (segment.p_type != PT_NOTE || segment.p_filesz > left)
			continue;
		left -= segment.p_filesz;
		id = find_note(source, segment.p_offset, segment.p_filesz);
	}
	return id;
}

struct build_id build_id_of_image(const struct image *image, uint64_t base, uint64_t end)
{
	struct source source = {
		read_image,
		.image = image,
		.base = base,
		.size = end - base,
	};

	return find(&source);
}

struct build_id build_id_of_file(const uint8_t *bytes, size_t size)
{
	struct source source = { read_file, .bytes = bytes, .size = size };

	return find(&source);
}

bool build_id_equal(const struct build_id *a, const struct build_id *b)
{
	return a->size > 0 && a->size == b->size && memcmp(a->bytes, b->bytes, a->size) == 0;
}
