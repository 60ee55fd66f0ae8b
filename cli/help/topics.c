/* The topics of help; the build collects them. */
#include "analyzer/base/text.h"
#include "analyzer/classify/classifier.h"
#include "analyzer/query/annotate.h"
#include "analyzer/query/columns.h"
#include "cli/help/manual.h"
#include "cli/prompt/switches.h"
#include "cli/views/selection.h"

const struct topic topic_addresses = {
	.name = "addresses",
	.summary = "addresses, and variables that stand for them",
	.text = "An address is a hexadecimal number, with or without 0x: '55d0c0ffee10'. Any address in an allocation stands for that allocation.\n"
		"With debug information, a variable may stand for an address, also within sets, with members and elements as in a debugger:\n"
		"    explain server.db[0].dict          a member, an element\n"
		"    explain conns->next->next          what pointers lead to\n"
		"    dump *conns 64\n"
		"    show (*conns).peer\n"
		"    list incoming conns                in place of a set's address\n"
		"    dump &conns 8                      the pointer itself\n"
		"A pointer stands for what it points to, anything else for its own place; '&' has the place of a pointer, too. The first line says both: 'conns (in server, of type struct conn *) is at 0x55d0c0de4040, and points to 0x55d0c0ffee10.' For a set's address, it is a note instead. '.' and '->' are the same. An index is a number, decimal or with 0x. One beyond an array is an error, but not behind a pointer, nor where an array is declared with no or one element.\n"
		"If several variables have a name, 'shop.c::count', 'libshop.so::count', 'serve::count' and 'app::count' say which: that of a file, a module, a function, a namespace or class. A thread-local variable is that of the main thread; locals of running functions have no path. Without debug information, a variable with a symbol is known, but not its members.\n"
		"An object of Python, Ruby, PHP, Perl or JavaScript is what 'explain' says that the program reaches it as, with quotes of either kind or none:\n"
		"    explain __main__.LISTENERS\n"
		"    show $cache[\"a\"]\n"
		"    list incoming App::SESSIONS\n"
		"What is a number, as 'dead', or a set is no variable; '&dead' is. Tab completes variables and members, and objects as a language calls them: '__main__.CACHE', '$cache'. For an unknown name, the nearest one is suggested.",
};

static void write_annotators(struct document *document)
{
	document_heading(document, LEVEL_PART, "Annotators");
	for (size_t i = 0; annotator_name(i); i++)
		document_entry(document, annotator_name(i), annotator_summary(i));
}

const struct topic topic_annotate = {
	.name = "annotate",
	.summary = "parts of an allocation, shown after it",
	.text = "'--annotate WHAT[@OFFSET].ANNOTATOR' makes 'list', 'show', 'describe' and 'explain' show parts of each allocation, with the offsets where they begin and end. WHAT is a kind ('help kinds'), a state of an extension ('help extend'), or * for all allocations; the annotator, too, may be *. With an offset, only what begins there is shown. The switch may be repeated.",
	.example = "list used app::Session --annotate *.* --limit 1\n"
		   "list used --annotate app::Session.SSOString --limit 5\n"
		   "list used app::Session --extend ->%MapOrSetNode=>M --annotate M.* --limit 5",
	.write = write_annotators,
};

static void write_columns(struct document *document)
{
	const char *name, *summary;

	document_heading(document, LEVEL_PART, "Columns");
	for (size_t i = 0; column_at(i, &name, &summary); i++)
		document_entry(document, name, summary);
}

const struct topic topic_columns = {
	.name = "columns",
	.summary = "columns of allocations, for lists and SQL",
	.text = "'list SET --columns NAME,NAME' shows these columns of each member, in any format. They are those of the tables 'allocation', 'free', 'dominator' and 'object' of 'sql', where they have the same names. What does not apply to an allocation is absent: a free one has no owner, and only objects of languages have a value. A column is found when it is asked for: 'kind' and 'type' need debug information to be read, 'retained' a pass over all references. '--sort-by' takes 'size', 'address' and 'retained'; any other order is 'ORDER BY' of 'sql'.",
	.example = "list used --columns address,size,kind,retained --limit 5\n"
		   "list leaked --columns address,size,kind --format csv\n"
		   "list free --columns address,size,kind,arena --sort-by size --limit 5\n"
		   "sql SELECT kind, sum(retained) FROM allocation GROUP BY kind",
	.write = write_columns,
};

const struct topic topic_extend = {
	.name = "extend",
	.summary = "how to follow references from the members of a set",
	.text = "'--extend RULE' adds to a set what its members refer to, or what refers to them, and continues from there. For example, it counts or shows a session together with its maps, strings and buffers. The switch can be repeated. A rule is one word without blanks:\n"
		"    [MEMBER][@OFFSET] ARROW [EXTENSION][@OFFSET] [=>STATE]\n"
		"    \n"
		"    app::Session  ->  %MapOrSetNode  =>M      (without the blanks)\n"
		"    |             |   |              |\n"
		"    from each     |   take in what   and go on from that by the\n"
		"    of these      |   is one of      rules of the state M alone\n"
		"                  |   these\n"
		"                  along its references\n"
		"MEMBER and EXTENSION are kinds, as after a set ('help kinds'); one that is left out matches anything. Only used allocations are added.\n"
		"The arrow is the direction:\n"
		"    ->   MEMBER -------> EXTENSION   what a member refers to\n"
		"    ~>   MEMBER -------> EXTENSION   the same, leaked ones only\n"
		"    <-   MEMBER <------- EXTENSION   what refers to a member\n"
		"Offsets, in hexadecimal, say where the pointer is stored, and where it points. Without an offset, any place matches:\n"
		"           A                B\n"
		"           +-----+          +-----+\n"
		"         0 |     |          |     | 0    A@8->B      from 8 in A\n"
		"         8 |  *--|----.     |     | 8    A->B@10     to 10 in B\n"
		"        10 |     |    '---> |     | 10   A@8->B@10   both\n"
		"           +-----+          +-----+\n"
		"With '<-', B holds the pointer and A is its target:\n"
		"           A                B\n"
		"           +-----+          +-----+\n"
		"         0 |     |          |     | 0    A<-B@10     from 10 in B\n"
		"         8 |     | <--.     |     | 8    A@8<-B      to 8 in A\n"
		"        10 |     |    '-----|--*  | 10   A@8<-B@10   both\n"
		"           +-----+          +-----+\n"
		"What was added is extended again by the same rules: '--extend ->' adds everything reachable. A rule that ends in =>STATE changes that: what it adds is extended only by the rules whose MEMBER is that state. A state is any word that is not the name of a class:\n"
		"    list used app::Session --extend ->%MapOrSetNode=>M --extend M->%LongString\n"
		"    \n"
		"    app::Session --> %MapOrSetNode --> %LongString\n"
		"                          | in state M\n"
		"                          '-----> %MapOrSetNode   not taken in\n"
		"A rule for M itself, '--extend M->%MapOrSetNode=>M', would continue through the whole map.\n"
		"Each allocation is visited once, in the state in which it was first reached, so the order of the rules matters. Members come in the order of their addresses, each followed by what it leads to, depth-first: rule by rule, and for each rule by address.\n"
		"    A -> B -> D             visited: A B D C E\n"
		"    |\n"
		"    '--> C -> E\n"
		"'--comment-extensions' explains between the members how each was "
		"reached. Sizes, kinds and counts of references narrow the set that is extended, not what is added.",
	.example = "count used app::Session\n"
		   "count used app::Session --extend app::Session->   "
		   "# with what they refer to\n"
		   "summarize used app::Session --extend ->           "
		   "# with all that can be reached\n"
		   "summarize used app::Session --extend ->%MapOrSetNode=>M "
		   "--extend M->%LongString\n"
		   "list used app::Session --extend app::Session@8->app::Session "
		   "--limit 5\n"
		   "list allocation 55d0c0ffee10 --extend <- --limit 5   "
		   "# all that leads there\n"
		   "summarize leakroots --extend ~>\n"
		   "list allocation 55d0c0ffee10 --extend -> --comment-extensions --limit 5",
};

const struct topic topic_kinds = {
	.name = "kinds",
	.summary = "the word after a set: a class, a signature, a pattern",
	.text = "One word after a set of allocations selects a kind. It is one of\n"
		"    app::Session    a class, and the classes derived from it\n"
		"    55bd4cec3ca0    a signature, in hexadecimal\n"
		"    %LongString     a pattern ('help patterns' lists them)\n"
		"    -               no signature\n"
		"    ?               neither signature nor "
		"pattern\n"
		"Quote a name with blanks: "
		"'count used \"app::Map<int, int>\"'. The same words are used in rules of '--extend', and before counts of references.\n"
		"The last part of a name, as 'Session', is enough where only one class ends so. A class without allocations is an error, and similar names are suggested; "
		"'--allow-missing-signatures' makes that 0 allocations.",
	.example = "count used app::Session\n"
		   "list leaked %LongString --limit 3\n"
		   "summarize used ?",
};

const struct topic topic_leaks = {
	.name = "leaks",
	.summary = "what anchored, leaked and leak root mean",
	.text = "A used allocation is anchored if the program can still reach it by references from a root. Roots are the static variables of the program and its libraries, other memory outside of the heaps, the live part of each stack, and the registers. A reference is an aligned word with an address anywhere inside of an allocation. What is not reachable from any root is leaked: nothing can ever free it.\n"
		"    static variable ---> A ---> B ---> C      anchored\n"
		"    \n"
		"                         D ---> E ---> F      leaked:\n"
		"                         G <--> H ---> I      D and one of G, H\n"
		"                                              are leak roots\n"
		"Most leaked allocations were lost together with another one. A leak root is where the leak happened: 'D' above, and one member of a ring such as 'G' and 'H'. Start there: 'summarize leakroots' shows how much was lost with each kind. 'unreferenced' is simpler, the allocations without any reference, and misses rings.\n"
		"With a garbage collector, as in Crystal programs, what the collector will free is not leaked but 'garbage'; 'heldbygarbage' and 'atrisk' show problems between it and other memory.\n"
		"'explain ADDRESS' shows the path to an allocation from a root, or from the leak root.",
	.example = "summarize leaked\n"
		   "summarize leakroots\n"
		   "explain leakroots --sort-by bytes --limit 3\n"
		   "count anchored\n"
		   "summarize threadonlyanchored   # held by stacks only",
};

const struct topic topic_lines = {
	.name = "lines",
	.summary = "how a line is read, and where its output goes",
	.text = "A line is a command and its words, separated by blanks. Quotes of either kind group words with blanks; '#' begins a comment; a backslash at the end continues the line in the next. Addresses and offsets are hexadecimal, with or without 0x; sizes and counts are decimal. A size can have a unit, as 64K or 10M, or be hexadecimal with 0x.\n"
		"At the end, '> FILE' sends the output to a file, '>> FILE' appends it, and '| SHELL COMMAND' gives it to the shell. 'redirect on' writes each output to a file of its own. '--format FORMAT' after a command makes it write csv, tsv, markdown, json or ndjson instead of text.\n"
		"On a terminal, lists show the largest 20 first and say how many more there are, columns without room are left out and named, and $PAGER or 'less' shows what is longer than the screen. A pipe, a file and '--chap' get everything; so does a list with a '--limit' of its own.\n"
		"Names of kinds and variables, 'passed' and 'failed' have colours on a terminal, unless NO_COLOR is set or '--color=never' is given. Bars are made of Unicode's blocks if the locale is UTF-8.\n"
		"'#' also begins the comments in examples. The addresses in examples are invented; 'list' and 'enumerate' show real ones.\n"
		"Ctrl-C ends a command, not heapcore. A prefix that only one command has is that command; 'bt' and 'where' are 'backtrace', 'x' is 'dump', 'p' and 'print' are 'show', 'find' is 'findbytes', 'memory' is 'bill'. Tab completes words, also classes and, once they were read, types. Scripts are run by 'source FILE', by 'heapcore -f FILE CORE', or come in on standard input; what goes wrong in one is reported "
		"with its line, and the rest still runs.",
	.example = "list used --limit 100 | head -4\n"
		   "list used --limit 3 --format csv\n"
		   "enumerate leaked > leaked.txt\n"
		   "count used \"std::logic_error\" "
		   "--allow-missing-signatures   # none",
};

static void write_patterns(struct document *document)
{
	document_heading(document, LEVEL_PART, "Patterns");
	for (size_t i = 0; classifiers[i]; i++) {
		_cleanup_(free) char *name = NULL;

		name = format_text("%%%s", classifiers[i]->name);
		if (!name)
			return;
		document_entry(document, name, classifiers[i]->summary);
	}
}

const struct topic topic_patterns = {
	.name = "patterns",
	.summary = "buffers, nodes and the like, recognised by their shape",
	.text = "The text of a long string, the elements of a vector or the node of a map have no signature: nothing in them says what they are. But the object that refers to them does: three pointers that agree are a vector, and what they point to is its body. Such an allocation has a pattern, and 'describe' shows what it is part of.\n"
		"'%NAME' after a set, or in a rule of '--extend', selects those with the pattern.",
	.example = "summarize used\n"
		   "count used %LongString\n"
		   "describe used %VectorBody --limit 3",
	.write = write_patterns,
};

const struct topic topic_references = {
	.name = "references",
	.summary = "what a reference is, how to count and filter them",
	.text = "A word in memory refers to an allocation if its value is the address of a byte in it, the first or any other. A number can look like a pointer, so a reference is sometimes chance. References decide what is leaked ('help leaks'), 'incoming' and 'outgoing' list them, and '--extend' follows them.\n"
		"'--min-incoming 2' selects what at least two allocations refer to, '--max-outgoing 0' what refers to none; an allocation counts once, however often it refers. With a kind before the number, only that kind counts: '--min-incoming app::Session=2'.\n"
		"Some references mean nothing. Tainted ones are in unused space: past the end of a vector, or in the unused part of a short string's buffer. '--skip-tainted-references' ignores them:\n"
		"    vector           body\n"
		"    +-------+        +-----+\n"
		"    | begin | -----> |  *--|---> A      counts\n"
		"    | end   | -----> +-----+\n"
		"    | room  | --.    |  *--|---> B      tainted: B was taken out\n"
		"    +-------+   '--> +-----+\n"
		"Others point into a container without holding anything: iterators, links back, ends of a body. '--skip-unfavored-references' follows only the reference that holds each part of a container:\n"
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

static void write_sets(struct document *document)
{
	document_heading(document, LEVEL_PART, "Sets of allocations");
	manual_write_sets(document, true);
	document_heading(document, LEVEL_PART, "Sets of other memory");
	manual_write_sets(document, false);
}

const struct topic topic_sets = {
	.name = "sets",
	.summary = "the sets, and how to combine and name them",
	.text = "A set is a word, followed by an address if it takes one: 'used', 'incoming 55d0c0ffee10'. After a set of allocations, one word can narrow it to a kind ('help kinds'): 'used app::Session'.\n"
		"Sets of allocations are combined with 'and', 'or' and 'minus', from left to right:\n"
		"    used app::Session and leaked minus unreferenced\n"
		"    '----------- first --------'                  |\n"
		"    '-------------------- then -------------------'\n"
		"Switches narrow the result ('help switches') and extend it ('help extend'), wherever they are on the line.\n"
		"'let NAME = SET' gives the members a name for later.",
	.example = "count used minus leaked\n"
		   "list leaked and threadonlyanchored or leakroots --limit 3\n"
		   "let big = used --min-size 1K\n"
		   "summarize big minus leaked   # 'let' made big a set",
	.write = write_sets,
};

const struct topic topic_signatures = {
	.name = "signatures",
	.summary = "how the class of an allocation is known",
	.text = "A signature is the first word of an allocation, if that is an address in read-only memory: mostly a table of virtual functions, because each object of a C++ class with virtual functions begins with one.\n"
		"    55d0c0ffee10                     in the program\n"
		"    +--------------+                 +-------------------+\n"
		"    | 55bd4cec3ca0 | --------------> | vtable of         |\n"
		"    | ...          |   signature     | app::Session      |\n"
		"    +--------------+                 +-------------------+\n"
		"So all objects of a class have the same signature. Its name comes from the run-time type information in the core itself, or from symbols. 'summarize signatures' lists those that occur. 'used app::Session' selects the objects of a class and of those derived from it, 'used 55bd4cec3ca0' those with one signature. An object from std::make_shared() has its own class, not that of the counts before it; 'app::Session (destroyed, held by weak_ptr)' if only its memory is left. What was thrown is an 'exception app::Error'; 'describe' says the counts of both. Addresses in the middle of code, links of free lists that a short string overwrote, and constants without pointers that objects of many sizes begin with are not signatures. Strings and other constants without a symbol are counted together, as 'strings of libcrypto.so.3'. A block from which the program's own allocator cuts objects of several classes has none of these classes: it is a 'slab, beginning with app::Session'. If the first word says nothing, one of the next seven may, if it points to a table of operations or the like: 'summarize' and 'list' call that an identity. Where many allocations have a constant text in one of these words, as talloc and allocators made by hand leave there, that text is the identity, in quotes.",
	.example = "summarize signatures\n"
		   "list used app::Session --limit 3\n"
		   "count used -   # those without a signature",
};

static void write_switches(struct document *document)
{
	manual_write_switches(document, contents_options);
	manual_write_switches(document, common_options);
}

const struct topic topic_switches = {
	.name = "switches",
	.summary = "how to narrow, sort, extend and show a set",
	.text = "Commands that take a set accept these switches before or after it. Write a switch as '--NAME VALUE' or '--NAME=VALUE'. chap's form '/NAME VALUE' works too, in small or capital letters and without the dashes within the name: '/minSize 400' is '--min-size 0x400'. A switch without a value is '/NAME true' there.\n"
		"Sizes and counts are decimal; a size can have a unit (64K, 10M, 2G), or be hexadecimal with 0x. Offsets and addresses are hexadecimal, with or without 0x. In chap's form, and with the option --chap, sizes are hexadecimal, as in chap.\n"
		"They are applied in this order, whatever the order on the line: sizes, counts of references, the sample, the extension; then the order and the limit.",
	.example = "list used --min-size 1K --max-size 1M --limit 5\n"
		   "list used /minsize 400 /maxsize 100000 /limit 5   # the same",
	.write = write_switches,
};
