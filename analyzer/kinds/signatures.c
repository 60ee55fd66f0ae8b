#include "analyzer/kinds/signatures.h"

#include "analyzer/base/text.h"
#include "analyzer/classify/type_names.h"

#include <string.h>

struct error *signatures_need(struct analysis *analysis, const struct bitmap *members)
{
	enum { ONE_IN = 6 };

	if (bitmap_weight(members) < members->count / ONE_IN)
		return NULL;
	return analysis_need(analysis, STAGE_SIGNATURES);
}

struct error *signatures_count(struct analysis *analysis, struct tally_table *ret)
{
	const struct allocation_index *index = analysis_index(analysis);
	const struct bitmap *used = allocation_used(index);
	struct progress *progress = analysis_progress(analysis);
	uint64_t reported = 0;

	TRY(analysis_need(analysis, STAGE_SIGNATURES));
	ret->memory.account = analysis_account(analysis);
	progress_begin(progress, "counting signatures", used->count);
	bitmap_for_each(id, used) {
		uint64_t signature = analysis_signature(analysis, (allocation_id)id);
		struct tally tally = {
			.key = signature,
			.count = 1,
			.bytes = allocation_size(index, (allocation_id)id),
		};

		if (signature)
			TRY(tally_add(ret, tally));
		TRY(progress_check_at(progress, id, &reported));
	}
	array_sort(ret, tally_compare_counts);
	return NULL;
}

struct error *class_filter_init(struct class_filter *filter, struct analysis *analysis,
				const char *name)
{
	*filter = (struct class_filter){
		.classes = analysis_classes(analysis),
		.name = short_name(name),
		.judged.memory.account = analysis_account(analysis),
	};
	classes_begin_search(filter->classes);
	return filter->name ? NULL : &error_no_memory;
}

void class_filter_deinit(struct class_filter *filter)
{
	free(filter->name);
	table_release(&filter->judged);
}

struct error *class_filter_judge(struct class_filter *filter, uint64_t signature, bool *ret_taken)
{
	const struct tally *known = tally_find(&filter->judged, signature);
	bool taken;

	if (known) {
		*ret_taken = known->owned != 0;
		return NULL;
	}
	taken = signature && classes_is_a(filter->classes, signature, filter->name);
	*ret_taken = taken;
	return tally_add(&filter->judged,
			 (struct tally){ .key = signature, .count = 1, .owned = taken });
}

/* Names of classes, borrowed. */
struct name_list {
	ARRAY(const char *) names;
	struct error *error;
};

/* Ends the visit only if there is no memory for more. */
static bool add_name(void *data, const char *name)
{
	struct name_list *list = data;

	list->error = array_append(&list->names, name);
	return list->error;
}

static const char *listed_name(const void *data, size_t number)
{
	const struct name_list *list = data;

	return number < list->names.count ? list->names.items[number] : NULL;
}

/* The last part of the name, which is enough where it is the only one. */
static const char *listed_end(const void *data, size_t number)
{
	const char *name = listed_name(data, number);
	const char *end = name ? strpbrk(name, "<(") : NULL;

	if (!name)
		return NULL;
	for (end = end ? end : name + strlen(name); end > name && !strchr(".:", end[-1]);)
		end--;
	return end;
}

/* True if the name is WHERE.WORD or WHERE::WORD. */
static bool ends_with(const char *name, const char *word)
{
	size_t length = strlen(name), end = strlen(word);
	const char *before = name + length - end;

	return length > end && strcmp(before, word) == 0 && strchr(".:", before[-1]);
}

struct completion {
	const char *word;
	const char *names[2]; /* the first that end with it, borrowed */
	size_t count;
};

static bool complete_name(void *data, const char *name)
{
	struct completion *completion = data;

	if (!ends_with(name, completion->word))
		return false;
	for (size_t i = 0; i < completion->count; i++)
		if (strcmp(completion->names[i], name) == 0)
			return false;
	completion->names[completion->count++] = name;
	return completion->count == COUNT_OF(completion->names);
}

struct error *class_filter_complete(struct class_filter *filter, struct analysis *analysis,
				    bool *ret)
{
	_cleanup_(table_release) struct tally_table signatures = { 0 };
	_cleanup_(free) char *note = NULL;
	struct completion completion = { .word = filter->name };
	char *name;

	*ret = false;
	TRY(signatures_count(analysis, &signatures));
	for (size_t i = 0; i < signatures.count; i++)
		if (classes_visit_names(filter->classes, signatures.items[i].key, complete_name,
					&completion))
			return error_create(ERROR_USAGE, "'%s' may be '%s' or '%s'", filter->name,
					    completion.names[0], completion.names[1]);
	if (completion.count == 0)
		return NULL;
	note = format_text("'%s' is taken for '%s'", filter->name, completion.names[0]);
	name = strdup(completion.names[0]);
	if (!note || !name) {
		free(name);
		return &error_no_memory;
	}
	analysis_note(analysis, note);
	free(filter->name);
	filter->name = name;
	table_release(&filter->judged);
	classes_begin_search(filter->classes);
	*ret = true;
	return NULL;
}

struct error *class_filter_check(struct class_filter *filter, struct analysis *analysis)
{
	_cleanup_(array_release) struct name_list list = {
		.names.memory.account = analysis_account(analysis),
	};
	_cleanup_(table_release) struct tally_table signatures = { 0 };
	const char *nearest;

	TRY(signatures_count(analysis, &signatures));
	for (size_t i = 0; i < signatures.count; i++) {
		uint64_t signature = signatures.items[i].key;

		if (classes_is_a(filter->classes, signature, filter->name))
			return NULL;
		if (classes_visit_names(filter->classes, signature, add_name, &list))
			return list.error;
	}
	nearest = nearest_word(filter->name, listed_name, &list);
	if (!nearest)
		nearest = nearest_word(filter->name, listed_end, &list);
	return error_unknown("class or signature", filter->name, nearest);
}
