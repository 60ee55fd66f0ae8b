#include "analyzer/diff/census.h"

#include <inttypes.h>
#include <string.h>

static const char *const names[ASPECTS] = {
	[ASPECT_KIND] = "kind",		  [ASPECT_CLASS] = "class",
	[ASPECT_SIGNATURE] = "signature", [ASPECT_PATTERN] = "pattern",
	[ASPECT_SIZE] = "size",		  [ASPECT_FINGERPRINT] = "fingerprint",
	[ASPECT_OWNER] = "owner",
};

const char *aspect_name(enum aspect aspect)
{
	return names[aspect];
}

enum aspect aspect_find(const char *name)
{
	enum aspect aspect = 0;

	while (aspect < ASPECTS && strcmp(names[aspect], name) != 0)
		aspect++;
	return aspect;
}

void census_deinit(struct census *census)
{
	table_release(&census->keys);
	memory_release(&census->numbers);
	leak_kinds_deinit(&census->leaks);
	for (size_t i = 0; i < census->holder_count; i++)
		free(census->holders[i]);
	free(census->holders);
}

struct error *census_count(struct census *census, kind_key key, uint64_t bytes, uint32_t *ret)
{
	struct tally tally = { .key = key, .count = 1, .bytes = bytes };
	struct error *error = tally_add_numbered(&census->keys, tally, ret);

	if (!error)
		++*ret;
	return error;
}

struct error *census_add(struct census *census, allocation_id id, kind_key key, uint64_t bytes)
{
	return census_count(census, key, bytes, (uint32_t *)census->numbers.bytes + id);
}

kind_key census_class(const struct analysis *analysis, allocation_id id)
{
	struct classes *classes = analysis_classes(analysis);
	kind_key key = kind_of(analysis, NULL, id);
	uint64_t signature = kind_signature(key);

	return signature && classes_kind(classes, signature) == SIGNATURE_UNKNOWN
		       ? KIND_UNKNOWN
		       : kind_without_word(key);
}

static const char *name_other(enum aspect aspect, enum census_other other)
{
	static const char *const without[ASPECTS] = {
		[ASPECT_CLASS] = "no class",
		[ASPECT_SIGNATURE] = "no signature",
		[ASPECT_PATTERN] = "no pattern",
		[ASPECT_OWNER] = "nobody",
	};
	static const char *const others[] = {
		[OTHER_SEVERAL] = "several, none of them alone",
		[OTHER_STACK] = "a stack",
		[OTHER_REGISTER] = "a register",
		[OTHER_KERNEL] = "the kernel",
	};

	return other == OTHER_NONE ? without[aspect] : others[other];
}

static void name_leak(const struct leak_kind *kind, struct census_name *name)
{
	snprintf(name->prefix, sizeof(name->prefix), "%016" PRIx64 " ", kind->fingerprint);
	name->text = kind->name;
}

struct census_name census_name(const struct census *census, kind_key key)
{
	struct kind_name kind = kind_name(census->analysis, key);
	struct census_name name = { .text = kind.text, .size = kind.size };
	uint64_t value = kind_value(key);

	switch (kind_tag(key)) {
	case BY_SIGNATURE:
		if (!name.text)
			name.text = "signature outside of modules";
		break;
	case BY_PATTERN:
		strcpy(name.prefix, "%");
		break;
	case BY_SIZE:
		name.text = census->aspect == ASPECT_SIZE ? "allocations" : "unrecognized";
		break;
	case BY_OTHER:
		name.text = name_other(census->aspect, (enum census_other)value);
		break;
	case BY_LEAK:
		name_leak(&census->leaks.list[value], &name);
		break;
	case BY_HOLDER:
		name.text = census->holders[value];
	}
	if (!name.text)
		name.text = "something without a name";
	return name;
}
