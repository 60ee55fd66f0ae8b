#include "cli/commands/gate_annotations.h"

#include "analyzer/base/text.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_ANNOTATIONS = 10 };

/*
 * The dump's text may hold anything: what a terminal would not be given is escaped. What means
 * something in the command is written as "%25".
 */
static void write_without(FILE *out, const char *text, const char *special)
{
	_cleanup_(free) char *plain = text_as_is(text);

	for (const char *c = plain ? plain : ""; *c; c++) {
		if (strchr(special, *c))
			fprintf(out, "%%%02X", (unsigned int)(unsigned char)*c);
		else
			putc(*c, out);
	}
}

static void write_escaped(FILE *out, const char *text)
{
	write_without(out, text, "%");
}

static void write_property(FILE *out, const char *text)
{
	write_without(out, text, "%:,");
}

/* Write the source location where the annotation is shown: "file=server.c,line=5,". */
static void write_place(FILE *out, const char *source)
{
	uint64_t line;
	_cleanup_(free) char *file = source_file(source, &line);

	if (!file)
		return;
	fputs("file=", out);
	write_property(out, file);
	fprintf(out, ",line=%" PRIu64 ",", line);
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
		fputs("::error ", out);
		write_place(out, kind->source);
		fprintf(out, "title=Leak %016" PRIx64 "::%s x ", kind->fingerprint,
			grouped(kind->roots, roots));
		write_escaped(out, label ? label : kind->name);
		fprintf(out, " leaked: %s bytes lost", grouped(kind->bytes, bytes));
		if (kind->allocated_by) {
			fputs(", allocated by ", out);
			write_escaped(out, kind->calls ? kind->calls : kind->allocated_by);
		}
		putc('\n', out);
		written++;
	}
}
