/*
 * The containers of C++ that allocations are of, where debug information has their types: nodes of
 * std::map<std::string, Rule *>, the body of std::vector<Node *>.
 */
#pragma once

#include "analyzer/classify/patterns.h"
#include "analyzer/types/typing.h"

/*
 * True if an allocation with that pattern and type belongs to a container that has a name;
 * typed->fit is then the same for all of these.
 */
bool container_is_known(const struct type_table *types, pattern_number pattern,
			struct typed *typed);

/* The container's name, in short; lives as long as the types. NULL: memory is short. */
const char *container_name(const struct type_table *types, pattern_number pattern,
			   struct typed typed);
