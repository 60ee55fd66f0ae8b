/*
 * How a program in PHP reaches a value: "$app->cache['user:17']->name". Paths begin at global
 * variables, static members of classes, constants, variables of running functions and those that
 * functions keep.
 */
#include "analyzer/runtimes/module_data.h"
#include "analyzer/runtimes/object_values.h"
#include "analyzer/runtimes/php/engine.h"
#include "analyzer/runtimes/php/frames.h"
#include "analyzer/runtimes/php/objects.h"

#include "analyzer/base/text.h"

#include <inttypes.h>

enum {
	WORD = 8,
	UNDEFINED = 0, /* a type of values */
	MOST_TEXT = PHP_MOST_KEY,
	MEMBERS = PHP_OBJECT_HEAD, /* of an object: the first */
};

/* In a link: the key and the number of an element or a dynamic member, or a member's offset. */
enum link_kind { LINK_SAME, LINK_ELEMENT, LINK_MEMBER, LINK_DYNAMIC, LINK_INSIDE, LINK_VARIABLE };

const struct object_step php_steps[] = {
	[LINK_SAME] = { "", OBJECT_ITEMS_BEHIND },
	[LINK_INSIDE] = { "->(inside)" },
	[LINK_VARIABLE] = { "->($@)" },
};

struct walk {
	struct object_walk *links;
	struct view *view; /* of these */
	struct php *php;
	struct object_link link;
};

/* Returns whether the walk is over. */
static bool follow(struct walk *walk, uint64_t place)
{
	struct php_value value;
	uint8_t first = walk->links->with_values ? UNDEFINED + 1 : TYPE_STRING;

	if (!php_read_value(walk->php, walk->view, place, &value) || value.type < first ||
	    value.type > TYPE_REFERENCE)
		return walk->links->is_over;
	walk->link.place = place;
	walk->link.target = value.word;
	return object_walk_follow(walk->links, &walk->link);
}

static bool follow_item(void *data, const struct php_item *item)
{
	struct walk *walk = data;
	uint8_t type;

	/* A table that an object was asked for has what its class declares, too. */
	if (walk->links->with_values && walk->link.kind == LINK_DYNAMIC &&
	    view_read(walk->view, item->place + WORD, &type, 1) &&
	    type == walk->php->engine.layout->indirect)
		return false;
	walk->link.which = item->key;
	walk->link.number = item->number;
	return follow(walk, item->place);
}

/* Walk the words of C code in a range, without what is from start to end. */
static void walk_words(struct walk *walk, allocation_id id, struct memory_range range,
		       uint64_t start, uint64_t end)
{
	const struct allocation_index *index = walk->php->space.index;
	uint64_t at = range.start, last = range.end, word;

	for (; at < last && last - at >= WORD && !walk->links->is_over; at += WORD) {
		uint32_t class;
		allocation_id target;

		if ((at >= start && at < end) || !view_word(walk->view, at, &word) || !word)
			continue;
		target = allocation_find(index, word);
		class = target == NO_ALLOCATION ? 0 : php_class_at(walk->php, target);
		if (!class || target == id ||
		    (class < PHP_KINDS && class != PHP_ARRAY && class != PHP_REFERENCE) ||
		    allocation_start(index, target) + php_offset_of(walk->php, class) != word)
			continue;
		walk->link.place = at;
		walk->link.target = word;
		object_walk_follow(walk->links, &walk->link);
	}
}

static void follow_variable(void *data, const struct php_variable *variable)
{
	struct walk *walk = data;

	walk->link.kind = LINK_VARIABLE;
	walk->link.name = variable->name;
	follow(walk, variable->place);
}

/*
 * Walk what C code has before and behind the members of its object, such as a closure's variables,
 * and in blocks that belong to it; and variables of the calls that a generator or fiber waits in.
 */
static void walk_inside(struct walk *walk, allocation_id id, uint64_t start, uint64_t end)
{
	enum { MOST = 512 };
	struct php *php = walk->php;
	size_t hint = 0;
	struct memory_range range = allocation_range_near(php->space.index, id, &hint);
	size_t low = 0, high = php->inner.count;
	uint64_t own = range.start;

	php_visit_waiting(php, id, follow_variable, walk);
	walk->link = (struct object_link){ .kind = LINK_INSIDE };
	if (range.end - range.start > MOST)
		range.end = range.start + MOST;
	walk_words(walk, id, range, start, end);
	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (php->inner.items[middle].owner < own)
			low = middle + 1;
		else
			high = middle;
	}
	for (; low < php->inner.count && php->inner.items[low].owner == own &&
	       !walk->links->is_over && budget_take(&php->space.steps);
	     low++)
		walk_words(walk, id,
			   allocation_range_near(php->space.index, php->inner.items[low].id, &hint),
			   0, 0);
}

uint32_t php_count_members(struct view *view, uint64_t address, uint64_t end,
			   struct php_object *ret)
{
	enum { COUNT = 32 };
	uint64_t members = address + MEMBERS;
	uint32_t count;

	if (!view_read(view, address, ret, sizeof(*ret)) ||
	    !view_read(view, ret->class_entry + COUNT, &count, sizeof(count)) || members > end) {
		*ret = (struct php_object){ 0 };
		return 0;
	}
	return count > (end - members) / PHP_VALUE ? (uint32_t)((end - members) / PHP_VALUE)
						   : count;
}

static void walk_object(struct walk *walk, allocation_id id, uint64_t address)
{
	uint64_t members = address + MEMBERS;
	uint64_t end = allocation_start(walk->php->space.index, id) +
		       allocation_size(walk->php->space.index, id);
	struct php_object object;
	uint32_t count = php_count_members(walk->view, address, end, &object);

	if (!object.class_entry)
		return;
	walk->link.kind = LINK_MEMBER;
	for (uint32_t i = 0; i < count && !walk->links->is_over; i++) {
		walk->link.number = MEMBERS + (uint64_t)PHP_VALUE * i;
		follow(walk, members + (uint64_t)PHP_VALUE * i);
	}
	walk->link.kind = LINK_DYNAMIC;
	if (!walk->links->is_over)
		php_visit_items(walk->php, walk->view, object.table, follow_item, walk);
	walk_inside(walk, id, address, members + (uint64_t)PHP_VALUE * count);
}

uint64_t php_target_of(const struct object_space *space, allocation_id id)
{
	const struct php *php = (const struct php *)space;

	return allocation_start(space->index, id) + php_offset_of(php, php_class_at(php, id));
}

void php_walk_links(struct object_walk *links, allocation_id id)
{
	struct php *php = (struct php *)links->space;
	struct walk walk = { links, &links->view, php, { .kind = LINK_SAME } };
	uint32_t class = php_class_at(php, id);
	uint64_t address = php_target_of(&php->space, id);

	struct budget before = php->space.steps;

	if (!php->engine.layout)
		return;
	php->space.steps = links->steps;
	if (class == PHP_REFERENCE) {
		follow(&walk, address + WORD);
	} else if (class == PHP_ARRAY) {
		walk.link.kind = LINK_ELEMENT;
		php_visit_items(php, walk.view, address, follow_item, &walk);
	} else if (class >= PHP_KINDS) {
		walk_object(&walk, id, address);
	}
	links->steps = php->space.steps;
	php->space.steps = before;
}

static void read_array(struct view *view, uint64_t address, struct object_value *ret)
{
	struct php_array array;

	if (view_read(view, address, &array, sizeof(array)))
		object_value_set_length(ret, array.count);
}

static void read_string(struct view *view, uint64_t address, struct object_value *ret)
{
	uint64_t length;

	if (view_word(view, address + 2 * (uint64_t)WORD, &length))
		object_value_read_text(ret, view, address + PHP_STRING_HEAD, length);
}

/* The value that the link leads to; of an object alone, one of its type. */
static bool find_value(const struct php *php, struct view *view, const struct object_link *link,
		       struct php_value *ret)
{
	struct php_head head;

	if (link->place && link->kind != LINK_INSIDE)
		return php_read_value(php, view, link->place, ret);
	if (!view_read(view, link->target, &head, sizeof(head)))
		return false;
	*ret = (struct php_value){ link->target, (uint8_t)php_type(&head) };
	return true;
}

uint64_t php_referent(struct object_space *space, struct view *view, const struct object_link *link)
{
	struct php *php = (struct php *)space;
	struct php_value value;

	return php->engine.layout && find_value(php, view, link, &value) &&
			       value.type == TYPE_REFERENCE &&
			       php_read_value(php, view, value.word + WORD, &value) &&
			       value.type >= TYPE_STRING && value.type < TYPE_REFERENCE
		       ? value.word
		       : 0;
}

bool php_read_value_of(struct object_space *space, struct view *view,
		       const struct object_link *link, struct object_value *ret)
{
	enum { INTEGER = 4, REAL };
	struct php *php = (struct php *)space;
	struct php_value value;
	double real;

	if (!php->engine.layout || !find_value(php, view, link, &value) ||
	    (value.type == TYPE_REFERENCE &&
	     !php_read_value(php, view, value.word + WORD, &value)) ||
	    value.type == UNDEFINED || value.type > TYPE_REFERENCE)
		return false;
	ret->class_name = php_tell_value(php, view, &value, ret->text, sizeof(ret->text));
	if (value.type == INTEGER) {
		object_value_set_integer(ret, (int64_t)value.word);
	} else if (value.type == REAL) {
		memcpy(&real, &value.word, sizeof(real));
		object_value_set_real(ret, real);
	} else if (value.type == TYPE_STRING) {
		read_string(view, value.word, ret);
	} else if (value.type == TYPE_ARRAY) {
		read_array(view, value.word, ret);
	} else if (ret->class_name && value.type < INTEGER) {
		snprintf(ret->text, sizeof(ret->text), "%s", ret->class_name);
		ret->kind = value.type > 1 ? OBJECT_IS_TEXT : OBJECT_SAYS_NOTHING;
	}
	return true;
}

static bool is_name(const char *text)
{
	for (const char *at = text; *at; at++)
		if (!(*at == '_' || (*at >= 'a' && *at <= 'z') || (*at >= 'A' && *at <= 'Z') ||
		      (*at & 0x80) || (at > text && *at >= '0' && *at <= '9')))
			return false;
	return text[0] != '\0';
}

static void add_key(struct object_path *path, const struct object_link *link)
{
	char text[MOST_TEXT];

	if (path->with_content && !link->which) {
		path_add(path, "[%" PRId64 "]", (int64_t)link->number);
	} else if (path->with_content && php_read_key(&path->view, link->which, text)) {
		path_add(path, "['");
		for (const char *at = text; *at; at++)
			path_add(path, strchr("'\\", *at) ? "\\%c" : "%c", *at);
		path_add(path, "']");
	} else {
		path_add(path, "[...]");
	}
}

static void add_member(struct object_path *path, uint64_t offset)
{
	uint64_t class = object_class_of(path->space, path->id);
	struct php_member member;

	if (php_member_at((struct php *)path->space, &path->view, class, offset, &member))
		path_add(path, "->%s", member.name);
	else
		path_add(path, "->{#%" PRIu64 "}", (offset - MEMBERS) / PHP_VALUE);
}

static void add_dynamic(struct object_path *path, const struct object_link *link)
{
	char text[MOST_TEXT];

	if (!path->with_content || !link->which || !php_read_key(&path->view, link->which, text))
		path_add(path, "->{...}");
	else
		path_add(path, is_name(text) ? "->%s" : "->{'%s'}", text);
}

bool php_tell_step(struct object_path *path, const struct object_link *link)
{
	if (link->kind == LINK_ELEMENT)
		add_key(path, link);
	else if (link->kind == LINK_MEMBER)
		add_member(path, link->number);
	else if (link->kind == LINK_DYNAMIC)
		add_dynamic(path, link);
	return true;
}

/* Names values. */
struct gathering {
	struct object_naming *naming;
	struct php *php;
	uint64_t statics; /* of the class */
	uint32_t count;
};

static struct gathering gathering_begin(struct object_naming *naming, const char *scope)
{
	snprintf(naming->scope, sizeof(naming->scope), "%s", scope);
	return (struct gathering){ naming, (struct php *)naming->space };
}

static void gather(struct gathering *gathering, uint64_t place, const char *name)
{
	struct object_naming *naming = gathering->naming;
	struct php_value value;

	if (php_read_value(gathering->php, &naming->view, place, &value) &&
	    php_find_value(gathering->php, &value) != NO_ALLOCATION)
		object_name(naming, value.word, "%s%s", naming->scope, name);
}

/* Variables and constants, which are named by their keys. */
static bool gather_item(void *data, const struct php_item *item)
{
	struct gathering *gathering = data;
	char name[MOST_TEXT];

	if (item->key && php_read_text(&gathering->naming->view, item->key, name, sizeof(name)))
		gather(gathering, item->place, name);
	return gathering->naming->error != NULL;
}

/* A path to the constant's value begins with its name. */
static bool gather_constant(void *data, const struct php_item *item)
{
	struct gathering *gathering = data;
	struct php_item constant = *item;

	return view_word(&gathering->naming->view, item->place, &constant.place) &&
	       gather_item(gathering, &constant);
}

static bool gather_static(void *data, const struct php_item *item)
{
	struct gathering *gathering = data;
	struct php_member member;

	if (php_read_member(&gathering->naming->view, item, &member) &&
	    (member.flags & MEMBER_IS_STATIC) && member.offset < gathering->count)
		gather(gathering, gathering->statics + (uint64_t)PHP_VALUE * member.offset,
		       member.name);
	return gathering->naming->error != NULL;
}

/* Variables that a function keeps. */
static bool gather_kept(void *data, const struct php_item *item)
{
	struct gathering *gathering = data;
	struct php_function function;
	char name[2 * MOST_TEXT];
	uint64_t address;

	if (!view_word(&gathering->naming->view, item->place, &address) ||
	    !php_read_function(gathering->php, &gathering->naming->view, address, &function) ||
	    !function.is_compiled || !function.statics)
		return false;
	php_tell_function(&gathering->naming->view, &function, name, sizeof(name));
	snprintf(gathering->naming->scope, sizeof(gathering->naming->scope), "%s(): static $",
		 name);
	php_visit_items(gathering->php, &gathering->naming->view,
			php_follow(gathering->php, &gathering->naming->view, function.statics),
			gather_item, gathering);
	return gathering->naming->error != NULL;
}

static bool gather_class(void *data, const struct php_item *item)
{
	struct gathering *gathering = data;
	struct php *php = gathering->php;
	struct view *view = &gathering->naming->view;
	char name[MOST_TEXT];
	uint64_t class, text;

	if (!view_word(view, item->place, &class) || !class || class % WORD != 0 ||
	    !view_word(view, class + WORD, &text) || !php_read_text(view, text, name, sizeof(name)))
		return false;
	gathering->statics = php_static_members(php, view, class, &gathering->count);
	snprintf(gathering->naming->scope, sizeof(gathering->naming->scope), "%s::$", name);
	if (gathering->statics)
		php_visit_items(php, view, class + CLASS_MEMBERS, gather_static, gathering);
	snprintf(gathering->naming->scope, sizeof(gathering->naming->scope), "%s::", name);
	php_visit_items(php, view, class + CLASS_CONSTANTS, gather_constant, gathering);
	php_visit_items(php, view, class + CLASS_FUNCTIONS, gather_kept, gathering);
	return gathering->naming->error != NULL;
}

/* php_shutdown_function_entry of ext/standard: what is called, behind the size of that. */
static bool gather_ending(void *data, const struct php_item *item)
{
	enum { CALL_SIZE = 64 };
	struct gathering *gathering = data;
	uint64_t call, size;

	if (!view_word(&gathering->naming->view, item->place, &call) || call % WORD != 0 ||
	    !view_word(&gathering->naming->view, call, &size) || size != CALL_SIZE)
		return true;
	gather(gathering, call + WORD, "<shutdown function>");
	return gathering->naming->error != NULL;
}

/* A variable of the engine leads to the array of what register_shutdown_function() got. */
static bool gather_endings(struct view *view, uint64_t place, uint64_t word, void *data)
{
	struct gathering *gathering = data;
	struct php *php = gathering->php;
	allocation_id id = word ? allocation_find(php->space.index, word) : NO_ALLOCATION;

	if (id != NO_ALLOCATION && php_class_at(php, id) == PHP_ARRAY &&
	    allocation_start(php->space.index, id) == word)
		php_visit_items(php, &gathering->naming->view, word, gather_ending, gathering);
	return gathering->naming->error != NULL;
}

static void gather_variable(void *data, const struct php_variable *variable)
{
	struct gathering *gathering = data;

	snprintf(gathering->naming->scope, sizeof(gathering->naming->scope), "%.256s(): $",
		 variable->function[0] ? variable->function : "{main}");
	if (variable->place)
		gather(gathering, variable->place, variable->name);
}

struct error *php_find_globals(struct object_naming *naming)
{
	struct gathering gathering = gathering_begin(naming, "$");
	struct php *php = gathering.php;
	const struct php_engine *engine = &php->engine;
	const struct module *module;

	if (!engine->layout)
		return NULL;
	php_visit_items(php, &naming->view, engine->globals, gather_item, &gathering);
	php_visit_items(php, &naming->view, engine->classes, gather_class, &gathering);
	php_visit_items(php, &naming->view, engine->functions, gather_kept, &gathering);
	naming->scope[0] = '\0';
	php_visit_items(php, &naming->view, engine->constants, gather_constant, &gathering);
	module = program_find_module(php->space.program, engine->place);
	if (module)
		module_data_search_in(php->space.image, module, gather_endings, &gathering);
	return NULL;
}

struct error *php_find_locals(struct object_naming *naming)
{
	struct gathering gathering = gathering_begin(naming, "");

	if (gathering.php->engine.layout)
		php_visit_variables(gathering.php, gather_variable, &gathering);
	return NULL;
}
