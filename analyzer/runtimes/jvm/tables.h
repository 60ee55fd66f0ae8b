/*
 * The tables that libjvm.so has for its own debuggers, src/hotspot/share/runtime/vmStructs.hpp: one
 * with an entry for each field, one of numbers, and the layout of their entries. So neither the
 * version nor debug information is needed. A table ends with an entry without a name.
 *
 *	gHotSpotVMStructs      -> | type's name | field's name | ... | is static | offset | address
 *| gHotSpotVMIntConstants -> | name | value |
 */
#pragma once

#include "analyzer/image/image.h"
#include "analyzer/program/program.h"

struct jvm_tables {
	const struct image *image;
	uint64_t start, stride;
	uint64_t type, field, is_static, offset, address; /* places in an entry */
	uint64_t constants, constant_stride;		  /* 0: there are none */
	uint64_t constant_name, constant_value;
};

/* False if the module has no such tables. */
bool jvm_find_tables(const struct image *image, const struct module *module,
		     struct jvm_tables *ret);

/* The offset of a field; false if it is not known. */
bool jvm_offset(const struct jvm_tables *tables, const char *type, const char *field,
		uint64_t *ret);

/* Read a static field. */
bool jvm_static(const struct jvm_tables *tables, const char *type, const char *field,
		uint64_t *ret);

/* The field of the object. */
bool jvm_field(const struct jvm_tables *tables, uint64_t object, const char *type,
	       const char *field, uint64_t *ret);

bool jvm_constant(const struct jvm_tables *tables, const char *name, uint32_t *ret);
