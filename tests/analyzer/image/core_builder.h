/*
 * An ELF core, made in memory: what a process had at which address, its threads, mapped files and
 * auxiliary vector.
 *
 * core_write_file() lays it out as the kernel does and leaves it in a file without a name, which
 * path names as long as the core lives:
 *
 *	| ELF header | program headers | notes | segments ... |
 *
 * With PN_XNUM or more program headers, their number stands in a section header, as it should.
 */
#pragma once

#include "analyzer/image/image.h"

#include "tests/assertions.h"

#include <elf.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/procfs.h>
#include <sys/user.h>

enum { RIGHTS_RW = RIGHT_READ | RIGHT_WRITE, RED_ZONE = 128 /* of x86-64 */ };

/* The first present bytes of [start, start + size) are in the core. */
struct core_segment {
	uint64_t start, size, present;
	unsigned int rights;
	uint8_t *bytes; /* present of them */
};

struct core_file {
	uint64_t start, end, offset;
	const char *path;
};

struct core {
	Elf64_Ehdr header; /* may be changed before the file is written */
	struct core_segment *segments;
	size_t segment_count, segment_capacity;
	uint8_t *notes;
	size_t notes_size;
	Elf64_auxv_t auxiliary[16];
	size_t auxiliary_count;
	struct core_file files[16];
	size_t file_count;
	uint64_t notes_offset; /* once written: where the notes are */
	uint64_t size;	       /* and the whole file's */
	int fd;
	char path[32];
};

static inline void core_init(struct core *core)
{
	*core = (struct core){
		.header = {
			.e_ident = { ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3,
				     ELFCLASS64, ELFDATA2LSB, EV_CURRENT },
			.e_type = ET_CORE,
			.e_machine = EM_X86_64,
			.e_version = EV_CURRENT,
			.e_phoff = sizeof(Elf64_Ehdr),
			.e_ehsize = sizeof(Elf64_Ehdr),
			.e_phentsize = sizeof(Elf64_Phdr),
			.e_shentsize = sizeof(Elf64_Shdr),
		},
	};
	core->fd = memfd_create("core", MFD_CLOEXEC);
	assert_true(core->fd >= 0);
	snprintf(core->path, sizeof(core->path), "/proc/self/fd/%d", core->fd);
}

static inline void core_deinit(struct core *core)
{
	for (size_t i = 0; i < core->segment_count; i++)
		free(core->segments[i].bytes);
	free(core->segments);
	free(core->notes);
	close(core->fd);
}
DEFINE_DEINIT(core_deinit, struct core)

/* Returns the present bytes, which are zero at first. */
static inline uint8_t *core_add_part(struct core *core, uint64_t start, uint64_t size,
				     uint64_t present, unsigned int rights)
{
	struct core_segment *segment;

	if (core->segment_count == core->segment_capacity) {
		core->segment_capacity = 2 * core->segment_capacity + 16;
		core->segments =
			reallocarray(core->segments, core->segment_capacity, sizeof(*segment));
		assert_non_null(core->segments);
	}
	segment = &core->segments[core->segment_count++];
	*segment = (struct core_segment){ start, size, present, rights };
	segment->bytes = calloc(1, present + 1);
	assert_non_null(segment->bytes);
	return segment->bytes;
}

static inline uint8_t *core_add(struct core *core, uint64_t start, uint64_t size,
				unsigned int rights)
{
	return core_add_part(core, start, size, size, rights);
}

/* The bytes at address, at least size of them. */
static inline uint8_t *core_at(const struct core *core, uint64_t address, uint64_t size)
{
	for (size_t i = 0; i < core->segment_count; i++) {
		const struct core_segment *segment = &core->segments[i];
		uint64_t offset = address - segment->start;

		if (offset < segment->present && size <= segment->present - offset)
			return segment->bytes + offset;
	}
	fail_msg("the core has no memory at %#lx", (unsigned long)address);
	return NULL;
}

/* The word at address becomes value. */
static inline void core_set(struct core *core, uint64_t address, uint64_t value)
{
	memcpy(core_at(core, address, sizeof(value)), &value, sizeof(value));
}

static inline uint64_t core_get(const struct core *core, uint64_t address)
{
	uint64_t value;

	memcpy(&value, core_at(core, address, sizeof(value)), sizeof(value));
	return value;
}

static inline void core_add_note(struct core *core, const char *owner, unsigned int type,
				 const void *description, size_t size)
{
	Elf64_Nhdr note = { (Elf64_Word)strlen(owner) + 1, (Elf64_Word)size, type };
	size_t name_size = (note.n_namesz + 3) & ~3u;
	size_t all = sizeof(note) + name_size + ((size + 3) & ~(size_t)3);
	uint8_t *notes = realloc(core->notes, core->notes_size + all);

	assert_non_null(notes);
	core->notes = notes;
	notes += core->notes_size;
	memset(notes, 0, all);
	memcpy(notes, &note, sizeof(note));
	memcpy(notes + sizeof(note), owner, note.n_namesz);
	memcpy(notes + sizeof(note) + name_size, description, size);
	core->notes_size += all;
}

static inline void core_add_thread(struct core *core, uint32_t id,
				   const struct user_regs_struct *registers)
{
	struct elf_prstatus status = { .pr_pid = (int)id, .pr_cursig = 11 };

	memcpy(&status.pr_reg, registers, sizeof(*registers));
	core_add_note(core, "CORE", NT_PRSTATUS, &status, sizeof(status));
}

/* Add the vector state of the thread added last. */
static inline void core_add_vectors(struct core *core, const void *state, size_t size)
{
	core_add_note(core, "LINUX", NT_X86_XSTATE, state, size);
}

static inline void core_add_auxiliary(struct core *core, uint64_t type, uint64_t value)
{
	core->auxiliary[core->auxiliary_count++] = (Elf64_auxv_t){ type, { value } };
}

/* The file's bytes from offset on are mapped at [start, end). */
static inline void core_add_file(struct core *core, uint64_t start, uint64_t end, uint64_t offset,
				 const char *path)
{
	core->files[core->file_count++] = (struct core_file){ start, end, offset, path };
}

/* A library with two segments: its ELF header in a page at start, and behind that writable data. */
static inline void core_add_module(struct core *core, uint64_t start, uint64_t data_size,
				   const char *path)
{
	const uint64_t data = start + PAGE;
	const Elf64_Phdr segments[] = {
		{ .p_type = PT_LOAD, .p_memsz = PAGE },
		{ .p_type = PT_LOAD, .p_vaddr = PAGE, .p_memsz = data_size },
	};
	const Elf64_Ehdr header = {
		.e_ident = { ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3 },
		.e_phoff = sizeof(header),
		.e_phentsize = sizeof(segments[0]),
		.e_phnum = 2,
	};
	uint8_t *bytes = core_add(core, start, PAGE, RIGHT_READ);

	memcpy(bytes, &header, sizeof(header));
	memcpy(bytes + sizeof(header), segments, sizeof(segments));
	core_add(core, data, data_size, RIGHTS_RW);
	core_add_file(core, start, data, 0, path);
	core_add_file(core, data, data + data_size, PAGE, path);
}

struct core_symbol {
	const char *name;
	uint64_t address; /* of a variable of 8 bytes, in the module */
};

/* The hash of a name in DT_GNU_HASH. */
static inline uint32_t core_symbol_hash(const char *name)
{
	uint32_t hash = 5381;

	for (; *name; name++)
		hash = hash * 33 + (uint8_t)*name;
	return hash;
}

/*
 * The module at start, of core_add_module(), exports these variables: the loader's tables of them,
 * from which module_exports() and module_find_variable() know them, stand in its data from there
 * on. Returns where they end.
 */
static inline uint64_t core_export(struct core *core, uint64_t start, uint64_t tables,
				   const struct core_symbol *symbols, size_t count)
{
	/* A bucket, which begins with symbol 1, and a word of the filter. */
	const uint32_t hashes[] = { 1, 1, 1, 0, UINT32_MAX, UINT32_MAX, 1 };
	enum { TAGS = 5 };
	const uint64_t hash_place = tables + TAGS * sizeof(Elf64_Dyn),
		       symbol_place = hash_place + sizeof(hashes) + 4 * (count | 1),
		       names = symbol_place + (count + 1) * sizeof(Elf64_Sym);
	uint8_t *page = core_at(core, start, PAGE);
	Elf64_Ehdr *header = (Elf64_Ehdr *)(void *)page;
	Elf64_Phdr *segments = (Elf64_Phdr *)(void *)(page + sizeof(*header));
	uint64_t name = names + 1;

	for (size_t i = 0; i < count; i++) {
		const Elf64_Sym symbol = {
			.st_name = (Elf64_Word)(name - names),
			.st_info = ELF64_ST_INFO(STB_GLOBAL, STT_OBJECT),
			.st_shndx = 1,
			.st_value = symbols[i].address - start,
			.st_size = sizeof(uint64_t),
		};
		size_t size = strlen(symbols[i].name) + 1;
		uint32_t hash = (core_symbol_hash(symbols[i].name) & ~1u) | (i + 1 == count);

		memcpy(core_at(core, symbol_place + (i + 1) * sizeof(symbol), sizeof(symbol)),
		       &symbol, sizeof(symbol));
		memcpy(core_at(core, hash_place + sizeof(hashes) + 4 * i, 4), &hash, 4);
		memcpy(core_at(core, name, size), symbols[i].name, size);
		name += size;
	}
	const Elf64_Dyn tags[TAGS] = {
		{ DT_GNU_HASH, { hash_place - start } },
		{ DT_SYMTAB, { symbol_place - start } },
		{ DT_STRTAB, { names - start } },
		{ DT_STRSZ, { name - names } },
		{ DT_NULL, { 0 } },
	};
	memcpy(core_at(core, tables, sizeof(tags)), tags, sizeof(tags));
	memcpy(core_at(core, hash_place, sizeof(hashes)), hashes, sizeof(hashes));
	header->e_ident[EI_CLASS] = ELFCLASS64;
	header->e_ident[EI_DATA] = ELFDATA2LSB;
	header->e_ident[EI_VERSION] = header->e_version = EV_CURRENT;
	header->e_type = ET_DYN;
	header->e_machine = EM_X86_64;
	header->e_ehsize = sizeof(*header);
	header->e_phnum = 3;
	segments[0].p_filesz = PAGE;
	segments[1].p_filesz = segments[1].p_memsz;
	segments[1].p_offset = PAGE;
	segments[2] = (Elf64_Phdr){ .p_type = PT_DYNAMIC,
				    .p_vaddr = tables - start,
				    .p_filesz = sizeof(tags),
				    .p_memsz = sizeof(tags) };
	return name;
}

static inline void core_note_files(struct core *core)
{
	struct {
		uint64_t count, page;
		uint64_t entries[16][3];
		char paths[1024];
	} note = { core->file_count, 4096 };
	uint8_t bytes[sizeof(note)];
	size_t size = 16 + 24 * core->file_count;

	for (size_t i = 0; i < core->file_count; i++) {
		const struct core_file *file = &core->files[i];

		note.entries[i][0] = file->start;
		note.entries[i][1] = file->end;
		note.entries[i][2] = file->offset / 4096;
	}
	memcpy(bytes, &note, size);
	for (size_t i = 0; i < core->file_count; i++) {
		size_t length = strlen(core->files[i].path) + 1;

		assert_true(size + length <= sizeof(bytes));
		memcpy(bytes + size, core->files[i].path, length);
		size += length;
	}
	core_add_note(core, "CORE", NT_FILE, bytes, size);
}

/* Not inlined, because GCC 14 then takes a header for its first member. */
__attribute__((noinline, unused)) static void core_write_at(const struct core *core,
							    const void *bytes, size_t size,
							    uint64_t offset)
{
	assert_int_equal(pwrite(core->fd, bytes, size, (off_t)offset), size);
}

/* Write the ELF header, and where their number is if it does not fit. */
static inline void core_write_header(struct core *core, size_t count)
{
	Elf64_Shdr section = { .sh_info = (Elf64_Word)count };

	core->header.e_phnum = count < PN_XNUM ? (Elf64_Half)count : (Elf64_Half)PN_XNUM;
	if (count >= PN_XNUM) {
		core->header.e_shoff = core->size;
		core->header.e_shnum = 1;
		core_write_at(core, &section, sizeof(section), core->size);
		core->size += sizeof(section);
	}
	core_write_at(core, &core->header, sizeof(core->header), 0);
}

/* Write the core to the file at core->path. */
static inline void core_write_file(struct core *core)
{
	size_t count = core->segment_count + 1;
	_cleanup_(free) Elf64_Phdr *headers = calloc(count, sizeof(*headers));
	const Elf64_auxv_t end = { AT_NULL, { 0 } };

	assert_non_null(headers);
	core->auxiliary[core->auxiliary_count++] = end;
	core_add_note(core, "CORE", NT_AUXV, core->auxiliary, core->auxiliary_count * sizeof(end));
	if (core->file_count > 0)
		core_note_files(core);
	core->notes_offset = sizeof(core->header) + count * sizeof(*headers);
	headers[0] = (Elf64_Phdr){ .p_type = PT_NOTE,
				   .p_offset = core->notes_offset,
				   .p_filesz = core->notes_size };
	core_write_at(core, core->notes, core->notes_size, core->notes_offset);
	core->size = core->notes_offset + core->notes_size;
	for (size_t i = 0; i < core->segment_count; i++) {
		const struct core_segment *segment = &core->segments[i];

		headers[i + 1] = (Elf64_Phdr){ .p_type = PT_LOAD,
					       .p_flags = segment->rights,
					       .p_offset = core->size,
					       .p_vaddr = segment->start,
					       .p_filesz = segment->present,
					       .p_memsz = segment->size };
		core_write_at(core, segment->bytes, segment->present, core->size);
		core->size += segment->present;
	}
	core_write_at(core, headers, count * sizeof(*headers), sizeof(core->header));
	core_write_header(core, count);
}

/* The finding whose message has that text in it, or NULL. */
static inline const struct finding *find_finding(const struct findings *findings, const char *text)
{
	for (size_t i = 0; i < findings->count; i++)
		if (strstr(findings->list[i].message, text))
			return &findings->list[i];
	return NULL;
}

/* There is such a finding. */
static inline void assert_finding(const struct findings *findings, enum finding_weight weight,
				  const char *text)
{
	const struct finding *finding = find_finding(findings, text);

	for (size_t i = 0; !finding && i < findings->count; i++)
		print_message("found: %s\n", findings->list[i].message);
	if (!finding)
		fail_msg("no finding says \"%s\"", text);
	assert_int_equal(finding->weight, weight);
}

/* There is nothing to say about the dump. */
static inline void assert_no_finding(const struct findings *findings)
{
	if (findings->count > 0)
		fail_msg("%s", findings->list[0].message);
}
