/*
 * What help has to say beside commands and sets; the build collects the topics.
 */
#include "analyzer/base/text.h"
#include "analyzer/classify/classifier.h"
#include "analyzer/query/annotate.h"
#include "cli/help/manual.h"
#include "cli/prompt/switches.h"
#include "cli/views/selection.h"

static void write_annotators(struct document *document)
{
	document_heading(document, LEVEL_PART, "Annotators");
	for (size_t i = 0; annotator_name(i); i++)
		document_entry(document, annotator_name(i), annotator_summary(i));
}

const struct topic topic_annotate = {
	.name = "annotate",
	.summary = "what parts of an allocation are, told behind it",
	.text = "'--annotate WHAT[@OFFSET].ANNOTATOR' has 'list', 'show', 'describe' and 'explain' tell of parts of each allocation, with the offsets where they begin and end. WHAT is a kind ('help kinds'), a state of an extension ('help extend'), or * for all allocations; the annotator, too, may be *. With an offset, only what begins there is shown. The switch may be repeated.",
	.example = "list used app::Session --annotate *.* --limit 1\n"
		   "list used --annotate app::Session.SSOString --limit 5\n"
		   "list used app::Session --extend ->%MapOrSetNode=>M --annotate M.* --limit 5",
	.write = write_annotators,
};

const struct topic topic_extend = {
	.name = "extend",
	.summary = "going on from the members of a set along references",
	.text = "'--extend RULE' adds to a set what its members refer to, or what refers to them, and goes on from there. So what belongs to a session, its maps, strings and buffers, is counted or shown along with it. The switch can be given several times. A rule is one word without blanks:\n"
		"    [MEMBER][@OFFSET] ARROW [EXTENSION][@OFFSET] [=>STATE]\n"
		"    \n"
		"    app::Session  ->  %MapOrSetNode  =>M      (without the blanks)\n"
		"    |             |   |              |\n"
		"    from each     |   take in what   and go on from that by the\n"
		"    of these      |   is one of      rules of the state M alone\n"
		"                  |   these\n"
		"                  along its references\n"
		"MEMBER and EXTENSION are kinds, as behind a set ('help kinds'); where one is left out, anything will do. Only allocations in use are taken in.\n"
		"The arrow says which way to go:\n"
		"    ->   MEMBER -------> EXTENSION   what a member refers to\n"
		"    ~>   MEMBER -------> EXTENSION   the same, leaked ones only\n"
		"    <-   MEMBER <------- EXTENSION   what refers to a member\n"
		"Offsets, in hexadecimal, say where the pointer stands, and where it points. Without one, anywhere will do:\n"
		"           A                B\n"
		"           +-----+          +-----+\n"
		"         0 |     |          |     | 0    A@8->B      from 8 in A\n"
		"         8 |  *--|----.     |     | 8    A->B@10     to 10 in B\n"
		"        10 |     |    '---> |     | 10   A@8->B@10   both\n"
		"           +-----+          +-----+\n"
		"With '<-' it is B that holds the pointer, and A that is pointed to:\n"
		"           A                B\n"
		"           +-----+          +-----+\n"
		"         0 |     |          |     | 0    A<-B@10     from 10 in B\n"
		"         8 |     | <--.     |     | 8    A@8<-B      to 8 in A\n"
		"        10 |     |    '-----|--*  | 10   A@8<-B@10   both\n"
		"           +-----+          +-----+\n"
		"What is taken in is extended again, by the same rules: '--extend ->' takes all that can be reached. A rule that ends in =>STATE changes that: what it takes in, of any kind, is extended by the rules whose MEMBER is that state and by no others. The name of a state is any word that no class has:\n"
		"    list used app::Session --extend ->%MapOrSetNode=>M --extend M->%LongString\n"
		"    \n"
		"    app::Session --> %MapOrSetNode --> %LongString\n"
		"                          | in state M\n"
		"                          '-----> %MapOrSetNode   not taken in\n"
		"A rule for M itself, '--extend M->%MapOrSetNode=>M', would go on through the whole map.\n"
		"Each allocation is visited once, in the state in which it was reached first: so the order of rules matters. Members of the set come by address, and behind each at once what it leads to, depth first: for one rule after the other what it reaches, by address, each followed by what that leads to in turn.\n"
		"    A -> B -> D             visited: A B D C E\n"
		"    |\n"
		"    '--> C -> E\n"
		"'--comment-extensions' says between the members how each was "
		"reached. Sizes, kinds and counts of references narrow the set that is extended, not what is taken in.",
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
	.summary = "the word behind a set: a class, a signature, a pattern",
	.text = "One word behind a set of allocations takes only those of a kind. It is one of\n"
		"    app::Session    a class; classes derived from it count, too\n"
		"    55bd4cec3ca0    a signature, in hexadecimal\n"
		"    %LongString     a pattern ('help patterns' lists them)\n"
		"    -               whatever has no signature\n"
		"    ?               whatever has neither signature nor "
		"pattern\n"
		"A name with blanks is put in quotes: "
		"'count used \"app::Map<int, int>\"'. The same words stand in rules of '--extend', and in front of counts of references.\n"
		"A class that no allocation is of is taken for a mistake, and the nearest one is named; "
		"'--allow-missing-signatures' makes that 0 allocations.",
	.example = "count used app::Session\n"
		   "list leaked %LongString --limit 3\n"
		   "summarize used ?",
};

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

const struct topic topic_lines = {
	.name = "lines",
	.summary = "how a line is read, and where its output goes",
	.text = "A line is a command and its words, with blanks between. Quotes of either kind group words with blanks; '#' begins a comment; a backslash at the end continues the line in the next. Addresses, sizes and offsets are hexadecimal, with or without 0x, counts decimal; 64K and 10M are sizes, too.\n"
		"At the end, '> FILE' sends the output to a file, '>> FILE' appends it, and '| SHELL COMMAND' gives it to the shell. 'redirect on' makes a file of each output. '--format FORMAT' behind a command that looks at a core has it write csv, tsv, markdown, json or ndjson instead of text.\n"
		"'#' also begins the comments in examples. Addresses in examples are made up: take yours from 'list' or 'enumerate'.\n"
		"Ctrl-C ends a command, not heapcore. Tab completes words. Scripts are run by 'source FILE', by 'heapcore -f FILE CORE', or come in on standard input; what goes wrong in one is reported "
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
	.summary = "buffers, nodes and the like that are known by their shape",
	.text = "The text of a long string, the elements of a vector or the node of a map bear no signature: nothing in them says what they are. But what refers to them does: three pointers that agree are a vector, and so what they point to is its body. An allocation that is so recognised has a pattern, and 'describe' tells what it is part of.\n"
		"'%NAME' behind a set asks for those of a pattern, and in a rule of '--extend', too.",
	.example = "summarize used\n"
		   "count used %LongString\n"
		   "describe used %VectorBody --limit 3",
	.write = write_patterns,
};

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

static void write_sets(struct document *document)
{
	document_heading(document, LEVEL_PART, "Sets of allocations");
	manual_write_sets(document, true);
	document_heading(document, LEVEL_PART, "Sets of other memory");
	manual_write_sets(document, false);
}

const struct topic topic_sets = {
	.name = "sets",
	.summary = "what can be asked about, how to combine it and name it",
	.text = "A set is a word, with addresses behind it where it takes some: 'used', 'incoming 55d0c0ffee10'. Behind a set of allocations may stand one word that narrows it to a kind ('help kinds'), as in 'used app::Session'.\n"
		"Sets of allocations are combined with 'and', 'or' and 'minus', one after the other from left to right:\n"
		"    used app::Session and leaked minus unreferenced\n"
		"    '----------- first --------'                  |\n"
		"    '-------------------- then -------------------'\n"
		"Switches narrow what comes of that, wherever they stand ('help switches'), and extend it ('help extend').\n"
		"'let NAME = SET' gives the members a name for later.",
	.example = "count used minus leaked\n"
		   "list leaked and threadonlyanchored or leakroots --limit 3\n"
		   "let big = used --min-size 1K\n"
		   "summarize big minus leaked   # 'let' made big a set",
	.write = write_sets,
};

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

static void write_switches(struct document *document)
{
	manual_write_switches(document, contents_options);
	manual_write_switches(document, common_options);
}

const struct topic topic_switches = {
	.name = "switches",
	.summary = "what narrows, orders, extends and shows a set, all of it",
	.text = "Commands that take a set take these switches, before or behind it. A switch is written '--NAME VALUE' or '--NAME=VALUE'. Users of chap may go on to write '/NAME VALUE', in small or capital letters and without the dashes within the name: '/minSize 400' is '--min-size 400'. A switch without a value is '/NAME true' there.\n"
		"Sizes, offsets and addresses are hexadecimal, with or without 0x; a size with a unit is decimal: 64K, 10M, 2G. Counts are decimal.\n"
		"They are applied in this order, however they are typed: sizes, counts of references, the sample, the extension; then the order and the limit.",
	.example = "list used --min-size 1K --max-size 1M --limit 5\n"
		   "list used /minsize 400 /maxsize 100000 /limit 5   # the same",
	.write = write_switches,
};
