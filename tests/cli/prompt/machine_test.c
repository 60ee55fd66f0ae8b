#include "cli/prompt/machine.h"

#include "tests/assertions.h"

#include <sys/mman.h>
#include <unistd.h>

enum {
	PAGE = 4096,
	KEPT = 1000,	/* pages of the file that stay */
	COUNT = 200000, /* pages: more than a process may have mappings */
};

/* A file whose pages each begin with their number, as far as they stay. */
static const volatile uint32_t *map_file(int fd)
{
	void *bytes;

	assert_int_equal(ftruncate(fd, (off_t)COUNT * PAGE), 0);
	for (uint32_t i = 0; i < KEPT; i++)
		assert_int_equal(pwrite(fd, &i, sizeof(i), (off_t)i * PAGE), sizeof(i));
	bytes = mmap(NULL, (size_t)COUNT * PAGE, PROT_READ, MAP_PRIVATE, fd, 0);
	assert_ptr_not_equal(bytes, MAP_FAILED);
	return bytes;
}

TEST(what_is_gone_is_zero_in_any_order)
{
	int fd = memfd_create("vanishing", MFD_CLOEXEC);
	const volatile uint32_t *words;

	assert_true(fd >= 0);
	words = map_file(fd);
	vanished_catch();
	assert_int_equal(words[0], 0);
	assert_false(vanished_any());
	assert_int_equal(ftruncate(fd, (off_t)KEPT * PAGE), 0);
	for (size_t i = COUNT - 2; i >= KEPT; i -= 2)
		assert_int_equal(words[i * PAGE / sizeof(*words)], 0);
	assert_true(vanished_any());
	for (size_t i = 0; i < KEPT; i++)
		assert_int_equal(words[i * PAGE / sizeof(*words)], i);
	munmap((void *)words, (size_t)COUNT * PAGE);
	close(fd);
}
