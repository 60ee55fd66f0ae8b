/*
 * A flame graph that any browser shows: one SVG file with its script, which asks nothing of a
 * network. A click on a frame fills the width with it, one on the lowest goes back; Ctrl-F, or a
 * click on "search", colours the frames whose name contains a word or matches an expression.
 *
 * Frames grow upwards from the roots. The script reads the geometry back from the elements: so
 * there is nothing in it that comes from the core.
 */
#include "analyzer/export/export.h"
#include "analyzer/owners/frames.h"
#include "analyzer/report/values.h"

#include <xxhash.h>

enum { WIDTH = 1200, ROW = 17, HEAD = 40, FOOT = 24, CHARACTER = 7, UNITS = 1000 };

static const char style[] =
	"<style>\n"
	"svg{font:12px system-ui,sans-serif;background:#fff}\n"
	"text{fill:#222;pointer-events:none}\n"
	"#back,#search{cursor:pointer;pointer-events:all;fill:#06c}\n"
	".f{cursor:pointer}.f rect{stroke:#fff;stroke-width:.5}\n"
	".f:hover rect{stroke:#000}.f.hit rect{fill:#b0f!important}.f.hit text{fill:#fff}\n"
	"@media(prefers-color-scheme:dark){svg{background:#1b1b1f}\n"
	".f rect{stroke:#1b1b1f}.f:hover rect{stroke:#fff}.f text{fill:#111}\n"
	"text{fill:#ddd}#back,#search{fill:#8bf}}\n"
	"</style>\n";

static const char script[] =
	"<script><![CDATA[\n"
	"'use strict';\n"
	"const svg=document.documentElement,frames=[...document.querySelectorAll('.f')];\n"
	"const info=document.getElementById('info'),found=document.getElementById('found');\n"
	"const WIDTH=1200;\n"
	"const all=frames.map(g=>{const r=g.querySelector('rect'),t=g.querySelector('text');\n"
	" return {g,r,t,x:+r.getAttribute('x'),w:+r.getAttribute('width'),y:+r.getAttribute('y'),\n"
	"  title:g.querySelector('title').textContent}});\n"
	"all.forEach(f=>{f.name=f.title.split('\\n')[0]});\n"
	"function draw(f,x,w){\n"
	" f.g.style.display=w<0.3?'none':'';\n"
	" f.r.setAttribute('x',x);f.r.setAttribute('width',Math.max(w,0));\n"
	" const room=Math.floor((w-6)/7);f.t.setAttribute('x',x+3);\n"
	" const letters=[...f.name];\n"
	" f.t.textContent=room<3?'':letters.length<=room?f.name:letters.slice(0,room-1).join('')+'\\u2026';\n"
	"}\n"
	"function zoom(to){\n"
	" const scale=WIDTH/to.w;\n"
	" for(const f of all){\n"
	"  if(f.x<=to.x+1e-6&&f.x+f.w>=to.x+to.w-1e-6&&f.y>=to.y)draw(f,0,WIDTH);\n"
	"  else if(f.x+f.w<=to.x+1e-6||f.x>=to.x+to.w-1e-6)draw(f,0,0);\n"
	"  else draw(f,(f.x-to.x)*scale,f.w*scale);\n"
	" }\n"
	" document.getElementById('back').style.display=to===all[0]?'none':'';\n"
	"}\n"
	"function search(){\n"
	" const word=prompt('Search for a word or a regular expression');\n"
	" if(word!==null)mark(word);\n"
	"}\n"
	"function mark(word){\n"
	" let test=name=>name.includes(word),bytes=0,end=-1;\n"
	" try{const e=new RegExp(word);test=name=>e.test(name)}catch(error){}\n"
	" for(const f of all){\n"
	"  const hit=word!==''&&test(f.name);\n"
	"  f.g.classList.toggle('hit',hit);\n"
	"  if(hit&&f.x>=end-1e-6){bytes+=f.w;end=f.x+f.w}\n"
	" }\n"
	" found.textContent=word===''?'':'found: '+(100*bytes/WIDTH).toFixed(1)+'%';\n"
	"}\n"
	"for(const f of all){\n"
	" f.g.addEventListener('click',()=>zoom(f));\n"
	" f.g.addEventListener('mouseenter',()=>{info.textContent=f.title.replace('\\n',': ')});\n"
	" f.g.addEventListener('mouseleave',()=>{info.textContent=''});\n"
	"}\n"
	"document.getElementById('back').addEventListener('click',()=>zoom(all[0]));\n"
	"document.getElementById('search').addEventListener('click',search);\n"
	"addEventListener('keydown',e=>{if((e.ctrlKey||e.metaKey)&&e.key==='f'){e.preventDefault();search()}\n"
	" if(e.key==='Escape'){zoom(all[0]);mark('')}});\n"
	"]]></script>\n";

/* Thousandths of a pixel, so that all is in integers. */
static void write_length(struct writer *writer, uint64_t thousandths)
{
	writer_decimal(writer, thousandths / UNITS);
	if (thousandths % UNITS) {
		writer_put(writer, '.');
		writer_put(writer, (char)('0' + thousandths / 100 % 10));
		writer_put(writer, (char)('0' + thousandths / 10 % 10));
		writer_put(writer, (char)('0' + thousandths % 10));
	}
}

/* The beginning of a text that fits so many characters; UTF-8 is not cut. */
static void write_fitting(struct writer *writer, const char *text, size_t room)
{
	_cleanup_(free) char *cut = NULL;
	size_t length = 0, letters = 0;

	if (room < 3)
		return;
	for (; text[length]; length++) {
		letters += ((unsigned char)text[length] & 0xc0) != 0x80;
		if (letters > room)
			break;
	}
	cut = strndup(text, length);
	if (cut)
		xml_text(writer, cut);
}

static void write_colour(struct writer *writer, const char *text)
{
	uint64_t hash = XXH3_64bits(text, strlen(text));

	writer_text(writer, "\" fill=\"rgb(");
	writer_decimal(writer, 205 + hash % 50);
	writer_put(writer, ',');
	writer_decimal(writer, 90 + hash / 64 % 130);
	writer_put(writer, ',');
	writer_decimal(writer, 40 + hash / 16384 % 60);
	writer_text(writer, ")\"/>");
}

static void write_title(struct writer *writer, const char *text, const struct owner_amount *amount,
			uint64_t whole)
{
	char share[16];

	writer_text(writer, "<g class=\"f\"><title>");
	xml_text(writer, text);
	writer_put(writer, '\n');
	writer_grouped(writer, amount->bytes);
	writer_text(writer, amount->bytes == 1 ? " byte in " : " bytes in ");
	writer_grouped(writer, amount->count);
	writer_text(writer, amount->count == 1 ? " allocation" : " allocations");
	snprintf(share, sizeof(share), ", %.1f%%",
		 whole ? 100.0 * (double)amount->bytes / (double)whole : 0.0);
	writer_text(writer, share);
	writer_text(writer, "</title>");
}

/* Write a frame; it begins at start, in bytes of the whole. */
static void write_frame(struct writer *writer, const struct frames *frames, size_t number,
			enum owner_measure measure, uint64_t start, size_t height)
{
	const struct owner_frame *frame = &frames->list.items[number];
	uint64_t whole = frames->list.items[0].total[measure].bytes;
	double scale = whole ? (double)WIDTH * UNITS / (double)whole : 0;
	uint64_t left = (uint64_t)((double)start * scale);
	uint64_t right = (uint64_t)((double)(start + frame->total[measure].bytes) * scale);
	size_t top = height - FOOT - (frame->depth + 1) * ROW;
	char buffer[FRAME_TEXT_SIZE];
	const char *text = frame_text(frames, number, buffer);

	write_title(writer, text, &frame->total[measure], whole);
	writer_text(writer, "<rect x=\"");
	write_length(writer, left);
	writer_text(writer, "\" y=\"");
	writer_decimal(writer, top);
	writer_text(writer, "\" width=\"");
	write_length(writer, right - left);
	writer_text(writer, "\" height=\"16");
	write_colour(writer, text);
	writer_text(writer, "<text x=\"");
	write_length(writer, left + 3 * UNITS);
	writer_text(writer, "\" y=\"");
	writer_decimal(writer, top + 12);
	writer_text(writer, "\">");
	write_fitting(writer, text, (right - left) / UNITS / CHARACTER);
	writer_text(writer, "</text></g>\n");
}

static void write_head(struct writer *writer, const struct export *export, size_t height)
{
	writer_text(writer, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
			    "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 1200 ");
	writer_decimal(writer, height);
	writer_text(writer, "\" preserveAspectRatio=\"xMidYMin meet\">\n<title>");
	xml_text(writer, export->title);
	writer_text(writer, "</title>\n");
	writer_text(writer, style);
	writer_text(writer, "<text x=\"3\" y=\"16\">Who holds the memory of ");
	xml_text(writer, export->title);
	writer_text(writer,
		    "</text>\n<text id=\"back\" x=\"1000\" y=\"16\" style=\"display:none\">all"
		    "</text>\n<text id=\"search\" x=\"1140\" y=\"16\">search</text>\n"
		    "<text id=\"found\" x=\"1080\" y=\"32\"></text>\n");
}

static struct error *svg_write(const struct export *export, struct writer *writer)
{
	_cleanup_(frames_deinit) struct frames frames = { 0 };
	uint64_t next[MOST_DEPTH + 3] = { 0 }; /* where the next frame on each level begins */
	size_t height = 0;

	TRY(frames_make(export->owners, export->measure, export->limit,
			analysis_account(export->analysis), &frames));
	array_for_each(frame, &frames.list)
		if (frame->depth > height)
			height = frame->depth;
	height = HEAD + FOOT + (height + 1) * ROW;
	write_head(writer, export, height);
	for (size_t i = 0; i < frames.list.count; i++) {
		const struct owner_frame *frame = &frames.list.items[i];
		uint64_t start = next[frame->depth];

		write_frame(writer, &frames, i, export->measure, start, height);
		next[frame->depth] = start + frame->total[export->measure].bytes;
		next[frame->depth + 1] = start;
	}
	writer_text(writer, "<text id=\"info\" x=\"3\" y=\"");
	writer_decimal(writer, height - 8);
	writer_text(writer, "\"></text>\n");
	writer_text(writer, script);
	writer_text(writer, "</svg>\n");
	return NULL;
}

const struct export_format export_format_svg = {
	.name = "svg",
	.summary = "a flame graph for any browser, with zoom and search",
	.limit = 10000,
	.write = svg_write,
};
