/*
 * The functions by which a program of Crystal allocates its objects: those of the collector, their
 * entries in the program's linkage table, and the compiler's own around them.
 */
#ifndef ANALYZER_RUNTIMES_CRYSTAL_MAKERS_H
#define ANALYZER_RUNTIMES_CRYSTAL_MAKERS_H

#include "analyzer/base/address_map.h"
#include "analyzer/program/debug/debug.h"

enum maker {
	MAKER_NONE,
	MAKER_SCANNED = 1, /* what it allocates may hold pointers */
	MAKER_ATOMIC = 2,
	MAKER_PLAIN = 4,   /* added: the compiler's, which optimisation removes */
	MAKER_GUESSED = 8, /* which of the first two it is, is not known */
};

struct makers {
	const struct image *image;
	struct debug *debug;
	struct address_map known; /* enum maker, by address */
	bool found;
};

/* Look for those that have symbols in the module. */
struct error *makers_init(struct makers *makers, const struct image *image, struct debug *debug,
			  const struct module *module, struct memory_account *account);
void makers_deinit(struct makers *makers);
DEFINE_DEINIT(makers_deinit, struct makers)

/* Whether any was found so far. */
bool makers_found(const struct makers *makers);

/* The function at address is taken for one, for want of symbols. */
void makers_add_guess(struct makers *makers, uint64_t address);

/* What the function at address is; entries of linkage tables are followed. */
unsigned int maker_at(struct makers *makers, uint64_t address);

#endif
