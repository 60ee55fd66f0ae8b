-- Run in the folder that tables.sh filled: duckdb fleet.duckdb '.read tables.sql' '.read duckdb.sql'
COPY core FROM 'core.csv' (FORMAT csv, AUTO_DETECT false);
COPY tag FROM 'tag.csv' (FORMAT csv, AUTO_DETECT false);
COPY bill FROM 'bill.csv' (FORMAT csv, AUTO_DETECT false);
COPY leak FROM 'leak.csv' (FORMAT csv, AUTO_DETECT false);
COPY kind FROM 'kind.csv' (FORMAT csv, AUTO_DETECT false);
COPY holder FROM 'holder.csv' (FORMAT csv, AUTO_DETECT false);
COPY finding FROM 'finding.csv' (FORMAT csv, AUTO_DETECT false);
