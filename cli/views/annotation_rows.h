/*
 * The rows that --annotate adds behind each allocation that is shown.
 */
#ifndef CLI_VIEWS_ANNOTATION_ROWS_H
#define CLI_VIEWS_ANNOTATION_ROWS_H

#include "analyzer/query/annotate.h"
#include "cli/views/selection.h"

/* Prepare what the selection says of annotations; builds what is needed. */
struct error *annotation_rows_init(struct annotating *annotating, struct analysis *analysis,
				   const struct selection *selection);

/*
 * Write the annotations of the allocation, and an empty line, which then does not belong to the
 * allocation's own row.
 */
struct error *annotation_rows_write(struct annotating *annotating, allocation_id id,
				    struct report *report);

#endif
