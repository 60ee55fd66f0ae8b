#include "analyzer/base/error.h"

#include <errno.h>
#include <string.h>

struct error {
	enum error_code code;
	char *message;
};

struct error error_no_memory = { ERROR_NO_MEMORY, "out of memory" };

static struct error *create(enum error_code code, char *message)
{
	struct error *error = malloc(sizeof(*error));

	if (!message || !error) {
		free(message);
		free(error);
		return &error_no_memory;
	}
	*error = (struct error){ code, message };
	return error;
}

struct error *error_create(enum error_code code, const char *format, ...)
{
	return create(code, FORMATTED(format));
}

struct error *error_system(const char *format, ...)
{
	int number = errno;
	_cleanup_(free) char *context = FORMATTED(format);
	char *message;

	if (!context || asprintf(&message, "%s: %s", context, strerror(number)) < 0)
		return &error_no_memory;
	return create(number == ENOMEM ? ERROR_NO_MEMORY : ERROR_SYSTEM, message);
}

struct error *error_wrap(struct error *error, const char *format, ...)
{
	_cleanup_(free) char *context = FORMATTED(format);
	char *message;

	if (error == &error_no_memory || !context ||
	    asprintf(&message, "%s: %s", context, error->message) < 0)
		return error;
	free(error->message);
	error->message = message;
	return error;
}

void error_destroy(struct error *error)
{
	if (!error || error == &error_no_memory)
		return;
	free(error->message);
	free(error);
}

struct error *error_first(struct error *error, struct error *other)
{
	if (!error)
		return other;
	error_destroy(other);
	return error;
}

enum error_code error_code(const struct error *error)
{
	return error->code;
}

const char *error_message(const struct error *error)
{
	return error->message;
}

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
	char *message;

	if (findings->weighed[weight]++ >= MAXIMUM_FINDINGS)
		return;
	list = realloc(findings->list, (findings->count + 1) * sizeof(*list));
	if (!list)
		return;
	findings->list = list;
	message = FORMATTED(format);
	if (message)
		list[findings->count++] = (struct finding){ weight, message };
}
