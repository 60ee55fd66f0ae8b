/*
 * The functions of a program, and those of them that allocate its objects.
 *
 * Where functions begin is read from what programs have for exceptions, which stays when symbols
 * are stripped: the table .eh_frame_hdr, or .eh_frame itself.
 */
#pragma once

#include "analyzer/base/address_map.h"
#include "analyzer/base/array.h"
#include "analyzer/heap/index.h"
#include "analyzer/program/debug/debug.h"

/* By address. A function ends where the next one starts: padding may be in it. */
struct function_list {
	ARRAY(struct memory_range);
};

/* The list is empty if the module has neither. */
struct error *function_list_init(struct function_list *list, const struct image *image,
				 const struct module *module, struct memory_account *account);

/*
 * Makers: the functions that allocate. They are those of the collector, their entries in the
 * program's linkage table, and the compiler's own around them.
 */
enum maker {
	MAKER_NONE,
	MAKER_SCANNED = 1, /* its objects may hold pointers */
	MAKER_ATOMIC = 2,
	MAKER_PLAIN = 4,   /* added: the compiler's, which optimisation removes */
	MAKER_GUESSED = 8, /* one of the first two */
};

struct makers {
	const struct image *image;
	struct debug *debug;
	struct address_map known; /* enum maker, by address */
	bool found;		  /* any */
};

/* Look for those that have symbols in the module. */
void makers_init(struct makers *makers, const struct image *image, struct debug *debug,
		 const struct module *module, struct memory_account *account);
void makers_deinit(struct makers *makers);

/*
 * Guess them in a static program that was stripped: the two functions into whose results most
 * numbers of types are stored.
 */
struct error *makers_guess(struct makers *makers, const struct function_list *list);

/* The kind of maker at address; follows entries of linkage tables. */
unsigned int maker_at(struct makers *makers, uint64_t address);
