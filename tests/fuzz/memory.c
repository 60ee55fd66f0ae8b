#include "tests/fuzz/memory.h"

#include <elf.h>
#include <string.h>
#include <sys/mman.h>

enum { MOST_PARTS = 8 };

static void put(int fd, const void *bytes, size_t size, uint64_t offset)
{
	if (pwrite(fd, bytes, size, (off_t)offset) != (ssize_t)size)
		abort();
}

struct image *memory_open(const struct memory_part *parts, size_t count, struct findings *findings)
{
	struct {
		Elf64_Ehdr header;
		Elf64_Phdr segments[MOST_PARTS];
	} head = {
		.header = {
			.e_ident = { ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3,
				     ELFCLASS64, ELFDATA2LSB, EV_CURRENT },
			.e_type = ET_CORE,
			.e_machine = EM_X86_64,
			.e_version = EV_CURRENT,
			.e_phoff = sizeof(Elf64_Ehdr),
			.e_phnum = (Elf64_Half)count,
			.e_ehsize = sizeof(Elf64_Ehdr),
			.e_phentsize = sizeof(Elf64_Phdr),
		},
	};
	_cleanup_(close) int fd = memfd_create("memory", MFD_CLOEXEC);
	uint64_t offset = PAGE;
	struct image *image;
	char path[32];

	for (size_t i = 0; i < count; i++) {
		size_t size = (parts[i].size + PAGE) / PAGE * PAGE;

		head.segments[i] = (Elf64_Phdr){ .p_type = PT_LOAD,
						 .p_flags = parts[i].rights,
						 .p_offset = offset,
						 .p_vaddr = parts[i].start,
						 .p_filesz = size,
						 .p_memsz = size };
		put(fd, parts[i].bytes, parts[i].size, offset);
		offset += size;
	}
	put(fd, &head, sizeof(head), 0);
	if (ftruncate(fd, (off_t)offset) < 0)
		abort();
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (image_open(path, findings, &image))
		abort();
	return image;
}
