/*
 * An allocation may begin with what stands before an object:
 *
 *	| weak references or values | dict or values | next | previous | count | type | ...
 *
 * next and previous are links of the collector of cycles (PyGC_Head), before all objects that it
 * may meet; they are no references. What stands before these depends on flags of the type and on
 *the version (Include/internal/pycore_object.h, _PyType_PreHeaderSize()), so for each set of flags,
 * the objects at hand decide by their number.
 *
 * Up to 3.7 (Include/objimpl.h), two words are between the links and the count: the collector's own
 * count, and one that is never written:
 *
 *	| next | previous | collector's count | unused | count | type | ...
 */
#include "analyzer/runtimes/python/objects.h"

#include "analyzer/program/getter.h"
#include "analyzer/runtimes/python/collector.h"
#include "analyzer/runtimes/python/space.h"
#include "analyzer/runtimes/python/stale.h"

#include <inttypes.h>

enum {
	WORD = 8,
	HEADERS = 3,
	HEADER_STEP = 16,
	MOST_WORDS = HEADERS * HEADER_STEP / WORD,
	LINKS = 16,	/* bytes of next and previous */
	OLD_LINKS = 32, /* and of what follows them up to 3.7 */
	VOTERS = 1 << 20,
	SHORT_TEXT = 41, /* bytes of the smallest string, which is smaller than its type says */
};

/* Flags in links. */
static const uint64_t FLAGS = 3;

/* The possible types of an allocation, if an object begins behind that many steps of a header. */
struct candidate {
	uint32_t type[HEADERS]; /* NOT_IN_MAP: none */
	bool may_link[HEADERS]; /* the two words of each step may be links */
	bool is_dead;		/* it is none, but one was there, without links */
};

void python_release(struct object_space *space)
{
	struct python *python = (struct python *)space;

	python_types_deinit(&python->types);
	ranks_deinit(&python->blocks);
	arrays_release(&python->owner_of, &python->constants, &python->unused, &python->chunks);
	cleanup_disassembler_destroy(&python->disassembler);
}

/*
 * True if the word may be a reference count. That of an immortal object is 2^32 - 1 or less in 3.12
 * and 3.13; in 3.14, its upper half is flags.
 */
static bool is_count(uint64_t word)
{
	enum { FLAG_BITS = 16 };
	static const uint64_t IMMORTAL = UINT64_C(3) << 30;

	return word != 0 &&
	       (word >> 32 == 0 || ((uint32_t)word >= IMMORTAL && (word >> 32 & UINT16_MAX) == 0 &&
				    word >> 48 >> FLAG_BITS == 0));
}

/* Only objects of types that the compiler made are on free lists. */
static struct error *find_dead(struct python *python, struct view *view, uint64_t address,
			       bool *ret)
{
	uint32_t number;
	uint64_t flags;

	TRY(python_types_know(&python->types, view, address, &number));
	if (number == NOT_IN_MAP)
		return NULL;
	flags = python->types.list.items[number].flags;
	*ret = (flags & TYPE_COLLECTED) && !(flags & TYPE_HEAP);
	return NULL;
}

/*
 * From 3.13 on, an object on a free list of its type has the next one there where its count was.
 * The words are those from its start on; links of the collector before it are zeros.
 */
static bool is_listed(const struct python *python, struct view *view, struct memory_range range,
		      const uint64_t *words, size_t steps)
{
	enum { LOWEST_ADDRESS = 1 << 16 };
	uint64_t next = words[2 * steps], address = words[2 * steps + 1], there[2];
	uint32_t number = next % WORD == 0 && next >= LOWEST_ADDRESS
				  ? address_map_find(&python->space.classes.places, address)
				  : NOT_IN_MAP;
	const struct python_type *type;

	if (number == NOT_IN_MAP || !view_read(view, next, there, sizeof(there)) ||
	    there[1] != address || (there[0] != 0 && there[0] < LOWEST_ADDRESS))
		return false;
	type = &python->types.list.items[number];
	if (type->flags & TYPE_HEAP)
		return false;
	return type->flags & TYPE_COLLECTED
		       ? steps > 0 && words[2 * steps - 2] == 0 &&
				 (words[2 * steps - 1] & ~FLAGS) == 0
		       : steps == 0 && type->item == 0 &&
				 range.end - range.start - type->size < HEADER_STEP;
}

/* True if there are links: none, or the next object has one back. */
static bool is_linked(struct view *view, uint64_t links)
{
	uint64_t next, previous, back;

	return view_word(view, links, &next) && view_word(view, links + WORD, &previous) &&
	       ((next == 0 && (previous & ~FLAGS) == 0) ||
		(view_word(view, (next & ~FLAGS) + WORD, &back) && (back & ~FLAGS) == links));
}

/*
 * True if the word at that place, behind that many steps, is a count and no pointer, even if the
 * program is at low addresses: if the collector tracks the object, links precede it.
 */
static bool is_valid(struct view *view, uint64_t place, uint64_t word, size_t steps)
{
	enum { LOWEST_ADDRESS = 1 << 16 };

	if ((uint32_t)word < LOWEST_ADDRESS || !image_find(view->image, (uint32_t)word))
		return true;
	return (steps > 0 && is_linked(view, place - LINKS)) ||
	       (steps == OLD_LINKS / HEADER_STEP && is_linked(view, place - OLD_LINKS));
}

/* The collector's own count, up to 3.7, of an object that it does not watch; from 3.4 on doubled.
 */
static bool is_untracked(uint64_t word)
{
	return word == (uint64_t)-2 || word == (uint64_t)-4;
}

static struct error *read_candidate(struct python *python, struct view *view,
				    struct memory_range range, struct candidate *ret)
{
	uint64_t words[MOST_WORDS], size = range.end - range.start;
	size_t count = size / WORD < MOST_WORDS ? size / WORD : MOST_WORDS;

	*ret = (struct candidate){ .is_dead = false };
	for (size_t i = 0; i < HEADERS; i++)
		ret->type[i] = NOT_IN_MAP;
	if (!view_read(view, range.start, words, count * WORD))
		return NULL;
	for (size_t i = 0; 2 * i + 1 < count; i++) {
		ret->is_dead = ret->is_dead || is_listed(python, view, range, words, i);
		/* As a rule, text could not be addresses. */
		ret->may_link[i] = image_may_address(view->image, words[2 * i] | words[2 * i + 1]);
		if (is_count(words[2 * i]) &&
		    is_valid(view, range.start + i * HEADER_STEP, words[2 * i], i))
			TRY(python_types_know(&python->types, view, words[2 * i + 1],
					      &ret->type[i]));
	}
	if (ret->is_dead)
		return NULL;
	if (count > 3 && words[0] == 0 && (words[1] & ~FLAGS) == 0 && words[2] == 0)
		return find_dead(python, view, words[3], &ret->is_dead);
	/* Links of a frame that the collector never watched were never written. */
	if (count > 5 && is_untracked(words[2]) && words[4] == 0)
		return find_dead(python, view, words[5], &ret->is_dead);
	return NULL;
}

static unsigned int flag_set(uint64_t flags)
{
	return ((flags & TYPE_COLLECTED) != 0) |
	       ((flags & (TYPE_MANAGED_DICT | TYPE_MANAGED_WEAKREF)) != 0) << 1;
}

/* Call visit for the used allocations, about most of them, spread over all. */
static struct error *visit_used(struct python *python, size_t most,
				struct error *(*visit)(struct python *python, allocation_id id,
						       const struct candidate *candidate,
						       void *data),
				void *data)
{
	const struct allocation_index *index = python->space.index;
	const struct bitmap *used = allocation_used(index);
	size_t step = allocation_count(index) / most + 1, hint = 0;
	struct view view = { python->space.image };

	for (size_t i = bitmap_next(used, 0); i < used->count; i = bitmap_next(used, i + step)) {
		allocation_id id = (allocation_id)i;
		struct candidate candidate;

		TRY(read_candidate(python, &view, allocation_range_near(index, id, &hint),
				   &candidate));
		TRY(visit(python, id, &candidate, data));
	}
	return NULL;
}

struct votes {
	size_t votes[FLAG_SETS][HEADERS];
};

static struct error *vote(struct python *python, allocation_id id,
			  const struct candidate *candidate, void *data)
{
	struct votes *votes = data;

	for (size_t i = 0; i < HEADERS; i++) {
		unsigned int set =
			candidate->type[i] == NOT_IN_MAP
				? 0
				: flag_set(python->types.list.items[candidate->type[i]].flags);

		/* Before objects of most types is nothing: there, types are the items of a tuple.
		 */
		if (candidate->type[i] != NOT_IN_MAP && (set != 0 || i < 2))
			votes->votes[set][i]++;
	}
	return NULL;
}

/* Find the size of links: the smallest header of objects that the collector tracks. */
static uint64_t find_links(const struct python *python, const struct votes *votes)
{
	unsigned int collected = flag_set(TYPE_COLLECTED);

	for (unsigned int i = 0; i < FLAG_SETS; i++)
		if ((i & collected) && votes->votes[i][1] > 0 && python->header_of[i] == 1)
			return LINKS;
	return OLD_LINKS;
}

static struct error *find_headers(struct python *python)
{
	struct votes votes = { 0 };

	memset(python->header_of, 0, sizeof(python->header_of));
	TRY(visit_used(python, VOTERS, vote, &votes));
	for (size_t i = 0; i < FLAG_SETS; i++)
		for (size_t j = 0; j < HEADERS; j++)
			if (votes.votes[i][j] > votes.votes[i][python->header_of[i]])
				python->header_of[i] = (uint8_t)j;
	python->links = find_links(python, &votes);
	return NULL;
}

/* True if an object of the type may begin behind that many steps, by the words before it. */
static bool has_header(const struct python *python, const struct python_type *type, size_t steps,
		       const struct candidate *candidate)
{
	size_t links = python->links / HEADER_STEP;

	return python->header_of[flag_set(type->flags)] == steps &&
	       (!(type->flags & TYPE_COLLECTED) || steps < links ||
		candidate->may_link[steps - links]);
}

static struct error *keep_type(struct python *python, allocation_id id,
			       const struct candidate *candidate, void *data)
{
	uint64_t size = allocation_size(python->space.index, id);

	if (candidate->is_dead) {
		python_mark(python, id, PYTHON_DEAD);
		return NULL;
	}
	for (size_t i = 0; i < HEADERS; i++) {
		const struct python_type *type;
		uint64_t needed;

		if (candidate->type[i] == NOT_IN_MAP)
			continue;
		type = &python->types.list.items[candidate->type[i]];
		needed = type->flags & TYPE_STRING && type->size > SHORT_TEXT ? SHORT_TEXT
									      : type->size;
		if (has_header(python, type, i, candidate) && i * HEADER_STEP + needed <= size)
			return object_classes_set(&python->space.classes, id, candidate->type[i]);
	}
	return NULL;
}

struct error *python_find_objects(struct object_space *space, struct debug *debug)
{
	struct python *python = (struct python *)space;

	arrays_use(space->account, &python->owner_of, &python->constants);
	TRY(object_classes_init(&space->classes, allocation_count(space->index), space->account));
	TRY(python_types_init(&python->types, &space->context, &space->classes));
	if (!python->types.root)
		return NULL;
	TRY(find_headers(python));
	TRY(visit_used(python, SIZE_MAX, keep_type, NULL));
	TRY(python_stale_find(python));
	space->has_objects = python->types.list.count > 0;
	return NULL;
}

static const struct python *of(const struct object_space *space)
{
	return (const struct python *)space;
}

const struct python_type *python_type_of(const struct python *python, allocation_id id)
{
	uint32_t number = python_number_of(python, id);

	return number && number < PYTHON_MARKS ? &python->types.list.items[number - 1] : NULL;
}

const char *python_class_name(struct object_space *space, uint64_t number,
			      enum class_name_kind *ret_kind)
{
	struct python_types *types = &((struct python *)space)->types;
	uint32_t type = address_map_find(&space->classes.places, number);
	const char *name = python_types_name(types, type);

	*ret_kind = types->list.items[type].is_named ? CLASS_NAMED : CLASS_NUMBERED;
	return name;
}

bool python_visit_bases(struct object_space *space, uint64_t number,
			bool (*visit)(void *data, const char *name), void *data)
{
	struct python_types *types = &((struct python *)space)->types;

	return python_types_visit_bases(types, address_map_find(&space->classes.places, number),
					visit, data);
}

uint64_t python_header_of(const struct python *python, const struct python_type *type)
{
	return (uint64_t)HEADER_STEP * python->header_of[flag_set(type->flags)];
}

uint64_t python_object_at(const struct python *python, allocation_id id)
{
	return allocation_start(python->space.index, id) +
	       python_header_of(python, python_type_of(python, id));
}

bool python_may_refer(const struct object_space *space, allocation_id id, uint64_t offset)
{
	const struct python_type *type = python_type_of(of(space), id);
	uint64_t header = type ? python_header_of(of(space), type) : 0, links = of(space)->links;

	return header < links || offset >= header || offset < header - links;
}

static bool is_dead(const struct python *python, allocation_id id)
{
	return python_number_of(python, id) == PYTHON_DEAD;
}

/* Include/cpython/weakrefobject.h: what a weak reference is to stands behind its type. */
static bool refers_weakly(const struct python *python, const struct python_type *type,
			  uint64_t address, uint64_t word)
{
	uint64_t object;

	return type->kind == PYTHON_WEAK &&
	       image_read_u64(python->space.image, address + 2 * (uint64_t)WORD, &object) &&
	       object == word;
}

/* True if the word points to the links of the object target; their lowest bits may be flags. */
static bool leads_to_links(const struct python *python, allocation_id target, uint64_t word)
{
	const struct python_type *type = python_type_of(python, target);
	uint64_t header = type ? python_header_of(python, type) : 0;

	return header >= python->links &&
	       (word & ~FLAGS) ==
		       allocation_start(python->space.index, target) + header - python->links;
}

/*
 * All links of the collector lead to such links. What is on a free list leads to the next there,
 * and has stale words besides.
 */
bool python_is_link(const struct object_space *space, allocation_id source, allocation_id target,
		    uint64_t word, uint64_t place)
{
	const struct python *python = of(space);
	const struct python_type *type;
	struct memory_range range;
	size_t hint = 0;

	if (source == NO_ALLOCATION)
		return leads_to_links(python, target, word) ||
		       python_is_stale(python, target, place);
	type = python_type_of(python, source);
	if (!type)
		return (is_dead(python, source) && !is_dead(python, target)) ||
		       leads_to_links(python, target, word) ||
		       python_is_stale_in_block(python, source, target, place);
	range = allocation_range_near(python->space.index, source, &hint);
	range.start += python_header_of(python, type);
	if (leads_to_links(python, target, word))
		return true;
	return place >= range.start && (refers_weakly(python, type, range.start, word) ||
					python_is_stale_in_object(python, type, range, place));
}

bool python_is_collecting(const struct object_space *space, char *ret_note, size_t size)
{
	struct python_collector collector;

	if (!python_collector_find(&space->context, &collector))
		return false;
	if (!collector.is_enabled)
		snprintf(
			ret_note, size,
			"the program switched Python's collector off (gc.disable()): garbage stays until gc.collect() is called");
	else if (collector.frozen)
		snprintf(
			ret_note, size,
			"%" PRIu64
			" objects of Python are frozen (gc.freeze()): if they are garbage, they stay",
			collector.frozen);
	return collector.is_collecting;
}

bool python_liveness(const struct object_space *space, allocation_id id,
		     struct object_liveness *ret)
{
	const struct python *python = of(space);
	const struct python_type *type = python_type_of(python, id);
	uint64_t count, address;

	if (!type)
		return false;
	address = python_object_at(python, id);
	if (!image_read_u64(python->space.image, address, &count))
		return false;
	*ret = (struct object_liveness){
		.is_immortal = (count & PYTHON_IMMORTAL) != 0,
		.has_count = true,
		.count = (uint32_t)count,
		.address = address,
	};
	return true;
}

struct error *python_visit_frames(struct object_space *space, uint32_t thread,
				  const struct frame_visitor *visitor)
{
	struct python *python = (struct python *)space;

	return python_frames_visit(&python->threads, &python->types, python->space.program, thread,
				   visitor);
}

struct error *python_find_exception(struct object_space *space, uint32_t thread,
				    const struct frame_visitor *visitor,
				    struct runtime_exception *ret)
{
	struct python *python = (struct python *)space;

	return python_frames_exception(&python->threads, &python->types, python->space.program,
				       thread, visitor, ret);
}
