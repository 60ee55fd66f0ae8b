/*
 * The implementation of struct sites, for the files that build and search it:
 *
 *	sites.c		from code; which calls give a value of a type
 *	kept_sites.c	from what was kept of another core of the same build
 *	sites_by_size.c	which calls may have given a block without a type
 *	sites_of_regex.c	whether the C library allocated it for a regular expression
 */
#pragma once

#include "analyzer/types/casts.h"
#include "analyzer/types/kept.h"
#include "analyzer/types/sites.h"

enum {
	MOST_TYPES = 3, /* that the result of one call becomes */
	NOT_AN_ARGUMENT = 0xff,
	LARGEST_HEADER = 4096, /* of a wrapper's */
};

/* A function that returns an allocation without a type. */
struct maker {
	uint64_t entry;
	uint8_t size, count; /* the arguments that are multiplied; NOT_AN_ARGUMENT: not known */
	bool is_constant;    /* a wrapper all of whose calls have constant sizes: they count */
	/* A wrapper may ask for so much more, and return an address that far behind the start. */
	uint16_t header, offset;
};

struct site {
	uint64_t address, function, callee;
	uint64_t arguments[MOST_PARAMETERS];
	uint32_t first_pointee; /* to what variables of its function point */
	type_number types[MOST_TYPES];
	uint8_t type_count;
	uint8_t pointee_count;
	uint8_t constant;
	uint8_t passed[MOST_PARAMETERS];  /* the arguments are added to these: see struct code_call
					   */
	uint8_t factors[MOST_PARAMETERS]; /* only while code is read */
	bool is_known;			  /* the callee has debug information */
	bool is_return;			  /* its function returns "void *" or "char *" */
	bool is_maker;			  /* the callee returns an allocation, as far as known */
	bool is_given;			  /* its function returns the result: */
	uint64_t given;			  /* so many bytes further on */
	uint8_t size, count;		  /* see struct maker */
	uint16_t header, offset;
};

/*
 * A call of a function of the C++ library, such as std::make_unique(), which may allocate; or of
 * one of the C library that makes parts of regular expressions, whose callee is REGEX_CALLS.
 */
struct library_call {
	uint64_t callee, address, function;
};

static const uint64_t REGEX_CALLS = 0;

/* In place of the functions that make these calls. */
#define REGEX_NAME "the C library's regular expressions"

/* How many blocks of a size are held that are a part of a regular expression, and others. */
struct libc_size {
	uint64_t size;
	uint32_t regex, others;
};

/* How many held blocks of a size are of a type; NO_TYPE: have one only inside. */
struct held_type {
	uint64_t size;
	type_number type;
	uint32_t count;
};

/* A call whose size is a constant; with the header. */
struct sized_call {
	uint64_t size;
	uint32_t site;
};

/* A call whose size is not a constant. */
struct varying_call {
	type_number type; /* see site_leads_to() */
	uint16_t offset;  /* see struct maker */
	uint32_t site;
};

/* The result of debug information for a call. */
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
	ARRAY(struct varying_call) varying;	  /* by type */
	HASH_TABLE(struct looked_up) looked_up;	  /* many leaks come from the same calls */
	const struct program *program;
	ARRAY(const struct module *) libraries;	 /* that have malloc(); only while code is read */
	ARRAY(struct call_slot) followed;	 /* the same */
	ARRAY(uint64_t) regex_functions;	 /* the same; where they begin */
	HASH_TABLE(struct libc_size) libc_sizes; /* if they were counted */
	HASH_TABLE(struct held_type) held;	 /* the same */
	bool has_libc_sizes, has_held;
	uint64_t function; /* whose call was noted last */
	size_t first;	   /* of its sites */
	uint32_t first_pointee;
	uint8_t pointee_count;
	bool was_read;	 /* all of its code */
	bool is_cut;	 /* there are more calls than are kept */
	bool has_unread; /* code without debug information may allocate, apart from the C library's
			  */
};

/* True if the size that a call requests is a constant; sets it. */
bool site_size(const struct site *site, uint64_t *ret);

/* The structure that the result of the call becomes; NO_TYPE: none, or several. */
type_number site_structure(const struct sites *sites, const struct site *site);

/*
 * The target of the call's result: that structure, or the pointer, number or byte that it is an
 * array of; NO_TYPE: unknown.
 */
type_number site_leads_to(const struct sites *sites, const struct site *site);

/* True if a value of one type is one of the other, or begins with it. */
bool sites_are_alike(const struct sites *sites, type_number type, type_number other);

/* A search and its result. */
struct site_search {
	struct sites *sites;
	type_number type; /* NO_TYPE: of any */
	struct site_functions found;
	size_t looked_up;
};

/* Add the function of a site, unless it allocates another type; false: there are too many. */
bool site_search_add(struct site_search *search, const struct site *site);

/* Add the functions that call the C library for regular expressions; false: see above. */
bool site_search_add_regex(struct site_search *search);

/* ---- sites_of_regex.c */

/* True if the C library makes the type, and the program calls it for that. */
bool sites_is_of_regex(const struct sites *sites, type_number type);

enum regex_share { NO_REGEX, SOME_REGEX, MOSTLY_REGEX };

/* How many of the held blocks of that size are parts of regular expressions. The typing may be
 * NULL. */
struct error *sites_find_regex_share(struct sites *sites, const struct typing *typing,
				     uint64_t size, enum regex_share *ret);

/* ---- kept_sites.c */

/* Keep what was read of code. */
void kept_sites_save(const struct kept_entry *entry, const struct sites *sites);

/* Set that to what is kept; false: it is not kept, or not the same in this core. */
bool kept_sites_load(const struct kept_entry *entry, struct sites *sites);
