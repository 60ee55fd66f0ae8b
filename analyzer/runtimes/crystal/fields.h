/*
 * The fields of classes by offset, read from debug information when first asked for, and kept.
 */
#ifndef ANALYZER_RUNTIMES_CRYSTAL_FIELDS_H
#define ANALYZER_RUNTIMES_CRYSTAL_FIELDS_H

#include "analyzer/base/address_map.h"
#include "analyzer/base/array.h"
#include "analyzer/program/debug/debug.h"

struct field_table {
	struct debug *debug;	     /* borrowed, as is the module */
	const struct module *module; /* the program */
	struct address_map known;    /* types that were looked up */
	struct address_map numbers;  /* of names, by type and offset */
	ARRAY(const char *) names;   /* of debug's */
};

void field_table_init(struct field_table *table, struct debug *debug, const struct module *module,
		      struct memory_account *account);
void field_table_deinit(struct field_table *table);

/* The field at that offset of the type of that name and number, or NULL. */
const char *field_table_find(struct field_table *table, uint32_t number, const char *name,
			     uint64_t offset);

#endif
