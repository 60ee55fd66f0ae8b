#include "analyzer/runtimes/rust/rust.h"

#include "tests/analyzer/runtimes/language.h"

/*
 * A program in Rust: holders of a value behind "dyn", of a hash table with two elements of 8 bytes,
 * and of TEXTS texts. Its constants, with a vtable among them, and its code are read-only.
 */
enum {
	VALUE_SIZE = 48,
	GROUP = 16,
	PLACES = 4, /* of the table */
	ELEMENT = 8,
	CONTROL = PLACES * ELEMENT, /* bytes before the table's control bytes */
	TEXTS = 5,
	TEXT_SIZE = 40,
};

static const uint64_t CONSTANTS = LANGUAGE_MODULE + 0x800, VTABLE = CONSTANTS + 0x100,
		      CODE = LANGUAGE_MODULE + PAGE + LANGUAGE_DATA_SIZE;

struct rust_process {
	struct language language;
	uint64_t value, values, table, header, texts[TEXTS], holders[TEXTS], plain;
};

static uint64_t add_text(struct language *language, const char *text)
{
	uint64_t start = language_allocate(language, TEXT_SIZE);

	language_set_text(language, start, text);
	return start;
}

static void add_table(struct rust_process *rust)
{
	struct language *language = &rust->language;
	const uint8_t control[PLACES] = { 0x12, 0xff, 0x34, 0xff };
	uint8_t *bytes;

	rust->table = language_allocate(language, CONTROL + PLACES + GROUP);
	bytes = core_at(&language->world.core, rust->table + CONTROL, PLACES + GROUP);
	memset(bytes, 0xff, PLACES + GROUP);
	memcpy(bytes, control, sizeof(control));
	memcpy(bytes + GROUP, control, sizeof(control));
	rust->header =
		language_add(language, rust->table + CONTROL, PLACES - 1, PLACES - 1 - 2, 2, 0);
}

static void rust_init(struct rust_process *rust)
{
	struct language *language = &rust->language;
	struct core *core = &language->world.core;

	*rust = (struct rust_process){ .value = 0 };
	language_init(language, "/srv/server");
	language_set_text(language, CONSTANTS, "/rustc/1/library/std/src/panic.rs");
	core_add(core, CODE, PAGE, RIGHT_READ | RIGHT_EXECUTE);
	core_add_file(core, CODE, CODE + PAGE, 2 * PAGE, "/srv/server");
	language_set(language, VTABLE, CODE, VALUE_SIZE, 8, CODE + 0x10);
	rust->value = language_allocate(language, VALUE_SIZE);
	rust->values = language_add(language, rust->value, VTABLE, 0);
	add_table(rust);
	for (unsigned int i = 0; i < TEXTS; i++) {
		rust->texts[i] = add_text(language, "the text of a program in Rust");
		/* Capacity, address, length. */
		rust->holders[i] = language_add(language, TEXT_SIZE, rust->texts[i], 20 + i, 0, 0);
	}
	rust->plain = language_allocate(language, VALUE_SIZE);
}

static void rust_deinit(struct rust_process *rust)
{
	language_deinit(&rust->language);
}
DEFINE_DEINIT(rust_deinit, struct rust_process)

#define START(rust)                                      \
	_cleanup_(rust_deinit) struct rust_process rust; \
	rust_init(&rust)

static const struct rust *open_rust(struct rust_process *rust)
{
	language_open(&rust->language, &runtime_rust);
	return (const struct rust *)runtimes_space(rust->language.list, &runtime_rust);
}

static const struct rust_table *table_of(const struct rust_process *rust, const struct rust *found)
{
	return rust_table_of(&found->tables, language_find(&rust->language, rust->table));
}

static enum rust_role role_of(const struct rust_process *rust, const struct rust *found,
			      uint64_t address)
{
	return found->buffers.layout.capacity
		       ? found->buffers.roles.items[language_find(&rust->language, address)]
		       : RUST_NO_BUFFER;
}

TEST(values_behind_dyn_have_the_place_of_their_vtable)
{
	START(rust);

	open_rust(&rust);
	assert_string_equal(language_class(&rust.language, rust.value),
			    "dyn value (vtable server+0x900)");
	assert_string_equal(language_class(&rust.language, rust.plain), "none");
}

/* Values of another size, no method in code, an odd alignment. */
TEST(damaged_vtables_are_none)
{
	static const struct {
		uint64_t offset, word;
	} damages[] = { { 8, 10 * VALUE_SIZE }, { 24, LANGUAGE_DATA }, { 16, 3 } };

	for (size_t i = 0; i < COUNT_OF(damages); i++) {
		START(rust);

		language_set(&rust.language, VTABLE + damages[i].offset, damages[i].word);
		assert_non_null(table_of(&rust, open_rust(&rust)));
		assert_string_equal(language_class(&rust.language, rust.value), "none");
	}
}

TEST(words_that_fit_half_of_their_values_are_no_vtable)
{
	START(rust);
	uint64_t other = language_allocate(&rust.language, 3 * VALUE_SIZE);

	language_add(&rust.language, other, VTABLE, 0);
	open_rust(&rust);
	assert_string_equal(language_class(&rust.language, rust.value), "none");
	assert_string_equal(language_class(&rust.language, other), "none");
}

TEST(table_is_known_by_its_control_bytes)
{
	START(rust);
	const struct rust_table *table = table_of(&rust, open_rust(&rust));

	assert_non_null(table);
	assert_int_equal(table->count, 2);
	assert_int_equal(table->capacity, 3);
	assert_int_equal(table->header, rust.header);
}

/* Its header has address, mask, room left and count. */
TEST(damaged_tables_are_none)
{
	static const struct {
		uint64_t offset, word;
	} damages[] = { { 8, UINT64_MAX >> 1 }, { 8, PLACES }, { 16, 0 }, { 24, 1 } };

	for (size_t i = 0; i < COUNT_OF(damages); i++) {
		START(rust);

		language_set(&rust.language, rust.header + damages[i].offset, damages[i].word);
		assert_null(table_of(&rust, open_rust(&rust)));
		assert_string_equal(language_class(&rust.language, rust.value),
				    "dyn value (vtable server+0x900)");
	}
}

TEST(texts_are_known_by_their_capacity_and_length)
{
	START(rust);
	const struct rust *found = open_rust(&rust);

	for (size_t i = 0; i < TEXTS; i++)
		assert_int_equal(role_of(&rust, found, rust.texts[i]), RUST_TEXT);
	assert_int_equal(role_of(&rust, found, rust.plain), RUST_NO_BUFFER);
}

TEST(text_that_is_longer_than_its_buffer_is_none)
{
	START(rust);
	const struct rust *found;

	language_set_text(&rust.language, rust.texts[0],
			  "text of another length, which goes on behind the buffer");
	language_set(&rust.language, rust.holders[0] + 16, 50);
	found = open_rust(&rust);
	assert_int_equal(role_of(&rust, found, rust.texts[0]), RUST_NO_BUFFER);
	assert_int_equal(role_of(&rust, found, rust.texts[1]), RUST_TEXT);
}
