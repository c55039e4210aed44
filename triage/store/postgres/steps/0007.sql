-- Counts of incidents for facets, as triage.store.facet_tables has them for SQLite.
CREATE TABLE incident_sum (
    verdict TEXT COLLATE "C" NOT NULL, domain TEXT COLLATE "C" NOT NULL, signature TEXT COLLATE "C",
    key TEXT COLLATE "C", incidents BIGINT NOT NULL
);
CREATE UNIQUE INDEX incident_sum_of ON incident_sum (verdict, domain, coalesce(signature, ''), coalesce(key, ''));
CREATE TABLE facet_sum (
    name TEXT COLLATE "C" NOT NULL, value TEXT COLLATE "C" NOT NULL, incidents BIGINT NOT NULL,
    PRIMARY KEY (name, value)
);
CREATE INDEX facet_sum_most ON facet_sum (name, incidents DESC, value);
INSERT INTO incident_sum SELECT verdict, domain, signature, key, count(*) FROM incident GROUP BY 1, 2, 3, 4;
INSERT INTO facet_sum SELECT 'host', name, count(*) FROM host WHERE blamed = 1 GROUP BY name;
INSERT INTO facet_sum SELECT 'fact.' || name, value, count(*) FROM fact GROUP BY name, value;
-- The latest incidents of a cause are found without reading each row.
CREATE INDEX incident_signature_num ON incident (signature, at, num);
CREATE INDEX incident_key_num ON incident (key, at, num);
-- In a function, a semicolon begins the next statement: at the end of a line it ends the function.
CREATE FUNCTION change_incident_sum() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP <> 'DELETE' THEN
        INSERT INTO incident_sum AS s VALUES (NEW.verdict, NEW.domain, NEW.signature, NEW.key, 1)
            ON CONFLICT (verdict, domain, coalesce(signature, ''), coalesce(key, ''))
            DO UPDATE SET incidents = s.incidents + 1
;   END IF
;   IF TG_OP <> 'INSERT' THEN
        UPDATE incident_sum SET incidents = incidents - 1 WHERE verdict = OLD.verdict AND domain = OLD.domain
            AND coalesce(signature, '') = coalesce(OLD.signature, '') AND coalesce(key, '') = coalesce(OLD.key, '')
;       DELETE FROM incident_sum WHERE verdict = OLD.verdict AND domain = OLD.domain AND incidents < 1
            AND coalesce(signature, '') = coalesce(OLD.signature, '') AND coalesce(key, '') = coalesce(OLD.key, '')
;   END IF
; RETURN NULL
; END $$;
CREATE TRIGGER incident_sum_change AFTER INSERT OR DELETE ON incident FOR EACH ROW
    EXECUTE FUNCTION change_incident_sum();
CREATE TRIGGER incident_sum_update AFTER UPDATE ON incident FOR EACH ROW WHEN (
    (OLD.verdict, OLD.domain, OLD.signature, OLD.key) IS DISTINCT FROM (NEW.verdict, NEW.domain, NEW.signature, NEW.key)
) EXECUTE FUNCTION change_incident_sum();
CREATE FUNCTION change_facet(facet TEXT, item TEXT, change BIGINT) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    IF change > 0 THEN
        INSERT INTO facet_sum AS s VALUES (facet, item, 1)
            ON CONFLICT (name, value) DO UPDATE SET incidents = s.incidents + 1
;   ELSE
        UPDATE facet_sum SET incidents = incidents - 1 WHERE name = facet AND value = item
;       DELETE FROM facet_sum WHERE name = facet AND value = item AND incidents < 1
;   END IF
; END $$;
CREATE FUNCTION count_host() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE item host := CASE TG_OP WHEN 'INSERT' THEN NEW ELSE OLD END
; BEGIN
    IF item.blamed = 1 THEN
        PERFORM change_facet('host', item.name, CASE TG_OP WHEN 'INSERT' THEN 1 ELSE -1 END)
;   END IF
; RETURN NULL
; END $$;
CREATE TRIGGER facet_host AFTER INSERT OR DELETE ON host FOR EACH ROW EXECUTE FUNCTION count_host();
CREATE FUNCTION count_fact() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE item fact := CASE TG_OP WHEN 'INSERT' THEN NEW ELSE OLD END
; BEGIN
    PERFORM change_facet('fact.' || item.name, item.value, CASE TG_OP WHEN 'INSERT' THEN 1 ELSE -1 END)
; RETURN NULL
; END $$;
CREATE TRIGGER facet_fact AFTER INSERT OR DELETE ON fact FOR EACH ROW EXECUTE FUNCTION count_fact();
