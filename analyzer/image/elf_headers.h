/*
 * ELF headers of both classes, all read as those of 64 bits.
 */
#pragma once

#include "analyzer/image/own_notes.h"

#include <elf.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

enum { MEMORY_TAGS = PT_LOPROC + 2 }; /* PT_AARCH64_MEMTAG_MTE, if arch->tag_bits */

static inline bool elf_segment_is_memory(const Elf64_Phdr *segment)
{
	return segment->p_type == PT_LOAD || segment->p_type == SEGMENT_PLACEHOLDERS;
}

/* Make next part of the segment if it goes on with it, in memory and in the file. */
static inline bool elf_segment_join(Elf64_Phdr *segment, const Elf64_Phdr *next)
{
	if (!(next->p_flags & SEGMENT_CONTINUES) || !elf_segment_is_memory(segment) ||
	    !elf_segment_is_memory(next) || segment->p_filesz != segment->p_memsz ||
	    next->p_vaddr - segment->p_vaddr != segment->p_memsz ||
	    next->p_offset - segment->p_offset != segment->p_filesz ||
	    next->p_filesz > UINT64_MAX - segment->p_filesz ||
	    next->p_memsz > UINT64_MAX - segment->p_memsz)
		return false;
	segment->p_type = PT_LOAD;
	segment->p_filesz += next->p_filesz;
	segment->p_memsz += next->p_memsz;
	return true;
}

static inline size_t elf_segment_size(const Elf64_Ehdr *header)
{
	return header->e_ident[EI_CLASS] == ELFCLASS32 ? sizeof(Elf32_Phdr) : sizeof(Elf64_Phdr);
}

static inline size_t elf_section_size(const Elf64_Ehdr *header)
{
	return header->e_ident[EI_CLASS] == ELFCLASS32 ? sizeof(Elf32_Shdr) : sizeof(Elf64_Shdr);
}

/* Make what was read of either class, at least sizeof(*header) bytes, a header of 64 bits. */
static inline void elf_header_widen(Elf64_Ehdr *header)
{
	Elf32_Ehdr narrow;

	if (header->e_ident[EI_CLASS] != ELFCLASS32)
		return;
	memcpy(&narrow, header, sizeof(narrow));
	header->e_entry = narrow.e_entry;
	header->e_phoff = narrow.e_phoff;
	header->e_shoff = narrow.e_shoff;
	header->e_flags = narrow.e_flags;
	header->e_ehsize = narrow.e_ehsize;
	header->e_phentsize = narrow.e_phentsize;
	header->e_phnum = narrow.e_phnum;
	header->e_shentsize = narrow.e_shentsize;
	header->e_shnum = narrow.e_shnum;
	header->e_shstrndx = narrow.e_shstrndx;
}

/*
 * Like elf_header_widen(), for program headers, which were read into room for as many headers of 64
 * bits.
 */
static inline void elf_segments_widen(const Elf64_Ehdr *header, Elf64_Phdr *segments, size_t count)
{
	if (header->e_ident[EI_CLASS] != ELFCLASS32)
		return;
	/* From the last one on: none is overwritten before it is read. */
	for (size_t i = count; i-- > 0;) {
		Elf32_Phdr narrow;

		memcpy(&narrow, (const char *)segments + i * sizeof(narrow), sizeof(narrow));
		segments[i] = (Elf64_Phdr){
			.p_type = narrow.p_type,
			.p_flags = narrow.p_flags,
			.p_offset = narrow.p_offset,
			.p_vaddr = narrow.p_vaddr,
			.p_paddr = narrow.p_paddr,
			.p_filesz = narrow.p_filesz,
			.p_memsz = narrow.p_memsz,
			.p_align = narrow.p_align,
		};
	}
}
