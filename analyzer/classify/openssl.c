#include "analyzer/classify/openssl.h"

/*
 * OpenSSL, ssl/ssl_local.h, 1.1.0 to 3.x:
 *
 *	| version, flags | mask | ssl_new | ssl_clear | ssl_free | ...
 */
enum { WORD_MASK = 1, WORD_FUNCTIONS = 2, FUNCTIONS = 12 };

bool is_ssl_version(uint64_t version)
{
	return (version >= 0x300 && version <= 0x304) || version == 0x10000 || version == 0x1ffff ||
	       version == 0xfeff || version == 0xfefd || version == 0x100;
}

/* Whether code is at address. */
static bool is_function(struct reader *reader, uint64_t address)
{
	const struct region *region = image_find(reader->image, address);

	return region && (region->rights & RIGHT_EXECUTE);
}

bool is_ssl_method(struct reader *reader, uint64_t address)
{
	uint64_t words[WORD_FUNCTIONS + FUNCTIONS];
	size_t functions = 0;

	if (address % 8 || address - reader->modules.start >= range_size(reader->modules) ||
	    !reader_in_module(reader, address) ||
	    !reader_words(reader, address, WORD_FUNCTIONS + FUNCTIONS, words) ||
	    !is_ssl_version((uint32_t)words[0]) || words[0] >> 32 > 0xff)
		return false;
	for (size_t i = 0; i < FUNCTIONS; i++)
		functions += is_function(reader, words[WORD_FUNCTIONS + i]);
	return functions == FUNCTIONS;
}
