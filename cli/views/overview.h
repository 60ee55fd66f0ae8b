/*
 * What a core is, and how much is used, leaked and free.
 */
#ifndef CLI_VIEWS_OVERVIEW_H
#define CLI_VIEWS_OVERVIEW_H

#include "analyzer/analysis/analysis.h"
#include "analyzer/report/report.h"

struct error *overview_write(struct analysis *analysis, struct report *report);

#endif
