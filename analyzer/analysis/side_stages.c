#include "analyzer/analysis/side.h"
#include "analyzer/graph/graph_side.h"
#include "analyzer/heap/index_side.h"

struct error *analysis_save_heap(const struct analysis *analysis, struct side_writer *writer)
{
	return heaps_save(analysis->heaps, writer);
}

struct error *analysis_load_heap(struct analysis *analysis, struct side_file *file,
				 uint64_t *ret_count)
{
	const struct heap_context context = {
		.image = analysis->image,
		.program = analysis->program,
		.findings = &analysis->findings,
		.account = &analysis->account,
		.progress = analysis->progress,
	};
	struct error *error = heaps_load(&context, file, &analysis->heaps);

	if (error)
		return error;
	analysis->index = heaps_index(analysis->heaps);
	*ret_count = allocation_count(analysis->index);
	return NULL;
}

struct error *analysis_save_roots(const struct analysis *analysis, struct side_writer *writer)
{
	return roots_save(analysis->roots, writer);
}

struct error *analysis_load_roots(struct analysis *analysis, struct side_file *file,
				  uint64_t *ret_count)
{
	struct error *error = roots_load(file, analysis->image, analysis->program, analysis->index,
					 analysis->runtimes, &analysis->account, analysis->progress,
					 &analysis->roots);

	if (!error)
		*ret_count = root_range_count(analysis->roots);
	return error;
}

struct error *analysis_save_graph(const struct analysis *analysis, struct side_writer *writer)
{
	return graph_save(analysis->graph, writer);
}

struct error *analysis_load_graph(struct analysis *analysis, struct side_file *file,
				  uint64_t *ret_count)
{
	struct error *error = graph_load(file, allocation_used(analysis->index), &analysis->account,
					 &analysis->graph);

	if (!error)
		*ret_count = graph_edge_count(analysis->graph);
	return error;
}

struct error *analysis_save_reachability(const struct analysis *analysis,
					 struct side_writer *writer)
{
	struct error *error = allocation_set_save(&analysis->anchored, writer, SIDE_ANCHORED);

	return error ? error : liveness_save(&analysis->liveness, writer);
}

struct error *analysis_load_reachability(struct analysis *analysis, struct side_file *file,
					 uint64_t *ret_count)
{
	struct bitmap anchored = { 0 };
	struct error *error = allocation_set_load(file, SIDE_ANCHORED,
						  allocation_count(analysis->index), &anchored);

	if (!error)
		error = liveness_load(file, allocation_used(analysis->index), &anchored,
				      &analysis->liveness);
	if (error)
		return error;
	analysis->anchored = anchored;
	*ret_count = bitmap_weight(&analysis->liveness.leaked);
	return NULL;
}

struct error *analysis_save_leaks(const struct analysis *analysis, struct side_writer *writer)
{
	return leaks_save(analysis->leaks, writer);
}

struct error *analysis_load_leaks(struct analysis *analysis, struct side_file *file,
				  uint64_t *ret_count)
{
	struct error *error = leaks_load(file, &analysis->liveness.leaked, &analysis->leaks);

	if (!error)
		*ret_count = leak_root_count(analysis->leaks);
	return error;
}

struct error *analysis_save_leaked_patterns(const struct analysis *analysis,
					    struct side_writer *writer)
{
	/* They depend on debug information that may come and go. */
	if (runtimes_have_objects(analysis->runtimes) || !analysis->leaked_patterns)
		return NULL;
	return patterns_save(analysis->leaked_patterns, writer);
}

struct error *analysis_load_leaked_patterns(struct analysis *analysis, struct side_file *file,
					    uint64_t *ret_count)
{
	const struct bitmap *unreachable = analysis_unreachable(analysis);

	*ret_count = bitmap_weight(unreachable);
	if (analysis->patterns)
		return NULL;
	return patterns_load(file, analysis->image, analysis->program, analysis->index,
			     analysis->roots, unreachable, analysis->runtimes, &analysis->account,
			     analysis->progress, &analysis->leaked_patterns);
}

struct error *analysis_save_signatures(const struct analysis *analysis, struct side_writer *writer)
{
	return runtimes_have_objects(analysis->runtimes)
		       ? NULL
		       : first_words_save(analysis->first_words, writer);
}

struct error *analysis_load_signatures(struct analysis *analysis, struct side_file *file,
				       uint64_t *ret_count)
{
	const struct signature_reader signatures = analysis_signatures(analysis);
	struct error *error = first_words_load(file, allocation_count(analysis->index), &signatures,
					       &analysis->account, &analysis->first_words);

	if (!error)
		*ret_count = first_words_count(analysis->first_words);
	return error;
}
