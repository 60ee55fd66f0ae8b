#include "analyzer/query/extension.h"

#include "analyzer/base/list.h"
#include "analyzer/query/extension_candidates.h"

/* The two kinds of a rule. */
struct rule_tests {
	struct kind_test member, extension;
};

/*
 * An allocation of which candidates are still to be looked at: the last left of those on the stack
 * of candidates that no frame above it has.
 */
struct pending {
	allocation_id id;
	uint32_t left;
	uint16_t rule; /* that found them */
	uint16_t state;
};

struct engine {
	const struct extension *extension;
	const struct extension_rules *rules;
	struct analysis *analysis;
	struct candidate_source source;
	struct rule_tests *tests; /* for each rule */
	ARRAY(struct pending) frames;
	struct id_stack candidates;
	/* Found so far; until the end, free ones are in the set, too. */
	struct members members;
	struct bitmap free_ones; /* which are never new */
	size_t stepped;
	uint64_t work_stepped;
};

static void engine_deinit(struct engine *engine)
{
	for (size_t i = 0; engine->tests && i < engine->rules->count; i++) {
		kind_test_deinit(&engine->tests[i].member);
		kind_test_deinit(&engine->tests[i].extension);
	}
	free(engine->tests);
	arrays_release(&engine->frames, &engine->candidates);
	members_deinit(&engine->members);
	bitmap_deinit(&engine->free_ones);
}
DEFINE_DEINIT(engine_deinit, struct engine)

static struct error *prepare_tests(struct engine *engine)
{
	engine->tests = calloc(engine->rules->count, sizeof(*engine->tests));
	TRY_MEMORY(engine->tests);
	for (size_t i = 0; i < engine->rules->count; i++) {
		const struct extension_rule *rule = &engine->rules->list[i];
		struct rule_tests *tests = &engine->tests[i];

		TRY(kind_test_prepare(&tests->member, engine->analysis, &rule->member));
		TRY(kind_test_prepare(&tests->extension, engine->analysis, &rule->extension));
	}
	return NULL;
}

/*
 * Nothing is visited yet. Free allocations are members from the start, so that one test finds both.
 */
static struct error *init_members(struct engine *engine, size_t count)
{
	TRY(members_init(&engine->members, count, analysis_account(engine->analysis)));
	bitmap_copy(&engine->members.set, &engine->free_ones);
	return NULL;
}

static struct error *engine_init(struct engine *engine, const struct extension *extension,
				 size_t count)
{
	struct analysis *analysis = extension->choice->analysis;
	struct memory_account *account = analysis_account(analysis);

	*engine = (struct engine){
		.extension = extension,
		.rules = extension->rules,
		.analysis = analysis,
		.frames.memory.account = account,
		.candidates.memory.account = account,
	};
	TRY(bitmap_init(&engine->free_ones, count, account));
	bitmap_fill(&engine->free_ones);
	bitmap_minus(&engine->free_ones, allocation_used(analysis_index(analysis)));
	TRY(init_members(engine, count));
	TRY(candidate_source_init(&engine->source, extension->choice, extension->rules));
	TRY(prepare_tests(engine));
	/* Comments also tell of what was visited before. */
	engine->source.unwanted = extension->comment ? &engine->free_ones : &engine->members.set;
	return NULL;
}

/* Leave those behind first that are of the rule's kind. */
static struct error *narrow_candidates(struct engine *engine, struct rule_tests *tests,
				       size_t first)
{
	allocation_id *ids = engine->candidates.items;
	size_t left = first;
	bool taken;

	if (tests->extension.kind.choice == KIND_ANY)
		return NULL;
	for (size_t i = first; i < engine->candidates.count; i++) {
		TRY(kind_test_judge(&tests->extension, ids[i], &taken));
		if (taken)
			ids[left++] = ids[i];
	}
	engine->candidates.count = left;
	return NULL;
}

/* Set *ret if the rule applies to the frame's allocation. */
static struct error *applies(struct engine *engine, const struct pending *frame, size_t number,
			     bool *ret)
{
	struct rule_tests *tests = &engine->tests[number];

	*ret = false;
	if (engine->rules->list[number].state != frame->state)
		return NULL;
	if (tests->member.kind.choice == KIND_ANY) {
		*ret = true;
		return NULL;
	}
	return kind_test_judge(&tests->member, frame->id, ret);
}

/*
 * Find the candidates of the first rule from the frame's on that has any. None are left if all
 * rules are done.
 */
static struct error *find_candidates(struct engine *engine, struct pending *frame)
{
	const struct extension_rules *rules = engine->rules;
	size_t first = engine->candidates.count;

	for (; frame->rule < rules->count; frame->rule++) {
		bool taken;

		TRY(applies(engine, frame, frame->rule, &taken));
		if (taken)
			TRY(candidates_find(&engine->source, &rules->list[frame->rule], frame->id,
					    &engine->candidates));
		if (engine->candidates.count > first)
			TRY(narrow_candidates(engine, &engine->tests[frame->rule], first));
		frame->left = (uint32_t)(engine->candidates.count - first);
		if (frame->left)
			return NULL;
	}
	return NULL;
}

/* Make it a member, and its candidates the next to be looked at. */
static struct error *visit(struct engine *engine, allocation_id id, uint16_t state)
{
	struct pending frame = { .id = id, .state = state };

	TRY(members_append(&engine->members, id));
	if (engine->extension->note_states && state != BASE_STATE)
		TRY(members_set_state(&engine->members, id, state));
	TRY(find_candidates(engine, &frame));
	if (frame.left == 0)
		return NULL;
	return array_append(&engine->frames, frame);
}

static struct error *comment(struct engine *engine, struct member_comment comment)
{
	if (!engine->extension->comment)
		return NULL;
	return members_comment(&engine->members, comment);
}

/* Take the next candidate off the stacks, and the frame if it was the last. */
static struct error *take_candidate(struct engine *engine, struct pending *ret_frame,
				    allocation_id *ret)
{
	const allocation_id *ids = engine->candidates.items;
	struct pending *frame = engine->frames.items + engine->frames.count - 1;

	*ret = ids[--engine->candidates.count];
	frame->left--;
	*ret_frame = *frame;
	if (frame->left > 0)
		return NULL;
	frame->rule++;
	TRY(find_candidates(engine, frame));
	if (frame->left == 0)
		engine->frames.count--;
	return NULL;
}

static struct error *step(struct engine *engine)
{
	const struct extension_rule *rule;
	struct pending frame;
	allocation_id id;
	bool visited;

	TRY(take_candidate(engine, &frame, &id));
	rule = &engine->rules->list[frame.rule];
	visited = bitmap_get(&engine->members.set, id);
	TRY(comment(engine, (struct member_comment){
				    .state = extension_state_name(engine->rules, rule->next_state),
				    .kind = rule->arrow == ARROW_FROM ? COMMENT_REFERENCED
								      : COMMENT_REFERENCES,
				    .from = frame.id,
				    .to = id,
				    .was_visited = visited }));
	if (visited)
		return NULL;
	return visit(engine, id, rule->next_state);
}

/* Every so often, show how far it is, and look whether it is still wanted. */
static struct error *look_up(struct engine *engine, size_t members)
{
	enum { BETWEEN_STEPS = 1 << 16 };
	struct progress *progress = analysis_progress(engine->analysis);

	if (members - engine->stepped < BETWEEN_STEPS &&
	    engine->source.work - engine->work_stepped < BETWEEN_STEPS)
		return NULL;
	TRY(progress_check(progress, members - engine->stepped));
	engine->stepped = members;
	engine->work_stepped = engine->source.work;
	return NULL;
}

static struct error *extend_member(struct engine *engine, allocation_id id)
{
	if (bitmap_get(&engine->members.set, id) && !bitmap_get(&engine->free_ones, id))
		return comment(engine, (struct member_comment){ .kind = COMMENT_BASE_VISITED,
								.from = NO_ALLOCATION,
								.to = id });
	TRY(visit(engine, id, BASE_STATE));
	while (engine->frames.count > 0) {
		TRY(step(engine));
		TRY(look_up(engine, engine->members.order.count));
	}
	return look_up(engine, engine->members.order.count);
}

static bool needs_no_order(const struct engine *engine)
{
	const struct extension *extension = engine->extension;

	return extension->any_order && !extension->comment && !extension->note_states &&
	       engine->rules->state_count == 0;
}

/*
 * Allocations on their way from being found to being extended: where their edges are, then the
 * edges, are fetched while others are on theirs. What was found waits on the stack of candidates,
 * and is a member already.
 */
enum { IN_FLIGHT = 16 };

struct flight {
	allocation_id ids[IN_FLIGHT];
	size_t head, count;
	size_t landed;
};

static void fetch(const struct engine *engine, allocation_id id,
		  void (*fetch_part)(const struct graph *graph, allocation_id id))
{
	if (id == NO_ALLOCATION)
		return;
	if (engine->source.outgoing)
		fetch_part(engine->source.outgoing, id);
	if (engine->source.incoming)
		fetch_part(engine->source.incoming, id);
}

/* All that its rules bring in and that is new becomes a member, and waits. */
static struct error *extend_by_all(struct engine *engine, allocation_id id)
{
	struct pending frame = { .id = id };

	for (; frame.rule < engine->rules->count; frame.rule++) {
		size_t first = engine->candidates.count;
		const allocation_id *ids;

		TRY(find_candidates(engine, &frame));
		ids = engine->candidates.items;
		for (size_t i = first; i < engine->candidates.count; i++)
			bitmap_set(&engine->members.set, ids[i]);
	}
	return NULL;
}

/* Prefetch one more allocation; extend the one whose data has arrived. */
static struct error *fly(struct engine *engine, struct flight *flight, allocation_id id)
{
	size_t middle = (flight->head + IN_FLIGHT / 2) % IN_FLIGHT;
	allocation_id landing = flight->ids[flight->head];

	flight->ids[flight->head] = id;
	flight->head = (flight->head + 1) % IN_FLIGHT;
	fetch(engine, id, graph_fetch_offset);
	fetch(engine, flight->ids[middle], graph_fetch_row);
	flight->count += (id != NO_ALLOCATION) - (landing != NO_ALLOCATION);
	if (landing == NO_ALLOCATION)
		return NULL;
	flight->landed++;
	return extend_by_all(engine, landing);
}

/* Until no more than keep are on their way, and none waits. */
static struct error *fly_all(struct engine *engine, struct flight *flight, size_t keep)
{
	while (engine->candidates.count > 0 || flight->count > keep) {
		const allocation_id *ids = engine->candidates.items;

		TRY(fly(engine, flight,
			engine->candidates.count > 0 ? ids[--engine->candidates.count]
						     : NO_ALLOCATION));
		TRY(look_up(engine, flight->landed));
	}
	return NULL;
}

/* Compute the set as if each member was extended in turn. */
static struct error *close_all(struct engine *engine, const struct bitmap *base)
{
	struct flight flight = { .head = 0 };

	for (size_t i = 0; i < IN_FLIGHT; i++)
		flight.ids[i] = NO_ALLOCATION;
	bitmap_or(&engine->members.set, base);
	bitmap_for_each(id, base) {
		TRY(fly(engine, &flight, (allocation_id)id));
		TRY(fly_all(engine, &flight, IN_FLIGHT));
	}
	return fly_all(engine, &flight, 0);
}

static struct error *extend_all(struct engine *engine, const struct members *base)
{
	const allocation_id *order = base->order.items;

	progress_begin(analysis_progress(engine->analysis), "extending the set", base->set.count);
	if (needs_no_order(engine))
		return close_all(engine, &base->set);
	for (size_t i = 0; base->is_ordered && i < base->order.count; i++)
		if (bitmap_get(&base->set, order[i]))
			TRY(extend_member(engine, order[i]));
	if (base->is_ordered)
		return NULL;
	bitmap_for_each(id, &base->set)
		TRY(extend_member(engine, (allocation_id)id));
	return NULL;
}

static struct error *start_again(struct engine *engine)
{
	size_t count = engine->members.set.count;

	members_deinit(&engine->members);
	engine->stepped = 0;
	engine->candidates.count = 0;
	return init_members(engine, count);
}

/* Free allocations are members only if the base set has them. */
static void settle_members(struct engine *engine, const struct members *base)
{
	bitmap_minus(&engine->members.set, &engine->free_ones);
	bitmap_and(&engine->free_ones, &base->set);
	bitmap_or(&engine->members.set, &engine->free_ones);
}

/*
 * Kinds that nothing was found to be of may be mistyped. Sets *ret_again if one turned out to be
 * another kind than it was taken for.
 */
static struct error *check_tests(struct engine *engine, bool *ret_again)
{
	bool allow_missing = engine->extension->allow_missing, member, extension;

	*ret_again = false;
	list_for_each(tests, engine->tests, engine->rules->count) {
		TRY(kind_test_settle(&tests->member, allow_missing, &member));
		TRY(kind_test_settle(&tests->extension, allow_missing, &extension));
		*ret_again |= member || extension;
	}
	return NULL;
}

/* Set *ret if a member has a class of that name. */
static struct error *has_class(struct engine *engine, const char *name, bool *ret)
{
	_cleanup_(class_filter_deinit) struct class_filter filter = { 0 };

	*ret = false;
	TRY(analysis_need(engine->analysis, STAGE_CLASSES));
	TRY(class_filter_init(&filter, engine->analysis, name));
	bitmap_for_each(id, &engine->members.set) {
		uint64_t signature = analysis_signature(engine->analysis, (allocation_id)id);

		if (signature)
			TRY(class_filter_judge(&filter, signature, ret));
		if (*ret)
			return NULL;
	}
	return NULL;
}

static struct error *note_words(struct engine *engine, enum comment_kind kind, const char *words)
{
	return members_comment(&engine->members, (struct member_comment){ .state = words,
									  .kind = kind,
									  .from = NO_ALLOCATION,
									  .to = NO_ALLOCATION });
}

static bool has_rules(const struct extension_rules *rules, uint16_t state)
{
	for (size_t i = 0; i < rules->count; i++)
		if (rules->list[i].state == state)
			return true;
	return false;
}

/* Say so where a state's rules could be meant to be those of a class. */
static struct error *note_states(struct engine *engine)
{
	for (size_t i = 0; i < engine->rules->state_count; i++) {
		const char *name = engine->rules->state_names[i];
		bool is_class = false;

		if (has_rules(engine->rules, (uint16_t)(i + 1)))
			TRY(has_class(engine, name, &is_class));
		if (is_class)
			TRY(note_words(engine, COMMENT_STATE, name));
	}
	return NULL;
}

static struct error *note_idle_rules(struct engine *engine)
{
	list_for_each(rule, engine->rules->list, engine->rules->count) {
		if (rule->idle != RULE_APPLIES)
			TRY(note_words(engine,
				       rule->idle == RULE_REPEATED ? COMMENT_REPEATED
								   : COMMENT_UNREACHED,
				       rule->word));
	}
	return NULL;
}

struct error *extension_apply(const struct extension *extension, struct members *members)
{
	_cleanup_(engine_deinit) struct engine engine = { 0 };
	size_t count = members->set.count;
	struct members extended;
	bool again = true;

	TRY(engine_init(&engine, extension, count));
	while (again) {
		TRY(extend_all(&engine, members));
		TRY(check_tests(&engine, &again));
		if (again)
			TRY(start_again(&engine));
	}
	settle_members(&engine, members);
	TRY(note_states(&engine));
	TRY(note_idle_rules(&engine));
	TRY(members_add_comments(&engine.members, members));
	extended = engine.members;
	engine.members = *members;
	*members = extended;
	return NULL;
}
