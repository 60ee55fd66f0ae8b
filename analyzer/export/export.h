/*
 * Files for the viewers of other tools: the contract of a format.
 *
 * Each file of formats/ defines one struct export_format; the build collects them. A format writes
 * what it needs of the ownership tree (owners.h), mostly as frames (frames.h). Contents of memory
 * are in no export of the tree. Names are escaped already, so they are printable UTF-8; what else a
 * format needs to escape, such as quotes, it escapes itself. A format that is a database takes no
 * set: it saves all of the core. One that lists members needs no tree.
 */
#pragma once

#include "analyzer/owners/owners.h"
#include "analyzer/report/writer.h"

/* The contents of a graph. */
enum export_graph {
	GRAPH_KINDS,	  /* the ownership tree */
	GRAPH_DOMINATORS, /* allocations, and which one dominates them */
	GRAPH_REFERENCES, /* allocations, and which ones refer to them */
	GRAPHS
};

/* The memory to export; all borrowed. */
struct export
{
	struct analysis *analysis;
	const struct bitmap *members;
	const struct owners *owners; /* NULL: the format lists members */
	bool has_stacks;	     /* the owners are who allocated (stacks.h) */
	enum owner_measure measure;  /* the measure for formats with only one */
	enum export_graph graph;     /* of pictures */
	uint64_t limit;		     /* of frames, or what the format is made of */
	bool no_content;   /* of memory is to be written; only lists of members have any */
	const char *title; /* the core and the command; may be hostile */
};

struct export_format {
	const char *name;
	const char *summary; /* the viewers, for help */
	bool is_binary;
	bool lists_members;
	bool prefers_stacks; /* to who holds the memory, where the recorder noted them */
	uint64_t limit;	     /* unless the user gives one */
	/* Failures to write are left to the writer's owner. NULL: save() writes a file itself. */
	struct error *(*write)(const struct export *export, struct writer *writer);
	/* Write all of the core to an empty file; after an error, it is of no use. */
	struct error *(*save)(struct analysis *analysis, bool no_content, const char *path);
};

extern const struct export_format *const export_formats[]; /* NULL at the end */

/* An unknown name is an error that says which may be meant. */
struct error *export_format_find(const char *name, const struct export_format **ret);
