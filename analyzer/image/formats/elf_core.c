/*
 * ELF cores of Linux, of 64 and 32 bits, as the kernel and gdb's gcore write them.
 *
 * What is read: the program headers, more than 65,535 of them too (PN_XNUM), and the notes
 * NT_PRSTATUS, NT_PRPSINFO, NT_FPREGSET, NT_AUXV and NT_FILE, those of the architecture (arch.h),
 * and heapcore's own. Layouts are those of the Linux kernel's fs/binfmt_elf.c (fill_files_note())
 * and, of NT_PRSTATUS, the architecture's.
 */
#include "analyzer/base/list.h"
#include "analyzer/base/macros.h"
#include "analyzer/image/elf_headers.h"
#include "analyzer/image/format.h"
#include "analyzer/image/memory_tags.h"
#include "analyzer/image/own_notes.h"

#include <elf.h>
#include <gelf.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

struct core {
	uint8_t *bytes;
	size_t size;
	Elf *elf;
	struct image *image;
	struct image_thread thread; /* being read */
	bool has_thread;
	uint64_t needed; /* the size of a complete file */
	uint64_t taken;	 /* bytes of the file that segments and notes had */
};

static bool elf_recognise(const uint8_t *bytes, size_t size)
{
	return size >= SELFMAG && memcmp(bytes, ELFMAG, SELFMAG) == 0;
}

static struct error *refuse_big_endian(const struct core *core, uint16_t machine)
{
	const char *name = image_machine_name(__builtin_bswap16(machine));
	char what[64];

	if (!name)
		return image_refuse_machine(core->image, "of a big-endian machine");
	snprintf(what, sizeof(what), "a core of %s, a big-endian machine", name);
	return image_refuse_machine(core->image, what);
}

/* Say what the file is if it is not a core that can be read here. */
static struct error *check_kind(const struct core *core)
{
	const uint8_t *ident = core->bytes;
	const Elf64_Ehdr *header = (const Elf64_Ehdr *)core->bytes;

	if (core->size < sizeof(*header))
		return error_create(ERROR_BAD_DUMP, "is cut off within its ELF header");
	/* e_type and e_machine stand at the same place in 32-bit files. */
	if (ident[EI_DATA] != ELFDATA2LSB)
		return refuse_big_endian(core, header->e_machine);
	if (header->e_type != ET_CORE)
		return error_create(ERROR_NOT_SUPPORTED, "is an ELF %s, not a core",
				    header->e_type == ET_REL	? "object file"
				    : header->e_type == ET_EXEC ? "program"
				    : header->e_type == ET_DYN	? "program or library"
								: "file of unknown type");
	return image_set_machine(core->image, header->e_machine, ident[EI_CLASS]);
}

/* True if libelf failed for lack of memory; its header has no code for that. */
static bool elf_lacks_memory(const char *message)
{
	return message && strcmp(message, "out of memory") == 0;
}

static struct error *elf_failure(const char *what)
{
	const char *message = elf_errmsg(-1);

	if (elf_lacks_memory(message))
		return &error_no_memory;
	return error_create(ERROR_BAD_DUMP, "%s: %s", what, message);
}

/* A complete file has at least end bytes. */
static void need(struct core *core, uint64_t offset, uint64_t size)
{
	uint64_t end;

	if (__builtin_add_overflow(offset, size, &end))
		end = UINT64_MAX;
	if (end > core->needed)
		core->needed = end;
}

/*
 * Take so many bytes of the file. No two segments share any in a core that somebody wrote, so all
 * together have no more than the file; else a small file could stand for endless memory.
 */
static bool take_bytes(struct core *core, uint64_t count, const char *what)
{
	bool fits = count <= core->size - core->taken;

	if (fits)
		core->taken += count;
	else
		findings_add(core->image->findings, FINDING_INCOMPLETE,
			     "segments share parts of the core: %s is left out", what);
	return fits;
}

/* How much of a segment a file that may be cut off holds. */
static uint64_t bytes_present(const struct core *core, const GElf_Phdr *header)
{
	uint64_t rest = header->p_offset < core->size ? core->size - header->p_offset : 0;

	return rest < header->p_filesz ? rest : header->p_filesz;
}

static struct error *add_segment(struct core *core, size_t number, const GElf_Phdr *header)
{
	uint64_t end, present = bytes_present(core, header);
	uint64_t held = header->p_filesz < header->p_memsz ? header->p_filesz : header->p_memsz;
	bool as_in_file = !(header->p_flags & PF_W) && (header->p_flags & SEGMENT_AS_IN_FILE);

	if (__builtin_add_overflow(header->p_vaddr, header->p_memsz, &end)) {
		findings_add(core->image->findings, FINDING_INCOMPLETE,
			     "segment %zu at %#" PRIx64
			     " reaches past the end of the address space: it is left out",
			     number, (uint64_t)header->p_vaddr);
		return NULL;
	}
	present = MIN(present, header->p_memsz);
	if (!take_bytes(core, present, "memory"))
		present = 0;
	return image_add_segment(core->image, header->p_vaddr, end,
				 header->p_flags & (RIGHT_READ | RIGHT_WRITE | RIGHT_EXECUTE),
				 as_in_file ? REGION_FILE : REGION_CORE,
				 core->bytes + (present ? header->p_offset : 0), present,
				 held - present);
}

/* The thread that was being read has all its notes. */
static struct error *finish_thread(struct core *core)
{
	if (!core->has_thread)
		return NULL;
	core->has_thread = false;
	return LIST_APPEND(core->image->threads, core->image->thread_count, core->thread);
}

static struct error *read_status(struct core *core, const uint8_t *note, size_t size)
{
	const struct arch *arch = core->image->arch;
	struct image_thread *thread = &core->thread;
	unsigned int word = arch_word_size(arch);
	int16_t signal;

	TRY(finish_thread(core));
	if (size < arch->status.size)
		return error_create(ERROR_BAD_DUMP, "an NT_PRSTATUS note is too short");
	*thread = (struct image_thread){ 0 };
	memcpy(&thread->id, note + arch->status.thread, sizeof(thread->id));
	memcpy(&signal, note + arch->status.signal, sizeof(signal));
	thread->signal = signal;
	for (size_t i = 0; i < arch->register_count; i++)
		thread->registers[i] = load_word(note + arch->status.registers + i * word, word);
	if (arch->thread_pointer != NOT_A_REGISTER && thread->registers[arch->thread_pointer])
		thread->thread_pointer =
			thread->registers[arch->thread_pointer] - arch->thread_pointer_bias;
	core->has_thread = true;
	return NULL;
}

/* Read the signal: who sent it, by kill() or the like, or which fault raised it. */
static void read_signal(struct core *core, const uint8_t *note, size_t size)
{
	/* si_signo, si_errno, si_code; then a union, aligned as words are: si_pid, or si_addr */
	enum { CODE = 8, UNION = 12, SIGNAL_SIZE = 128 };
	unsigned int word = arch_word_size(core->image->arch);
	const uint8_t *rest = note + (UNION + word - 1) / word * word;
	struct image_thread *thread = &core->thread;
	int32_t code;

	if (!core->has_thread || size < SIGNAL_SIZE)
		return;
	memcpy(&code, note + CODE, sizeof(code));
	thread->signal_sent = code == SI_USER || code == SI_TKILL || code == SI_QUEUE;
	if (thread->signal_sent)
		memcpy(&thread->signal_sender, rest, sizeof(thread->signal_sender));
	if ((thread->signal == SIGSEGV || thread->signal == SIGBUS) && code > 0) {
		thread->fault = code == SI_KERNEL ? FAULT_SOMEWHERE : FAULT_AT;
		thread->fault_address = load_word(rest, word);
	}
}

/* The longer of the notes with vector state holds all of the shorter. */
static void read_vectors(struct core *core, const uint8_t *note, size_t size)
{
	if (!core->has_thread || size <= core->thread.vectors_size)
		return;
	core->thread.vectors = note;
	core->thread.vectors_size = size;
}

static void read_thread_pointer(struct core *core, const uint8_t *note, size_t size)
{
	const struct arch *arch = core->image->arch;
	struct image_thread *thread = &core->thread;

	if (!core->has_thread)
		return;
	if (arch->find_thread_pointer)
		thread->thread_pointer = arch->find_thread_pointer(thread->registers, note, size);
	else if (size >= arch_word_size(arch))
		thread->thread_pointer = load_word(note, arch_word_size(arch));
}

/* Read the masks of signed pointers, which are the same for all threads. */
static void read_signatures(struct core *core, const uint8_t *note, size_t size)
{
	if (size < 2 * sizeof(uint64_t))
		return;
	core->image->signatures.data = load_word(note, sizeof(uint64_t));
	core->image->signatures.code = load_word(note + sizeof(uint64_t), sizeof(uint64_t));
}

static struct error *read_auxiliary(struct core *core, const uint8_t *note, size_t size)
{
	size_t word = arch_word_size(core->image->arch);

	for (size_t i = 0; size - i >= 2 * word; i += 2 * word) {
		struct auxiliary_value value = { load_word(note + i, (unsigned int)word),
						 load_word(note + i + word, (unsigned int)word) };

		if (value.type == AT_NULL)
			break;
		TRY(LIST_APPEND(core->image->auxiliary, core->image->auxiliary_count, value));
	}
	return NULL;
}

/*
 * NT_FILE: a count, a page size, then { start, end, offset in pages } for each mapping, then their
 * paths, each with its NUL.
 */
static struct error *read_files(struct core *core, const uint8_t *note, size_t size)
{
	unsigned int word = arch_word_size(core->image->arch);
	const size_t head = 2 * (size_t)word, entry = 3 * (size_t)word;
	const char *path, *end = (const char *)note + size;
	uint64_t count, page;

	if (size < head)
		return error_create(ERROR_BAD_DUMP, "the NT_FILE note is cut");
	count = load_word(note, word);
	page = load_word(note + word, word);
	if (count > (size - head) / entry)
		return error_create(ERROR_BAD_DUMP,
				    "the NT_FILE note claims %" PRIu64
				    " mappings, more than fit into it",
				    count);
	path = (const char *)note + head + count * entry;
	for (uint64_t i = 0; i < count; i++) {
		const uint8_t *words = note + head + i * entry;
		size_t length = strnlen(path, (size_t)(end - path));

		if (path + length == end)
			return error_create(ERROR_BAD_DUMP, "a path in the NT_FILE note is cut");
		TRY(image_add_mapping(core->image,
				      (struct mapping){
					      .start = load_word(words, word),
					      .end = load_word(words + word, word),
					      .offset = load_word(words + 2 * word, word) * page,
					      .path = path,
				      }));
		path += length + 1;
	}
	return NULL;
}

static void read_process(struct core *core, const uint8_t *note, size_t size)
{
	enum { INFO_SIZE = 136, INFO_PROCESS = 24, NARROW_SIZE = 124, NARROW_PROCESS = 12 };
	enum { COMMAND_SIZE = 80 }; /* at the end */
	struct image_origin *origin = &core->image->origin;
	bool is_narrow = arch_word_size(core->image->arch) == 4;
	size_t info = is_narrow ? NARROW_SIZE : INFO_SIZE;

	if (size < info)
		return;
	memcpy(&origin->process, note + (is_narrow ? NARROW_PROCESS : INFO_PROCESS),
	       sizeof(origin->process));
	memcpy(origin->command, note + info - COMMAND_SIZE, COMMAND_SIZE);
	/* A program that sets its title fills up what it had. */
	for (size_t end = strlen(origin->command); end && origin->command[end - 1] == ' ';)
		origin->command[--end] = '\0';
}

static void read_time(struct core *core, const uint8_t *note, size_t size)
{
	struct image_origin *origin = &core->image->origin;
	struct time_note time = { 0 };

	if (size < sizeof(time.time))
		return;
	memcpy(&time, note, MIN(size, sizeof(time)));
	origin->time = time.time;
	origin->age = time.age;
}

/* Numbers of mappings that are cut are no more than fit into the note. */
static struct error *read_cuts(struct core *core, const uint8_t *note, size_t size)
{
	struct note_range cut;

	for (size_t i = 0; size - i >= sizeof(cut); i += sizeof(cut)) {
		memcpy(&cut, note + i, sizeof(cut));
		TRY(image_add_cut(core->image, cut.start, cut.end));
	}
	return NULL;
}

/* Set what the file no longer tells of the core that this one was made of. */
static void read_slim(struct core *core, const uint8_t *note, size_t size)
{
	struct image_origin *origin = &core->image->origin;
	struct slim_note slim = { 0 };

	memcpy(&slim, note, size < sizeof(slim) ? size : sizeof(slim));
	origin->random = slim.random;
	origin->by_debugger |= (slim.flags & SLIM_BY_DEBUGGER) != 0;
	origin->unpacked |= (slim.flags & SLIM_UNPACKED) != 0;
	origin->hashed_names = (slim.flags & SLIM_HASHED_NAMES) != 0;
}

static struct error *read_note(struct core *core, const GElf_Nhdr *note, const char *name,
			       const uint8_t *description)
{
	struct image *image = core->image;
	const struct arch *arch = image->arch;

	if (strcmp(name, NOTE_OWNER) == 0 && note->n_type == NOTE_TIME)
		read_time(core, description, note->n_descsz);
	else if (strcmp(name, NOTE_OWNER) == 0 && note->n_type == NOTE_CUTS)
		return read_cuts(core, description, note->n_descsz);
	else if (strcmp(name, NOTE_OWNER) == 0 && image->note_count < MOST_OWN_NOTES)
		image->notes[image->note_count++] =
			(struct own_note){ note->n_type, description, note->n_descsz };
	if (strcmp(name, NOTE_OWNER) == 0 && note->n_type == NOTE_SLIM)
		read_slim(core, description, note->n_descsz);
	if (strcmp(name, "CORE") != 0 && strcmp(name, "LINUX") != 0)
		return NULL;
	if (note->n_type == NT_FPREGSET || note->n_type == arch->vectors_note)
		read_vectors(core, description, note->n_descsz);
	else if (arch->thread_pointer == NOT_A_REGISTER &&
		 note->n_type == arch->thread_pointer_note)
		read_thread_pointer(core, description, note->n_descsz);
	else if (arch->signature_note && note->n_type == arch->signature_note)
		read_signatures(core, description, note->n_descsz);
	switch (note->n_type) {
	case NT_PRSTATUS:
		return read_status(core, description, note->n_descsz);
	case NT_SIGINFO:
		read_signal(core, description, note->n_descsz);
		return NULL;
	case NT_PRPSINFO:
		read_process(core, description, note->n_descsz);
		return NULL;
	case NT_AUXV:
		return read_auxiliary(core, description, note->n_descsz);
	case NT_FILE:
		return read_files(core, description, note->n_descsz);
	default:
		return NULL;
	}
}

/* A note that makes no sense costs what it would have told, no more. */
static struct error *read_notes(struct core *core, const GElf_Phdr *header)
{
	struct findings *findings = core->image->findings;
	size_t offset = 0, next, name_offset, description_offset;
	uint64_t present = bytes_present(core, header);
	Elf_Data *data;
	GElf_Nhdr note;

	if (present == 0 && header->p_filesz > 0)
		findings_add(
			findings, FINDING_INCOMPLETE,
			"the core ends before its notes: threads and mapped files are not known");
	if (present == 0 || !take_bytes(core, present, "a row of notes"))
		return NULL;
	data = elf_getdata_rawchunk(core->elf, (int64_t)header->p_offset, present, ELF_T_NHDR);
	if (!data) {
		const char *message = elf_errmsg(-1);

		if (elf_lacks_memory(message))
			return &error_no_memory;
		findings_add(
			findings, FINDING_INCOMPLETE,
			"the notes cannot be read (%s): threads and mapped files are not known",
			message);
		return NULL;
	}
	while ((next = gelf_getnote(data, offset, &note, &name_offset, &description_offset)) > 0) {
		/* libelf may have copied the chunk; threads borrow the dump. */
		const uint8_t *bytes = core->bytes + header->p_offset;
		struct error *error;

		offset = next;
		if (note.n_namesz == 0 || bytes[name_offset + note.n_namesz - 1] != '\0')
			continue;
		error = read_note(core, &note, (const char *)bytes + name_offset,
				  bytes + description_offset);
		if (error && error_code(error) == ERROR_BAD_DUMP) {
			findings_add(findings, FINDING_INCOMPLETE, "%s", error_message(error));
			error_destroy(error);
			error = NULL;
		}
		if (error)
			return error;
	}
	/* The rest is at most the padding of the segment. */
	if (present - offset >= sizeof(Elf64_Nhdr))
		findings_add(
			findings, FINDING_INCOMPLETE,
			"the note at offset %#" PRIx64
			" of the core is not whole: it and those behind it are lost, maybe threads",
			header->p_offset + offset);
	return finish_thread(core);
}

/* A mapping with tags, which stand in a segment of their own. */
static struct error *add_tagged(struct core *core, const GElf_Phdr *header)
{
	uint64_t end;

	if (__builtin_add_overflow(header->p_vaddr, header->p_memsz, &end))
		return NULL;
	return LIST_APPEND(core->image->tagged, core->image->tagged_count,
			   ((struct note_range){ header->p_vaddr, end }));
}

/* Read the header, and join it with those behind it that go on with the same mapping. */
static bool read_header(const struct core *core, size_t count, size_t *number, GElf_Phdr *ret)
{
	GElf_Phdr next;

	if (!gelf_getphdr(core->elf, (int)*number, ret))
		return false;
	while (++*number < count && gelf_getphdr(core->elf, (int)*number, &next))
		if (!elf_segment_join(ret, &next))
			break;
	return true;
}

static struct error *read_headers(struct core *core, size_t count)
{
	for (size_t i = 0, next = 0; i < count; i = next) {
		GElf_Phdr header;

		if (!read_header(core, count, &next, &header)) {
			if (elf_lacks_memory(elf_errmsg(-1)))
				return &error_no_memory;
			break; /* cut off: reported by its size */
		}
		if (elf_segment_is_memory(&header) || header.p_type == PT_NOTE)
			need(core, header.p_offset, header.p_filesz);
		if (elf_segment_is_memory(&header) && header.p_memsz > 0)
			TRY(add_segment(core, i, &header));
		else if (header.p_type == PT_NOTE)
			TRY(read_notes(core, &header));
		else if (header.p_type == MEMORY_TAGS && core->image->arch->tag_bits)
			TRY(add_tagged(core, &header));
	}
	return NULL;
}

static struct error *elf_read(uint8_t *bytes, size_t size, struct image *image)
{
	struct core core = { .bytes = bytes, .size = size, .image = image };
	struct error *error = check_kind(&core);
	Elf64_Ehdr header;
	size_t count;

	if (error)
		return error;
	memcpy(&header, bytes, sizeof(header));
	elf_header_widen(&header);
	if (header.e_phoff > size ||
	    header.e_phnum > (size - header.e_phoff) / elf_segment_size(&header))
		return error_create(ERROR_BAD_DUMP, "is cut off within its program headers");
	if (elf_version(EV_CURRENT) == EV_NONE || !(core.elf = elf_memory((char *)bytes, size)))
		return elf_failure("is no ELF file");
	if (elf_getphdrnum(core.elf, &count) < 0) {
		error = elf_failure("has unreadable program headers");
		elf_end(core.elf);
		return error;
	}
	/* The kernel has one at most, for the number of program headers. */
	image->origin.by_debugger = header.e_shnum > 1;
	need(&core, header.e_phoff, count * elf_segment_size(&header));
	error = read_headers(&core, count);
	elf_end(core.elf);
	image_clear_memory_tags(image);
	if (core.needed > size)
		image->missing = core.needed - size;
	return error;
}

/* The offset behind count parts of that size; too large ones are no smaller. */
static uint64_t end_of(uint64_t offset, uint64_t count, uint64_t size)
{
	uint64_t end;

	if (__builtin_mul_overflow(count, size, &end) || __builtin_add_overflow(offset, end, &end))
		return UINT64_MAX;
	return end;
}

/*
 * More program headers than fit the ELF header's field are counted at the end of the file; they
 * themselves stand in front of the contents of the first one.
 */
static uint64_t count_headers(const Elf64_Ehdr *header, const Elf64_Phdr *first)
{
	if (header->e_phnum != PN_XNUM)
		return header->e_phnum;
	return first->p_offset > header->e_phoff
		       ? (first->p_offset - header->e_phoff) / elf_segment_size(header)
		       : PN_XNUM;
}

/* The program header of that number, which is there. */
static Elf64_Phdr segment_at(const Elf64_Ehdr *header, const uint8_t *bytes, uint64_t number)
{
	size_t size = elf_segment_size(header);
	Elf64_Phdr segment;

	memcpy(&segment, bytes + header->e_phoff + number * size, size);
	elf_segments_widen(header, &segment, 1);
	return segment;
}

static uint64_t elf_claim(const uint8_t *bytes, size_t size)
{
	Elf64_Phdr segment;
	Elf64_Ehdr header;
	uint64_t count, each, sections, claimed = 0;

	if (size < sizeof(header))
		return 0;
	memcpy(&header, bytes, sizeof(header));
	elf_header_widen(&header);
	each = elf_segment_size(&header);
	sections = end_of(header.e_shoff, header.e_shnum + UINT64_C(1), elf_section_size(&header));
	/* A slim core ends with them. */
	if (header.e_phoff > size)
		return MAX(end_of(header.e_phoff, header.e_phnum, each),
			   header.e_shoff ? sections : 0);
	if (end_of(header.e_phoff, 1, each) > size)
		return 0;
	segment = segment_at(&header, bytes, 0);
	count = count_headers(&header, &segment);
	claimed = end_of(header.e_phoff, count, each);
	if (claimed > size)
		return 0;
	if (header.e_shoff > 0 && claimed < sections)
		claimed = sections;
	for (uint64_t i = 0; i < count; i++) {
		uint64_t end;

		segment = segment_at(&header, bytes, i);
		end = end_of(segment.p_offset, 1, segment.p_filesz);
		if (end > claimed)
			claimed = end;
	}
	return claimed;
}

const struct image_format image_format_elf_core = {
	.name = "elf_core",
	.recognise = elf_recognise,
	.read = elf_read,
	.claim = elf_claim,
};
