/*
 * Annotations: what parts of an allocation are, as far as that can be told of them by themselves.
 *
 *	WHAT[@OFFSET].ANNOTATOR
 *
 * WHAT is a kind, the name of a state in which an extension reached the allocation, or `*`, which
 * is any; so may be ANNOTATOR. Without an offset, each part of the allocation is looked at.
 *
 * An annotator is a row of a table: adding one adds a row and a function.
 */
#pragma once

#include "analyzer/classify/reader.h"
#include "analyzer/query/extension_rules.h"
#include "analyzer/query/members.h"
#include "analyzer/report/writer.h"

struct annotator;

/* The number-th annotator's name and what it tells of; NULL at the end. */
const char *annotator_name(size_t number);
const char *annotator_summary(size_t number);

struct annotation_rule {
	char *what; /* owned; empty: any */
	bool has_offset;
	uint64_t offset;
	const struct annotator *annotator; /* NULL: any */
};

/* All zero: none. */
struct annotation_rules {
	struct annotation_rule *list;
	size_t count;
};

void annotation_rules_deinit(struct annotation_rules *rules);
DEFINE_DEINIT(annotation_rules_deinit, struct annotation_rules)

/* Take one more rule; no dump is needed to say what is wrong with it. */
struct error *annotation_rules_take(struct annotation_rules *rules, const char *word);

/* An annotation: the bytes of an allocation from offset start up to end. */
struct annotation {
	uint64_t start, end;
	const char *annotator;
	const char *text; /* as "length 5, \"hello\""; may be hostile */
	bool is_content;  /* it quotes memory */
};

struct rule_test;

/* The rules, once a dump is there. */
struct annotating {
	struct analysis *analysis;
	const struct annotation_rules *rules;
	struct rule_test *tests; /* of each rule */
	struct reader reader;
	struct writer text;	       /* of the annotation that is being told */
	const struct members *members; /* for their states; borrowed; or NULL */
};

/*
 * Prepare the rules, which are borrowed, as are the states of an extension. Builds what is needed.
 * That nothing is of a kind is an error, unless missing ones are allowed.
 */
struct error *annotating_init(struct annotating *annotating, struct analysis *analysis,
			      const struct annotation_rules *rules,
			      const struct extension_rules *states, bool allow_missing);
void annotating_deinit(struct annotating *annotating);
DEFINE_DEINIT(annotating_deinit, struct annotating)

/* Call found for each annotation of the allocation, by offset. */
struct error *annotate(struct annotating *annotating, allocation_id id,
		       bool (*found)(void *data, const struct annotation *annotation), void *data);
