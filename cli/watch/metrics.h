/*
 * Numbers of the newest core in the folder, as OpenMetrics text for scrapers, such as the textfile
 * collector of node_exporter. Each is of that moment: nobody looks in between.
 */
#pragma once

#include "cli/watch/shelf.h"

/* The file is replaced as a whole. path may be NULL: metrics.prom in the shelf's folder. */
struct error *metrics_write(const char *path, const struct stored *stored, const char *name);
