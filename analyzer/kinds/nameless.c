#include "analyzer/kinds/nameless.h"

#include "analyzer/base/bytes.h"
#include "analyzer/base/table.h"
#include "analyzer/base/text.h"
#include "analyzer/heap/address_filter.h"
#include "analyzer/heap/word_filter.h"

#include <inttypes.h>
#include <string.h>

/*
 * A referrer of an allocation, as a number, of which the least is kept:
 *
 *	63  61 60                  53 52    32 31            0
 *	| rank | word of the holder | step    | id of the holder |	an allocation
 *	| rank | address / size of words                         |	anything else
 */
enum rank { RANK_NONE, RANK_STATIC, RANK_OTHER, RANK_LIKE, RANK_INSIDE, RANK_STACK };

enum { RANK_SHIFT = 61, WORD_SHIFT = 53, STEP_SHIFT = 32, FIRST_ELEMENT = 0x100, PAGE_SHIFT = 12 };

static const uint64_t REST_MASK = (UINT64_C(1) << RANK_SHIFT) - 1,
		      STEP_MASK = (UINT64_C(1) << (WORD_SHIFT - STEP_SHIFT)) - 1,
		      MOST_WORD = (UINT64_C(1) << (RANK_SHIFT - WORD_SHIFT)) - 1;

/* A member of allocations of one kind; an offset of FIRST_ELEMENT stands for all from there on. */
struct step {
	kind_key key;
	uint64_t offset;
};

struct group {
	kind_key plain;
	uint64_t step; /* the holder's number, or a variable's address */
	enum rank rank;
	allocation_id example;
};

struct nameless {
	struct analysis *analysis;
	const struct patterns *patterns;
	const struct typing *typing;
	const struct bitmap *members;
	unsigned int word_size;
	ARRAY(uint64_t) holders; /* by id; 0: none */
	HASH_TABLE(struct step) steps;
	HASH_TABLE(struct group) groups;
};

/* A word that refers to an allocation. */
struct holder {
	enum rank rank;
	allocation_id id; /* NO_ALLOCATION: it is elsewhere */
	uint64_t step;
	uint64_t address; /* of a word elsewhere */
};

static struct holder find_holder(const struct nameless *nameless, allocation_id id)
{
	uint64_t noted = nameless->holders.items[id];
	struct holder holder = { .rank = (enum rank)(noted >> RANK_SHIFT), .id = NO_ALLOCATION };

	if (holder.rank == RANK_STATIC || holder.rank == RANK_STACK) {
		holder.address = (noted & REST_MASK) * nameless->word_size;
	} else if (holder.rank != RANK_NONE) {
		holder.id = (allocation_id)noted;
		holder.step = noted >> STEP_SHIFT & STEP_MASK;
	}
	return holder;
}

static void note(struct nameless *nameless, allocation_id id, enum rank rank, uint64_t rest)
{
	uint64_t noted = (uint64_t)rank << RANK_SHIFT | (rest & REST_MASK);
	uint64_t *place = &nameless->holders.items[id];

	if (*place == 0 || noted < *place)
		*place = noted;
}

static bool note_anchor(void *data, const struct anchor *anchor)
{
	note(data, anchor->target, anchor->kind == ROOT_STATIC ? RANK_STATIC : RANK_STACK,
	     anchor->address / ((struct nameless *)data)->word_size);
	return true;
}

/* The kind of the holder; if unknown, its size. */
static kind_key key_of(const struct nameless *nameless, allocation_id id)
{
	kind_key key = kind_typed(nameless->analysis, nameless->patterns, nameless->typing, id);

	return key == KIND_UNKNOWN
		       ? kind_with_size(key,
					allocation_size(analysis_index(nameless->analysis), id))
		       : kind_without_word(key);
}

/* Words that are to be looked up together. */
struct batch {
	struct nameless *nameless;
	const struct allocation_index *index;
	const struct address_filter *pages; /* numbers of those that have a member; NULL: any may */
	size_t hint, count;
	uint64_t words[MOST_ADDRESSES], places[MOST_ADDRESSES]; /* in their holder */
	allocation_id sources[MOST_ADDRESSES];
	allocation_id source; /* the last, and what it is */
	kind_key key;
	uint64_t size;
	struct error *error;
};

static void set_source(struct batch *batch, allocation_id source)
{
	if (source == batch->source)
		return;
	batch->source = source;
	batch->key = key_of(batch->nameless, source);
	batch->size = allocation_size(batch->index, source);
}

/* The number of the step by a word of the source. Beyond those that have a number, all are one. */
static uint64_t find_step(struct batch *batch, uint64_t offset)
{
	struct nameless *nameless = batch->nameless;
	kind_key key = batch->key;
	const struct step *step;

	/* Words of buffers and of arrays are one as good as the other. */
	if (offset >= FIRST_ELEMENT || kind_has_pattern(key))
		offset = FIRST_ELEMENT;
	if (offset == FIRST_ELEMENT && kind_tag(key) == BY_SIZE)
		key = kind_with_size(KIND_UNKNOWN, 0);
	if (nameless->steps.count > STEP_MASK)
		return 0;
	step = table_obtain(&nameless->steps, hash_add(key, offset), one,
			    one->key == key && one->offset == offset, (struct step){ key, offset });
	if (!step)
		batch->error = &error_no_memory;
	return step ? (uint64_t)(step - nameless->steps.items) : 0;
}

static void note_reference(struct batch *batch, size_t number, allocation_id target)
{
	struct memory_range range = allocation_range_near(batch->index, target, &batch->hint);
	uint64_t offset = batch->places[number], word = offset / batch->nameless->word_size;
	enum rank rank = RANK_OTHER;

	set_source(batch, batch->sources[number]);
	if (range.start != batch->words[number])
		rank = RANK_INSIDE;
	else if (batch->size == range.end - range.start)
		rank = RANK_LIKE;
	note(batch->nameless, target, rank,
	     (word < MOST_WORD ? word : MOST_WORD) << WORD_SHIFT |
		     find_step(batch, offset) << STEP_SHIFT | batch->source);
}

/* The note of each target is prefetched: they are all over the memory of the notes. */
static void look_up(struct batch *batch)
{
	struct nameless *nameless = batch->nameless;
	allocation_id targets[MOST_ADDRESSES];
	uint64_t found = 0;

	allocation_find_many(batch->index, batch->words, batch->count, &batch->hint, targets);
	for (size_t i = 0; i < batch->count; i++)
		if (targets[i] != NO_ALLOCATION && targets[i] != batch->sources[i] &&
		    bitmap_get(nameless->members, targets[i])) {
			__builtin_prefetch(&nameless->holders.items[targets[i]], 1);
			found |= UINT64_C(1) << i;
		}
	for (; found; found &= found - 1) {
		size_t i = (size_t)__builtin_ctzll(found);

		note_reference(batch, i, targets[i]);
	}
	batch->count = 0;
}

/* The words of a piece, which stands at that offset of the source. */
static void add_words(struct batch *batch, const struct word_filter *filter, allocation_id source,
		      uint64_t offset, const uint8_t *bytes, uint64_t size)
{
	const unsigned int word = filter->word_size;

	for (uint64_t done = 0; done + word <= size; done += FILTER_WORDS * word) {
		uint64_t left = (size - done) / word;
		uint64_t mask = word_filter_mask(filter, bytes + done,
						 left < FILTER_WORDS ? left : FILTER_WORDS);

		for (; mask; mask &= mask - 1) {
			uint64_t at = done + word * (uint64_t)__builtin_ctzll(mask);

			batch->words[batch->count] = load_word(bytes + at, word);
			if (batch->pages &&
			    !address_filter_may_have(batch->pages,
						     batch->words[batch->count] >> PAGE_SHIFT))
				continue;
			batch->places[batch->count] = offset + at;
			batch->sources[batch->count] = source;
			if (++batch->count == MOST_ADDRESSES)
				look_up(batch);
		}
	}
}

static struct memory_range pages_of(const struct allocation_index *index, size_t id, size_t *hint)
{
	struct memory_range range = allocation_range_near(index, (allocation_id)id, hint);

	return (struct memory_range){ range.start >> PAGE_SHIFT,
				      ((range.end - 1) >> PAGE_SHIFT) + 1 };
}

/* Most often members are few, and nearly all words refer to something else. */
static struct error *find_pages(struct batch *batch, struct address_filter *filter)
{
	const struct nameless *nameless = batch->nameless;
	size_t count = 0, hint = 0;

	bitmap_for_each(id, nameless->members) {
		struct memory_range pages = pages_of(batch->index, id, &hint);

		count += pages.end - pages.start;
	}
	if (count > allocation_count(batch->index) / 2)
		return NULL;
	TRY(address_filter_init(filter, count, analysis_account(nameless->analysis)));
	bitmap_for_each(id, nameless->members) {
		struct memory_range pages = pages_of(batch->index, id, &hint);

		for (uint64_t page = pages.start; page < pages.end; page++)
			address_filter_add(filter, page);
	}
	batch->pages = filter;
	return NULL;
}

static struct error *note_allocations(struct nameless *nameless)
{
	struct analysis *analysis = nameless->analysis;
	const struct allocation_index *index = analysis_index(analysis);
	const struct bitmap *pointerless = allocation_having(index, TRAIT_POINTERLESS);
	const struct word_filter filter =
		word_filter_for(allocation_bounds(index), nameless->word_size);
	_cleanup_(address_filter_deinit) struct address_filter pages = { 0 };
	struct batch batch = {
		.nameless = nameless,
		.index = index,
		.source = NO_ALLOCATION,
	};
	struct view view = { .image = analysis_image(analysis) };
	struct progress *progress = analysis_progress(analysis);
	uint64_t passed = 0, there;
	size_t hint = 0;

	TRY(find_pages(&batch, &pages));
	progress_begin(progress, "finding holders", allocation_count(index));
	bitmap_for_each(id, allocation_used(index)) {
		struct memory_range range = allocation_range_near(index, (allocation_id)id, &hint);
		uint64_t before = passed;

		if (pointerless && bitmap_get(pointerless, id))
			continue;
		for (uint64_t at = range.start; at < range.end; at += there) {
			const uint8_t *bytes = view_bytes(&view, at, &there);

			if (!bytes)
				break;
			if (there > range.end - at)
				there = range.end - at;
			add_words(&batch, &filter, (allocation_id)id, at - range.start, bytes,
				  there);
		}
		if (!progress_pass(progress, id, &passed))
			return error_create(ERROR_INTERRUPTED, "interrupted");
		allocations_release(view.image, index, before, passed);
	}
	look_up(&batch);
	return batch.error;
}

struct error *nameless_create(struct analysis *analysis, const struct patterns *patterns,
			      const struct typing *typing, const struct bitmap *members,
			      struct nameless **ret)
{
	_cleanup_(nameless_destroy) struct nameless *nameless = calloc(1, sizeof(*nameless));
	struct error *error;

	TRY_MEMORY(nameless);
	*nameless = (struct nameless){ analysis, patterns, typing, members,
				       image_word_size(analysis_image(analysis)) };
	arrays_use(analysis_account(analysis), &nameless->holders, &nameless->steps,
		   &nameless->groups);
	error = array_resize(&nameless->holders, members->count + 1);
	if (!error)
		error = note_allocations(nameless);
	if (error)
		return error;
	roots_visit(analysis_roots(analysis), members, note_anchor, nameless);
	nameless->members = NULL;
	*ret = take(nameless);
	return NULL;
}

void nameless_destroy(struct nameless *nameless)
{
	array_release(&nameless->holders);
	tables_release(&nameless->steps, &nameless->groups);
	free(nameless);
}

/* The place of the holder, the same for all words of one variable. */
static uint64_t find_place(const struct nameless *nameless, const struct holder *holder)
{
	const struct module *module;
	struct symbol symbol;

	if (holder->rank != RANK_STATIC)
		return holder->step;
	if (debug_symbol(analysis_debug(nameless->analysis), holder->address, &symbol))
		return symbol.start;
	module = program_find_module(analysis_program(nameless->analysis), holder->address);
	return module ? module->start + 1 : 0;
}

/* True if an object of a runtime's class holds it, at any offset. */
static bool is_held_by_object(const struct nameless *nameless, const struct holder *holder)
{
	const struct step *step;

	if (holder->id == NO_ALLOCATION)
		return false;
	step = &nameless->steps.items[holder->step];
	return kind_tag(step->key) == BY_SIGNATURE && step->offset != FIRST_ELEMENT &&
	       runtimes_have_class(analysis_runtimes(nameless->analysis),
				   kind_signature(step->key));
}

struct error *nameless_key(struct nameless *nameless, allocation_id id, kind_key plain,
			   kind_key *ret)
{
	const struct holder holder = find_holder(nameless, id);
	const struct group *group;
	uint64_t step;

	*ret = plain;
	if (holder.rank == RANK_NONE ||
	    (kind_tag(plain) == BY_PATTERN && !is_held_by_object(nameless, &holder)))
		return NULL;
	step = find_place(nameless, &holder);
	group = table_obtain(&nameless->groups, hash_add(hash_add(holder.rank, step), plain), one,
			     one->plain == plain && one->step == step && one->rank == holder.rank,
			     (struct group){ plain, step, holder.rank, id });
	TRY_MEMORY(group);
	*ret = kind_make(BY_HOLDER, (uint64_t)(group - nameless->groups.items));
	return NULL;
}

kind_key nameless_plain(const struct nameless *nameless, kind_key key)
{
	return kind_tag(key) == BY_HOLDER ? nameless->groups.items[kind_value(key)].plain : key;
}

char *nameless_static(const struct analysis *analysis, uint64_t address)
{
	const struct module *module = program_find_module(analysis_program(analysis), address);
	const char *page =
		runtimes_page_use(analysis_runtimes(analysis), analysis_image(analysis), address);
	struct symbol symbol;
	char *text;
	int length;

	if (debug_symbol(analysis_debug(analysis), address, &symbol))
		length = asprintf(&text, "%s (%s)", symbol.name, module_name(symbol.module));
	else if (module)
		length = asprintf(&text, "static data of %s", module_name(module));
	else
		length = asprintf(&text, "%s", page ? page : "mapped memory");
	return length < 0 ? NULL : text;
}

/*
 * The word of a step, as ".table" where the holder has a type, else "+0x8"; of an array, in an
 * element. NULL if memory is short.
 */
static char *name_word(const struct nameless *nameless, const struct step *step)
{
	return kind_word_text(nameless->typing, step->key, step->offset);
}

static char *name_member(const struct nameless *nameless, const struct holder *holder)
{
	const struct analysis *analysis = nameless->analysis;
	const struct step *step = &nameless->steps.items[holder->step];
	const char *field =
		runtimes_field_name(analysis_runtimes(analysis), holder->id, step->offset);
	_cleanup_(free) char *name =
		kind_tag(step->key) == BY_SIZE ? NULL : kind_text(analysis, step->key);
	_cleanup_(free) char *word = name_word(nameless, step);
	char *text;
	int length;

	if (!word)
		return NULL;
	if (name && field)
		length = asprintf(&text, "%s@%s", name, field);
	else if (name && step->offset == FIRST_ELEMENT)
		length = asprintf(&text, "%s", name);
	else if (name)
		length = asprintf(&text, "%s%s", name, word);
	else if (step->offset == FIRST_ELEMENT)
		length = asprintf(&text, "an array or large structure");
	else
		length = asprintf(&text,
				  holder->rank == RANK_LIKE ? "a linked list (link at +0x%" PRIx64
							      ", nodes of 0x%" PRIx64 " bytes)"
							    : "+0x%" PRIx64 " of size 0x%" PRIx64,
				  step->offset, kind_value(step->key));
	return length < 0 ? NULL : text;
}

static char *name_holder(const struct nameless *nameless, const struct holder *holder)
{
	if (holder->rank == RANK_STACK)
		return strdup("a stack or register");
	if (holder->rank == RANK_STATIC)
		return nameless_static(nameless->analysis, holder->address);
	return name_member(nameless, holder);
}

char *nameless_holder(const struct nameless *nameless, kind_key key)
{
	const struct holder holder =
		find_holder(nameless, nameless->groups.items[kind_value(key)].example);

	return name_holder(nameless, &holder);
}

/* Name the start of a path; held is the step from its first allocation to the next one, or NULL. */
static char *name_start(const struct nameless *nameless, const struct holder *start,
			const struct holder *held)
{
	kind_key key = held ? nameless->steps.items[held->step].key : KIND_UNKNOWN;
	const char *name = NULL;
	char *text;

	if (start->rank == RANK_STACK)
		return strdup("a stack or register");
	if (start->rank == RANK_NONE && key != KIND_UNKNOWN && kind_tag(key) != BY_SIZE)
		return kind_text(nameless->analysis, key);
	if (start->rank != RANK_STATIC)
		return strdup("...");
	name = debug_name(analysis_debug(nameless->analysis), start->address);
	if (name)
		return strdup(name);
	return asprintf(&text, "0x%" PRIx64, start->address) < 0 ? NULL : text;
}

/* Add " -> +0x8" or " -> table" to text, which is freed; so are both if memory is short. */
static char *add_step(const struct nameless *nameless, char *text, const struct step *step)
{
	_cleanup_(free) char *word = name_word(nameless, step);
	char *longer = NULL;
	int length = -1;

	if (text && step->offset == FIRST_ELEMENT)
		length = asprintf(&longer, "%s -> []", text);
	else if (text && word)
		length = asprintf(&longer, "%s -> %s%s", text, kind_is_array(step->key) ? "[]" : "",
				  word + (word[0] == '.' && !kind_is_array(step->key)));
	free(text);
	return length < 0 ? NULL : longer;
}

char *nameless_path(const struct nameless *nameless, allocation_id id)
{
	enum { MOST_STEPS = 1 << 20, SHOWN = 3 };
	struct holder last[SHOWN], start, held = { RANK_NONE };
	allocation_id seen = id; /* by Brent: one of those passed, ever later */
	size_t count = 0;
	char *text;

	for (start = find_holder(nameless, id); start.id != NO_ALLOCATION;
	     start = find_holder(nameless, start.id)) {
		if (start.id == seen || count == MOST_STEPS)
			return strdup("");
		if ((count & (count - 1)) == 0)
			seen = start.id;
		if (count < SHOWN)
			last[count] = start;
		count++;
		held = start;
	}
	text = name_start(nameless, &start, count ? &held : NULL);
	if (text && count > SHOWN) {
		char *longer;

		if (asprintf(&longer, "%s -> ...", text) < 0)
			longer = NULL;
		free(text);
		text = longer;
	}
	for (size_t i = count < SHOWN ? count : SHOWN; i-- > 0;)
		text = add_step(nameless, text, &nameless->steps.items[last[i].step]);
	return text;
}

enum word_kind { WORD_ZERO, WORD_NUMBER, WORD_POINTER, WORD_KINDS };

bool nameless_is_pointer(const struct analysis *analysis, uint64_t word)
{
	return allocation_find(analysis_index(analysis), word) != NO_ALLOCATION ||
	       program_find_module(analysis_program(analysis), word);
}

/* Judge the words at that offset: pointers if one is, and the others are null. */
static enum word_kind judge_words(const struct analysis *analysis, const allocation_id *ids,
				  size_t count, uint64_t offset)
{
	const struct allocation_index *index = analysis_index(analysis);
	size_t counts[WORD_KINDS] = { 0 };

	for (size_t i = 0; i < count; i++) {
		uint64_t word;

		if (!image_read_word(analysis_image(analysis),
				     allocation_start(index, ids[i]) + offset, &word) ||
		    word == 0)
			counts[WORD_ZERO]++;
		else if (nameless_is_pointer(analysis, word))
			counts[WORD_POINTER]++;
		else
			counts[WORD_NUMBER]++;
	}
	if (counts[WORD_POINTER] > counts[WORD_NUMBER])
		return WORD_POINTER;
	return counts[WORD_NUMBER] ? WORD_NUMBER : WORD_ZERO;
}

/* The bytes of text at the start of a buffer, in runs of at least LEAST_RUN. */
struct text_in {
	size_t bytes, first; /* how many; where the first run begins */
};

static struct text_in find_text(const char *bytes, size_t size)
{
	enum { LEAST_RUN = 4 };
	struct text_in text = { 0 };

	for (size_t i = 0; i < size;) {
		size_t run = text_run(bytes + i, size - i);

		if (run >= LEAST_RUN) {
			text.first = text.bytes ? text.first : i;
			text.bytes += run;
		}
		i += run ? run : 1;
	}
	return text;
}

enum { TEXT_LOOKED_AT = 128 };

/* The beginning of an allocation. */
struct start {
	char bytes[TEXT_LOOKED_AT];
	size_t size; /* up to the last byte that is not 0 */
	struct text_in text;
};

/*
 * True if most of its beginning is text. Bytes of pointers are not, whatever they look like; nor is
 * what malloc writes into the first two words of a free block, as a link and a random key.
 */
static bool starts_with_text(const struct analysis *analysis, allocation_id id, struct start *ret)
{
	enum { LEAST = 8, OF_MALLOC = 2 };
	const bool is_free = allocation_state(analysis_index(analysis), id) != BLOCK_USED;
	const unsigned int word_size = image_word_size(analysis_image(analysis));
	uint64_t size = 0, length = allocation_size(analysis_index(analysis), id);
	const uint8_t *bytes = image_bytes(analysis_image(analysis),
					   allocation_start(analysis_index(analysis), id), &size);

	size = size < length ? size : length;
	ret->size = size < TEXT_LOOKED_AT ? (size_t)size : TEXT_LOOKED_AT;
	if (!bytes)
		return false;
	memcpy(ret->bytes, bytes, ret->size);
	for (size_t i = 0; i + word_size <= ret->size; i += word_size)
		if ((is_free && i < OF_MALLOC * word_size) ||
		    nameless_is_pointer(analysis, load_word(bytes + i, word_size)))
			memset(ret->bytes + i, 0, word_size);
	while (ret->size > 0 && ret->bytes[ret->size - 1] == '\0')
		ret->size--;
	ret->text = find_text(ret->bytes, ret->size);
	return ret->text.bytes >= LEAST && ret->text.bytes >= ret->size / 2;
}

/*
 * Write text as "\x85\x05...<html>", still to be escaped: two bytes before the text, if there are
 * more.
 */
static void write_text(const struct start *start, char ret[static SHAPE_TEXT_SIZE])
{
	enum { MOST_BEFORE = 4, BEFORE = 2, MOST_SHOWN = 24 };
	const char *text = start->bytes + start->text.first;
	size_t size = start->size - start->text.first, before = start->text.first;
	size_t run = text_run(text, size < MOST_SHOWN ? size : MOST_SHOWN);

	before = strnlen(start->bytes, before > MOST_BEFORE ? BEFORE : before);
	snprintf(ret, SHAPE_TEXT_SIZE, "\"%.*s%s%.*s%s\"", (int)before, start->bytes,
		 before < start->text.first ? "..." : "", (int)run, text, run < size ? "..." : "");
}

/* Write words as [int, 0 x3, ptr, ...]. */
static void write_words(const struct analysis *analysis, const allocation_id *ids, size_t count,
			char ret[static SHAPE_TEXT_SIZE])
{
	static const char *const names[] = { "0", "int", "ptr" };
	enum { MOST_WORDS = 8, MOST_RUNS = 4 };
	const unsigned int word = image_word_size(analysis_image(analysis));
	size_t words = (size_t)(allocation_size(analysis_index(analysis), ids[0]) / word);
	size_t looked_at = words < MOST_WORDS ? words : MOST_WORDS, first = 0, length = 0;

	for (size_t run = 0; first < looked_at && run < MOST_RUNS; run++) {
		enum word_kind kind = judge_words(analysis, ids, count, word * first);
		size_t end = first + 1;

		while (end < looked_at && judge_words(analysis, ids, count, word * end) == kind)
			end++;
		length += (size_t)snprintf(ret + length, SHAPE_TEXT_SIZE - length, "%s%s",
					   run == 0 ? "[" : ", ", names[kind]);
		if (end - first > 1)
			length += (size_t)snprintf(ret + length, SHAPE_TEXT_SIZE - length, " x%zu",
						   end - first);
		first = end;
	}
	if (length > 0)
		snprintf(ret + length, SHAPE_TEXT_SIZE - length, "%s]",
			 first < words ? ", ..." : "");
}

void nameless_shape(const struct analysis *analysis, const allocation_id *ids, size_t count,
		    bool no_content, char ret[static SHAPE_TEXT_SIZE])
{
	struct start start, text;
	size_t texts = 0;

	ret[0] = '\0';
	for (size_t i = 0; i < count; i++)
		if (starts_with_text(analysis, ids[i], &start)) {
			text = start;
			texts++;
		}
	if (count > 0 && texts <= count / 2)
		write_words(analysis, ids, count, ret);
	else if (count > 0 && no_content)
		snprintf(ret, SHAPE_TEXT_SIZE, "text");
	else if (count > 0)
		write_text(&text, ret);
}
