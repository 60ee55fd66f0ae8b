#include "analyzer/classify/classes.h"
#include "analyzer/runtimes/object_paths.h"

#include "tests/allocators/glibc/process.h"

/*
 * Perl with a variable $app in the package main: a reference to an App, a blessed hash, whose key
 * `cache` has a reference to an array of one reference, to a Session. All values are in the arenas
 * of the interpreter, other blocks are malloc's own.
 */
enum {
	REFERENCE = 1,
	GLOB = 9,
	ARRAY = 11,
	HASH = 12,
	FREE = 0xff,
	IS_REFERENCE = 0x800,
	IS_GLOB = 0x8000,
	IS_BLESSED = 0x100000,
	HAS_NAME = 1 << 25,
	ARENA_SIZE = 4080,
	HEADS = ARENA_SIZE / 24,
	TABLE_ENTRIES = (ARENA_SIZE - 16) / 24,
	KINDS = 4, /* of arenas besides that of heads */
};

static const struct {
	uint32_t type, slot;
} kinds[KINDS] = { { 0, 24 }, { GLOB, 48 }, { ARRAY, 40 }, { HASH, 32 } };

struct perl_process {
	struct process process;
	uint64_t heads, arenas[KINDS];
	uint32_t head_count, used[KINDS]; /* of their slots */
	uint64_t main, app, cache, session, entry;
};

static uint64_t add_block(struct perl_process *perl, uint64_t size)
{
	return process_allocate(&perl->process, (size + 8 + 15) & ~UINT64_C(15));
}

static void set(struct perl_process *perl, uint64_t place, uint64_t word)
{
	core_set(&perl->process.core, place, word);
}

static void add_arenas(struct perl_process *perl)
{
	uint64_t table = add_block(perl, ARENA_SIZE);

	perl->heads = add_block(perl, ARENA_SIZE);
	set(perl, perl->heads + 8, HEADS);
	for (uint64_t i = 1; i < HEADS; i++)
		set(perl, perl->heads + 24 * i + 8, (uint64_t)FREE << 32);
	set(perl, table + 8, (uint64_t)KINDS << 32 | TABLE_ENTRIES);
	for (uint64_t i = 0; i < KINDS; i++) {
		perl->arenas[i] = add_block(perl, ARENA_SIZE);
		set(perl, table + 16 + 24 * i, perl->arenas[i]);
		set(perl, table + 24 + 24 * i, ARENA_SIZE / kinds[i].slot * kinds[i].slot);
		set(perl, table + 32 + 24 * i, kinds[i].type);
	}
}

static uint64_t add_slot(struct perl_process *perl, uint32_t type)
{
	size_t i = 0;

	while (kinds[i].type != type)
		i++;
	return perl->arenas[i] + (uint64_t)kinds[i].slot * perl->used[i]++;
}

/* A value with one reference; returns its head. */
static uint64_t add_value(struct perl_process *perl, uint32_t flags, uint64_t body, uint64_t value)
{
	uint64_t head = perl->heads + 24 * (uint64_t)++perl->head_count;

	set(perl, head, body);
	set(perl, head + 8, (uint64_t)flags << 32 | 1);
	set(perl, head + 16, value);
	return head;
}

static uint64_t add_reference(struct perl_process *perl, uint64_t target)
{
	uint64_t head = add_value(perl, REFERENCE | IS_REFERENCE, 0, target);

	set(perl, head, head - 16);
	return head;
}

static uint64_t add_key(struct perl_process *perl, const char *text)
{
	uint64_t key = add_block(perl, 8 + strlen(text) + 2);

	set(perl, key, (uint64_t)strlen(text) << 32);
	memcpy(core_at(&perl->process.core, key + 8, strlen(text)), text, strlen(text));
	return key;
}

/* A hash of one chain, with room for what a package has besides. */
static uint64_t add_hash(struct perl_process *perl, uint32_t flags, uint64_t package)
{
	uint64_t body = add_slot(perl, HASH);

	set(perl, body, package);
	return add_value(perl, HASH | flags, body, add_block(perl, 8 + 64));
}

static uint64_t add_package(struct perl_process *perl, const char *name)
{
	uint64_t stash = add_hash(perl, HAS_NAME, 0);

	set(perl, core_get(&perl->process.core, stash + 16) + 8, add_key(perl, name));
	return stash;
}

/* Returns the entry, which is the first of the chain. */
static uint64_t add_entry(struct perl_process *perl, uint64_t hash, const char *key, uint64_t value)
{
	uint64_t table = core_get(&perl->process.core, hash + 16), entry = add_slot(perl, 0);

	set(perl, entry, core_get(&perl->process.core, table));
	set(perl, entry + 8, add_key(perl, key));
	set(perl, entry + 16, value);
	set(perl, table, entry);
	return entry;
}

/* A package variable: a scalar. */
static void add_variable(struct perl_process *perl, const char *name, uint64_t value)
{
	uint64_t slots = add_block(perl, 80);

	set(perl, slots, value);
	add_entry(perl, perl->main, name,
		  add_value(perl, GLOB | IS_GLOB, add_slot(perl, GLOB), slots));
}

static uint64_t add_array(struct perl_process *perl, uint64_t item)
{
	uint64_t items = add_block(perl, 4 * 8), body = add_slot(perl, ARRAY);

	set(perl, items, item);
	set(perl, body + 32, items);
	return add_value(perl, ARRAY, body, items);
}

static void perl_init(struct perl_process *perl)
{
	*perl = (struct perl_process){ .head_count = 0 };
	process_init(&perl->process, &GLIBC_2_36);
	core_add_module(&perl->process.core, 0x7d0000000000, PAGE, "/usr/bin/perl");
	add_arenas(perl);
	perl->main = add_package(perl, "main");
	perl->session = add_hash(perl, IS_BLESSED, add_package(perl, "Session"));
	perl->cache = add_array(perl, add_reference(perl, perl->session));
	perl->app = add_hash(perl, IS_BLESSED, add_package(perl, "App"));
	perl->entry = add_entry(perl, perl->app, "cache", add_reference(perl, perl->cache));
	add_variable(perl, "app", add_reference(perl, perl->app));
	set(perl, DATA, perl->main);
}

static void perl_open(struct perl_process *perl)
{
	process_finish(&perl->process);
	process_open(&perl->process, STAGE_CLASSES);
	assert_no_error(analysis_need(perl->process.analysis, STAGE_OBJECT_PATHS));
}

static void perl_deinit(struct perl_process *perl)
{
	process_deinit(&perl->process);
}
DEFINE_DEINIT(perl_deinit, struct perl_process)

#define START(perl)                                      \
	_cleanup_(perl_deinit) struct perl_process perl; \
	perl_init(&perl)

static const char *class_at(const struct perl_process *perl, uint64_t address)
{
	struct analysis *analysis = perl->process.analysis;
	allocation_id id = process_find(&perl->process, address);
	uint64_t signature = id == NO_ALLOCATION ? 0 : analysis_signature(analysis, id);

	return signature ? classes_name(analysis_classes(analysis), signature) : "none";
}

static void assert_path(const struct perl_process *perl, uint64_t address, const char *expected)
{
	char text[256] = "none";

	object_paths_tell(analysis_object_paths(perl->process.analysis),
			  process_find(&perl->process, address), true, text, sizeof(text));
	assert_string_equal(text, expected);
}

TEST(values_are_of_the_packages_that_they_are_blessed_into)
{
	START(perl);

	perl_open(&perl);
	assert_string_equal(class_at(&perl, perl.app), "App");
	assert_string_equal(class_at(&perl, perl.session), "Session");
	assert_string_equal(class_at(&perl, perl.cache), "ARRAY");
	assert_string_equal(class_at(&perl, perl.main), "stash");
}

TEST(path_takes_variables_keys_and_items)
{
	START(perl);

	perl_open(&perl);
	assert_path(&perl, perl.app, "$main::app");
	assert_path(&perl, perl.session, "$main::app->{cache}[0]");
}

TEST(chain_of_a_hash_that_returns_to_itself_costs_only_that_hash)
{
	START(perl);
	uint64_t hash = add_hash(&perl, 0, 0);

	add_variable(&perl, "bad", add_reference(&perl, hash));
	set(&perl, add_entry(&perl, hash, "ring", add_reference(&perl, hash)), 0);
	set(&perl, perl.entry, perl.entry);
	perl_open(&perl);
	assert_path(&perl, hash, "$main::bad");
	assert_path(&perl, perl.session, "$main::app->{cache}[0]");
}

TEST(chain_of_a_package_that_returns_to_itself_costs_only_its_other_variables)
{
	START(perl);
	uint64_t hash = add_hash(&perl, 0, 0), package = add_package(&perl, "Late");
	uint64_t main = perl.main;
	uint64_t first = core_get(&perl.process.core, core_get(&perl.process.core, main + 16));

	perl.main = package;
	add_variable(&perl, "table", add_reference(&perl, hash));
	set(&perl, DATA + 8, package);
	set(&perl, first, first);
	perl_open(&perl);
	assert_path(&perl, perl.app, "$main::app");
	assert_path(&perl, hash, "$Late::table");
}

TEST(array_of_huge_count_ends_with_its_memory)
{
	START(perl);
	uint64_t hash = add_hash(&perl, 0, 0);

	add_entry(&perl, perl.session, "user", add_reference(&perl, hash));
	set(&perl, core_get(&perl.process.core, perl.cache) + 16, UINT64_MAX - 1);
	perl_open(&perl);
	assert_path(&perl, hash, "$main::app->{cache}[0]{user}");
}

TEST(head_without_a_body_costs_only_itself)
{
	START(perl);

	set(&perl, perl.session, 0x5a5a5a5a5a5a5a58);
	perl_open(&perl);
	assert_string_equal(class_at(&perl, perl.session), "none");
	assert_path(&perl, perl.cache, "$main::app->{cache}");
}
