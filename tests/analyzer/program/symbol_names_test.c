#include "analyzer/program/symbol_names.h"

#include "tests/assertions.h"

#include <fcntl.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

/* This program, which knows its own symbols. */
static struct image_file file;
static struct symbol_names *names;
static uint64_t bias;

int a_variable_of_symbol_names_test = 1;

static int take_bias(struct dl_phdr_info *info, size_t size, void *data)
{
	bias = info->dlpi_addr;
	return 1; /* the first is the program */
}

static int before_tests(void **state)
{
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	struct stat status;
	void *bytes;

	assert_return_code(fstat(fd, &status), 0);
	bytes = mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	assert_true(bytes != MAP_FAILED);
	close(fd);
	file = (struct image_file){ .bytes = bytes, .size = (size_t)status.st_size };
	dl_iterate_phdr(take_bias, NULL);
	return 0;
}

static void open_names(void)
{
	names = symbol_names_create(&file);
	assert_non_null(names);
}

static int after_tests(void **state)
{
	return munmap((void *)file.bytes, file.size);
}

AROUND_TESTS(before_tests, after_tests)

struct seen {
	size_t count, wanted;
	uint64_t value;
};

static bool see(void *data, const GElf_Sym *symbol)
{
	struct seen *seen = data;

	seen->value = symbol->st_value;
	return ++seen->count != seen->wanted;
}

static struct seen search(const char *name, size_t most, size_t wanted)
{
	struct seen seen = { 0, wanted };

	symbol_names_visit(names, name, most, see, &seen);
	return seen;
}

TEST(functions_and_variables_are_found_by_name)
{
	struct seen seen;

	open_names();
	seen = search("a_variable_of_symbol_names_test", SIZE_MAX, 0);
	assert_in_range(seen.count, 1, 2); /* it may be in the table for the loader, too */
	assert_int_equal(seen.value + bias, (uintptr_t)&a_variable_of_symbol_names_test);
	seen = search("symbol_names_visit", SIZE_MAX, 0);
	assert_in_range(seen.count, 1, 2);
	assert_int_equal(seen.value + bias, (uintptr_t)symbol_names_visit);
	assert_int_equal(search("no_function_has_this_name", SIZE_MAX, 0).count, 0);
	assert_int_equal(search("", SIZE_MAX, 0).count, 0);
	symbol_names_destroy(names);
}

TEST(those_of_one_name_are_all_seen_until_the_visitor_has_enough)
{
	size_t count;

	open_names();
	/* Each file of tests has one. */
	count = search("before_tests", SIZE_MAX, 0).count;
	assert_in_range(count, 2, 1000);
	assert_int_equal(search("before_tests", SIZE_MAX, 2).count, 2);
	symbol_names_destroy(names);
}

TEST(large_tables_are_left_out)
{
	open_names();
	assert_int_equal(search("symbol_names_visit", 1, 0).count, 0);
	symbol_names_destroy(names);
}

TEST(a_file_that_is_no_module_has_no_names)
{
	static const uint8_t bytes[100] = "no module";
	const struct image_file other = { .bytes = bytes, .size = sizeof(bytes) };

	names = symbol_names_create(&other);
	assert_int_equal(search("main", SIZE_MAX, 0).count, 0);
	symbol_names_destroy(names);
}

/* A file whose names end in the same text of so many bytes, each eight bytes before the last. */
static void make_file(uint8_t *bytes, size_t symbols, size_t text)
{
	const Elf64_Ehdr header = { .e_ident = ELFMAG "\2\1\1",
				    .e_type = ET_DYN,
				    .e_machine = EM_X86_64,
				    .e_version = EV_CURRENT,
				    .e_shoff = sizeof(header),
				    .e_ehsize = sizeof(header),
				    .e_shentsize = sizeof(Elf64_Shdr),
				    .e_shnum = 3 };
	Elf64_Shdr sections[3] = { [1] = { .sh_type = SHT_SYMTAB,
					   .sh_link = 2,
					   .sh_size = symbols * sizeof(Elf64_Sym),
					   .sh_entsize = sizeof(Elf64_Sym) },
				   [2] = { .sh_type = SHT_STRTAB, .sh_size = text } };
	Elf64_Sym symbol = { .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC), .st_shndx = 1 };

	sections[1].sh_offset = sizeof(header) + sizeof(sections);
	sections[2].sh_offset = sections[1].sh_offset + sections[1].sh_size;
	memcpy(bytes, &header, sizeof(header));
	memcpy(bytes + sizeof(header), sections, sizeof(sections));
	for (size_t i = 0; i < symbols; i++) {
		symbol.st_name = (uint32_t)(text - 1 - i * 8);
		symbol.st_value = i;
		memcpy(bytes + sections[1].sh_offset + i * sizeof(symbol), &symbol, sizeof(symbol));
	}
	memset(bytes + sections[2].sh_offset, 'a', text - 1);
}

/* To read each to its end would take a minute. */
TEST(names_that_share_a_long_text_are_read_at_once)
{
	enum { SYMBOLS = 500000, TEXT = 4 << 20, SIZE = SYMBOLS * sizeof(Elf64_Sym) + TEXT + 1000 };
	uint8_t *bytes = calloc(1, SIZE);
	const struct image_file made = { .bytes = bytes, .size = SIZE };
	struct seen seen;

	assert_non_null(bytes);
	make_file(bytes, SYMBOLS, TEXT);
	names = symbol_names_create(&made);
	seen = search("aaaaaaaaaaaaaaaa", SIZE_MAX, 0);
	assert_int_equal(seen.count, 1);
	assert_int_equal(seen.value, 2);
	symbol_names_destroy(names);
	free(bytes);
}
