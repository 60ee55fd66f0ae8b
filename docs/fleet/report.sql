-- The tables of 'heapcore fleet report', which runs this file on fleet.db: a row of them is a row of the report. It runs
-- unchanged in SQLite, PostgreSQL and DuckDB, once tables.sql is loaded there; then, such as
--	SELECT * FROM fleet_leak ORDER BY bytes DESC LIMIT 20;
-- Nothing is written: tables and views last as long as the session. A table of the same name before hides the other cores:
--	CREATE TEMP TABLE core AS SELECT * FROM main.core WHERE build = '1.5';
-- where 'main' is 'public' in PostgreSQL. Averages drop the fraction in a way that is the same everywhere: DuckDB's '/' keeps it.

-- The first digits of a build-id tell builds apart.
CREATE TEMP VIEW analysed AS
SELECT id, path, host, CASE WHEN build = build_id THEN substr(build_id, 1, 12) ELSE coalesce(build, '?') END AS build,
	coalesce(program, '?') AS program, time, used_bytes, leaked_bytes
FROM core WHERE error IS NULL;

-- Builds of a program are numbered by the time of their first core.
CREATE TEMP TABLE numbered_build AS
SELECT program, build, min(time) AS first, count(*) AS cores, nullif(count(DISTINCT host), 0) AS hosts,
	CAST((sum(used_bytes) - sum(used_bytes) % count(*)) / count(*) AS BIGINT) AS used,
	CAST((sum(leaked_bytes) - sum(leaked_bytes) % count(*)) / count(*) AS BIGINT) AS leaked,
	row_number() OVER (PARTITION BY program ORDER BY min(time), build) AS number
FROM analysed GROUP BY program, build;

CREATE TEMP TABLE program AS
SELECT program, CAST(sum(cores) AS BIGINT) AS cores, max(number) AS builds FROM numbered_build GROUP BY program;

-- Leaks of a program; kind and path are those of the core that leaked the most bytes.
CREATE TEMP TABLE joined_leak AS
SELECT program, fingerprint, CAST(sum(bytes) AS BIGINT) AS bytes, max(bytes) AS most, count(DISTINCT core) AS cores,
	nullif(count(DISTINCT host), 0) AS hosts, count(DISTINCT build) AS builds, CAST(sum(roots) AS BIGINT) AS roots,
	max(CASE place WHEN 1 THEN size END) AS size, max(CASE place WHEN 1 THEN kind END) AS kind,
	max(CASE place WHEN 1 THEN allocated_by END) AS allocated_by, max(CASE place WHEN 1 THEN path END) AS most_in,
	min(number) AS first_build, max(number) AS last_build
FROM (SELECT a.program, a.build, a.host, a.path, b.number, l.core, l.fingerprint, l.bytes, l.roots, l.size, l.kind,
		l.allocated_by, row_number() OVER (PARTITION BY a.program, l.fingerprint ORDER BY l.bytes DESC, a.path) AS place
	FROM leak l JOIN analysed a ON a.id = l.core
	JOIN numbered_build b ON b.program = a.program AND b.build = a.build) AS placed
GROUP BY program, fingerprint;

CREATE TEMP TABLE joined_kind AS
SELECT a.program, k.kind, count(*) AS holders, CAST(sum(k.count) AS BIGINT) AS count, CAST(sum(k.bytes) AS BIGINT) AS bytes,
	max(k.bytes) AS most
FROM kind k JOIN analysed a ON a.id = k.core GROUP BY a.program, k.kind;
CREATE UNIQUE INDEX joined_kind_name ON joined_kind (program, kind);

CREATE TEMP VIEW fleet AS
SELECT count(*) AS cores, (SELECT count(*) FROM program) AS programs, (SELECT count(*) FROM numbered_build) AS builds,
	nullif(count(DISTINCT host), 0) AS hosts, CAST(coalesce(sum(used_bytes), 0) AS BIGINT) AS used,
	CAST(coalesce(sum(leaked_bytes), 0) AS BIGINT) AS leaked, count(error) AS failed,
	CAST(sum(incomplete) AS BIGINT) AS incomplete
FROM core;

CREATE TEMP VIEW fleet_leak AS
SELECT l.fingerprint, l.bytes, l.most, l.cores, 1.0 * l.cores / p.cores AS share, l.hosts, l.builds, l.roots, l.program,
	l.size, l.kind, l.allocated_by, l.most_in
FROM joined_leak l JOIN program p ON p.program = l.program;

-- 'first' is in seconds since 1970.
CREATE TEMP VIEW fleet_build AS
SELECT program, build, first, cores, hosts, used, leaked, (SELECT count(*) FROM joined_leak l
	WHERE l.program = b.program AND l.first_build = b.number) AS new_leaks
FROM numbered_build b;

-- Of programs that have several builds: what the first one leaks may be older.
CREATE TEMP VIEW brought_leak AS
SELECT l.program, b.build, l.fingerprint, l.bytes, l.cores, later.build AS until, l.kind
FROM joined_leak l JOIN numbered_build b ON b.program = l.program AND b.number = l.first_build
JOIN program p ON p.program = l.program AND p.builds > 1
LEFT JOIN numbered_build later ON later.program = l.program AND later.number = l.last_build AND later.number < p.builds;

-- The mean of the one or two in the middle is the median.
CREATE TEMP VIEW outlier AS
WITH placed AS (
	SELECT program, used_bytes, row_number() OVER (PARTITION BY program ORDER BY used_bytes) AS place,
		count(*) OVER (PARTITION BY program) AS cores FROM analysed),
middle AS (
	SELECT program, CAST((sum(used_bytes) - sum(used_bytes) % count(*)) / count(*) AS BIGINT) AS median FROM placed
	WHERE cores > 2 AND (2 * place = cores OR 2 * place = cores + 1 OR 2 * place = cores + 2) GROUP BY program)
SELECT a.used_bytes AS used, m.median, a.program, a.build, a.host, (SELECT k.kind FROM kind k
	JOIN joined_kind j ON j.program = a.program AND j.kind = k.kind JOIN program p ON p.program = a.program
	WHERE k.core = a.id ORDER BY k.bytes - 1.0 * j.bytes / p.cores DESC, k.kind LIMIT 1) AS kind, a.path AS core
FROM analysed a JOIN middle m ON m.program = a.program WHERE a.used_bytes > 2 * m.median;

CREATE TEMP VIEW common_kind AS
SELECT j.program, 1.0 * j.holders / p.cores AS share_of_cores,
	CAST((j.count - j.count % j.holders) / j.holders AS BIGINT) AS count,
	CAST((j.bytes - j.bytes % j.holders) / j.holders AS BIGINT) AS bytes, j.most, j.kind
FROM joined_kind j JOIN program p ON p.program = j.program;

CREATE TEMP VIEW common_use AS
SELECT a.program, u.memory, u.use, CAST((sum(u.mapped) - sum(u.mapped) % p.cores) / p.cores AS BIGINT) AS mapped,
	CAST((sum(u.resident) - sum(u.resident) % p.cores) / p.cores AS BIGINT) AS resident
FROM bill u JOIN analysed a ON a.id = u.core JOIN program p ON p.program = a.program
GROUP BY a.program, p.cores, u.memory, u.use;

CREATE TEMP VIEW doubtful_core AS
SELECT c.path AS core, c.host, coalesce(c.error, (SELECT min(f.message) FROM finding f
	WHERE f.core = c.id AND f.incomplete = 1)) AS why
FROM core c WHERE c.error IS NOT NULL OR c.incomplete = 1;
