#include "analyzer/classify/exceptions.h"

#include "analyzer/image/image.h"

enum {
	LIBCXX_USES = 0x08,
	TYPE = 0x10,
	LANGUAGE = 0x60,
	OBJECT = EXCEPTION_HEADER,
	LIBSTDCXX_SHIFT = 0x10, /* of all in its block for what is thrown again */
};

/* "GNUCC++" and "CLNGC++", and whether it is thrown again in the lowest byte. */
static const uint64_t GNU = 0x474e5543432b2b00, CLANG = 0x434c4e47432b2b00;

static bool read_thrown(struct view *view, uint64_t start, bool is_gnu, struct exception *ret)
{
	return view_word(view, start + TYPE, &ret->type) &&
	       view_word(view, start + (is_gnu ? 0 : LIBCXX_USES), &ret->uses) &&
	       ((ret->uses = is_gnu ? (uint32_t)ret->uses : ret->uses) <= MOST_EXCEPTION_USES);
}

/* Read the block of the exception that is thrown again. */
static bool read_rethrown(struct view *view, uint64_t object, bool is_gnu, struct exception *ret)
{
	ret->is_rethrown = true;
	return object > OBJECT && read_thrown(view, object - OBJECT, is_gnu, ret);
}

bool exception_read(struct view *view, struct memory_range range, uint64_t first,
		    struct exception *ret)
{
	uint64_t size = range.end - range.start, language, second;

	*ret = (struct exception){ 0 };
	if (image_word_size(view->image) != sizeof(first) || size < OBJECT - LIBSTDCXX_SHIFT)
		return false;
	if (first > MOST_EXCEPTION_USES)
		return view_word(view, range.start + LANGUAGE - LIBSTDCXX_SHIFT, &language) &&
		       language == (GNU | 1) && read_rethrown(view, first, true, ret);
	if (size < OBJECT || !view_word(view, range.start + LANGUAGE, &language))
		return false;
	if (language == (CLANG | 1))
		return view_word(view, range.start + LIBCXX_USES, &second) &&
		       read_rethrown(view, second, false, ret);
	return (language == GNU || language == CLANG) &&
	       read_thrown(view, range.start, language == GNU, ret);
}
