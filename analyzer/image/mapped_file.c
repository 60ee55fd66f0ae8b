#include "analyzer/image/mapped_file.h"

#include "analyzer/base/budget.h"
#include "analyzer/image/elf_headers.h"

#include <elf.h>
#include <errno.h>
#include <string.h>
#include <sys/mman.h>

enum {
	MOST_TAGS = 4096,
	MOST_SYMBOLS = 1 << 24,
	MOST_FRAMES = 1 << 22,
};

enum section {
	SECTION_NONE,
	SECTION_SYMBOLS,
	SECTION_STRINGS,
	SECTION_FRAME_INDEX,
	SECTION_FRAMES,
	SECTION_NAMES,
	SECTIONS,
};

static const char NAMES[] = "\0.dynsym\0.dynstr\0.eh_frame_hdr\0.eh_frame\0.shstrtab";
static const unsigned char NAME_PLACES[SECTIONS] = { 0, 1, 9, 17, 31, 41 };

/* A file being put together. */
struct assembly {
	const struct image *image;
	uint64_t base, end;
	struct module_headers headers;
	Elf64_Shdr sections[SECTIONS];
	uint64_t size;	      /* of the file, up to the end of the last segment */
	struct budget budget; /* of what looks like frames */
};

bool module_headers_read(const struct image *image, uint64_t base, struct module_headers *ret)
{
	const Elf64_Phdr *first;

	if (!image_read(image, base, &ret->header, sizeof(ret->header)) ||
	    memcmp(ret->header.e_ident, ELFMAG, SELFMAG) != 0)
		return false;
	elf_header_widen(&ret->header);
	if (ret->header.e_phentsize != elf_segment_size(&ret->header) ||
	    ret->header.e_phnum > MOST_PROGRAM_HEADERS ||
	    !image_read(image, base + ret->header.e_phoff, ret->segments,
			ret->header.e_phnum * (size_t)ret->header.e_phentsize))
		return false;
	ret->count = ret->header.e_phnum;
	elf_segments_widen(&ret->header, ret->segments, ret->count);
	first = module_headers_find(ret, PT_LOAD);
	ret->is_loaded = first != NULL;
	ret->bias = first ? base - page_below(first->p_vaddr) : 0;
	return true;
}

const struct region *module_region_next(const struct image *image, uint64_t address, uint64_t end)
{
	size_t i = LIST_ABOVE(image->regions, image->region_count, end, address);

	return i < image->region_count && image->regions[i].start < end ? &image->regions[i] : NULL;
}

uint64_t module_headers_end(const struct module_headers *headers)
{
	uint64_t end = 0;

	for (size_t i = 0; i < headers->count; i++)
		if (headers->segments[i].p_type == PT_LOAD)
			end = headers->bias + headers->segments[i].p_vaddr +
			      headers->segments[i].p_memsz;
	return end;
}

const Elf64_Phdr *module_headers_find(const struct module_headers *headers, uint32_t type)
{
	for (size_t i = 0; i < headers->count; i++)
		if (headers->segments[i].p_type == type)
			return &headers->segments[i];
	return NULL;
}

/* Addresses are no nearer to each other than in the file. */
static bool measure(struct assembly *module)
{
	uint64_t all = module->end - module->base;

	list_for_each(segment, module->headers.segments, module->headers.count) {
		if (segment->p_type != PT_LOAD)
			continue;
		if (segment->p_filesz > all || segment->p_offset > all - segment->p_filesz)
			return false;
		if (segment->p_offset + segment->p_filesz > module->size)
			module->size = segment->p_offset + segment->p_filesz;
	}
	return module->headers.is_loaded;
}

/* The segment that holds the virtual address in the file, or NULL. */
static const Elf64_Phdr *find_segment(const struct assembly *module, uint64_t value)
{
	list_for_each(segment, module->headers.segments, module->headers.count) {
		if (segment->p_type == PT_LOAD && value - segment->p_vaddr < segment->p_filesz)
			return segment;
	}
	return NULL;
}

/* True if the dump has all size bytes at address; files were not read yet. */
static bool is_held(const struct image *image, uint64_t address, uint64_t size)
{
	while (size > 0) {
		const struct region *region = image_find(image, address);
		uint64_t held;

		if (!region || !region->bytes)
			return false;
		held = region->end - address;
		if (held >= size)
			break;
		address += held;
		size -= held;
	}
	return true;
}

/* Note the section, if the dump has all of it. */
static bool set_section(struct assembly *module, enum section number, uint32_t type, uint64_t value,
			uint64_t size)
{
	const Elf64_Phdr *segment = find_segment(module, value);
	uint64_t place = module->headers.bias + value - module->base;

	/* Modules have no byte in common, so all copies are no more than all. */
	if (!segment || size == 0 || place > module->end - module->base ||
	    size > module->end - module->base - place ||
	    size > segment->p_filesz - (value - segment->p_vaddr) ||
	    !is_held(module->image, module->headers.bias + value, size))
		return false;
	module->sections[number] = (Elf64_Shdr){
		.sh_name = NAME_PLACES[number],
		.sh_type = type,
		.sh_flags = SHF_ALLOC,
		.sh_addr = value,
		.sh_offset = segment->p_offset + (value - segment->p_vaddr),
		.sh_size = size,
		.sh_addralign = 8,
	};
	return true;
}

/* The loader replaces what is a virtual address by an address, or does not. */
static uint64_t virtual_address(const struct assembly *module, uint64_t value)
{
	return find_segment(module, value) ? value : value - module->headers.bias;
}

/* How many symbols the table of hashes covers: all up to the last of them. */
static uint64_t count_by_hashes(const struct assembly *module, uint64_t table)
{
	uint64_t address = module->headers.bias + table, buckets, chains, last = 0;
	uint32_t head[4], word;

	if (!image_read(module->image, address, head, sizeof(head)) || head[0] > MOST_SYMBOLS ||
	    head[2] > MOST_SYMBOLS)
		return 0;
	buckets = address + sizeof(head) + head[2] * UINT64_C(8);
	chains = buckets + head[0] * UINT64_C(4);
	for (uint64_t i = 0; i < head[0]; i++) {
		if (!image_read_u32(module->image, buckets + 4 * i, &word))
			return 0;
		if (word > last)
			last = word;
	}
	if (last < head[1])
		return head[1];
	while (last < MOST_SYMBOLS &&
	       image_read_u32(module->image, chains + 4 * (last - head[1]), &word)) {
		last++;
		if (word & 1)
			return last;
	}
	return 0;
}

static void find_symbols(struct assembly *module)
{
	const Elf64_Phdr *dynamic = module_headers_find(&module->headers, PT_DYNAMIC);
	uint64_t values[DT_NUM] = { 0 }, hashes = 0, count = 0;
	uint32_t chains;
	Elf64_Dyn tag;

	for (uint64_t i = 0; dynamic && i < MOST_TAGS; i++) {
		if (!image_read(module->image,
				module->headers.bias + dynamic->p_vaddr + i * sizeof(tag), &tag,
				sizeof(tag)) ||
		    tag.d_tag == DT_NULL)
			break;
		if (tag.d_tag > 0 && tag.d_tag < DT_NUM)
			values[tag.d_tag] = tag.d_un.d_val;
		else if (tag.d_tag == DT_GNU_HASH)
			hashes = tag.d_un.d_ptr;
	}
	if (hashes)
		count = count_by_hashes(module, virtual_address(module, hashes));
	else if (values[DT_HASH] &&
		 image_read_u32(module->image,
				module->headers.bias + virtual_address(module, values[DT_HASH]) + 4,
				&chains))
		count = chains;
	if (count <= 1 || count > MOST_SYMBOLS ||
	    !set_section(module, SECTION_STRINGS, SHT_STRTAB,
			 virtual_address(module, values[DT_STRTAB]), values[DT_STRSZ]) ||
	    !set_section(module, SECTION_SYMBOLS, SHT_DYNSYM,
			 virtual_address(module, values[DT_SYMTAB]), count * sizeof(Elf64_Sym)))
		return;
	module->sections[SECTION_SYMBOLS].sh_link = SECTION_STRINGS;
	module->sections[SECTION_SYMBOLS].sh_info = 1;
	module->sections[SECTION_SYMBOLS].sh_entsize = sizeof(Elf64_Sym);
}

/* Note the frames from there on; they end with their segment, or before. */
static void set_frames(struct assembly *module, uint64_t frames)
{
	const Elf64_Phdr *segment = find_segment(module, frames);

	if (segment)
		set_section(module, SECTION_FRAMES, SHT_PROGBITS, frames,
			    segment->p_vaddr + segment->p_filesz - frames);
}

/* Find the start of the frames, stored as a distance from the field itself. */
static void find_indexed_frames(struct assembly *module, const Elf64_Phdr *index)
{
	enum { DISTANCE_32 = 0x1b, PLACE = 4 };
	uint8_t head[PLACE];
	uint32_t distance;

	if (set_section(module, SECTION_FRAME_INDEX, SHT_PROGBITS, index->p_vaddr,
			index->p_filesz) &&
	    image_read(module->image, module->headers.bias + index->p_vaddr, head, sizeof(head)) &&
	    head[0] == 1 && head[1] == DISTANCE_32 &&
	    image_read_u32(module->image, module->headers.bias + index->p_vaddr + PLACE, &distance))
		set_frames(module, index->p_vaddr + PLACE + (uint64_t)(int64_t)(int32_t)distance);
}

/*
 * True if frames begin at address and end with a length of 0: each follows the one before, and
 * refers back to one that several share.
 */
static bool are_frames(struct assembly *module, uint64_t address, uint64_t end)
{
	enum { SHORTEST = 8 };
	uint64_t at = address, count = 0;
	uint32_t words[2] = { 0 };

	for (; end - at > sizeof(words); count++) {
		if (!budget_take(&module->budget) ||
		    !image_read(module->image, at, words, sizeof(words)))
			return false;
		if (words[0] == 0)
			return count > 1;
		if (words[0] < SHORTEST || words[0] > end - at ||
		    words[1] > at + sizeof(*words) - address)
			return false;
		at += sizeof(*words) + words[0];
	}
	return false;
}

/* Static programs have no index: their frames are known by their shape. */
static void search_frames(struct assembly *module, const Elf64_Phdr *segment)
{
	enum { MOST = 64 << 20, LONGEST = 64, VERSION = 1 };
	uint64_t start = module->headers.bias + segment->p_vaddr;
	uint64_t end = start + segment->p_filesz;
	struct {
		uint32_t length, mark;
		uint8_t version, letter;
	} first;

	if (segment->p_filesz > MOST || !is_held(module->image, start, segment->p_filesz))
		return;
	for (uint64_t at = (start + 7) & ~UINT64_C(7); at < end && end - at >= LONGEST; at += 8)
		if (image_read(module->image, at, &first, sizeof(first)) && first.mark == 0 &&
		    first.version == VERSION && first.letter == 'z' && first.length < LONGEST &&
		    are_frames(module, at, end)) {
			set_frames(module, at - module->headers.bias);
			return;
		}
}

static void find_frames(struct assembly *module)
{
	const Elf64_Phdr *index = module_headers_find(&module->headers, PT_GNU_EH_FRAME);

	if (index) {
		find_indexed_frames(module, index);
		return;
	}
	for (size_t i = 0; i < module->headers.count; i++)
		if (module->headers.segments[i].p_type == PT_LOAD &&
		    module->headers.segments[i].p_flags == PF_R)
			search_frames(module, &module->headers.segments[i]);
}

/* Sections are copied one by one: all else, as code, costs nothing. */
static struct error *assemble(struct assembly *module, uint8_t **ret, size_t *ret_size)
{
	uint64_t names = (module->size + 7) & ~UINT64_C(7);
	uint64_t place = (names + sizeof(NAMES) + 7) & ~UINT64_C(7);
	size_t size = place + sizeof(module->sections);
	uint64_t phdrs = module->headers.count * sizeof(Elf64_Phdr);
	uint8_t *bytes = mmap(NULL, size, PROT_READ | PROT_WRITE,
			      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (bytes == MAP_FAILED)
		return &error_no_memory;
	for (size_t i = SECTION_SYMBOLS; i < SECTION_NAMES; i++) {
		const Elf64_Shdr *section = &module->sections[i];

		image_read(module->image, module->headers.bias + section->sh_addr,
			   bytes + section->sh_offset, section->sh_size);
	}
	module->sections[SECTION_NAMES] = (Elf64_Shdr){
		.sh_name = NAME_PLACES[SECTION_NAMES],
		.sh_type = SHT_STRTAB,
		.sh_flags = SHF_ALLOC,
		.sh_offset = names,
		.sh_size = sizeof(NAMES),
		.sh_addralign = 1,
	};
	module->headers.header.e_shoff = place;
	module->headers.header.e_shentsize = sizeof(Elf64_Shdr);
	module->headers.header.e_shnum = SECTIONS;
	module->headers.header.e_shstrndx = SECTION_NAMES;
	memcpy(bytes + names, NAMES, sizeof(NAMES));
	memcpy(bytes + place, module->sections, sizeof(module->sections));
	if (module->headers.header.e_phoff <= names &&
	    phdrs <= names - module->headers.header.e_phoff)
		memcpy(bytes + module->headers.header.e_phoff, module->headers.segments, phdrs);
	memcpy(bytes, &module->headers.header, sizeof(module->headers.header));
	mprotect(bytes, size, PROT_READ);
	*ret = bytes;
	*ret_size = size;
	return NULL;
}

struct error *mapped_file_create(const struct image *image, uint64_t base, uint64_t end,
				 uint8_t **ret, size_t *ret_size)
{
	struct assembly module = {
		.image = image, .base = base, .end = end, .budget = { MOST_FRAMES }
	};

	*ret = NULL;
	/* It would be one of 64 bits. */
	if (image_word_size(image) != sizeof(uint64_t))
		return NULL;
	if (!module_headers_read(image, base, &module.headers) || !measure(&module) ||
	    module.size < sizeof(module.headers.header))
		return NULL;
	find_symbols(&module);
	find_frames(&module);
	if (module.sections[SECTION_SYMBOLS].sh_type == SHT_NULL &&
	    module.sections[SECTION_FRAMES].sh_type == SHT_NULL)
		return NULL;
	return assemble(&module, ret, ret_size);
}
