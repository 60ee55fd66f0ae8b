#include "analyzer/capture/process.h"
#include "analyzer/capture/source.h"
#include "tests/assertions.h"

#include <elf.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>

enum { PAGES = 64, MOST_RUNS = 8 };

struct runs {
	uint64_t starts[MOST_RUNS], ends[MOST_RUNS];
	size_t count;
};

static struct error *add_run(void *data, uint64_t start, uint64_t end)
{
	struct runs *runs = data;

	assert_true(runs->count < MOST_RUNS);
	runs->starts[runs->count] = start;
	runs->ends[runs->count++] = end;
	return NULL;
}

/* Map pages, of which the 3rd, 4th, 60th and last were written to. */
static char *map_pages(void)
{
	char *place = mmap(NULL, (size_t)PAGES * PAGE, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	static const size_t touched[] = { 3, 4, 60, PAGES - 1 };

	assert_true(place != MAP_FAILED);
	madvise(place, (size_t)PAGES * PAGE, MADV_NOHUGEPAGE);
	for (size_t i = 0; i < sizeof(touched) / sizeof(*touched); i++)
		place[touched[i] * PAGE] = 'x';
	return place;
}

static void check_runs(bool cannot_scan)
{
	char *place = map_pages();
	uint64_t start = (uintptr_t)place;
	struct runs runs = { 0 };
	struct pages pages;

	assert_no_error(pages_open(getpid(), &pages));
	pages.cannot_scan = cannot_scan;
	assert_no_error(pages_find(&pages, PAGES_ALL, start, start + (uint64_t)PAGES * PAGE,
				   add_run, &runs));
	assert_int_equal(runs.count, 3);
	assert_int_equal(runs.starts[0], start + 3 * PAGE);
	assert_int_equal(runs.ends[0], start + 5 * PAGE);
	assert_int_equal(runs.starts[1], start + 60 * PAGE);
	assert_int_equal(runs.ends[1], start + 61 * PAGE);
	assert_int_equal(runs.starts[2], start + (PAGES - 1) * PAGE);
	assert_int_equal(runs.ends[2], start + PAGES * PAGE);
	pages_close(&pages);
	munmap(place, (size_t)PAGES * PAGE);
}

TEST(only_pages_that_were_touched_are_found)
{
	check_runs(false);
}

TEST(a_kernel_that_cannot_scan_finds_the_same)
{
	check_runs(true);
}

/* A private mapping of a file, of which one page was changed. */
static void check_own(bool cannot_scan)
{
	FILE *file = tmpfile();
	size_t size = (size_t)8 * PAGE;
	struct runs runs = { 0 };
	struct pages pages;
	volatile char *place;

	assert_int_equal(ftruncate(fileno(file), (off_t)size), 0);
	place = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE, fileno(file), 0);
	assert_true(place != MAP_FAILED);
	for (size_t i = 0; i < 8; i++)
		assert_int_equal(place[i * PAGE], 0);
	place[5 * PAGE] = 'x';
	assert_no_error(pages_open(getpid(), &pages));
	pages.cannot_scan = cannot_scan;
	assert_no_error(pages_find(&pages, PAGES_OWN, (uintptr_t)place, (uintptr_t)place + size,
				   add_run, &runs));
	assert_int_equal(runs.count, 1);
	assert_int_equal(runs.starts[0], (uintptr_t)place + 5 * PAGE);
	assert_int_equal(runs.ends[0], (uintptr_t)place + 6 * PAGE);
	pages_close(&pages);
	munmap((char *)place, size);
	fclose(file);
}

TEST(pages_of_a_file_that_were_changed_are_told_apart)
{
	check_own(false);
	check_own(true);
}

static const struct memory_area *find_area(const struct memory_map *map, const void *place)
{
	for (size_t i = 0; i < map->count; i++)
		if (map->areas[i].start <= (uintptr_t)place && (uintptr_t)place < map->areas[i].end)
			return &map->areas[i];
	return NULL;
}

/* A child, which changes its map on request, and not otherwise. */
struct child {
	pid_t process;
	int tell, done;
};

enum { PROTECT = 'p', MAP_MORE = 'm' };

static _Noreturn void obey(char *place, int told, int done)
{
	char what;

	while (read(told, &what, 1) == 1) {
		if (what == PROTECT)
			mprotect(place, (size_t)PAGES * PAGE, PROT_READ);
		else if (mmap((void *)0x200000000000, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS,
			      -1, 0) == MAP_FAILED)
			break;
		if (write(done, &what, 1) != 1)
			break;
	}
	_exit(0);
}

static struct child child_start(char *place)
{
	int told[2], done[2];
	struct child child = { 0 };

	assert_int_equal(pipe(told), 0);
	assert_int_equal(pipe(done), 0);
	child.process = fork();
	assert_true(child.process >= 0);
	if (child.process == 0) {
		close(told[1]);
		close(done[0]);
		obey(place, told[0], done[1]);
	}
	close(told[0]);
	close(done[1]);
	child.tell = told[1];
	child.done = done[0];
	return child;
}

static void child_change(const struct child *child, char what)
{
	assert_int_equal(write(child->tell, &what, 1), 1);
	assert_int_equal(read(child->done, &what, 1), 1);
}

static void child_end(const struct child *child)
{
	close(child->tell);
	close(child->done);
	assert_int_equal(waitpid(child->process, NULL, 0), child->process);
}

/* Renewing must notice what came and went, and keep what is known. */
TEST(a_map_is_renewed_unless_there_is_something_new)
{
	_cleanup_(memory_map_deinit) struct memory_map map = { 0 };
	size_t size = (size_t)PAGES * PAGE;
	char *place = map_pages();
	struct child child;
	bool known = false;

	madvise(place, size, MADV_DONTDUMP);
	child = child_start(place);
	assert_no_error(memory_map_read(child.process, &map));
	child_change(&child, PROTECT);
	assert_no_error(memory_map_renew(child.process, &map, &known));
	assert_true(known);
	assert_int_equal(find_area(&map, place)->rights, PF_R);
	assert_true(find_area(&map, place)->excluded);

	child_change(&child, MAP_MORE);
	assert_no_error(memory_map_renew(child.process, &map, &known));
	assert_false(known);
	child_end(&child);
	munmap(place, size);
}

TEST(pages_that_cannot_be_read_become_zeros)
{
	static uint8_t copy[3 * PAGE];
	struct source source;
	char *place = mmap(NULL, sizeof(copy), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			   -1, 0);

	assert_true(place != MAP_FAILED);
	memset(place, 'x', sizeof(copy));
	memset(copy, 'y', sizeof(copy));
	munmap(place + PAGE, PAGE);
	assert_no_error(source_open(getpid(), &source));
	assert_int_equal(source_copy(&source, (uintptr_t)place, copy, sizeof(copy)), PAGE);
	assert_int_equal(copy[PAGE - 1], 'x');
	assert_int_equal(copy[PAGE], 0);
	assert_int_equal(copy[2 * PAGE - 1], 0);
	assert_int_equal(copy[2 * PAGE], 'x');
	source_close(&source);
	munmap(place, PAGE);
	munmap(place + 2 * PAGE, PAGE);
}

TEST(memory_without_rights_can_be_read)
{
	static uint8_t copy[PAGE];
	struct source source;
	char *place = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_true(place != MAP_FAILED);
	memset(place, 'x', PAGE);
	mprotect(place, PAGE, PROT_NONE);
	assert_no_error(source_open(getpid(), &source));
	assert_int_equal(source_copy(&source, (uintptr_t)place, copy, PAGE), 0);
	assert_int_equal(copy[7], 'x');
	source_close(&source);
	munmap(place, PAGE);
}

TEST(mappings_are_told_with_rights_and_flags)
{
	_cleanup_(memory_map_deinit) struct memory_map map = { 0 };
	const struct memory_area *area;
	char *place = map_pages();

	madvise(place, (size_t)PAGES * PAGE, MADV_DONTDUMP);
	assert_no_error(memory_map_read(getpid(), &map));
	area = find_area(&map, place);
	assert_non_null(area);
	assert_int_equal(area->rights, PF_R | PF_W);
	assert_true(area->excluded);
	assert_false(area->shared || area->of_file || area->device);
	assert_int_equal(area->resident, 4 * PAGE);
	area = find_area(&map, (void *)(uintptr_t)find_area);
	assert_non_null(area);
	assert_int_equal(area->rights, PF_R | PF_X);
	assert_true(area->of_file);
	assert_int_equal(area->path[0], '/');
	munmap(place, (size_t)PAGES * PAGE);
}

TEST(there_is_no_such_process)
{
	struct memory_map map;

	assert_error(memory_map_read(INT32_MAX, &map), ERROR_USAGE,
		     "there is no process 2147483647");
}
