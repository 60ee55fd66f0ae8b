#include "analyzer/query/reference_choice.h"

#include "analyzer/query/word_scan.h"

void reference_choice_init(struct reference_choice *choice, struct analysis *analysis,
			   bool skip_tainted, bool skip_unfavored)
{
	*choice = (struct reference_choice){
		.analysis = analysis,
		.skip_tainted = skip_tainted,
		.skip_unfavored = skip_unfavored,
		.source = NO_ALLOCATION,
	};
}

void reference_choice_deinit(struct reference_choice *choice)
{
	if (choice->outgoing)
		graph_destroy(choice->outgoing);
	if (choice->incoming)
		graph_destroy(choice->incoming);
	free(choice->judge);
	*choice = (struct reference_choice){ 0 };
}

static bool takes_all(const struct reference_choice *choice)
{
	return !choice->skip_tainted && !choice->skip_unfavored;
}

bool reference_choice_takes(struct reference_choice *choice, allocation_id source, uint64_t offset,
			    allocation_id target)
{
	struct reference_judge *judge = choice->judge;

	if (!judge)
		return true;
	if (choice->source != source)
		reference_judge_set_source(judge, source);
	choice->source = source;
	if (choice->skip_tainted && reference_judge_taint(judge, offset))
		return false;
	return !choice->skip_unfavored || reference_judge_favors(judge, offset, target);
}

/*
 * Put what is led to by a word that counts to the front of the row. Each entry of it stands for one
 * word, or several that follow each other and lead to the same; words that the graph left out are
 * in no entry.
 */
static size_t narrow_row(void *data, allocation_id source, allocation_id *targets, size_t count)
{
	struct reference_choice *choice = data;
	const struct allocation_index *index = analysis_index(choice->analysis);
	uint64_t start = allocation_start(index, source), address, word;
	allocation_id current = NO_ALLOCATION;
	size_t next = 0, left = 0;
	struct word_scan scan;
	bool taken = false;

	word_scan_init(&scan, analysis_image(choice->analysis), start,
		       start + allocation_size(index, source));
	while ((next < count || !taken) && word_scan_next(&scan, &address, &word)) {
		allocation_id target = allocation_find(index, word);

		if (target == NO_ALLOCATION || target == source)
			continue;
		if (target != current && next < count && target == targets[next]) {
			current = targets[next++];
			taken = false;
		}
		if (target != current || taken)
			continue;
		taken = reference_choice_takes(choice, source, address - start, target);
		if (taken)
			targets[left++] = target;
	}
	return left;
}

static struct error *create_judge(struct reference_choice *choice)
{
	struct analysis *analysis = choice->analysis;
	struct error *error = analysis_need(analysis, STAGE_OWNERS);

	if (error)
		return error;
	choice->judge = malloc(sizeof(*choice->judge));
	if (!choice->judge)
		return &error_no_memory;
	reference_judge_init(choice->judge, analysis_patterns(analysis));
	return NULL;
}

static struct error *narrow(struct reference_choice *choice)
{
	struct analysis *analysis = choice->analysis;
	struct progress *progress = analysis_progress(analysis);
	const struct graph *graph = analysis_graph(analysis);
	struct error *error = create_judge(choice);

	if (error)
		return error;
	progress_begin(progress, "judging references", allocation_count(analysis_index(analysis)));
	return graph_narrow(graph, narrow_row, choice, analysis_account(analysis), progress,
			    &choice->outgoing);
}

struct error *reference_choice_outgoing(struct reference_choice *choice, const struct graph **ret)
{
	struct error *error = analysis_need(choice->analysis, STAGE_GRAPH);

	if (!error && !takes_all(choice) && !choice->outgoing)
		error = narrow(choice);
	if (error)
		return error;
	*ret = takes_all(choice) ? analysis_graph(choice->analysis) : choice->outgoing;
	return NULL;
}

struct error *reference_choice_incoming(struct reference_choice *choice, const struct graph **ret)
{
	const struct graph *outgoing;
	struct error *error;

	if (takes_all(choice)) {
		error = analysis_need(choice->analysis, STAGE_INCOMING);
		if (!error)
			*ret = analysis_incoming(choice->analysis);
		return error;
	}
	error = reference_choice_outgoing(choice, &outgoing);
	if (!error && !choice->incoming)
		error = graph_transpose(outgoing, analysis_account(choice->analysis),
					analysis_progress(choice->analysis), &choice->incoming);
	if (!error)
		*ret = choice->incoming;
	return error;
}
