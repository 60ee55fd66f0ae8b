/* Findings about unsupported heaps. */
#include "analyzer/heap/heaps.h"

#include "tests/analyzer/image/core_builder.h"

enum { LIBRARY = 0x40000, TEXT = 0x200 };

/* The findings about a process whose program has that path, and that text in its data. */
static void find_heaps_of(const char *path, const char *text, struct findings *findings)
{
	_cleanup_(core_deinit) struct core core;
	_cleanup_(image_close) struct image *image = NULL;
	_cleanup_(program_destroy) struct program *program = NULL;
	_cleanup_(heaps_destroy) struct heaps *heaps = NULL;
	struct memory_account account = { 0 };
	struct progress progress = { 0 };
	const struct user_regs_struct registers = { .rsp = 0x1000 };
	const Elf64_Ehdr header = { .e_ident = ELFMAG,
				    .e_phoff = sizeof(header),
				    .e_phentsize = sizeof(Elf64_Phdr),
				    .e_phnum = 1 };
	const Elf64_Phdr segment = { .p_type = PT_LOAD };
	uint8_t *bytes;

	core_init(&core);
	bytes = core_add(&core, LIBRARY, PAGE, RIGHT_READ);
	memcpy(bytes, &header, sizeof(header));
	memcpy(bytes + sizeof(header), &segment, sizeof(segment));
	memcpy(bytes + TEXT, text, strlen(text));
	core_add_auxiliary(&core, AT_ENTRY, LIBRARY + TEXT);
	core_add_file(&core, LIBRARY, LIBRARY + PAGE, 0, path);
	core_add_thread(&core, 11, &registers);
	core_write_file(&core);
	assert_no_error(image_open(core.path, findings, &image));
	assert_no_error(program_create(image, findings, &program));
	assert_no_error(heaps_create(
		&(struct heap_context){ image, program, findings, &account, &progress }, &heaps));
	assert_int_equal(allocation_count(heaps_index(heaps)), 0);
}

/* Like find_heaps_of(), for a library without text. */
static void find_heaps(const char *path, struct findings *findings)
{
	find_heaps_of(path, "", findings);
}

TEST(count_of_0_never_hides_that_no_heap_was_found)
{
	_cleanup_(findings_deinit) struct findings findings = { 0 };

	find_heaps("/usr/lib/libm.so.6", &findings);
	assert_finding(
		&findings, FINDING_INCOMPLETE,
		"no heap was found: neither glibc's malloc nor any other known allocator is seen in the core. Counts of 0 mean nothing");
}

TEST(allocator_of_which_some_versions_are_read_is_named_with_these)
{
	_cleanup_(findings_deinit) struct findings findings = { 0 };

	find_heaps("/usr/lib/libjemalloc.so.1", &findings);
	assert_finding(
		&findings, FINDING_INCOMPLETE,
		"jemalloc is loaded (/usr/lib/libjemalloc.so.1), and its heap could not be read: only versions 5.0 to 5.3 are, undamaged");
	find_heaps("/lib/ld-musl-x86_64.so.1", &findings);
	assert_finding(
		&findings, FINDING_INCOMPLETE,
		"musl's malloc is loaded (/lib/ld-musl-x86_64.so.1), and its heap could not be read: only versions from 1.2.1 on are, undamaged");
}

TEST(allocator_of_firefox_is_named)
{
	_cleanup_(findings_deinit) struct findings findings = { 0 };

	find_heaps("/usr/lib/firefox/libmozglue.so", &findings);
	assert_finding(
		&findings, FINDING_INCOMPLETE,
		"mozjemalloc is loaded (/usr/lib/firefox/libmozglue.so), and its heap is not supported: what it allocated is not counted");
}

TEST(program_in_go_is_recognised_without_symbols)
{
	_cleanup_(findings_deinit) struct findings findings = { 0 };

	find_heaps_of("/usr/sbin/dockerd", "\xff Go buildinf:", &findings);
	assert_finding(
		&findings, FINDING_INCOMPLETE,
		"Go's runtime is loaded (/usr/sbin/dockerd), and its heap is not supported: what it allocated is not counted");
}

TEST(allocator_that_is_not_understood_is_named)
{
	static const struct {
		const char *path, *name;
	} unsupported[] = {
		{ "/opt/lib/libhoard.so", "Hoard" },
		{ "/opt/lib/libhardened_malloc.so", "hardened_malloc" },
		{ "/usr/lib/libv8.so", "V8" },
	};

	for (size_t i = 0; i < sizeof(unsupported) / sizeof(*unsupported); i++) {
		_cleanup_(findings_deinit) struct findings findings = { 0 };
		char expected[256];

		snprintf(expected, sizeof(expected),
			 "%s is loaded (%s), and its heap is not supported", unsupported[i].name,
			 unsupported[i].path);
		find_heaps(unsupported[i].path, &findings);
		assert_finding(&findings, FINDING_INCOMPLETE, expected);
	}
}
