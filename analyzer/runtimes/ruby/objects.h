/*
 * Objects of MRI: which allocations are such, and of what class.
 *
 * An object begins with its flags, with its type in the lowest bits, and its class
 * (include/ruby/internal/core/rbasic.h). What is between an object and its class, singleton classes
 * and included modules, is skipped, as Object#class does.
 */
#pragma once

#include "analyzer/runtimes/ruby/space.h"

/* "T_STRING", and "iseq" of a T_IMEMO; NULL: not known. */
const char *ruby_type_name(uint64_t type);
const char *ruby_imemo_name(uint64_t kind);

/* The type of a T_DATA, and what that is called; 0, or false: it has none. */
uint64_t ruby_find_data_type(const struct ruby *ruby, struct view *view, uint64_t address);
bool ruby_read_data_name(const struct image *image, uint64_t type, char ret[RUBY_MOST_NAME + 1]);
