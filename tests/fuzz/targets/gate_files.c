/*
 * Baselines and suppressions: files that people write, or others do.
 */
#include "tests/fuzz/target.h"

#include "analyzer/gate/baseline.h"
#include "analyzer/gate/suppressions.h"

#include <string.h>

static void read_baseline(const uint8_t *bytes, size_t size)
{
	_cleanup_(baseline_deinit) struct baseline baseline = { NULL };
	struct error *error = baseline_parse((const char *)bytes, size, "baseline", &baseline);

	if (error)
		error_destroy(error);
	else if (baseline.count > 0 && !baseline_find(&baseline, baseline.list[0].fingerprint))
		abort();
}

/* Each rule is held against a few leaks. */
static void read_suppressions(const uint8_t *bytes, size_t size)
{
	_cleanup_(suppressions_deinit) struct suppressions rules = { NULL };
	_cleanup_(free) char *text = strndup((const char *)bytes, size);
	char name[] = "app::Session", held[] = "a static variable";
	struct leak_kind leak = { .fingerprint = 0x1234,
				  .name = name,
				  .module = "libapp.so",
				  .held = held,
				  .holder = name,
				  .size = 24 };
	struct error *error = suppressions_parse(&rules, text, "rules");

	if (error)
		error_destroy(error);
	else
		suppressions_find(&rules, &leak);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	read_baseline(bytes, size);
	read_suppressions(bytes, size);
	return 0;
}
