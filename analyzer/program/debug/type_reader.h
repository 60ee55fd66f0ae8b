/*
 * Types as the debug information has them, each naming others by their entries: what type_table.c
 * makes types of.
 */
#pragma once

#include "analyzer/base/address_map.h"
#include "analyzer/base/array.h"
#include "analyzer/base/progress.h"
#include "analyzer/program/debug/data_type.h"
#include "analyzer/program/debug/debug_parts.h"

/* Longest chain of types made from types; the rest is ignored. */
enum { MOST_LINKS = 64 };

/* Entries other than types. */
enum { ALIAS = TYPE_KINDS };

/*
 * A type as it was read. Another one is named by the address of its entry in the section, which
 * tells it apart in all files at once; 0 is void.
 */
struct raw {
	const char *name;
	uint64_t size;
	uint64_t count;
	uint64_t target;
	uint32_t first_member, member_count;
	uint32_t first_bound, bound_count;
	uint8_t kind;
	uint8_t form; /* enum number_form */
	bool is_tagged;
};

struct raw_member {
	const char *name;
	uint64_t type;
	uint32_t offset;
	uint8_t bit_size, bit_offset;
	bool is_base, is_variant;
	uint32_t variant;
};

struct raw_variable {
	const char *name;
	const struct module *module;
	const char *file, *function;
	uint64_t address, size, type;
	bool is_thread_local;
};

/* The type's index in raws, later in types, by the address of its entry. */
struct entry {
	uint64_t address;
	uint32_t number;
};

/* A variable of a namespace that is defined elsewhere. */
struct declared_name {
	uint64_t entry;
	const char *name;
};

struct type_reader {
	struct debug *debug;
	struct progress *progress;
	struct debug_module *module;
	uint64_t bias;
	bool is_c;	      /* the unit */
	const char *file;     /* the unit's; or NULL */
	const char *function; /* around the entry; or NULL */
	uint64_t last;	      /* entry of it that was read, by its address */
	size_t steps;	      /* from entry to entry so far */
	ARRAY(struct raw) raws;
	ARRAY(struct raw_member) members;
	ARRAY(struct type_variant) variants; /* variants of one structure are adjacent */
	ARRAY(struct raw_variable) variables;
	ARRAY(struct entry) entries;
	ARRAY(uint64_t) bounds;		      /* of arrays of several dimensions */
	ARRAY(struct declared_name) declared; /* in the unit */
	struct address_map known; /* structures that were read, by a hash of what they are */
};

/* All are borrowed. */
void type_reader_init(struct type_reader *reader, struct debug *debug,
		      struct memory_account *account, struct progress *progress);
void type_reader_deinit(struct type_reader *reader);
DEFINE_DEINIT(type_reader_deinit, struct type_reader)

/* True if the module's files have debug information. Does not use libdw. */
bool debug_has_types(struct debug_module *module);

/* The module of the program, by its number, if its types are to be read; else NULL. */
struct debug_module *debug_typed_module(struct debug *debug, size_t number);

/*
 * Read all modules but the C library and its loader, whose few allocations are known by patterns
 * and libc_types.h, as far as memory and limits allow.
 */
struct error *type_reader_read(struct type_reader *reader);
