/*
 * Values of Ruby in short: of what class they are, what they say, and where they were moved to.
 */
#pragma once

#include "analyzer/runtimes/ruby/space.h"

/* "no object" of what is none; NULL only if memory is short. */
const char *ruby_value_class(struct ruby *ruby, struct view *view, uint64_t value);

/* Write what a number, a symbol, a short text or a container says; false: the class says it all. */
bool ruby_tell_value(const struct ruby *ruby, struct view *view, uint64_t value, char *ret,
		     size_t size);
