#include "analyzer/kinds/allocated_by.h"

#include "analyzer/base/text.h"
#include "analyzer/classify/type_names.h"

/* The class of an object; NULL: it is none, or has no name. */
static const char *find_class(const struct analysis *analysis, allocation_id id)
{
	struct classes *classes = analysis_classes(analysis);
	uint64_t signature = analysis_signature(analysis, id);

	return signature && classes_is_class(classes, signature) &&
			       classes_control_block(classes, signature) == NO_CONTROL_BLOCK
		       ? classes_full_name(classes, signature)
		       : NULL;
}

/* The type of the one value that the allocation is; NO_TYPE: it is not known, or none. */
static type_number find_type(const struct analysis *analysis, allocation_id id)
{
	struct typed typed;

	if (!analysis_type_of(analysis, id, &typed))
		return NO_TYPE;
	return typed.fit == FIT_ONE || typed.fit == FIT_TAIL || typed.fit == FIT_LIKE ? typed.type
										      : NO_TYPE;
}

static char *list_functions(const struct site_functions *functions)
{
	_cleanup_(free) char *first = short_name(functions->names[0]);
	_cleanup_(free) char *second =
		functions->count > 1 ? short_name(functions->names[1]) : NULL;
	_cleanup_(free) char *third = functions->count > 2 ? short_name(functions->names[2]) : NULL;

	if (!first || !second != (functions->count < 2) || !third != (functions->count < 3))
		return NULL;
	if (functions->count == 1)
		return functions->source ? format_text("%s (%s)", first, functions->source)
					 : format_text("%s", first);
	return functions->count == 2 ? format_text("one of %s, %s", first, second)
				     : format_text("one of %s, %s, %s", first, second, third);
}

struct error *allocated_by_find(struct analysis *analysis, allocation_id id, char **ret)
{
	const char *class = find_class(analysis, id);
	struct site_functions functions;
	enum type_kind kind;
	type_number type;

	*ret = NULL;
	if (class)
		TRY(analysis_need(analysis, STAGE_TYPE_TABLE));
	type = class ? type_find(analysis_type_table(analysis), class) : find_type(analysis, id);
	kind = type != NO_TYPE ? type_get(analysis_type_table(analysis), type)->kind : TYPE_NONE;
	if (kind != TYPE_STRUCTURE && kind != TYPE_UNION)
		return NULL;
	TRY(analysis_need(analysis, STAGE_SITES));
	TRY(sites_find(analysis_sites(analysis), id, type, &functions));
	if (functions.count == 0)
		return NULL;
	*ret = list_functions(&functions);
	return *ret ? NULL : &error_no_memory;
}
