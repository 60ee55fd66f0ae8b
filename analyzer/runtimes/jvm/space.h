/*
 * The memory that a Java virtual machine has for itself.
 */
#pragma once

#include "analyzer/base/array.h"
#include "analyzer/runtimes/jvm/tables.h"
#include "analyzer/runtimes/runtime.h"

struct jvm {
	struct object_space space;
	struct jvm_tables tables;
};

/* Add a range, unless it is empty or others have some of it. */
struct error *jvm_add(struct jvm *jvm, uint64_t start, uint64_t end, const char *name);

/* Add what its collector has reserved for objects, by what it uses it for. */
struct error *jvm_find_heap(struct jvm *jvm);

/* Add the archive of classes and what the virtual machine knows of the loaded ones. */
struct error *jvm_find_classes(struct jvm *jvm);
