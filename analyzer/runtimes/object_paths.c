#include "analyzer/runtimes/object_paths.h"

#include "analyzer/base/list.h"
#include "analyzer/base/text.h"
#include "analyzer/runtimes/object_links.h"

#include <stdlib.h>
#include <string.h>

struct object_paths {
	const struct runtimes *list;
	size_t count;
	/* By id, from where the object is reached: an id, plus 1; its own if it has a name; or 0.
	 */
	ARRAY(allocation_id) from;
};

struct search {
	const struct object_paths_input *input;
	struct object_paths *paths;
	ARRAY(allocation_id) queue; /* reached, in order of distance */
	allocation_id source;
};

/* True if the word at place is a reference to id in the graph. */
static bool is_reference(const struct object_paths_input *input, allocation_id id, uint64_t place)
{
	uint64_t word;

	return bitmap_get(input->anchored, id) &&
	       (!place || (image_read_u64(input->image, place, &word) &&
			   !runtimes_is_link(input->list, allocation_find(input->index, place), id,
					     word, place)));
}

static struct error *reach(void *data, allocation_id id, uint64_t place)
{
	struct search *search = data;
	allocation_id *from = &search->paths->from.items[id];

	if (*from || !is_reference(search->input, id, place))
		return NULL;
	*from = search->source + 1;
	return array_append(&search->queue, id);
}

static struct error *begin_at(struct search *search, const struct bitmap *names)
{
	bitmap_for_each(id, names) {
		search->source = (allocation_id)id;
		TRY(reach(search, (allocation_id)id, 0));
	}
	return NULL;
}

/* Names that last are first: of paths of the same length, theirs are taken. */
static struct error *search_from(struct search *search, struct object_space *space,
				 struct bitmap *names)
{
	TRY(object_find_globals(space, names));
	TRY(begin_at(search, names));
	TRY(object_find_locals(space, names));
	TRY(begin_at(search, names));
	for (size_t i = 0; i < search->queue.count; i++) {
		search->source = search->queue.items[i];
		TRY(object_visit_references(space, search->source, reach, search));
		TRY(progress_check(search->input->progress, 1));
	}
	search->paths->count += search->queue.count;
	return NULL;
}

static struct error *search_space(const struct object_paths_input *input,
				  struct object_paths *paths, struct object_space *space)
{
	_cleanup_(bitmap_deinit) struct bitmap names = { 0 };
	struct search search = { input, paths, .queue.memory.account = input->account };
	struct error *error;

	TRY(bitmap_init(&names, paths->from.count, input->account));
	error = search_from(&search, space, &names);
	array_release(&search.queue);
	return error;
}

struct error *object_paths_create(const struct object_paths_input *input, struct object_paths **ret)
{
	_cleanup_(object_paths_destroy) struct object_paths *paths = calloc(1, sizeof(*paths));
	size_t allocations = allocation_count(input->index);

	TRY_MEMORY(paths);
	paths->list = input->list;
	paths->from.memory.account = input->account;
	progress_begin(input->progress, "finding paths to objects", allocations);
	for (size_t i = 0; i < runtime_count(input->list); i++) {
		struct object_space *space =
			runtimes_space(input->list, runtime_at(input->list, i));

		if (!space || !space->runtime->links)
			continue;
		if (!paths->from.count)
			TRY(array_resize(&paths->from, allocations));
		TRY(search_space(input, paths, space));
	}
	*ret = take(paths);
	return NULL;
}

void object_paths_destroy(struct object_paths *paths)
{
	array_release(&paths->from);
	free(paths);
}

size_t object_paths_count(const struct object_paths *paths)
{
	return paths->count;
}

enum {
	END = 10,	 /* objects shown at each end of a long path */
	FARTHEST = 4096, /* of a longer one, only the last are: a list may have millions */
};

/* How many objects are on the path, both ends included; at most FARTHEST. */
static size_t length_of(const struct object_paths *paths, allocation_id id)
{
	const allocation_id *from = paths->from.items;
	size_t length = 1;

	for (; length < FARTHEST && from[id] != id + 1; id = from[id] - 1)
		length++;
	return length;
}

/* Put the last count of the path to id into ids; return the one before these. */
static allocation_id trace_back(const struct object_paths *paths, allocation_id id, size_t count,
				allocation_id *ids)
{
	while (count > 0) {
		ids[--count] = id;
		id = paths->from.items[id] - 1;
	}
	return id;
}

bool object_paths_has(const struct object_paths *paths, allocation_id id)
{
	return paths->from.count && paths->from.items[id];
}

size_t object_paths_steps(const struct object_paths *paths, allocation_id id, size_t most,
			  allocation_id *ret)
{
	size_t length = object_paths_has(paths, id) ? length_of(paths, id) : 0;

	length = length < most ? length : most;
	trace_back(paths, id, length, ret);
	return length;
}

bool object_paths_tell(const struct object_paths *paths, allocation_id id, bool with_content,
		       char *ret, size_t size)
{
	struct object_space *space = runtimes_space_of(paths->list, id);
	allocation_id ids[2 * END];
	size_t length, used = 0;

	if (!object_paths_has(paths, id))
		return false;
	length = length_of(paths, id);
	if (length <= 2 * END) {
		trace_back(paths, id, length, ids);
		object_tell_path(space, ids, length, with_content, ret, size);
		return true;
	}
	id = trace_back(paths, id, END, ids + END);
	if (length < FARTHEST) {
		for (size_t i = length - END; i > END; i--)
			id = paths->from.items[id] - 1;
		trace_back(paths, id, END, ids);
		object_tell_path(space, ids, END, with_content, ret, size / 2);
		used = strlen(ret);
	}
	used += (size_t)snprintf(ret + used, size - used, " ... ");
	object_tell_path(space, ids + END, END, with_content, ret + used, size - used);
	return true;
}

/* ---- and back: the object of a path */

enum { LONGEST_PATH = 1024, MOST_STEPS_BACK = 64, MOST_PATHS_BUILT = 1 << 16 };

/* A search for the object of a path, step by step from a name. */
struct lookup {
	struct object_space *space;
	struct progress *progress;
	char wanted[LONGEST_PATH]; /* without quotes */
	allocation_id ids[MOST_STEPS_BACK];
	size_t count;
	size_t matched;	    /* bytes of the path that the last step has */
	size_t best;	    /* of those that its references have */
	allocation_id next; /* the reference that has them */
	size_t path_count;
	bool guesses;		     /* names that paths do not begin with, as Ruby's Object */
	bool at_end;		     /* all of the path is matched */
	struct path_visitor visitor; /* of those that the path may become, or NULL */
};

static void drop_quotes(char *text)
{
	char *end = text;

	for (; *text; text++)
		if (*text != '"' && *text != '\'')
			*end++ = *text;
	*end = '\0';
}

/*
 * How many bytes of the path the text is, if it ends where a step does; else 0. Perl's @queue has
 * the item $queue[0].
 */
static size_t match(const struct lookup *lookup, const char *text)
{
	static const char sigils[] = "$@%";
	size_t length = strlen(text);
	const char *rest = lookup->wanted + length;
	size_t skipped = *text && strchr(sigils, *text) && *lookup->wanted &&
			 strchr(sigils, *lookup->wanted);

	if (length == 0 || strncmp(lookup->wanted + skipped, text + skipped, length - skipped) != 0)
		return 0;
	return !*rest || strchr(".[{(:-", *rest) ? length : 0;
}

/* The last step of the path, without its separator; or the path's start. */
static const char *last_step(const char *path)
{
	const char *step = path + strspn(path, "$@%");

	for (const char *at = step; *at; at++)
		if (strchr(".[{:", *at) || (at[0] == '-' && at[1] == '>'))
			step = at + 1 + (at[0] == '-');
	return step;
}

/* Visit the path if the text typed ends within its last step. */
static void visit_path(const struct lookup *lookup, const char *path)
{
	char plain[LONGEST_PATH];
	size_t length = strlen(lookup->wanted);

	snprintf(plain, sizeof(plain), "%s", path);
	drop_quotes(plain);
	if (strncmp(plain, lookup->wanted, length) == 0 && last_step(plain) <= plain + length)
		lookup->visitor.visit(lookup->visitor.data, path);
}

/* Match the steps so far and one more. Paths may omit the step ".__dict__". */
static size_t match_steps(struct lookup *lookup, allocation_id id)
{
	static const char unspoken[] = ".__dict__";
	char text[LONGEST_PATH];
	size_t length, matched;

	lookup->ids[lookup->count] = id;
	object_tell_path(lookup->space, lookup->ids, lookup->count + 1, true, text, sizeof(text));
	if (lookup->visitor.visit)
		visit_path(lookup, text);
	drop_quotes(text);
	matched = match(lookup, text);
	length = strlen(text);
	if (matched || lookup->at_end || length < strlen(unspoken) ||
	    strcmp(text + length - strlen(unspoken), unspoken) != 0)
		return matched;
	text[length - strlen(unspoken)] = '\0';
	return match(lookup, text);
}

static struct error *look_at(void *data, allocation_id id, uint64_t place)
{
	struct lookup *lookup = data;
	size_t matched;

	for (size_t i = 0; i < lookup->count; i++)
		if (lookup->ids[i] == id)
			return NULL;
	if (++lookup->path_count > MOST_PATHS_BUILT && (lookup->guesses || lookup->at_end))
		return NULL;
	if (lookup->path_count > MOST_PATHS_BUILT)
		return error_create(
			ERROR_USAGE,
			"'%.80s' has too many members on the way; 'show' and 'sql' find one",
			lookup->wanted);
	matched = match_steps(lookup, id);
	if (matched > lookup->best || (matched == lookup->best && lookup->next == NO_ALLOCATION &&
				       matched >= lookup->matched && matched > 0)) {
		lookup->best = matched;
		lookup->next = id;
	}
	return progress_check(lookup->progress, 1);
}

/*
 * Go on from the name that is the first step. Behind the last one may stand what a reference that
 * is not spoken of leads to, as in Perl.
 */
static struct error *follow_steps(struct lookup *lookup, allocation_id *ret)
{
	for (;;) {
		lookup->at_end = !lookup->wanted[lookup->matched];
		if (lookup->at_end)
			*ret = lookup->ids[lookup->count - 1];
		if (lookup->count + 1 == MOST_STEPS_BACK)
			return NULL;
		lookup->best = lookup->matched;
		lookup->next = NO_ALLOCATION;
		TRY(object_visit_references(lookup->space, lookup->ids[lookup->count - 1], look_at,
					    lookup));
		if (lookup->next == NO_ALLOCATION)
			return NULL;
		lookup->ids[lookup->count++] = lookup->next;
		lookup->matched = lookup->best;
	}
}

/* From those that the path begins with; or, of guesses, from the others. */
static struct error *try_names(struct lookup *lookup, const struct object_paths *paths,
			       allocation_id *ret)
{
	for (size_t id = 0; id < paths->from.count && *ret == NO_ALLOCATION; id++) {
		if (paths->from.items[id] != id + 1)
			continue;
		lookup->space = runtimes_space_of(paths->list, (allocation_id)id);
		lookup->count = 0;
		lookup->at_end = false;
		lookup->matched = match_steps(lookup, (allocation_id)id);
		lookup->count = 1;
		if (lookup->guesses != (lookup->matched > 0))
			TRY(follow_steps(lookup, ret));
	}
	return NULL;
}

static struct error *look_up(struct lookup *lookup, const struct object_paths *paths,
			     const char *path, allocation_id *ret)
{
	*ret = NO_ALLOCATION;
	if ((size_t)snprintf(lookup->wanted, sizeof(lookup->wanted), "%s", path) >=
	    sizeof(lookup->wanted))
		return NULL;
	drop_quotes(lookup->wanted);
	TRY(try_names(lookup, paths, ret));
	lookup->guesses = true;
	return *ret == NO_ALLOCATION ? try_names(lookup, paths, ret) : NULL;
}

struct error *object_paths_find(const struct object_paths *paths, const char *path,
				struct progress *progress, allocation_id *ret)
{
	struct lookup lookup = { .progress = progress };

	return look_up(&lookup, paths, path, ret);
}

struct error *object_paths_complete(const struct object_paths *paths, const char *text,
				    struct progress *progress, struct path_visitor visitor)
{
	struct lookup lookup = { .progress = progress, .visitor = visitor };
	allocation_id id;

	return look_up(&lookup, paths, text, &id);
}

/* Last steps of paths that differ in nothing else. */
struct last_steps {
	char **list;
	size_t count;
};

static void add_step(void *data, const char *path)
{
	enum { MOST_STEPS = 1 << 12 };
	struct last_steps *steps = data;

	if (steps->count < MOST_STEPS && LIST_GROW(steps->list, steps->count)) {
		steps->list[steps->count] = strdup(last_step(path));
		steps->count += steps->list[steps->count] != NULL;
	}
}

static const char *step_at(const void *data, size_t number)
{
	const struct last_steps *steps = data;

	return number < steps->count ? steps->list[number] : NULL;
}

char *object_paths_nearest(const struct object_paths *paths, const char *path,
			   struct progress *progress)
{
	const char *step = last_step(path), *nearest;
	_cleanup_(free) char *start = strndup(path, (size_t)(step - path));
	struct last_steps steps = { 0 };
	char *result = NULL;

	if (start && *start)
		error_destroy(object_paths_complete(paths, start, progress,
						    (struct path_visitor){ add_step, &steps }));
	nearest = nearest_word(step, step_at, &steps);
	if (nearest)
		result = format_text("%s%s", start, nearest);
	for (size_t i = 0; i < steps.count; i++)
		free(steps.list[i]);
	free(steps.list);
	return result;
}
