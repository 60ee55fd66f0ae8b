/*
 * Connections of OpenSSL, and what they share.
 *
 * Both are known by their SSL_METHOD: in a module, of a protocol version that exists, with
 * functions one after the other. ssl/ssl_local.h, 1.1.0 to 3.x:
 *
 *	SSL_METHOD	| version, flags | mask | ssl_new | ssl_clear | ssl_free | ...
 *	SSL, up to 3.1	| version | method | BIO to read | BIO to write | ...
 *	SSL, from 3.2	| type: 0 for TLS | SSL_CTX | default method | method | ...
 *	SSL_CTX		| library context (3.0), 0: default | method | ciphers: three lists | ...
 */
#include "analyzer/classify/classifier.h"

enum { LEAST_SIZE = 0x200, WORDS_BEFORE_FUNCTIONS = 2, FUNCTIONS = 12 };

/* SSL3_VERSION to TLS1_3_VERSION, any version, and those of DTLS. */
static bool is_version(uint32_t version)
{
	return (version >= 0x300 && version <= 0x304) || version == 0x10000 || version == 0x1ffff ||
	       version == 0xfeff || version == 0xfefd || version == 0x100;
}

static bool is_method(struct reader *reader, uint64_t address)
{
	uint64_t words[WORDS_BEFORE_FUNCTIONS + FUNCTIONS];

	if (address % 8 || address - reader->modules.start >= range_size(reader->modules) ||
	    !reader_in_module(reader, address) ||
	    !reader_words(reader, address, WORDS_BEFORE_FUNCTIONS + FUNCTIONS, words) ||
	    !is_version((uint32_t)words[0]) || words[0] >> 32 > 0xff)
		return false;
	for (size_t i = 0; i < FUNCTIONS; i++) {
		const struct region *region =
			image_find(reader->image, words[WORDS_BEFORE_FUNCTIONS + i]);

		if (!region || !(region->rights & RIGHT_EXECUTE))
			return false;
	}
	return true;
}

static void inspect_ssl(struct reader *reader, const struct subject *subject)
{
	uint64_t words[4];
	struct memory_range range;

	memcpy(words, subject->bytes, sizeof(words));
	if (is_version((uint32_t)words[0]) && words[0] >> 32 == 0) {
		if (!is_method(reader, words[1]))
			return;
	} else if ((uint32_t)words[0] > 2 ||
		   reader_start(reader, words[1], &range) == NO_ALLOCATION ||
		   !is_method(reader, words[2]) || !is_method(reader, words[3])) {
		return;
	}
	reader_claim(reader, subject->id, 0);
}

CLASSIFIER(ssl, "SSL", "a connection of OpenSSL", "an SSL connection of OpenSSL",
	   .strength = STRENGTH_MARKED, .inspect = inspect_ssl, .least_size = LEAST_SIZE);

static void inspect_ssl_ctx(struct reader *reader, const struct subject *subject)
{
	uint64_t words[5];
	struct memory_range range;
	size_t method;

	memcpy(words, subject->bytes, sizeof(words));
	method = words[0] == 0 || heap_bounds_hold(&reader->bounds, words[0]);
	if (!is_method(reader, words[method]))
		return;
	for (size_t i = method + 1; i < method + 3; i++)
		if (words[i] && reader_start(reader, words[i], &range) == NO_ALLOCATION)
			return;
	reader_claim(reader, subject->id, 0);
}

CLASSIFIER(ssl_ctx, "SSL_CTX", "settings that connections of OpenSSL share",
	   "an SSL_CTX of OpenSSL", .strength = STRENGTH_MARKED, .inspect = inspect_ssl_ctx,
	   .least_size = LEAST_SIZE);
