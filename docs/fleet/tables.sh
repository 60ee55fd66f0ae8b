#!/bin/sh
# The tables of fleet.db as CSV, for other databases: tables.sh fleet.db FOLDER
set -e
mkdir -p "$2"
for table in core tag bill leak kind holder finding; do
	sqlite3 -readonly -csv "$1" "SELECT * FROM $table" >"$2/$table.csv"
done
