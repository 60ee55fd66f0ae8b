/*
 * Evidence from this test program's code, as read and as cached; and false entries, with checksums
 * that fit.
 */
#include "analyzer/types/kept.h"

#include "analyzer/program/debug/debug_parts.h"
#include "analyzer/program/debug/type_table_parts.h"
#include "analyzer/types/sites_parts.h"

#include "tests/analyzer/types/own_program.h"
#include "tests/random.h"

#include <dirent.h>

enum { HEAP = 0x10000000, SIZES = 64, TRIALS = 80, MOST_ARRAYS = 9 };

static char folder[] = "/tmp/kept_test.XXXXXX";

static void empty_folder(void)
{
	DIR *list = opendir(folder);
	const struct dirent *entry;

	while (list && (entry = readdir(list)))
		unlinkat(dirfd(list), entry->d_name, 0);
	if (list)
		closedir(list);
}

static int before_tests(void **state)
{
	return mkdtemp(folder) ? 0 : -1;
}

static int after_tests(void **state)
{
	empty_folder();
	return rmdir(folder);
}

AROUND_TESTS(before_tests, after_tests)

struct opened {
	struct world world;
	struct debug *debug;
	struct type_table *types;
	struct typing_input input;
};

/* With an allocation of each size that malloc gives. */
static void opened_init(struct opened *opened)
{
	const struct debug_options options = { .cache_folder = folder };
	struct world *world = &opened->world;
	uint64_t start = HEAP;

	empty_folder();
	*opened = (struct opened){ .debug = NULL };
	world_init(world);
	own_program_map(&world->core);
	world_add_heap(world, HEAP, 0x10000);
	for (uint64_t size = 24; start + size < HEAP + 0x10000 && size < 24 + 16 * SIZES;
	     start += size, size += 16)
		world_add_block(world, (struct block){ start, size, BLOCK_USED });
	world_open(world);
	world_find_program(world);
	assert_no_error(debug_create(world->image, world->program, &options, &world->findings,
				     &opened->debug));
	assert_no_error(type_table_create(opened->debug, &world->account, &world->progress,
					  &opened->types));
	opened->input = (struct typing_input){
		.image = world->image,
		.index = world->index,
		.debug = opened->debug,
		.types = opened->types,
		.account = &world->account,
		.progress = &world->progress,
	};
}

static void opened_deinit(struct opened *opened)
{
	if (opened->types)
		type_table_destroy(opened->types);
	if (opened->debug)
		debug_destroy(opened->debug);
	world_deinit(&opened->world);
}
DEFINE_DEINIT(opened_deinit, struct opened)

/* The results of sites for all allocations. */
struct said {
	size_t sites, named, types;
	size_t letters; /* of all names */
};

static struct said ask_sites(struct opened *opened)
{
	_cleanup_(sites_destroy) struct sites *sites = NULL;
	struct said said = { .sites = 0 };
	struct site_functions found;

	assert_no_error(sites_create(&opened->input, opened->world.program, &sites));
	said.sites = sites_count(sites);
	for (allocation_id id = 0; id < allocation_count(opened->world.index); id++) {
		assert_no_error(sites_find_by_size(sites, NULL, id, &found));
		said.named += found.count;
		said.types += found.count ? found.type : 0;
		for (size_t i = 0; i < found.count; i++)
			said.letters += strlen(found.names[i]);
		assert_no_error(sites_find(sites, id, 1 + id, &found));
		said.named += found.count;
	}
	return said;
}

static struct casts_input casts_input_of(struct opened *opened, struct slot_table *slots)
{
	return (struct casts_input){
		.image = opened->world.image,
		.debug = opened->debug,
		.types = opened->types,
		.slots = slots,
		.account = &opened->world.account,
		.progress = &opened->world.progress,
	};
}

static size_t count_casts(struct opened *opened, uint64_t *ret_sum)
{
	struct casts casts = { 0 };
	struct slot_table slots = { 0 };
	struct casts_input input = casts_input_of(opened, &slots);
	size_t count;

	assert_no_error(slot_table_init(&slots, opened->types, &opened->world.account));
	assert_no_error(casts_read(&casts, &input));
	*ret_sum = 0;
	for (size_t i = 0; i < casts.all.count; i++)
		*ret_sum = *ret_sum * 31 + casts.all.items[i].place + casts.all.items[i].type;
	count = casts.all.count + casts.results.count;
	casts_deinit(&casts);
	slot_table_deinit(&slots);
	return count;
}

TEST(what_was_kept_is_what_is_read)
{
	_cleanup_(opened_deinit) struct opened opened;
	uint64_t expected_sum, sum;
	struct said expected, said;
	size_t count;

	opened_init(&opened);
	opened.debug->options.cache_folder = NULL;
	expected = ask_sites(&opened);
	count = count_casts(&opened, &expected_sum);
	assert_true(expected.sites > 0 && expected.named > 0 && count > 0);
	opened.debug->options.cache_folder = folder;
	for (size_t i = 0; i < 2; i++) {
		said = ask_sites(&opened);
		assert_memory_equal(&said, &expected, sizeof(said));
		assert_int_equal(count_casts(&opened, &sum), count);
		assert_int_equal(sum, expected_sum);
	}
}

/* Arrays of an entry, which are to be changed. */
struct copies {
	struct memory_block {
		uint8_t *bytes;
		size_t size;
	} arrays[MOST_ARRAYS];
	size_t count;
};

static struct copies copy_entry(const struct kept_entry *entry, size_t count)
{
	_cleanup_(side_file_close) struct side_file *file = cache_find(entry->folder, &entry->key);
	struct copies copies = { .count = count };
	struct side_array array;

	assert_non_null(file);
	for (unsigned int i = 0; i < count; i++) {
		assert_no_error(side_file_find(file, i, &array));
		copies.arrays[i].bytes = malloc(array.size + 1);
		copies.arrays[i].size = array.size;
		memcpy(copies.arrays[i].bytes, array.bytes, array.size);
	}
	return copies;
}

static struct error *save_copies(const void *data, struct side_writer *writer)
{
	const struct copies *copies = data;

	for (unsigned int i = 0; i < copies->count; i++)
		TRY(side_writer_array(writer, i, copies->arrays[i].bytes, copies->arrays[i].size));
	return NULL;
}

/* Keep the entry with a number changed in one of its arrays, or its last bytes cut off. */
static void keep_changed(const struct kept_entry *entry, struct copies *copies)
{
	static const uint64_t values[] = { 0, 1, UINT32_MAX, UINT64_MAX, UINT64_C(1) << 63 };
	struct memory_block *array, whole;
	uint8_t before[8];
	size_t place;

	do
		array = &copies->arrays[random_below(copies->count)];
	while (array->size < 8);
	whole = *array;
	place = random_below(array->size / 4 - 1) * 4;
	memcpy(before, array->bytes + place, sizeof(before));
	switch (random_below(4)) {
	case 0:
		array->bytes[place] ^= (uint8_t)(1 << random_below(8));
		break;
	case 1:
		array->bytes[place + random_below(8)] = (uint8_t)random_below(256);
		break;
	case 2:
		memcpy(array->bytes + place, &values[random_below(5)],
		       random_below(2) ? 4 : sizeof(before));
		break;
	default:
		array->size -= random_below(array->size);
		break;
	}
	cache_keep(entry->folder, &entry->key, save_copies, copies);
	*array = whole;
	memcpy(array->bytes + place, before, sizeof(before));
}

static void free_copies(struct copies *copies)
{
	for (size_t i = 0; i < copies->count; i++)
		free(copies->arrays[i].bytes);
}

/* True if the changed entry is accepted, which does no harm. */
static bool loads_sites(struct opened *opened, const struct kept_entry *entry)
{
	struct sites *sites = calloc(1, sizeof(*sites));
	bool is_loaded;

	sites->input = opened->input;
	sites->program = opened->world.program;
	sites->all.memory.account = sites->pointees.memory.account = sites->makers.memory.account =
		sites->library_calls.memory.account = &opened->world.account;
	is_loaded = kept_sites_load(entry, sites);
	if (!is_loaded)
		assert_int_equal(sites->all.count + sites->makers.count + sites->pointees.count, 0);
	sites_destroy(sites);
	return is_loaded;
}

TEST(false_sites_do_no_harm)
{
	_cleanup_(opened_deinit) struct opened opened;
	struct kept_entry entry;
	struct copies copies;
	size_t loaded = 0;

	opened_init(&opened);
	ask_sites(&opened);
	entry = kept_entry_of("sites", opened.debug, opened.types, true);
	assert_non_null(entry.folder);
	copies = copy_entry(&entry, 6);
	for (size_t i = 0; i < TRIALS; i++) {
		keep_changed(&entry, &copies);
		if (!loads_sites(&opened, &entry))
			continue;
		loaded++;
		ask_sites(&opened);
	}
	assert_in_range(loaded, 1, TRIALS - 1);
	free_copies(&copies);
	empty_folder();
}

TEST(false_casts_do_no_harm)
{
	_cleanup_(opened_deinit) struct opened opened;
	struct kept_entry entry;
	struct copies copies;
	size_t loaded = 0;
	uint64_t sum;

	opened_init(&opened);
	count_casts(&opened, &sum);
	entry = kept_entry_of("casts", opened.debug, opened.types, false);
	assert_non_null(entry.folder);
	copies = copy_entry(&entry, 2);
	for (size_t i = 0; i < TRIALS; i++) {
		struct casts casts = { 0 };

		casts.all.memory.account = casts.results.memory.account = &opened.world.account;
		keep_changed(&entry, &copies);
		if (!kept_casts_load(&entry, &casts)) {
			assert_int_equal(casts.all.count + casts.results.count, 0);
			casts_deinit(&casts);
			continue;
		}
		loaded++;
		for (size_t j = 0; j < casts.all.count; j++)
			assert_true(casts.all.items[j].type < type_count(opened.types));
		casts_deinit(&casts);
	}
	assert_in_range(loaded, 1, TRIALS - 1);
	free_copies(&copies);
	empty_folder();
}

/* Sum up all that a table says. */
static uint64_t add_up(const struct type_table *table)
{
	uint64_t sum = 0;

	for (type_number i = 1; i < type_count(table); i++) {
		const struct data_type *type = type_get(table, i);
		const struct type_member *members = type_members(table, type);
		const char *text = type_text(table, i, "", "");

		sum = sum * 31 + type->size + type->kind + (text ? strlen(text) : 0);
		for (size_t j = 0; j < type->member_count; j++) {
			const struct type_variant *variant = type_variant(table, &members[j]);

			sum += members[j].offset + members[j].type + members[j].bit_size;
			sum += members[j].name ? strlen(members[j].name) : 0;
			sum += variant ? variant->value : 0;
		}
		for (size_t j = 0; j < type->bound_count; j++)
			sum += type_bounds(table, type)[j];
	}
	for (size_t i = 0; i < type_variable_count(table); i++) {
		const struct type_variable *variable = &type_variables(table)[i];

		sum = sum * 31 + variable->address + variable->type + strlen(variable->name);
		sum += variable->file ? strlen(variable->file) : 0;
		sum += variable->function ? strlen(variable->function) : 0;
	}
	return sum + type_find(table, "struct type_table");
}

static void forget_file(struct debug *debug)
{
	if (debug->kept_types)
		side_file_close(debug->kept_types);
	debug->kept_types = NULL;
}

static struct type_table *empty_table(struct opened *opened)
{
	struct type_table *table = calloc(1, sizeof(*table));

	table->names = &opened->debug->names;
	table->word_size = 8;
	table->types.memory.account = table->members.memory.account =
		table->variables.memory.account = table->by_name.memory.account =
			table->bounds.memory.account = table->variants.memory.account =
				table->entries.memory.account = &opened->world.account;
	return table;
}

static void find_all_slots(struct opened *opened, const struct type_table *table)
{
	struct slot_table slots = { 0 };

	assert_no_error(slot_table_init(&slots, table, &opened->world.account));
	for (type_number i = 1; i < type_count(table); i++)
		assert_no_error(slots_find(&slots, i));
	slot_table_deinit(&slots);
}

TEST(types_that_were_kept_are_those_that_are_read)
{
	_cleanup_(opened_deinit) struct opened opened;
	struct type_table *table;

	opened_init(&opened);
	assert_no_error(type_table_create(opened.debug, &opened.world.account,
					  &opened.world.progress, &table));
	assert_non_null(table->kept);
	assert_null(opened.types->kept);
	assert_int_equal(type_count(table), type_count(opened.types));
	assert_true(add_up(table) == add_up(opened.types));
	array_for_each(entry, &opened.types->entries)
		assert_int_equal(type_of_entry(table, (const void *)(uintptr_t)entry->address),
				 entry->number);
	assert_int_equal(type_of_entry(table, table), NO_TYPE);
	type_table_destroy(table);
	forget_file(opened.debug);
	empty_folder();
}

TEST(false_types_do_no_harm)
{
	_cleanup_(opened_deinit) struct opened opened;
	struct kept_entry entry = { .folder = folder, .key = cache_key_begin("types") };
	struct copies copies;
	size_t loaded = 0;

	opened_init(&opened);
	assert_true(build_identify(opened.debug, false, &entry.key));
	copies = copy_entry(&entry, 9);
	for (size_t i = 0; i < TRIALS; i++) {
		struct type_table *table = empty_table(&opened);

		keep_changed(&entry, &copies);
		if (kept_types_load(opened.debug, &entry.key, table)) {
			loaded++;
			add_up(table);
			find_all_slots(&opened, table);
			for (size_t j = 0; j < opened.types->entries.count; j += 101)
				assert_true(
					type_of_entry(table,
						      (const void *)(uintptr_t)opened.types->entries
							      .items[j]
							      .address) < type_count(table));
		} else {
			assert_int_equal(table->types.count + table->members.count, 0);
		}
		type_table_destroy(table);
		forget_file(opened.debug);
	}
	assert_in_range(loaded, 1, TRIALS - 1);
	free_copies(&copies);
	empty_folder();
}
