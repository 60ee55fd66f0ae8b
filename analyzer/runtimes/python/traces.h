/*
 * Finds who allocated the objects of Python, where the program traces that by tracemalloc.
 */
#pragma once

#include "analyzer/heap/noting.h"

extern const struct noting python_noting; /* of a struct python */
