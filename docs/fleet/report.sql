-- The tables of 'heapcore fleet report', which runs this file on fleet.db: a row of them is a row of the report. It runs
-- unchanged in SQLite, PostgreSQL and DuckDB, once tables.sql is loaded there; then, such as
--	SELECT * FROM fleet_leak ORDER BY bytes DESC LIMIT 20;
-- Nothing is written: tables and views last as long as the session. A table of the same name before hides the other cores:
--	CREATE TEMP TABLE core AS SELECT * FROM main.core WHERE build = '1.5';
-- where 'main' is 'public' in PostgreSQL. Averages drop the fraction in a way that is the same everywhere: DuckDB's '/' keeps it.

-- Copies of a core have one identity, and count once.
CREATE TEMP TABLE counted AS
SELECT * FROM (SELECT c.*, CASE WHEN identity IS NULL THEN 1
	ELSE row_number() OVER (PARTITION BY identity ORDER BY path) END AS copy FROM core c) AS numbered WHERE copy = 1;

-- Figures are of cores that were analysed as a whole. The first digits of a build-id tell builds apart.
CREATE TEMP TABLE analysed AS
SELECT id, coalesce(origin, path) AS path, host,
	CASE WHEN build = build_id THEN substr(build_id, 1, 12) ELSE coalesce(build, '?') END AS build,
	coalesce(program, '?') AS program, time, used_bytes, leaked_bytes
FROM counted WHERE error IS NULL AND incomplete = 0;
CREATE UNIQUE INDEX analysed_core ON analysed (id);

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

-- Of a kind in the cores of a build: quartiles of the bytes, where a core without it has none. All of them are a kind, too.
CREATE TEMP TABLE kind_spread AS
WITH used AS (
	SELECT id AS core, program, build, 'all kinds' AS kind, used_bytes AS bytes FROM analysed
	UNION ALL SELECT a.id, a.program, a.build, k.kind, k.bytes FROM kind k JOIN analysed a ON a.id = k.core),
placed AS (
	SELECT b.program, b.number, u.kind, u.bytes, b.cores, b.cores - count(*) OVER (PARTITION BY b.program, b.number, u.kind)
		+ row_number() OVER (PARTITION BY b.program, b.number, u.kind ORDER BY u.bytes) AS place
	FROM used u JOIN numbered_build b ON b.program = u.program AND b.build = u.build)
SELECT program, number, kind, cores, count(*) AS holders,
	max(CASE WHEN 4 * place >= cores AND 4 * place < cores + 4 THEN bytes ELSE 0 END) AS low,
	max(CASE WHEN 2 * place >= cores AND 2 * place < cores + 2 THEN bytes ELSE 0 END) AS median,
	max(CASE WHEN 4 * place >= 3 * cores AND 4 * place < 3 * cores + 4 THEN bytes ELSE 0 END) AS high
FROM placed GROUP BY program, number, kind, cores;
CREATE UNIQUE INDEX kind_spread_build ON kind_spread (program, kind, number);

CREATE TEMP TABLE joined_kind AS
SELECT a.program, k.kind, count(*) AS holders, CAST(sum(k.count) AS BIGINT) AS count, CAST(sum(k.bytes) AS BIGINT) AS bytes,
	max(k.bytes) AS most
FROM kind k JOIN analysed a ON a.id = k.core GROUP BY a.program, k.kind;
CREATE UNIQUE INDEX joined_kind_name ON joined_kind (program, kind);

CREATE TEMP VIEW fleet AS
SELECT (SELECT count(*) FROM counted) AS cores, (SELECT count(*) FROM program) AS programs, (SELECT count(*) FROM numbered_build) AS builds,
	nullif(count(DISTINCT host), 0) AS hosts, CAST(coalesce(sum(used_bytes), 0) AS BIGINT) AS used,
	CAST(coalesce(sum(leaked_bytes), 0) AS BIGINT) AS leaked, (SELECT count(error) FROM counted) AS failed,
	(SELECT count(*) FROM counted WHERE error IS NULL AND incomplete = 1) AS incomplete,
	nullif((SELECT count(*) FROM core) - (SELECT count(*) FROM counted), 0) AS copies
FROM analysed;

CREATE TEMP VIEW fleet_leak AS
SELECT l.fingerprint, l.bytes, l.most, l.cores, 1.0 * l.cores / p.cores AS share, l.hosts, l.builds, l.roots, l.program,
	l.size, l.kind, l.allocated_by, l.most_in, first.build AS first_build, last.build AS last_build
FROM joined_leak l JOIN program p ON p.program = l.program
JOIN numbered_build first ON first.program = l.program AND first.number = l.first_build
JOIN numbered_build last ON last.program = l.program AND last.number = l.last_build;

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

-- Kinds of which three quarters of a build's cores have more than three quarters of the former build's: more than the
-- cores of one build differ. Three cores of a build are the least to say so, and 4 KiB the least to matter.
CREATE TEMP VIEW growth AS
SELECT b.program, b.build, former.build AS former_build, k.kind, coalesce(f.median, 0) AS former, k.median,
	coalesce(f.high, 0) AS former_high, k.low, 1.0 * k.median / nullif(f.median, 0) AS times, k.cores, k.holders
FROM kind_spread k JOIN numbered_build b ON b.program = k.program AND b.number = k.number
JOIN numbered_build former ON former.program = b.program AND former.number = b.number - 1
LEFT JOIN kind_spread f ON f.program = k.program AND f.number = former.number AND f.kind = k.kind
WHERE k.low > coalesce(f.high, 0) AND k.median >= coalesce(f.median, 0) + 4096 AND b.cores > 2 AND former.cores > 2;

-- Averages of a day, which is named by its first second since 1970.
CREATE TEMP VIEW trend AS
SELECT program, second - second % 86400 AS day, count(*) AS cores, CAST((sum(used_bytes) - sum(used_bytes) % count(*)) / count(*) AS BIGINT) AS used,
	CAST((sum(leaked_bytes) - sum(leaked_bytes) % count(*)) / count(*) AS BIGINT) AS leaked
FROM (SELECT a.*, CAST(time AS BIGINT) AS second FROM analysed a WHERE time IS NOT NULL) AS dated
GROUP BY program, second - second % 86400;

-- Cores of one build are alike, so only three or more of it tell what is far more.
CREATE TEMP VIEW outlier AS
SELECT a.used_bytes AS used, s.median, a.program, a.build, a.host, (SELECT k.kind FROM kind k
	LEFT JOIN kind_spread m ON m.program = a.program AND m.number = b.number AND m.kind = k.kind
	WHERE k.core = a.id ORDER BY k.bytes - coalesce(m.median, 0) DESC, k.kind LIMIT 1) AS kind, a.path AS core
FROM analysed a JOIN numbered_build b ON b.program = a.program AND b.build = a.build
JOIN kind_spread s ON s.program = a.program AND s.number = b.number AND s.kind = 'all kinds'
WHERE b.cores > 2 AND a.used_bytes > 2 * s.median;

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
SELECT coalesce(c.origin, c.path) AS core, c.host, coalesce(c.error, (SELECT min(f.message) FROM finding f
	WHERE f.core = c.id AND f.incomplete = 1)) AS why
FROM counted c WHERE c.error IS NOT NULL OR c.incomplete = 1;
