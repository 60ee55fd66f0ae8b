#include "analyzer/kinds/kind_key.h"

#include "tests/assertions.h"

TEST(signature_of_the_upper_half_is_kept)
{
	const uint64_t vsyscall = UINT64_C(0xffffffffff600010);

	assert_int_equal(kind_signature(kind_make(BY_SIGNATURE, vsyscall)), vsyscall);
	assert_int_equal(kind_signature(kind_make(BY_SIGNATURE, 0x7f3a5c001018)), 0x7f3a5c001018);
	assert_int_equal(kind_signature(kind_make(BY_IDENTITY, 0x7f3a5c001018)), 0);
}

TEST(sizes_tell_only_what_has_no_other_kind_or_a_pattern)
{
	kind_key signature = kind_make(BY_SIGNATURE, 0x55d0c0ffee10);
	kind_key pattern = kind_of_pattern(3);

	assert_int_equal(kind_with_size(signature, 24), signature);
	assert_int_equal(kind_tag(kind_with_size(KIND_UNKNOWN, 24)), BY_SIZE);
	assert_int_equal(kind_value(kind_with_size(KIND_UNKNOWN, 24)), 24);
	assert_int_not_equal(kind_with_size(pattern, 24), kind_with_size(pattern, 40));
	assert_int_equal(kind_pattern(kind_with_size(pattern, UINT64_MAX)), 3);
	assert_int_equal(kind_pattern(signature), NO_PATTERN);
}

TEST(an_identity_is_one_type_whichever_word_it_is_in)
{
	kind_key first = kind_make(BY_IDENTITY, UINT64_C(0x7f3a5c001018) << 3 | 1);
	kind_key other = kind_make(BY_IDENTITY, UINT64_C(0x7f3a5c001018) << 3 | 2);

	assert_int_not_equal(first, other);
	assert_int_equal(kind_without_word(first), kind_without_word(other));
	assert_int_equal(kind_without_word(kind_of_pattern(3)), kind_of_pattern(3));
}
