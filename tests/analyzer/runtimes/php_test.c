#include "analyzer/runtimes/object_links.h"

#include "tests/analyzer/runtimes/language.h"

extern const struct runtime runtime_php;

/*
 * PHP 8.2, with a variable $app, an App whose member `cache` is an array that has a Session by the
 * key 'user:17'. SESSIONS further ones are in the table of objects alone.
 */
enum {
	STRING = 6,
	ARRAY = 7,
	OBJECT = 8,
	PACKED = 1 << 2,
	SIZE = 8, /* of all arrays: elements */
	TABLE_SIZE = 4096,
	STACK_SIZE = 4096,
	CLASS_WORDS = 57,
	MEMBERS = 40,
	SESSIONS = 32,
};

static const uint64_t TOP = LANGUAGE_DATA + 0x200, GLOBALS = TOP - 152, STORE = TOP + 0x100,
		      FUNCTIONS = TOP + 0x200, CLASSES = FUNCTIONS + 0x40,
		      CONSTANTS = CLASSES + 0x40, CODE = 0x7e0000000000;

struct php_process {
	struct language language;
	uint64_t app_class, session_class, base_class;
	uint64_t objects, app, cache, session, sessions[SESSIONS], plain;
	uint32_t object_count;
};

static uint64_t add_string(struct language *language, const char *text)
{
	uint64_t string = language_allocate(language, 24 + strlen(text) + 1);

	language_set(language, string, language_pair(1, STRING), 0, strlen(text));
	language_set_text(language, string + 24, text);
	return string;
}

/* An array at place, of elements with keys. */
static void set_array(struct language *language, uint64_t place)
{
	uint64_t elements = language_allocate(language, 4 * 2 * SIZE + 32 * SIZE);

	language_set(language, place, language_pair(1, ARRAY), language_pair(0, -2U * SIZE),
		     elements + 4 * 2 * SIZE, 0, SIZE);
}

/* Another element of the array. */
static void add_item(struct language *language, uint64_t array, const char *key, uint64_t value,
		     uint32_t type)
{
	struct core *core = &language->world.core;
	uint64_t count = core_get(core, array + 24) >> 32;

	language_set(language, core_get(core, array + 16) + 32 * count, value, type, 0,
		     add_string(language, key));
	core_set(core, array + 24, language_pair((uint32_t)count + 1, (uint32_t)count + 1));
}

static uint64_t add_class(struct language *language, const char *name, uint64_t parent)
{
	uint64_t class = language_allocate(language, 8 * CLASS_WORDS);

	/* A linked class of a program, with one member. */
	language_set(language, class, 2, add_string(language, name), parent, language_pair(1, 8),
		     1);
	set_array(language, class + 64);
	set_array(language, class + 120);
	set_array(language, class + 176);
	add_item(language, CLASSES, name, class, 14);
	return class;
}

/* An object with the one member of its class. */
static uint64_t add_object(struct php_process *php, uint64_t class, uint64_t value, uint32_t type)
{
	uint32_t number = ++php->object_count;
	uint64_t object = language_add(&php->language, language_pair(1, OBJECT), number, class,
				       CODE, 0, value, type);

	language_set(&php->language, php->objects + 8 * number, object);
	language_set(&php->language, STORE, php->objects, language_pair(number + 1, 512));
	return object;
}

static void add_engine(struct language *language)
{
	uint64_t stack = language_allocate(language, STACK_SIZE);
	uint64_t function = language_allocate(language, 224);

	core_add(&language->world.core, CODE, PAGE, RIGHT_READ | RIGHT_EXECUTE);
	language_set(language, TOP - 24, FUNCTIONS, CLASSES, CONSTANTS, stack + 64,
		     stack + STACK_SIZE, stack, STACK_SIZE);
	set_array(language, GLOBALS);
	set_array(language, FUNCTIONS);
	set_array(language, CLASSES);
	set_array(language, CONSTANTS);
	language_set(language, function, 1, add_string(language, "strlen"));
	language_set(language, function + 72, CODE);
	add_item(language, FUNCTIONS, "strlen", function, 14);
}

static void php_init(struct php_process *php)
{
	struct language *language = &php->language;

	*php = (struct php_process){ .object_count = 0 };
	language_init(language, "/usr/bin/php8.2");
	add_engine(language);
	php->objects = language_allocate(language, TABLE_SIZE);
	php->base_class = add_class(language, "Base", 0);
	php->app_class = add_class(language, "App", php->base_class);
	php->session_class = add_class(language, "Session", 0);
	php->plain = language_add(language, 0, 0, 0, 0, 0, 0, 0);
	add_item(language, php->app_class + 120, "name",
		 language_add(language, language_pair(MEMBERS + 16, 1)), 14);
	add_item(language, php->app_class + 120, "cache",
		 language_add(language, language_pair(MEMBERS, 1)), 14);
	php->cache = language_allocate(language, 56);
	set_array(language, php->cache);
	php->app = add_object(php, php->app_class, php->cache, ARRAY);
	php->session = add_object(php, php->session_class, 0, 1);
	for (size_t i = 0; i < SESSIONS; i++)
		php->sessions[i] = add_object(php, php->session_class, 0, 1);
	add_item(language, php->cache, "user:17", php->session, OBJECT);
}

static void php_open(struct php_process *php)
{
	add_item(&php->language, GLOBALS, "app", php->app, OBJECT);
	language_open(&php->language, &runtime_php);
}

static void php_deinit(struct php_process *php)
{
	language_deinit(&php->language);
}
DEFINE_DEINIT(php_deinit, struct php_process)

#define START(php)                                    \
	_cleanup_(php_deinit) struct php_process php; \
	php_init(&php)

#define assert_class(php, address, name) \
	assert_string_equal(language_class(&(php).language, address), name)
#define assert_path(php, address, path) \
	assert_string_equal(language_path(&(php).language, address), path)

TEST(values_have_the_names_of_their_classes)
{
	START(php);

	php_open(&php);
	assert_class(php, php.app, "App");
	assert_class(php, php.session, "Session");
	assert_class(php, php.cache, "array");
	assert_class(php, php.objects, "(table of objects)");
	assert_class(php, php.plain, "none");
}

TEST(path_takes_variables_members_and_keys)
{
	START(php);

	php_open(&php);
	assert_path(php, php.app, "$app");
	assert_path(php, php.session, "$app->cache['user:17']");
	assert_path(php, php.sessions[0], "none");
}

TEST(damaged_entry_of_the_table_of_objects_costs_only_its_object)
{
	START(php);

	language_set(&php.language, php.objects + 8 * 3, 0x5a5a5a5a5a5a5a58);
	php_open(&php);
	assert_class(php, php.sessions[0], "none");
	assert_class(php, php.sessions[1], "Session");
	assert_path(php, php.session, "$app->cache['user:17']");
}

TEST(class_without_a_name_costs_only_its_objects)
{
	START(php);

	language_set(&php.language, php.session_class + 8, 0x5a5a5a5a5a5a5a58);
	php_open(&php);
	assert_class(php, php.session, "none");
	assert_path(php, php.app, "$app");
}

/* A variable before $app has more elements than there is memory. */
TEST(array_of_huge_count_ends_with_its_memory)
{
	START(php);
	uint64_t array =
		language_add(&php.language, language_pair(1, ARRAY), language_pair(PACKED, -2U),
			     php.app, language_pair(1U << 31, 1), 1U << 31, 0, 0);

	add_item(&php.language, GLOBALS, "bad", array, ARRAY);
	php_open(&php);
	assert_path(php, array, "$bad");
	assert_path(php, php.session, "$app->cache['user:17']");
}

static bool count_bases(void *data, const char *name)
{
	size_t *count = data;

	assert_string_equal(name, "Base");
	return ++*count > 1000;
}

TEST(classes_that_are_derived_from_themselves_end)
{
	START(php);
	size_t count = 0;

	language_set(&php.language, php.base_class + 16, php.base_class);
	language_set(&php.language, php.session_class + 16, php.session_class);
	language_set(&php.language, php.session + MEMBERS, php.sessions[0], OBJECT);
	php_open(&php);
	assert_false(runtimes_visit_bases(php.language.list, php.app_class, count_bases, &count));
	assert_true(count > 0);
	/* None of its bases knows the member. */
	assert_path(php, php.sessions[0], "$app->cache['user:17']->{#0}");
}

/* A call of work(), whose variable $x is an object that nothing else leads to. */
static uint64_t add_call(struct php_process *php)
{
	struct language *language = &php->language;
	uint64_t function = language_allocate(language, 224),
		 call = language_allocate(language, 96);
	uint64_t names = language_add(language, add_string(language, "x"));

	language_set(language, function, 2, add_string(language, "work"));
	language_set(language, function + 72, language_pair(0, 1), language_pair(1, 0),
		     language_allocate(language, 32), 0, 0, names);
	language_set(language, function + 152, add_string(language, "/app/work.php"));
	language_set(language, call + 24, function);
	language_set(language, call + 80, php->sessions[0], OBJECT);
	language_set(language, TOP + 32, call);
	return call;
}

TEST(variables_of_calls_have_names)
{
	START(php);

	add_call(&php);
	php_open(&php);
	assert_path(php, php.sessions[0], "work(): $x");
}

static void count_frame(void *data, const struct runtime_frame *frame)
{
	size_t *counts = data;

	counts[frame->damage ? 1 : 0]++;
}

TEST(calls_of_which_one_is_its_own_caller_end)
{
	START(php);
	size_t counts[2] = { 0 };
	uint64_t call = add_call(&php);

	language_set(&php.language, call + 48, call);
	php_open(&php);
	assert_no_error(runtimes_visit_frames(
		php.language.list, 0, 0,
		&(struct frame_visitor){ .data = counts, .frame = count_frame }));
	assert_int_equal(counts[0], 1);
	assert_int_equal(counts[1], 1);
	assert_path(php, php.sessions[0], "work(): $x");
	assert_path(php, php.session, "$app->cache['user:17']");
}

static bool count_link(void *data, const struct object_link *link)
{
	++*(size_t *)data;
	return false;
}

static struct error *count_object(void *data, allocation_id id, uint64_t place)
{
	++*(size_t *)data;
	return NULL;
}

/* Count the objects and values that the object at address leads to. */
static size_t count_links(struct php_process *php, uint64_t address)
{
	struct object_space *space = runtimes_space(php->language.list, &runtime_php);
	allocation_id id = language_find(&php->language, address);
	size_t count = 0;

	assert_no_error(object_visit_items(space, id, count_link, &count));
	assert_no_error(object_visit_references(space, id, count_object, &count));
	return count;
}

TEST(objects_of_an_engine_without_a_known_layout_have_no_links)
{
	START(php);
	struct core *core = &php.language.world.core;
	uint64_t function = core_get(core, core_get(core, FUNCTIONS + 16));

	/* The function has no code, so no version fits. */
	language_set(&php.language, function + 72, 0);
	php_open(&php);
	assert_class(php, php.app, "App");
	assert_path(php, php.session, "none");
	assert_int_equal(count_links(&php, php.app), 0);
	assert_int_equal(count_links(&php, php.cache), 0);
}

TEST(members_and_elements_are_links)
{
	START(php);

	php_open(&php);
	assert_path(php, php.app, "$app");
	assert_int_equal(count_links(&php, php.app), 2);
	assert_int_equal(count_links(&php, php.cache), 2);
}
