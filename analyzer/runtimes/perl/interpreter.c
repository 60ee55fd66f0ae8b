/*
 * struct interpreter, intrpvar.h of Perl 5.18 to 5.40 with threads, where it is a block of
 *malloc(). It is known by the stacks that it begins with:
 *
 *	sp, op, pad | base, end of the arguments | save stack, i32 used, i32 size |
 *	scopes, i32, i32 | temporary values, last, floor, size | ...
 *
 * Behind the ends of stacks are values that nothing refers to any more.
 */
#include "analyzer/runtimes/module_data.h"
#include "analyzer/runtimes/perl/space.h"

enum {
	LEAST_SIZE = 2048,
	MOST_SIZE = 16384,
	FIRST_INFO = 26, /* where the word that leads to a PERL_SI may be */
	LAST_INFO = 34,
	MOST_INFOS = 64,
	CONTEXT = 104, /* bytes of a PERL_CONTEXT, at most */
	/* Words that leave_scope() of scope.c takes at once, and free_tmps(). */
	SAVES_AT_ONCE = 5,
	TEMPORARIES_AT_ONCE = 1,
	ITEMS = 32, /* of the body of an array: the start of its items */
	FILL = 16,
};

struct interpreter {
	uint64_t sp, op, pad, base, end;
	uint64_t saves;
	int32_t saves_used, saves_size;
	uint64_t scopes;
	int32_t scopes_used, scopes_size;
	uint64_t temporaries;
	int64_t temporaries_last, temporaries_floor, temporaries_size;
};

/* struct stackinfo, cop.h. */
struct info {
	uint64_t stack, contexts, previous, next;
	int32_t context, most_contexts;
};

static bool starts_block(const struct perl *perl, uint64_t address)
{
	return allocation_used_at(perl->space.index, address) != NO_ALLOCATION;
}

/* Do not check the first words, which malloc overwrites once the interpreter is freed. */
static bool has_stacks(const struct perl *perl, const struct interpreter *words)
{
	return words->saves_used >= 0 && words->saves_used <= words->saves_size &&
	       words->scopes_used >= 0 && words->scopes_used <= words->scopes_size &&
	       words->temporaries_last >= -1 && words->temporaries_last < words->temporaries_size &&
	       starts_block(perl, words->saves) && starts_block(perl, words->scopes) &&
	       starts_block(perl, words->temporaries);
}

static bool is_interpreter(const struct perl *perl, const struct interpreter *words)
{
	return words->base % PERL_WORD == 0 &&
	       words->sp - words->base <= words->end - words->base && words->base < words->end &&
	       starts_block(perl, words->base) && has_stacks(perl, words);
}

struct error *perl_add_live(struct perl *perl, allocation_id block, uint64_t start, uint64_t count)
{
	const struct allocation_index *index = perl->space.index;
	uint64_t end = allocation_start(index, block) + allocation_size(index, block), word;

	for (uint64_t i = 0; i < count && end - start >= PERL_WORD; i++, start += PERL_WORD)
		if (image_read_u64(perl->space.image, start, &word))
			TRY(array_append(&perl->live, (struct perl_word){ word }));
	return NULL;
}

/* The block at start is a stack, of which so many words are in use. */
static struct error *add_stack(struct perl *perl, uint64_t start, uint64_t count)
{
	allocation_id id = perl_claim_part(perl, start, PART_STACK, NO_ALLOCATION);

	return id == NO_ALLOCATION ? NULL : perl_add_live(perl, id, start, count);
}

/* The arguments of a stack that is not the current one are as many as its array says. */
static struct error *add_arguments(struct perl *perl, uint64_t array)
{
	struct view view = { perl->space.image };
	struct perl_head head;
	uint64_t items, last;

	if (perl_find_head(perl, array) == NO_ALLOCATION || !perl_read_head(&view, array, &head) ||
	    perl_type(&head) != PERL_PVAV || !view_word(&view, head.body + ITEMS, &items) ||
	    !view_word(&view, head.body + FILL, &last) || last == UINT64_MAX)
		return NULL;
	return add_stack(perl, items, last + 1);
}

static bool read_info(const struct perl *perl, uint64_t address, struct info *ret)
{
	return starts_block(perl, address) &&
	       image_read(perl->space.image, address, ret, sizeof(*ret)) &&
	       perl_find_head(perl, ret->stack) != NO_ALLOCATION &&
	       starts_block(perl, ret->contexts) && ret->context >= -1 &&
	       ret->context <= ret->most_contexts;
}

/* Gets each PERL_SI of an interpreter; an error ends the visit. */
typedef struct error *info_visitor(struct perl *perl, uint64_t address, const struct info *info,
				   const void *data);

static struct error *add_info(struct perl *perl, uint64_t address, const struct info *info,
			      const void *data)
{
	uint64_t contexts = (uint64_t)(info->context + 1) * CONTEXT / PERL_WORD;

	TRY(add_stack(perl, info->contexts, contexts));
	TRY(add_arguments(perl, info->stack));
	perl_claim_part(perl, address, PART_INTERPRETER, NO_ALLOCATION);
	return NULL;
}

static struct error *visit_chain(struct perl *perl, uint64_t address, bool forwards,
				 info_visitor *visit, const void *data)
{
	struct info info;

	for (int i = 0; i < MOST_INFOS && address && read_info(perl, address, &info); i++) {
		TRY(visit(perl, address, &info, data));
		address = forwards ? info.next : info.previous;
	}
	return NULL;
}

/* Visit the first, those before it, and those behind it. */
static struct error *visit_infos(struct perl *perl, uint64_t first, info_visitor *visit,
				 const void *data)
{
	struct info info;

	if (!read_info(perl, first, &info))
		return NULL;
	TRY(visit_chain(perl, first, false, visit, data));
	return visit_chain(perl, info.next, true, visit, data);
}

static struct error *add_interpreter(struct perl *perl, uint64_t start,
				     const struct interpreter *words)
{
	/*
	 * Perl lowers a stack's top before it reads what it takes off, and raises it behind what
	 * it has written: for a moment, the words above are in use.
	 */
	bool is_working = program_is_at_work(perl->space.program);
	uint64_t address;

	perl_claim_part(perl, start, PART_INTERPRETER, NO_ALLOCATION);
	TRY(add_stack(perl, words->base, (words->sp - words->base) / PERL_WORD + 1));
	TRY(add_stack(perl, words->saves,
		      (uint64_t)words->saves_used + (is_working ? SAVES_AT_ONCE : 0)));
	TRY(add_stack(perl, words->scopes, 0));
	TRY(add_stack(perl, words->temporaries,
		      (uint64_t)(words->temporaries_last + 1) +
			      (is_working ? TEMPORARIES_AT_ONCE : 0)));
	for (uint64_t i = FIRST_INFO; i <= LAST_INFO; i++) {
		struct info info;

		if (!image_read_u64(perl->space.image, start + PERL_WORD * i, &address) ||
		    !read_info(perl, address, &info))
			continue;
		TRY(array_append(&perl->interpreters,
				 (struct perl_interpreter){
					 .start = start,
					 .info = start + PERL_WORD * i,
					 .statement = start + PERL_WORD * (i - 2),
				 }));
		return visit_infos(perl, address, add_info, NULL);
	}
	return NULL;
}

/* True if the word points to an interpreter that perl_free() freed. */
static bool leads_to_freed(struct view *view, uint64_t place, uint64_t word, void *data)
{
	const struct perl *perl = data;
	struct interpreter words;

	return word % (2 * PERL_WORD) == 0 && !starts_block(perl, word) &&
	       view_read(view, word, &words, sizeof(words)) && has_stacks(perl, &words);
}

/* How large it was, by the word that malloc had in front of it; or not more than that. */
static uint64_t freed_size(struct view *view, uint64_t start)
{
	uint64_t size;

	if (!view_word(view, start - PERL_WORD, &size) || size < LEAST_SIZE || size > MOST_SIZE)
		return LEAST_SIZE;
	return size & ~(uint64_t)(2 * PERL_WORD - 1);
}

/*
 * A locale of newlocale(), glibc's struct __locale_struct with the names of 12 categories in the
 * same block: LC_ALL, the seventh, has no data.
 */
static bool is_locale(struct view *view, struct memory_range range)
{
	enum { CATEGORIES = 13, ALL = 6, NAMES = CATEGORIES + 3, WORDS = NAMES + CATEGORIES };
	uint64_t words[WORDS];
	size_t own = 0;

	if (!view_read(view, range.start, words, sizeof(words)) || words[ALL] != 0)
		return false;
	for (size_t i = 0; i < CATEGORIES; i++) {
		uint64_t name = words[NAMES + i];

		if ((i != ALL && !image_find(view->image, words[i])) ||
		    (i != ALL && !image_find(view->image, name)))
			return false;
		own += name >= range.start + sizeof(words) && name < range.end;
	}
	return own > 0;
}

static bool is_word(struct view *view, uint64_t place, uint64_t word, void *data)
{
	return word == *(const uint64_t *)data;
}

static bool is_left(const struct perl *perl, allocation_id id)
{
	array_for_each(left, &perl->left) {
		if (*left == id)
			return true;
	}
	return false;
}

/* Its end also loses the locale that its thread used: the first that nothing leads to. */
static allocation_id find_locale(const struct perl *perl)
{
	enum { LEAST_LOCALE = 240, MOST_LOCALE = 1024 };
	const struct allocation_index *index = perl->space.index;
	struct view view = { perl->space.image };
	size_t hint = 0;

	bitmap_for_each(i, allocation_used(index)) {
		struct memory_range range = allocation_range_near(index, (allocation_id)i, &hint);
		uint64_t size = range.end - range.start;

		if (size >= LEAST_LOCALE && size <= MOST_LOCALE && is_locale(&view, range) &&
		    !is_left(perl, (allocation_id)i) &&
		    !module_data_search(perl->space.image, perl->space.program, is_word,
					&range.start))
			return (allocation_id)i;
	}
	return NO_ALLOCATION;
}

/* At its end Perl frees the interpreter, but not all that it held. */
static struct error *find_left(struct perl *perl)
{
	const struct allocation_index *index = perl->space.index;
	struct view view = { perl->space.image };
	uint64_t place =
		module_data_search(perl->space.image, perl->space.program, leads_to_freed, perl);
	uint64_t start, word;

	if (!place || !view_word(&view, place, &start))
		return NULL;
	perl->freed = start;
	for (uint64_t i = 0, size = freed_size(&view, start); i < size; i += PERL_WORD) {
		allocation_id id = view_word(&view, start + i, &word) ? allocation_find(index, word)
								      : NO_ALLOCATION;

		if (id != NO_ALLOCATION && bitmap_get(allocation_used(index), id))
			TRY(array_append(&perl->left, id));
	}
	perl->locale = find_locale(perl);
	return NULL;
}

const char *perl_known_leak(struct object_space *space, allocation_id id)
{
	const struct perl *perl = (const struct perl *)space;

	if (perl->left.count > 0 && id == perl->locale)
		return "the locale that its thread used when perl_destruct() ended that";

	return is_left(perl, id) ? "memory that its interpreter held when perl_free() freed it"
				 : NULL;
}

struct error *perl_find_interpreters(struct perl *perl)
{
	const struct allocation_index *index = perl->space.index;
	struct view view = { perl->space.image };
	struct interpreter words;
	size_t hint = 0;

	perl->space.has_ended = true;
	bitmap_for_each(i, allocation_used(index)) {
		struct memory_range range = allocation_range_near(index, (allocation_id)i, &hint);
		uint64_t size = range.end - range.start;

		if (size >= LEAST_SIZE && size <= MOST_SIZE &&
		    view_read(&view, range.start, &words, sizeof(words)) &&
		    is_interpreter(perl, &words)) {
			perl->space.has_ended = false;
			TRY(add_interpreter(perl, range.start, &words));
		}
	}
	return perl->space.has_ended ? find_left(perl) : NULL;
}

static struct error *visit_counts(uint64_t start, const struct structure_visitor *visitor)
{
	const uint64_t ends[] = {
		offsetof(struct interpreter, saves_used),
		offsetof(struct interpreter, scopes),
		offsetof(struct interpreter, scopes_used),
		offsetof(struct interpreter, temporaries),
		offsetof(struct interpreter, temporaries_last),
		sizeof(struct interpreter),
	};

	for (size_t i = 0; i < COUNT_OF(ends); i += 2)
		TRY(visitor->number(visitor->data, start + ends[i], ends[i + 1] - ends[i]));
	return NULL;
}

/* Visit how many contexts there are, their types, and the depths of calls. */
static struct error *visit_contexts(struct perl *perl, uint64_t address, const struct info *info,
				    const void *data)
{
	enum { DEPTH = 80, TYPE = 0xf, SUB = 9 };
	const struct structure_visitor *visitor = data;
	struct view view = { perl->space.image };
	uint8_t type;

	TRY(visitor->number(visitor->data, address + offsetof(struct info, context),
			    sizeof(*info) - offsetof(struct info, context)));
	for (int32_t i = 0; i <= info->context; i++) {
		uint64_t context = info->contexts + (uint64_t)i * CONTEXT;

		if (!view_read(&view, context, &type, sizeof(type)))
			break;
		TRY(visitor->number(visitor->data, context, sizeof(type)));
		if ((type & TYPE) == SUB)
			TRY(visitor->number(visitor->data, context + DEPTH, sizeof(int32_t)));
	}
	return NULL;
}

struct error *perl_visit_interpreters(struct perl *perl, const struct structure_visitor *visitor)
{
	struct view view = { perl->space.image };
	uint64_t info;

	if (perl->freed)
		TRY(visit_counts(perl->freed, visitor));
	array_for_each(interpreter, &perl->interpreters) {
		TRY(visit_counts(interpreter->start, visitor));
		if (view_word(&view, interpreter->info, &info))
			TRY(visit_infos(perl, info, visit_contexts, visitor));
	}
	return NULL;
}

/* Code that is run once: not a subroutine. It is in no other code if it is the main program's. */
static bool is_main(const struct perl *perl, struct view *view, uint64_t address)
{
	enum { AROUND = 80, FLAGS = 92, IS_UNIQUE = 0x100 };
	struct perl_head head;
	uint64_t around;
	uint32_t flags;

	return perl_find_head(perl, address) != NO_ALLOCATION &&
	       perl_read_head(view, address, &head) && perl_type(&head) == PERL_PVCV &&
	       view_word(view, head.body + AROUND, &around) && !around &&
	       view_read(view, head.body + FLAGS, &flags, sizeof(flags)) && (flags & IS_UNIQUE);
}

/*
 * Says whether the names of the code's variables have their stated lengths, with or without fields.
 */
static int judge_names(struct view *view, uint64_t body, bool has_fields)
{
	enum { PADS = 72, LENGTH = 40, TEXT = 42, MOST = 1 << 10 };
	uint64_t pads, table, list, names[2], name, text;
	int right = 0;

	if (!view_word(view, body + PADS, &pads) || !pads ||
	    !view_word(view, pads + PERL_WORD, &table) || !view_word(view, table, &list) || !list ||
	    !view_read(view, list, names, sizeof(names)))
		return 0;
	for (uint64_t i = 1; i <= names[0] && i < MOST; i++) {
		uint64_t more = has_fields ? PERL_WORD : 0;

		if (view_word(view, names[1] + PERL_WORD * i, &name) && name &&
		    view_word(view, name, &text) && text)
			right += text == name + TEXT + more;
	}
	return right;
}

void perl_learn_names(struct perl *perl)
{
	enum { MOST_LOOKED_AT = 1 << 12 };
	struct view view = { perl->space.image };
	uint32_t code = address_map_find(&perl->space.classes.places, KIND_CODE);
	int votes = 0, looked_at = 0;

	array_for_each(interpreter, &perl->interpreters) {
		for (uint64_t i = 0; i < MOST_SIZE && !interpreter->code; i += PERL_WORD) {
			uint64_t word;

			if (view_word(&view, interpreter->start + i, &word) &&
			    is_main(perl, &view, word))
				interpreter->code = word;
		}
	}
	for (size_t i = 0; i < perl->parts.count && looked_at < MOST_LOOKED_AT; i++) {
		struct perl_head head;

		if (object_classes_get(&perl->space.classes, (allocation_id)i) != code + 1 ||
		    !perl_read_head(&view, allocation_start(perl->space.index, (allocation_id)i),
				    &head))
			continue;
		votes += judge_names(&view, head.body, true) - judge_names(&view, head.body, false);
		looked_at++;
	}
	perl->has_fields = votes > 0;
}
