/*
 * A process that has this test program mapped, which so is the file that tells of its own
 * addresses.
 */
#include "analyzer/program/debug/debug.h"

#include "analyzer/program/debug/lines.h"
#include "analyzer/program/debug/names.h"
#include "analyzer/program/debug/type_table.h"
#include "tests/analyzer/image/core_builder.h"

#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <unistd.h>

struct shelf {
	long count;
	struct {
		char name[4];
		void *volatile content;
	} boxes[2][3];
};

/* Not zero: it stands in the file, of which alone the core has mappings. */
struct shelf shelf_of_the_test = { .count = 1 };

/* Its value is 0, but it is no address: the section is not loaded. */
__asm__(".pushsection .apart_of_the_test, \"\", @progbits\n"
	".type symbol_apart, @object\n"
	".size symbol_apart, 4096\n"
	"symbol_apart:\n"
	".zero 4096\n"
	".popsection");

static const uint64_t STACK = 0x7ffc00000000, STACK_SIZE = 0x4000;

struct process {
	struct core core;
	struct findings findings;
	struct image *image;
	struct program *program;
	struct debug *debug;
	uint64_t base; /* where the program is, also in the process */
	char path[PATH_MAX];
};

/* The program is the first module. */
static int map_program(struct dl_phdr_info *info, size_t size, void *data)
{
	struct process *process = data;

	process->base = info->dlpi_addr;
	for (size_t i = 0; i < info->dlpi_phnum; i++) {
		const Elf64_Phdr *header = &info->dlpi_phdr[i];
		uint64_t start = header->p_vaddr & ~UINT64_C(4095);
		uint64_t end = header->p_vaddr + header->p_filesz;

		if (header->p_type == PT_LOAD)
			core_add_file(&process->core, process->base + start,
				      process->base + ((end + 4095) & ~UINT64_C(4095)),
				      header->p_offset & ~UINT64_C(4095), process->path);
	}
	return 1;
}

/* The process has the program from that file, which is a copy of ours. */
static void process_init_from(struct process *process, const char *path)
{
	struct core *core = &process->core;
	struct user_regs_struct registers = { .rsp = STACK + 0x1000 };

	*process = (struct process){ 0 };
	snprintf(process->path, sizeof(process->path), "%s", path);
	core_init(core);
	dl_iterate_phdr(map_program, process);
	memcpy(core_add(core, process->base, 0x1000, RIGHT_READ), (const void *)process->base,
	       0x1000);
	memset(core_add(core, STACK, STACK_SIZE, RIGHTS_RW), 0x11, STACK_SIZE);
	core_add_auxiliary(core, AT_RANDOM, STACK + STACK_SIZE - 0x100);
	registers.rip = (uint64_t)(uintptr_t)source_line_find;
	core_add_thread(core, 4711, &registers);
}

static void process_init(struct process *process)
{
	char path[PATH_MAX] = "";

	assert_true(readlink("/proc/self/exe", path, sizeof(path) - 1) > 0);
	process_init_from(process, path);
}

static void process_deinit(struct process *process)
{
	if (process->debug)
		debug_destroy(process->debug);
	if (process->program)
		program_destroy(process->program);
	if (process->image)
		image_close(process->image);
	findings_deinit(&process->findings);
	core_deinit(&process->core);
}
DEFINE_DEINIT(process_deinit, struct process)

static void process_open(struct process *process, const struct debug_options *options)
{
	core_write_file(&process->core);
	assert_no_error(image_open_with(process->core.path,
					&(struct image_options){ .sysroot = options->sysroot },
					&process->findings, &process->image));
	assert_no_error(program_create(process->image, &process->findings, &process->program));
	assert_no_error(debug_create(process->image, process->program, options, &process->findings,
				     &process->debug));
}

static const struct debug_options NO_OPTIONS = { .debug_directory = NULL };

TEST(symbol_covers_its_function)
{
	_cleanup_(process_deinit) struct process process;
	uint64_t start = (uint64_t)(uintptr_t)source_line_find;
	struct symbol symbol;

	process_init(&process);
	process_open(&process, &NO_OPTIONS);
	assert_true(debug_symbol(process.debug, start + 5, &symbol));
	assert_string_equal(symbol.name, "source_line_find");
	assert_int_equal(symbol.kind, SYMBOL_FUNCTION);
	assert_int_equal(symbol.start, start);
	assert_true(symbol.size > 5);
	assert_false(debug_symbol(process.debug, process.base + 1, &symbol));
	assert_false(debug_symbol(process.debug, STACK, &symbol));
}

/* Our program, with its section headers and symbols at odd offsets. */
static void write_at_odd_offsets(int to)
{
	_cleanup_(close) int from = open("/proc/self/exe", O_RDONLY);
	off_t size = lseek(from, 0, SEEK_END), end = size + 1 - size % 2;
	_cleanup_(free) uint8_t *bytes = malloc((size_t)size);
	Elf64_Ehdr header;

	assert_non_null(bytes);
	assert_int_equal(pread(from, bytes, (size_t)size, 0), size);
	assert_int_equal(pwrite(to, bytes, (size_t)size, 0), size);
	memcpy(&header, bytes, sizeof(header));
	for (size_t i = 0; i < header.e_shnum; i++) {
		uint8_t *place = bytes + header.e_shoff + i * sizeof(Elf64_Shdr);
		Elf64_Shdr section;

		memcpy(&section, place, sizeof(section));
		if (section.sh_type != SHT_SYMTAB)
			continue;
		assert_int_equal(pwrite(to, bytes + section.sh_offset, section.sh_size, end),
				 section.sh_size);
		section.sh_offset = (uint64_t)end;
		end += (off_t)section.sh_size;
		memcpy(place, &section, sizeof(section));
	}
	assert_true(pwrite(to, bytes + header.e_shoff, header.e_shnum * sizeof(Elf64_Shdr), end) >
		    0);
	header.e_shoff = (uint64_t)end;
	assert_true(pwrite(to, &header, sizeof(header), 0) > 0);
}

/* For the sanitizers: libelf returns pointers into the file. */
TEST(sections_may_stand_at_any_offset)
{
	_cleanup_(process_deinit) struct process process;
	char path[] = "/tmp/heapcore-odd-XXXXXX";
	_cleanup_(close) int file = mkstemp(path);
	struct symbol symbol;

	assert_true(file >= 0);
	write_at_odd_offsets(file);
	process_init_from(&process, path);
	process_open(&process, &NO_OPTIONS);
	assert_true(debug_symbol(process.debug, (uint64_t)(uintptr_t)&shelf_of_the_test, &symbol));
	assert_string_equal(symbol.name, "shelf_of_the_test");
	assert_non_null(debug_source(process.debug, (uint64_t)(uintptr_t)process_open));
	unlink(path);
}

/* From some number of lookups on, an index is used. */
TEST(symbols_are_the_same_with_an_index)
{
	_cleanup_(process_deinit) struct process process;
	uint64_t address = (uint64_t)(uintptr_t)&shelf_of_the_test + 1;
	struct symbol symbol;

	process_init(&process);
	process_open(&process, &NO_OPTIONS);
	for (size_t i = 0; i < 1000; i++) {
		assert_true(debug_symbol(process.debug, address, &symbol));
		assert_string_equal(symbol.name, "shelf_of_the_test");
		assert_int_equal(symbol.kind, SYMBOL_DATA);
		assert_int_equal(symbol.size, sizeof(struct shelf));
	}
}

static const char *name_at(struct process *process, const volatile void *place)
{
	const char *name = debug_name(process->debug, (uint64_t)(uintptr_t)place);

	assert_non_null(name);
	return name;
}

/* The name without the module's behind it. */
static void assert_name(const char *name, const char *expected)
{
	size_t length = strlen(expected);

	assert_memory_equal(name, expected, length);
	assert_string_equal(name + length, " (units)");
}

TEST(field_is_named_by_its_path)
{
	_cleanup_(process_deinit) struct process process;
	struct shelf *shelf = &shelf_of_the_test;

	process_init(&process);
	process_open(&process, &NO_OPTIONS);
	assert_name(name_at(&process, shelf), "shelf_of_the_test.count");
	assert_name(name_at(&process, &shelf->boxes[1][2].content),
		    "shelf_of_the_test.boxes[1][2].content");
	assert_name(name_at(&process, &shelf->boxes[0][1].name[3]),
		    "shelf_of_the_test.boxes[0][1].name[3]");
	/* Bytes between members belong to none. */
	assert_name(name_at(&process, &shelf->boxes[0][0].name[0] + 5),
		    "shelf_of_the_test.boxes[0][0]+0x5");
}

TEST(code_is_named_by_its_line)
{
	_cleanup_(process_deinit) struct process process;
	const char *source;

	process_init(&process);
	process_open(&process, &NO_OPTIONS);
	source = debug_source(process.debug, (uint64_t)(uintptr_t)process_open);
	assert_non_null(source);
	assert_non_null(strstr(source, "analyzer/program/debug/debug_test.c:"));
	assert_null(debug_source(process.debug, STACK));
}

TEST(backtrace_has_the_first_call_whatever_the_stack)
{
	_cleanup_(process_deinit) struct process process;
	const struct backtrace *calls;

	process_init(&process);
	process_open(&process, &NO_OPTIONS);
	calls = debug_backtrace(process.debug, 0);
	assert_non_null(calls);
	assert_true(calls->count >= 1);
	assert_string_equal(debug_frame_function(process.debug, &calls->frames[0]),
			    "source_line_find()");
	assert_null(debug_backtrace(process.debug, 1));
}

TEST(module_of_another_build_has_no_symbols)
{
	_cleanup_(process_deinit) struct process process;
	uint64_t address = (uint64_t)(uintptr_t)source_line_find;
	const Elf64_Nhdr *note;
	struct symbol symbol;

	process_init(&process);
	note = memmem(process.core.segments[0].bytes, 0x1000, "\x04\0\0\0\x14\0\0\0\x03\0\0\0GNU",
		      16);
	assert_non_null(note);
	*(uint8_t *)(uintptr_t)((const uint8_t *)note + 16) ^= 1;
	process_open(&process, &NO_OPTIONS);
	assert_false(debug_symbol(process.debug, address, &symbol));
	assert_null(debug_source(process.debug, address));
	assert_non_null(strchr(name_at(&process, (void *)address), '+'));
}

TEST(files_are_looked_for_below_the_sysroot_only)
{
	_cleanup_(process_deinit) struct process process;
	const struct debug_options options = { .sysroot = "/proc/self/fd" };
	struct symbol symbol;

	process_init(&process);
	process_open(&process, &options);
	assert_false(debug_symbol(process.debug, (uint64_t)(uintptr_t)source_line_find, &symbol));
}

static void count_steps(struct progress *progress)
{
	++*(unsigned int *)progress->show_data;
}

TEST(interrupt_ends_the_reading_of_types)
{
	_cleanup_(process_deinit) struct process process;
	_cleanup_(type_table_destroy) struct type_table *table = NULL;
	struct memory_account account = { 0 };
	unsigned int steps = 0;
	struct progress progress = {
		.interrupted = true,
		.show = count_steps,
		.show_data = &steps,
	};

	process_init(&process);
	process_open(&process, &NO_OPTIONS);
	assert_error(type_table_create(process.debug, &account, &progress, &table),
		     ERROR_INTERRUPTED, "interrupted");
	assert_null(table);
	assert_in_range(steps, 1, 2); /* of many, where all is read */
}

TEST(names_are_demangled)
{
	static const char *const names[][2] = {
		{ "serve", "serve" },
		{ "_start", "_start" },
		{ "_ZN3app5cacheE", "app::cache" },
		{ "_ZN3app7Session5serveEPKci", "app::Session::serve(char const*, int)" },
		{ "_ZN4core3fmt9Formatter3pad17h0123456789abcdefE", "core::fmt::Formatter::pad" },
		{ "_RNvCs1234_7mycrate3foo", "mycrate::foo" },
		{ "_D3std5stdio7writelnFZv", "std.stdio.writeln()" },
		{ "_Znonsense", "_Znonsense" },
	};
	struct name_pool pool = { 0 };

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		assert_string_equal(name_demangle(&pool, names[i][0]), names[i][1]);
	name_pool_deinit(&pool);
}

TEST(pool_keeps_a_name_once)
{
	struct name_pool pool = { 0 };
	const char *first = name_pool_print(&pool, "name %d", 7);

	for (int i = 0; i < 1000; i++)
		name_pool_print(&pool, "name %d", i);
	assert_ptr_equal(name_pool_print(&pool, "name %d", 7), first);
	name_pool_deinit(&pool);
}
