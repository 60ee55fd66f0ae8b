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

/* The reverse: a header that is of 64 bits but for its class becomes one of that class. */
static inline void elf_header_narrow(Elf64_Ehdr *header)
{
	Elf32_Ehdr narrow = {
		.e_type = header->e_type,
		.e_machine = header->e_machine,
		.e_version = header->e_version,
		.e_entry = (Elf32_Addr)header->e_entry,
		.e_phoff = (Elf32_Off)header->e_phoff,
		.e_shoff = (Elf32_Off)header->e_shoff,
		.e_flags = header->e_flags,
		.e_ehsize = header->e_ehsize,
		.e_phentsize = header->e_phentsize,
		.e_phnum = header->e_phnum,
		.e_shentsize = header->e_shentsize,
		.e_shnum = header->e_shnum,
		.e_shstrndx = header->e_shstrndx,
	};

	if (header->e_ident[EI_CLASS] != ELFCLASS32)
		return;
	memcpy(narrow.e_ident, header->e_ident, sizeof(narrow.e_ident));
	memset(header, 0, sizeof(*header));
	memcpy(header, &narrow, sizeof(narrow));
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

/* The reverse: the headers take less of the room that they have. */
static inline void elf_segments_narrow(const Elf64_Ehdr *header, Elf64_Phdr *segments, size_t count)
{
	if (header->e_ident[EI_CLASS] != ELFCLASS32)
		return;
	for (size_t i = 0; i < count; i++) {
		Elf32_Phdr narrow = {
			.p_type = segments[i].p_type,
			.p_offset = (Elf32_Off)segments[i].p_offset,
			.p_vaddr = (Elf32_Addr)segments[i].p_vaddr,
			.p_paddr = (Elf32_Addr)segments[i].p_paddr,
			.p_filesz = (Elf32_Word)segments[i].p_filesz,
			.p_memsz = (Elf32_Word)segments[i].p_memsz,
			.p_flags = segments[i].p_flags,
			.p_align = (Elf32_Word)segments[i].p_align,
		};

		memcpy((char *)segments + i * sizeof(narrow), &narrow, sizeof(narrow));
	}
}
