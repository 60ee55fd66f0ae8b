#include "analyzer/classify/classifier.h"
#include "analyzer/classify/openssl.h"

/*
 * OpenSSL, ssl/ssl_local.h; up to 3.1:
 *
 *	| version | method | BIO to read | BIO to write | ...
 *
 * From 3.2 on, where 0 stands for a connection of TLS:
 *
 *	| type | SSL_CTX | default method | method | ...
 */
enum { LEAST_SIZE = 0x200, WORDS = 4 };

static void inspect(struct reader *reader, const struct subject *subject)
{
	uint64_t words[WORDS];
	struct memory_range range;

	memcpy(words, subject->bytes, sizeof(words));
	if (is_ssl_version((uint32_t)words[0]) && words[0] >> 32 == 0) {
		if (!is_ssl_method(reader, words[1]))
			return;
	} else if ((uint32_t)words[0] > 2 ||
		   reader_start(reader, words[1], &range) == NO_ALLOCATION ||
		   !is_ssl_method(reader, words[2]) || !is_ssl_method(reader, words[3])) {
		return;
	}
	reader_claim(reader, subject->id, 0);
}

const struct classifier classifier_ssl = {
	.name = "SSL",
	.summary = "a connection of OpenSSL",
	.role = "an SSL connection of OpenSSL",
	.strength = STRENGTH_MARKED,
	.inspect = inspect,
	.least_size = LEAST_SIZE,
};
