/*
 * The heap of V8, the engine of Node.js 18 to 24: chunks, and the objects in them.
 *
 *	chunk, at a multiple of 256 KiB (BasicMemoryChunk)
 *	| size | flags | heap | start | end | allocated | ... |     objects     |
 *	                          start of objects ^                        end ^
 *	object	| map, + 1 | ... |
 *	Map	| map of maps, + 1 | size in words, ... | type, ... |
 *
 * src/heap/basic-memory-chunk.h and src/objects/map.h of V8 10.2 and 11.3. In 12.4, flags and the
 * chunk's own address come first; in 13.6, flags and the address of the rest, which is from malloc
 * (src/heap/memory-chunk.h, base-page.h). An address of
 * an object is kept with 1 added, or 3 if it is weak. Objects follow each other: free memory in
 * between is an object of its own, but for what the program allocates from just now, [top, limit).
 * Which number a type has, and where members are, V8 says of itself in variables called v8dbg_...,
 * made for debuggers, which stripped programs have, too, as they are exported.
 */
#pragma once

#include "analyzer/heap/allocator.h"
#include "analyzer/image/view.h"

enum {
	V8_CHUNK_ALIGNMENT = 256 << 10,
	V8_WORD = 8,
	V8_TAGS = 3, /* of an address: */
	V8_STRONG = 1,
	V8_WEAK = 3,
	V8_TYPES =
		512, /* types of what is not of JavaScript have numbers below, see v8_is_script() */
};

enum v8_space { V8_NEW, V8_OLD, V8_LARGE, V8_CODE, V8_READ_ONLY, V8_SPACES };

struct v8_chunk {
	uint64_t address, size;
	uint64_t start, end; /* of the objects */
	uint64_t allocated;
	uint64_t heap; /* the struct Heap that it belongs to */
	enum v8_space space;
	bool is_from; /* new objects were there before the last collection of those */
};

/* Read the chunk at address, a multiple of V8_CHUNK_ALIGNMENT; false: none is there. */
bool v8_read_chunk(const struct image *image, uint64_t address, struct v8_chunk *ret);

/* Visit the numbers in its head. */
struct error *v8_visit_head(const struct image *image, const struct v8_chunk *chunk,
			    program_range_visitor *visit, void *data);

/* The rule for the size of objects whose map does not state it. */
enum v8_rule {
	V8_UNKNOWN, /* up to the next map */
	V8_ARRAY,
	V8_DOUBLES,
	V8_LIST,
	V8_PROPERTIES,
	V8_BYTES,
	V8_BYTECODE,
	V8_DESCRIPTORS,
	V8_FEEDBACK,
	V8_FREE,
};

/* Layout facts that V8 publishes in its own metadata. */
struct v8_layout {
	uint32_t map_type;
	uint32_t function_type, shared_type;
	uint32_t first_string_end; /* types below are texts */
	uint32_t free_type, number_type, scope_type;
	uint32_t free_unit; /* of the length of free memory, in bytes */
	uint32_t first_context, last_context;
	uint32_t representation, sequential, encoding, one_byte; /* of texts */
	uint32_t joined, sliced, thin;
	uint32_t text_length, text;
	uint32_t bytecode;
	uint32_t feedback;	  /* bytes of a FeedbackVector before its slots */
	uint32_t constructor;	  /* of a Map */
	uint32_t shared, name;	  /* of a JSFunction, a SharedFunctionInfo */
	uint32_t context, script; /* the same */
	/* Bits of a Map's third field. */
	uint32_t count_shift, count_mask, dictionary_shift;
	/* Bits in the details of a property. */
	uint32_t location_mask, index_shift, index_mask;
	uint32_t dictionary; /* items before the first entry of a dictionary */
	uint32_t global_type, cell_type, script_type;
	uint32_t hash_type, set_type, typed_array_type, array_buffer_type;
	uint32_t weak_map_type, weak_set_type, weak_ref_type, weak_cell_type;
	uint32_t promise_type, bound_type;	   /* of a Promise, a bound function */
	uint32_t message_type;			   /* of what is said of an exception */
	uint32_t async_type, async_generator_type; /* of a call of an async function */
	uint32_t view_buffer;			   /* of a view of a buffer: the JSArrayBuffer */
	uint32_t scope_names;			   /* of a ScopeInfo: the first name */
	uint32_t script_name;
	uint32_t dictionary_elements; /* the kind of elements that are a table by number */
	uint8_t rules[V8_TYPES];      /* enum v8_rule */
	const char *labels[V8_TYPES]; /* labels for objects of the type; NULL: none */
};

/* False: it does not say it. */
bool v8_find_layout(const struct image *image, const struct program *program,
		    struct v8_layout *ret);

/* Visit the numbers by which it does. */
struct error *v8_visit_layout(const struct image *image, const struct program *program,
			      program_range_visitor *visit, void *data);

struct v8_lab {
	uint64_t top, limit;
};

struct v8_heap_parts {
	struct v8_layout layout;
	ARRAY(struct v8_chunk) chunks; /* by address */
	ARRAY(struct v8_lab) labs;     /* buffers that allocations come from now */
	size_t own_labs;	       /* the first so many are of isolates */
	bool has_other_labs;	       /* the rest was looked for */
};

/* Find all; without a layout, there are no chunks in the list. */
struct error *v8_find(const struct image *image, const struct program *program,
		      struct v8_heap_parts *ret);

/*
 * The buffer whose free part begins there, also of those whose ends are outside of isolates: where
 * objects go that a thread of the collector moves, or that one allocates in the background. What
 * looks like one may be none, so ask for where no object can be read. NULL: there is none.
 */
struct error *v8_find_lab(const struct image *image, struct v8_heap_parts *parts, uint64_t top,
			  const struct v8_lab **ret);

/* The allocator of V8's heaps, made of chunks. */
extern const struct allocator allocator_v8;
const struct v8_heap_parts *v8_parts_of(const struct heap *heap);

/* The chunk that address is among the objects of, or the end of, or NULL. */
const struct v8_chunk *v8_find_chunk(const struct v8_heap_parts *parts, uint64_t address);

static inline void v8_release(struct v8_heap_parts *parts)
{
	array_release(&parts->chunks);
	array_release(&parts->labs);
}

/* True if the chunk's objects are reported as blocks; code and read-only spaces are roots. */
static inline bool v8_is_walked(const struct v8_chunk *chunk)
{
	return chunk->space != V8_CODE && chunk->space != V8_READ_ONLY;
}

/* Reads objects; each thread has one of its own. */
struct v8_reader {
	struct view view;
	const struct v8_layout *layout;
	uint64_t meta;	/* the map of maps, as it was seen last */
	uint64_t steps; /* taken along lists, see v8_step() */
};

/* False: a damaged dump has us go round and round. */
static inline bool v8_step(struct v8_reader *reader)
{
	static const uint64_t MOST_STEPS = UINT64_C(1) << 31;

	return reader->steps++ < MOST_STEPS;
}

struct v8_map {
	uint64_t address;
	uint32_t type;
	uint32_t size; /* of objects; 0: it differs */
};

/* The map that the word is the tagged address of; false: it is none. */
bool v8_read_map(struct v8_reader *reader, uint64_t word, struct v8_map *ret);

/* The map of the object that the word is the tagged address of. */
static inline bool v8_map_of(struct v8_reader *reader, uint64_t word, struct v8_map *ret)
{
	return (word & V8_TAGS) == V8_STRONG && view_word(&reader->view, word - V8_STRONG, &word) &&
	       v8_read_map(reader, word, ret);
}

struct v8_object {
	struct v8_map map;
	uint64_t size;
	bool is_free;
	bool is_plain; /* it has no references but to its map */
};

/* True if objects of the type belong to JavaScript. */
static inline bool v8_is_script(const struct v8_layout *layout, uint32_t type)
{
	return type >= V8_TYPES || type == layout->global_type;
}

/* The object at address, which ends at end at most; false: none is there. */
bool v8_read_object(struct v8_reader *reader, uint64_t address, uint64_t end,
		    struct v8_object *ret);

/*
 * The text of the tagged address of a string, or its beginning; what is not ASCII becomes '?'.
 * False: it is none, or outside of V8's heap.
 */
bool v8_read_text(struct v8_reader *reader, uint64_t word, char *ret, size_t size);
