#include "analyzer/base/text.h"
#include "analyzer/image/image.h"
#include "analyzer/image/own_notes.h"

#include "tests/analyzer/image/core_builder.h"

/* The core cannot be opened; message is what is said behind its path. */
static void assert_refused(const struct core *core, enum error_code code, const char *message)
{
	struct findings findings = { 0 };
	struct image *image;
	char expected[256];

	snprintf(expected, sizeof(expected), "%s: %s", core->path, message);
	assert_error(image_open(core->path, &findings, &image), code, expected);
	findings_deinit(&findings);
}

TEST(empty_file_is_refused)
{
	_cleanup_(core_deinit) struct core core;

	core_init(&core);
	assert_refused(&core, ERROR_BAD_DUMP, "is empty");
}

TEST(text_is_no_core)
{
	_cleanup_(core_deinit) struct core core;

	core_init(&core);
	core_write_at(&core, "#!/bin/sh\n", 10, 0);
	assert_refused(&core, ERROR_NOT_SUPPORTED, "is not a core dump: it has no ELF header");
}

TEST(minidump_can_be_converted)
{
	_cleanup_(core_deinit) struct core core;

	core_init(&core);
	core_write_at(&core, "MDMP\x93\xa7", 6, 0);
	assert_refused(
		&core, ERROR_NOT_SUPPORTED,
		"is a minidump, not a core: breakpad's minidump-2-core makes a core of one with all memory");
}

TEST(program_is_no_core)
{
	struct findings findings = { 0 };
	_cleanup_(core_deinit) struct core core;
	struct image *image;

	core_init(&core);
	core.header.e_type = ET_EXEC;
	core_write_file(&core);
	assert_refused(&core, ERROR_NOT_SUPPORTED, "is an ELF program, not a core");
	assert_error(image_open("/proc/self/exe", &findings, &image), ERROR_NOT_SUPPORTED,
		     "/proc/self/exe: is an ELF program or library, not a core");
}

/* As in the header of a big-endian core. */
#define SWAPPED(machine) ((Elf64_Half)((machine) >> 8 | (machine) << 8))

TEST(core_of_another_machine_is_named)
{
	static const struct {
		unsigned char class, data;
		Elf64_Half machine;
		const char *message;
	} cases[] = {
		{ ELFCLASS32, ELFDATA2LSB, EM_ARM,
		  "is a core of arm; only aarch64, i386, ppc64le, riscv64 and x86-64 are supported" },
		{ ELFCLASS32, ELFDATA2LSB, EM_X86_64,
		  "is a core of x32; only aarch64, i386, ppc64le, riscv64 and x86-64 are supported" },
		{ ELFCLASS32, ELFDATA2LSB, EM_RISCV,
		  "is a core of riscv32; only aarch64, i386, ppc64le, riscv64 and x86-64 are supported" },
		{ ELFCLASS64, ELFDATA2LSB, 999,
		  "is a core of machine 999; only aarch64, i386, ppc64le, riscv64 and x86-64 are supported" },
		{ ELFCLASS64, ELFDATA2MSB, SWAPPED(EM_S390),
		  "is a core of s390, a big-endian machine; only aarch64, i386, ppc64le, riscv64 and x86-64 are supported" },
		{ ELFCLASS64, ELFDATA2MSB, SWAPPED(EM_PPC64),
		  "is a core of ppc64, a big-endian machine; only aarch64, i386, ppc64le, riscv64 and x86-64 are supported" },
		{ ELFCLASS64, ELFDATA2MSB, SWAPPED(999),
		  "is of a big-endian machine; only aarch64, i386, ppc64le, riscv64 and x86-64 are supported" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		_cleanup_(core_deinit) struct core core;

		core_init(&core);
		core.header.e_ident[EI_CLASS] = cases[i].class;
		core.header.e_ident[EI_DATA] = cases[i].data;
		core.header.e_machine = cases[i].machine;
		core_write_file(&core);
		assert_refused(&core, ERROR_NOT_SUPPORTED, cases[i].message);
	}
}

TEST(core_without_memory_is_refused)
{
	_cleanup_(core_deinit) struct core core;

	core_init(&core);
	core_write_file(&core);
	assert_refused(&core, ERROR_BAD_DUMP, "holds no memory");
}

/* Two threads, and two segments of a page. */
static void make_small(struct core *core)
{
	struct user_regs_struct registers = { .rsp = 0x10800 };

	core_init(core);
	core_add_thread(core, 11, &registers);
	registers.rsp = 0x10900;
	core_add_thread(core, 12, &registers);
	core_add(core, 0x10000, PAGE, RIGHTS_RW);
	core_add(core, 0x20000, PAGE, RIGHTS_RW);
	core_set(core, 0x10000, 1);
	core_set(core, 0x20000, 2);
	core_write_file(core);
}

TEST(missing_bytes_are_counted_and_the_rest_is_there)
{
	_cleanup_(findings_deinit) struct findings findings = { 0 };
	_cleanup_(core_deinit) struct core core;
	_cleanup_(image_close) struct image *image = NULL;
	char expected[128], size[NUMBER_SIZE];
	uint64_t word;

	make_small(&core);
	assert_int_equal(ftruncate(core.fd, (off_t)core.size - 4000), 0);
	assert_no_error(image_open(core.path, &findings, &image));
	assert_int_equal(image->missing, 4000);
	snprintf(expected, sizeof(expected), "the core is truncated: 4,000 of %s bytes are missing",
		 grouped(core.size, size));
	assert_finding(&findings, FINDING_INCOMPLETE, expected);
	assert_true(image_read_u64(image, 0x20000, &word));
	assert_int_equal(word, 2);
	assert_true(image_read_u64(image, 0x20000 + 96 - 8, &word));
	assert_false(image_read_u64(image, 0x20000 + 96, &word));
	assert_int_equal(image->thread_count, 2);
}

/* Put the notes behind the memory, as gcore does; where they are. */
static uint64_t move_notes_to_end(struct core *core)
{
	const uint64_t offset = core->size;

	core_write_at(core, core->notes, core->notes_size, offset);
	core_write_at(core, &offset, sizeof(offset),
		      sizeof(Elf64_Ehdr) + offsetof(Elf64_Phdr, p_offset));
	core->size += core->notes_size;
	return offset;
}

TEST(notes_that_are_cut_off_cost_no_memory)
{
	static const struct {
		int64_t size; /* of the notes that is left */
		size_t threads;
		const char *finding;
	} cases[] = {
		{ 0, 0, "the core ends before its notes: threads" },
		{ -100, 0, "the core ends before its notes: threads" },
		{ 500, 1, "of the core is not whole: it and those behind" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		_cleanup_(findings_deinit) struct findings findings = { 0 };
		_cleanup_(core_deinit) struct core core;
		_cleanup_(image_close) struct image *image = NULL;
		uint64_t word, end;

		make_small(&core);
		end = move_notes_to_end(&core) + (uint64_t)cases[i].size;
		assert_int_equal(ftruncate(core.fd, (off_t)end), 0);
		assert_no_error(image_open(core.path, &findings, &image));
		assert_finding(&findings, FINDING_INCOMPLETE, cases[i].finding);
		assert_null(find_finding(&findings, "share parts"));
		assert_true(image_read_u64(image, 0x20000, &word));
		assert_int_equal(word, 2);
		assert_int_equal(image->thread_count, cases[i].threads);
	}
}

/* Wherever it is cut, it is said, and what is missing is never made up. */
TEST(no_truncation_goes_unnoticed)
{
	_cleanup_(core_deinit) struct core core;

	make_small(&core);
	for (uint64_t size = core.size - 1; size >= SELFMAG; size--) {
		_cleanup_(findings_deinit) struct findings findings = { 0 };
		_cleanup_(image_close) struct image *image = NULL;
		struct error *error;

		/* All of the headers, and some of the memory. */
		if (size % 64 > 8 && size > core.notes_offset)
			continue;
		assert_int_equal(ftruncate(core.fd, (off_t)size), 0);
		error = image_open(core.path, &findings, &image);
		if (error) {
			assert_int_equal(error_code(error), ERROR_BAD_DUMP);
			error_destroy(error);
			continue;
		}
		assert_finding(&findings, FINDING_INCOMPLETE, "the core is truncated");
		if (size >= core.notes_offset)
			assert_int_equal(image->missing, core.size - size);
	}
}

TEST(more_segments_than_the_header_can_count_are_read)
{
	enum { SEGMENTS = 70000, SIZE = 16 };
	_cleanup_(findings_deinit) struct findings findings = { 0 };
	_cleanup_(core_deinit) struct core core;
	_cleanup_(image_close) struct image *image = NULL;
	uint64_t word;

	core_init(&core);
	for (uint64_t i = 0; i < SEGMENTS; i++)
		memcpy(core_add(&core, (i + 1) * PAGE, SIZE, RIGHTS_RW), &i, sizeof(i));
	core_write_file(&core);
	assert_no_error(image_open(core.path, &findings, &image));
	assert_int_equal(image->region_count, SEGMENTS);
	for (uint64_t i = 0; i < SEGMENTS; i++) {
		assert_true(image_read_u64(image, (i + 1) * PAGE, &word));
		assert_int_equal(word, i);
	}
	assert_no_finding(&findings);
}

static void add_signal(struct core *core, int code, pid_t sender)
{
	siginfo_t signal = { .si_signo = SIGSEGV, .si_code = code };
	struct user_regs_struct registers = { 0 };

	signal.si_pid = sender; /* or part of an address */
	core_add_thread(core, 11, &registers);
	core_add_note(core, "CORE", NT_SIGINFO, &signal, sizeof(signal));
}

TEST(signals_of_other_processes_are_told_from_faults)
{
	enum { OWN = 11, OTHER = 12 };
	static const struct {
		int code;
		pid_t sender;
		bool foreign;
	} cases[] = {
		{ SI_USER, OTHER, true },    { SI_TKILL, OTHER, true },
		{ SI_QUEUE, OTHER, true },   { SI_USER, OWN, false },
		{ SI_TKILL, OWN, false },    { SEGV_MAPERR, OTHER, false },
		{ SI_KERNEL, OTHER, false },
	};
	struct elf_prpsinfo process = { .pr_pid = OWN };
	_cleanup_(findings_deinit) struct findings findings = { 0 };
	_cleanup_(core_deinit) struct core core;
	_cleanup_(image_close) struct image *image = NULL;

	core_init(&core);
	core_add(&core, 0x10000, PAGE, RIGHTS_RW);
	core_add_note(&core, "CORE", NT_PRPSINFO, &process, sizeof(process));
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
		add_signal(&core, cases[i].code, cases[i].sender);
	core_write_file(&core);
	assert_no_error(image_open(core.path, &findings, &image));
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
		assert_int_equal(image_signal_is_foreign(image, &image->threads[i]),
				 cases[i].foreign);
}

TEST(threads_have_their_registers_and_vectors)
{
	_cleanup_(findings_deinit) struct findings findings = { 0 };
	_cleanup_(core_deinit) struct core core;
	_cleanup_(image_close) struct image *image = NULL;
	struct user_regs_struct registers = { .rsp = 0x1111, .fs_base = 5 };
	uint8_t short_state[512] = { 1 }, state_bytes[832] = { 2 };
	const struct image_thread *thread;

	core_init(&core);
	core_add(&core, 0x10000, PAGE, RIGHTS_RW);
	core_add_thread(&core, 11, &registers);
	core_add_note(&core, "CORE", NT_FPREGSET, short_state, sizeof(short_state));
	core_add_vectors(&core, state_bytes, sizeof(state_bytes));
	registers.rsp = 0x2222;
	core_add_thread(&core, 12, &registers);
	core_write_file(&core);
	assert_no_error(image_open(core.path, &findings, &image));
	assert_int_equal(image->thread_count, 2);
	thread = &image->threads[0];
	assert_int_equal(thread->id, 11);
	assert_int_equal(thread->signal, 11);
	assert_int_equal(thread->registers[image->arch->stack_pointer], 0x1111);
	assert_int_equal(thread->thread_pointer, 5);
	/* The longer state has all of the shorter. */
	assert_int_equal(thread->vectors_size, sizeof(state_bytes));
	assert_memory_equal(thread->vectors, state_bytes, sizeof(state_bytes));
	thread = &image->threads[1];
	assert_int_equal(thread->id, 12);
	assert_int_equal(thread->registers[image->arch->stack_pointer], 0x2222);
	assert_int_equal(thread->vectors_size, 0);
}

TEST(mapped_files_and_auxiliary_values_are_told)
{
	_cleanup_(findings_deinit) struct findings findings = { 0 };
	_cleanup_(core_deinit) struct core core;
	_cleanup_(image_close) struct image *image = NULL;
	const struct mapping *mapping;

	core_init(&core);
	core_add(&core, 0x10000, 2 * PAGE, RIGHTS_RW);
	core_add_file(&core, 0x11000, 0x12000, 3 * PAGE, "/lib/b.so");
	core_add_file(&core, 0x10000, 0x11000, 0, "/lib/a.so");
	core_add_auxiliary(&core, AT_RANDOM, 0x10010);
	core_write_file(&core);
	assert_no_error(image_open(core.path, &findings, &image));
	assert_int_equal(image->mapping_count, 2);
	mapping = &image->mappings[1];
	assert_int_equal(mapping->start, 0x11000);
	assert_int_equal(mapping->offset, 3 * PAGE);
	assert_string_equal(mapping->path, "/lib/b.so");
	assert_null(mapping->file);
	assert_int_equal(image_auxiliary(image, AT_RANDOM, 1), 0x10010);
	assert_int_equal(image_auxiliary(image, AT_ENTRY, 1), 1);
}

/* Open a core whose first note is that; its one thread must be there. */
static void check_note(unsigned int type, const void *note, size_t size, const char *expected)
{
	_cleanup_(findings_deinit) struct findings findings = { 0 };
	_cleanup_(core_deinit) struct core core;
	_cleanup_(image_close) struct image *image = NULL;
	struct user_regs_struct registers = { .rsp = 0x1111 };

	core_init(&core);
	core_add(&core, 0x10000, PAGE, RIGHTS_RW);
	core_add_note(&core, "CORE", type, note, size);
	core_add_thread(&core, 11, &registers);
	core_write_file(&core);
	assert_no_error(image_open(core.path, &findings, &image));
	assert_int_equal(image->thread_count, 1);
	assert_int_equal(image->mapping_count, 0);
	assert_finding(&findings, FINDING_INCOMPLETE, expected);
}

TEST(list_of_files_that_lies_costs_no_more_than_itself)
{
	uint64_t words[5] = { UINT64_MAX, 4096 };

	check_note(NT_FILE, words, sizeof(words),
		   "the NT_FILE note claims 18446744073709551615 mappings, more than fit into it");
	/* As many as make the size of the list wrap around. */
	words[0] = UINT64_MAX / 24 + 1;
	check_note(NT_FILE, words, sizeof(words), "more than fit into it");
	check_note(NT_FILE, words, 8, "the NT_FILE note is cut");
	/* One mapping, without its path. */
	words[0] = 1;
	words[2] = 0x10000;
	words[3] = 0x11000;
	check_note(NT_FILE, words, sizeof(words), "a path in the NT_FILE note is cut");
}

TEST(status_that_is_too_short_is_no_thread)
{
	const struct elf_prstatus status = { .pr_pid = 10 };

	check_note(NT_PRSTATUS, &status, sizeof(status) - 1, "an NT_PRSTATUS note is too short");
}

TEST(process_and_time_are_told_by_notes)
{
	const struct elf_prpsinfo info = { .pr_pid = 4711, .pr_psargs = "server *:80   " };
	const struct time_note note = { UINT64_C(1700000000000000000), UINT64_C(3600000000000) };
	_cleanup_(findings_deinit) struct findings findings = { 0 };
	_cleanup_(core_deinit) struct core core;
	_cleanup_(image_close) struct image *image = NULL;

	core_init(&core);
	core_add(&core, 0x10000, PAGE, RIGHTS_RW);
	core_add_note(&core, "CORE", NT_PRPSINFO, &info, sizeof(info));
	core_add_note(&core, NOTE_OWNER, NOTE_TIME, &note, sizeof(note));
	core_add_note(&core, NOTE_OWNER, NOTE_TIME, &info, 4);
	core_write_file(&core);
	assert_no_error(image_open(core.path, &findings, &image));
	assert_int_equal(image->origin.process, 4711);
	assert_string_equal(image->origin.command, "server *:80");
	assert_int_equal(image->origin.time, note.time);
	assert_int_equal(image->origin.age, note.age);
	assert_false(findings_incomplete(&findings));
}

/* A mapping of three parts, of which the first two leave the rest out. */
TEST(what_was_cut_is_zeros_and_of_one_mapping)
{
	_cleanup_(core_deinit) struct core core;
	_cleanup_(findings_deinit) struct findings findings = { 0 };
	_cleanup_(image_close) struct image *image = NULL;
	struct note_range cut = { 0x10000, 0x10000 + (UINT64_C(1) << 45) };
	uint64_t middle = 0x10000 + (UINT64_C(1) << 40), value = 1;

	core_init(&core);
	core_add_part(&core, cut.start, middle - cut.start, 0, RIGHTS_RW);
	core_add_part(&core, middle, cut.end - middle, 0x1000, RIGHTS_RW)[8] = 7;
	core_add_part(&core, cut.end, 0x2000, 0x1000, RIGHTS_RW);
	core_add_note(&core, NOTE_OWNER, NOTE_CUTS, &cut, sizeof(cut));
	core_write_file(&core);
	assert_no_error(image_open(core.path, &findings, &image));
	assert_true(image_read_u64(image, cut.start, &value));
	assert_int_equal(value, 0);
	assert_true(image_read_u64(image, middle + 8, &value));
	assert_int_equal(value, 7);
	assert_true(image_read_u64(image, cut.end - 8, &value));
	assert_int_equal(value, 0);
	assert_int_equal(image_next_data(image, cut.start), middle);
	assert_int_equal(image_next_hole(image, middle + 0x1000), middle + 0x1000);
	assert_int_equal(image_find(image, cut.start)->segment,
			 image_find(image, cut.end - 8)->segment);
	/* Nothing is known of another mapping. */
	assert_false(image_read_u64(image, cut.end + 0x1000, &value));
	assert_null(find_finding(&findings, "there are not enough addresses"));
}

/* More than any process can map. */
TEST(what_was_cut_is_missing_where_addresses_end)
{
	_cleanup_(core_deinit) struct core core;
	_cleanup_(findings_deinit) struct findings findings = { 0 };
	_cleanup_(image_close) struct image *image = NULL;
	struct note_range cut = { 0x10000, 0x10000 + (UINT64_C(1) << 62) };
	uint64_t value;

	core_init(&core);
	core_add_part(&core, cut.start, cut.end - cut.start, 0x1000, RIGHTS_RW)[8] = 7;
	core_add_note(&core, NOTE_OWNER, NOTE_CUTS, &cut, sizeof(cut));
	core_write_file(&core);
	assert_no_error(image_open(core.path, &findings, &image));
	assert_true(image_read_u64(image, cut.start + 8, &value));
	assert_false(image_read_u64(image, cut.end - 8, &value));
	assert_finding(
		&findings, FINDING_INCOMPLETE,
		"there are not enough addresses for memory that was never touched: it counts as missing");
}

TEST(cuts_out_of_order_are_refused)
{
	_cleanup_(findings_deinit) struct findings findings = { 0 };
	_cleanup_(core_deinit) struct core core;
	_cleanup_(image_close) struct image *image = NULL;
	struct note_range cuts[] = { { 0x9000, UINT64_MAX }, { 0x1000, 0x3000 } };

	core_init(&core);
	core_add(&core, 0x10000, PAGE, RIGHTS_RW);
	core_add_note(&core, NOTE_OWNER, NOTE_CUTS, cuts, sizeof(cuts));
	core_write_file(&core);
	assert_no_error(image_open(core.path, &findings, &image));
	assert_finding(&findings, FINDING_INCOMPLETE, "truncated mappings is invalid");
}

TEST(note_that_ends_nowhere_is_reported)
{
	_cleanup_(findings_deinit) struct findings findings = { 0 };
	_cleanup_(core_deinit) struct core core;
	_cleanup_(image_close) struct image *image = NULL;
	struct user_regs_struct registers = { .rsp = 0x1111 };
	const Elf64_Word size = 0xfffffff0;

	core_init(&core);
	core_add(&core, 0x10000, PAGE, RIGHTS_RW);
	core_add_thread(&core, 11, &registers);
	memcpy(core.notes + offsetof(Elf64_Nhdr, n_descsz), &size, sizeof(size));
	core_add_thread(&core, 12, &registers);
	core_write_file(&core);
	assert_no_error(image_open(core.path, &findings, &image));
	assert_int_equal(image->thread_count, 0);
	assert_true(findings_incomplete(&findings));
}

/* The last segment says that memory has tags. */
TEST(tags_of_memory_are_no_part_of_pointers_to_it)
{
	static const uint64_t START = 0xfffff7000000, TAG = UINT64_C(3) << 56;
	static const Elf64_Word MEMORY_TAGS = 0x70000002;
	const uint64_t words[] = { TAG | (START + 8), TAG | (START + PAGE + 8), START + 8,
				   (TAG << 4) | (START + 8) };
	const uint64_t wanted[] = { START + 8, words[1], words[2], words[3] };
	_cleanup_(findings_deinit) struct findings findings = { 0 };
	_cleanup_(core_deinit) struct core core;
	_cleanup_(image_close) struct image *image = NULL;
	uint64_t found[4];

	core_init(&core);
	core.header.e_machine = EM_AARCH64;
	memcpy(core_add(&core, START, PAGE, RIGHTS_RW), words, sizeof(words));
	core_add_part(&core, START, PAGE, 0, 0);
	core_write_file(&core);
	core_write_at(&core, &MEMORY_TAGS, sizeof(MEMORY_TAGS),
		      sizeof(Elf64_Ehdr) + 2 * sizeof(Elf64_Phdr));
	assert_no_error(image_open(core.path, &findings, &image));
	assert_true(image_read(image, START, found, sizeof(found)));
	assert_memory_equal(found, wanted, sizeof(wanted));
}
