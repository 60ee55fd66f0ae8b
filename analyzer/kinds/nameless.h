/*
 * Holders and shapes of allocations without a name.
 *
 * One pass over the used allocations and the roots notes for each allocation one word that refers
 * to it: that of a static variable rather than one of another allocation, that rather than one of
 * its own size, as the links of a list are, and a stack's last; of equal ones the word nearest to
 * its holder's start. Allocations of one size are one group if their words stand in the same
 * variable, or at the same offset of allocations of the same kind.
 */
#pragma once

#include "analyzer/kinds/kind_key.h"

enum { BY_HOLDER = BY_MORE }; /* keys are numbers of groups */

struct nameless;

/* Note what refers to the members, which are borrowed until then. Patterns and typing are as of
 * kind_typed(). */
struct error *nameless_create(struct analysis *analysis, const struct patterns *patterns,
			      const struct typing *typing, const struct bitmap *members,
			      struct nameless **ret);
void nameless_destroy(struct nameless *nameless);
DEFINE_CLEANUP(nameless_destroy, struct nameless *)

/*
 * The key of a member: BY_HOLDER, or plain where nothing refers to it. Plain is what its size and
 * owner make; or that of a text, of which only an object of a runtime's class counts as a holder.
 */
struct error *nameless_key(struct nameless *nameless, allocation_id id, kind_key plain,
			   kind_key *ret);

/* The plain key that such a key was made of; any other as it is. */
kind_key nameless_plain(const struct nameless *nameless, kind_key key);

/*
 * "+0x10 of a chain of 0x28", "shell_variables (bash)"; and how the allocation is reached,
 * "shell_variables -> +0x8 -> +0x10". To be freed; NULL if memory is short.
 */
char *nameless_holder(const struct nameless *nameless, kind_key key);
char *nameless_path(const struct nameless *nameless, allocation_id id);

/* "cache (server)", "static data of libfoo.so"; to be freed, NULL if memory is short. */
char *nameless_static(const struct analysis *analysis, uint64_t address);

/* True if the word is an address in a heap or a module. */
bool nameless_is_pointer(const struct analysis *analysis, uint64_t word);

/*
 * The shape of the first words of some allocations of one size, as "[int, 0 x3, ptr, ...]"; for
 * text, the start, or "text" without content. "" if there are none.
 */
enum { SHAPE_TEXT_SIZE = 128 };
void nameless_shape(const struct analysis *analysis, const allocation_id *ids, size_t count,
		    bool no_content, char ret[static SHAPE_TEXT_SIZE]);
