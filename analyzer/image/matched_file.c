#include "analyzer/image/matched_file.h"

#include "analyzer/image/files.h"

#include <string.h>
#include <unistd.h>

enum { MOST_TAGS = 4096, MOST_WORDS = 1 << 14, LEAST_EQUAL = 32 };

static bool read_at(int fd, uint64_t offset, void *ret, size_t size)
{
	return offset <= INT64_MAX && pread(fd, ret, size, (off_t)offset) == (ssize_t)size;
}

static bool read_headers(const struct image *image, int fd, uint64_t base,
			 struct module_headers *ret)
{
	const Elf64_Ehdr *header = &ret->header;
	const Elf64_Phdr *first;

	if (!read_at(fd, 0, &ret->header, sizeof(ret->header)) ||
	    memcmp(header->e_ident, ELFMAG, SELFMAG) != 0 ||
	    header->e_ident[EI_CLASS] != image->arch->class || image->arch->class != ELFCLASS64 ||
	    header->e_machine != image->arch->machine ||
	    header->e_phentsize != sizeof(Elf64_Phdr) || header->e_phnum > MOST_PROGRAM_HEADERS ||
	    !read_at(fd, header->e_phoff, ret->segments, header->e_phnum * sizeof(Elf64_Phdr)))
		return false;
	ret->count = header->e_phnum;
	first = module_headers_find(ret, PT_LOAD);
	ret->is_loaded = first != NULL;
	ret->bias = first ? base - page_below(first->p_vaddr) : 0;
	return ret->is_loaded;
}

/* The loader writes the place of its list there, and addresses in place of some values. */
static bool is_same_tag(const Elf64_Dyn *held, const Elf64_Dyn *filed, uint64_t bias)
{
	return held->d_tag == filed->d_tag &&
	       (held->d_tag == DT_DEBUG || held->d_un.d_val == filed->d_un.d_val ||
		held->d_un.d_val == filed->d_un.d_val + bias);
}

static bool has_dynamic(const struct image *image, int fd, const struct module_headers *headers,
			const Elf64_Phdr *dynamic)
{
	uint64_t count = dynamic->p_filesz / sizeof(Elf64_Dyn);
	uint64_t address = headers->bias + dynamic->p_vaddr;
	Elf64_Dyn held, filed;

	for (uint64_t i = 0; i < count && i < MOST_TAGS; i++) {
		uint64_t offset = i * sizeof(held);

		if (!image_read(image, address + offset, &held, sizeof(held)) ||
		    !read_at(fd, dynamic->p_offset + offset, &filed, sizeof(filed)) ||
		    !is_same_tag(&held, &filed, headers->bias))
			return false;
		if (held.d_tag == DT_NULL)
			return i > 0;
	}
	return false;
}

/* The loader's part of a static program writes to a few words; most are as in the file. */
static bool has_data(const struct image *image, int fd, const struct module_headers *headers)
{
	const Elf64_Phdr *constant = module_headers_find(headers, PT_GNU_RELRO);
	uint64_t equal = 0, other = 0, held, filed;

	if (!constant)
		return false;
	for (uint64_t i = 0; i < constant->p_filesz / 8 && i < MOST_WORDS; i++) {
		if (!image_read_u64(image, headers->bias + constant->p_vaddr + 8 * i, &held) ||
		    !read_at(fd, constant->p_offset + 8 * i, &filed, sizeof(filed)))
			return false;
		if (held != filed)
			other++;
		else if (held != 0)
			equal++;
	}
	return equal >= LEAST_EQUAL && equal / 8 >= other;
}

bool matched_headers_read(const struct image *image, const struct loaded *loaded, uint64_t base,
			  struct module_headers *ret)
{
	_cleanup_(close) int fd =
		loaded->path[0] == '/' ? file_open_below(image->files.sysroot, loaded->path) : -1;
	const Elf64_Phdr *dynamic;

	if (fd < 0 || !read_headers(image, fd, base, ret))
		return false;
	dynamic = module_headers_find(ret, PT_DYNAMIC);
	if (loaded->map == 0
		    ? image_auxiliary(image, AT_ENTRY, 0) != ret->bias + ret->header.e_entry ||
			      image_auxiliary(image, AT_PHNUM, 0) != ret->count
		    : !dynamic || ret->bias + dynamic->p_vaddr != loaded->dynamic)
		return false;
	return dynamic ? has_dynamic(image, fd, ret, dynamic) : has_data(image, fd, ret);
}
