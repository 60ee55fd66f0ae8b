#include "analyzer/kinds/signatures.h"
#include "analyzer/query/ranges.h"

#include <stdlib.h>

static const char *kind_group(enum signature_kind kind)
{
	static const char *const groups[] = {
		[SIGNATURE_UNKNOWN] = "Read-only addresses without a name",
		[SIGNATURE_CLASS] = "Vtables of classes",
		[SIGNATURE_FUNCTION] = "Functions",
		[SIGNATURE_DATA] = "Data objects",
	};

	return groups[kind];
}

/* Moves the tallies over into ret, in their order. */
static struct error *add_ranges(struct classes *classes, const struct tally_table *signatures,
				struct ranges *ret)
{
	struct tally *tallies = calloc(signatures->count + 1, sizeof(*tallies));
	struct error *error = NULL;

	if (!tallies)
		return &error_no_memory;
	ret->details = tallies;
	for (size_t i = 0; !error && i < signatures->count; i++) {
		uint64_t signature = signatures->items[i].key;

		tallies[i] = signatures->items[i];
		error = ranges_add(
			ret, (struct range){ .start = signature,
					     .size = tallies[i].bytes,
					     .group = kind_group(classes_kind(classes, signature)),
					     .number = i });
	}
	return error;
}

static struct error *signatures_collect(struct analysis *analysis,
					const struct set_arguments *arguments, struct ranges *ret)
{
	_cleanup_(table_release) struct tally_table signatures = { 0 };
	struct error *error = signatures_count(analysis, &signatures);

	if (error)
		return error;
	return add_ranges(analysis_classes(analysis), &signatures, ret);
}

static void signatures_write(const struct analysis *analysis, const struct ranges *ranges,
			     const struct range *range, struct report *report)
{
	static const char *const kinds[] = {
		[SIGNATURE_UNKNOWN] = "unknown",
		[SIGNATURE_CLASS] = "class",
		[SIGNATURE_FUNCTION] = "function",
		[SIGNATURE_DATA] = "data",
	};
	const struct tally *tally = (const struct tally *)ranges->details + range->number;
	struct classes *classes = analysis_classes(analysis);
	const char *name;

	report_add(report, range->start, tally->count, tally->bytes,
		   kinds[classes_kind(classes, range->start)]);
	name = classes_literal_name(classes, range->start);
	report_add(report, name ? name : classes_name(classes, range->start));
}

const struct range_kind range_kind_signatures = {
	.noun = "signatures",
	.table = TABLE("signature", NULL, { "signature", VALUE_ADDRESS },
		       { "instances", VALUE_COUNT }, { "bytes", VALUE_BYTES },
		       { "kind", VALUE_TEXT }, { "name", VALUE_TEXT }),
	.collect = signatures_collect,
	.write = signatures_write,
};
