/*
 * How values of Perl lead to each other, in steps that the language has words for, and which calls
 * are running. The layouts are those of av.h, hv.h, cv.h, pad.h, gv.h and cop.h from 5.24 on:
 *
 *	body of CODE  ... | package 32 | start | code | name 56 | file | pads 72 | around 80 | ... |
 *	pads          last | table: names, values of the first call, of the one in it ... |
 *	names         last | table: { text, package of `our`, ... , u8 length, u8 flags } ... |
 *	context       u8 type, ... | ... | caller's statement 16 | ... | code 72 or 88 | i32 depth
 *80 statement     ... | u32 line 36 | ... | file 48 | u32, u32 number 60 |
 */
#pragma once

#include "analyzer/runtimes/object_links.h"
#include "analyzer/runtimes/perl/space.h"

enum perl_link_kind {
	LINK_REFERENT,
	LINK_ITEM,
	LINK_VALUE,    /* of a key of a hash */
	LINK_VARIABLE, /* of CODE */
	LINK_SLOT,     /* of a glob */
};

extern const struct object_step perl_steps[]; /* by kind */

/* A link's name is of a slot; which, the address of a key (HEK) or of a variable's name. */
void perl_walk_value(struct object_walk *walk, uint64_t address);

/* Walk the slots of a glob, the entries of a hash. */
void perl_walk_slots(struct object_walk *walk, uint64_t glob);
void perl_walk_entries(struct object_walk *walk, const struct perl_head *head);

/* The variable of that name in a package: its slot begins with that letter. 0: there is none. */
uint64_t perl_find_variable(struct perl *perl, const struct perl_head *stash, const char *name,
			    char slot);

/* The key (HEK) that is its name, and the package that it is in; 0: it has none. */
uint64_t perl_key_of_code(const struct perl *perl, struct view *view, uint64_t code,
			  uint64_t *ret_package);

/* "main::work"; empty: it has none. */
void perl_tell_code(const struct perl *perl, struct view *view, uint64_t code, char *ret,
		    size_t size);

/* Walk the values that are names of what a package is derived from; perhaps also its own. */
void perl_walk_base_names(struct object_walk *walk, uint64_t stash);

struct perl_call {
	uint64_t code;	    /* 0: the main program */
	uint64_t statement; /* that it is at */
	uint64_t depth;	    /* in calls of the same code; 0: not known */
	const char *kind;   /* kind, if it is no call */
};

/* Visit the calls of an interpreter, the innermost first; false: what is next makes no sense. */
bool perl_visit_calls(const struct perl *perl, const struct perl_interpreter *interpreter,
		      void (*visit)(void *data, const struct perl_call *call), void *data);

/* Walk the variables of a call that are in scope at its statement. */
void perl_walk_call(struct object_walk *walk, const struct perl_call *call);
