/*
 * The notes that heapcore itself adds to a core: named "HEAPCORE", of types
 * that nobody else gives to notes of a core, four letters each.
 */
#ifndef ANALYZER_IMAGE_OWN_NOTES_H
#define ANALYZER_IMAGE_OWN_NOTES_H

#define NOTE_OWNER "HEAPCORE"

enum {
	NOTE_SMAPS = 0x534d4150, /* the text of /proc/PID/smaps */
	NOTE_TIME = 0x54494d45,	 /* 8 bytes: ns since 1970 began, in UTC */
};

#endif
