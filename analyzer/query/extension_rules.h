/*
 * Rules by which a set is extended: which members bring in what else.
 *
 *	MEMBER@10->EXTENSION@0=>STATE
 *
 * MEMBER and EXTENSION are kinds; an empty one is any. `->` goes from a member to what it refers
 * to, `~>` to leaked ones only, `<-` from a member to what refers to it. An offset says where the
 * reference stands, in what refers, or where it points, in what is referred to.
 *
 * What a rule with a state brings in is extended by the rules of that state, those whose MEMBER is
 * its name: such a name is never a class. All else, the set that is extended included, is in the
 * base state.
 */
#pragma once

#include "analyzer/query/kind.h"

enum arrow { ARROW_TO, ARROW_TO_LEAKED, ARROW_FROM };

/* The reason why a rule never brings anything in, judged by the rules alone. */
enum rule_idle {
	RULE_APPLIES,
	RULE_REPEATED,	/* one in front of it takes all that it would */
	RULE_UNREACHED, /* no rule leads to its state */
};

/* A state is a number; the base state has no name. */
enum { BASE_STATE = 0, MOST_RULES = 1 << 15 };

struct extension_rule {
	const char *word; /* as typed, borrowed */
	char *parts;	  /* the words of the kinds and the state */
	const char *member_word, *extension_word;
	const char *state_word; /* behind =>, or NULL */
	enum arrow arrow;
	bool has_member_offset, has_extension_offset;
	uint64_t member_offset, extension_offset;

	/* Once all rules are known. */
	struct kind member, extension;
	uint16_t state, next_state;
	enum rule_idle idle;
};

struct extension_rules {
	struct extension_rule *list;
	size_t count;
	const char **state_names; /* of state 1 on; borrowed from the rules */
	size_t state_count;	  /* without the base state */
};

void extension_rules_deinit(struct extension_rules *rules);
DEFINE_DEINIT(extension_rules_deinit, struct extension_rules)

/* Take one more rule; no dump is needed to say what is wrong with it. */
struct error *extension_rules_take(struct extension_rules *rules, const char *word);

/*
 * Find the states, once all rules were taken. Rules that bring nothing in are no error, as scripts
 * have them: they are marked, to be told of.
 */
struct error *extension_rules_check(struct extension_rules *rules);

/* The state of that name, or BASE_STATE; the state's name, or NULL. */
uint16_t extension_state_find(const struct extension_rules *rules, const char *name);
const char *extension_state_name(const struct extension_rules *rules, uint16_t state);
