/*
 * Paths of variables of this test program; the compiler tells where they lead.
 */
#include "analyzer/types/variable_path.h"

#include "analyzer/base/macros.h"

#include "tests/analyzer/types/own_program.h"

struct leaf {
	const char *text;
	unsigned int low : 3, high : 5;
	union {
		long number;
		struct leaf *other;
	};
};

struct absent;

/* All in one page, which the core has. */
__attribute__((aligned(4096))) struct tree {
	struct leaf leaves[3];
	struct leaf *first, **indirect, *absent_leaf;
	struct absent *absent;
	void *nothing, *anything;
	int grid[2][3][4];
	long count;
	struct leaf tail[1];
} tree_of_the_test;

struct opened {
	struct world world;
	struct debug *debug;
	struct type_table *types;
	struct variable_context context;
};

static void opened_init(struct opened *opened)
{
	static const struct debug_options options = { .debug_directory = NULL };
	struct world *world = &opened->world;

	tree_of_the_test.first = &tree_of_the_test.leaves[1];
	tree_of_the_test.indirect = &tree_of_the_test.first;
	tree_of_the_test.leaves[1].other = &tree_of_the_test.leaves[2];
	tree_of_the_test.absent_leaf = (struct leaf *)0x1000;
	tree_of_the_test.anything = &tree_of_the_test.count;
	*opened = (struct opened){ .debug = NULL };
	world_init(world);
	own_program_map(&world->core);
	own_program_add(&world->core, &tree_of_the_test, sizeof(tree_of_the_test));
	world_open(world);
	world_find_program(world);
	assert_no_error(debug_create(world->image, world->program, &options, &world->findings,
				     &opened->debug));
	assert_no_error(type_table_create(opened->debug, &world->account, &world->progress,
					  &opened->types));
	opened->context = (struct variable_context){ world->image, opened->debug, opened->types };
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

static struct variable_place find(struct opened *opened, const char *path)
{
	struct variable_place place;

	assert_no_error(variable_path_find(&opened->context, path, &place));
	assert_non_null(place.module);
	return place;
}

static void assert_at(struct opened *opened, const char *path, const void *address,
		      const char *type)
{
	struct variable_place place = find(opened, path);

	assert_int_equal(place.address, (uintptr_t)address);
	assert_string_equal(place.type, type);
}

#define IS_AT(opened, path, type) assert_at(opened, #path, &(path), type)

static void assert_wrong(struct opened *opened, const char *path, const char *message)
{
	struct variable_place place;
	struct error *error = variable_path_find(&opened->context, path, &place);

	assert_non_null(error);
	assert_int_equal(error_code(error), ERROR_USAGE);
	assert_string_equal(error_message(error), message);
	error_destroy(error);
}

TEST(paths_lead_where_the_compiler_says)
{
	_cleanup_(opened_deinit) struct opened opened;

	opened_init(&opened);
	IS_AT(&opened, tree_of_the_test, "struct tree");
	IS_AT(&opened, tree_of_the_test.leaves, "struct leaf[3]");
	IS_AT(&opened, tree_of_the_test.leaves[2].number, "long int");
	IS_AT(&opened, tree_of_the_test.first->text, "char *");
	IS_AT(&opened, tree_of_the_test.leaves[1].other->number, "long int");
	IS_AT(&opened, tree_of_the_test.first[1].other, "struct leaf *");
	IS_AT(&opened, (*tree_of_the_test.first).number, "long int");
	IS_AT(&opened, **tree_of_the_test.indirect, "struct leaf");
	IS_AT(&opened, (*tree_of_the_test.indirect)->other, "struct leaf *");
	IS_AT(&opened, (&tree_of_the_test.leaves[0])->other, "struct leaf *");
	IS_AT(&opened, (&tree_of_the_test.leaves[0])[2], "struct leaf");
	IS_AT(&opened, tree_of_the_test.leaves->text, "char *");
	IS_AT(&opened, *tree_of_the_test.leaves, "struct leaf");
	IS_AT(&opened, tree_of_the_test.leaves[0x2].text, "char *");
	/* The last member may be the beginning of more. */
	assert_at(&opened, "tree_of_the_test.tail[7]",
		  (const char *)&tree_of_the_test.tail + 7 * sizeof(struct leaf), "struct leaf");
}

TEST(arrays_of_several_dimensions_are_of_rows)
{
	_cleanup_(opened_deinit) struct opened opened;

	opened_init(&opened);
	IS_AT(&opened, tree_of_the_test.grid, "int[2][3][4]");
	IS_AT(&opened, tree_of_the_test.grid[1], "int[3][4]");
	IS_AT(&opened, tree_of_the_test.grid[1][2], "int[4]");
	IS_AT(&opened, tree_of_the_test.grid[1][2][3], "int");
	IS_AT(&opened, **tree_of_the_test.grid, "int[4]");
	assert_wrong(&opened, "tree_of_the_test.grid[1][3]",
		     "index 3 is beyond int[3][4], the type of 'tree_of_the_test.grid[1]'");
}

TEST(pointers_tell_what_they_point_to)
{
	_cleanup_(opened_deinit) struct opened opened;
	struct variable_place place;

	opened_init(&opened);
	place = find(&opened, "tree_of_the_test.first");
	assert_true(place.is_pointer && place.is_present);
	assert_int_equal(place.points_to, (uintptr_t)tree_of_the_test.first);
	place = find(&opened, "&tree_of_the_test.first");
	assert_false(place.is_pointer);
	assert_int_equal(place.address, (uintptr_t)&tree_of_the_test.first);
	place = find(&opened, "tree_of_the_test.count");
	assert_false(place.is_pointer);
	place = find(&opened, "tree_of_the_test.anything");
	assert_true(place.is_pointer);
	assert_int_equal(place.points_to, (uintptr_t)&tree_of_the_test.count);
}

TEST(blanks_and_scopes_make_no_difference)
{
	_cleanup_(opened_deinit) struct opened opened;

	opened_init(&opened);
	assert_at(&opened, " tree_of_the_test . leaves [ 1 ] . text ",
		  &tree_of_the_test.leaves[1].text, "char *");
	assert_at(&opened, "variable_path_test.c::tree_of_the_test.first->text",
		  &tree_of_the_test.first->text, "char *");
	assert_wrong(&opened, "statements_test.c::tree_of_the_test.first",
		     "no global variable 'statements_test.c::tree_of_the_test'");
}

TEST(mistakes_are_named)
{
	_cleanup_(opened_deinit) struct opened opened;

	opened_init(&opened);
	assert_wrong(&opened, "nobody_has_this", "no global variable 'nobody_has_this'");
	assert_wrong(
		&opened, "tree_of_the_test.leaf",
		"struct tree has no member 'leaf'; it has leaves, first, indirect, absent_leaf, absent, nothing, anything, grid, count, tail");
	assert_wrong(&opened, "tree_of_the_test.leaves[3]",
		     "index 3 is beyond struct leaf[3], the type of 'tree_of_the_test.leaves'");
	assert_wrong(&opened, "tree_of_the_test.count[0]",
		     "'tree_of_the_test.count' is of type long int, which has no elements");
	assert_wrong(&opened, "*tree_of_the_test.count",
		     "'tree_of_the_test.count' is of type long int, which is no pointer");
	assert_wrong(&opened, "tree_of_the_test.count.x",
		     "'tree_of_the_test.count' is of type long int, which has no members");
	assert_wrong(&opened, "tree_of_the_test.anything[1]",
		     "'tree_of_the_test.anything' is of type void *, whose elements have no size");
	assert_wrong(&opened, "*tree_of_the_test.nothing",
		     "'tree_of_the_test.nothing' is a null pointer");
	assert_wrong(&opened, "tree_of_the_test.first->other->other->text",
		     "'tree_of_the_test.first->other->other' is a null pointer");
	assert_wrong(&opened, "&&tree_of_the_test",
		     "'&tree_of_the_test' is an address, and has none");
	assert_wrong(&opened, "tree_of_the_test.first[0xffffffffffffffff]",
		     "index 18446744073709551615 is beyond all memory");
	assert_wrong(&opened, "tree_of_the_test.first[", "an index is expected at the end");
	assert_wrong(&opened, "tree_of_the_test.first]", "'.', '->' or '[' is expected at ']'");
	assert_wrong(&opened, "(tree_of_the_test", "')' is expected at the end");
	assert_wrong(&opened, "tree_of_the_test.", "a member is expected at the end");
	assert_wrong(&opened, "", "the name of a variable is expected at the end");
}

TEST(what_is_not_in_the_core_is_not_followed)
{
	_cleanup_(opened_deinit) struct opened opened;
	struct variable_place place;

	opened_init(&opened);
	/* An address that no mapping has. */
	place = find(&opened, "*tree_of_the_test.absent_leaf");
	assert_int_equal(place.address, 0x1000);
	place = find(&opened, "tree_of_the_test.absent_leaf->other");
	assert_true(place.is_pointer && !place.is_present);
	assert_wrong(&opened, "tree_of_the_test.absent_leaf->other->text",
		     "'tree_of_the_test.absent_leaf->other', at 0x1010, is not in the core");
}

TEST(operators_within_each_other_are_limited)
{
	_cleanup_(opened_deinit) struct opened opened;
	char path[4096];

	opened_init(&opened);
	memset(path, '*', sizeof(path) - 1);
	path[sizeof(path) - 1] = '\0';
	assert_wrong(&opened, path, "more than 64 operators are nested");
	memset(path, '(', sizeof(path) - 1);
	assert_wrong(&opened, path, "more than 64 operators are nested");
}

static bool add_member(void *data, const char *name)
{
	char *text = data;

	strcat(strcat(text, " "), name);
	return true;
}

TEST(members_are_listed_that_may_follow)
{
	_cleanup_(opened_deinit) struct opened opened;
	char text[256] = "";

	opened_init(&opened);
	assert_no_error(variable_path_visit_members(&opened.context, "tree_of_the_test.first",
						    add_member, text));
	assert_string_equal(text, " text low high number other");
	assert_error(variable_path_visit_members(&opened.context, "tree_of_the_test.count",
						 add_member, text),
		     ERROR_USAGE,
		     "'tree_of_the_test.count' is of type long int, which has no members");
}

static void assert_name(const char *word, const char *name, bool is_plain)
{
	size_t length = 0;
	bool plain = false;
	const char *found = variable_path_name(word, &length, &plain);

	assert_non_null(found);
	assert_int_equal(length, strlen(name));
	assert_memory_equal(found, name, length);
	assert_int_equal(plain, is_plain);
}

TEST(words_that_may_be_paths_are_known_by_their_looks)
{
	static const char *const others[] = { "",    "%Node", "-",   "?",   "3x", "a-b",
					      "a+4", "*",     "a::", "--x", "a=b" };
	size_t length;
	bool is_plain;

	assert_name("conns", "conns", true);
	assert_name("app::conns", "conns", true);
	assert_name("*conns", "conns", false);
	assert_name("&(*app::conns)->next", "conns", false);
	assert_name("conn.c::conns[3]", "conns", false);
	for (size_t i = 0; i < COUNT_OF(others); i++)
		assert_null(variable_path_name(others[i], &length, &is_plain));
}
