/*
 * The chains of references by which allocations hang on something, and what anchors these: what
 * explanations consist of.
 *
 * Each is searched for, until that has cost as much as to find what is needed for all in one go:
 * then it is, and chains are read off.
 */
#ifndef CLI_VIEWS_CHAINS_H
#define CLI_VIEWS_CHAINS_H

#include "analyzer/analysis/analysis.h"
#include "analyzer/graph/anchors.h"
#include "analyzer/graph/paths.h"

/* Where a chain begins. */
enum chain_source {
	CHAIN_STATIC = ROOT_STATIC, /* at what a root of that kind refers to */
	CHAIN_STACK = ROOT_STACK,
	CHAIN_REGISTER = ROOT_REGISTER,
	CHAIN_KERNEL = ROOT_KERNEL,
	CHAIN_INTEGER = ROOT_INTEGER,
	CHAIN_LEAK_ROOT,
	CHAIN_GARBAGE,
	CHAIN_UNSEEN, /* in use, and no collector looks into it */
	CHAIN_SOURCES,
};

struct chains;

/* Needs STAGE_REACHABILITY, and STAGE_LEAKS for chains from leak roots. */
struct error *chains_create(struct analysis *analysis, struct chains **ret);
void chains_destroy(struct chains *chains);
DEFINE_CLEANUP(chains_destroy, struct chains *)

/* A shortest one to the target; it is empty if there is none. */
struct error *chains_find(struct chains *chains, enum chain_source source, allocation_id target,
			  struct path *ret);

/* Anchors, of one kind or of all with ROOT_KINDS. */
struct found_anchors {
	enum root_kind kind;
	struct anchor list[KEPT_ANCHORS]; /* the first of them */
	uint64_t count;			  /* of all there are */
};

struct error *chains_find_anchors(struct chains *chains, allocation_id target, enum root_kind kind,
				  struct found_anchors *ret);

#endif
