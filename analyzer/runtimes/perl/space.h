/*
 * The values of a Perl 5 process, see allocators/perl/perl.h.
 *
 * Each value's head is an object. What belongs to it besides is a part of it: its body, its text,
 * its items or chains, entries, keys, code. Parts that only the interpreter has are nobody's.
 */
#pragma once

#include "allocators/perl/perl.h"
#include "analyzer/base/address_map.h"
#include "analyzer/base/bitmap.h"
#include "analyzer/base/budget.h"
#include "analyzer/program/debug/names.h"
#include "analyzer/runtimes/runtime.h"

/* The kinds of allocations. */
enum perl_part {
	PART_NONE,
	PART_HEAD,
	PART_BODY,
	PART_ENTRY,
	PART_TEXT,
	PART_ITEMS,
	PART_CHAINS,
	PART_KEY,
	PART_SHARED_KEY,
	PART_GLOB,
	PART_MAGIC,
	PART_OPS,
	PART_PADS,
	PART_STACK,
	PART_ARGUMENTS, /* items that their array does not count */
	PART_INTERPRETER,
	PART_TABLE,
	PART_WEAK, /* a value's list of weak references to it */
	PART_DATA,
	PART_OTHER,
};

/* Flags of heads. */
enum {
	PERL_IOK = 0x1100,
	PERL_NOK = 0x2200,
	PERL_POK = 0x4400,
	PERL_ROK = 0x800,
	PERL_GLOB = 0x8000,	  /* of a PVGV or PVLV */
	PERL_TEMPORARY = 0x20000, /* an operator's own */
	PERL_BLESSED = 0x100000,
	PERL_IS_SHARED = 0x10000000, /* its text is copied once written to */
};
static const uint32_t PERL_COUNTS_ITEMS = 1U << 30; /* of an array */
static const uint32_t PERL_WEAK = UINT32_C(1) << 31, PERL_SHARES_KEYS = 1U << 29;

/* Classes of what is not blessed, below all addresses. */
enum perl_kind {
	KIND_NONE,
	KIND_UNDEF,
	KIND_INTEGER,
	KIND_NUMBER,
	KIND_STRING,
	KIND_REFERENCE,
	KIND_WEAK_REFERENCE,
	KIND_INVLIST,
	KIND_REGEXP,
	KIND_GLOB,
	KIND_LVALUE,
	KIND_ARRAY,
	KIND_HASH,
	KIND_STASH,
	KIND_CODE,
	KIND_FORMAT,
	KIND_IO,
	KIND_OBJECT,
	PERL_KINDS,
};

enum { PERL_WORD = 8, PERL_MOST_NAME = 256 };

struct perl_word {
	uint64_t word;
};

/* One that is in use. */
struct perl_interpreter {
	uint64_t start;
	uint64_t info, statement; /* places of words: of its contexts, of what it is at */
	uint64_t code;		  /* of the main program; 0: not known */
};

struct perl {
	struct object_space space;
	const struct perl_arenas *arenas; /* of the heap */
	ARRAY(uint8_t) parts;		  /* by allocation: enum perl_part */
	ARRAY(allocation_id) links;	  /* of a part, the owner, or NO_ALLOCATION */
	ARRAY(allocation_id) found;	  /* parts, to be searched for more */
	/* Words in use on stacks and in arguments; sorted once parts are found. */
	ARRAY(struct perl_word) live;
	ARRAY(struct perl_interpreter) interpreters;
	ARRAY(allocation_id) left; /* that one which was freed still leads to */
	allocation_id locale;	   /* of one that was freed */
	uint64_t freed;		   /* its address; 0: none was */
	bool has_fields;	   /* names of variables have a word more, from 5.38 on */
	struct address_map weak;   /* of one that a hash knows: the hash's part that leads to it */
};

/* The value's head at address; NO_ALLOCATION: none is there. */
allocation_id perl_find_head(const struct perl *perl, uint64_t address);

/* The name of the package; false: the address is that of no stash. */
bool perl_read_package(const struct perl *perl, struct view *view, uint64_t stash, char *ret,
		       size_t size);
/* The text of a key (HEK) at address. */
bool perl_read_key(struct view *view, uint64_t address, char *ret, size_t size);

/*
 * The block that address is in becomes that part of the owner. NO_ALLOCATION: there is none in use,
 * or it is something already.
 */
allocation_id perl_claim_part(struct perl *perl, uint64_t address, enum perl_part part,
			      allocation_id owner);

/* Note count words from start on as in use, as far as the block goes. */
struct error *perl_add_live(struct perl *perl, allocation_id block, uint64_t start, uint64_t count);

/* Find all parts, in this order. */
struct error *perl_find_interpreters(struct perl *perl);
struct error *perl_find_parts(struct perl *perl);

/* Visit the numbers of those, as of one that was freed. */
struct error *perl_visit_interpreters(struct perl *perl, const struct structure_visitor *visitor);

/* Learn where main programs are, and how names of variables are laid out. */
void perl_learn_names(struct perl *perl);

#define PERL_SLOTS                                                                               \
	perl, release, find_objects, visit_structure, class_name, visit_bases, is_link, resolve, \
		liveness, known_leak
DECLARE_SLOTS(runtime, PERL_SLOTS);
#define PERL_CALL_SLOTS perl, visit_frames, find_exception
DECLARE_SLOTS(runtime_calls, PERL_CALL_SLOTS);
#define PERL_LINK_SLOTS \
	perl, find_globals, find_locals, walk_links, tell_step, referent, read_value, whole
DECLARE_SLOTS(runtime_links, PERL_LINK_SLOTS);
