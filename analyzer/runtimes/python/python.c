#include "analyzer/runtimes/python/python.h"

#define PYTHON_TYPE (UINT64_C(1) << 31)

/* PyTypeObject's tp_flags. */
enum { FLAGS_OFFSET = 168, WORD = 8 };

static bool has_flag(struct reader *reader, uint64_t type, uint64_t flag)
{
	uint64_t flags;

	return reader_word(reader, type + FLAGS_OFFSET, &flags) && (flags & flag);
}

bool python_is(struct reader *reader, const uint64_t *words, uint64_t flag)
{
	uint64_t type = words[1], type_of_type;

	return words[0] != 0 && type % WORD == 0 &&
	       reader_word(reader, type + WORD, &type_of_type) && type_of_type % WORD == 0 &&
	       has_flag(reader, type, flag) && has_flag(reader, type_of_type, PYTHON_TYPE);
}

const struct runtime runtime_python = {
	.name = "python",
	.modules = "python|libpython",
};
