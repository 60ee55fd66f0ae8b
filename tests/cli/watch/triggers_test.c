#include "cli/watch/triggers.h"

#include "tests/assertions.h"

static const uint64_t GB = UINT64_C(1) << 30, MB = 1 << 20;

TEST(use_is_looked_into_at_the_threshold_and_at_half_of_what_is_left)
{
	struct triggers triggers = { .options = { .percent = 80 } };
	struct reading reading = { .most = 1000 };
	unsigned int taken[8], count = 0;

	for (reading.used = 0; reading.used <= 1000; reading.used++) {
		reading.time += 1;
		if (triggers_judge(&triggers, &reading) != CAUSE_MEMORY)
			continue;
		triggers_done(&triggers, &reading);
		if (count < 4)
			taken[count++] = (unsigned int)reading.used;
	}
	assert_int_equal(taken[0], 800);
	assert_int_equal(taken[1], 900);
	assert_int_equal(taken[2], 950);
	assert_int_equal(taken[3], 975);
}

TEST(use_that_stays_near_the_threshold_is_looked_into_once)
{
	struct triggers triggers = { .options = { .percent = 80 } };
	struct reading reading = { .most = 1000 };
	unsigned int count = 0;

	for (; reading.time < 9999; reading.time++) {
		reading.used = 770 + (uint64_t)reading.time % 60;
		if (triggers_judge(&triggers, &reading)) {
			triggers_done(&triggers, &reading);
			count++;
		}
	}
	assert_int_equal(count, 1);
	/* It fell, and came again. */
	reading.used = 500;
	assert_int_equal(triggers_judge(&triggers, &reading), CAUSE_NONE);
	reading.used = 800;
	assert_int_equal(triggers_judge(&triggers, &reading), CAUSE_MEMORY);
}

TEST(a_day_of_ups_and_downs_is_quiet)
{
	struct triggers triggers = {
		.options = { .percent = 85, .growth = 200 * MB, .growth_time = 3600 },
	};
	struct reading reading = { .most = 4 * GB, .has_anonymous = true };

	for (; reading.time < 24 * 3600; reading.time += 0.25) {
		/* 100 MB of a request each minute, and 30 MB that are kept in an hour. */
		reading.anonymous = GB + (uint64_t)reading.time % 60 * (100 * MB / 60) +
				    (uint64_t)(reading.time / 3600 * 30 * (double)MB);
		reading.used = reading.anonymous;
		assert_int_equal(triggers_judge(&triggers, &reading), CAUSE_NONE);
	}
}

TEST(growth_is_looked_into_each_time_that_it_was_as_much)
{
	struct triggers triggers = { .options = { .growth = 200 * MB, .growth_time = 3600 } };
	struct reading reading = { .has_anonymous = true };
	unsigned int count = 0;

	for (; reading.time < 10 * 3600; reading.time += 60) {
		reading.anonymous = GB + (uint64_t)(reading.time / 3600 * 300 * (double)MB);
		if (triggers_judge(&triggers, &reading) == CAUSE_GROWTH) {
			triggers_done(&triggers, &reading);
			count++;
		}
	}
	/* 3,000 MB; what a part of the time rounds away may add one minute to each. */
	assert_in_range(count, 13, 15);
}

TEST(growth_over_more_than_its_time_is_none)
{
	struct triggers triggers = { .options = { .growth = 200 * MB, .growth_time = 600 } };
	struct reading reading = { .has_anonymous = true };

	for (; reading.time < 10 * 3600; reading.time += 5) {
		reading.anonymous = GB + (uint64_t)(reading.time / 600 * 150 * (double)MB);
		assert_int_equal(triggers_judge(&triggers, &reading), CAUSE_NONE);
	}
}

TEST(pressure_counts_near_the_threshold_and_once)
{
	struct triggers triggers = { .options = { .percent = 80 } };
	struct reading reading = { .most = 1000, .used = 500, .pressed = true };

	assert_int_equal(triggers_judge(&triggers, &reading), CAUSE_NONE);
	reading.used = 700;
	assert_int_equal(triggers_judge(&triggers, &reading), CAUSE_PRESSURE);
	triggers_done(&triggers, &reading);
	assert_int_equal(triggers_judge(&triggers, &reading), CAUSE_NONE);
	reading.used = 800;
	assert_int_equal(triggers_judge(&triggers, &reading), CAUSE_MEMORY);
}

TEST(without_a_limit_only_a_size_is_a_threshold)
{
	struct triggers triggers = { .options = { .percent = 80 } };
	struct reading reading = { .used = 3 * GB };

	assert_int_equal(triggers_judge(&triggers, &reading), CAUSE_NONE);
	triggers.options = (struct trigger_options){ .size = 2 * GB };
	assert_int_equal(triggers_judge(&triggers, &reading), CAUSE_MEMORY);
	triggers_done(&triggers, &reading);
	assert_int_equal(triggers_judge(&triggers, &reading), CAUSE_NONE);
	reading.used = 5 * GB;
	assert_int_equal(triggers_judge(&triggers, &reading), CAUSE_MEMORY);
}

TEST(words_of_the_command_line)
{
	struct trigger_options options = { 0 };
	uint64_t number;

	assert_no_error(parse_memory("85%", &options));
	assert_int_equal(options.percent, 85);
	assert_no_error(parse_memory("3G", &options));
	assert_int_equal(options.size, 3 * GB);
	assert_no_error(parse_growth("200M/h", &options));
	assert_int_equal(options.growth, 200 * MB);
	assert_int_equal((int)options.growth_time, 3600);
	assert_no_error(parse_growth("1G/30m", &options));
	assert_int_equal((int)options.growth_time, 1800);
	assert_no_error(parse_hourly("4/h", &number));
	assert_int_equal(number, 4);
	assert_no_error(parse_hourly("12", &number));
	assert_int_equal(number, 12);
	assert_error(parse_memory("100%", &options), ERROR_USAGE,
		     "'100%' is not a share of memory, such as 85%, or a size");
	assert_error(parse_memory("some", &options), ERROR_USAGE,
		     "'some' is not a share of memory, such as 85%, or a size");
	assert_error(parse_growth("200M", &options), ERROR_USAGE,
		     "'200M' is not growth in a time, such as 200M/h or 50M/10m");
	assert_error(parse_growth("200M/x", &options), ERROR_USAGE,
		     "'200M/x' is not growth in a time, such as 200M/h or 50M/10m");
	assert_error(parse_growth("/h", &options), ERROR_USAGE,
		     "'/h' is not growth in a time, such as 200M/h or 50M/10m");
	assert_error(parse_hourly("4/m", &number), ERROR_USAGE,
		     "'4/m' is not a number in an hour, such as 4/h");
}
