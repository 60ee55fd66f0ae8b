/*
 * Debug information that is compressed in its file, made readable in place.
 *
 * libdw would hold all of it in memory once any of it is needed. Instead the sections are
 * decompressed, piece by piece, into a file that is mapped like any other: only
 * what is read comes to memory. What is not too large is kept for the next core: for a small one,
 * that of the C library alone takes longer than all else.
 */
#include "analyzer/base/cache.h"
#include "analyzer/base/temporary.h"
#include "analyzer/program/debug/files.h"

#include <elf.h>
#include <string.h>
#include <sys/mman.h>
#include <zlib.h>

enum { PIECE = 1 << 18, MOST_SECTIONS = 1 << 16 };

/* The new file with unpacked sections. */
struct unpacking {
	const uint8_t *bytes; /* of the file */
	size_t size;
	int fd;
	uint64_t end; /* of the new file, so far */
	size_t left;  /* of the file, that no section was made of yet */
	Elf64_Shdr *sections;
	size_t count;
};

static bool is_in_file(const struct unpacking *unpacking, uint64_t offset, uint64_t size)
{
	return offset <= unpacking->size && size <= unpacking->size - offset;
}

/*
 * No two sections share bytes of a sound file. Where they may, all of them together could become
 * far larger than the file.
 */
static bool take_bytes(struct unpacking *unpacking, uint64_t size)
{
	if (size > unpacking->left)
		return false;
	unpacking->left -= size;
	return true;
}

static bool is_packed(const struct unpacking *unpacking, const Elf64_Shdr *section)
{
	Elf64_Chdr header;

	if (!(section->sh_flags & SHF_COMPRESSED) || section->sh_type == SHT_NOBITS ||
	    section->sh_size < sizeof(header) ||
	    !is_in_file(unpacking, section->sh_offset, section->sh_size))
		return false;
	memcpy(&header, unpacking->bytes + section->sh_offset, sizeof(header));
	return header.ch_type == ELFCOMPRESS_ZLIB;
}

/* Write what the stream yields, exactly size bytes, to the end of the file. */
static bool inflate_to_end(struct unpacking *unpacking, z_stream *stream, uint64_t size)
{
	_cleanup_(free) uint8_t *piece = malloc(PIECE);
	int status = Z_OK;

	while (piece && size > 0 && status == Z_OK) {
		size_t got;

		stream->next_out = piece;
		stream->avail_out = PIECE;
		status = inflate(stream, Z_NO_FLUSH);
		got = PIECE - stream->avail_out;
		if ((status != Z_OK && status != Z_STREAM_END) || got > size || got == 0 ||
		    !write_fully(unpacking->fd, piece, got, unpacking->end))
			return false;
		unpacking->end += got;
		size -= got;
	}
	return piece && size == 0;
}

static bool unpack_section(struct unpacking *unpacking, Elf64_Shdr *section)
{
	const uint8_t *bytes = unpacking->bytes + section->sh_offset;
	z_stream stream = { 0 };
	Elf64_Chdr header;
	bool done;

	memcpy(&header, bytes, sizeof(header));
	if (section->sh_size - sizeof(header) > UINT32_MAX ||
	    !take_bytes(unpacking, section->sh_size) || inflateInit(&stream) != Z_OK)
		return false;
	/* zlib does not write to what it reads. */
	stream.next_in = (uint8_t *)(uintptr_t)bytes + sizeof(header);
	stream.avail_in = (uInt)(section->sh_size - sizeof(header));
	unpacking->end = (unpacking->end + 15) & ~UINT64_C(15);
	section->sh_offset = unpacking->end;
	section->sh_flags &= ~(uint64_t)SHF_COMPRESSED;
	section->sh_addralign = header.ch_addralign;
	section->sh_size = header.ch_size;
	done = inflate_to_end(unpacking, &stream, header.ch_size);
	inflateEnd(&stream);
	return done;
}

static bool copy_section(struct unpacking *unpacking, const Elf64_Shdr *section)
{
	if (section->sh_type == SHT_NOBITS ||
	    !is_in_file(unpacking, section->sh_offset, section->sh_size))
		return true;
	return take_bytes(unpacking, section->sh_size) &&
	       write_fully(unpacking->fd, unpacking->bytes + section->sh_offset, section->sh_size,
			   section->sh_offset);
}

static bool read_sections(struct unpacking *unpacking, const Elf64_Ehdr *header, Elf *elf)
{
	size_t size;

	if (elf_getshdrnum(elf, &unpacking->count) < 0 || unpacking->count > MOST_SECTIONS ||
	    header->e_shentsize != sizeof(Elf64_Shdr))
		return false;
	size = unpacking->count * sizeof(Elf64_Shdr);
	if (!is_in_file(unpacking, header->e_shoff, size))
		return false;
	unpacking->sections = malloc(size + 1);
	if (!unpacking->sections)
		return false;
	memcpy(unpacking->sections, unpacking->bytes + header->e_shoff, size);
	for (size_t i = 0; i < unpacking->count; i++)
		if (is_packed(unpacking, &unpacking->sections[i]))
			return true;
	return false;
}

/* The headers, and all sections; the table of these comes last. */
static bool write_file(struct unpacking *unpacking, Elf64_Ehdr header)
{
	size_t size = (size_t)header.e_phnum * sizeof(Elf64_Phdr);

	if (is_in_file(unpacking, header.e_phoff, size) &&
	    !write_fully(unpacking->fd, unpacking->bytes + header.e_phoff, size, header.e_phoff))
		return false;
	unpacking->end = unpacking->left = unpacking->size;
	list_for_each(section, unpacking->sections, unpacking->count) {
		if (!(is_packed(unpacking, section) ? unpack_section(unpacking, section)
						    : copy_section(unpacking, section)))
			return false;
	}
	header.e_shoff = (unpacking->end + 15) & ~UINT64_C(15);
	return write_fully(unpacking->fd, unpacking->sections,
			   unpacking->count * sizeof(Elf64_Shdr), header.e_shoff) &&
	       write_fully(unpacking->fd, &header, sizeof(header), 0);
}

/* The bytes of the new file, roughly. */
static uint64_t size_unpacked(const struct unpacking *unpacking)
{
	uint64_t size = unpacking->size;

	list_for_each(section, unpacking->sections, unpacking->count) {
		Elf64_Chdr header;

		if (!is_packed(unpacking, section))
			continue;
		memcpy(&header, unpacking->bytes + section->sh_offset, sizeof(header));
		if (header.ch_size > UINT64_MAX - size)
			return UINT64_MAX;
		size += header.ch_size;
	}
	return size;
}

/* Any heapcore makes the same of the same bytes. */
static struct cache_key key_of(const struct unpacking *unpacking)
{
	static const char KIND[] = "unpacked";
	struct cache_key key = { { 0 } };

	cache_key_add(&key, KIND, sizeof(KIND));
	cache_key_add(&key, unpacking->bytes, unpacking->size);
	return key;
}

static int open_temporary(void)
{
	int fd = -1;

	error_destroy(temporary_open(NULL, &fd));
	return fd;
}

/* Returns the new file, or -1. */
static int unpack(struct unpacking *unpacking, const Elf64_Ehdr *header, const char *folder)
{
	struct cache_draft draft = { NULL };
	struct cache_key key = { { 0 } };
	bool whole;
	int found;

	if (size_unpacked(unpacking) > cache_largest_file())
		folder = NULL;
	if (folder) {
		key = key_of(unpacking);
		found = cache_find_file(folder, &key);
		if (found >= 0)
			return found;
	}
	unpacking->fd = cache_begin_file(folder, &key, &draft);
	if (unpacking->fd < 0)
		unpacking->fd = open_temporary();
	if (unpacking->fd < 0)
		return -1;
	whole = write_file(unpacking, *header);
	cache_end_file(&draft, &key, unpacking->fd, whole);
	if (whole)
		return unpacking->fd;
	close(unpacking->fd);
	return -1;
}

int debug_file_unpack(const struct debug_file *file, const char *folder)
{
	_cleanup_(free) Elf64_Shdr *sections = NULL;
	struct unpacking unpacking = { .fd = -1 };
	Elf64_Ehdr header;
	bool ready;
	int fd;

	unpacking.bytes = (const uint8_t *)elf_rawfile(file->elf, &unpacking.size);
	if (!unpacking.bytes || unpacking.size < sizeof(header))
		return -1;
	memcpy(&header, unpacking.bytes, sizeof(header));
	if (header.e_ident[EI_CLASS] != ELFCLASS64)
		return -1;
	ready = read_sections(&unpacking, &header, file->elf);
	sections = unpacking.sections;
	fd = ready ? unpack(&unpacking, &header, folder) : -1;
	/* The compressed bytes are not needed again. */
	if (fd >= 0)
		madvise((void *)(uintptr_t)unpacking.bytes, unpacking.size, MADV_DONTNEED);
	return fd;
}
