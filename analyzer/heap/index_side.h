/*
 * The index of allocations in a side file. Large arrays stay in the file; the bits for finding
 * addresses are built again.
 */
#pragma once

#include "analyzer/base/side_file.h"
#include "analyzer/heap/index.h"

struct error *allocation_index_save(const struct allocation_index *index,
				    struct side_writer *writer);

/*
 * Load what was saved, after checking that it is an index: its regions apart and in order, with
 * their blocks apart and in order. The file outlives it.
 */
struct error *allocation_index_load(struct side_file *file, struct memory_account *account,
				    struct allocation_index **ret);

/* A set of allocations. */
struct error *allocation_set_save(const struct bitmap *set, struct side_writer *writer,
				  unsigned int number);
struct error *allocation_set_load(struct side_file *file, unsigned int number, size_t count,
				  struct bitmap *ret);

/* Like allocation_set_save(), for sets that may be absent. */
struct error *allocation_set_save_some(const struct bitmap *set, struct side_writer *writer,
				       unsigned int number);
struct error *allocation_set_load_some(struct side_file *file, unsigned int number, size_t count,
				       struct bitmap *ret);
