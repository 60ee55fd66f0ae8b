/*
 * What the classifiers of memory that objects of CPython hold have in common.
 *
 * Include/object.h and cpython/object.h, 3.8 to 3.13: an object begins by its count of references
 * and its type; a type's flags say what it inherits.
 */
#ifndef ANALYZER_RUNTIMES_PYTHON_PYTHON_H
#define ANALYZER_RUNTIMES_PYTHON_PYTHON_H

#include "analyzer/classify/classifier.h"

#define PYTHON_LIST (UINT64_C(1) << 25)
#define PYTHON_DICT (UINT64_C(1) << 29)

extern const struct runtime runtime_python;

/* Whether an object whose first words are these is of a type with that flag. */
bool python_is(struct reader *reader, const uint64_t *words, uint64_t flag);

#endif
