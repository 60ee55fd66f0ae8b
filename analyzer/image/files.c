#include "analyzer/image/files.h"

#include "analyzer/base/list.h"
#include "analyzer/base/sort.h"
#include "analyzer/image/elf_headers.h"
#include "analyzer/image/mapped_file.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <search.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>

/*
 * Limits for a file; the notes' bytes count in total, because several program headers may share
 * them.
 */
enum { MAXIMUM_HEADERS = 256, MAXIMUM_NOTES = 64 * 1024 };

/* Bytes of a module that has no build-id. */
enum { MOST_COMPARED = 1 << 18 };

/* The source of an ELF file's bytes: the process's memory, or a file. */
struct source {
	const struct image *image;
	uint64_t base;
	const uint8_t *bytes; /* of a file, or NULL */
	uint64_t size;	      /* of either */
};

static bool read_source(const struct source *source, uint64_t offset, void *ret, size_t size)
{
	if (offset > source->size || size > source->size - offset)
		return false;
	if (!source->bytes)
		return image_read(source->image, source->base + offset, ret, size);
	memcpy(ret, source->bytes + offset, size);
	return true;
}

/* Look for the build-id among the notes at [offset, offset + size). */
static struct build_id find_note(const struct source *source, uint64_t offset, uint64_t size)
{
	struct build_id id = { .size = 0 };
	Elf64_Nhdr note;

	while (size >= sizeof(note) && read_source(source, offset, &note, sizeof(note))) {
		uint64_t name = (note.n_namesz + UINT64_C(3)) & ~UINT64_C(3);
		uint64_t all = sizeof(note) + name + ((note.n_descsz + UINT64_C(3)) & ~UINT64_C(3));
		char owner[4];

		if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == sizeof(owner) &&
		    note.n_descsz <= sizeof(id.bytes) &&
		    read_source(source, offset + sizeof(note), owner, sizeof(owner)) &&
		    memcmp(owner, "GNU", sizeof(owner)) == 0 &&
		    read_source(source, offset + sizeof(note) + name, id.bytes, note.n_descsz)) {
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

static bool read_segment(const struct source *source, const Elf64_Ehdr *header, unsigned int number,
			 Elf64_Phdr *ret)
{
	if (!read_source(source, header->e_phoff + number * (uint64_t)header->e_phentsize, ret,
			 header->e_phentsize))
		return false;
	elf_segments_widen(header, ret, 1);
	return true;
}

/* Notes may stand in any segment, which memory has elsewhere than the file. */
static struct build_id find_build_id(const struct source *source)
{
	struct build_id id = { .size = 0 };
	uint64_t left = MAXIMUM_NOTES, first = UINT64_MAX;
	Elf64_Phdr segment;
	Elf64_Ehdr header;

	if (!read_source(source, 0, &header, sizeof(header)) ||
	    memcmp(header.e_ident, ELFMAG, SELFMAG) != 0)
		return id;
	elf_header_widen(&header);
	if (header.e_phentsize != elf_segment_size(&header) || header.e_phnum > MAXIMUM_HEADERS)
		return id;
	for (unsigned int i = 0; i < header.e_phnum; i++)
		if (read_segment(source, &header, i, &segment) && segment.p_type == PT_LOAD &&
		    segment.p_vaddr < first)
			first = page_below(segment.p_vaddr);
	for (unsigned int i = 0; i < header.e_phnum && id.size == 0; i++) {
		if (!read_segment(source, &header, i, &segment))
			break;
		if (segment.p_type != PT_NOTE || segment.p_filesz > left)
			continue;
		left -= segment.p_filesz;
		id = find_note(source,
			       source->bytes || first == UINT64_MAX ? segment.p_offset
								    : segment.p_vaddr - first,
			       segment.p_filesz);
	}
	return id;
}

struct build_id build_id_of_image(const struct image *image, uint64_t base, uint64_t end)
{
	return find_build_id(&(struct source){ .image = image, .base = base, .size = end - base });
}

static bool build_id_equal(const struct build_id *a, const struct build_id *b)
{
	return a->size > 0 && a->size == b->size && memcmp(a->bytes, b->bytes, a->size) == 0;
}

static void file_destroy(struct image_file *file)
{
	if (file->bytes)
		munmap((void *)file->bytes, file->size);
	free(file->path);
	free(file);
}
DEFINE_CLEANUP(file_destroy, struct image_file *)

DEFINE_COMPARE(compare_paths, struct image_file, ALPHABETICAL(path))

/* The table owns the files in the tree. */
static void keep(void *file)
{
}

void file_table_deinit(struct file_table *table)
{
	tdestroy(table->by_path, keep);
	for (size_t i = 0; i < table->count; i++)
		file_destroy(table->files[i]);
	free(table->files);
}

/* Before Linux 5.6: what a link leads to outside of sysroot is not there. */
static int open_resolved(const char *sysroot, const char *path)
{
	_cleanup_(free) char *root = realpath(sysroot, NULL);
	_cleanup_(free) char *joined = NULL, *resolved = NULL;
	size_t length = root ? strlen(root) : 0;

	if (!root || asprintf(&joined, "%s/%s", root, path) < 0) {
		joined = NULL;
		return -1;
	}
	resolved = realpath(joined, NULL);
	if (!resolved || strncmp(resolved, root, length) != 0 ||
	    (length > 1 && resolved[length] != '/'))
		return -1;
	return open(resolved, O_PATH | O_NOFOLLOW | O_CLOEXEC);
}

/* A handle of what path names below sysroot, links not leading out of it. */
static int open_handle(const char *sysroot, const char *path)
{
	struct open_how how = {
		.flags = O_PATH | O_CLOEXEC,
		.resolve = RESOLVE_IN_ROOT,
	};
	_cleanup_(close) int root = -1;
	int handle;

	if (!sysroot)
		return open(path, O_PATH | O_CLOEXEC);
	root = open(sysroot, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (root < 0)
		return -1;
	handle = (int)syscall(SYS_openat2, root, path, &how, sizeof(how));
	/* Containers may refuse what they do not know. */
	if (handle >= 0 || (errno != ENOSYS && errno != EPERM))
		return handle;
	return open_resolved(sysroot, path);
}

/*
 * Its type is read through O_PATH first: opening a device or a FIFO can already have effects. Files
 * that the kernel makes up as they are read, as /proc/kmsg, pass for regular ones, but have no
 * size.
 */
static int open_regular(const char *sysroot, const char *path)
{
	_cleanup_(close) int handle = open_handle(sysroot, path);
	char self[64];
	struct stat status;

	if (handle < 0 || fstat(handle, &status) < 0 || !S_ISREG(status.st_mode) ||
	    status.st_size <= 0)
		return -1;
	snprintf(self, sizeof(self), "/proc/self/fd/%d", handle);
	return open(self, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
}

/* The path below sysroot of what path names within it; NULL: path does not begin with sysroot. */
static const char *find_inner_path(const char *sysroot, const char *path)
{
	_cleanup_(free) char *root = realpath(sysroot, NULL);
	size_t length = root ? strlen(root) : 0;

	return length > 1 && strncmp(path, root, length) == 0 && path[length] == '/' ? path + length
										     : NULL;
}

/* Linux gives the files of a process in a chroot the names that they have outside. */
int file_open_below(const char *sysroot, const char *path)
{
	int fd = open_regular(sysroot, path);
	const char *inner = fd < 0 && sysroot ? find_inner_path(sysroot, path) : NULL;

	return inner ? open_regular(sysroot, inner) : fd;
}

/* Map the file; bytes stay NULL if it is not there or not fit. */
static struct error *map_file(struct image_file *file, const char *sysroot)
{
	_cleanup_(close) int fd = file_open_below(sysroot, file->path);
	struct stat status;
	void *bytes;

	if (fd < 0 || fstat(fd, &status) < 0 || status.st_size <= 0)
		return NULL;
	bytes = mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (bytes == MAP_FAILED)
		return errno == ENOMEM ? &error_no_memory : NULL;
	file->bytes = bytes;
	file->size = (size_t)status.st_size;
	return NULL;
}

static struct error *add_file(struct file_table *table, const char *path, struct image_file **ret)
{
	_cleanup_(file_destroy) struct image_file *file = calloc(1, sizeof(*file));

	if (!file || !(file->path = strdup(path)) || !LIST_GROW(table->files, table->count))
		return &error_no_memory;
	if (path[0] == '/') {
		TRY(map_file(file, table->sysroot));
		table->bytes += file->size;
	}
	TRY_MEMORY(tsearch(file, &table->by_path, compare_paths));
	*ret = table->files[table->count++] = take(file);
	return NULL;
}

uint8_t mapping_rights(const struct mapping *mapping, uint64_t address)
{
	const struct image_file *file = mapping->file;
	uint64_t first = 0, distance;
	bool is_first = true;
	Elf64_Ehdr header;
	Elf64_Phdr segment;
	size_t each;

	if (!file || file->size < sizeof(header))
		return RIGHT_READ;
	distance = address - mapping->base->start;
	memcpy(&header, file->bytes, sizeof(header));
	elf_header_widen(&header);
	each = elf_segment_size(&header);
	for (uint64_t i = 0; i < header.e_phnum; i++) {
		uint64_t place = header.e_phoff + i * each;

		if (place > file->size || file->size - place < each)
			break;
		memcpy(&segment, file->bytes + place, each);
		elf_segments_widen(&header, &segment, 1);
		if (segment.p_type != PT_LOAD)
			continue;
		if (is_first)
			first = page_below(segment.p_vaddr);
		is_first = false;
		/* Segments may share pages of the file, but none of memory. */
		if (distance - (page_below(segment.p_vaddr) - first) <
		    segment.p_filesz + segment.p_vaddr % PAGE)
			return segment.p_flags & (RIGHT_READ | RIGHT_WRITE | RIGHT_EXECUTE);
	}
	return RIGHT_READ;
}

/* True if the dump has no byte at address that differs from these bytes of a file. */
static bool is_same(const struct image *image, uint64_t address, const uint8_t *bytes,
		    uint64_t size)
{
	uint64_t end = address + size;
	const struct region *region = module_region_next(image, address, end);

	if (end < address)
		return false;
	for (; region; region = module_region_next(image, region->end, end)) {
		uint64_t from = region->start > address ? region->start : address;
		uint64_t to = region->end < end ? region->end : end;

		if (region->bytes && memcmp(region->bytes + (from - region->start),
					    bytes + (from - address), to - from) != 0)
			return false;
	}
	return true;
}

static bool has_bytes(const struct image_file *file, uint64_t offset, uint64_t size)
{
	return offset <= file->size && size <= file->size - offset;
}

/* True if the file has the module's headers, all its segments, and the same constants in them. */
static bool is_alike(const struct image *image, const struct module_headers *headers, uint64_t base,
		     const struct image_file *file)
{
	const Elf64_Ehdr *header = &headers->header;
	uint64_t size = header->e_phnum * (uint64_t)header->e_phentsize;
	uint64_t left = MOST_COMPARED;

	if (!has_bytes(file, 0, sizeof(Elf32_Ehdr)) || !has_bytes(file, header->e_phoff, size) ||
	    !is_same(image, base, file->bytes, sizeof(Elf32_Ehdr)) ||
	    !is_same(image, base + header->e_phoff, file->bytes + header->e_phoff, size))
		return false;
	list_for_each(segment, headers->segments, headers->count) {
		if (segment->p_type != PT_LOAD)
			continue;
		if (!has_bytes(file, segment->p_offset, segment->p_filesz))
			return false;
		size = segment->p_flags & PF_W ? 0 : segment->p_filesz;
		size = size < left ? size : left;
		left -= size;
		if (!is_same(image, headers->bias + segment->p_vaddr,
			     file->bytes + segment->p_offset, size))
			return false;
	}
	return headers->is_loaded;
}

static struct error *find_file(struct file_table *table, const struct image *image,
			       const struct mapping *mapping, uint64_t end,
			       const struct image_file **ret, enum file_state *ret_state)
{
	struct build_id in_dump = build_id_of_image(image, mapping->start, end), in_file;
	const struct image_file key = { .path = (char *)mapping->path };
	struct image_file **found, *file = NULL;
	struct module_headers headers;
	bool is_bare = in_dump.size == 0 && !mapping->is_matched;

	*ret = NULL;
	*ret_state = FILE_UNKNOWN;
	if (is_bare && !module_headers_read(image, mapping->start, &headers))
		return NULL;
	found = tfind(&key, &table->by_path, compare_paths);
	if (found)
		file = *found;
	if (!file)
		TRY(add_file(table, mapping->path, &file));
	*ret_state = FILE_NOT_THERE;
	if (!file->bytes)
		return NULL;
	in_file = find_build_id(&(struct source){ .bytes = file->bytes, .size = file->size });
	*ret_state = FILE_OTHER_BUILD;
	if (in_dump.size > 0 && !build_id_equal(&in_dump, &in_file))
		return NULL;
	*ret_state = FILE_UNKNOWN;
	if (file->modules++ >= MOST_MODULES_OF_FILE)
		return NULL;
	*ret_state = FILE_OTHER_BUILD;
	if (is_bare && !is_alike(image, &headers, mapping->start, file))
		return NULL;
	*ret_state = FILE_USED;
	*ret = file;
	return NULL;
}

/* Build the module's file from the dump if that has enough of it; else NULL. */
static struct error *add_mapped(struct file_table *table, const struct image *image,
				const char *path, uint64_t base, uint64_t end,
				const struct image_file **ret)
{
	_cleanup_(file_destroy) struct image_file *file = calloc(1, sizeof(*file));
	uint8_t *bytes = NULL;

	if (!file || !(file->path = strdup(path)) || !LIST_GROW(table->files, table->count))
		return &error_no_memory;
	file->partial = true;
	TRY(mapped_file_create(image, base, end, &bytes, &file->size));
	if (!bytes)
		return NULL;
	file->bytes = bytes;
	*ret = table->files[table->count++] = take(file);
	return NULL;
}

struct error *file_table_find(struct file_table *table, const struct image *image,
			      const struct mapping *mapping, uint64_t end,
			      const struct image_file **ret, enum file_state *ret_state)
{
	TRY(find_file(table, image, mapping, end, ret, ret_state));
	if (!*ret)
		TRY(add_mapped(table, image, mapping->path, mapping->start, end, ret));
	return NULL;
}
