#include "analyzer/classify/signature.h"

#include "analyzer/base/address_map.h"
#include "analyzer/classify/control_block.h"
#include "analyzer/classify/exceptions.h"
#include "analyzer/classify/literal.h"
#include "analyzer/classify/type_names.h"
#include "analyzer/heap/debug_header.h"

#include <inttypes.h>

enum {
	WORD = sizeof(uint64_t),
	/* Data with references has one near its start. */
	SEARCHED = 64 * WORD,
	SEARCHED_UNNAMED = 4 * WORD,
	CODE_ALIGNMENT = 16,
	NUMBER_ALIGNMENT = 4,
	/* A constant that objects of so many sizes begin with is no type. */
	MANY_SIZES = 5,
	/* No object of one class is as large as those of so many others. */
	MANY_CLASSES = 4,
};

enum verdict { REFUSED, ACCEPTED, UNSURE };

/* The sizes of allocations that begin with a word: a bit for each 16 bytes, modulo 64. */
struct word_sizes {
	uint64_t word, sizes;
};

/* Some first words of large blocks of one size. */
struct beginnings {
	uint64_t size, words[MANY_CLASSES];
};

struct signature_judge {
	struct signature_judge_input input;
	struct address_map verdicts;
	bool counted; /* the following are known */
	HASH_TABLE(struct word_sizes) words;
	HASH_TABLE(struct beginnings) blocks;
};

struct error *signature_judge_create(const struct signature_judge_input *input,
				     struct signature_judge **ret)
{
	struct signature_judge *judge = calloc(1, sizeof(*judge));

	TRY_MEMORY(judge);
	judge->input = *input;
	arrays_use(input->account, &judge->verdicts, &judge->words, &judge->blocks);
	*ret = judge;
	return NULL;
}

void signature_judge_destroy(struct signature_judge *judge)
{
	tables_release(&judge->verdicts, &judge->words, &judge->blocks);
	free(judge);
}

/* True if one of the words from start on is an address in a module. */
static bool refers(const struct signature_judge *judge, uint64_t start, uint64_t size)
{
	const unsigned int width = image_word_size(judge->input.image);

	for (uint64_t offset = 0; offset + width <= size; offset += width) {
		uint64_t word;

		if (!image_read_word(judge->input.image, start + offset, &word))
			return false;
		if (program_find_module(judge->input.program, word))
			return true;
	}
	return false;
}

/* A link of a free list of which one or two bytes were written over still leads near the arena. */
static bool may_be_link(const struct signature_judge *judge, uint64_t word)
{
	enum { OVERWRITTEN_BITS = 16 };
	uint64_t links = judge->input.links;

	return literal_overwrote(word) || (links && (word ^ links) >> OVERWRITTEN_BITS == 0);
}

static enum verdict judge_named(const struct signature_judge *judge, uint64_t word,
				const struct region *region, const struct symbol *symbol)
{
	uint64_t left = symbol->start + symbol->size - word;

	if (region->rights & RIGHT_EXECUTE)
		return symbol->start == word ? ACCEPTED : REFUSED;
	if (symbol->start != word && (word % NUMBER_ALIGNMENT != 0 || may_be_link(judge, word)))
		return REFUSED;
	if (symbol->size == 0)
		return ACCEPTED;
	return refers(judge, word, MIN(left, SEARCHED)) ? ACCEPTED : UNSURE;
}

/* Without symbols, a table is known by what it refers to. */
static bool judge_unnamed(const struct signature_judge *judge, uint64_t word,
			  const struct region *region)
{
	struct debug *debug = judge->input.debug;
	uint64_t available;

	if (may_be_link(judge, word) || !program_find_module(judge->input.program, word))
		return false;
	if (debug_has_all_symbols(debug, word))
		return false;
	if (region->rights & RIGHT_EXECUTE)
		return word % CODE_ALIGNMENT == 0;
	if (!image_bytes(judge->input.image, word, &available))
		return true;
	return word % image_word_size(judge->input.image) == 0 &&
	       refers(judge, word, SEARCHED_UNNAMED);
}

static enum verdict find_verdict(struct signature_judge *judge, uint64_t word)
{
	const struct image *image = judge->input.image;
	const struct region *region = image_find(image, word);
	struct symbol symbol;
	size_t length;

	if (classes_is_class(judge->input.classes, word) ||
	    classes_mark(judge->input.classes, word))
		return ACCEPTED;
	if (!region)
		return REFUSED;
	if (!(region->rights & RIGHT_EXECUTE) && !may_be_link(judge, word) &&
	    literal_find(image, word, &length))
		return ACCEPTED;
	if (debug_symbol(judge->input.debug, word, &symbol))
		return judge_named(judge, word, region, &symbol);
	return judge_unnamed(judge, word, region) ? ACCEPTED : REFUSED;
}

/* Note that an object of that size begins with the word; false: memory is short. */
static bool add_size(struct signature_judge *judge, uint64_t word, uint64_t size)
{
	struct word_sizes *known = table_obtain(&judge->words, word, item, item->word == word,
						(struct word_sizes){ word });
	struct beginnings *beginnings;

	if (!known)
		return false;
	known->sizes |= UINT64_C(1) << (size / 16 % 64);
	if (size < LEAST_SLAB)
		return true;
	beginnings = table_obtain(&judge->blocks, size, item, item->size == size,
				  (struct beginnings){ size });
	for (size_t i = 0; beginnings && i < MANY_CLASSES; i++) {
		if (beginnings->words[i] == word)
			break;
		if (beginnings->words[i])
			continue;
		if (classes_is_class(judge->input.classes, word))
			beginnings->words[i] = word;
		break;
	}
	return beginnings;
}

/* Sizes and first words of the first allocations: enough to see whether there are many. */
static void count_sizes(struct signature_judge *judge)
{
	enum { MOST = 1 << 20 };
	const struct allocation_index *index = judge->input.index;
	struct view view = { judge->input.image };
	size_t hint = 0, visited = 0;

	if (judge->counted)
		return;
	judge->counted = true;
	bitmap_for_each(id, allocation_used(index)) {
		struct memory_range range = allocation_range_near(index, (allocation_id)id, &hint);
		uint64_t word;

		if (visited++ == MOST)
			break;
		if (view_word(&view, range.start, &word) &&
		    program_find_module(judge->input.program, word) &&
		    !add_size(judge, word, range.end - range.start))
			break;
	}
}

static bool has_many_sizes(struct signature_judge *judge, uint64_t word)
{
	const struct word_sizes *known;

	count_sizes(judge);
	known = table_find(&judge->words, word, item, item->word == word);
	return known && bits_count(known->sizes) >= MANY_SIZES;
}

/* True if blocks of that size begin with objects of several classes. */
static bool signature_judge_is_size_of_many(struct signature_judge *judge, uint64_t size)
{
	const struct beginnings *known;

	count_sizes(judge);
	known = table_find(&judge->blocks, size, item, item->size == size);
	return known && known->words[MANY_CLASSES - 1] != 0;
}

/* Each address is judged once. Not for several threads at a time. */
static bool signature_judge_accepts(struct signature_judge *judge, uint64_t word)
{
	uint32_t known = address_map_find(&judge->verdicts, word);
	struct error *error;
	enum verdict verdict;

	if (known != NOT_IN_MAP)
		return known == ACCEPTED;
	verdict = find_verdict(judge, word);
	if (verdict == UNSURE)
		verdict = has_many_sizes(judge, word) ? REFUSED : ACCEPTED;
	error = address_map_add(&judge->verdicts, word, verdict);
	if (error)
		error_destroy(error);
	return verdict == ACCEPTED;
}

uint64_t signature_object(const struct signature_reader *reader, allocation_id id, uint64_t start)
{
	struct debug_header header;

	if (reader->managed && bitmap_get(reader->managed, id) &&
	    debug_header_read(reader->view.image, start, &header))
		return header.object;
	return start;
}

/* The region that the word leads to, or NULL: most lead to the same heap. */
static const struct region *find_target(struct signature_reader *reader, uint64_t word)
{
	const struct region *region = reader->target;

	if (region && word - region->start < region->end - region->start)
		return region;
	region = image_find(reader->view.image, word);
	if (region)
		reader->target = region;
	return region;
}

/* Or the vtable of a program whose relocated data stayed writable. */
static bool is_constant(struct signature_reader *reader, uint64_t word)
{
	const struct region *region = find_target(reader, word);

	if (!region || !(region->rights & RIGHT_READ))
		return false;
	return !(region->rights & RIGHT_WRITE) ||
	       (region->mapping && reader->classes && classes_is_vtable(reader->classes, word));
}

/* Most allocations begin with the same few words. */
static const struct known_signature *know_word(struct signature_reader *reader, uint64_t word)
{
	struct known_signature *known = &reader->known[word / 16 % KNOWN_SIGNATURES];

	if (known->word == word)
		return known;
	*known = (struct known_signature){
		.word = word,
		.object = NO_CONTROL_BLOCK,
		.constant = is_constant(reader, word),
	};
	if (known->constant && reader->classes)
		known->object = classes_control_block(reader->classes, word);
	return known;
}

/*
 * An exception has no vtable: it begins with a count, or with the address of the exception that is
 * thrown again.
 */
static uint64_t exception_signature(struct signature_reader *reader, struct memory_range range,
				    uint64_t word)
{
	struct exception exception;

	if (!reader->classes || !exception_may_begin(range, word) ||
	    !classes_may_throw(reader->classes) ||
	    !exception_read(&reader->view, range, word, &exception))
		return 0;
	return signature_mark(exception.type,
			      exception.is_rethrown ? MARK_RETHROWN : MARK_EXCEPTION);
}

/* The signature of a control block without an object in it, or with a destroyed object. */
static uint64_t control_block_signature(struct signature_reader *reader, uint64_t vtable,
					uint64_t start)
{
	struct shared_counts counts;

	return control_block_read(&reader->view, start, &counts) && counts.uses == 0
		       ? signature_mark(vtable, MARK_DESTROYED)
		       : vtable;
}

/* The vtable of the object inside of a control block, or that of the block. */
static uint64_t object_vtable(struct signature_reader *reader, const struct known_signature *known,
			      uint64_t start, uint64_t size)
{
	uint64_t word = control_block_signature(reader, known->word, start);

	if (word != known->word || known->object == 0)
		return word;
	if (size < known->object + image_word_size(reader->view.image) ||
	    !view_word(&reader->view, start + known->object, &word) ||
	    !classes_is_vtable(reader->classes, word))
		return known->word;
	return word;
}

bool signature_tell_counts(struct signature_reader *reader, struct memory_range range, char *ret,
			   size_t size)
{
	struct shared_counts counts;
	struct exception exception;
	uint64_t word;

	if (!reader->classes || !view_word(&reader->view, range.start, &word))
		return false;
	if (exception_signature(reader, range, word) &&
	    exception_read(&reader->view, range, word, &exception)) {
		snprintf(ret, size, "an exception: use count %" PRIu64, exception.uses);
		return true;
	}
	if (classes_control_block(reader->classes, word) == NO_CONTROL_BLOCK ||
	    !control_block_read(&reader->view, range.start, &counts))
		return false;
	snprintf(ret, size,
		 "counted by std::shared_ptr: use count %" PRIu64 ", weak count %" PRIu64,
		 counts.uses, counts.weak);
	return true;
}

/* True if an object may begin with the vtable, rather than a subobject behind its start. */
static bool is_whole(struct signature_reader *reader, uint64_t word)
{
	uint64_t to_top;

	return is_constant(reader, word) &&
	       image_read_word(reader->view.image, word - 2 * image_word_size(reader->view.image),
			       &to_top) &&
	       to_top == 0 && classes_is_class(reader->classes, word);
}

/*
 * True if the block, which begins with an object of that class, holds several objects that cannot
 * be parts of one: its own class twice; or two classes, if blocks of this size begin with so many
 * that the size belongs to none.
 */
static bool is_slab(struct signature_reader *reader, uint64_t vtable, uint64_t start, uint64_t size)
{
	enum { SEARCHED_SLAB = 1 << 16, NEAR_BITS = 32 };
	uint64_t end = size < SEARCHED_SLAB ? size : SEARCHED_SLAB, other = 0, word;
	unsigned int alike = 0;
	bool several = false;

	if (!reader->judge || !classes_is_class(reader->classes, vtable))
		return false;
	const unsigned int width = image_word_size(reader->view.image);

	for (uint64_t i = 2 * width; i + width <= end && alike < 2; i += width) {
		if (!view_word(&reader->view, start + i, &word))
			return false;
		alike += word == vtable;
		if (several || word == vtable || word % width != 0 ||
		    (word ^ vtable) >> NEAR_BITS != 0 || !is_whole(reader, word))
			continue;
		several = other && word != other;
		other = word;
	}
	return alike >= 2 || (several && signature_judge_is_size_of_many(reader->judge, size));
}

uint64_t signature_candidate(struct signature_reader *reader, allocation_id id,
			     struct memory_range range)
{
	const struct known_signature *known;
	uint64_t word, start;

	if (reader->runtimes) {
		struct object_part part;

		word = runtimes_class_of(reader->runtimes, id);
		if (word)
			return word;
		if (runtimes_part_of(reader->runtimes, id, &part))
			return part.number;
	}
	if (!bitmap_get(allocation_used(reader->index), id) ||
	    range.end - range.start < image_word_size(reader->view.image))
		return 0;
	start = signature_object(reader, id, range.start);
	if (!(reader->kept && kept_words_find(reader->kept, id, &word)) &&
	    !view_word(&reader->view, start, &word))
		return 0;
	known = know_word(reader, word);
	if (!known->constant)
		return exception_signature(reader, range, word);
	if (known->object != NO_CONTROL_BLOCK)
		return object_vtable(reader, known, start, range.end - start);
	return range.end - start >= LEAST_SLAB && is_slab(reader, word, start, range.end - start)
		       ? signature_mark(word, MARK_SLAB)
		       : word;
}

bool signature_is_right(const struct signature_reader *reader, uint64_t candidate)
{
	return !reader->judge || runtimes_have_class(reader->runtimes, candidate) ||
	       signature_judge_accepts(reader->judge, candidate);
}

uint64_t signature_read(struct signature_reader *reader, allocation_id id,
			struct memory_range range)
{
	uint64_t candidate = signature_candidate(reader, id, range);

	return candidate && signature_is_right(reader, candidate) ? candidate : 0;
}
