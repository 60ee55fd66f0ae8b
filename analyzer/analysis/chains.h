/*
 * The chains of references by which allocations hang on something, and what anchors these.
 *
 * Each is searched for, until that has cost as much as to find what is needed for all in one go;
 * then that is found, and chains are read off. So neither one answer nor those for all allocations
 * cost more than they must.
 */
#pragma once

#include "analyzer/analysis/analysis.h"
#include "analyzer/graph/anchors.h"
#include "analyzer/graph/paths.h"

/* The start of a chain. */
enum chain_source {
	/* Below: at what a root of that kind refers to. */
	CHAIN_ROOTS = ROOT_KINDS, /* what any root refers to */
	CHAIN_LEAK_ROOT,
	CHAIN_GARBAGE,
	CHAIN_UNSEEN, /* in use, and no collector looks into it */
	CHAIN_SOURCES,
};

struct chains;

struct error *chains_create(struct analysis *analysis, struct chains **ret);
void chains_destroy(struct chains *chains); /* NULL: does nothing */
DEFINE_CLEANUP(chains_destroy, struct chains *)

/* A shortest chain to the target; it is empty if there is none. A long one may have a gap. */
struct error *chains_find(struct chains *chains, enum chain_source source, allocation_id target,
			  struct path *ret);

/* Find that chain, without a gap. */
struct error *chains_find_whole(struct chains *chains, enum chain_source source,
				allocation_id target, struct path *ret);

/* Anchors, of one kind or of all with ROOT_KINDS. */
struct found_anchors {
	enum root_kind kind;
	struct anchor list[KEPT_ANCHORS]; /* the first of them */
	uint64_t count;			  /* how many there are in total */
};

struct error *chains_find_anchors(struct chains *chains, allocation_id target, enum root_kind kind,
				  struct found_anchors *ret);
