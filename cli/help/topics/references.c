#include "cli/help/topic.h"

const struct topic topic_references = {
	.name = "references",
	.summary = "what a reference is, how to count them, which to leave out",
	.text = "A word in memory refers to an allocation if its value is the address of a byte in it, the first or any other. Nothing tells pointers from numbers that look like them, so now and then a reference is chance. References decide what is leaked ('help leaks'), 'incoming' and 'outgoing' list them, and '--extend' goes along them.\n"
		"'--min-incoming 2' takes only what at least two allocations refer to, '--max-outgoing 0' what refers to none; each counts once, however often it does so. With a kind in front, only those of that kind count: '--min-incoming app::Session=2'.\n"
		"Some references mean nothing. Tainted ones stand where nothing is kept any more: behind the end of a vector, or in what a short string leaves of its room. '--skip-tainted-references' leaves them out:\n"
		"    vector           body\n"
		"    +-------+        +-----+\n"
		"    | begin | -----> |  *--|---> A      counts\n"
		"    | end   | -----> +-----+\n"
		"    | room  | --.    |  *--|---> B      tainted: B was taken out\n"
		"    +-------+   '--> +-----+\n"
		"Others lead into a container, but do not hold what they lead to: iterators, links back, the ends of a body. '--skip-unfavored-references' takes only the one by which each part of a container is held:\n"
		"    list ---> node ---> node      favored\n"
		"                ^\n"
		"    iterator ---'                 not favored\n"
		"Both switches apply to the sets 'incoming' and 'outgoing', "
		"for counts and for '--extend'; what is leaked, and what '--sort-by retained' shows, is decided by all references.",
	.example = "count used app::Session --min-incoming app::Session=1\n"
		   "count used app::Session --max-incoming app::Session=0   "
		   "# in front of a list\n"
		   "count used --min-free-outgoing 1   # still refers to what "
		   "is free\n"
		   "list outgoing 55d0c0ffee10 --skip-unfavored-references",
};
