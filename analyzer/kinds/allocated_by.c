#include "analyzer/kinds/allocated_by.h"

#include "analyzer/base/text.h"
#include "analyzer/classify/type_names.h"

/* The class of an object, if debug information has it, and the object is just as large. */
static type_number find_class(const struct analysis *analysis, allocation_id id)
{
	struct classes *classes = analysis_classes(analysis);
	uint64_t signature = analysis_signature(analysis, id);
	const char *name =
		signature && classes_is_class(classes, signature) &&
				classes_control_block(classes, signature) == NO_CONTROL_BLOCK
			? classes_full_name(classes, signature)
			: NULL;

	return name ? type_find(analysis_type_table(analysis), name) : NO_TYPE;
}

/* The type of the one value that the allocation is; NO_TYPE: it is not known, or none. */
static type_number find_type(const struct analysis *analysis, allocation_id id)
{
	const struct typing *typing = analysis_typing(analysis);
	type_number class = find_class(analysis, id);
	struct typed typed;

	if (class != NO_TYPE)
		return class;
	if (!siblings_typed(analysis_siblings(analysis), id, &typed) &&
	    (!typing || !typing_of(typing, id, &typed)))
		return NO_TYPE;
	return typed.fit == FIT_ONE || typed.fit == FIT_TAIL || typed.fit == FIT_LIKE ? typed.type
										      : NO_TYPE;
}

static char *list_functions(const struct site_functions *functions)
{
	if (functions->count == 1)
		return functions->source
			       ? format_text("%s (%s)", functions->names[0], functions->source)
			       : format_text("%s", functions->names[0]);
	if (functions->count == 2)
		return format_text("one of %s, %s", functions->names[0], functions->names[1]);
	return format_text("one of %s, %s, %s", functions->names[0], functions->names[1],
			   functions->names[2]);
}

struct error *allocated_by_find(struct analysis *analysis, allocation_id id, char **ret)
{
	const struct data_type *type;
	struct site_functions functions;
	type_number number;

	*ret = NULL;
	if (analysis_signature(analysis, id))
		TRY(analysis_need(analysis, STAGE_TYPE_TABLE));
	number = find_type(analysis, id);
	if (number == NO_TYPE)
		return NULL;
	type = type_get(analysis_type_table(analysis), number);
	if (type->kind != TYPE_STRUCTURE && type->kind != TYPE_UNION)
		return NULL;
	TRY(analysis_need(analysis, STAGE_SITES));
	TRY(sites_find(analysis_sites(analysis), id, number, &functions));
	if (functions.count == 0)
		return NULL;
	*ret = list_functions(&functions);
	return *ret ? NULL : &error_no_memory;
}
