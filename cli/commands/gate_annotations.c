#include "cli/commands/gate_annotations.h"

#include "analyzer/base/text.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_ANNOTATIONS = 10 };

/*
 * The dump's text may hold anything: what a terminal would not be given is escaped. What is an
 * escape in the command is written as "%25".
 */
static void write_escaped(FILE *out, const char *text)
{
	_cleanup_(free) char *plain = text_as_is(text);

	for (const char *c = plain ? plain : ""; *c; c++) {
		if (*c == '%')
			fputs("%25", out);
		else
			putc(*c, out);
	}
}

void gate_annotate(const struct leak_kinds *kinds, FILE *out)
{
	const char *service = getenv("GITHUB_ACTIONS");
	size_t written = 0;

	if (!service || strcmp(service, "true") != 0)
		return;
	for (size_t i = 0; i < kinds->count && written < MOST_ANNOTATIONS; i++) {
		const struct leak_kind *kind = &kinds->list[i];
		_cleanup_(free) char *label = NULL;
		char roots[NUMBER_SIZE], bytes[NUMBER_SIZE];

		if (!leak_counts(kind))
			continue;
		label = leak_kind_label(kind);
		fprintf(out, "::error title=Leak %016" PRIx64 "::%s x ", kind->fingerprint,
			grouped(kind->roots, roots));
		write_escaped(out, label ? label : kind->name);
		fprintf(out, " leaked: %s bytes lost\n", grouped(kind->bytes, bytes));
		written++;
	}
}
