#include "analyzer/base/error.h"

#include <errno.h>
#include <stdarg.h>
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
	va_list arguments;
	char *message;

	va_start(arguments, format);
	if (vasprintf(&message, format, arguments) < 0)
		message = NULL;
	va_end(arguments);
	return create(code, message);
}

struct error *error_system(const char *format, ...)
{
	int number = errno;
	_cleanup_(free) char *context = NULL;
	va_list arguments;
	char *message;

	va_start(arguments, format);
	if (vasprintf(&context, format, arguments) < 0)
		context = NULL;
	va_end(arguments);
	if (!context || asprintf(&message, "%s: %s", context, strerror(number)) < 0)
		return &error_no_memory;
	return create(number == ENOMEM ? ERROR_NO_MEMORY : ERROR_SYSTEM, message);
}

struct error *error_wrap(struct error *error, const char *format, ...)
{
	_cleanup_(free) char *context = NULL;
	va_list arguments;
	char *message;

	va_start(arguments, format);
	if (vasprintf(&context, format, arguments) < 0)
		context = NULL;
	va_end(arguments);
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
