/*
 * Names of the parts of an ownership tree: kinds of allocations, and roots.
 *
 * Kinds with the same text are one, such as the signatures of a class. Sizes tell apart what has no
 * name: each up to 1 KB, and powers of two above. Texts are escaped: printable UTF-8. There are at
 * most MOST_NAMES, whatever the dump says; what comes later is number 0.
 */
#pragma once

#include "analyzer/base/table.h"
#include "analyzer/kinds/kind_key.h"

struct owner_name {
	char *text;	  /* owned */
	bool by_power;	  /* unrecognized, of sizes up to twice the least */
	bool is_pattern;  /* or what a container has allocated, by its type */
	bool is_body;	  /* the elements of a container */
	enum known_by by; /* BY_NOTHING: a root, or what many have in common */
	uint64_t address; /* of a signature or a variable; 0: none */
};

enum { OTHER_NAMES, FIRST_NAME, MOST_NAMES = UINT16_MAX + 1 };

/* A kind, or the hash of a text, and its number. */
struct owner_name_entry {
	uint64_t key;
	uint16_t number;
};

struct owner_names {
	const struct analysis *analysis; /* borrowed */
	ARRAY(struct owner_name) list;
	HASH_TABLE(struct owner_name_entry) kinds, texts;
};

/* All of it is empty before; STAGE_CLASSES is built. */
struct error *owner_names_init(struct owner_names *names, struct analysis *analysis);
void owner_names_deinit(struct owner_names *names);

/* The number of the kind of an allocation of that size; the key is that of kind_typed(). */
struct error *owner_names_kind(struct owner_names *names, kind_key key, uint64_t size,
			       uint16_t *ret);

/* The number of a root's name, which is escaped; an address of 0 is none. */
struct error *owner_names_root(struct owner_names *names, const char *text, uint64_t address,
			       uint16_t *ret);

static inline const char *owner_text(const struct owner_names *names, uint32_t number)
{
	return names->list.items[number].text;
}

/* The name of allocations of that kind; for KIND_UNKNOWN, by size. To be freed. */
char *owner_kind_text(const struct analysis *analysis, kind_key key, allocation_id id);
