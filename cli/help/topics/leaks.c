#include "cli/help/topic.h"

const struct topic topic_leaks = {
	.name = "leaks",
	.summary = "what is anchored, leaked, or the root of a leak",
	.text = "A used allocation is anchored if the program can still get at it: references lead there from a root. Roots are the static variables of the program and its libraries, other memory that is not part of a heap, the live part of each stack, and the registers. A reference is an aligned word with an address anywhere inside of an allocation. What no root leads to is leaked: nothing can ever free it.\n"
		"    static variable ---> A ---> B ---> C      anchored\n"
		"    \n"
		"                         D ---> E ---> F      leaked:\n"
		"                         G <--> H ---> I      D and one of G, H\n"
		"                                              are leak roots\n"
		"Of what is leaked, most hangs on something else that is. A leak root hangs on nothing: 'D' above, and one of a ring as 'G' and 'H'. There something was lost, so there to look is worth most: 'summarize leakroots' tells how much hangs on which kind. 'unreferenced' is simpler, those to which nothing at all refers, and misses rings.\n"
		"Where a garbage collector is at work, as in programs in Crystal, what it is going to free is not leaked but 'garbage'; 'heldbygarbage' and 'atrisk' tell of trouble between it and other memory.\n"
		"'explain ADDRESS' shows the way from a root to an allocation, or from the leak root.",
	.example = "summarize leaked\n"
		   "summarize leakroots\n"
		   "explain leakroots --sort-by bytes --limit 3\n"
		   "count anchored\n"
		   "summarize threadonlyanchored   # held by stacks only",
};
