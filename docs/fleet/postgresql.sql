-- Run in the folder that tables.sh filled: psql -f tables.sql -f postgresql.sql
\copy core FROM 'core.csv' (FORMAT csv)
\copy tag FROM 'tag.csv' (FORMAT csv)
\copy bill FROM 'bill.csv' (FORMAT csv)
\copy leak FROM 'leak.csv' (FORMAT csv)
\copy kind FROM 'kind.csv' (FORMAT csv)
\copy holder FROM 'holder.csv' (FORMAT csv)
\copy finding FROM 'finding.csv' (FORMAT csv)
