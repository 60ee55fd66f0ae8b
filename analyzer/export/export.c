#include "analyzer/export/export.h"

#include "analyzer/base/text.h"

#include <string.h>

static const char *format_name(const void *data, size_t number)
{
	return export_formats[number] ? export_formats[number]->name : NULL;
}

struct error *export_format_find(const char *name, const struct export_format **ret)
{
	for (size_t i = 0; export_formats[i]; i++)
		if (strcmp(export_formats[i]->name, name) == 0) {
			*ret = export_formats[i];
			return NULL;
		}
	return error_unknown("export format", name, nearest_word(name, format_name, NULL));
}
