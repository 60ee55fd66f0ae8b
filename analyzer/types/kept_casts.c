#include "analyzer/types/casts.h"
#include "analyzer/types/kept.h"

enum { CASTS, RESULTS };

static struct error *save_casts(const void *data, struct side_writer *writer)
{
	const struct casts *casts = data;

	TRY(side_writer_array(writer, CASTS, casts->all.items,
			      casts->all.count * sizeof(struct cast)));
	return side_writer_array(writer, RESULTS, casts->results.items,
				 casts->results.count * sizeof(type_number));
}

void kept_casts_save(const struct kept_entry *entry, const struct casts *casts)
{
	if (build_was_read_whole(entry->debug))
		cache_keep(entry->folder, &entry->key, save_casts, casts);
}

/* Places are only compared; types are looked up. */
static bool check_casts(const struct kept_entry *entry, const struct casts *casts)
{
	size_t types = type_count(entry->types);

	for (size_t i = 0; i < casts->all.count; i++)
		if (casts->all.items[i].type >= types ||
		    (i > 0 && casts->all.items[i].place < casts->all.items[i - 1].place))
			return false;
	array_for_each(result, &casts->results)
		if (*result >= types)
			return false;
	return true;
}

static struct error *copy_casts(struct casts *casts, const struct side_array *all, size_t count,
				const struct side_array *results, size_t result_count)
{
	TRY(array_resize(&casts->all, count));
	TRY(array_resize(&casts->results, result_count));
	if (count)
		memcpy(casts->all.items, all->bytes, all->size);
	if (result_count)
		memcpy(casts->results.items, results->bytes, results->size);
	return NULL;
}

bool kept_casts_load(const struct kept_entry *entry, struct casts *casts)
{
	_cleanup_(side_file_close) struct side_file *file = cache_find(entry->folder, &entry->key);
	struct side_array all, results;
	size_t count, result_count;
	struct error *error;
	bool is_fine;

	if (!file || !kept_array(file, CASTS, sizeof(struct cast), &all, &count) ||
	    !kept_array(file, RESULTS, sizeof(type_number), &results, &result_count))
		return false;
	error = copy_casts(casts, &all, count, &results, result_count);
	is_fine = !error && check_casts(entry, casts);
	error_destroy(error);
	if (!is_fine)
		casts->all.count = casts->results.count = 0;
	return is_fine;
}
