#include "analyzer/types/sites_parts.h"

#include <assert.h>

/*
 * The arrays of an entry. Addresses are kept_address. The argument with the size is computed again.
 */
enum { FLAGS, FOLLOWED, MAKERS, LIBRARY_CALLS, SITES, POINTEES };

enum { IS_CUT = 1, HAS_UNREAD = 2 };

/* One's address that leads nowhere: see FOLLOWED_NOWHERE. */
static const kept_address KEPT_NOWHERE = UINT64_MAX;

struct kept_followed {
	kept_address slot, address;
};

struct kept_maker {
	kept_address entry;
	uint8_t size, count, is_constant, unused;
	uint16_t header, offset;
};

struct kept_call {
	kept_address callee, address, function;
};

enum { IS_KNOWN = 1, IS_RETURN = 2, IS_MAKER = 4 };

struct kept_site {
	kept_address address, function, callee;
	uint64_t arguments[MOST_PARAMETERS];
	uint32_t first_pointee;
	uint32_t types[MOST_TYPES];
	uint8_t passed[MOST_PARAMETERS];
	uint8_t type_count, pointee_count, constant, flags, unused[6];
};

static_assert(sizeof(struct kept_site) == 104, "no byte of it is undefined");

struct saved {
	const struct kept_entry *entry;
	const struct sites *sites;
};

/* An address outside of all modules cannot be found again. */
static struct error *keep(const struct saved *saved, uint64_t address, kept_address *ret)
{
	*ret = build_keep_address(saved->entry->debug, address);
	return *ret == KEPT_OUTSIDE ? error_create(ERROR_NOT_SUPPORTED, "it is in no module")
				    : NULL;
}

static struct error *save_followed(const struct saved *saved, struct side_writer *writer)
{
	struct kept_followed kept;

	side_writer_begin(writer, FOLLOWED);
	array_for_each(followed, &saved->sites->followed) {
		TRY(keep(saved, followed->slot, &kept.slot));
		kept.address = followed->address == FOLLOWED_NOWHERE
				       ? KEPT_NOWHERE
				       : build_keep_address(saved->entry->debug, followed->address);
		TRY(side_writer_add(writer, &kept, sizeof(kept)));
	}
	return NULL;
}

static struct error *save_makers(const struct saved *saved, struct side_writer *writer)
{
	side_writer_begin(writer, MAKERS);
	array_for_each(maker, &saved->sites->makers) {
		struct kept_maker kept = {
			.size = maker->size,
			.count = maker->count,
			.is_constant = maker->is_constant,
			.header = maker->header,
			.offset = maker->offset,
		};

		TRY(keep(saved, maker->entry, &kept.entry));
		TRY(side_writer_add(writer, &kept, sizeof(kept)));
	}
	return NULL;
}

static struct error *save_library_calls(const struct saved *saved, struct side_writer *writer)
{
	struct kept_call kept;

	side_writer_begin(writer, LIBRARY_CALLS);
	array_for_each(call, &saved->sites->library_calls) {
		kept.callee = build_keep_address(saved->entry->debug, call->callee);
		TRY(keep(saved, call->address, &kept.address));
		TRY(keep(saved, call->function, &kept.function));
		TRY(side_writer_add(writer, &kept, sizeof(kept)));
	}
	return NULL;
}

static struct error *save_site(const struct saved *saved, const struct site *site,
			       struct side_writer *writer)
{
	struct kept_site kept = {
		.callee = build_keep_address(saved->entry->debug, site->callee),
		.first_pointee = site->first_pointee,
		.type_count = site->type_count,
		.pointee_count = site->pointee_count,
		.constant = site->constant,
		.flags = (uint8_t)((site->is_known ? IS_KNOWN : 0) |
				   (site->is_return ? IS_RETURN : 0) |
				   (site->is_maker ? IS_MAKER : 0)),
	};

	TRY(keep(saved, site->address, &kept.address));
	TRY(keep(saved, site->function, &kept.function));
	memcpy(kept.arguments, site->arguments, sizeof(kept.arguments));
	memcpy(kept.types, site->types, sizeof(kept.types));
	memcpy(kept.passed, site->passed, sizeof(kept.passed));
	return side_writer_add(writer, &kept, sizeof(kept));
}

static struct error *save_sites(const void *data, struct side_writer *writer)
{
	const struct saved *saved = data;
	const struct sites *sites = saved->sites;
	uint64_t flags = (sites->is_cut ? IS_CUT : 0) | (sites->has_unread ? HAS_UNREAD : 0);

	TRY(side_writer_array(writer, FLAGS, &flags, sizeof(flags)));
	TRY(save_followed(saved, writer));
	TRY(save_makers(saved, writer));
	TRY(save_library_calls(saved, writer));
	side_writer_begin(writer, SITES);
	array_for_each(site, &sites->all)
		TRY(save_site(saved, site, writer));
	return side_writer_array(writer, POINTEES, sites->pointees.items,
				 sites->pointees.count * sizeof(type_number));
}

void kept_sites_save(const struct kept_entry *entry, const struct sites *sites)
{
	const struct saved saved = { entry, sites };

	if (build_was_read_whole(entry->debug))
		cache_keep(entry->folder, &entry->key, save_sites, &saved);
}

struct loading {
	const struct kept_entry *entry;
	struct side_file *file;
	struct sites *sites;
};

static struct error *damaged(void)
{
	return error_create(ERROR_BAD_DUMP, "it is damaged");
}

static struct error *find(const struct loading *loading, kept_address kept, uint64_t *ret)
{
	return build_find_address(loading->entry->debug, kept, ret) ? NULL : damaged();
}

/* The array of that number, or NULL. */
static const void *find_array(const struct loading *loading, unsigned int number, size_t element,
			      size_t *ret_count)
{
	struct side_array array;

	return kept_array(loading->file, number, element, &array, ret_count) ? array.bytes : NULL;
}

/* Fail unless the words through which calls were followed have the same values in this core. */
static struct error *check_followed(const struct loading *loading)
{
	struct debug *debug = loading->entry->debug;
	const struct kept_followed *kept;
	uint64_t slot, address;
	size_t count;

	kept = find_array(loading, FOLLOWED, sizeof(*kept), &count);
	if (!kept)
		return damaged();
	for (size_t i = 0; i < count; i++) {
		TRY(find(loading, kept[i].slot, &slot));
		if (image_read_u64(loading->sites->input.image, slot, &address)
			    ? build_keep_address(debug, address) != kept[i].address
			    : kept[i].address != KEPT_NOWHERE)
			return error_create(ERROR_BAD_DUMP, "it is of another core");
	}
	return NULL;
}

static bool is_argument(uint8_t number)
{
	return number < MOST_PARAMETERS || number == NOT_AN_ARGUMENT;
}

static struct error *load_makers(const struct loading *loading)
{
	struct sites *sites = loading->sites;
	const struct kept_maker *kept;
	size_t count;

	kept = find_array(loading, MAKERS, sizeof(*kept), &count);
	if (!kept)
		return damaged();
	for (size_t i = 0; i < count; i++) {
		struct maker maker = { .size = kept[i].size,
				       .count = kept[i].count,
				       .is_constant = kept[i].is_constant != 0,
				       .header = kept[i].header,
				       .offset = kept[i].offset };

		TRY(find(loading, kept[i].entry, &maker.entry));
		if (!is_argument(maker.size) || !is_argument(maker.count) ||
		    maker.header > LARGEST_HEADER || maker.offset > maker.header)
			return damaged();
		TRY(table_append(&sites->makers, maker.entry, maker));
	}
	return NULL;
}

static struct error *load_library_calls(const struct loading *loading)
{
	const struct kept_call *kept;
	struct library_call call;
	size_t count;

	kept = find_array(loading, LIBRARY_CALLS, sizeof(*kept), &count);
	if (!kept)
		return damaged();
	for (size_t i = 0; i < count; i++) {
		TRY(find(loading, kept[i].callee, &call.callee));
		TRY(find(loading, kept[i].address, &call.address));
		TRY(find(loading, kept[i].function, &call.function));
		TRY(array_append(&loading->sites->library_calls, call));
	}
	return NULL;
}

static struct error *load_pointees(const struct loading *loading)
{
	const type_number *kept;
	size_t count;

	kept = find_array(loading, POINTEES, sizeof(*kept), &count);
	if (!kept)
		return damaged();
	for (size_t i = 0; i < count; i++) {
		if (kept[i] >= type_count(loading->entry->types))
			return damaged();
		TRY(array_append(&loading->sites->pointees, kept[i]));
	}
	return NULL;
}

static bool is_fine(const struct loading *loading, const struct kept_site *kept)
{
	size_t pointees = loading->sites->pointees.count;
	bool is = kept->type_count <= MOST_TYPES && kept->first_pointee <= pointees &&
		  kept->pointee_count <= pointees - kept->first_pointee;

	for (size_t i = 0; i < MOST_TYPES; i++)
		is &= kept->types[i] < type_count(loading->entry->types);
	for (size_t i = 0; i < MOST_PARAMETERS; i++)
		is &= kept->passed[i] <= MOST_PARAMETERS;
	return is;
}

static struct error *load_site(const struct loading *loading, const struct kept_site *kept)
{
	struct site site = {
		.first_pointee = kept->first_pointee,
		.type_count = kept->type_count,
		.pointee_count = kept->pointee_count,
		.constant = kept->constant,
		.is_known = kept->flags & IS_KNOWN,
		.is_return = kept->flags & IS_RETURN,
		.is_maker = kept->flags & IS_MAKER,
	};

	if (!is_fine(loading, kept))
		return damaged();
	TRY(find(loading, kept->address, &site.address));
	TRY(find(loading, kept->function, &site.function));
	TRY(find(loading, kept->callee, &site.callee));
	memcpy(site.arguments, kept->arguments, sizeof(site.arguments));
	memcpy(site.types, kept->types, sizeof(site.types));
	memcpy(site.passed, kept->passed, sizeof(site.passed));
	return array_append(&loading->sites->all, site);
}

static struct error *load(const struct loading *loading)
{
	const struct kept_site *kept;
	const uint64_t *flags;
	size_t count;

	flags = find_array(loading, FLAGS, sizeof(*flags), &count);
	if (!flags || count != 1)
		return damaged();
	TRY(check_followed(loading));
	TRY(load_makers(loading));
	TRY(load_library_calls(loading));
	TRY(load_pointees(loading));
	kept = find_array(loading, SITES, sizeof(*kept), &count);
	if (!kept)
		return damaged();
	for (size_t i = 0; i < count; i++)
		TRY(load_site(loading, &kept[i]));
	loading->sites->is_cut = *flags & IS_CUT;
	loading->sites->has_unread = *flags & HAS_UNREAD;
	return NULL;
}

bool kept_sites_load(const struct kept_entry *entry, struct sites *sites)
{
	_cleanup_(side_file_close) struct side_file *file = cache_find(entry->folder, &entry->key);
	const struct loading loading = { entry, file, sites };
	struct error *error = file ? load(&loading) : damaged();
	bool is_loaded = !error;

	error_destroy(error);
	if (is_loaded)
		return true;
	table_release(&sites->makers);
	arrays_release(&sites->library_calls, &sites->pointees, &sites->all);
	return false;
}
