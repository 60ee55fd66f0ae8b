/*
 * The heap profile that a program in Go keeps, of a sample of its objects.
 */
#pragma once

#include "analyzer/heap/noting.h"

extern const struct noting go_noting; /* of an object_space */
