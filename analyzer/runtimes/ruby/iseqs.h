/*
 * Iseqs: what MRI compiles methods, blocks and bodies of classes to (vm_core.h, iseq.h).
 *
 *	imemo_iseq | flags | wrapper | body |
 *	body       | u32 type, u32 words | instructions | parameters | path | base label | label |
 *	           | first line | ... | parent iseq | iseq of the method | ... |
 *
 * Where path and parent are in a body, most bodies decide. Entries of methods (imemo_ment) lead to
 * iseqs and to the classes that own them:
 *
 *	imemo_ment | flags | defined class | definition | called id | owner |
 *	definition | type, ... | iseq, or Proc | ...
 */
#pragma once

#include "analyzer/base/address_map.h"
#include "analyzer/runtimes/ruby/slots.h"

struct ruby_iseqs {
	const struct ruby_slots *slots; /* borrowed */
	struct bitmap iseqs;
	uint32_t path_word, parent_word; /* of bodies; 0: not known */
	uint32_t count_place; /* of bodies, in units of 4 bytes: how many variables; 0: not known */
	bool has_short_lines; /* up to 3.0, 8 bytes each */
	struct address_map methods; /* iseqs of methods: the place of their class */
	ARRAY(uint64_t) owners;	    /* classes, of each method one */
};

struct ruby_iseq {
	allocation_id id;
	uint64_t owner, path, label; /* addresses of class and strings; 0: not known */
	uint64_t line;
};

/* ret is all zeros. */
struct error *ruby_iseqs_init(struct ruby_iseqs *ret, const struct ruby_slots *slots,
			      struct memory_account *account);
void ruby_iseqs_deinit(struct ruby_iseqs *iseqs);
DEFINE_DEINIT(ruby_iseqs_deinit, struct ruby_iseqs)

void ruby_iseq_read(const struct ruby_iseqs *iseqs, allocation_id id, struct ruby_iseq *ret);

/* Find the names of the iseq's variables, one ID each, and their number; false: unknown. */
bool ruby_iseq_locals(const struct ruby_iseqs *iseqs, struct view *view, uint64_t iseq,
		      uint64_t *ret_names, uint64_t *ret_count);

/* The line of the instruction before that one; 0: not known. */
uint64_t ruby_iseq_line(const struct ruby_iseqs *iseqs, struct view *view, uint64_t iseq,
			uint64_t instruction);

/* For cores without contents: visit bodies, lines and variables of code, and names. */
struct ruby_structure;
struct error *ruby_iseqs_keep(const struct ruby_iseqs *iseqs, struct ruby_structure *structure);
