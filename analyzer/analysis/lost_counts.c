/*
 * Counts of references that do not add up, see analysis_lost_counts().
 *
 * A holder of a counted block has its address, or another that the kind of block names. All words
 * that may be such are counted: those of used allocations, unless they stand in parts that hold
 * nothing any more, and those of roots. Upper and lower bits that are no address are ignored, as
 * tagged pointers hold, too. So what is found is at least what is there, and a count that is larger
 * is lost for certain, as long as holders have addresses.
 *
 * C code may keep its reference to an object as an address inside of it, as numpy does to the
 * characters of docstrings. Where a word of static memory or of another allocation leads inside,
 * the object's count is not judged.
 *
 *	found   words that may be a holder's
 *	count   of holders, those by weak pointers among them
 */
#include "analyzer/analysis/parts.h"

#include "analyzer/base/address_map.h"
#include "analyzer/classify/control_block.h"
#include "analyzer/classify/reference_judge.h"
#include "analyzer/classify/type_names.h"

#include <ctype.h>
#include <string.h>

struct counted {
	uint64_t holder, other; /* addresses that holders have; 0: no other */
	uint64_t count;
	uint32_t found;
	bool is_object; /* of a runtime */
	bool is_inside; /* held by an address inside of it, as that of its characters */
	allocation_id id;
	type_number type; /* whose member the count is by its name; or NO_TYPE */
};

/* The member of a type that is a count by its name, and in how many values it is what was found. */
struct count_member {
	bool is_known;
	uint8_t size; /* 0: there is none */
	uint32_t offset, total, exact;
};

struct counting {
	struct analysis *analysis;
	struct view view;
	struct reference_judge judge;
	ARRAY(struct counted) list;	    /* by id */
	struct address_map places;	    /* by address of holders: places in the list */
	ARRAY(struct count_member) members; /* by type */
	struct bitmap targets;
	uint64_t first, last; /* of these addresses */
};

static void counting_deinit(struct counting *counting)
{
	arrays_release(&counting->list, &counting->members);
	table_release(&counting->places);
	bitmap_deinit(&counting->targets);
}
DEFINE_DEINIT(counting_deinit, struct counting)

/* std::shared_ptr: its weak pointers have the address of the control block, too. */
static bool read_control_block(struct counting *counting, allocation_id id,
			       struct memory_range range, struct counted *ret)
{
	const struct analysis *analysis = counting->analysis;
	struct shared_counts counts;
	uint64_t vtable;

	if (!view_word(&counting->view, range.start, &vtable) ||
	    !program_find_module(analysis->program, vtable) ||
	    !classes_is_class(analysis->classes, vtable) ||
	    classes_control_block(analysis->classes, vtable) == NO_CONTROL_BLOCK ||
	    !control_block_read(&counting->view, range.start, &counts))
		return false;
	ret->holder = range.start;
	ret->count = counts.uses + counts.weak;
	return true;
}

static bool read_object(struct counting *counting, allocation_id id, struct memory_range range,
			struct counted *ret)
{
	struct object_liveness liveness;

	if (!runtimes_count_words(counting->analysis->runtimes, id, &liveness))
		return false;
	ret->holder = liveness.address;
	ret->count = liveness.count;
	ret->is_object = true;
	return true;
}

/* Reference counted boxes of a language, which begin with two words: strong, weak and one. */
static bool read_box(struct counting *counting, const char *name, uint64_t start,
		     struct counted *ret)
{
	static const char *const boxes[] = { "ArcInner<", "RcInner<", "RcBox<" };
	enum { DATA = 16 };
	const char *open = strchr(name, '<'), *last = open;
	uint64_t words[2];

	while (last && last > name && last[-1] != ':')
		last--;
	if (!last)
		return false;

	for (size_t i = 0; i < COUNT_OF(boxes); i++) {
		if (strncmp(last, boxes[i], strlen(boxes[i])) != 0)
			continue;
		ret->holder = start;
		ret->other = start + DATA;
		if (!view_read(&counting->view, start, words, sizeof(words)))
			return false;
		ret->count = words[0] + words[1] - (words[0] > 0);
		return words[0] <= INT32_MAX && words[1] <= INT32_MAX;
	}
	return false;
}

/* True of "ref_count", "m_refs", "refcnt_", "cRef". */
static bool is_count_name(const char *name)
{
	static const char *const names[] = { "ref", "refs", "refcount", "refcnt", "refcounter" };
	static const char *const prefixes[] = { "", "m", "c", "n", "mc" };
	char plain[16];
	size_t length = 0;

	for (; *name && length < sizeof(plain) - 1; name++)
		if (*name != '_')
			plain[length++] = (char)tolower((unsigned char)*name);
	plain[length] = '\0';
	for (size_t i = 0; !*name && i < COUNT_OF(prefixes) * COUNT_OF(names); i++) {
		const char *prefix = prefixes[i / COUNT_OF(names)];
		size_t skipped = strlen(prefix);

		if (strncmp(plain, prefix, skipped) == 0 &&
		    strcmp(plain + skipped, names[i % COUNT_OF(names)]) == 0)
			return true;
	}
	return false;
}

/* Find the member of the structure, or of what it is derived from. */
static bool find_count_member(const struct type_table *types, type_number number, uint32_t offset,
			      unsigned int depth, struct count_member *ret)
{
	enum { MOST_DEPTH = 4 };
	const struct data_type *type = type_get(types, number);
	const struct type_member *members = type_members(types, type);

	if (type->kind != TYPE_STRUCTURE || depth == MOST_DEPTH)
		return false;
	for (uint32_t i = 0; i < type->member_count; i++) {
		const struct data_type *of = type_get(types, members[i].type);

		if (members[i].is_base &&
		    find_count_member(types, members[i].type, offset + members[i].offset, depth + 1,
				      ret))
			return true;
		if (members[i].name && is_count_name(members[i].name) && !members[i].bit_size &&
		    of->kind != TYPE_POINTER && (of->size == 4 || of->size == 8)) {
			ret->offset = offset + members[i].offset;
			ret->size = (uint8_t)of->size;
			return true;
		}
	}
	return false;
}

/* A value whose type, or a base of it, has a member with the name of a count. */
static bool read_member(struct counting *counting, struct memory_range range, type_number number,
			struct counted *ret)
{
	struct count_member *member = &counting->members.items[number];

	if (!member->is_known)
		find_count_member(counting->analysis->type_table, number, 0, 0, member);
	member->is_known = true;
	if (!member->size || range.start + member->offset + member->size > range.end)
		return false;
	ret->holder = range.start;
	ret->type = number;
	return view_read(&counting->view, range.start + member->offset, &ret->count,
			 member->size) &&
	       ret->count <= INT32_MAX;
}

static bool read_typed(struct counting *counting, allocation_id id, struct memory_range range,
		       struct counted *ret)
{
	const struct data_type *type;
	struct typed typed;

	if (!analysis_type_of(counting->analysis, id, &typed) || typed.fit != FIT_ONE)
		return false;
	type = type_get(counting->analysis->type_table, typed.type);
	return (type->name && read_box(counting, type->name, range.start, ret)) ||
	       read_member(counting, range, typed.type, ret);
}

static bool (*const readers[])(struct counting *, allocation_id, struct memory_range,
			       struct counted *) = { read_control_block, read_object, read_typed };

static struct error *add_holder(struct counting *counting, uint64_t address)
{
	if (!address || address_map_find(&counting->places, address) != NOT_IN_MAP)
		return NULL;
	counting->first = MIN(counting->first, address);
	counting->last = MAX(counting->last, address);
	return address_map_add(&counting->places, address, (uint32_t)counting->list.count);
}

static struct error *find_counted(struct counting *counting)
{
	const struct allocation_index *index = counting->analysis->index;
	size_t hint = 0;

	bitmap_for_each(id, allocation_used(index)) {
		struct memory_range range = allocation_range_near(index, (allocation_id)id, &hint);
		struct counted counted = { .id = (allocation_id)id };
		bool is_counted = false;

		for (size_t i = 0; i < COUNT_OF(readers) && !is_counted; i++)
			is_counted = readers[i](counting, counted.id, range, &counted);
		if (!is_counted || !counted.count)
			continue;
		TRY(add_holder(counting, counted.holder));
		TRY(add_holder(counting, counted.other));
		TRY(array_append(&counting->list, counted));
		bitmap_set(&counting->targets, id);
	}
	return NULL;
}

/* The block that a holder with the word has; NULL: none. */
static struct counted *find_held(const struct counting *counting, uint64_t word)
{
	static const uint64_t ADDRESS = 0xfffffffffff8;
	uint32_t place;

	word &= ADDRESS;
	if (word - counting->first > counting->last - counting->first)
		return NULL;
	place = address_map_find(&counting->places, word);
	return place == NOT_IN_MAP ? NULL : &counting->list.items[place];
}

static void count_word(struct counting *counting, allocation_id source, uint64_t start, uint64_t at,
		       uint64_t word)
{
	struct counted *held = find_held(counting, word);

	if (!held || held->found == UINT32_MAX ||
	    runtimes_is_link(counting->analysis->runtimes, source, held->id, word, at))
		return;
	reference_judge_set_source(&counting->judge, source);
	if (!reference_judge_taint(&counting->judge, at - start))
		held->found++;
}

typedef void (*word_function)(struct counting *counting, allocation_id source, uint64_t start,
			      uint64_t at, uint64_t word);

static void count_words(struct counting *counting, allocation_id source, struct memory_range range,
			word_function function)
{
	for (uint64_t at = range.start; at < range.end;) {
		uint64_t size, word;
		const uint8_t *bytes = view_bytes(&counting->view, at, &size);

		if (!bytes)
			return;
		size = MIN(size, range.end - at);
		for (uint64_t i = 0; i + sizeof(word) <= size; i += sizeof(word)) {
			memcpy(&word, bytes + i, sizeof(word));
			function(counting, source, range.start, at + i, word);
		}
		at += size;
	}
}

static struct error *count_allocations(struct counting *counting, word_function function)
{
	const struct analysis *analysis = counting->analysis;
	const struct bitmap *used = allocation_used(analysis->index);
	uint64_t passed = 0;
	size_t hint = 0;

	progress_begin(analysis->progress, "counting holders", used->count);
	bitmap_for_each(id, used) {
		TRY(progress_check_at(analysis->progress, id, &passed));
		count_words(counting, (allocation_id)id,
			    allocation_range_near(analysis->index, (allocation_id)id, &hint),
			    function);
	}
	return NULL;
}

static struct counted *find_by_id(const struct counting *counting, allocation_id id)
{
	struct counted *list = counting->list.items;

	return list ? list + BISECT(i, 0, counting->list.count, list[i].id < id) : NULL;
}

/* The word, not in the block itself, leads to the block: note if it leads inside of an object. */
static void note_inside(struct counted *counted, uint64_t word)
{
	if (counted)
		counted->is_inside |= counted->is_object && word > counted->holder;
}

static void note_word(struct counting *counting, allocation_id source, uint64_t start, uint64_t at,
		      uint64_t word)
{
	allocation_id id;

	if (word - counting->first > counting->last - counting->first)
		return;
	id = allocation_find(counting->analysis->index, word);
	if (id != NO_ALLOCATION && id != source && bitmap_get(&counting->targets, id))
		note_inside(find_by_id(counting, id), word);
}

/* A register may be a holder of whatever is in its target. */
static bool count_anchor(void *data, const struct anchor *anchor)
{
	struct counting *counting = data;
	uint64_t word = allocation_start(counting->analysis->index, anchor->target);
	struct counted *held;

	if (anchor->address && view_read(&counting->view, anchor->address, &word, sizeof(word))) {
		held = find_held(counting, word);
		if (held)
			held->found++;
		else if (anchor->kind == ROOT_STATIC)
			note_inside(find_by_id(counting, anchor->target), word);
		return true;
	}
	held = find_by_id(counting, anchor->target);
	if (held)
		held->found++;
	return true;
}

/* Only where something looks lost is memory read a second time. */
static struct error *find_insides(struct counting *counting)
{
	const struct allocation_index *index = counting->analysis->index;

	counting->first = UINT64_MAX;
	counting->last = 0;
	array_for_each(counted, &counting->list) {
		if (!counted->is_object || counted->found >= counted->count || counted->is_inside) {
			bitmap_clear(&counting->targets, counted->id);
			continue;
		}
		counting->first = MIN(counting->first, counted->holder);
		counting->last = counted->holder + allocation_size(index, counted->id);
	}
	return counting->last ? count_allocations(counting, note_word) : NULL;
}

/*
 * A name alone does not say that holders have the address: most values of the type must have
 * exactly as many as counted.
 */
static void judge_members(struct counting *counting)
{
	array_for_each(counted, &counting->list) {
		struct count_member *member = &counting->members.items[counted->type];

		member->total++;
		member->exact += counted->found == counted->count;
	}
}

static bool is_counting(const struct counting *counting, type_number type)
{
	enum { LEAST = 8 };
	const struct count_member *member = &counting->members.items[type];

	return type == NO_TYPE || (member->total >= LEAST && 2 * member->exact > member->total);
}

static struct error *keep_lost(const struct counting *counting, struct counts *ret)
{
	array_for_each(counted, &counting->list)
		if (counted->found < counted->count && !counted->is_inside &&
		    is_counting(counting, counted->type))
			TRY(array_append(&ret->lost,
					 (struct lost_count){ counted->id, counted->count,
							      counted->found }));
	return NULL;
}

struct error *build_lost_counts(struct analysis *analysis)
{
	_cleanup_(counting_deinit) struct counting counting = {
		.analysis = analysis,
		.view = { analysis->image },
		.first = UINT64_MAX,
	};

	arrays_use(&analysis->account, &counting.list, &counting.members, &counting.places);
	/* The words that are read are of 8 bytes. */
	if (image_word_size(analysis->image) != sizeof(uint64_t))
		return NULL;
	TRY(array_resize(&counting.members, type_count(analysis->type_table) + 1));
	TRY(bitmap_init(&counting.targets, allocation_count(analysis->index), &analysis->account));
	TRY(find_counted(&counting));
	if (counting.list.count == 0)
		return NULL;
	reference_judge_init(&counting.judge, analysis->patterns);
	TRY(count_allocations(&counting, count_word));
	roots_visit(analysis->roots, &counting.targets, count_anchor, &counting);
	TRY(find_insides(&counting));
	judge_members(&counting);
	analysis->lost_counts.lost.memory.account = &analysis->account;
	return keep_lost(&counting, &analysis->lost_counts);
}
