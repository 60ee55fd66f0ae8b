/*
 * What the classifiers of buffers that objects of Crystal hold have in common.
 */
#ifndef ANALYZER_CLASSIFY_CRYSTAL_BUFFERS_H
#define ANALYZER_CLASSIFY_CRYSTAL_BUFFERS_H

#include "analyzer/classify/classifier.h"
#include "analyzer/classify/crystal/instances.h"

/* Claim the buffers of that role that the allocation, an object, holds. */
void crystal_claim_buffers(struct reader *reader, const struct subject *subject,
			   enum crystal_role role);

/* Tell of one; part is "the elements", unit what it is made of. */
void crystal_tell_buffer(struct reader *reader, struct memory_range range, enum crystal_role role,
			 const char *part, const char *unit, struct pattern_facts *facts);

/* Its spare room, which may be anywhere in it. */
bool crystal_measure_buffer(struct reader *reader, struct memory_range range, uint64_t owner,
			    enum crystal_role role, struct pattern_extent *ret);

#endif
