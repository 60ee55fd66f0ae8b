/*
 * Node.js: the objects of JavaScript, and the memory of its Buffers.
 *
 * Objects are allocations if V8 says of itself how they are laid out, see allocators/v8/v8.h. Of
 * other versions, V8's heap is memory outside of heaps, and a root: a word of it that is not
 * tagged, such as the address of a buffer, is an address as any other.
 *
 * Classes are names of constructors, and, in parentheses, what V8 has for itself. The class of a
 * Map's objects is found once for the Map.
 */
#pragma once

#include "allocators/v8/v8.h"
#include "analyzer/base/address_map.h"
#include "analyzer/program/debug/names.h"
#include "analyzer/runtimes/object_links.h"

enum { NODE_MOST_NAME = 256 };

struct node {
	struct object_space space;
	const struct v8_heap_parts *parts; /* of the heap */
	struct address_map maps; /* by the addresses of maps: those of their objects' classes */
};

extern const struct runtime runtime_node;

/* Gets a property: the tagged addresses of its name and value, or a small number; true: enough. */
typedef bool property_visitor(void *data, uint64_t name, uint64_t value);

/* True if the properties of objects with that map are a table, with names as keys. */
bool node_has_table(struct v8_reader *reader, const struct v8_map *map);

/* Visit the properties with names of the object at address. */
bool node_visit_properties(struct v8_reader *reader, uint64_t address, property_visitor *visit,
			   void *data);

/* V8's description of a function's variables, ScopeInfo of src/objects/scope-info.tq. */
struct node_scope {
	uint32_t flags;
	uint32_t count; /* of variables that closures have, too */
	uint64_t names; /* where those of these begin, then more; see has_names */
	bool has_names; /* else they are in a table, which is not read */
};

/* Read the one at address; false: it was not dumped. */
bool node_read_scope(struct v8_reader *reader, uint64_t address, struct node_scope *ret);

/* The name of the function that the word is the tagged address of; false: it has none. */
bool node_read_function(struct v8_reader *reader, uint64_t word, char *ret, size_t size);
/* Read the name likewise from a function's SharedFunctionInfo. */
bool node_read_shared(struct v8_reader *reader, uint64_t shared, char *ret, size_t size);
/* The file of the script; those within Node.js have other names. */
bool node_read_file(struct v8_reader *reader, uint64_t script, char *ret, size_t size);

/* Visit what says which words are weak. */
struct error *node_weak_visit_structure(const struct node *node,
					const struct structure_visitor *visitor);

#define NODE_SLOTS node, release, find_objects, visit_structure, is_link, find_unused
DECLARE_SLOTS(runtime, NODE_SLOTS);
#define NODE_LINK_SLOTS node, find_globals, walk_links, target_of, tell_step, read_value
DECLARE_SLOTS(runtime_links, NODE_LINK_SLOTS);
extern const struct object_step node_steps[];
#define NODE_CALL_SLOTS node, find_exception, visit_tasks
DECLARE_SLOTS(runtime_calls, NODE_CALL_SLOTS);
