/*
 * Callers that allocated the memory, in the shape of an ownership tree (owners.h), so that formats
 * write it as they write who holds it: a path is a noted stack (gate/callers.h), from main()
 * on.
 */
#pragma once

#include "analyzer/gate/callers.h"
#include "analyzer/owners/owners.h"

/* Count the members by their stacks; ret is all zeros. What is retained is what is theirs. */
struct error *stacks_as_owners(struct callers *callers, const struct bitmap *members,
			       struct owners *ret);
