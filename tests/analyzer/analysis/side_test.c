#include "analyzer/analysis/analysis.h"

#include "tests/assertions.h"

#include <string.h>
#include <xxhash.h>

/*
 * A side file whose checksums fit, whatever is in it: anybody who can write to it can make such a
 * one. It may tell what is false; it must not do harm.
 */
static const char PACKED[] = "testdata/cores/forky-late_cache.core.xz";

/* As analyzer/base/side_file.c lays it out. */
enum {
	SECTIONS_AT = 72,
	SECTIONS = SIDE_SECTIONS,
	HASH_AT = SECTIONS_AT + SECTIONS * 3 * 8,
	TRIALS = 400,
};

struct file {
	uint8_t *bytes;
	size_t size;
};

static uint64_t *section_at(const struct file *file, size_t number)
{
	return (uint64_t *)(file->bytes + SECTIONS_AT + number * 24);
}

static void write_bytes(const char *path, const uint8_t *bytes, size_t size)
{
	_cleanup_(fclose) FILE *stream = fopen(path, "w");

	assert_non_null(stream);
	assert_int_equal(fwrite(bytes, 1, size, stream), size);
}

/* The core as it is, to be opened often. */
static void unpack(const char *path)
{
	struct findings findings = { 0 };
	_cleanup_(image_close) struct image *image = NULL;

	assert_no_error(image_open(PACKED, &findings, &image));
	write_bytes(path, image->bytes, image->size);
	findings_deinit(&findings);
}

static void make(const char *core, const char *path, struct file *ret)
{
	struct progress progress = { .total = 0 };
	_cleanup_(analysis_destroy) struct analysis *analysis = NULL;
	_cleanup_(fclose) FILE *file = NULL;

	assert_no_error(analysis_create(core, NULL, &progress, &analysis));
	assert_no_error(analysis_write_side_file(analysis, path));
	file = fopen(path, "r");
	assert_non_null(file);
	fseek(file, 0, SEEK_END);
	ret->size = (size_t)ftell(file);
	rewind(file);
	ret->bytes = malloc(ret->size);
	assert_int_equal(fread(ret->bytes, 1, ret->size, file), ret->size);
}

/* The next number of a row that is the same each time. */
static uint64_t next_number(uint64_t *state)
{
	*state = *state * UINT64_C(6364136223846793005) + 1442695040888963407;
	return *state >> 33;
}

/* Make the checksums fit again. */
static void seal(struct file *file, uint64_t *section)
{
	section[2] = XXH3_64bits(file->bytes + section[0], section[1]);
	*(uint64_t *)(file->bytes + HASH_AT) = XXH3_64bits(file->bytes, HASH_AT);
}

/* Change a word somewhere in an array. */
static void damage(struct file *file, uint64_t *chance)
{
	static const uint64_t values[] = { 0, 1, UINT32_MAX, UINT64_MAX, UINT64_C(1) << 63 };
	uint64_t *section, kind, place, value;

	do
		section = section_at(file, next_number(chance) % SECTIONS);
	while (section[1] < 8);
	place = section[0] + next_number(chance) % (section[1] / 4 - 1) * 4;
	kind = next_number(chance) % 3;
	memcpy(&value, file->bytes + place, sizeof(value));
	if (kind == 0)
		value ^= UINT64_C(1) << next_number(chance) % 64;
	else if (kind == 1)
		value += next_number(chance) % 3 - 1;
	else
		value = values[next_number(chance) % 5];
	memcpy(file->bytes + place, &value, next_number(chance) % 2 ? sizeof(value) : 4);
	seal(file, section);
}

static void look_at_all(struct analysis *analysis)
{
	const struct allocation_index *index = analysis_index(analysis);
	uint64_t sum = 0;

	for (size_t i = 0; i < heaps_arena_count(analysis_heaps(analysis)); i++)
		sum += strlen(heaps_arena(analysis_heaps(analysis), (arena_number)i).kind->name);
	for (allocation_id id = 0; id < allocation_count(index); id++) {
		uint64_t start = allocation_start(index, id);
		struct identity identity;

		assert_int_equal(allocation_find(index, start),
				 allocation_size(index, id) ? id : NO_ALLOCATION);
		sum += analysis_signature(analysis, id);
		sum += analysis_identity(analysis, id, &identity);
		sum += dominators_retained(analysis_dominators(analysis), id);
	}
	for (size_t i = 0; i < analysis_leaks(analysis)->count; i++)
		sum += allocation_size(index, analysis_leaks(analysis)->roots[i].id);
	assert_true(sum > 0);
}

static void try_it(const char *core, const char *path, bool *ret_used)
{
	static const enum stage stages[] = {
		STAGE_CLASSES,	 STAGE_LEAKS,	 STAGE_LEAKED_PATTERNS,
		STAGE_COLLECTOR, STAGE_PATTERNS, STAGE_RETAINED,
	};
	struct progress progress = { .total = 0 };
	_cleanup_(analysis_destroy) struct analysis *analysis = NULL;
	struct error *error;

	assert_no_error(analysis_create(core, NULL, &progress, &analysis));
	error = analysis_use_side_file(analysis, path);
	*ret_used = !error;
	if (error) {
		error_destroy(error);
		return;
	}
	for (size_t i = 0; i < sizeof(stages) / sizeof(*stages); i++)
		assert_no_error(analysis_need(analysis, stages[i]));
	look_at_all(analysis);
}

static char folder[] = "/tmp/analysis_side_test.XXXXXX";
static char core[sizeof(folder) + 8], path[sizeof(core) + 8];
static struct file whole;

static int before_tests(void **state)
{
	assert_non_null(mkdtemp(folder));
	snprintf(core, sizeof(core), "%s/core", folder);
	snprintf(path, sizeof(path), "%s.hcx", core);
	unpack(core);
	make(core, path, &whole);
	return 0;
}

static int after_tests(void **state)
{
	free(whole.bytes);
	unlink(core);
	unlink(path);
	return rmdir(folder);
}

AROUND_TESTS(before_tests, after_tests)

TEST(false_side_files_do_no_harm)
{
	struct file changed;
	uint64_t chance = 1;
	size_t used = 0;

	changed = (struct file){ malloc(whole.size), whole.size };
	for (size_t i = 0; i < TRIALS; i++) {
		bool is_used;

		memcpy(changed.bytes, whole.bytes, whole.size);
		damage(&changed, &chance);
		write_bytes(path, changed.bytes, changed.size);
		try_it(core, path, &is_used);
		used += is_used;
	}
	/* Nearly all get past the checksums. */
	assert_true(used > TRIALS / 2);
	free(changed.bytes);
}

TEST(arenas_are_those_of_the_core)
{
	enum { ARENA = 48, REGION = 32, REGION_ARENA = 24 };
	struct progress progress = { .total = 0 };
	_cleanup_(analysis_destroy) struct analysis *analysis = NULL;
	uint64_t *arenas = section_at(&whole, SIDE_ARENAS);
	uint64_t *regions = section_at(&whole, SIDE_REGIONS);

	/* The first one has all that the others had. */
	assert_true(arenas[1] > ARENA);
	arenas[1] = ARENA;
	for (size_t i = 0; i < regions[1] / REGION; i++)
		memset(whole.bytes + regions[0] + i * REGION + REGION_ARENA, 0, sizeof(uint32_t));
	seal(&whole, regions);
	seal(&whole, arenas);
	write_bytes(path, whole.bytes, whole.size);

	assert_no_error(analysis_create(core, NULL, &progress, &analysis));
	assert_no_error(analysis_use_side_file(analysis, path));
	assert_no_error(analysis_need(analysis, STAGE_HEAP));
	assert_int_equal(heaps_arena_count(analysis_heaps(analysis)), 1);
	assert_error(heaps_wake(analysis_heaps(analysis)), ERROR_BAD_DUMP,
		     "the arenas of the side file are not those of the core");
	assert_int_equal(heaps_count(analysis_heaps(analysis)), 0);
}
