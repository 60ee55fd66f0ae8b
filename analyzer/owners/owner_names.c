#include "analyzer/owners/owner_names.h"

#include "analyzer/base/text.h"

#include <inttypes.h>
#include <string.h>
#include <xxhash.h>

enum { LARGEST_EXACT_SIZE = 1024, BY_POWER = BY_MORE };

/* Append a name, whose text is taken over. */
static struct error *append(struct owner_names *names, struct owner_name name)
{
	struct error *error = name.text ? array_append(&names->list, name) : &error_no_memory;

	if (error)
		free(name.text);
	return error;
}

struct error *owner_names_init(struct owner_names *names, struct analysis *analysis)
{
	struct memory_account *account = analysis_account(analysis);

	names->analysis = analysis;
	arrays_use(account, &names->list, &names->kinds, &names->texts);
	return append(names, (struct owner_name){ .text = strdup("(other kinds)") });
}

void owner_names_deinit(struct owner_names *names)
{
	array_for_each(name, &names->list)
		free(name->text);
	array_release(&names->list);
	tables_release(&names->kinds, &names->texts);
}

/* The number of that name, whose text is taken over and escaped. */
static struct error *find_text(struct owner_names *names, struct owner_name name, uint16_t *ret)
{
	_cleanup_(free) char *text = name.text;
	const struct owner_name_entry *entry;
	uint64_t hash;

	TRY_MEMORY(text);
	/* A root is not a kind, whatever its name. */
	hash = XXH3_64bits(text, strlen(text)) ^ (name.by == BY_NOTHING);
	entry = table_find(&names->texts, hash, item, item->key == hash);
	*ret = entry ? entry->number : OTHER_NAMES;
	if (entry || names->list.count >= MOST_NAMES)
		return NULL;
	*ret = (uint16_t)names->list.count;
	TRY(table_append(&names->texts, hash, (struct owner_name_entry){ hash, *ret }));
	name.text = escape_text(text);
	return append(names, name);
}

struct error *owner_names_root(struct owner_names *names, const char *text, uint64_t address,
			       uint16_t *ret)
{
	return find_text(names, (struct owner_name){ .text = strdup(text), .address = address },
			 ret);
}

/* The text of a key, to be freed; NULL if memory is short. */
static char *text_of(const struct analysis *analysis, kind_key key)
{
	struct kind_name name = kind_name(analysis, key);
	uint64_t least = UINT64_C(1) << (kind_value(key) & 63);
	char first[NUMBER_SIZE], last[NUMBER_SIZE], size[SIZE_SIZE];

	if (kind_tag(key) == BY_POWER)
		return format_text("unrecognized of size %s to %s", grouped(least, first),
				   grouped(least - 1 + least, last));
	if (name.by == BY_SIZE)
		return format_text("unrecognized of size %s", format_size(name.size, size));
	if (name.by == BY_PATTERN && pattern_is_text(name.pattern))
		return strdup("strings");
	if (name.by == BY_IDENTITY && !name.text)
		return format_text("(identity %" PRIx64 ")", name.identity);
	return kind_text(analysis, key);
}

/* The key of allocations without a name: their size. */
static kind_key size_key(uint64_t size)
{
	return size <= LARGEST_EXACT_SIZE
		       ? kind_make(BY_SIZE, size)
		       : kind_make(BY_POWER, (uint64_t)(63 - __builtin_clzll(size)));
}

struct error *owner_names_kind(struct owner_names *names, kind_key key, uint64_t size,
			       uint16_t *ret)
{
	const struct owner_name_entry *entry;
	pattern_number pattern;

	key = key == KIND_UNKNOWN ? size_key(size) : kind_without_word(key);
	pattern = kind_pattern(key);
	entry = table_find(&names->kinds, key, item, item->key == key);
	if (entry) {
		*ret = entry->number;
		return NULL;
	}
	*ret = OTHER_NAMES;
	if (names->list.count < MOST_NAMES)
		TRY(find_text(names,
			      (struct owner_name){
				      .text = text_of(names->analysis, key),
				      .by_power = kind_tag(key) == BY_POWER,
				      .is_pattern = pattern != NO_PATTERN,
				      .is_body = pattern != NO_PATTERN && pattern_is_body(pattern),
				      .by = kind_tag(key) == BY_POWER
						    ? BY_SIZE
						    : (enum known_by)kind_tag(key),
				      .address = kind_signature(key),
			      },
			      ret));
	if (names->kinds.count >= MOST_NAMES)
		return NULL;
	return table_append(&names->kinds, key, (struct owner_name_entry){ key, *ret });
}

char *owner_kind_text(const struct analysis *analysis, kind_key key, allocation_id id)
{
	uint64_t size = allocation_size(analysis_index(analysis), id);

	return text_of(analysis,
		       key == KIND_UNKNOWN ? kind_make(BY_SIZE, size) : kind_without_word(key));
}
