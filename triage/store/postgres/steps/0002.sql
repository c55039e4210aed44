-- Sums of incidents by cause, as triage.store.cause_tables has them for SQLite.
ALTER TABLE incident ADD COLUMN has_time BIGINT NOT NULL DEFAULT 1;
UPDATE incident SET has_time = 0 WHERE at = stored_at OR at = seen_at;
CREATE INDEX incident_root ON incident (coalesce(signature, key), at);
CREATE TABLE cause_sum (
    cause TEXT COLLATE "C" PRIMARY KEY, incidents BIGINT NOT NULL, first_at DOUBLE PRECISION NOT NULL,
    last_at DOUBLE PRECISION NOT NULL, first_stored DOUBLE PRECISION NOT NULL, last_stored DOUBLE PRECISION NOT NULL,
    title TEXT COLLATE "C" NOT NULL, severity TEXT COLLATE "C" NOT NULL, domain TEXT COLLATE "C" NOT NULL,
    jobs BIGINT NOT NULL DEFAULT 0, hosts BIGINT NOT NULL DEFAULT 0
);
CREATE TABLE cause_day (
    cause TEXT COLLATE "C" NOT NULL, day BIGINT NOT NULL, incidents BIGINT NOT NULL, PRIMARY KEY (cause, day)
);
CREATE INDEX cause_day_day ON cause_day (day, cause, incidents);
CREATE TABLE cause_part (
    cause TEXT COLLATE "C" NOT NULL, kind TEXT COLLATE "C" NOT NULL, name TEXT COLLATE "C" NOT NULL,
    incidents BIGINT NOT NULL, PRIMARY KEY (cause, kind, name)
);
CREATE INDEX cause_part_name ON cause_part (kind, name);
CREATE INDEX cause_part_most ON cause_part (cause, kind, incidents DESC, name);
CREATE VIEW cause_parts AS
    SELECT DISTINCT i.num, 'host' AS kind, h.name AS name FROM incident i,
        json_array_elements_text(CAST(replace(i.hosts, '\u0000', '') AS json)) AS h (name)
    UNION ALL SELECT i.num, 'job', j.name FROM incident i JOIN job j ON j.id = i.job;
INSERT INTO cause_sum (cause, incidents, first_at, last_at, first_stored, last_stored, title, domain, severity)
    SELECT coalesce(signature, key), count(*), min(at), max(at), min(stored_at), max(stored_at), max(title),
        max(domain), max(severity) FROM incident WHERE coalesce(signature, key) IS NOT NULL GROUP BY 1;
INSERT INTO cause_day SELECT coalesce(signature, key), CAST(trunc(at / 86400) AS BIGINT), count(*) FROM incident
    WHERE coalesce(signature, key) IS NOT NULL GROUP BY 1, 2;
-- In a function, a semicolon begins the next statement: at the end of a line it ends the function.
CREATE FUNCTION count_cause_part() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE part cause_part := CASE TG_OP WHEN 'INSERT' THEN NEW ELSE OLD END
; change BIGINT := CASE TG_OP WHEN 'INSERT' THEN 1 ELSE -1 END
; BEGIN
    UPDATE cause_sum SET hosts = hosts + CASE part.kind WHEN 'host' THEN change ELSE 0 END,
        jobs = jobs + CASE part.kind WHEN 'job' THEN change ELSE 0 END WHERE cause = part.cause
; RETURN NULL
; END $$;
CREATE TRIGGER cause_count AFTER INSERT OR DELETE ON cause_part FOR EACH ROW EXECUTE FUNCTION count_cause_part();
INSERT INTO cause_part SELECT coalesce(i.signature, i.key), p.kind, p.name, count(*) FROM incident i
    JOIN cause_parts p ON p.num = i.num WHERE coalesce(i.signature, i.key) IS NOT NULL GROUP BY 1, 2, 3;
CREATE FUNCTION add_cause(i incident) RETURNS void LANGUAGE plpgsql AS $$
DECLARE root TEXT := coalesce(i.signature, i.key)
; BEGIN
    INSERT INTO cause_sum AS s (cause, incidents, first_at, last_at, first_stored, last_stored, title, domain, severity)
        VALUES (root, 1, i.at, i.at, i.stored_at, i.stored_at, i.title, i.domain, i.severity)
        ON CONFLICT (cause) DO UPDATE SET incidents = s.incidents + 1, first_at = least(s.first_at, i.at),
        last_at = greatest(s.last_at, i.at), first_stored = least(s.first_stored, i.stored_at),
        last_stored = greatest(s.last_stored, i.stored_at), title = i.title, domain = i.domain, severity = i.severity
;   INSERT INTO cause_day AS d VALUES (root, CAST(trunc(i.at / 86400) AS BIGINT), 1)
        ON CONFLICT (cause, day) DO UPDATE SET incidents = d.incidents + 1
;   INSERT INTO cause_part AS c SELECT root, 'host', h, 1
        FROM (SELECT DISTINCT h FROM json_array_elements_text(CAST(replace(i.hosts, '\u0000', '') AS json)) AS h) AS hs
        ON CONFLICT (cause, kind, name) DO UPDATE SET incidents = c.incidents + 1
;   INSERT INTO cause_part AS c SELECT root, 'job', j.name, 1 FROM job j WHERE j.id = i.job
        ON CONFLICT (cause, kind, name) DO UPDATE SET incidents = c.incidents + 1
; END $$;
CREATE FUNCTION subtract_cause(i incident) RETURNS void LANGUAGE plpgsql AS $$
DECLARE root TEXT := coalesce(i.signature, i.key)
; BEGIN
    UPDATE cause_part SET incidents = incidents - 1 WHERE cause = root AND (kind = 'host' AND name IN
        (SELECT h FROM json_array_elements_text(CAST(replace(i.hosts, '\u0000', '') AS json)) AS h)
        OR kind = 'job' AND name = (SELECT j.name FROM job j WHERE j.id = i.job))
;   DELETE FROM cause_part WHERE cause = root AND incidents < 1 AND (kind = 'host' AND name IN
        (SELECT h FROM json_array_elements_text(CAST(replace(i.hosts, '\u0000', '') AS json)) AS h)
        OR kind = 'job' AND name = (SELECT j.name FROM job j WHERE j.id = i.job))
;   UPDATE cause_day SET incidents = incidents - 1 WHERE cause = root AND day = CAST(trunc(i.at / 86400) AS BIGINT)
;   DELETE FROM cause_day WHERE cause = root AND day = CAST(trunc(i.at / 86400) AS BIGINT) AND incidents < 1
;   DELETE FROM cause_sum WHERE cause = root AND incidents = 1
;   UPDATE cause_sum SET incidents = incidents - 1,
        first_at = coalesce((SELECT min(o.at) FROM incident o WHERE coalesce(o.signature, o.key) = root), first_at),
        last_at = coalesce((SELECT max(o.at) FROM incident o WHERE coalesce(o.signature, o.key) = root), last_at)
        WHERE cause = root
; END $$;
CREATE FUNCTION change_cause() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP <> 'DELETE' THEN IF coalesce(NEW.signature, NEW.key) IS NOT NULL THEN
        PERFORM add_cause(NEW)
;   END IF
;   END IF
;   IF TG_OP <> 'INSERT' THEN IF coalesce(OLD.signature, OLD.key) IS NOT NULL THEN
        PERFORM subtract_cause(OLD)
;   END IF
;   END IF
; RETURN NULL
; END $$;
CREATE TRIGGER cause_change AFTER INSERT OR DELETE ON incident FOR EACH ROW EXECUTE FUNCTION change_cause();
CREATE TRIGGER cause_update AFTER UPDATE ON incident FOR EACH ROW WHEN (
    (coalesce(OLD.signature, OLD.key), OLD.at, OLD.hosts, OLD.title)
    IS DISTINCT FROM (coalesce(NEW.signature, NEW.key), NEW.at, NEW.hosts, NEW.title)
) EXECUTE FUNCTION change_cause();
CREATE FUNCTION move_cause_job() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE cause_part SET incidents = incidents - 1 WHERE kind = 'job' AND name = OLD.name AND cause IN
        (SELECT coalesce(i.signature, i.key) FROM incident i WHERE i.job = NEW.id)
;   DELETE FROM cause_part WHERE kind = 'job' AND name = OLD.name AND incidents < 1 AND cause IN
        (SELECT coalesce(i.signature, i.key) FROM incident i WHERE i.job = NEW.id)
;   INSERT INTO cause_part AS c SELECT coalesce(i.signature, i.key), 'job', NEW.name, 1 FROM incident i
        WHERE i.job = NEW.id AND coalesce(i.signature, i.key) IS NOT NULL
        ON CONFLICT (cause, kind, name) DO UPDATE SET incidents = c.incidents + 1
; RETURN NULL
; END $$;
CREATE TRIGGER cause_move_job AFTER UPDATE OF name ON job FOR EACH ROW WHEN (OLD.name IS DISTINCT FROM NEW.name)
    EXECUTE FUNCTION move_cause_job();
