/*
 * The tables of `waste`: how much there is of each kind, in what, and which contents are there more
 * than once.
 */
#ifndef CLI_VIEWS_WASTE_ROWS_H
#define CLI_VIEWS_WASTE_ROWS_H

#include "analyzer/account/waste.h"
#include "analyzer/report/report.h"

/* "duplicates"; also the word that asks for it. */
const char *waste_kind_name(enum waste_kind kind);

/* All kinds, or the only one that is not WASTE_KINDS. */
void waste_write_sums(struct report *report, const struct waste *waste, enum waste_kind only);

/* By type, most bytes first; limit is not 0. */
void waste_write_rows(struct report *report, const struct waste *waste, enum waste_kind only,
		      uint64_t limit);

/* Contents of which most bytes are duplicates. */
struct error *waste_write_contents(struct report *report, const struct analysis *analysis,
				   const struct waste *waste);

/* What is waste in all, and of how much it could not be told. */
void waste_write_total(struct report *report, const struct waste *waste, enum waste_kind only);

#endif
