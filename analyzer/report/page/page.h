/*
 * The texts that a report in HTML is made of; see formats/html.c. cmake/embed.cmake makes them of
 * the files of the same names in this folder, and of Debian's node-d3-hierarchy, which lays out the
 * treemap (page_layout). The page of `heapcore serve` shares those that are not
 * the report's own: license, style, layout and parts.
 */
#pragma once

extern const char page_license[], page_head[], page_style[], page_body[], page_layout[],
	page_parts[], page_script[];
