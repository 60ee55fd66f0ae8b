/*
 * A heap of blocks that is made up word by word. What extensions ask of the analysis is answered by
 * this file: only references and signatures are known.
 */

#include "analyzer/query/extension.h"
#include "analyzer/query/ranges.h"

#include "tests/analyzer/world.h"

static const uint64_t HEAP = 0x100000, STRIDE = 64, SIZE = 56;

struct analysis {
	struct world world;
	struct bitmap leaked;
	uint64_t signatures[MOST_DRAWN];
};

struct error *analysis_need(struct analysis *analysis, enum stage stage)
{
	return NULL;
}

struct memory_account *analysis_account(struct analysis *analysis)
{
	return &analysis->world.account;
}

struct progress *analysis_progress(struct analysis *analysis)
{
	return &analysis->world.progress;
}

const struct image *analysis_image(const struct analysis *analysis)
{
	return analysis->world.image;
}

const struct allocation_index *analysis_index(const struct analysis *analysis)
{
	return analysis->world.index;
}

const struct graph *analysis_graph(const struct analysis *analysis)
{
	return analysis->world.graph;
}

const struct graph *analysis_incoming(const struct analysis *analysis)
{
	return analysis->world.incoming;
}

const struct bitmap *analysis_leaked(const struct analysis *analysis)
{
	return &analysis->leaked;
}

uint64_t analysis_signature(const struct analysis *analysis, allocation_id id)
{
	return analysis->signatures[id];
}

bool analysis_identity(const struct analysis *analysis, allocation_id id, struct identity *ret)
{
	return false;
}

struct classes *analysis_classes(const struct analysis *analysis)
{
	return NULL;
}

struct error *analysis_need_types(struct analysis *analysis)
{
	return NULL;
}

kind_key kind_typed(const struct analysis *analysis, const struct patterns *patterns,
		    const struct typing *typing, allocation_id id)
{
	return KIND_UNKNOWN;
}

pattern_number kind_pattern(kind_key key)
{
	return NO_PATTERN;
}

struct kind_name kind_name(const struct analysis *analysis, kind_key key)
{
	return (struct kind_name){ 0 };
}

const struct typing *analysis_typing(const struct analysis *analysis)
{
	return NULL;
}

const struct siblings *analysis_siblings(const struct analysis *analysis)
{
	return NULL;
}

struct stage_cost analysis_cost(const struct analysis *analysis, enum stage stage)
{
	return (struct stage_cost){ .built = true };
}

const struct bitmap *analysis_unreachable(const struct analysis *analysis)
{
	return &analysis->leaked;
}

struct patterns *analysis_patterns(const struct analysis *analysis)
{
	return NULL;
}

void analysis_note(struct analysis *analysis, const char *text)
{
}

void classes_begin_search(struct classes *classes)
{
}

bool classes_is_a(struct classes *classes, uint64_t signature, const char *name)
{
	return strtoull(name, NULL, 36) == signature;
}

bool classes_visit_names(struct classes *classes, uint64_t signature,
			 bool (*visit)(void *data, const char *name), void *data)
{
	return visit(data, "pat");
}

enum signature_kind classes_kind(struct classes *classes, uint64_t signature)
{
	return SIGNATURE_CLASS;
}

bool classes_is_vtable(struct classes *classes, uint64_t address)
{
	return false;
}

bool classes_is_class(struct classes *classes, uint64_t signature)
{
	return true;
}

enum signature_mark classes_mark(struct classes *classes, uint64_t signature)
{
	return MARK_NONE;
}

uint32_t classes_control_block(struct classes *classes, uint64_t vtable)
{
	return UINT32_MAX;
}

const char *classes_full_name(struct classes *classes, uint64_t signature)
{
	return NULL;
}

const char *classes_name(struct classes *classes, uint64_t signature)
{
	return NULL;
}

const char *classes_literal_name(struct classes *classes, uint64_t signature)
{
	return NULL;
}

struct error *ranges_add(struct ranges *ranges, struct range range)
{
	return NULL;
}

static uint64_t at(char name)
{
	return HEAP + STRIDE * drawn_id(name);
}

/* A heap as drawn, of which nothing is leaked yet. */
static void analysis_draw(struct analysis *analysis, const char *text)
{
	struct world *world = &analysis->world;

	*analysis = (struct analysis){ .signatures = { 0 } };
	world_init(world);
	world_draw(world, text, HEAP, STRIDE, SIZE);
}

static void analysis_deinit(struct analysis *analysis)
{
	bitmap_deinit(&analysis->leaked);
	world_deinit(&analysis->world);
}
DEFINE_DEINIT(analysis_deinit, struct analysis)

/* No more is added. */
static void settle(struct analysis *analysis)
{
	struct world *world = &analysis->world;

	world_open(world);
	world_find_graph(world);
	world_find_incoming(world);
	assert_no_error(bitmap_init(&analysis->leaked, world->count, &world->account));
}

/* A comment as a few letters: "a>b", "a<b", "=b", visited ones with a !. */
static size_t tell(const struct member_comment *comment, char *ret)
{
	size_t length = 0;

	ret[length++] = ' ';
	if (comment->kind == COMMENT_STATE)
		return length + (size_t)sprintf(ret + length, "%s?", comment->state);
	if (comment->kind == COMMENT_BASE_VISITED) {
		ret[length++] = '=';
	} else {
		ret[length++] = (char)('a' + comment->from);
		ret[length++] = comment->kind == COMMENT_REFERENCES ? '>' : '<';
	}
	ret[length++] = (char)('a' + comment->to);
	if (comment->was_visited)
		ret[length++] = '!';
	if (comment->state)
		length += (size_t)sprintf(ret + length, "%s", comment->state);
	ret[length++] = ' ';
	return length;
}

/* The members' names in their order, the comments among them. */
static void tell_members(const struct members *members, char *ret)
{
	const allocation_id *order = members->order.items;
	const struct member_comment *comments = members->comments.items;
	size_t commented = 0;

	for (size_t i = 0; i <= members->order.count; i++) {
		for (; commented < members->comments.count && comments[commented].position == i;
		     commented++)
			ret += tell(&comments[commented], ret);
		if (i < members->order.count)
			*ret++ = (char)('a' + order[i]);
	}
	*ret = '\0';
}

/* By address, where there is no other order. */
static void add_all(struct members *members)
{
	bitmap_for_each(id, &members->set)
		assert_no_error(members_append(members, (allocation_id)id));
}

static void take_rules(const char *words, struct extension_rules *rules)
{
	static char copy[200];
	char *rest = NULL;

	snprintf(copy, sizeof(copy), "%s", words);
	for (char *word = strtok_r(copy, " ", &rest); word; word = strtok_r(NULL, " ", &rest))
		assert_no_error(extension_rules_take(rules, word));
	assert_no_error(extension_rules_check(rules));
}

/* How a set is extended. */
enum way { PLAINLY, COMMENTED, IN_ANY_ORDER };

static struct error *extend(struct analysis *analysis, const char *base, const char *words,
			    enum way way, char *ret)
{
	_cleanup_(extension_rules_deinit) struct extension_rules rules = { 0 };
	_cleanup_(reference_choice_deinit) struct reference_choice choice;
	_cleanup_(members_deinit) struct members members = { 0 };
	const struct extension extension = { .rules = &rules,
					     .choice = &choice,
					     .comment = way == COMMENTED,
					     .any_order = way == IN_ANY_ORDER };
	struct error *error;

	take_rules(words, &rules);
	reference_choice_init(&choice, analysis, false, false);
	assert_no_error(members_init(&members, analysis->world.count, &analysis->world.account));
	for (; *base; base++)
		bitmap_set(&members.set, (size_t)(*base - 'a'));
	error = extension_apply(&extension, &members);
	if (error)
		return error;
	if (members.is_ordered)
		assert_int_equal(bitmap_weight(&members.set), members.order.count);
	else
		add_all(&members);
	tell_members(&members, ret);
	return NULL;
}

static int compare_letters(const void *a, const void *b)
{
	return *(const char *)a - *(const char *)b;
}

/* Assert that any order of the rules gives the same members. */
static void assert_members(struct analysis *analysis, const char *base, const char *rules,
			   const char *expected)
{
	char told[100], sorted[100];

	snprintf(sorted, sizeof(sorted), "%s", expected);
	qsort(sorted, strlen(sorted), 1, compare_letters);
	assert_no_error(extend(analysis, base, rules, IN_ANY_ORDER, told));
	qsort(told, strlen(told), 1, compare_letters);
	assert_string_equal(told, sorted);
}

/* Assert the extension of the base, with and without comments. */
static void assert_extended(struct analysis *analysis, const char *base, const char *rules,
			    const char *expected)
{
	char told[1000];
	size_t left = 0;

	assert_no_error(extend(analysis, base, rules, PLAINLY, told));
	assert_string_equal(told, expected);
	assert_no_error(extend(analysis, base, rules, COMMENTED, told));
	/* Without their comments, the members are the same. */
	for (char *at = told; *at; at++) {
		if (*at == ' ')
			at = strchr(at + 1, ' ');
		else
			told[left++] = *at;
	}
	told[left] = '\0';
	assert_string_equal(told, expected);
	assert_members(analysis, base, rules, expected);
}

static void assert_commented(struct analysis *analysis, const char *base, const char *rules,
			     const char *expected)
{
	char told[1000];

	assert_no_error(extend(analysis, base, rules, COMMENTED, told));
	assert_string_equal(told, expected);
}

TEST(depth_comes_first_and_low_addresses_before_high)
{
	_cleanup_(analysis_deinit) struct analysis analysis;

	analysis_draw(&analysis, "a>ecec c>fa e>bd");
	settle(&analysis);
	assert_extended(&analysis, "a", "->", "acfebd");
	assert_extended(&analysis, "b", "->", "b");
	assert_extended(&analysis, "ce", "->", "caebdf");
}

TEST(rules_come_one_after_the_other)
{
	_cleanup_(analysis_deinit) struct analysis analysis;

	analysis_draw(&analysis, "a>edb b>c");
	settle(&analysis);
	assert_extended(&analysis, "a", "@8-> @0-> ->", "adebc");
	assert_extended(&analysis, "a", "@8->", "ad");
}

TEST(state_decides_by_which_rules_it_goes_on)
{
	_cleanup_(analysis_deinit) struct analysis analysis;

	analysis_draw(&analysis, "a>b b>cd c>de");
	settle(&analysis);
	assert_extended(&analysis, "a", "->=>M M@0->", "abcde");
	assert_extended(&analysis, "a", "->=>M M@0->=>N", "abc");
	assert_extended(&analysis, "a", "->=>M M@8->=>M", "abd");
	assert_extended(&analysis, "a", "->=>End", "ab");
}

TEST(state_of_the_first_visit_counts)
{
	_cleanup_(analysis_deinit) struct analysis analysis;

	analysis_draw(&analysis, "a>b b>c");
	settle(&analysis);
	assert_extended(&analysis, "a", "@0->=>End ->", "ab");
	assert_extended(&analysis, "a", "@0-> ->=>End", "abc");
	/* In the base set it would be extended, but it was visited before. */
	assert_extended(&analysis, "ab", "@0->=>End", "ab");
}

TEST(signatures_say_what_is_extended_and_taken_in)
{
	_cleanup_(analysis_deinit) struct analysis analysis;

	analysis_draw(&analysis, "a>bc b>d c>d");
	analysis.signatures[0] = analysis.signatures[2] = 0x5000;
	settle(&analysis);
	assert_extended(&analysis, "ab", "5000->", "abcd");
	assert_extended(&analysis, "b", "5000->", "b");
	assert_extended(&analysis, "a", "->5000", "ac");
	assert_extended(&analysis, "a", "->-", "abd");
	assert_extended(&analysis, "a", "-->", "a");
}

TEST(leaked_ones_alone_are_reached_by_a_wave)
{
	_cleanup_(analysis_deinit) struct analysis analysis;

	analysis_draw(&analysis, "a>bc");
	settle(&analysis);
	bitmap_set(&analysis.leaked, 2);
	assert_extended(&analysis, "a", "~>", "ac");
}

TEST(free_ones_are_not_reached_but_may_be_the_base)
{
	_cleanup_(analysis_deinit) struct analysis analysis;

	analysis_draw(&analysis, "a>Bc");
	settle(&analysis);
	assert_extended(&analysis, "a", "->", "ac");
	assert_extended(&analysis, "ab", "->", "acb");
}

TEST(offsets_say_where_a_reference_stands_and_points)
{
	_cleanup_(analysis_deinit) struct analysis analysis;

	analysis_draw(&analysis, "a>b--c d");
	core_set(&analysis.world.core, at('a') + 0x30, at('d') + 0x10);
	settle(&analysis);
	assert_extended(&analysis, "a", "@18->", "ac");
	assert_extended(&analysis, "a", "@18->@0", "ac");
	assert_extended(&analysis, "a", "@18->@8", "a");
	assert_extended(&analysis, "a", "->@10", "ad");
	assert_extended(&analysis, "a", "->@0", "abc");
	assert_extended(&analysis, "a", "@30->@10", "ad");
	/* The last word, and one that is not within it. */
	assert_extended(&analysis, "a", "@38->", "a");
	assert_extended(&analysis, "a", "@ffffffffffffffff->", "a");
	assert_extended(&analysis, "d", "@10<-", "da");
	assert_extended(&analysis, "d", "@10<-@30", "da");
	assert_extended(&analysis, "d", "<-@30", "da");
	assert_extended(&analysis, "d", "@10<-@28", "d");
	assert_extended(&analysis, "d", "@8<-", "d");
	assert_extended(&analysis, "d", "<-", "da");
}

TEST(comments_tell_of_each_step)
{
	_cleanup_(analysis_deinit) struct analysis analysis;

	analysis_draw(&analysis, "a>bc b>c c>a d");
	settle(&analysis);
	assert_commented(&analysis, "a", "->", "a a>b b b>c c c>a!  a>c! ");
	assert_commented(&analysis, "ac", "->=>M M->=>N", "a a>bM b b>cN c a>c!M  =c ");
	assert_commented(&analysis, "c", "<-", "c c<a a a<c!  c<b b b<a! ");
}

/* Named like the signature that classes_is_a() reads it as. */
TEST(state_that_is_a_class_too_is_told_of)
{
	_cleanup_(analysis_deinit) struct analysis analysis;
	char told[100];

	analysis_draw(&analysis, "a>b");
	analysis.signatures[1] = strtoull("pat", NULL, 36);
	settle(&analysis);
	assert_no_error(extend(&analysis, "a", "->=>pat pat->", PLAINLY, told));
	assert_string_equal(told, "ab pat?");
	assert_no_error(extend(&analysis, "a", "->=>pat", PLAINLY, told));
	assert_string_equal(told, "ab");
	assert_no_error(extend(&analysis, "a", "->=>cat cat->", PLAINLY, told));
	assert_string_equal(told, "ab");
}

TEST(class_of_which_nothing_is_is_a_mistake)
{
	_cleanup_(analysis_deinit) struct analysis analysis;
	char told[100];

	analysis_draw(&analysis, "a>b");
	analysis.signatures[1] = strtoull("pat", NULL, 36);
	settle(&analysis);
	assert_extended(&analysis, "a", "->pat", "ab");
	assert_extended(&analysis, "a", "pat->", "a");
	assert_error(extend(&analysis, "a", "pat->put", PLAINLY, told), ERROR_USAGE,
		     "unknown class or signature 'put'; did you mean 'pat'?");
	assert_error(extend(&analysis, "", "pot->", PLAINLY, told), ERROR_USAGE,
		     "unknown class or signature 'pot'; did you mean 'pat'?");
}
