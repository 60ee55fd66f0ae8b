/*
 * The symbols of MRI: what IDs of methods, variables and constants are called (symbol.c).
 *
 * Each symbol has a serial number. All stand in an array that programs cannot see, of arrays of 512
 * strings, each with the symbol itself behind it. An ID is the serial number, shifted by 4 bits of
 * kind; that of an operator is the serial number itself.
 */
#pragma once

#include "analyzer/runtimes/ruby/slots.h"

struct ruby_symbols {
	const struct ruby_slots *slots; /* borrowed */
	ARRAY(uint64_t) strings;	/* by serial number: the address and RUBY_..._NAME; or 0 */
	uint64_t members;		/* the serial number of __members__; 0: not known */
};

enum {
	RUBY_VARIABLE_NAME = 1 << 0, /* of objects and classes */
	RUBY_CONSTANT_NAME = 1 << 1,
	RUBY_LOCAL_NAME = 1 << 2, /* or of a method */
};

/* None if they are not found. */
struct error *ruby_symbols_init(struct ruby_symbols *symbols, const struct ruby_slots *slots,
				struct memory_account *account);
void ruby_symbols_deinit(struct ruby_symbols *symbols);

uint64_t ruby_serial(uint64_t symbol_id);

/* True if its name is like @this or @@this. */
static inline bool ruby_is_variable(const struct ruby_symbols *symbols, uint64_t serial)
{
	return serial < symbols->strings.count &&
	       (symbols->strings.items[serial] & RUBY_VARIABLE_NAME);
}

static inline bool ruby_is_constant(const struct ruby_symbols *symbols, uint64_t serial)
{
	return serial < symbols->strings.count &&
	       (symbols->strings.items[serial] & RUBY_CONSTANT_NAME);
}

static inline bool ruby_is_local(const struct ruby_symbols *symbols, uint64_t serial)
{
	return serial < symbols->strings.count &&
	       (symbols->strings.items[serial] & RUBY_LOCAL_NAME);
}

bool ruby_symbol_text(const struct ruby_symbols *symbols, struct view *view, uint64_t serial,
		      char ret[RUBY_MOST_NAME + 1]);

/* The text of the symbol that a VALUE is; false: it is none. */
bool ruby_read_symbol(const struct ruby_symbols *symbols, struct view *view, uint64_t value,
		      char ret[RUBY_MOST_NAME + 1]);
