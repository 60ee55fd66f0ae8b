/*
 * Boxes and arrows, for formats that draw graphs: kinds (frames.h), or allocations (sample.h). What
 * is beyond the limit stands in a box of its own, "12 more".
 */
#ifndef ANALYZER_EXPORT_PICTURE_H
#define ANALYZER_EXPORT_PICTURE_H

#include "analyzer/export/export.h"

enum box_kind { BOX_ROOT, BOX_KIND, BOX_ALLOCATION, BOX_OTHERS };

struct box {
	enum box_kind kind;
	char *text;	   /* its name; owned */
	uint64_t address;  /* of an allocation */
	uint64_t count;	   /* of allocations, itself or with all below */
	uint64_t bytes;	   /* of these */
	uint64_t retained; /* with all that is below */
};

struct arrow {
	uint32_t from, to;
	bool is_reference; /* from one allocation to another; else the one dominates the other */
};

struct picture {
	ARRAY(struct box) boxes;
	ARRAY(struct arrow) arrows;
};

/* ret is all zeros. */
struct error *picture_make(const struct export *export, struct picture *ret);
void picture_deinit(struct picture *picture);
DEFINE_DEINIT(picture_deinit, struct picture)

/* "1,234 bytes in 5 allocations", to be freed; NULL if memory is short. */
char *box_amount(const struct box *box);

#endif
