#include "analyzer/base/findings.h"

#include <stdarg.h>

void findings_deinit(struct findings *findings)
{
	for (size_t i = 0; i < findings->count; i++)
		free(findings->list[i].message);
	free(findings->list);
	*findings = (struct findings){ 0 };
}

void findings_add(struct findings *findings, enum finding_weight weight, const char *format, ...)
{
	struct finding *list;
	va_list arguments;
	char *message;
	int length;

	if (findings->weighed[weight]++ >= MAXIMUM_FINDINGS)
		return;
	list = realloc(findings->list, (findings->count + 1) * sizeof(*list));
	if (!list)
		return;
	findings->list = list;
	va_start(arguments, format);
	length = vasprintf(&message, format, arguments);
	va_end(arguments);
	if (length >= 0)
		list[findings->count++] = (struct finding){ weight, message };
}
