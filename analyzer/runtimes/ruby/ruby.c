#include "analyzer/runtimes/ruby/ruby.h"

#include "analyzer/runtimes/ruby/pages.h"

enum {
	TYPE_BITS = 0x1f,
	FLAG_1 = 1 << 13, /* of arrays: embedded; of strings: not */
	FLAG_2 = 1 << 14, /* shared */
};

static bool is_class(struct reader *reader, uint64_t address)
{
	uint64_t flags;

	return address % sizeof(flags) == 0 && reader_word(reader, address, &flags) &&
	       (flags & TYPE_BITS) == RUBY_CLASS;
}

bool ruby_holds(struct reader *reader, const uint64_t *words, enum ruby_type type)
{
	uint64_t wanted = type == RUBY_STRING ? FLAG_1 : 0;

	return (words[0] & TYPE_BITS) == (uint64_t)type &&
	       (words[0] & (FLAG_1 | FLAG_2)) == wanted && is_class(reader, words[1]);
}

const struct runtime runtime_ruby = {
	.name = "ruby",
	.modules = "ruby|libruby",
	.integer = &ruby_integer,
	.pages = &ruby_pages,
};
