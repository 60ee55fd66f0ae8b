/*
 * What the classifiers of memory that objects of Ruby hold have in common.
 *
 * include/ruby/internal of MRI, 2.x to 3.4: an object begins by its flags, with its type in the
 * lowest bits, and its class.
 */
#ifndef ANALYZER_RUNTIMES_RUBY_RUBY_H
#define ANALYZER_RUNTIMES_RUBY_RUBY_H

#include "analyzer/classify/classifier.h"

extern const struct runtime runtime_ruby;

enum ruby_type {
	RUBY_CLASS = 0x02,
	RUBY_STRING = 0x05,
	RUBY_ARRAY = 0x07,
};

/*
 * Whether an object whose first words are these is of that type, and holds memory of its own:
 * neither in itself nor in another object.
 */
bool ruby_holds(struct reader *reader, const uint64_t *words, enum ruby_type type);

#endif
