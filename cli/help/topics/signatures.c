#include "cli/help/topic.h"

const struct topic topic_signatures = {
	.name = "signatures",
	.summary = "what tells the class of an allocation",
	.text = "A signature is the first word of an allocation, where that is the address of something that cannot be written: a table of virtual functions, mostly, as each object of a C++ class with such functions begins with one.\n"
		"    55d0c0ffee10                     in the program\n"
		"    +--------------+                 +-------------------+\n"
		"    | 55bd4cec3ca0 | --------------> | vtable of         |\n"
		"    | ...          |   signature     | app::Session      |\n"
		"    +--------------+                 +-------------------+\n"
		"So all objects of a class bear the same signature. Its name comes from the run-time type information in the core itself, or from symbols. 'summarize signatures' lists those that occur. 'used app::Session' asks for the objects of a class and of those derived from it, 'used 55bd4cec3ca0' for those with one signature. An object that std::make_shared() made is of its own class, not of that of the counts in front of it. Addresses in the middle of code, links of free lists that a short string was written over, and constants without pointers that objects of many sizes begin with are no signatures. Strings and other constants without a symbol are counted together, as 'strings of libcrypto.so.3'. A block that an allocator of the program's own cuts objects of several classes out of is of none of them: it is a 'slab, beginning with app::Session'. Where the first word tells nothing, one of the next seven may, if it points to a table of operations or the like: 'summarize' and 'list' call that an identity.",
	.example = "summarize signatures\n"
		   "list used app::Session --limit 3\n"
		   "count used -   # those without a signature",
};
