/*
 * A library of two pages is mapped; the core has the first of them, with the build-id, and the
 * other has to come from the file.
 */
#include "analyzer/image/files.h"

#include "tests/analyzer/image/core_builder.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>

enum { BASE = 0x40000, PAGES = 4 };

struct library {
	Elf64_Ehdr header;
	Elf64_Phdr segment;
	Elf64_Nhdr note;
	char owner[4];
	uint8_t build_id[20];
	uint8_t rest[PAGES * PAGE - 64 - 56 - 12 - 4 - 20];
};

static char directory[] = "/tmp/files_test.XXXXXX", path[64];

static void make_library(struct library *library, uint8_t build_id)
{
	const size_t note = offsetof(struct library, note);

	*library = (struct library){
		.header = { .e_ident = { ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64,
					 ELFDATA2LSB, EV_CURRENT },
			    .e_type = ET_DYN,
			    .e_machine = EM_X86_64,
			    .e_phoff = offsetof(struct library, segment),
			    .e_phentsize = sizeof(Elf64_Phdr),
			    .e_phnum = 1 },
		.segment = { .p_type = PT_NOTE, .p_offset = note, .p_filesz = 36 },
		.note = { 4, 20, NT_GNU_BUILD_ID },
		.owner = "GNU",
	};
	memset(library->build_id, build_id, sizeof(library->build_id));
	for (size_t i = 1; i < PAGES; i++)
		memset((uint8_t *)library + i * PAGE, (int)i, PAGE);
}

static void write_library(uint8_t build_id, size_t size)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
	struct library library;

	make_library(&library, build_id);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, &library, size), size);
	close(fd);
}

/* A core of a process that has library 1 mapped from that file. */
static void make_core(struct core *core, const char *file)
{
	struct library library;

	make_library(&library, 1);
	core_init(core);
	memcpy(core_add_part(core, BASE, PAGES * PAGE, PAGE, RIGHT_READ), &library, PAGE);
	core_add_file(core, BASE, BASE + PAGES * PAGE, 0, file);
	core_write_file(core);
}

/* How many pages of the library there are, all with the right contents. */
static size_t pages_read(const char *file)
{
	_cleanup_(findings_deinit) struct findings findings = { 0 };
	_cleanup_(core_deinit) struct core core;
	_cleanup_(image_close) struct image *image = NULL;
	size_t pages = 0;
	uint8_t bytes[PAGE], expected[PAGE];

	make_core(&core, file);
	assert_no_error(image_open(core.path, &findings, &image));
	while (pages < PAGES && image_read(image, BASE + pages * PAGE, bytes, PAGE)) {
		memset(expected, (int)pages, PAGE);
		if (pages > 0)
			assert_memory_equal(bytes, expected, PAGE);
		pages++;
	}
	if (pages > 1)
		assert_int_equal(image_find(image, BASE + PAGE)->origin, REGION_FILE);
	return pages;
}

/* Three mappings of the file's first page in a row, one of its second, and one elsewhere. */
static struct image *open_mapped(struct core *core, struct findings *findings, bool has_first)
{
	static const uint64_t places[] = { 0, 1, 2, 3, 9 }, offsets[] = { 0, 0, 0, 1, 0 };
	struct image *image = NULL;

	core_init(core);
	core_add(core, BASE - 16 * PAGE, PAGE, RIGHT_READ | RIGHT_WRITE);
	if (has_first)
		core_add(core, BASE, 3 * PAGE, RIGHT_READ);
	for (size_t i = 0; i < 5; i++)
		core_add_file(core, BASE + places[i] * PAGE, BASE + (places[i] + 1) * PAGE,
			      offsets[i] * PAGE, "/not/there");
	core_write_file(core);
	assert_no_error(image_open(core->path, findings, &image));
	assert_int_equal(image->mapping_count, 5);
	return image;
}

TEST(segments_may_share_the_first_page_of_a_file_whose_headers_are_not_in_the_core)
{
	_cleanup_(findings_deinit) struct findings findings = { 0 };
	_cleanup_(core_deinit) struct core core;
	_cleanup_(image_close) struct image *image = open_mapped(&core, &findings, false);

	for (size_t i = 0; i < 4; i++)
		assert_ptr_equal(image->mappings[i].base, &image->mappings[0]);
	assert_ptr_equal(image->mappings[4].base, &image->mappings[4]);
}

TEST(what_is_no_module_begins_with_each_mapping_of_its_first_page)
{
	_cleanup_(findings_deinit) struct findings findings = { 0 };
	_cleanup_(core_deinit) struct core core;
	_cleanup_(image_close) struct image *image = open_mapped(&core, &findings, true);

	assert_ptr_equal(image->mappings[1].base, &image->mappings[1]);
	assert_ptr_equal(image->mappings[3].base, &image->mappings[2]);
}

TEST(what_the_core_lacks_comes_from_the_file)
{
	write_library(1, PAGES * PAGE);
	assert_int_equal(pages_read(path), PAGES);
}

TEST(another_build_of_the_file_is_not_used)
{
	write_library(2, PAGES * PAGE);
	assert_int_equal(pages_read(path), 1);
}

TEST(file_without_a_build_id_is_not_used)
{
	write_library(1, sizeof(Elf64_Ehdr));
	assert_int_equal(pages_read(path), 1);
	write_library(1, 10);
	assert_int_equal(pages_read(path), 1);
}

TEST(what_the_file_lacks_stays_absent)
{
	write_library(1, 2 * PAGE);
	assert_int_equal(pages_read(path), 2);
}

TEST(mapping_of_a_later_part_is_read_at_its_offset)
{
	_cleanup_(findings_deinit) struct findings findings = { 0 };
	_cleanup_(core_deinit) struct core core;
	_cleanup_(image_close) struct image *image = NULL;
	struct library library;
	uint8_t byte = 0;

	write_library(1, PAGES * PAGE);
	make_library(&library, 1);
	core_init(&core);
	memcpy(core_add(&core, BASE, PAGE, RIGHT_READ), &library, PAGE);
	core_add_part(&core, BASE + 0x10000, PAGE, 0, RIGHT_READ);
	core_add_file(&core, BASE, BASE + PAGE, 0, path);
	core_add_file(&core, BASE + 0x10000, BASE + 0x10000 + PAGE, 3 * PAGE, path);
	core_write_file(&core);
	assert_no_error(image_open(core.path, &findings, &image));
	assert_true(image_read(image, BASE + 0x10000, &byte, 1));
	assert_int_equal(byte, 3);
	assert_string_equal(image->mappings[1].file->path, path);
}

/* To open the one waits for a writer, to open the other can have effects. */
TEST(no_pipe_and_no_device_is_opened)
{
	unlink(path);
	assert_int_equal(mkfifo(path, 0600), 0);
	alarm(60);
	assert_int_equal(pages_read(path), 1);
	alarm(0);
	assert_int_equal(pages_read("/dev/zero"), 1);
	assert_int_equal(pages_read("/tmp"), 1);
	assert_int_equal(pages_read("/nonexistent/library.so"), 1);
}

/* The process's working directory is not this one's. */
/* To read /proc/kmsg would wait for the kernel to say something. */
TEST(what_the_kernel_makes_up_is_not_opened)
{
	struct stat status;
	int fd = file_open_below(NULL, "/bin/sh");

	assert_true(fd >= 0);
	close(fd);
	assert_int_equal(stat("/proc/self/status", &status), 0);
	assert_true(S_ISREG(status.st_mode));
	assert_int_equal(file_open_below(NULL, "/proc/self/status"), -1);
}

TEST(relative_path_is_not_opened)
{
	char before[4096];

	assert_non_null(getcwd(before, sizeof(before)));
	unlink(path);
	write_library(1, PAGES * PAGE);
	assert_int_equal(chdir(directory), 0);
	assert_int_equal(pages_read("library.so"), 1);
	assert_int_equal(pages_read(path), PAGES);
	assert_int_equal(chdir(before), 0);
}

static int before_tests(void **state)
{
	if (!mkdtemp(directory))
		return -1;
	snprintf(path, sizeof(path), "%s/library.so", directory);
	return 0;
}

static int after_tests(void **state)
{
	unlink(path);
	return rmdir(directory);
}

AROUND_TESTS(before_tests, after_tests)
