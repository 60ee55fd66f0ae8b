#include "analyzer/classify/classifier.h"
#include "analyzer/classify/openssl.h"

/*
 * OpenSSL, ssl/ssl_local.h; from 3.0 on the library context stands first, which is 0 for the
 * default one:
 *
 *	| context | method | ciphers: three lists | ...
 */
enum { LEAST_SIZE = 0x200, WORDS = 5 };

static void inspect(struct reader *reader, const struct subject *subject)
{
	uint64_t words[WORDS];
	struct memory_range range;
	size_t method;

	memcpy(words, subject->bytes, sizeof(words));
	method = words[0] == 0 || heap_bounds_hold(&reader->bounds, words[0]);
	if (!is_ssl_method(reader, words[method]))
		return;
	for (size_t i = method + 1; i < method + 3; i++)
		if (words[i] && reader_start(reader, words[i], &range) == NO_ALLOCATION)
			return;
	reader_claim(reader, subject->id, 0);
}

const struct classifier classifier_ssl_ctx = {
	.name = "SSL_CTX",
	.summary = "what connections of OpenSSL share",
	.role = "an SSL_CTX of OpenSSL",
	.strength = STRENGTH_MARKED,
	.inspect = inspect,
	.least_size = LEAST_SIZE,
};
