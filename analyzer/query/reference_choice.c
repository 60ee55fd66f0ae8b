#include "analyzer/query/reference_choice.h"

#include <string.h>

enum { PIECE = 1 << 20 /* bytes between looks for holes */ };

struct word_scan word_scan_of(const struct analysis *analysis, allocation_id id)
{
	const struct allocation_index *index = analysis_index(analysis);
	uint64_t start = allocation_start(index, id);

	return (struct word_scan){
		.image = analysis_image(analysis),
		.start = start,
		.at = start,
		.word_size = image_word_size(analysis_image(analysis)),
		.end = start + allocation_size(index, id),
	};
}

/* Go to where the dump has a word again; false if that is nowhere. */
static bool find_bytes(struct word_scan *scan)
{
	while (scan->end - scan->at >= scan->word_size) {
		const struct region *region;

		scan->bytes = image_bytes(scan->image, scan->at, &scan->known);
		scan->known = MIN(scan->known, PIECE);
		if (scan->bytes && scan->known >= scan->word_size)
			return true;
		region = image_find(scan->image, scan->at);
		if (!region || region->end >= scan->end)
			return false;
		scan->at = (region->end + scan->word_size - 1) & ~(scan->word_size - 1);
		if (scan->at >= scan->end)
			return false;
	}
	return false;
}

/* Leave out what was never touched behind a piece. */
static void skip_hole(struct word_scan *scan)
{
	uint64_t next;

	scan->known = 0;
	if (scan->end - scan->at < PIECE)
		return;
	next = image_next_data(scan->image, scan->at);
	if (next > scan->at && next < scan->end)
		scan->at = (next + scan->word_size - 1) & ~(scan->word_size - 1);
}

bool word_scan_next(struct word_scan *scan, uint64_t *ret_offset, uint64_t *ret_word)
{
	const uint64_t size = scan->word_size;

	if (scan->end - scan->at < size)
		return false;
	if (scan->known < size && !find_bytes(scan))
		return false;
	*ret_word = load_word(scan->bytes, (unsigned int)size);
	*ret_offset = scan->at - scan->start;
	scan->at += size;
	scan->bytes += size;
	scan->known -= size;
	if (scan->known < size)
		skip_hole(scan);
	return true;
}

bool word_of_allocation(const struct analysis *analysis, allocation_id id, uint64_t offset,
			uint64_t *ret)
{
	const struct allocation_index *index = analysis_index(analysis);
	uint64_t size = allocation_size(index, id);

	uint64_t word = image_word_size(analysis_image(analysis));

	if (size < word || offset > size - word)
		return false;
	return image_read_word(analysis_image(analysis), allocation_start(index, id) + offset, ret);
}

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
	struct word_scan scan = word_scan_of(choice->analysis, source);
	allocation_id current = NO_ALLOCATION;
	size_t next = 0, left = 0;
	uint64_t offset, word;
	bool taken = false;

	while ((next < count || !taken) && word_scan_next(&scan, &offset, &word)) {
		allocation_id target = allocation_find(index, word);

		if (target == NO_ALLOCATION || target == source)
			continue;
		if (target != current && next < count && target == targets[next]) {
			current = targets[next++];
			taken = false;
		}
		if (target != current || taken)
			continue;
		taken = reference_choice_takes(choice, source, offset, target);
		if (taken)
			targets[left++] = target;
	}
	return left;
}

static struct error *narrow(struct reference_choice *choice)
{
	struct analysis *analysis = choice->analysis;
	struct progress *progress = analysis_progress(analysis);

	TRY(analysis_need(analysis, STAGE_OWNERS));
	choice->judge = malloc(sizeof(*choice->judge));
	TRY_MEMORY(choice->judge);
	reference_judge_init(choice->judge, analysis_patterns(analysis));
	progress_begin(progress, "judging references", allocation_count(analysis_index(analysis)));
	return graph_narrow(analysis_graph(analysis), 0, narrow_row, choice,
			    analysis_account(analysis), progress, &choice->outgoing);
}

struct error *reference_choice_outgoing(struct reference_choice *choice, const struct graph **ret)
{
	TRY(analysis_need(choice->analysis, STAGE_GRAPH));
	if (!takes_all(choice) && !choice->outgoing)
		TRY(narrow(choice));
	*ret = takes_all(choice) ? analysis_graph(choice->analysis) : choice->outgoing;
	return NULL;
}

struct error *reference_choice_incoming(struct reference_choice *choice, const struct graph **ret)
{
	const struct graph *outgoing;

	if (takes_all(choice)) {
		TRY(analysis_need(choice->analysis, STAGE_INCOMING));
		*ret = analysis_incoming(choice->analysis);
		return NULL;
	}
	TRY(reference_choice_outgoing(choice, &outgoing));
	if (!choice->incoming)
		TRY(graph_transpose(outgoing, analysis_account(choice->analysis),
				    analysis_progress(choice->analysis), &choice->incoming));
	*ret = choice->incoming;
	return NULL;
}
