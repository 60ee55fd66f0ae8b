/*
 * A process that has this test program mapped, whose debug information so describes what is in it.
 */
#pragma once

#include "tests/analyzer/world.h"

#include <limits.h>
#include <link.h>
#include <unistd.h>

static inline int own_program_map_headers(struct dl_phdr_info *info, size_t size, void *data)
{
	struct core *core = data;
	static char path[PATH_MAX]; /* the core refers to it */

	assert_true(readlink("/proc/self/exe", path, sizeof(path) - 1) > 0);
	for (size_t i = 0; i < info->dlpi_phnum; i++) {
		const Elf64_Phdr *header = &info->dlpi_phdr[i];
		uint64_t start = info->dlpi_addr + (header->p_vaddr & ~UINT64_C(4095));
		uint64_t end = info->dlpi_addr + header->p_vaddr + header->p_filesz;

		if (header->p_type == PT_LOAD)
			core_add_file(core, start, (end + 4095) & ~UINT64_C(4095),
				      header->p_offset & ~UINT64_C(4095), path);
	}
	memcpy(core_add(core, info->dlpi_addr, 0x1000, RIGHT_READ), (const void *)info->dlpi_addr,
	       0x1000);
	return 1;
}

static inline void own_program_map(struct core *core)
{
	dl_iterate_phdr(own_program_map_headers, core);
}

/* Add a variable's present value; it begins a page, and is in no other. */
static inline void own_program_add(struct core *core, const void *variable, size_t size)
{
	assert_true((uintptr_t)variable % 4096 == 0 && size <= 4096);
	memcpy(core_add(core, (uintptr_t)variable, 4096, RIGHTS_RW), variable, size);
}
