/*
 * The buffers of Vec and String, and hash tables, which the runtime has found: see buffers.c and
 * tables.c.
 */
#include "analyzer/classify/classifier.h"
#include "analyzer/runtimes/rust/rust.h"

static const struct rust_buffers *buffers_of(const struct reader *reader)
{
	const struct rust *rust =
		(const struct rust *)runtimes_space(reader->runtimes, &runtime_rust);

	return rust && rust->buffers.layout.capacity != 0 ? &rust->buffers : NULL;
}

/* True if an allocation of that role is consistent with the three words. */
static bool may_be(const struct reader *reader, struct memory_range range, enum rust_role role,
		   uint64_t capacity, uint64_t length)
{
	return role == RUST_TEXT
		       ? length > 0 && rust_may_be_text(reader->index, range, capacity, length)
		       : rust_may_be_buffer(reader->index, range, capacity, length);
}

static void match(struct reader *reader, const struct reference *reference)
{
	const struct rust_buffers *buffers = buffers_of(reader);
	enum rust_role role =
		buffers ? (enum rust_role)buffers->roles.items[reference->target] : RUST_NO_BUFFER;
	enum rust_role kind = role == RUST_COUNTED_ELEMENTS ? RUST_ELEMENTS : role;
	uint64_t capacity, length;

	if (kind != RUST_NO_BUFFER && (int)kind == reader_kind(reader) &&
	    reference_words(reference, buffers->layout.capacity, 1, &capacity) &&
	    reference_words(reference, buffers->layout.length, 1, &length) &&
	    may_be(reader, reference->range, role, capacity, length))
		reader_claim(reader, reference->target,
			     reference->address +
				     (uint64_t)(8 * (int64_t)rust_layout_start(buffers->layout)));
}

/* The word that stands so many words behind the address of the elements. */
static bool read_beside(struct reader *reader, struct rust_layout layout, uint64_t owner, int words,
			uint64_t *ret)
{
	int64_t distance = words - rust_layout_start(layout);

	return reader_word(reader, owner + 8 * (uint64_t)distance, ret);
}

static bool read_numbers(struct reader *reader, struct memory_range range, uint64_t owner,
			 uint64_t *ret_capacity, uint64_t *ret_length)
{
	const struct rust_buffers *buffers = buffers_of(reader);
	uint64_t address;

	return buffers && owner && read_beside(reader, buffers->layout, owner, 0, &address) &&
	       address == range.start &&
	       read_beside(reader, buffers->layout, owner, buffers->layout.capacity,
			   ret_capacity) &&
	       read_beside(reader, buffers->layout, owner, buffers->layout.length, ret_length) &&
	       rust_may_be_buffer(reader->index, range, *ret_capacity, *ret_length);
}

static void tell_text(struct reader *reader, struct memory_range range, struct pattern_facts *facts)
{
	if (!read_numbers(reader, range, facts->owner, &facts->capacity, &facts->length))
		return;
	facts->unit = "bytes";
	facts->has_capacity = true;
	facts->dead = "unused end of a string";
	facts->live_end = facts->length;
	facts->is_measured = true;
	facts->asked = facts->capacity;
}

/* The third word may be where a VecDeque begins, rather than the length of a Vec. */
static void tell_elements(struct reader *reader, struct memory_range range,
			  struct pattern_facts *facts)
{
	const struct rust_buffers *buffers = buffers_of(reader);
	allocation_id id = allocation_find(reader->index, range.start);

	if (!read_numbers(reader, range, facts->owner, &facts->capacity, &facts->length))
		return;
	facts->unit = "elements";
	facts->has_capacity = true;
	facts->lacks_length = buffers->roles.items[id] != RUST_COUNTED_ELEMENTS;
}

CLASSIFIER(rust_vec_buffer, "RustVecBuffer", "the elements of a Vec or VecDeque of Rust",
	   "the elements of the Vec", .strength = STRENGTH_SPAN, .runtime = &runtime_rust,
	   .kind = RUST_ELEMENTS, .match = match, .tell = tell_elements, .is_plain = true);

CLASSIFIER(rust_string_text, "RustString", "the text of a String of Rust", "the text of the String",
	   .strength = STRENGTH_BUFFER, .runtime = &runtime_rust, .kind = RUST_TEXT, .match = match,
	   .tell = tell_text, .measures = true);

static const struct rust_table *table_of(const struct reader *reader, allocation_id id)
{
	const struct rust *rust =
		(const struct rust *)runtimes_space(reader->runtimes, &runtime_rust);

	return rust && id != NO_ALLOCATION ? rust_table_of(&rust->tables, id) : NULL;
}

static void inspect_table(struct reader *reader, const struct subject *subject)
{
	const struct rust_table *table = table_of(reader, subject->id);

	if (table)
		reader_claim(reader, subject->id, table->header);
}

static void tell_table(struct reader *reader, struct memory_range range,
		       struct pattern_facts *facts)
{
	const struct rust_table *table =
		table_of(reader, allocation_find(reader->index, range.start));

	if (!table)
		return;
	facts->unit = "elements";
	facts->length = table->count;
	facts->has_capacity = true;
	facts->capacity = table->capacity;
}

CLASSIFIER(rust_hash_table, "RustHashTable", "the elements of a HashMap or HashSet of Rust",
	   "the elements of the HashMap or HashSet", .strength = STRENGTH_MARKED, .is_plain = true,
	   .runtime = &runtime_rust, .pointerless = true, .inspect = inspect_table,
	   .tell = tell_table);
