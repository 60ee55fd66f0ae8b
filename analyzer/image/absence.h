/*
 * What the dump does not have of the process's writable memory, and what follows from that.
 */
#ifndef ANALYZER_IMAGE_ABSENCE_H
#define ANALYZER_IMAGE_ABSENCE_H

#include "analyzer/image/image.h"

struct error *image_report_absence(const struct image *image, struct findings *findings);

#endif
