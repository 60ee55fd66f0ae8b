#include "analyzer/types/kept.h"

struct kept_entry kept_entry_of(const char *kind, struct debug *debug,
				const struct type_table *types, bool symbols)
{
	struct kept_entry entry = { .debug = debug, .types = types, .key = cache_key_begin(kind) };

	if (build_cache(debug) && build_identify(debug, symbols, &entry.key))
		entry.folder = build_cache(debug);
	return entry;
}

bool kept_array(struct side_file *file, unsigned int number, size_t element, struct side_array *ret,
		size_t *ret_count)
{
	struct error *error = side_file_find(file, number, ret);
	bool is_there = !error && ret->bytes && ret->size % element == 0;

	error_destroy(error);
	*ret_count = is_there ? ret->size / element : 0;
	return is_there;
}
