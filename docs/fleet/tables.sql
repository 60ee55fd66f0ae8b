-- The tables of fleet.db for other databases: load.sh fills them.
CREATE TABLE core (id BIGINT, path TEXT, size BIGINT, modified BIGINT, status BIGINT, error TEXT, incomplete BIGINT,
	seconds DOUBLE PRECISION, host TEXT, build TEXT, build_id TEXT, program TEXT, process BIGINT, time DOUBLE PRECISION,
	threads BIGINT, used BIGINT, used_bytes BIGINT, leaked BIGINT, leaked_bytes BIGINT, mapped BIGINT, resident BIGINT,
	origin TEXT, machine TEXT, identity TEXT, version TEXT, signal BIGINT, place TEXT, reason TEXT,
	uptime DOUBLE PRECISION);
CREATE TABLE tag (core BIGINT, name TEXT, value TEXT);
CREATE TABLE bill (core BIGINT, memory TEXT, use TEXT, count BIGINT, mapped BIGINT, resident BIGINT);
CREATE TABLE leak (core BIGINT, fingerprint TEXT, kind TEXT, size BIGINT, roots BIGINT, allocations BIGINT, bytes BIGINT,
	address TEXT, allocated_by TEXT);
CREATE TABLE kind (core BIGINT, kind TEXT, count BIGINT, bytes BIGINT, allocated_by TEXT);
CREATE TABLE holder (core BIGINT, holder TEXT, count BIGINT, bytes BIGINT);
CREATE TABLE finding (core BIGINT, incomplete BIGINT, message TEXT);
