/*
 * The graph, roots, liveness and leak roots in a side file. What is large stays there: it is
 * mapped. What is loaded is checked, so that every id is that of an allocation, whatever the file
 * says;
 * that it is true is not checked.
 */
#ifndef ANALYZER_GRAPH_GRAPH_SIDE_H
#define ANALYZER_GRAPH_GRAPH_SIDE_H

#include "analyzer/base/side_file.h"
#include "analyzer/graph/graph.h"
#include "analyzer/graph/liveness.h"

struct error *graph_save(const struct graph *graph, struct side_writer *writer);
/* Only what is used may refer to anything. */
struct error *graph_load(struct side_file *file, const struct bitmap *used,
			 struct memory_account *account, struct graph **ret);

struct error *liveness_save(const struct liveness *liveness, struct side_writer *writer);
/* They must be those of what is used, but not anchored. */
struct error *liveness_load(struct side_file *file, const struct bitmap *used,
			    const struct bitmap *anchored, struct liveness *ret);

#endif
