/*
 * What holds a likely leak: the stale words that lead to it.
 */
#ifndef ANALYZER_GATE_HOLDER_H
#define ANALYZER_GATE_HOLDER_H

#include "analyzer/gate/leak_kinds.h"
#include "analyzer/gate/shape.h"

/* Fill in what the kind tells of its holder. Builds STAGE_INCOMING. */
struct error *holder_find(struct analysis *analysis, const struct shape *shape,
			  struct leak_kind *kind);

#endif
