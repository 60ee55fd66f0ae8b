/*
 * Slots of objects, by their addresses, and what differs between versions of their layouts.
 */
#pragma once

#include "analyzer/base/bitmap.h"
#include "analyzer/image/view.h"
#include "analyzer/runtimes/runtime.h"

/* Types of objects, include/ruby/internal/value_type.h. */
enum ruby_type {
	RUBY_OBJECT = 1,
	RUBY_CLASS = 2,
	RUBY_MODULE = 3,
	RUBY_FLOAT = 4,
	RUBY_STRING = 5,
	RUBY_REGEXP = 6,
	RUBY_ARRAY = 7,
	RUBY_HASH = 8,
	RUBY_STRUCT = 9,
	RUBY_BIGNUM = 10,
	RUBY_FILE = 11,
	RUBY_DATA = 12,
	RUBY_MATCH = 13,
	RUBY_SYMBOL = 20,
	RUBY_IMEMO = 26,
	RUBY_NODE = 27,
	RUBY_ICLASS = 28,
	RUBY_MOVED = 30,
	RUBY_TYPES = 32,
};

/* Kinds of T_IMEMO, internal/imemo.h: bits 12 to 15 of the flags; see ruby_imemo_kind(). */
enum ruby_imemo {
	RUBY_ENV = 0,
	RUBY_CREF = 1,
	RUBY_SVAR = 2,
	RUBY_THROW_DATA = 3,
	RUBY_METHOD = 6,
	RUBY_ISEQ = 7,
	RUBY_CALLINFO = 11,
	RUBY_CALLCACHE = 12,
	RUBY_CONSTCACHE = 13,
	RUBY_FIELDS = 14, /* from 4.0 on: instance variables of what has no room for them */
	RUBY_IMEMO_SHIFT = 12,
	RUBY_IMEMO_KINDS = 16,
};

enum {
	RUBY_MOST_NAME = 200,
	RUBY_HAS_APART = 1 << 10, /* of flags: instance variables that are not in the object */
};

struct ruby_slots {
	const struct image *image;
	const struct allocation_index *index;
	struct bitmap slots;	/* used allocations that are slots */
	bool has_length_behind; /* strings have their length behind the class: 3.2 and later */
	uint64_t singleton;	/* the flag of singleton classes */
	bool has_boxes;		/* 4.0: classes have an object_id and a box before all else */
	uint32_t name_word;	/* of a class; 0: the name is in its table: */
	uint64_t name_key;	/* of that; 0: there are no names */
};

/* Find them in the index alone; none if there are none. */
struct error *ruby_slots_find(struct ruby_slots *slots, const struct runtime_context *context);

/* Find the slots, then detect the layout. */
struct error *ruby_slots_init(struct ruby_slots *slots, const struct runtime_context *context);
void ruby_slots_deinit(struct ruby_slots *slots);
DEFINE_DEINIT(ruby_slots_deinit, struct ruby_slots)

/* The flags of the object whose slot begins there; 0: none does. */
uint64_t ruby_slot_flags(const struct ruby_slots *slots, struct view *view, uint64_t address);

/* True if flags are those of a T_IMEMO of that kind. */
static inline bool ruby_is_imemo(uint64_t flags, enum ruby_imemo kind)
{
	return flags % RUBY_TYPES == RUBY_IMEMO &&
	       (flags >> RUBY_IMEMO_SHIFT) % RUBY_IMEMO_KINDS == kind;
}

/* The kind of a T_IMEMO. 4.0 has one less, so those behind have smaller numbers there. */
static inline uint64_t ruby_imemo_kind(const struct ruby_slots *slots, uint64_t flags)
{
	enum { FIRST_MOVED = 10 };
	uint64_t kind = (flags >> RUBY_IMEMO_SHIFT) % RUBY_IMEMO_KINDS;

	return kind + (slots->has_boxes && kind >= FIRST_MOVED && kind < RUBY_IMEMO_KINDS - 1);
}

/*
 * True if instance variables of a T_OBJECT, or of an object that has those of another, are in its
 * slot.
 */
static inline bool ruby_is_embedded(const struct ruby_slots *slots, uint64_t flags)
{
	enum { EMBEDDED = 1 << 13, APART = 1 << 16 };

	return slots->has_boxes ? !(flags & APART) : (flags & EMBEDDED) != 0;
}

/* Find the text of a string, and its length; false: it is no string. */
bool ruby_find_text(const struct ruby_slots *slots, struct view *view, uint64_t address,
		    uint64_t *ret_text, uint64_t *ret_length);

/* Copy the start of a string, at most size - 1 bytes. */
bool ruby_read_text(const struct ruby_slots *slots, struct view *view, uint64_t address, char *ret,
		    size_t size);

/* How many bytes a string has; 0 also if it is none. */
uint64_t ruby_text_length(const struct ruby_slots *slots, struct view *view, uint64_t address);

/* The elements of an array; false: it is none. */
bool ruby_read_array(const struct ruby_slots *slots, struct view *view, uint64_t address,
		     uint64_t *ret_elements, uint64_t *ret_count);

/* The object whose memory a string or array shares; 0: none. */
uint64_t ruby_shared_with(const struct ruby_slots *slots, struct view *view, uint64_t address);

/* Copy a string that can be printed. */
bool ruby_read_string(const struct ruby_slots *slots, struct view *view, uint64_t address,
		      char ret[RUBY_MOST_NAME + 1]);

/* The string that names the class or module; 0: it has none. */
uint64_t ruby_find_name(const struct ruby_slots *slots, struct view *view, uint64_t address);

/* Copy the name of the class or module; false: it has none. */
bool ruby_read_name(const struct ruby_slots *slots, struct view *view, uint64_t address,
		    char ret[RUBY_MOST_NAME + 1]);

/* The next in the order of inheritance; 0: none is. */
uint64_t ruby_super(const struct ruby_slots *slots, struct view *view, uint64_t address);

/* The class itself that the word leads to, behind singletons and modules; 0: none. */
uint64_t ruby_real_class(const struct ruby_slots *slots, struct view *view, uint64_t address);

/* The object of a singleton class; 0: it is no singleton class, or the object is unknown. */
uint64_t ruby_attached(const struct ruby_slots *slots, struct view *view, uint64_t address);
