/*
 * Strings and containers of C++ (libstdc++) and Rust, by the names that debug information has of
 * their members: what text they are, or how many elements they have.
 */
#pragma once

#include "analyzer/image/image.h"
#include "analyzer/program/debug/type_table.h"

struct library_value {
	bool is_text;	   /* the elements are the bytes of a text, that no 0 need end */
	uint64_t elements; /* the address of the first; 0: they are apart from each other */
	uint64_t length;   /* bytes of a text, else elements */
};

/* True if the structure is a string or a container, whatever is in it. */
bool library_value_is(const struct data_type *type);

/* Read the one at address. False: it is none, or it is not there. */
bool library_value_read(const struct type_table *types, const struct image *image,
			const struct data_type *type, uint64_t address, struct library_value *ret);
