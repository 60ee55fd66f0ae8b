/*
 * Objects are those that the engine's table has; all else that is counted is known by its head.
 */
#include "analyzer/runtimes/php/objects.h"

#include "analyzer/runtimes/php/engine.h"

enum {
	WORD = 8,
	ARRAY_SIZE = 56,
	REFERENCE_SIZE = 32,
	RESOURCE_SIZE = 24, /* 32 from 8.0 on */
	STACK_SIZE = 256 << 10,
	LEAST_ARENA = 4 << 10,
	MOST_SPARE = 64, /* bytes behind a string of malloc() */
};

void php_release(struct object_space *space)
{
	struct php *php = (struct php *)space;

	arrays_release(&php->offsets, &php->elements, &php->parts, &php->owned, &php->inner);
	tables_release(&php->owners, &php->returned);
}

/* Memory as it stands, of which only the head is at hand. */
union words {
	uint64_t words[ARRAY_SIZE / WORD];
	struct php_head head;
	struct php_array array;
};

static bool is_string(struct view *view, struct memory_range range, const union words *words)
{
	uint64_t size = range.end - range.start, length = words->words[2];
	char end;

	return words->head.info >> PHP_INFO_SHIFT == 0 && size > PHP_STRING_HEAD &&
	       length < size - PHP_STRING_HEAD &&
	       view_read(view, range.start + PHP_STRING_HEAD + length, &end, 1) && end == '\0';
}

/* True if it is not rounded up by much, or is known to belong to PHP alone. */
static bool is_tight(struct memory_range range, uint64_t length)
{
	uint64_t size = range.end - range.start - PHP_STRING_HEAD;

	return size - length <= MOST_SPARE || size - length <= size / 4;
}

/*
 * True if a page has a frame, see unused.c, behind its head: with a function, which begins with its
 * kind, and has a name, unless it is the one that Fibers begin with.
 */
static bool has_frame(struct view *view, uint64_t page)
{
	enum { FUNCTION = 56, NAME = 8, INTERNAL = 1, USER = 2 };
	uint64_t function, name;
	uint8_t kind;
	char text[2];

	return view_word(view, page + FUNCTION, &function) && function % WORD == 0 &&
	       view_read(view, function, &kind, sizeof(kind)) &&
	       view_word(view, function + NAME, &name) &&
	       ((kind == INTERNAL && !name) || ((kind == INTERNAL || kind == USER) &&
						php_read_text(view, name, text, sizeof(text))));
}

/*
 * { in use up to, end, the one before }: a page of the stack, or of an arena. The heap of PHP has
 * blocks of that size at whole pages, malloc() has not.
 */
static enum php_kind find_page(struct view *view, struct memory_range range, const uint64_t *words)
{
	uint64_t size = range.end - range.start;

	if (range.start % PAGE != 0 || words[1] != range.end || words[0] - range.start > size ||
	    size < LEAST_ARENA || words[0] - range.start < 3 * (uint64_t)WORD ||
	    words[2] % WORD != 0)
		return 0;
	return size == STACK_SIZE ? PHP_STACK
				  : (has_frame(view, range.start) ? PHP_FIBER_STACK : PHP_ARENA);
}

/* { head, number, type, pointer }: both are ints up to 7.4, and the number is a word since. */
static bool is_resource(struct memory_range range, const union words *words)
{
	enum { MOST_TYPES = 1 << 10 };
	bool is_old = range.end - range.start == RESOURCE_SIZE;
	uint64_t type = is_old ? words->words[1] >> 32 : (uint32_t)words->words[2];

	return (is_old || range.end - range.start == REFERENCE_SIZE) &&
	       words->head.info >> PHP_INFO_SHIFT == 0 && (uint32_t)words->words[1] != 0 &&
	       (is_old || words->words[1] >> 32 == 0) && type > 0 && type < MOST_TYPES;
}

static enum php_kind find_kind(struct view *view, struct memory_range range,
			       const union words *words)
{
	const struct php_head *head = &words->head;
	uint64_t size = range.end - range.start;
	enum php_kind page = find_page(view, range, words->words);

	if (page)
		return page;
	if (head->count == 0 || head->count >> 31)
		return 0;
	switch (php_type(head)) {
	case TYPE_STRING:
		return is_string(view, range, words) && is_tight(range, words->words[2])
			       ? PHP_STRING
			       : 0;
	case TYPE_ARRAY:
		return size >= ARRAY_SIZE && size < 2 * ARRAY_SIZE &&
				       php_array_is_valid(&words->array)
			       ? PHP_ARRAY
			       : 0;
	case TYPE_REFERENCE:
		return size == REFERENCE_SIZE && (uint32_t)words->words[2] >> 16 == 0 &&
				       (words->words[2] & 0xff) <= TYPE_LAST
			       ? PHP_REFERENCE
			       : 0;
	case TYPE_RESOURCE:
		return is_resource(range, words) ? PHP_RESOURCE : 0;
	default:
		return 0;
	}
}

static struct error *find_values(struct php *php)
{
	const struct allocation_index *index = php->space.index;
	struct view view = { php->space.image };
	size_t hint = 0;

	bitmap_for_each(i, allocation_used(index)) {
		struct memory_range range = allocation_range_near(index, (allocation_id)i, &hint);
		uint64_t size = range.end - range.start;
		union words words = { 0 };
		enum php_kind kind;

		if (php_class_at(php, (allocation_id)i) || size < 3 * WORD ||
		    !view_read(&view, range.start, &words,
			       size < sizeof(words) ? size : sizeof(words)))
			continue;
		kind = find_kind(&view, range, &words);
		if (kind)
			TRY(object_classes_set(&php->space.classes, (allocation_id)i, kind - 1));
	}
	return NULL;
}

struct error *php_find_objects(struct object_space *space, struct debug *debug)
{
	struct php *php = (struct php *)space;
	uint32_t place;

	arrays_use(space->account, &php->offsets, &php->parts, &php->returned, &php->elements,
		   &php->owned, &php->inner, &php->owners);
	TRY(php_find_shared(php));
	TRY(object_classes_init(&space->classes, allocation_count(space->index), space->account));
	for (uint64_t kind = 1; kind < PHP_KINDS; kind++)
		TRY(object_classes_know(&space->classes, kind, &place));
	TRY(php_find_tables(php));
	TRY(find_values(php));
	TRY(php_find_elements(php));
	php_find_engine(php);
	TRY(php_find_parts(php));
	space->has_objects = true;
	return NULL;
}

/* Words above the end of the last page of the stack, or of an arena, are stale. */
bool php_may_refer(const struct object_space *space, allocation_id id, uint64_t offset)
{
	const struct php *php = (const struct php *)space;
	uint64_t start = allocation_start(php->space.index, id);
	uint64_t size = allocation_size(php->space.index, id), top;

	if (php_class_at(php, id) == PHP_STRING)
		return false;
	if (php_class_at(php, id) != PHP_STACK && php_class_at(php, id) != PHP_ARENA)
		return true;
	if (php->stack_top - start <= size)
		return offset < php->stack_top - start;
	return !image_read_u64(php->space.image, start, &top) || top - start > size ||
	       offset < top - start;
}

/*
 * Both tables lead to values that they do not hold, and arrays have had others. What the collector
 * is about to free is its own, and marked so: by then, nothing else may lead to it.
 */
bool php_is_link(const struct object_space *space, allocation_id source, allocation_id target,
		 uint64_t word, uint64_t place)
{
	enum { IS_GARBAGE = 2 };
	const struct php *php = (const struct php *)space;
	uint32_t class = source == NO_ALLOCATION ? 0 : php_class_at(php, source);

	return class == PHP_OBJECTS || (class == PHP_ROOTS && !(word & IS_GARBAGE)) ||
	       (source != NO_ALLOCATION && class == 0 && php_is_stale_element(php, source, place));
}

/* A function's address of what is known of its arguments may be where what it returns ends. */
allocation_id php_resolve(const struct object_space *space, allocation_id source, uint64_t word)
{
	const struct php *php = (const struct php *)space;
	uint32_t class = source == NO_ALLOCATION ? 0 : php_class_at(php, source), found;

	if (source == NO_ALLOCATION || (class != PHP_ARENA && class < PHP_KINDS &&
					php->parts.items[source] != PHP_PART_FUNCTION))
		return NO_ALLOCATION;
	found = address_map_find(&php->returned, word);
	return found == NOT_IN_MAP ? NO_ALLOCATION : found;
}

/* struct _zend_gc_globals of zend_gc.c, the same from 7.3 to 8.4: { roots, bools ... }. */
enum { COLLECTOR_ENABLED, COLLECTOR_ACTIVE };

bool php_is_collecting(const struct object_space *space, char *ret_note, size_t size)
{
	const struct php *php = (const struct php *)space;
	uint8_t flags[COLLECTOR_ACTIVE + 1];

	if (!php->collector ||
	    !image_read(space->image, php->collector + WORD, flags, sizeof(flags)))
		return false;
	if (flags[COLLECTOR_ENABLED] != 1)
		snprintf(
			ret_note, size,
			"the program switched PHP's collector off (gc_disable()): garbage stays until gc_collect_cycles() is called");
	return flags[COLLECTOR_ACTIVE] == 1;
}

bool php_liveness(const struct object_space *space, allocation_id id, struct object_liveness *ret)
{
	const struct php *php = (const struct php *)space;
	uint32_t class = php_class_at(php, id);
	uint64_t address = allocation_start(php->space.index, id) + php_offset_of(php, class);
	struct php_head head;

	if (class == 0 || (class >= PHP_RESOURCE && class < PHP_KINDS) ||
	    !image_read(php->space.image, address, &head, sizeof(head)) ||
	    (class >= PHP_KINDS && php_type(&head) != TYPE_OBJECT))
		return false;
	*ret = (struct object_liveness){
		.is_immortal = (head.info & PHP_IMMUTABLE) != 0,
		.has_count = true,
		.count = head.count,
		.address = address,
	};
	return true;
}
