/*
 * What is behind struct sites, for the files that make it: sites.c from code, kept_sites.c from
 * what was kept of another core of the same build.
 */
#ifndef ANALYZER_TYPES_SITES_PARTS_H
#define ANALYZER_TYPES_SITES_PARTS_H

#include "analyzer/types/casts.h"
#include "analyzer/types/kept.h"
#include "analyzer/types/sites.h"

enum {
	MOST_TYPES = 3, /* that the result of one call becomes */
	NOT_AN_ARGUMENT = 0xff,
};

/* A function that returns an allocation without a type. */
struct maker {
	uint64_t entry;
	uint8_t size, count; /* the arguments that are multiplied; NOT_AN_ARGUMENT: not known */
	bool is_constant;    /* a wrapper all of whose calls have constant sizes: they count */
};

struct site {
	uint64_t address, function, callee;
	uint64_t arguments[MOST_PARAMETERS];
	uint32_t first_pointee; /* to what variables of its function point */
	type_number types[MOST_TYPES];
	uint8_t type_count;
	uint8_t pointee_count;
	uint8_t constant;
	uint8_t passed[MOST_PARAMETERS];
	bool is_known;	     /* the callee has debug information */
	bool is_return;	     /* its function returns "void *" or "char *" */
	bool is_maker;	     /* the callee returns an allocation, as far as known */
	uint8_t size, count; /* see struct maker */
};

/* A call of a function of the C++ library, such as std::make_unique(), which may allocate. */
struct library_call {
	uint64_t callee, address, function;
};

/* A call whose size is a constant. */
struct sized_call {
	uint64_t size;
	uint32_t site;
};

/* What debug information said of a call. */
struct looked_up {
	uint64_t address;
	type_number type;
	bool is_found;
	struct code_function function;
};

struct sites {
	struct typing_input input;
	struct slot_table slots;
	ARRAY(struct site) all;
	ARRAY(type_number) pointees;
	HASH_TABLE(struct maker) makers;
	ARRAY(struct library_call) library_calls; /* by callee once all are known */
	ARRAY(struct sized_call) sized;		  /* by size */
	ARRAY(uint32_t) varying;		  /* calls whose sizes are not known */
	HASH_TABLE(struct looked_up) looked_up;	  /* many leaks come from the same calls */
	const struct program *program;
	ARRAY(const struct module *) libraries; /* that have malloc(); only while code is read */
	ARRAY(struct call_slot) followed;	/* the same */
	uint64_t function;			/* whose call was noted last */
	size_t first;				/* of its sites */
	uint32_t first_pointee;
	uint8_t pointee_count;
	bool was_read;	 /* all of its code */
	bool is_cut;	 /* there are more calls than are kept */
	bool has_unread; /* code without debug information may allocate, apart from the C library's
			  */
};

/* Keep what was read of code. */
void kept_sites_save(const struct kept_entry *entry, const struct sites *sites);

/* Set that to what is kept; false: it is not kept, or not the same in this core. */
bool kept_sites_load(const struct kept_entry *entry, struct sites *sites);

#endif
